"""Floors under the risk on disjoint supports: the information limit, and higher ones.

Let ``H_t`` be the expected entropy of the posterior after t messages. On K disjoint supports, under a uniform
truth, it is the least expected KL of round t + 1, and ``H_0 = log K``. Every eps-private channel is an
extremal one with messages merged, so let messages be sets S of hypotheses: S has probability ``c_S e^eps``
for its members and ``c_S`` for others. Two lower bounds of ``H_t`` follow; the larger one is used.

1. *Information.* ``H_{t+1} >= H_t - C(eps)``.

2. *No pair is told apart faster than by randomized response.* With likelihoods ``L_k``, the KL of a round is
   ``log(1 + sum_{j != i} L_j / L_i)`` if i is the truth. The logarithm is concave, so that is at least the
   mean over ``j != i`` of ``log(1 + (K - 1) L_j / L_i)``. This is concave in ``L_j / L_i``, so by the data
   processing inequality its expectation is no larger if messages are replaced by others of which they are
   post-processings. For two hypotheses every eps-private message is a post-processing of a randomized
   response. So ``H_t >= G(t)``, the expectation for t randomized responses: if n of them are
   right, each with probability ``e^eps / (1 + e^eps)``, then ``L_j / L_i = e^(eps (t - 2 n))``. For K = 2
   this is exact.

   To a pair that S separates, S is a randomized response, and to others it says nothing: the sets with i
   and not j have the same mass as those with j and not i. Without adaptation the mean over pairs of the
   number of randomized responses in t rounds is at most ``v t``, where
   ``v = (e^eps + 1) / (K - 1) max_n n (K - n) / (K + g n)``, ``g = e^eps - 1``. So ``H_t >= G(v t)``, for the
   largest convex G below the values at whole numbers.

For 3 to 8 hypotheses a dynamic program over all eps-private channels (``benchmarks/studies/floors.py``)
proves more; its floors are shipped for some eps.
"""

from __future__ import annotations

import json
import math
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from ldp_gym.channels.accounting import MOST_ROUNDS
from ldp_gym.channels.two_level import capacity
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray

_MOST_RESPONSES = 4000
"""Largest number of randomized responses to a pair that is followed; more are taken to tell all."""

_NOTHING = 1e-9
"""Largest expected entropy that counts as zero."""


