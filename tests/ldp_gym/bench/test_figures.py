"""Figures and findings of any part of a suite's results."""

from dataclasses import replace

import numpy as np
import pytest

from ldp_gym.bench import SUITES, Results, figures
from ldp_gym.bench.statistics import Estimate
from ldp_gym.bench.store import Outcome
from ldp_gym.evaluation import Evaluation


class Invented:
    """A store with results for some of the cells asked of it: positive and growing, and nothing more."""

    def __init__(self, experiments, share, rng):
        self.known = {}
        for experiment in experiments:
            if rng.random() < share:
                for cell in experiment.cells(0):
                    self.known[cell.key] = self.outcome_of(cell.experiment, rng)

    @staticmethod
    def outcome_of(experiment, rng):
        truths = (experiment.num_hypotheses,) if experiment.truth == "all" else ()
        rounds = np.array([1, experiment.horizon // 2, experiment.horizon])
        kl = rng.uniform(0.1, 1.0, (*truths, experiment.episodes, 3)).cumsum(axis=-1)
        comparator = rng.uniform(0.1, 1.0, (*truths, experiment.episodes, experiment.num_hypotheses))
        evaluation = Evaluation(rounds, kl, kl / 3.0, comparator, comparator, tv_squared=kl / 9.0)
        if experiment.leaders:
            leaders = rng.integers(experiment.num_hypotheses, size=(experiment.episodes, 3))
            evaluation = replace(evaluation, leaders=leaders)
        return Outcome("done", evaluation, None, 0.1)

    def outcomes(self, keys):
        return {key: self.known[key] for key in keys if key in self.known}


@pytest.mark.parametrize("name", SUITES.names())
@pytest.mark.parametrize(("episodes", "share"), [(2, 1.0), (1, 0.1)])
def test_findings_and_figures_stand_on_any_part_of_the_results(name, episodes, share):
    suite = SUITES[name]()
    experiments = suite.experiments("small", episodes=episodes)
    results = Results(Invented(experiments, share, np.random.default_rng(0)), experiments, 0)
    if results.successes:
        assert all(finding.text for finding in suite.findings(results))
        drawing = figures.in_style(suite.draw, results)
        assert len([panel for panel in drawing.axes if panel.get_visible()]) <= 6
        assert any(panel.lines or panel.texts for panel in drawing.axes), "a figure shows something"


@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul")
@pytest.mark.parametrize("name", ["quick", "tv", "splits", "replay"])
def test_one_infinite_loss_leaves_the_others_their_figures_and_rows(name):
    rng, suite = np.random.default_rng(0), SUITES[name]()
    experiments = suite.experiments("small", episodes=3, learners=["mle"])
    invented = Invented(experiments, 1.0, rng)
    for cell in (cell for e in experiments if e.learner == "mle" for cell in e.cells(0)):
        outcome = invented.known[cell.key]
        kl = outcome.evaluation.kl.copy()
        kl[..., :2, 1:] = np.inf
        invented.known[cell.key] = replace(outcome, evaluation=replace(outcome.evaluation, kl=kl))
    results = Results(invented, experiments, 0)
    assert all(finding.text for finding in suite.findings(results))
    figures.in_style(suite.draw, results).draw_without_rendering()
    assert np.isinf(results.frame.query("learner == 'mle'")["risk"]).any()


def test_every_suite_shows_a_learner_and_a_channel_that_were_added():
    rng = np.random.default_rng(0)
    for name in ("num-hypotheses", "upper", "tv", "num-labels", "quick", "contexts"):
        suite = SUITES[name]()
        experiments = suite.experiments("small", learners=["soft-bayes"], channels=["one-bit"])
        drawing = figures.in_style(suite.draw, Results(Invented(experiments, 1.0, rng), experiments, 0))
        drawing.draw_without_rendering()
        legends = [text for legend in drawing.legends for text in legend.get_texts()]
        labels = [*legends, *(text for panel in drawing.axes for text in panel.texts)]
        for label in labels:
            outside = label.get_window_extent().extents
            assert (outside[:2] > 0).all(), (name, label)
            assert (outside[2:] < drawing.bbox.size).all(), (name, label)
        legend = [label.get_text() for label in labels]
        titles = [panel.get_title() for panel in drawing.axes]
        titles += [tick.get_text() for panel in drawing.axes for tick in panel.get_yticklabels()]
        assert any("soft-bayes" in text for text in legend), name
        assert any("one-bit" in text for text in legend + titles), name


def test_a_model_goes_by_the_name_of_its_directory_unless_somebody_else_does(tmp_path):
    models = [tmp_path / place for place in ("mine", "one/same", "two/same", "exp3")]
    for model in models:
        model.mkdir(parents=True)
    suite, rng, learners = SUITES["quick"](), np.random.default_rng(0), [str(model) for model in models]
    experiments = [replace(e, learner=name) for name in learners for e in suite.experiments("small")[:1]]
    results = Results(Invented(experiments, 1.0, rng), experiments, 0, dict.fromkeys(learners, "uninformed"))
    assert results.learners == ["mine", *learners[1:]]
    assert results.track("mine") == "uninformed"


def test_no_two_learners_share_a_colour():
    names = ["uniform", "wma", "exp3", "centred-exp3", "centred-exp3 on laplace-vector", "mle", "bayes"]
    colours = [figures.colour(name) for name in names] + [figures.colour(f"own:{i}", i) for i in range(10)]
    assert len(set(colours)) == len(colours)


def test_a_logarithmic_axis_has_plain_numbers_at_the_ticks_it_is_given():
    drawing, ((panel,),) = figures.new_figure()
    panel.plot([16, 1024], [0.5, 2e6])
    figures.set_log_scale(panel, "x", [16, 128, 1024])
    figures.set_log_scale(panel, "y")
    drawing.draw_without_rendering()
    assert [label.get_text() for label in panel.get_xticklabels()] == ["16", "128", "1,024"]
    assert {"1", "1,000", "$10^{6}$"} <= {label.get_text() for label in panel.get_yticklabels()}


def test_lines_and_rows_have_the_intervals_they_are_given():
    known, unknown = Estimate(2.0, 1.5, 3.0), Estimate(2.0)
    (panel,) = figures.draw_lines({"": [figures.Line("a", [1.0], [known], "k")]}, xlabel="T").axes
    assert panel.collections[0].get_segments()[0][:, 1].tolist() == [1.5, 3.0]
    (panel,) = figures.draw_rows({"": {"a": {"row": known, "other": unknown}}}, xlabel="x").axes
    assert [part[:, 0].tolist() for part in panel.collections[0].get_segments()] == [[1.5, 3.0]]
    (panel,) = figures.draw_rows({"": {"a": {"row": unknown}}}, xlabel="x", references={"": 1.0}).axes
    assert not panel.collections
    assert panel.get_xlim()[1] < 100.0
