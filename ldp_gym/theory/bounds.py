"""The paper's bounds on risks, with explicit constants, in nats.

``num_hypotheses`` is K, ``horizon`` is T. The upper bounds are those that the proofs give before they are
wrapped in O(); ``gamma`` is log T unless given, as in the proof of Theorem 4.
"""

from __future__ import annotations

import math

from ldp_gym.channels.accounting import (
    MOST_ROUNDS,
    log_range,
    offset,
    resolved_gamma,
    single_noise_scale,
    vector_noise_scale,
)
from ldp_gym.core import validation
from ldp_gym.hypotheses.families import hadamard_gap, hadamard_horizon


def nonprivate_bound(num_hypotheses: int) -> float:
    """``log K``: the risk of the Bayes mixture on the labels themselves, at any horizon (Section 1)."""
    return math.log(validation.whole("num_hypotheses (K)", num_hypotheses, least=2))


def wma_bound(
    num_hypotheses: int, horizon: int, epsilon: float, delta: float, gamma: float | None = None
) -> float:
    """Algorithm 1's KL-risk: ``sqrt(2T log K) / c + 3 log(KT) + e^-gamma (T + 3) log(KT)``.

    The proof of Theorem 4: Lemma 5 where the noise stays within c', and at most
    ``log(KT)`` per round plus ``3 log(KT)`` where it does not, which has probability at most e^-gamma.
    """
    regret = wma_loss_regret(num_hypotheses, horizon, epsilon, delta, gamma)
    return regret + _overhead(num_hypotheses, horizon, gamma)


def exp3_bound(
    num_hypotheses: int, horizon: int, epsilon: float, gamma: float | None = None
) -> float:
    """Algorithm 2's KL-risk: ``sqrt(2TK log K) / c_pdp + 3 log(KT) + e^-gamma (T + 3) log(KT)``.

    Theorem 5, by Lemma 8 and the same steps as :func:`wma_bound`.
    """
    regret = exp3_loss_regret(num_hypotheses, horizon, epsilon, gamma)
    return regret + _overhead(num_hypotheses, horizon, gamma)


def _overhead(num_hypotheses: int, horizon: int, gamma: float | None) -> float:
    log_kt = log_range(num_hypotheses, horizon)
    return 3.0 * log_kt + math.exp(-resolved_gamma(gamma, horizon)) * (horizon + 3) * log_kt


def wma_loss_regret(
    num_hypotheses: int, horizon: int, epsilon: float, delta: float, gamma: float | None = None
) -> float:
    """``sqrt(2T log K) / c``: regret of Algorithm 1 in log-likelihoods (Lemma 4), noise within c'."""
    scale = vector_noise_scale(num_hypotheses, horizon, epsilon, delta)
    return _loss_regret(num_hypotheses, horizon, scale, gamma)


def exp3_loss_regret(
    num_hypotheses: int, horizon: int, epsilon: float, gamma: float | None = None
) -> float:
    """``sqrt(2TK log K) / c_pdp``: regret of Algorithm 2 in log-likelihoods (Lemma 7), noise within c'."""
    scale = single_noise_scale(num_hypotheses, horizon, epsilon)
    return math.sqrt(num_hypotheses) * _loss_regret(num_hypotheses, horizon, scale, gamma)


def _loss_regret(num_hypotheses: int, horizon: int, scale: float, gamma: float | None) -> float:
    inverse_c = log_range(num_hypotheses, horizon) + 2.0 * offset(
        num_hypotheses, horizon, scale, gamma
    )
    return inverse_c * math.sqrt(2.0 * horizon * math.log(num_hypotheses))


def tv_bound(kl_risk: float, horizon: int) -> float:
    """Averaged TV-risk from a KL-risk: ``sqrt(risk / (2T))``, by Pinsker and Cauchy-Schwarz."""
    rounds = validation.whole("horizon (T)", horizon, least=1, most=MOST_ROUNDS)
    return math.sqrt(validation.nonnegative("kl_risk", kl_risk) / (2.0 * rounds))


def sample_complexity(num_hypotheses: int, alpha: float, epsilon: float) -> int:
    """``T_alpha``: the least horizon at which Algorithm 2's bound puts the averaged TV-risk below alpha.

    The paper's ``O~(K / (eps^2 alpha^4))`` with its constants and logarithms.
    """
    alpha = validation.positive("alpha", alpha)

    def enough(horizon: int) -> bool:
        return tv_bound(exp3_bound(num_hypotheses, horizon, epsilon), horizon) <= alpha

    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_ROUNDS:
            raise ValueError(
                f"alpha={alpha:g} at epsilon={epsilon:g} takes more than {float(MOST_ROUNDS):g} rounds"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def lower_bound(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """``a T / 132``: least risk of every pure, non-adaptive channel on the Hadamard class, for some truth.

    Theorem 3 with its proof's constant; ``num_hypotheses = 2K``, the size of the class.
    """
    gap = hadamard_gap(num_hypotheses, horizon, epsilon)
    if gap > 1.0:
        raise ValueError(
            f"the lower bound needs a horizon of at least {hadamard_horizon(num_hypotheses, epsilon):.0f} "
            f"for {num_hypotheses} hypotheses and epsilon={epsilon}, got {horizon}"
        )
    return gap * horizon / 132.0