def information_limit(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """``sum_t max(0, log K - (t - 1) C(eps))``: the floor on disjoint supports under a uniform truth.

    ``C(eps)`` is the largest information that one eps-private message can carry
    (:func:`~ldp_gym.theory.capacity`), and t runs over the T rounds.

    Example:
        >>> round(information_limit(128, 10_000, 1.0), 1)
        97.9
    """
    log_k = math.log(validation.whole("num_hypotheses (K)", num_hypotheses, least=2))
    most_per_message = capacity(epsilon)
    rounds = validation.whole("horizon (T)", horizon, least=1, most=MOST_ROUNDS)
    if most_per_message * rounds > log_k:
        # All may be known before the end: later rounds add nothing.
        rounds = math.floor(log_k / most_per_message) + 1
    return rounds * log_k - most_per_message * rounds * (rounds - 1) / 2.0


def risk_floor(
    num_hypotheses: int, horizon: int, epsilon: float, *, adaptive: bool = True
) -> float:
    """Largest of the lower bounds on the risk on K disjoint supports under a uniform truth.

    From 3 to 8 hypotheses and at epsilon = 0.5, 1, 2 and 4 it is mostly that of a dynamic program. At
    another epsilon the floor of the next larger one of these is used, which is lower.

    Args:
        num_hypotheses: K.
        horizon: T.
        epsilon: privacy level, up to 20.
        adaptive: whether messages may depend on earlier ones. For more than 8 hypotheses, the floor is
            higher without that.

    Example:
        >>> limit = information_limit(8, 500, 1.0)
        >>> round(risk_floor(8, 500, 1.0) / limit, 2)
        1.5
        >>> limit = information_limit(32, 500, 1.0)
        >>> [round(risk_floor(32, 500, 1.0, adaptive=adaptive) / limit, 2) for adaptive in (True, False)]
        [1.01, 1.13]
    """
    num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
    rounds = validation.whole("horizon (T)", horizon, least=1)
    epsilon = validation.positive("epsilon", epsilon, most=20.0)
    adaptive = validation.flag("adaptive", adaptive)
    floor = _entropy_floor(num_hypotheses, rounds, epsilon, adaptive)
    return max(floor, _shipped_floor(num_hypotheses, rounds, epsilon))


def _shipped_floor(num_hypotheses: int, rounds: int, epsilon: float) -> float:
    """The dynamic program's floor at the least shipped epsilon not below this one; 0 if there is none.

    Between the rounds of a table it is interpolated: with the best strategy of T rounds the expected entropy
    falls from round to round, so the least risk is concave in T, and above its chords.
    """
    shipped = _shipped_tables()
    levels = [level for level in shipped if level >= epsilon]
    if not levels:
        return 0.0
    table = shipped[min(levels)].get(num_hypotheses)
    if table is None:
        return 0.0
    return float(np.interp(rounds, table.rounds, table.floors))


class _FloorTable(NamedTuple):
    """Floors at some numbers of rounds."""

    rounds: list[float]
    floors: list[float]


@cache
def _shipped_tables() -> dict[float, dict[int, _FloorTable]]:
    """Floors of the dynamic program, by epsilon and number of hypotheses."""
    file = resources.files("ldp_gym.theory").joinpath("floors.json")
    tables: dict[float, dict[int, _FloorTable]] = {}
    for epsilon, columns_by_size in json.loads(file.read_text()).items():
        by_size = {int(size): _FloorTable(*columns) for size, columns in columns_by_size.items()}
        tables[float(epsilon)] = by_size
    return tables


def _entropy_floor(num_hypotheses: int, rounds: int, epsilon: float, adaptive: bool) -> float:
    """Sum over the rounds of a lower bound on the expected entropy of the posterior before each of them.

    The bound is log K at first. A message lowers it by ``C(eps)`` at most, and it is never below the entropy
    that is left if every message is a randomized response about one pair (``_pair_entropies``). Without
    adaptation messages tell a given pair less often.
    """
    by_responses = _pair_entropies(num_hypotheses, epsilon)
    num_responses = np.arange(len(by_responses))
    responses_per_round = 1.0
    if not adaptive:
        responses_per_round = _separation(num_hypotheses, epsilon)
    most_per_message = capacity(epsilon)

    entropy = math.log(num_hypotheses)
    total = 0.0
    for t in range(rounds):
        of_pairs = np.interp(responses_per_round * t, num_responses, by_responses, right=0.0)
        entropy = max(entropy, float(of_pairs))
        if entropy < _NOTHING:
            break
        total += entropy
        entropy = max(0.0, entropy - most_per_message)
    return total


@lru_cache(maxsize=32)
def _pair_entropies(num_hypotheses: int, epsilon: float) -> FloatArray:
    """Least expected entropies ``G(0), G(1), ...`` after 0, 1, ... randomized responses, made convex.

    If n of t responses are right, the posterior odds of each wrong hypothesis are ``e^(eps (t - 2 n))``, and
    the entropy is at least ``log(1 + (K - 1) e^(eps (t - 2 n)))`` in expectation.
    """
    truthful = 1.0 / (1.0 + math.exp(-epsilon))
    chances = np.ones(1)  # of the number n of right responses
    values = []
    for num_responses in range(_MOST_RESPONSES):
        num_right = np.arange(num_responses + 1)
        log_odds = math.log(num_hypotheses - 1) + epsilon * (num_responses - 2 * num_right)
        expected_loss = float(chances @ np.logaddexp(0.0, log_odds))
        values.append(expected_loss)
        if expected_loss < _NOTHING:
            break
        one_more_right = np.append(0.0, chances)
        one_more_wrong = np.append(chances, 0.0)
        chances = truthful * one_more_right + (1.0 - truthful) * one_more_wrong

    rounds = np.arange(len(values), dtype=np.float64)
    corner_rounds, corner_values = _lower_hull(rounds, np.array(values))
    return np.interp(rounds, corner_rounds, corner_values)


def _separation(num_hypotheses: int, epsilon: float) -> float:
    """Largest chance that a message separates a pair of the K hypotheses, on average over the pairs.

    A message is a set of n hypotheses and separates a pair if it has one of the two. The chance is
    ``(e^eps + 1) / (K - 1) max_n n (K - n) / (K + (e^eps - 1) n)``.
    """
    set_sizes = np.arange(1, num_hypotheses)
    separated = set_sizes * (num_hypotheses - set_sizes)
    shares = separated / (num_hypotheses + math.expm1(epsilon) * set_sizes)
    largest = (math.exp(epsilon) + 1.0) / (num_hypotheses - 1) * float(shares.max())
    return min(1.0, largest)


def _lower_hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The corners of the largest convex function below points with rising x, by Andrew's scan."""
    corners: list[int] = []
    for new in range(len(x)):
        # Drop the last corner as long as it lies on or above the line from the one before to the new point.
        while len(corners) > 1:
            before, last = corners[-2:]
            slope_to_new = (y[new] - y[before]) * (x[last] - x[before])
            slope_to_last = (y[last] - y[before]) * (x[new] - x[before])
            if slope_to_new > slope_to_last:
                break
            corners.pop()
        corners.append(new)
    return x[corners], y[corners]
