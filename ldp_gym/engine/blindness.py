"""Warning for a game whose channel tells two hypotheses apart in no round."""

from __future__ import annotations

import warnings
from weakref import WeakSet

import numpy as np

from ldp_gym.core.arrays import BoolArray, FloatArray
from ldp_gym.core.divergences import kl
from ldp_gym.core.errors import BlindChannelWarning
from ldp_gym.engine.scenario import Scenario, first_generator
from ldp_gym.engine.tape import Episodes
from ldp_gym.theory.pairwise import blind_pairs

_ROUNDS = 6
"""Number of rounds played at a time, to see which pairs their messages tell apart."""

_BLOCKS = 4
"""Largest number of times that so many rounds are played."""

_CONTEXTS = 4
"""Number of tables of candidates at which the remaining pairs are checked exactly."""

_LARGEST_CLASS = 64
"""Largest K of games that are checked on non-adaptive channels."""

_LARGEST_CLASS_ADAPTIVE = 16
"""Largest K of games that are checked on adaptive channels."""

_DISTINCT = 1e-5
"""Log-likelihood ratio above which a message counts as telling two hypotheses apart."""

_checked: WeakSet[Scenario] = WeakSet()
"""Scenarios that have been checked."""


def warn_of_blind_pairs(scenario: Scenario, stacklevel: int = 2) -> None:
    """Warn, once per scenario, of hypotheses that differ and that the channel never tells apart.

    A few rounds are played. Only pairs that none of their messages tells apart are checked exactly. Games
    with a new class in every episode, with many hypotheses or with few rounds are skipped.
    """
    if scenario in _checked or not _is_checkable(scenario):
        return
    _checked.add(scenario)
    try:
        unknown, tables = _pairs_not_told_apart(scenario)
        if not unknown.any():
            return
        few_tables = np.unique(tables[:_CONTEXTS], axis=0)
        pairs = blind_pairs(scenario.channel, few_tables, among=unknown)
    except Exception:  # its likelihoods are not known, or a part fails: the game reports it
        return
    if pairs:
        message = _describe(scenario, few_tables, pairs)
        warnings.warn(message, BlindChannelWarning, stacklevel=stacklevel + 1)


def _is_checkable(scenario: Scenario) -> bool:
    """Tell if a check takes little time and says something about all episodes."""
    most = _LARGEST_CLASS_ADAPTIVE if scenario.channel.adaptive else _LARGEST_CLASS
    return (
        not scenario.redraws
        and scenario.hypotheses.num_hypotheses <= most
        and scenario.horizon >= _ROUNDS
    )


def _pairs_not_told_apart(scenario: Scenario) -> tuple[BoolArray, FloatArray]:
    """Pairs ``(K, K)`` that no message of a few rounds tells apart; the candidates there, ``(n, K, M)``."""
    num_hypotheses = scenario.hypotheses.num_hypotheses
    starts = scenario.start_episodes([first_generator(0)])
    episode = Episodes(scenario, starts, show_contexts=False)
    unknown = np.triu(np.ones((num_hypotheses, num_hypotheses), dtype=np.bool_), 1)
    tables: list[FloatArray] = []
    for _ in range(min(_BLOCKS, scenario.horizon // _ROUNDS)):
        tape = episode.play(_ROUNDS)
        tables.extend(tape.candidates.reshape(-1, *tape.candidates.shape[-2:]))
        log_likelihoods = tape.read_by(scenario.channel)[0]  # (n, K)
        with np.errstate(invalid="ignore"):  # two hypotheses that rule a message out
            ratios = np.abs(log_likelihoods[:, :, None] - log_likelihoods[:, None])
        unknown &= ~(ratios > _DISTINCT).any(axis=0)
        if not unknown.any():
            break
    return unknown, np.array(tables)


def _describe(scenario: Scenario, tables: FloatArray, pairs: list[tuple[int, int]]) -> str:
    """The pair that costs most, in words."""
    first = tables[:, [j for j, _ in pairs]]
    second = tables[:, [k for _, k in pairs]]
    middle = (first + second) / 2.0
    costs = ((kl(first, middle) + kl(second, middle)) / 2.0).mean(axis=0)
    j, k = pairs[costs.argmax()]
    cost = float(costs.max())
    others = f", and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
    total = cost * scenario.horizon
    return (
        f"{scenario.channel!r} never tells hypotheses {j} and {k} apart{others}: if one of them is the "
        f"truth, Bayes pays about {cost:.3g} nats in every round, {total:,.4g} in all {scenario.horizon:,}. "
        f"'half-space' is never blind"
    )
