"""Named games to train and to test on, and the score between the two references."""

import numpy as np
import pytest
from helpers import totals

from ldp_bench.splits import TESTS, TRAIN
from ldp_gym.engine.rules import Rules
from ldp_gym.statistics import score_totals, unit_of_score


@pytest.mark.parametrize("name", TESTS)
def test_every_game_can_be_made(name):
    for title, rules in TESTS[name].items():
        game = Rules(**rules).scenario().game
        assert (game.horizon, game.channel.epsilon) == (rules["horizon"], rules["epsilon"]), title


def test_a_test_split_holds_what_was_not_trained_on_and_changes_one_thing():
    base = TRAIN["base"]
    trained = {Rules.of(rules) for rules in TRAIN.values()}
    for name in set(TESTS) - {"familiar", "memory"}:
        for title, rules in TESTS[name].items():
            assert Rules.of(rules) not in trained, title
            changed = {key for key in {*base, *rules} if base.get(key) != rules.get(key)}
            parts = {name.replace("-", "_")}
            if name == "class":
                parts = {"hypotheses", "hypotheses_kwargs", "redraw_hypotheses", "num_labels"}
            assert changed, title
            assert changed <= parts, title


RULES = {"hypotheses": [[0.9, 0.1], [0.1, 0.9]], "horizon": 60}


def test_the_references_have_the_scores_zero_and_one():
    uniform, ours, bayes = (totals(name, RULES, 60) for name in ("uniform", "mle", "bayes"))
    expected = (sum(uniform) - sum(ours)) / (sum(uniform) - sum(bayes))
    found = [score_totals(uniform, each, bayes) for each in (uniform, bayes, ours)]
    assert found == pytest.approx([0.0, 1.0, expected])
    assert score_totals(uniform, np.append(ours[1:], np.inf), bayes) == -np.inf, "the worst"


def test_the_score_is_blank_where_nobody_learns():
    rng = np.random.default_rng(3)
    uniform = 100.0 + rng.standard_normal(40)
    assert score_totals(uniform, uniform - 30.0, uniform - 60.0) == pytest.approx(0.5)
    assert score_totals(uniform, uniform - 30.0, uniform + rng.standard_normal(40)) is None
    assert score_totals(uniform, uniform - 30.0, uniform + 60.0) is None, (
        "worse than the uniform mixture"
    )
    assert score_totals(uniform, uniform - 30.0, np.append(uniform[1:] - 60.0, np.inf)) is None
    assert unit_of_score(np.array([3.0, 5.0])) is None, "two episodes show nothing"
    assert unit_of_score(np.linspace(3.0, 5.0, 40)) == pytest.approx(4.0)
