"""Warning for a game whose channel tells two hypotheses apart in no round."""

from __future__ import annotations

import warnings
from weakref import WeakSet

import numpy as np

from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.divergences import kl
from ldp_gym.core.errors import BlindChannelWarning
from ldp_gym.engine.scenario import Scenario, first_generator
from ldp_gym.engine.tape import Episodes
from ldp_gym.theory.pairwise import blind_pairs

_ROUNDS, _BLOCKS = 6, 4
"""Number of rounds played at a time, and how often, to see which pairs their messages tell apart."""

_CONTEXTS = 4
"""Number of tables of candidates at which the remaining pairs are checked exactly."""

_LARGEST_CLASS, _LARGEST_ADAPTIVE = 64, 16
"""Largest K of games that are checked, on non-adaptive and on adaptive channels."""

_TOLD = 1e-5
"""Log-likelihood ratio above which a message counts as telling two hypotheses apart."""

_checked: WeakSet[Scenario] = WeakSet()
"""Scenarios that have been checked."""


def warn_of_blind_pairs(scenario: Scenario, stacklevel: int = 2) -> None:
    """Warn, once per scenario, of hypotheses that differ and that the channel never tells apart.

    A few rounds are played. Only pairs that none of their messages tells apart are checked exactly. Games
    with a new class in every episode, with many hypotheses or with few rounds are skipped.
    """
    num_hypotheses = scenario.hypotheses.num_hypotheses
    most = _LARGEST_ADAPTIVE if scenario.channel.adaptive else _LARGEST_CLASS
    if (
        scenario in _checked
        or scenario.redraws
        or num_hypotheses > most
        or scenario.horizon < _ROUNDS
    ):
        return
    _checked.add(scenario)
    episode = Episodes(scenario, scenario.start_episodes([first_generator(0)]), show_contexts=False)
    unknown = np.triu(np.ones((num_hypotheses, num_hypotheses), dtype=np.bool_), 1)
    tables: list[FloatArray] = []
    try:
        for _ in range(min(_BLOCKS, scenario.horizon // _ROUNDS)):
            tape = episode.play(_ROUNDS)
            tables = [*tables, *tape.candidates.reshape(-1, *tape.candidates.shape[-2:])]
            told = tape.read_by(scenario.channel)
            with np.errstate(invalid="ignore"):  # two hypotheses that rule a message out
                unknown &= ~(np.abs(told[0, :, :, None] - told[0, :, None]) > _TOLD).any(axis=0)
            if not unknown.any():
                return
        few = np.unique(np.array(tables[:_CONTEXTS]), axis=0)
        pairs = blind_pairs(scenario.channel, few, among=unknown)
    except Exception:  # its likelihoods are not known, or a part fails: the game reports it
        return
    if pairs:
        warnings.warn(
            _describe(scenario, few, pairs), BlindChannelWarning, stacklevel=stacklevel + 1
        )


def _describe(scenario: Scenario, tables: FloatArray, pairs: list[tuple[int, int]]) -> str:
    """The pair that costs most, in words."""
    first, second = (tables[:, list(some)] for some in zip(*pairs, strict=True))
    middle = (first + second) / 2.0
    costs = ((kl(first, middle) + kl(second, middle)) / 2.0).mean(axis=0)
    (j, k), cost = pairs[costs.argmax()], float(costs.max())
    others = f", and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
    total = cost * scenario.horizon
    return (
        f"{scenario.channel!r} never tells hypotheses {j} and {k} apart{others}: if one of them is the "
        f"truth, Bayes pays about {cost:.3g} nats in every round, {total:,.4g} in all {scenario.horizon:,}. "
        f"'half-space' is never blind"
    )
