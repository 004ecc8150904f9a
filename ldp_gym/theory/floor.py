"""Floors under the risk on disjoint supports: the information limit, and higher ones.

Let ``H_t`` be the expected entropy of the posterior after t messages. On K disjoint supports, under a uniform
truth, it is the least expected KL of round t + 1, and ``H_0 = log K``. Every eps-private channel is an
extremal one with messages merged, so let messages be sets S of hypotheses: S has probability ``c_S e^eps``
for its members and ``c_S`` for others. Two lower bounds of ``H_t`` follow; the larger one is used.

1. *Information.* ``H_{t+1} >= H_t - C(eps)``.

2. *No pair is told apart faster than by randomized response.* With likelihoods ``L_k``, the KL of a round is
   ``log(1 + sum_{j != i} L_j / L_i)`` if i is the truth. The logarithm is concave, so that is at least the
   mean over ``j != i`` of ``log(1 + (K - 1) L_j / L_i)``. This is concave in ``L_j / L_i``, so by the data
   processing inequality its expectation can only fall if other messages take the place of these, of which
   these are functions with noise. For two hypotheses every eps-private message is a function, with noise, of
   a randomized response. So ``H_t >= G(t)``, the expectation for t randomized responses: if n of them are
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

    Example:
        >>> round(information_limit(128, 10_000, 1.0), 1)
        97.9
    """
    log_k = math.log(validation.whole("num_hypotheses (K)", num_hypotheses, least=2))
    rate = capacity(epsilon)
    rounds = validation.whole("horizon (T)", horizon, least=1, most=MOST_ROUNDS)
    if rate * rounds > log_k:  # all is known before the end
        rounds = math.floor(log_k / rate) + 1
    return rounds * log_k - rate * rounds * (rounds - 1) / 2.0


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
    tables = shipped.get(min((level for level in shipped if level >= epsilon), default=0.0), {})
    return float(np.interp(rounds, *tables.get(str(num_hypotheses), ([1], [0.0]))))


@cache
def _shipped_tables() -> dict[float, dict[str, list[list[float]]]]:
    """Rounds and floors by epsilon and number of hypotheses."""
    text = resources.files("ldp_gym.theory").joinpath("floors.json").read_text()
    return {float(level): tables for level, tables in json.loads(text).items()}


def _entropy_floor(num_hypotheses: int, rounds: int, epsilon: float, adaptive: bool) -> float:
    """The floor of this module's two bounds of the entropy, summed over the rounds."""
    pairs = _pair_entropies(num_hypotheses, epsilon)
    speed = 1.0 if adaptive else _separation(num_hypotheses, epsilon)
    entropy, total = math.log(num_hypotheses), 0.0
    for t in range(rounds):
        entropy = max(entropy, float(np.interp(speed * t, np.arange(len(pairs)), pairs, right=0.0)))
        if entropy < _NOTHING:
            break
        total += entropy
        entropy = max(0.0, entropy - capacity(epsilon))
    return total


@lru_cache(maxsize=32)
def _pair_entropies(num_hypotheses: int, epsilon: float) -> FloatArray:
    """Least expected entropies ``G(0), G(1), ...`` after 0, 1, ... randomized responses, made convex."""
    right = 1.0 / (1.0 + math.exp(-epsilon))
    chances, values = np.ones(1), []
    for t in range(_MOST_RESPONSES):
        log_odds = math.log(num_hypotheses - 1) + epsilon * (t - 2 * np.arange(t + 1))
        values.append(float(chances @ np.logaddexp(0.0, log_odds)))
        if values[-1] < _NOTHING:
            break
        chances = right * np.append(0.0, chances) + (1.0 - right) * np.append(chances, 0.0)
    rounds = np.arange(len(values), dtype=np.float64)
    return np.interp(rounds, *_lower_hull(rounds, np.array(values)))


def _separation(num_hypotheses: int, epsilon: float) -> float:
    """The largest mean over pairs of how likely a message separates them."""
    n = np.arange(1, num_hypotheses)
    most = float((n * (num_hypotheses - n) / (num_hypotheses + math.expm1(epsilon) * n)).max())
    return min(1.0, (math.exp(epsilon) + 1.0) / (num_hypotheses - 1) * most)


def _lower_hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The corners of the largest convex function below points with rising x."""
    corners: list[int] = []
    for i in range(len(x)):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (y[i] - y[a]) * (x[b] - x[a]) > (y[b] - y[a]) * (x[i] - x[a]):
                break
            corners.pop()
        corners.append(i)
    return x[corners], y[corners]
