"""Floors under the risk on disjoint supports: the information limit, and higher ones.

Let ``H_t`` be the expected entropy of the posterior after t messages. On K disjoint supports, under a uniform
truth, it is the least expected KL of round t + 1, and ``H_0 = log K``. Every eps-private channel is an
extremal one with messages merged, so let messages be sets S of hypotheses: S has probability ``c_S e^eps``
for its members and ``c_S`` for others. Three lower bounds of ``H_t`` follow, and the largest counts.

1. *Information.* ``H_{t+1} >= H_t - C(eps)``.

2. *Near the end a message tells less.* Write ``g = e^eps - 1`` and let ``s = w(S)`` be the share of S in the
   posterior w. The set adds ``c_S i(s)`` to the information, ``i(s) = s eps e^eps - (1 + g s) log(1 + g s)``.
   Let some hypothesis have weight p. A set without it has ``s <= 1 - p``, one with it ``s >= p``. All
   hypotheses are covered by the same mass of sets. So the share of the others, summed over sets with their
   masses, is ``1 - p`` times the mass of the sets with it. With a multiplier m for this, and as
   ``sum_{S without} c_S + e^eps sum_{S with} c_S = 1``, the information is at most

       ``C(p) = min_m max( max_{0 <= s <= 1-p} i(s) - m s,
       e^-eps (max_{0 <= s <= 1-p} i(p + s) - m s + m (1 - p)) )``.

   It falls with p, because an atom may be thought of as two. A posterior of entropy h has an atom of at least
   p(h), where as many atoms of size p as there can be, and a remainder, have entropy h. Let F be the least
   concave function above ``h -> C(p(h))``. By Jensen's inequality ``H_{t+1} >= H_t - F(H_t)``.

3. *No pair is told apart faster than by randomized response.* With likelihoods ``L_k``, the KL of a round is
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
   ``v = (e^eps + 1) / (K - 1) max_n n (K - n) / (K + g n)``. So ``H_t >= G(v t)``, for the largest convex G
   below the values at whole numbers.

For 3 to 8 hypotheses a dynamic program over all eps-private channels (``benchmarks/floors.py``) proves more;
its floors are shipped for some eps.
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


def risk_floor(num_hypotheses: int, horizon: int, epsilon: float, *, adaptive: bool = True) -> float:
    """The least risk on K disjoint supports under a uniform truth that is not ruled out by proof.

    From 3 to 8 hypotheses and at epsilon = 0.5, 1, 2 and 4 it is mostly that of dynamic programming. At
    another epsilon the floor of the next larger one of these counts, which is lower.

    Args:
        num_hypotheses: K.
        horizon: T.
        epsilon: privacy level, up to 20.
        adaptive: whether messages may depend on earlier ones. For more than 8 hypotheses, more is ruled out
            without that.

    Example:
        >>> limit = information_limit(8, 500, 1.0)
        >>> round(risk_floor(8, 500, 1.0) / limit, 2)
        1.5
        >>> limit = information_limit(32, 500, 1.0)
        >>> [round(risk_floor(32, 500, 1.0, adaptive=adaptive) / limit, 2) for adaptive in (True, False)]
        [1.04, 1.13]
    """
    num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
    rounds = validation.whole("horizon (T)", horizon, least=1)
    epsilon = validation.positive("epsilon", epsilon, most=20.0)
    adaptive = validation.flag("adaptive", adaptive)
    floor = _entropy_floor(num_hypotheses, rounds, epsilon, adaptive)
    return max(floor, _shipped_floor(num_hypotheses, rounds, epsilon))


def _shipped_floor(num_hypotheses: int, rounds: int, epsilon: float) -> float:
    """The floor of the dynamic program at the next epsilon that is shipped; 0 if there is none.

    Between the rounds of a table it is interpolated: with the best strategy of T rounds the expected entropy
    falls from round to round, so the least risk is concave in T, and above its chords.
    """
    shipped = {float(level): tables for level, tables in _shipped_tables().items()}
    tables = shipped.get(min((level for level in shipped if level >= epsilon), default=0.0), {})
    return float(np.interp(rounds, *tables.get(str(num_hypotheses), ([1], [0.0]))))


@cache
def _shipped_tables() -> dict[str, dict[str, list[list[float]]]]:
    """Rounds and floors by epsilon and number of hypotheses."""
    text = resources.files("ldp_gym.theory").joinpath("floors.json").read_text()
    return json.loads(text)


def _entropy_floor(num_hypotheses: int, rounds: int, epsilon: float, adaptive: bool) -> float:
    """The floor of this module's three bounds."""
    pairs = _pair_entropies(num_hypotheses, epsilon)
    speed = 1.0 if adaptive else _separation(num_hypotheses, epsilon)
    entropy, total = math.log(num_hypotheses), 0.0
    for t in range(rounds):
        entropy = max(entropy, float(np.interp(speed * t, np.arange(len(pairs)), pairs, right=0.0)))
        if entropy < _NOTHING:
            break
        total += entropy
        entropy = max(
            0.0, entropy - min(capacity(epsilon), _most_information(entropy, num_hypotheses, epsilon))
        )
    return total


