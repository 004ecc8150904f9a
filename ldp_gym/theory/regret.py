"""Bounds on the regret against OPT, in nats, for a truth that may lie outside the class.

The truth of round t is any distribution ``p*_t``, a point mass too, and ``OPT`` is the least of the sums
``sum_t KL(p*_t, f_i(x_t))``. The paper's lemmas compare with every member, so its theorems hold with OPT in
front. The proof has the notation of Appendix B: ``pbar = h_t o p``, and R is the regret of Lemma 4 or 7
divided by c. U is uniform over the cells; they have no ceilings, as in docs/errata.md.

1. The lemmas hold wherever labels come from. With ``Y_t ~ p*_t``, where the noise stays within c',
   ``E sum_t sum_j w_j KL(pbar*_t, pbar_tj) <= sum_t KL(pbar*_t, pbar_ti) + R`` for every i: the entropy of
   ``pbar*_t`` stands on both sides. By convexity the left is at least ``E sum_t KL(pbar*_t, pbar_t)``.
2. ``KL(pbar*_t, pbar_ti) <= (1 - 1/T) KL(p*_t, f_i(x_t))``: pbar mixes both with the same U, by 1/T, and KL
   is convex in the pair.
3. ``KL(p*_t, p_hat_t) = KL(h' o p*_t, pbar_t)``, eq. (30), call it A, for p* as for members. Let
   ``S = sum (h' o p*) log(pbar* / pbar)``. As ``pbar* >= (1 - 1/T) h' o p*``, ``A <= S - log(1 - 1/T)``. As
   ``pbar* = (1 - 1/T) h' o p* + U/T``, ``(1 - 1/T) S = KL(pbar*, pbar) + (1/T) sum U log(pbar / pbar*)``,
   where ``pbar <= 1/M`` and ``pbar* >= 1/(TKM)``, so that the last sum is at most ``log(KT)``.
   (Eq. (31) bounds ``pbar* / pbar`` by KT instead, which holds only for members.)
4. Where the noise leaves c', with probability at most ``e^-gamma``: ``pbar_t >= 1/(TKM)`` gives
   ``A <= log(KT) + sum_y p*[y] log(p*[y] / max_j f_j[y]) <= log(KT) + KL(p*_t, f_i(x_t))`` for every i.

Together: ``E risk <= OPT + T/(T-1) (R + log(KT)) + T log(T/(T-1)) + e^-gamma T log(KT)``. Contexts and truth
must not depend on the messages; if they do, OPT is the least *expected* sum. Where OPT is infinite nothing is
promised: every hypothesis rules out, in some round, a label that may come.
"""

from __future__ import annotations

import math

from ldp_gym.channels.accounting import (
    log_range,
    offset,
    resolved_gamma,
    single_noise_scale,
    vector_noise_scale,
)
from ldp_gym.core import validation

_LARGEST_SQUARABLE_EPSILON = 350.0
"""Privacy level from which on ``(e^eps - 1)^2`` counts as infinite: near the largest float."""

# -- The paper's learners ------------------------------------------------------------------------------


def wma_loss_regret(
    num_hypotheses: int, horizon: int, epsilon: float, delta: float, gamma: float | None = None
) -> float:
    """``sqrt(2T log K) / c``: regret of Algorithm 1 in log-likelihoods (Lemma 4), if the noise is within c'.

    c' is the offset that all noise stays within, with high probability, and ``1 / c = log(KT) + 2 c'``.
    """
    scale = vector_noise_scale(num_hypotheses, horizon, epsilon, delta)
    return _loss_regret(num_hypotheses, horizon, scale, gamma)


def exp3_loss_regret(
    num_hypotheses: int, horizon: int, epsilon: float, gamma: float | None = None
) -> float:
    """``sqrt(2TK log K) / c_pdp``: regret of Algorithm 2 in log-likelihoods (Lemma 7), if noise is within c'.

    c' is the offset that all noise stays within, with high probability, and ``1 / c_pdp = log(KT) + 2 c'``.
    """
    scale = single_noise_scale(num_hypotheses, horizon, epsilon)
    return math.sqrt(num_hypotheses) * _loss_regret(num_hypotheses, horizon, scale, gamma)


def _loss_regret(num_hypotheses: int, horizon: int, scale: float, gamma: float | None) -> float:
    """``sqrt(2T log K) / c`` for noise of the given scale: ``1 / c = log(KT) + 2 c'``."""
    c_prime = offset(num_hypotheses, horizon, scale, gamma)
    inverse_c = log_range(num_hypotheses, horizon) + 2.0 * c_prime
    return inverse_c * math.sqrt(2.0 * horizon * math.log(num_hypotheses))


