"""The ids: their references are what the functions measure, and their thresholds are a score of 0.95."""

import gymnasium as gym
import numpy as np
import pytest

import ldp_gym
from ldp_gym.envs.ask import AskArguments, estimate_references
from ldp_gym.envs.box import BoxArguments, estimate_bayes_gain
from ldp_gym.envs.named_games import (
    ASK_META_REFERENCES,
    ASK_REFERENCES,
    META_GAME,
    NAMED_GAINS,
    NAMED_GAMES,
    NATURE_FIXED_REFERENCES,
    NATURE_REFERENCES,
)
from ldp_gym.envs.nature import NatureArguments, measure_nature_references

IDS = [
    "LDPDist-v0",
    "LDPDistBox-v0",
    "LDPDistBox-easy-v0",
    "LDPDistBox-medium-v0",
    "LDPDistBox-memory-v0",
    "LDPDistBox-hard-v0",
    "LDPDistBox-meta-v0",
    "LDPAsk-v0",
    "LDPAskMeta-v0",
    "LDPNature-v0",
    "LDPNature-fixed-v0",
]


@pytest.mark.parametrize("env_id", IDS)
def test_an_id_is_made_by_its_module_too(env_id):
    env = gym.make(f"ldp_gym:{env_id}")
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space


def test_the_package_registers_its_environments():
    """``gym.register_envs(ldp_gym)`` does nothing, and shows that the import is used."""
    gym.register_envs(ldp_gym)
    ours = [env_id for env_id in gym.registry if env_id.startswith("LDP")]
    assert sorted(ours) == sorted(IDS)


@pytest.mark.parametrize(
    ("name", "game"), [*NAMED_GAMES.items(), ("meta", META_GAME)], ids=[*NAMED_GAMES, "meta"]
)
def test_the_gains_of_bayes_are_what_is_estimated(name, game):
    estimate = estimate_bayes_gain(BoxArguments(**game).scenario())
    assert estimate == pytest.approx(NAMED_GAINS[name], rel=1e-9)


@pytest.mark.parametrize(
    ("rules", "shipped"),
    [({}, ASK_REFERENCES), ({"redraw_hypotheses": True}, ASK_META_REFERENCES)],
    ids=["LDPAsk-v0", "LDPAskMeta-v0"],
)
def test_the_references_of_questions_are_what_is_estimated(rules, shipped):
    arguments = AskArguments(**rules)
    estimate = estimate_references.__wrapped__(arguments.scenario(), arguments)
    assert estimate == pytest.approx(shipped, rel=1e-6)


@pytest.mark.parametrize(
    ("rules", "shipped"),
    [({}, NATURE_REFERENCES), ({"redraw_hypotheses": False}, NATURE_FIXED_REFERENCES)],
    ids=["LDPNature-v0", "LDPNature-fixed-v0"],
)
def test_the_references_of_contexts_are_what_a_few_episodes_say(rules, shipped):
    """On 24 episodes, where 1,024 were shipped; the tolerance is five standard errors of these."""
    arguments = NatureArguments(**rules)
    measured = measure_nature_references(arguments.scenario(), arguments, 24)
    assert measured.zero == pytest.approx(shipped.zero, abs=20.0)
    assert measured.unit == pytest.approx(shipped.unit, abs=25.0)


def test_the_first_end_of_an_episode_in_a_named_game_estimates_nothing(monkeypatch):
    monkeypatch.setattr(
        "ldp_gym.envs.box.estimate_bayes_gain", lambda scenario: pytest.fail("estimated")
    )
    env = gym.make("LDPDistBox-easy-v0")
    env.reset(seed=0)
    for _ in range(200):
        *_, info = env.step(np.zeros(4))
    assert info["score"] == pytest.approx(0.0, abs=1e-9)


def test_a_return_at_the_threshold_scores_95_percent():
    """In LDPDistBox-easy-v0 the score is the return over the gain of Bayes."""
    threshold = gym.spec("LDPDistBox-easy-v0").reward_threshold
    assert threshold / NAMED_GAINS["easy"] == pytest.approx(0.95)


def test_a_return_at_the_threshold_of_questions_is_that_of_the_risk_at_95_percent():
    env = gym.make("LDPAsk-v0")
    table = env.unwrapped.game.hypotheses(np.zeros(1))
    mean = table.mean(axis=0)
    first_loss = np.mean(np.sum(table * np.log(table / mean), axis=1))
    risk = ASK_REFERENCES.zero - 0.95 * ASK_REFERENCES.unit
    threshold = gym.spec("LDPAsk-v0").reward_threshold
    assert threshold == pytest.approx(200 - risk / first_loss, rel=1e-9)


def test_a_return_at_the_threshold_of_contexts_is_between_random_and_the_adversary():
    threshold = gym.spec("LDPNature-v0").reward_threshold
    score = (threshold - NATURE_REFERENCES.zero) / NATURE_REFERENCES.unit
    assert score == pytest.approx(0.95)
