"""Figures of any part of a suite's results, and findings that follow from the data."""

from dataclasses import replace

import numpy as np
import pytest

from ldp_bench import SUITES, Results, figures
from ldp_bench.store import Outcome
from ldp_gym.evaluation import Evaluation
from ldp_gym.statistics import Estimate


class Known(dict):
    """A store of outcomes by the keys of cells, from a function of experiments to evaluations (or None)."""

    def __init__(self, experiments, evaluate):
        for experiment in experiments:
            if (evaluation := evaluate(experiment)) is not None:
                self |= {
                    cell.key: Outcome("done", evaluation, None, 0.1) for cell in experiment.cells(0)
                }

    def outcomes(self, keys):
        return {key: self[key] for key in keys if key in self}


def invented(experiments, share=1.0, spoil=None):
    """Results of some experiments: positive, growing and otherwise random; ``spoil`` may change the KL."""
    rng = np.random.default_rng(0)

    def evaluate(experiment):
        truths = (experiment.num_hypotheses,) if experiment.truth == "all" else ()
        rounds = np.array([1, experiment.horizon // 2, experiment.horizon])
        kl = rng.uniform(0.1, 1.0, (*truths, experiment.episodes, 3)).cumsum(axis=-1)
        comparator = rng.uniform(
            0.1, 1.0, (*truths, experiment.episodes, experiment.num_hypotheses)
        )
        leaders = rng.integers(experiment.num_hypotheses, size=(experiment.episodes, 3))
        losses = {"kl": kl, "tv": kl / 3.0, "tv_squared": kl / 9.0}
        if spoil is not None:
            spoil(experiment, kl)
        found = Evaluation(
            rounds,
            losses,
            comparator,
            weights=comparator,
            leaders=leaders if experiment.leaders else None,
        )
        return found if rng.random() < share else None

    return Results(Known(experiments, evaluate), experiments, 0)


@pytest.mark.parametrize("name", SUITES)
@pytest.mark.parametrize(("episodes", "share"), [(2, 1.0), (1, 0.1)])
def test_findings_and_figures_stand_on_any_part_of_the_results(name, episodes, share):
    suite = SUITES[name]()
    results = invented(suite.experiments("small", episodes=episodes), share)
    if results.successes:
        assert all(finding.text for finding in suite.findings(results))
        drawing = figures.in_style(suite.draw, results)
        assert len([panel for panel in drawing.axes if panel.get_visible()]) <= 6
        assert any(panel.lines or panel.texts for panel in drawing.axes), "a figure shows something"


@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul")
@pytest.mark.parametrize("name", ["quick", "rates", "theorems", "splits"])
def test_one_infinite_loss_leaves_the_others_their_figures_and_rows(name):
    def spoil(experiment, kl):
        if experiment.learner == "mle":
            kl[..., :2, 1:] = np.inf

    suite = SUITES[name]()
    results = invented(suite.experiments("small", episodes=3, learners=["mle"]), spoil=spoil)
    assert all(finding.text for finding in suite.findings(results))
    figures.in_style(suite.draw, results).draw_without_rendering()
    assert np.isinf(results.frame.query("learner == 'mle'")["risk"]).any()


@pytest.mark.parametrize("name", ["rates", "num-labels", "quick", "contexts"])
def test_every_suite_shows_a_learner_and_a_channel_that_were_added(name):
    suite = SUITES[name]()
    experiments = suite.experiments("small", learners=["soft-bayes"], channels=["one-bit"])
    drawing = figures.in_style(suite.draw, invented(experiments))
    drawing.draw_without_rendering()
    legends = [text for legend in drawing.legends for text in legend.get_texts()]
    labels = [*legends, *(text for panel in drawing.axes for text in panel.texts)]
    for label in labels:
        outside = label.get_window_extent().extents
        assert (outside[:2] > 0).all(), label
        assert (outside[2:] < drawing.bbox.size).all(), label
    legend = [label.get_text() for label in labels]
    titles = [panel.get_title() for panel in drawing.axes]
    titles += [tick.get_text() for panel in drawing.axes for tick in panel.get_yticklabels()]
    assert any("soft-bayes" in text for text in legend)
    assert any("one-bit" in text for text in legend + titles)


def test_a_model_goes_by_the_name_of_its_directory_unless_somebody_else_does(tmp_path):
    models = [tmp_path / place for place in ("mine", "one/same", "two/same", "exp3")]
    for model in models:
        model.mkdir(parents=True)
    learners = [str(model) for model in models]
    experiment = SUITES["quick"]().experiments("small")[0]
    experiments = [replace(experiment, learner=name) for name in learners]
    assert invented(experiments).learners == ["mine", *learners[1:]]


def test_lines_and_rows_have_the_intervals_they_are_given():
    known, unknown = Estimate(2.0, 1.5, 3.0), Estimate(2.0)
    (panel,) = figures.draw_lines([figures.Line("a", [1.0], [known], "k")], xlabel="T").axes
    assert panel.collections[0].get_segments()[0][:, 1].tolist() == [1.5, 3.0]
    (panel,) = figures.draw_rows({"": {"a": {"row": known, "other": unknown}}}, xlabel="x").axes
    assert [part[:, 0].tolist() for part in panel.collections[0].get_segments()] == [[1.5, 3.0]]
    (panel,) = figures.draw_rows({"": {"a": {"row": unknown}}}, xlabel="x", reference=1.0).axes
    assert not panel.collections
    assert panel.get_xlim()[1] < 100.0
