"""The paper's bounds on risks, with explicit constants, in nats.

``num_hypotheses`` is K, ``horizon`` is T. The upper bounds are those that the proofs give before they are
wrapped in O(); ``gamma`` is log T unless given, as in the proof of the paper's Theorem 4.
"""

from __future__ import annotations

import math

from ldp_gym.channels.accounting import MOST_ROUNDS, log_range, resolved_gamma
from ldp_gym.core import validation
from ldp_gym.hypotheses.families import hadamard_gap, hadamard_horizon
from ldp_gym.theory.regret import exp3_loss_regret, wma_loss_regret

_LOWER_BOUND_DIVISOR = 132.0
"""Constant of the proof of the paper's Theorem 3."""


def nonprivate_bound(num_hypotheses: int) -> float:
    """``log K``: the risk of the Bayes mixture on the labels themselves, at any horizon (Section 1)."""
    return math.log(validation.whole("num_hypotheses (K)", num_hypotheses, least=2))


def wma_bound(
    num_hypotheses: int, horizon: int, epsilon: float, delta: float, gamma: float | None = None
) -> float:
    """Algorithm 1's KL-risk: ``sqrt(2T log K) / c + 3 log(KT) + e^-gamma (T + 3) log(KT)``.

    ``1 / c = log(KT) + 2 c'``, where all noise stays within c' with probability ``1 - e^-gamma``. The
    proof is that of the paper's Theorem 4: Lemma 5 where the noise stays within c', and at most
    ``log(KT)`` per round plus ``3 log(KT)`` where it does not.
    """
    regret = wma_loss_regret(num_hypotheses, horizon, epsilon, delta, gamma)
    return regret + _overhead(num_hypotheses, horizon, gamma)


def exp3_bound(
    num_hypotheses: int, horizon: int, epsilon: float, gamma: float | None = None
) -> float:
    """Algorithm 2's KL-risk: ``sqrt(2TK log K) / c_pdp + 3 log(KT) + e^-gamma (T + 3) log(KT)``.

    ``1 / c_pdp = log(KT) + 2 c'``, where all noise stays within c' with probability ``1 - e^-gamma``. The
    paper's Theorem 5, by Lemma 8 and the steps of its Theorem 4.
    """
    regret = exp3_loss_regret(num_hypotheses, horizon, epsilon, gamma)
    return regret + _overhead(num_hypotheses, horizon, gamma)


def _overhead(num_hypotheses: int, horizon: int, gamma: float | None) -> float:
    """Overhead of the bounds above a regret: ``3 log(KT) + e^-gamma (T + 3) log(KT)``."""
    log_kt = log_range(num_hypotheses, horizon)
    failure = math.exp(-resolved_gamma(gamma, horizon))
    return 3.0 * log_kt + failure * (horizon + 3) * log_kt


def tv_bound(kl_risk: float, horizon: int) -> float:
    """Averaged TV-risk from a KL-risk: ``sqrt(risk / (2T))``, by Pinsker and Cauchy-Schwarz (Theorem 6)."""
    rounds = validation.whole("horizon (T)", horizon, least=1, most=MOST_ROUNDS)
    return math.sqrt(validation.nonnegative("kl_risk", kl_risk) / (2.0 * rounds))


def sample_complexity(num_hypotheses: int, alpha: float, epsilon: float) -> int:
    """``T_alpha``: the least horizon at which Algorithm 2's bound puts the averaged TV-risk below alpha.

    The paper's ``O~(K / (eps^2 alpha^4))`` with its constants and logarithms.
    """
    alpha = validation.positive("alpha", alpha)

    def is_enough(horizon: int) -> bool:
        """Tell if the bound on the averaged TV-risk is at most alpha at this horizon."""
        risk = exp3_bound(num_hypotheses, horizon, epsilon)
        return tv_bound(risk, horizon) <= alpha

    # Double the horizon until it is enough, then halve the interval between the last two.
    high = 2
    while not is_enough(high):
        high *= 2
        if high > MOST_ROUNDS:
            raise ValueError(
                f"alpha={alpha:g} at epsilon={epsilon:g} takes more than {float(MOST_ROUNDS):g} rounds"
            )

    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return high


def lower_bound(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """``a T / 132``: least risk of every pure, non-adaptive channel on the Hadamard class, for some truth.

    The paper's Theorem 3 with its proof's constant, at the gap a of the class for this size, T and eps;
    ``num_hypotheses = 2K`` is the size of the class.
    """
    gap = hadamard_gap(num_hypotheses, horizon, epsilon)
    if gap > 1.0:
        least = hadamard_horizon(num_hypotheses, epsilon)
        raise ValueError(
            f"the lower bound needs a horizon of at least {least:.0f} for {num_hypotheses} hypotheses "
            f"and epsilon={epsilon}, got {horizon}"
        )
    return gap * horizon / _LOWER_BOUND_DIVISOR
