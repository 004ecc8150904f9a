"""The benchmark for agents: training games, and test games that differ from them in one thing."""

from __future__ import annotations

from typing import Any

from ldp_gym.bench import figures
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding
from ldp_gym.bench.results import Results
from ldp_gym.bench.splits import REFERENCES, TESTS, SplitScore, score_totals
from ldp_gym.bench.suites.base import Suite

LEARNERS = ("exp3", "centred-exp3", "amortized")
_LEAST_SHOWN = -0.25
"""Who is worse stands at the edge: the scale is for those who learn."""


class Splits(Suite):
    """Agents on games that they were not trained on, scored between the uniform mixture and Bayes.

    The games are the test splits of :mod:`ldp_gym.bench.splits`.
    """

    name = "splits"
    title = "Agents on games that they were not trained on"
    claim = (
        "The score is 0 for the uniform mixture, which never learns, and 1 for Bayes, on the same episodes. "
        "Every split but 'familiar' and 'memory' changes one thing of the training games. On 'memory' the "
        "table is the same in every episode, so that a policy which reads raw messages can play it too."
    )
    order = 95
    ranks_learners = True

    def own_experiments(self, small: bool) -> list[Experiment]:
        """All test games, with the references."""
        return [
            Experiment(rules, learner, episodes=6 if small else 128, block=32)
            for rules in _games(small).values()
            for learner in (*REFERENCES, *LEARNERS)
        ]

    def findings(self, results: Results) -> list[Finding]:
        """Each learner's mean over the splits, and its worst."""
        found = []
        for learner, splits in _scores(results).items():
            worst = min(splits, key=lambda name: splits[name].mean)
            mean = sum(score.mean for score in splits.values()) / len(splits)
            found.append(
                Finding(
                    f"{learner} ({results.track(learner)}): mean score {mean:.3f} over {len(splits)} of "
                    f"{len(TESTS)} splits; least on '{worst}', {splits[worst].mean:.3f}."
                )
            )
        return found

    def draw(self, results: Results) -> figures.Figure:
        """The mean score on each split, and how far its games lie apart."""
        scores = _scores(results)
        drawing, axes = figures.new_figure(width=7.6, height=4.4)
        panel = axes[0, 0]
        names = list(TESTS)
        for i, (learner, splits) in enumerate(scores.items()):
            hue, beside = figures.colour(learner, i), 0.6 * ((i + 0.5) / len(scores) - 0.5)
            label = f"{learner} ({results.track(learner)})"
            for name, split_score in splits.items():
                place = len(names) - 1 - names.index(name) - beside
                _draw_score(panel, split_score, place, hue, label, results.track(learner) == "uninformed")
        for reference, at in zip(REFERENCES, (0.0, 1.0), strict=True):
            panel.axvline(at, color=figures.colour(reference), linestyle=":", label=reference)
        panel.set_yticks(range(len(names)), names[::-1])
        panel.set_xlim(_LEAST_SHOWN - 0.05, 1.1)
        panel.set_xlabel("score: (uniform - risk) / (uniform - Bayes); the line spans the split's games")
        figures.add_legend(drawing)
        return drawing


def _draw_score(
    panel: figures.Axes, score: SplitScore, place: float, hue: str, label: str, hollow: bool
) -> None:
    values = [value for value in score.games.values() if value is not None]
    low, mean, high = (max(value, _LEAST_SHOWN) for value in (min(values), score.mean, max(values)))
    panel.hlines(place, low, high, color=hue, linewidth=1)
    marker = "o" if score.mean > _LEAST_SHOWN else "<"
    face = "white" if hollow else hue
    panel.plot([mean], [place], marker, color=hue, markerfacecolor=face, label=label, linestyle="none")


def _games(small: bool) -> dict[tuple[str, str], dict[str, Any]]:
    """The test games by split and title; small ones are shorter, and two of each split."""
    return {
        (split.name, title): {**rules, "horizon": min(rules["horizon"], 60)} if small else rules
        for split in TESTS.values()
        for title, rules in list(split)[: 2 if small else None]
    }


def _scores(results: Results) -> dict[str, dict[str, SplitScore]]:
    """The scores by learner and split, as far as there are some."""
    places = {
        Experiment(rules, REFERENCES[0]).canonical_rules: place
        for small in (True, False)
        for place, rules in _games(small).items()
    }
    found: dict[str, dict[str, dict[str, float | None]]] = {}
    for result in results.successes:
        split, title = places.get(result.experiment.canonical_rules, (None, ""))
        uniform, bayes = (results.same_tapes(result.experiment, name) for name in REFERENCES)
        if split is None or uniform is None or bayes is None or result.learner in REFERENCES:
            continue
        value = score_totals(uniform.totals, result.totals, bayes.totals)
        if value is not None:
            found.setdefault(result.learner, {}).setdefault(split, {})[title] = value
    return {
        learner: {split: SplitScore(games) for split, games in splits.items()}
        for learner, splits in found.items()
    }
