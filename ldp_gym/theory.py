"""The paper's bounds with explicit constants, and the information limit. All in nats.

``num_hypotheses`` is K, ``horizon`` is T. The upper bounds are those that the proofs give before they are
wrapped in O(); ``gamma`` is log T unless given, as in the proof of Theorem (klriskepsdeltadp).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ldp_gym import validation

if TYPE_CHECKING:
    from ldp_gym.arrays import FloatArray
    from ldp_gym.channels import Channel
    from ldp_gym.information import InformationRate


_MOST_ROUNDS = 1e150
"""Of which floats can still take the square."""


def nonprivate_bound(num_hypotheses: int) -> float:
    """``log K``: the risk of the Bayes mixture on the labels themselves, at any horizon (Section 1)."""
    return math.log(_size(num_hypotheses))


# -- Section 4: Algorithm 1 ---------------------------------------------------------------------------


def vector_noise_scale(num_hypotheses: int, horizon: int, epsilon: float, delta: float) -> float:
    """Algorithm 1's Laplace scale, ``(2 sqrt(2K ln(1/delta)) + sqrt(K eps)) log(KT) / eps``, eq. (tildey)."""
    size, log_kt = _size(num_hypotheses), _log_kt(num_hypotheses, horizon)
    epsilon = validation.positive("epsilon", epsilon)
    log_delta = -math.log(validation.fraction("delta", delta))
    return (2.0 * math.sqrt(2.0 * size * log_delta) + math.sqrt(size * epsilon)) * log_kt / epsilon