# -- Near the end a message tells less ----------------------------------------------------------------


def _most_information(entropy: float, num_hypotheses: int, epsilon: float) -> float:
    """F at the given entropy, or at a larger one where that leaves less."""
    entropies, most = _information_hull(num_hypotheses, epsilon)
    here = entropy - float(np.interp(entropy, entropies, most))
    beyond = (entropies - most)[np.searchsorted(entropies, entropy) :]
    return entropy - min(here, float(beyond.min(initial=np.inf)))


@lru_cache(maxsize=32)
def _information_hull(num_hypotheses: int, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """The corners of F: entropies, rising, and the most information there."""
    atoms = np.concatenate([np.linspace(1.0 / num_hypotheses, 0.5, 100), np.linspace(0.5, 1.0, 400)[1:]])
    most = np.array([_information_with_atom(p, epsilon) for p in atoms])
    entropies = np.array([_least_entropy(p) for p in atoms])
    # Between two atoms the smaller one's bound holds, from the larger one's entropy on.
    return _upper_hull(np.append(entropies[1:][::-1], entropies[0]), np.append(most[:-1][::-1], most[0]))


def _information_with_atom(p: float, epsilon: float) -> float:
    """``C(p)``; any multiplier gives a bound, so the search for the best need not be exact."""
    gain, top = math.expm1(epsilon), math.exp(epsilon)

    def information(s: FloatArray) -> FloatArray:
        told: FloatArray = s * epsilon * top - (1.0 + gain * s) * np.log1p(gain * s)
        return told

    steep, flat = epsilon * top - gain, epsilon * top - gain * (1.0 + epsilon)  # i' at 0 and at 1
    multipliers = np.linspace(flat, steep, 2001)
    best = np.clip(np.expm1((epsilon * top - multipliers) / gain - 1.0) / gain, 0.0, 1.0)  # where i' = m
    without = np.minimum(best, 1.0 - p)
    beside = np.clip(best - p, 0.0, 1.0 - p)
    first = information(without) - multipliers * without
    second = (information(p + beside) - multipliers * beside + multipliers * (1.0 - p)) / top
    return float(np.maximum(first, second).min())


def _least_entropy(p: float) -> float:
    """The entropy of as many atoms of size p as there can be, and a remainder."""
    atoms = math.floor(1.0 / p + 1e-12)
    rest = max(0.0, 1.0 - atoms * p)
    return -atoms * p * math.log(p) - (rest * math.log(rest) if rest > 0.0 else 0.0)


# -- No pair is told apart faster than by randomized response -----------------------------------------


@lru_cache(maxsize=32)
def _pair_entropies(num_hypotheses: int, epsilon: float) -> FloatArray:
    """``G(0), G(1), ...``, made convex."""
    right = 1.0 / (1.0 + math.exp(-epsilon))
    chances, values = np.ones(1), []
    for t in range(_MOST_RESPONSES):
        n = np.arange(t + 1)
        values.append(
            float(chances @ np.logaddexp(0.0, math.log(num_hypotheses - 1) + epsilon * (t - 2 * n)))
        )
        if values[-1] < _NOTHING:
            break
        chances = right * np.append(0.0, chances) + (1.0 - right) * np.append(chances, 0.0)
    rounds = np.arange(len(values), dtype=np.float64)
    corners, heights = _upper_hull(rounds, -np.array(values))
    return -np.interp(rounds, corners, heights)


def _separation(num_hypotheses: int, epsilon: float) -> float:
    """The largest mean over pairs of how likely a message separates them."""
    n = np.arange(1, num_hypotheses)
    most = float((n * (num_hypotheses - n) / (num_hypotheses + math.expm1(epsilon) * n)).max())
    return min(1.0, (math.exp(epsilon) + 1.0) / (num_hypotheses - 1) * most)


def _upper_hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The corners of the least concave function above points with rising x."""
    corners: list[int] = []
    for i in range(len(x)):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (y[i] - y[a]) * (x[b] - x[a]) < (y[b] - y[a]) * (x[i] - x[a]):
                break
            corners.pop()
        corners.append(i)
    return x[corners], y[corners]
