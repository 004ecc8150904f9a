"""Named games to train and to test on: what an agent has seen, and one thing at a time that it has not.

Every test split changes one thing of the training games. A score says where between two references an agent
is on the same episodes: 0 is the uniform mixture, which never learns, and 1 is Bayes, the best there is.

>>> sorted(TESTS)
['channel', 'class', 'epsilon', 'familiar', 'horizon', 'memory', 'num-hypotheses', 'num-labels']
>>> TESTS["num-hypotheses"].games["K = 32"]["num_hypotheses"]
32
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.intervals import p_above, p_below
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import Learner
from ldp_gym.engine.rules import as_rules
from ldp_gym.evaluation import evaluate

REFERENCES = ("uniform", "bayes")
"""Whose scores are 0 and 1."""

TRAIN_SEED = 10**6
"""Training episodes have seeds from here on; those below are for tests, and no score is taken on others."""


@dataclass(frozen=True)
class Split:
    """Games by their titles.

    Attributes:
        name: what it goes by.
        about: what is in it.
        games: keyword arguments of ``gym.make("LDPDist-v0", ...)`` by title.
    """

    name: str
    about: str
    games: Mapping[str, Mapping[str, Any]]

    def __post_init__(self) -> None:
        """Check that these are games by their titles."""
        validation.text("name", self.name)
        validation.text("about", self.about)
        what = "a dict of rules by title"
        games = validation.options("games", validation.instance("games", self.games, Mapping, what))
        if not games:
            raise ValueError("games must have at least one game, got none")
        for title, rules in games.items():
            as_rules(f"games[{title!r}]", rules)

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The titles with their rules."""
        return ((title, dict(rules)) for title, rules in self.games.items())


_BASE = {
    "hypotheses": "dirichlet",
    "num_hypotheses": 8,
    "num_labels": 16,
    "epsilon": 2.0,
    "horizon": 1000,
    "channel": "laplace-single",
    "redraw_hypotheses": True,
    "observe_candidates": True,
}
"""Every episode has a Dirichlet(0.3) table of its own, as it has a truth of its own."""

_FIXED = {"redraw_hypotheses": False}


def _split(name: str, about: str, changes: Mapping[str, Mapping[str, Any]]) -> Split:
    """The base with one change each, by title."""
    return Split(name, about, {title: {**_BASE, **change} for title, change in changes.items()})


TRAIN = _split(
    "train",
    "redrawn tables and softmax-linear classes, K from 4 to 16, M from 8 to 32, eps from 1 to 4, two "
    "horizons, three channels",
    {
        "base": {},
        "K = 4": {"num_hypotheses": 4},
        "K = 16": {"num_hypotheses": 16},
        "M = 8": {"num_labels": 8},
        "M = 32": {"num_labels": 32},
        "eps = 1": {"epsilon": 1.0},
        "eps = 4": {"epsilon": 4.0},
        "T = 300": {"horizon": 300},
        "softmax-linear": {"hypotheses": "softmax-linear"},
        "split": {"channel": "split"},
        "randomized-response": {"channel": "randomized-response"},
    },
)

_OTHER_CHANNELS = ("subset-selection", "one-bit", "wheel", "adaptive-split")

TESTS: dict[str, Split] = {
    split.name: split
    for split in (
        Split("familiar", "the training games, on episodes that are not trained on", TRAIN.games),
        _split(
            "class",
            "other families: sharper and flatter tables, disjoint supports, the lower bound's pairs",
            {
                "Dirichlet(0.05)": {"hypotheses_kwargs": {"concentration": 0.05}},
                "Dirichlet(1)": {"hypotheses_kwargs": {"concentration": 1.0}},
                "disjoint": {"hypotheses": "disjoint", **_FIXED},
                "hadamard": {"hypotheses": "hadamard", "num_labels": None, **_FIXED},
            },
        ),
        _split(
            "num-hypotheses",
            "fewer hypotheses, and more",
            {f"K = {k}": {"num_hypotheses": k} for k in (2, 32, 64)},
        ),
        _split("num-labels", "fewer labels, and more", {f"M = {m}": {"num_labels": m} for m in (2, 64, 128)}),
        _split("epsilon", "more privacy, and less", {f"eps = {e:g}": {"epsilon": e} for e in (0.5, 8.0)}),
        _split("horizon", "fewer rounds, and more", {f"T = {t}": {"horizon": t} for t in (200, 3000)}),
        _split("channel", "messages of other forms", {name: {"channel": name} for name in _OTHER_CHANNELS}),
        _split(
            "memory",
            "one table for good, for policies that read raw messages and have to remember: trained on it "
            "with other episodes",
            {"table": {"epsilon": 1.0, **_FIXED}},
        ),
    )
}
"""What agents are tested on, by name."""

