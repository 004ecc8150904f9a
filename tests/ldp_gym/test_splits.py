"""Named games to train and to test on, and the score between the two references."""

import numpy as np
import pytest

import ldp_gym
from ldp_gym.bench.experiment import Experiment
from ldp_gym.engine.scenario import Scenario
from ldp_gym.splits import SPLITS, TESTS, TRAIN, Split, score, score_totals, split_of

GAMES = [(name, title, rules) for name, split in SPLITS.items() for title, rules in split]


@pytest.mark.parametrize(("name", "title", "rules"), GAMES, ids=[f"{n}-{t}" for n, t, _ in GAMES])
def test_every_game_can_be_made(name, title, rules):
    game = Scenario(**rules).game
    assert game.horizon == rules["horizon"]
    assert game.channel.epsilon == rules["epsilon"]


def test_a_test_split_holds_what_was_not_trained_on_and_changes_one_thing():
    base = TRAIN.games["base"]
    trained = {Experiment(rules, "bayes").canonical_rules for _, rules in TRAIN}
    for name in set(TESTS) - {"familiar", "memory"}:
        for title, rules in TESTS[name]:
            assert Experiment(rules, "bayes").canonical_rules not in trained, title
            changed = {key for key in {*base, *rules} if base.get(key) != rules.get(key)}
            parts = {
                "class": {"hypotheses", "hypotheses_kwargs", "redraw_hypotheses", "num_labels"},
                "num-hypotheses": {"num_hypotheses"},
                "num-labels": {"num_labels"},
                "epsilon": {"epsilon"},
                "horizon": {"horizon"},
                "channel": {"channel"},
            }
            assert changed, title
            assert changed <= parts[name], title


def test_the_references_have_the_scores_zero_and_one():
    easy = Split("easy", "", {"table": {"hypotheses": [[0.9, 0.1], [0.1, 0.9]], "horizon": 60, "epsilon": 4}})
    assert score("uniform", easy, episodes=20).games == {"table": 0.0}
    assert score("bayes", easy, episodes=20).mean == pytest.approx(1.0)
    titles = []
    found = score("mle", easy, episodes=20, progress=titles.append)
    assert titles == ["table"]
    uniform, ours, bayes = (
        ldp_gym.evaluate(name, easy.games["table"], episodes=20).kl[:, -1].mean()
        for name in ("uniform", "mle", "bayes")
    )
    assert found.mean == found.least == pytest.approx((uniform - ours) / (uniform - bayes))


def test_the_score_is_blank_where_nobody_learns():
    rng = np.random.default_rng(3)
    uniform = 100.0 + rng.standard_normal(40)
    assert score_totals(uniform, uniform - 30.0, uniform - 60.0) == pytest.approx(0.5)
    assert score_totals(uniform, uniform - 30.0, uniform + rng.standard_normal(40)) is None


def test_an_unknown_split_names_the_known_ones():
    with pytest.raises(ValueError, match="split must be one of train, familiar, class"):
        split_of("tests")