def single_noise_scale(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """Algorithm 2's Laplace scale, ``log(KT) / eps``, eq. (tildeypdp)."""
    return _log_kt(num_hypotheses, horizon) / validation.positive("epsilon", epsilon)


def offset(num_hypotheses: int, horizon: int, noise_scale: float, gamma: float | None = None) -> float:
    """``c'(gamma)``: the noise scale times ``gamma + log K + log T``, eqs. (cgamma) and (cpdpgamma)."""
    return noise_scale * (_gamma(gamma, horizon) + _log_kt(num_hypotheses, horizon))


def wma_bound(
    num_hypotheses: int, horizon: int, epsilon: float, delta: float, gamma: float | None = None
) -> float:
    """Algorithm 1's KL-risk: ``sqrt(2T log K) / c + 3 log(KT) + e^-gamma (T + 3) log(KT)``.

    The proof of Theorem (klriskepsdeltadp): Lemma (wmbound) where the noise stays within c', and at most
    ``log(KT)`` a round plus ``3 log(KT)`` where it does not, which has probability at most e^-gamma.
    """
    scale = vector_noise_scale(num_hypotheses, horizon, epsilon, delta)
    return _upper_bound(num_hypotheses, horizon, scale, gamma, regret_factor=1.0)


def exp3_bound(num_hypotheses: int, horizon: int, epsilon: float, gamma: float | None = None) -> float:
    """Algorithm 2's KL-risk: ``sqrt(2TK log K) / c_pdp + 3 log(KT) + e^-gamma (T + 3) log(KT)``.

    Theorem (klriskinteractive), by Lemma (wmboundpdp) and the same steps as :func:`wma_bound`.
    """
    scale = single_noise_scale(num_hypotheses, horizon, epsilon)
    return _upper_bound(num_hypotheses, horizon, scale, gamma, regret_factor=_size(num_hypotheses))


def _upper_bound(
    num_hypotheses: int, horizon: int, scale: float, gamma: float | None, regret_factor: float
) -> float:
    log_kt = _log_kt(num_hypotheses, horizon)
    inverse_c = log_kt + 2.0 * offset(num_hypotheses, horizon, scale, gamma)
    regret = math.sqrt(2.0 * horizon * regret_factor * math.log(num_hypotheses))
    failure = math.exp(-_gamma(gamma, horizon)) * (horizon + 3) * log_kt
    return inverse_c * regret + 3.0 * log_kt + failure


# -- Section 6: total variation -----------------------------------------------------------------------


def tv_bound(kl_risk: float, horizon: int) -> float:
    """Averaged TV-risk from a KL-risk: ``sqrt(risk / (2T))``, by Pinsker and Cauchy-Schwarz."""
    if not validation.real("kl_risk", kl_risk) >= 0.0:
        raise ValueError(f"kl_risk must be nonnegative, got {kl_risk}")
    return math.sqrt(kl_risk / (2.0 * validation.whole("horizon (T)", horizon, least=1)))


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
        if high > _MOST_ROUNDS:
            raise ValueError(
                f"alpha={alpha:g} at epsilon={epsilon:g} takes more than {_MOST_ROUNDS:g} rounds"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# -- Section 3: randomized response and the lower bound -----------------------------------------------


def randomized_response_rate(num_hypotheses: int, num_labels: int, horizon: int, epsilon: float) -> float:
    """``sqrt(T log K) / c_eta`` with ``c_eta = (e^eps - 1) / (e^eps + M - 1)``, Section 3.

    The rate quoted from Wu et al. (2023), without its constant: it grows with M.
    """
    epsilon = validation.positive("epsilon", epsilon)
    # Divided through by e^eps, which overflows.
    signal = -math.expm1(-epsilon) / (1.0 + (num_labels - 1) * math.exp(-epsilon))
    return math.sqrt(horizon * math.log(_size(num_hypotheses))) / signal


def _distinguishability(epsilon: float) -> float:
    """``min{(e^eps - 1)^2, 1} e^eps``, infinite beyond the floats."""
    epsilon = validation.positive("epsilon", epsilon)
    if epsilon < 1e-150:
        raise ValueError(f"epsilon must be at least 1e-150, so that its square is a float; got {epsilon}")
    return min(math.expm1(min(epsilon, 1.0)) ** 2, 1.0) * (math.exp(epsilon) if epsilon < 700.0 else math.inf)


def hadamard_gap(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """``a`` of eq. (distributionp), for a class of ``num_hypotheses = 2K`` (K pairs)."""
    rounds = validation.whole("horizon (T)", horizon, least=1)
    return math.sqrt(_size(num_hypotheses) / 2.0 / (9.0 * rounds * _distinguishability(epsilon)))


def hadamard_horizon(num_hypotheses: int, epsilon: float) -> float:
    """The least horizon of Theorem (lowerbound): below it the gap would exceed 1."""
    return math.ceil(_size(num_hypotheses) / 2.0 / (9.0 * _distinguishability(epsilon)))


def lower_bound(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """``a T / 132``: what every pure, non-interactive channel pays on the Hadamard class, for some truth.

    Theorem (lowerbound) with its proof's constant; ``num_hypotheses = 2K``, the size of the class.
    """
    gap = hadamard_gap(num_hypotheses, horizon, epsilon)
    if gap > 1.0:
        raise ValueError(
            f"the lower bound needs a horizon of at least {hadamard_horizon(num_hypotheses, epsilon):.0f} "
            f"for {num_hypotheses} hypotheses and epsilon={epsilon}, got {horizon}"
        )
    return gap * horizon / 132.0


# -- The information limit ----------------------------------------------------------------------------


def capacity(epsilon: float) -> float:
    """``C(eps) = D - 1 - log D`` with ``D = eps / (1 - e^-eps)``: the most one eps-LDP message can tell.

    No eps-LDP message, however chosen, even interactively, carries more nats about the truth.

    Example:
        >>> round(capacity(1.0), 4)
        0.1233
    """
    excess = _excess(epsilon)
    if excess > 1e-2:
        return excess - math.log1p(excess)
    return sum((-1) ** n * excess**n / n for n in range(2, 9))


def best_share(epsilon: float) -> float:
    """``r* = (D - 1) / (e^eps - 1)``: the share of possibilities that a message at capacity speaks for.

    Example:
        >>> round(best_share(1.0), 4)
        0.3387
    """
    return _excess(epsilon) / math.expm1(epsilon) if epsilon < 700.0 else 0.0


def _excess(epsilon: float) -> float:
    """``D - 1``, without the cancellation."""
    half = validation.positive("epsilon", epsilon) / 2.0
    return half / math.tanh(half) - 1.0 + half


def information_limit(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """``sum_t max(0, log K - (t - 1) C(eps))``: the floor on disjoint supports under a uniform truth.

    Example:
        >>> round(information_limit(128, 10_000, 1.0), 1)
        97.9
    """
    log_size, rate = math.log(_size(num_hypotheses)), capacity(epsilon)
    rounds = validation.whole("horizon (T)", horizon, least=1)
    if rate * rounds > log_size:  # all is known before the end
        rounds = math.floor(log_size / rate) + 1
    return rounds * log_size - rate * rounds * (rounds - 1) / 2.0


def information_rate(
    channel: Channel,
    candidates: FloatArray,
    weights: FloatArray | None = None,
    *,
    samples: int = 100_000,
    seed: int = 0,
) -> InformationRate:
    """``I(truth; message)`` of one round under a posterior: :func:`ldp_gym.information.information_rate`."""
    from ldp_gym import information  # it is made of channels, and they of bounds

    return information.information_rate(channel, candidates, weights, samples=samples, seed=seed)


# -- Shared pieces ------------------------------------------------------------------------------------


def _size(num_hypotheses: int) -> int:
    return validation.whole("num_hypotheses (K)", num_hypotheses, least=2)


def _log_kt(num_hypotheses: int, horizon: int) -> float:
    return math.log(_size(num_hypotheses)) + math.log(validation.whole("horizon (T)", horizon, least=2))


def _gamma(gamma: float | None, horizon: int) -> float:
    return math.log(horizon) if gamma is None else validation.positive("gamma", gamma)
