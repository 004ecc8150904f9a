"""Our upper bounds on risks, for particular channels and learners, with explicit constants. In nats.

The truth is a member of the class, and every user sends one message of a pure eps-private channel
(delta = 0). Public coins are allowed; contexts are picked before the coins of their round.
``docs/proofs.md`` has the proofs, and ``docs/theory.md`` says which contexts each theorem allows.

``num_hypotheses`` is K, ``horizon`` is T, ``s = tanh(eps/2)``, and logarithms are natural. Bounds take:

- ``epsilon``: one number, or T numbers if every user has their own, fixed before the label: ``T / s^2``
  becomes ``sum_t 1 / s_t^2``;
- ``rank``: d, the largest dimension of the span of the differences ``f_k(x) - f_1(x)`` over the contexts x
  (:func:`rank` computes it for tables). It is at most ``min(K, M) - 1``; ``K - 1`` when not given;
- ``prior``: the weights ``(K,)`` that the posterior starts from; uniform when not given.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.accounting import MOST_ROUNDS
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.divergences import negentropy

# -- Half-space, without interaction -------------------------------------------------------------------


def half_space_kl_bound(
    num_hypotheses: int,
    horizon: int,
    epsilon: npt.ArrayLike,
    *,
    rank: int | None = None,
    prior: npt.ArrayLike | None = None,
) -> float:
    """``sqrt(pi d T H) / s``: KL-risk on ``half-space``, without interaction (Theorem 4).

    Here ``s = tanh(eps/2)``, d is the rank, and H the entropy of the prior, ``log K`` if it is uniform. This
    bounds the risk of Bayes with this prior,
    *averaged* over truths drawn from it, for contexts that tell nothing of the truth beyond the transcript.
    With ``log K`` it also bounds the risk of the minimax learner at *every* truth, for contexts that may
    depend on the truth. For Bayes itself at every truth see :func:`half_space_worst_kl_bound`, which is the
    smaller bound up to K = 4. The channel has exact Lewis weights: docs/proofs.md says what few steps cost.

    Args:
        num_hypotheses: K.
        horizon: T.
        epsilon: one privacy level, or T levels.
        rank: d, the dimension that the differences of hypotheses span; K - 1 when not given.
        prior: weights ``(K,)`` that the posterior starts from; uniform when not given.

    Example:
        >>> round(half_space_kl_bound(16, 10_000, 1.0))
        2473
    """
    rank = _checked_rank(num_hypotheses, rank)
    entropy = _entropy(num_hypotheses, prior)
    noise = _root_noise(epsilon, _rounds(horizon))
    return math.sqrt(math.pi * rank * entropy) * noise


def half_space_worst_kl_bound(
    num_hypotheses: int,
    horizon: int,
    epsilon: npt.ArrayLike,
    *,
    rank: int | None = None,
    prior: npt.ArrayLike | None = None,
) -> float:
    """``g(K) sqrt(pi d T log K / 4) / s``: KL-risk of Bayes on ``half-space`` at every truth.

    Here ``g(K) = K log K / (K-1)``, ``s = tanh(eps/2)`` and d is the rank (the corollary of Theorem 3).
    With a prior, K becomes one over its least weight. Contexts may depend on the truth. The channel has
    exact Lewis weights.

    Args:
        num_hypotheses: K.
        horizon: T.
        epsilon: one privacy level, or T levels.
        rank: d; K - 1 when not given.
        prior: positive weights ``(K,)``; uniform when not given.
    """
    odds = _least_odds(num_hypotheses, prior)
    squares = _half_space_squares(_checked_rank(num_hypotheses, rank), math.log(odds))
    noise = _root_noise(epsilon, _rounds(horizon))
    return _kl_per_tv(odds) * math.sqrt(squares) * noise


def half_space_tv_bound(
    num_hypotheses: int,
    horizon: int,
    epsilon: npt.ArrayLike,
    *,
    rank: int | None = None,
    prior: npt.ArrayLike | None = None,
    failure: float | None = None,
) -> float:
    """``sqrt(pi d log K / (4T)) / s``: averaged TV-risk of Bayes on ``half-space``, every truth (Theorem 3).

    Here ``s = tanh(eps/2)`` and d is the rank. For one eps, T times the square of the bound is one on
    ``sum_t E TV_t^2``. With a prior, K becomes one over its least weight. Contexts may depend on the
    truth. The channel has exact Lewis weights.

    Args:
        num_hypotheses: K.
        horizon: T.
        epsilon: one level, or T levels.
        rank: d; K - 1 when not given.
        prior: positive weights ``(K,)``; uniform when not given.
        failure: if given, the bound is not about expectations: at all T at once it is one on the averaged TV
            of the episode itself, with probability at least 1 - failure, and ``log K`` becomes
            ``2 log K + 4 log(1 / failure)`` (Ville's inequality).
    """
    rounds = _rounds(horizon)
    surprise = math.log(_least_odds(num_hypotheses, prior))
    if failure is not None:
        surprise = 2.0 * surprise - 4.0 * math.log(validation.fraction("failure", failure))
    squares = _half_space_squares(_checked_rank(num_hypotheses, rank), surprise)
    return math.sqrt(squares) * _root_noise(epsilon, rounds) / rounds


def half_space_sample_size(
    num_hypotheses: int, alpha: float, epsilon: float, *, rank: int | None = None
) -> int:
    """``pi d log K / (2 alpha s)^2``, rounded up: rounds to an averaged TV-risk of alpha, by Theorem 3.

    The least T at which :func:`half_space_tv_bound` is at most alpha, with ``s = tanh(eps/2)``.

    Example:
        >>> half_space_sample_size(30_000, 0.1, 1.0)
        113738375
        >>> half_space_sample_size(30_000, 0.1, 1.0, rank=15)  # M = 16 labels
        56872
    """
    surprise = math.log(_least_odds(num_hypotheses, None))
    squares = _half_space_squares(_checked_rank(num_hypotheses, rank), surprise)
    return _rounds_until(squares, alpha, epsilon)


def _half_space_squares(rank: int, surprise: float) -> float:
    """Bound ``pi d surprise / 4`` on ``sum_t s_t^2 TV_t^2`` of Bayes on ``half-space``.

    ``TV_t`` is the total variation of round t and ``s_t = tanh(eps_t/2)``.

    Args:
        rank: d.
        surprise: bound on the log-loss of Bayes on the messages, less that of the truth.
    """
    return math.pi * rank * surprise / 4.0


# -- Interactive channels ------------------------------------------------------------------------------


def challenge_tv_bound(num_hypotheses: int, horizon: int, epsilon: npt.ArrayLike) -> float:
    """``sqrt(2 (K-1) / T) / s``: averaged TV-risk on ``challenge`` at every truth (Theorem 1).

    Here ``s = tanh(eps/2)``. The learner is the posterior at rate 1/2, and the channel has ``turns=0``.
    Contexts may depend on the truth. For one eps, T times the square of the bound is one on
    ``sum_t E TV_t^2``.
    """
    rounds = _rounds(horizon)
    squares = _challenge_squares(_size(num_hypotheses))
    return math.sqrt(squares) * _root_noise(epsilon, rounds) / rounds


def challenge_kl_bound(
    num_hypotheses: int, horizon: int, epsilon: npt.ArrayLike, *, question: str = "all"
) -> float:
    """``2 sqrt(pi (K-1) T) / s``: KL-risk on ``challenge`` at every truth (Theorem 2).

    Of the posterior at rate 1/2 on the channel with ``turns=0``. With ``question="one"`` it is
    ``g(K) sqrt(2 (K-1) T) / s``, ``g(K) = K log K / (K-1)`` (from Theorem 1), which is smaller up to K = 9.
    Contexts may depend on the truth.
    """
    size = _size(num_hypotheses)
    if validation.choice("question", question, ("one", "all")) == "all":
        root_squares = math.sqrt(4.0 * math.pi * (size - 1))
    else:
        root_squares = _kl_per_tv(size) * math.sqrt(_challenge_squares(size))
    return root_squares * _root_noise(epsilon, _rounds(horizon))


def interactive_tv_bound(num_hypotheses: int, horizon: int, epsilon: npt.ArrayLike) -> float:
    """Smallest proved bound on the averaged TV-risk of some interactive scheme, at every truth.

    The smaller of :func:`challenge_tv_bound`, and ``sqrt(K log K / (2T)) / s`` with ``s = tanh(eps/2)``,
    which is smaller up to K = 50. The scheme of the latter is Bayes, where a public coin draws a
    hypothesis, all equally likely, and the user says whether it gives the label more probability than the
    prediction does.
    """
    rounds = _rounds(horizon)
    squares = _interactive_squares(_size(num_hypotheses))
    return math.sqrt(squares) * _root_noise(epsilon, rounds) / rounds


def interactive_sample_size(num_hypotheses: int, alpha: float, epsilon: float) -> int:
    """``min(2 (K-1), K log K / 2) / (alpha s)^2``, rounded up: rounds to an averaged TV-risk of alpha.

    The least T at which :func:`interactive_tv_bound` is at most alpha, with ``s = tanh(eps/2)``.
    """
    return _rounds_until(_interactive_squares(_size(num_hypotheses)), alpha, epsilon)


def interactive_kl_bound(num_hypotheses: int, horizon: int, epsilon: npt.ArrayLike) -> float:
    """Smallest proved bound on the KL-risk of some explicit interactive scheme, at every truth.

    ``min(2 sqrt(pi (K-1) T), g(K) sqrt(2 (K-1) T), g(K) sqrt(K log K T / 2)) / s``, where
    ``g(K) = K log K / (K-1)`` and ``s = tanh(eps/2)``: Theorems 2 and 1
    (:func:`challenge_kl_bound`), and the scheme of :func:`interactive_tv_bound`, the best up to K = 15.
    """
    size = _size(num_hypotheses)
    by_ratio = _kl_per_tv(size) * math.sqrt(_interactive_squares(size))
    by_theorem = math.sqrt(4.0 * math.pi * (size - 1))
    return min(by_ratio, by_theorem) * _root_noise(epsilon, _rounds(horizon))


def interactive_minimax_kl_bound(
    num_hypotheses: int, horizon: int, epsilon: npt.ArrayLike
) -> float:
    """Smallest proved bound on the minimax KL-risk with interaction: some scheme has it at every truth.

    ``sqrt(2 pi (K-1) T) / s``, or up to K = 9 ``g(K) sqrt(min(K - 1, K log K / 2) T) / s``, where ``g(K)
    = K log K / (K-1)`` and ``s = tanh(eps/2)``: the averages over a prior of Theorems 2 and 1, and a
    drawn hypothesis. The proof, by a minimax theorem, does not construct the scheme. Contexts may depend
    on the truth.
    """
    size = _size(num_hypotheses)
    by_theorem = math.sqrt(2.0 * math.pi * (size - 1))
    squares = min(_challenge_squares(size) / 2.0, _drawn_squares(size))
    by_ratio = _kl_per_tv(size) * math.sqrt(squares)
    return min(by_theorem, by_ratio) * _root_noise(epsilon, _rounds(horizon))


def _challenge_squares(size: int) -> float:
    """Bound ``2 (K-1)`` on ``sum_t tanh(eps_t/2)^2 TV_t^2`` on ``challenge`` (Theorem 1)."""
    return 2.0 * (size - 1)


def _interactive_squares(size: int) -> float:
    """Smallest bound on ``sum_t tanh(eps_t/2)^2 TV_t^2`` of an interactive scheme, at every truth."""
    return min(_challenge_squares(size), _drawn_squares(size))


def _drawn_squares(size: int) -> float:
    """Bound ``K log K / 2`` on ``sum_t tanh(eps_t/2)^2 TV_t^2`` where a uniformly drawn hypothesis asks."""
    return size * math.log(size) / 2.0


# -- What the bounds share -----------------------------------------------------------------------------


def rank(candidates: npt.ArrayLike, *, tolerance: float = 1e-8) -> int:
    """Largest dimension d of the span of the differences ``f_k(x) - f_1(x)``, over the tables.

    In floats: the least d such that, in every table, some space of d dimensions has every ``f_k - f_1``
    within ``tolerance`` of it, measured as a total variation (half the sum of absolute values). The space is
    that of the first d singular vectors, and the distance is bounded by its Euclidean length.

    Args:
        candidates: tables ``(..., K, M)``.
        tolerance: total variation that counts as none.

    Example:
        >>> rank([[0.5, 0.5, 0.0], [0.4, 0.5, 0.1], [0.3, 0.5, 0.2]])
        1
    """
    tables = game_arrays.distributions(candidates, argument="candidates")
    if tables.ndim < 2 or tables.shape[-2] < 2:
        raise ValueError(f"candidates must have shape (..., K, M) with K >= 2, got {tables.shape}")
    tolerance = validation.positive("tolerance", tolerance)
    differences = tables[..., 1:, :] - tables[..., :1, :]
    left, singular_values, _right = np.linalg.svd(differences, full_matrices=False)
    squares = np.square(left * singular_values[..., None, :])  # (..., K - 1, dimensions)

    # The squared distance from the first d vectors is the sum of the squares after them.
    lengths = np.sqrt(np.cumsum(squares[..., ::-1], axis=-1)[..., ::-1])
    total_variations = 0.5 * math.sqrt(tables.shape[-1]) * lengths
    needed = (total_variations > tolerance).any(axis=-2)
    return int(needed.sum(axis=-1).max())


def _rounds(horizon: int) -> int:
    """T, checked to be a whole number of rounds."""
    return validation.whole("horizon (T)", horizon, least=1, most=MOST_ROUNDS)


def _size(num_hypotheses: int) -> int:
    """K, checked to be a whole number of at least 2."""
    return validation.whole("num_hypotheses (K)", num_hypotheses, least=2, most=MOST_ROUNDS)


def _checked_rank(num_hypotheses: int, rank: int | None) -> int:
    """The rank d, checked to be at most ``K - 1``, which it is when not given."""
    largest = _size(num_hypotheses) - 1
    if rank is None:
        return largest
    return validation.whole("rank (d)", rank, least=0, most=largest)


def _signal(epsilon: object) -> float:
    """Signal of a private bit, ``s = tanh(eps/2)``."""
    return math.tanh(validation.squarable("epsilon", epsilon) / 2.0)


def _root_noise(epsilon: npt.ArrayLike, rounds: int) -> float:
    """Norm of the noise of all rounds, ``sqrt(sum_t 1 / s_t^2)``, with ``s_t = tanh(eps_t/2)``."""
    if np.ndim(epsilon) == 0:
        return math.sqrt(rounds) / _signal(epsilon)
    levels = validation.numbers("epsilon", epsilon)
    if levels.shape != (rounds,):
        raise ValueError(
            f"epsilon must be one number, or one for each of {rounds} users; got shape {levels.shape}"
        )
    return math.hypot(*(1.0 / _signal(level) for level in levels))


def _entropy(num_hypotheses: int, prior: npt.ArrayLike | None) -> float:
    """Entropy of the prior in nats; log K when it is not given."""
    size = _size(num_hypotheses)
    if prior is None:
        return math.log(size)
    weights: FloatArray = game_arrays.row("prior", prior, size, place="hypothesis")
    return abs(float(negentropy(weights)))  # abs: no -0.0 for a certain truth


def _least_odds(num_hypotheses: int, prior: npt.ArrayLike | None) -> float:
    """One over the least weight of the prior, which must be positive."""
    size = _size(num_hypotheses)
    if prior is None:
        return float(size)
    weights: FloatArray = game_arrays.row("prior", prior, size, place="hypothesis")
    least = float(weights.min())
    if not least > 0.0:
        raise ValueError(f"prior must be positive, got {least}: such a truth is never found")
    return 1.0 / least


def _kl_per_tv(ratio: float) -> float:
    """``g(R) = R log R / (R - 1)``: the largest ``KL(f, p) / TV(f, p)`` where ``f <= R p``."""
    return ratio * math.log(ratio) / (ratio - 1.0)


def _rounds_until(squares: float, alpha: float, epsilon: float) -> int:
    """Least T with ``sqrt(squares / T) / tanh(eps/2) <= alpha``.

    Args:
        squares: bound on ``sum_t tanh(eps/2)^2 TV_t^2`` at any T, ``TV_t`` the total variation of round t.
        alpha: averaged total variation to reach.
        epsilon: the privacy level of all users.
    """
    alpha = validation.positive("alpha", alpha)
    noise = squares / _signal(epsilon) ** 2
    # Compared by their roots: alpha^2 may be 0 in floats.
    if math.sqrt(noise) / alpha > math.sqrt(MOST_ROUNDS):
        raise ValueError(
            f"alpha={alpha:g} takes more than {float(MOST_ROUNDS):g} rounds; raise alpha or eps"
        )
    return max(1, math.ceil(noise / alpha**2))
