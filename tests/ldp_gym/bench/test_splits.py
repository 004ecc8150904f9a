"""Named games to train and to test on, and the score between the two references."""

import numpy as np
import pytest
from helpers import Stepwise

import ldp_gym
from ldp_gym.bench.splits import SPLITS, TESTS, TRAIN, GameSplit, score
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import Scenario
from ldp_gym.statistics import score_totals


@pytest.mark.parametrize("name", SPLITS)
def test_every_game_can_be_made(name):
    for title, rules in SPLITS[name]:
        game = Scenario(**rules).game
        assert (game.horizon, game.channel.epsilon) == (rules["horizon"], rules["epsilon"]), title


def test_a_test_split_holds_what_was_not_trained_on_and_changes_one_thing():
    base = TRAIN.games["base"]
    trained = {Rules.of(rules) for _, rules in TRAIN}
    for name in set(TESTS) - {"familiar", "memory"}:
        for title, rules in TESTS[name]:
            assert Rules.of(rules) not in trained, title
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


EASY = GameSplit("easy", "one game", {"game": {"hypotheses": [[0.9, 0.1], [0.1, 0.9]], "horizon": 60}})


def test_the_references_have_the_scores_zero_and_one():
    assert score("uniform", EASY, episodes=60).games == {"game": 0.0}
    assert score("bayes", EASY, episodes=60).mean == pytest.approx(1.0)
    uniform, ours, bayes = (
        ldp_gym.evaluate(name, EASY.games["game"], episodes=60).kl[:, -1].mean()
        for name in ("uniform", "mle", "bayes")
    )
    found = score("mle", EASY, episodes=60)
    assert found.mean == pytest.approx((uniform - ours) / (uniform - bayes))


def test_the_score_is_blank_where_nobody_learns():
    rng = np.random.default_rng(3)
    uniform = 100.0 + rng.standard_normal(40)
    assert score_totals(uniform, uniform - 30.0, uniform - 60.0) == pytest.approx(0.5)
    assert score_totals(uniform, uniform - 30.0, uniform + rng.standard_normal(40)) is None
    assert score_totals(uniform, uniform - 30.0, uniform + 60.0) is None, "worse than the uniform mixture"
    hopeless = GameSplit("hopeless", "too private", {"game": {"epsilon": 0.001, "horizon": 5}})
    found = score("bayes", hopeless, episodes=2)
    assert found.games == {"game": None}
    assert np.isnan(found.mean)


class Sure(Stepwise):
    def predict(self, candidates):
        return np.broadcast_to(np.eye(self.game.num_labels)[0], (*self.batch_shape, self.game.num_labels))


def test_an_infinite_risk_is_the_worst_score():
    assert score(Sure, EASY, episodes=60).mean == -np.inf


def test_training_episodes_are_refused():
    with pytest.raises(ValueError, match="from 3,000,000 on are for training, got 3,000,001"):
        score("uniform", "memory", seed=3_000_000 - 2, episodes=4)