def wma_regret_bound(
    num_hypotheses: int, horizon: int, epsilon: float, delta: float, gamma: float | None = None
) -> float:
    """Upper bound on Algorithm 1's expected risk less OPT, the least loss of a hypothesis, at any truth.

    ``T/(T-1) (R + log(KT)) + T log(T/(T-1)) + e^-gamma T log(KT)``, with ``R = sqrt(2T log K) / c``.
    """
    regret = wma_loss_regret(num_hypotheses, horizon, epsilon, delta, gamma)
    return _above_opt(regret, num_hypotheses, horizon, gamma)


def exp3_regret_bound(
    num_hypotheses: int, horizon: int, epsilon: float, gamma: float | None = None
) -> float:
    """Upper bound on Algorithm 2's expected risk less OPT, the least loss of a hypothesis, at any truth.

    ``T/(T-1) (R + log(KT)) + T log(T/(T-1)) + e^-gamma T log(KT)``, with ``R = sqrt(2TK log K) / c_pdp``.
    """
    regret = exp3_loss_regret(num_hypotheses, horizon, epsilon, gamma)
    return _above_opt(regret, num_hypotheses, horizon, gamma)


def _above_opt(regret: float, num_hypotheses: int, horizon: int, gamma: float | None) -> float:
    """Bound on the risk above OPT: ``T/(T-1) (R + log(KT)) + T log(T/(T-1)) + e^-gamma T log(KT)``.

    R is the regret in log-likelihoods, if the noise stays within its offset; ``e^-gamma`` bounds the
    probability that it does not.
    """
    log_kt = log_range(num_hypotheses, horizon)
    ratio = horizon / (horizon - 1)
    where_noise_is_small = ratio * (regret + log_kt) + horizon * math.log(ratio)
    where_noise_is_large = math.exp(-resolved_gamma(gamma, horizon)) * horizon * log_kt
    return where_noise_is_small + where_noise_is_large


# -- Likelihood learners, in the log-loss of messages --------------------------------------------------


def fixed_share_bound(num_hypotheses: int, horizon: int, switches: int, share: float) -> float:
    """``log K + S log(K / share) - (T - 1 - S) log(1 - share + share / K)``, in the log-loss of messages.

    The most that the learner ``fixed-share`` pays, on every sequence of messages, above the best sequence of
    hypotheses with S switches. It predicts a mixture of all sequences, in which one with S switches has the
    prior ``(1/K) (share / K)^S (1 - share + share / K)^(T - 1 - S)`` (Herbster and Warmuth 1998).
    """
    num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
    switches = validation.whole("switches", switches, least=0)
    rounds = validation.whole("horizon (T)", horizon, least=switches + 1)
    stays = rounds - 1 - switches
    share = validation.fraction("share", share)
    log_size = math.log(num_hypotheses)
    log_switch = math.log(num_hypotheses / share)
    log_stay = math.log1p(-share * (1.0 - 1.0 / num_hypotheses))
    return log_size + switches * log_switch - stays * log_stay


def soft_bayes_bound(num_hypotheses: int, horizon: int, epsilon: float, rate: float) -> float:
    """``log K / rate + rate T (e^eps - 1)^2``, in the log-loss of messages of a pure channel.

    The most that the learner ``soft-bayes`` pays, on every sequence of messages, above the best mixture u of
    hypotheses, for a rate of at most 1/2. Proof: the likelihoods of an eps-private message are within
    ``e^eps`` of each other, so ``r_k = L_k / sum_j w_j L_j`` lies in ``[e^-eps, e^eps]``. A round multiplies
    ``w_k`` by ``1 + rate (r_k - 1)``. As ``log(1 + x) >= x - x^2`` for ``x >= -1/2``, ``sum_k u_k log w_k``
    grows by at least ``rate (sum_k u_k r_k - 1) - rate^2 (e^eps - 1)^2``, and ``sum_k u_k r_k - 1`` is at
    least ``log sum_k u_k r_k``, by which u did better. In all rounds it grows by at most ``log K``.
    (Orseau et al. 2017 bound the regret without such a limit on the ratios.)
    """
    num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
    rounds = validation.whole("horizon (T)", horizon, least=1)
    rate = validation.positive("rate", rate, most=0.5)
    epsilon = validation.positive("epsilon", epsilon)
    largest_square = math.inf
    if epsilon < _LARGEST_SQUARABLE_EPSILON:
        largest_square = math.expm1(epsilon) ** 2
    return math.log(num_hypotheses) / rate + rate * rounds * largest_square