SPLITS: dict[str, Split] = {TRAIN.name: TRAIN, **TESTS}


@dataclass(frozen=True)
class SplitScore:
    """How a learner does on a split.

    Attributes:
        games: its score in each game, by title; None where it says nothing, see :func:`score_totals`.
    """

    games: Mapping[str, float | None]

    @property
    def mean(self) -> float:
        """The mean over the games that have a score; NaN if none has."""
        return float(np.mean(self._known)) if self._known else np.nan

    @property
    def least(self) -> float:
        """The score of its worst game; NaN if none has a score."""
        return min(self._known, default=np.nan)

    @property
    def _known(self) -> list[float]:
        return [score for score in self.games.values() if score is not None]


def score(
    learner: str | Callable[[Game], Learner],
    split: str | Split,
    *,
    episodes: int = 100,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> SplitScore:
    """Score a learner on a split: 0 is the uniform mixture, 1 is Bayes, on the same episodes.

    Args:
        learner: as in :func:`ldp_gym.evaluate`.
        split: a split, or its name.
        episodes: of each game.
        seed: of the first; those below :data:`TRAIN_SEED` are for tests.
        progress: called with the title of each game, before it is played.

    Raises:
        IncompatibleChannelError: if the learner does not play one of the games.
        ValueError: if there is no split of that name, or an episode is one to train on.

    Example:
        >>> found = score("centred-exp3", "memory", episodes=32)
        >>> round(found.games["table"], 1) == round(found.mean, 1)
        True
    """
    scores = {}
    validation.function("progress", progress, "of a game's title")
    last = validation.seed("seed", seed) + validation.whole("episodes", episodes, least=1) - 1
    if last >= TRAIN_SEED:
        raise ValueError(f"seeds from {TRAIN_SEED:,} on are for training, got {last:,} for the last episode")
    for title, rules in split if isinstance(split, Split) else split_of(split):
        if progress is not None:
            progress(title)
        uniform, totals, bayes = (
            evaluate(who, rules, episodes=episodes, seed=seed).kl[:, -1]
            for who in (REFERENCES[0], learner, REFERENCES[1])
        )
        scores[title] = score_totals(uniform, totals, bayes)
    return SplitScore(scores)


def split_of(name: str) -> Split:
    """The split of a name.

    Raises:
        ValueError: if there is none.
    """
    return SPLITS[validation.choice("the name of a split", name, tuple(SPLITS))]


def score_totals(uniform: FloatArray, totals: FloatArray, bayes: FloatArray) -> float | None:
    """``(uniform - risk) / (uniform - Bayes)``, of the total KL of the same episodes ``(n,)``.

    None where the data do not show, at 95%, that Bayes learns more than nothing: then there is no scale. An
    infinite risk has the score -inf.

    Example:
        >>> score_totals(np.array([9.0, 11.0]), np.array([5.0, 7.0]), np.array([2.0, 4.0]))
        0.5714285714285714
    """
    uniform, totals, bayes = (
        _totals(name, values) for name, values in (("uniform", uniform), ("totals", totals), ("bayes", bayes))
    )
    if not len(uniform) == len(totals) == len(bayes):
        lengths = f"{len(uniform)}, {len(totals)} and {len(bayes)}"
        raise ValueError(f"uniform, totals and bayes must be of the same episodes, got {lengths} of them")
    if not np.isfinite([uniform, bayes]).all():
        return None
    gain = uniform - bayes
    if min(p_above(gain, 0.0), p_below(gain, 0.0)) > 0.05:  # also of a constant gain, which has no interval
        return None
    return float((uniform.mean() - totals.mean()) / gain.mean())


def _totals(name: str, values: FloatArray) -> FloatArray:
    found = validation.numbers(name, values)
    if found.ndim != 1 or not (found > -np.inf).all():
        raise ValueError(f"{name} must be totals (n,), one per episode, got {found!r}")
    return found
