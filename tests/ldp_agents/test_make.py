"""ldp_agents.make: a learner by its name or its directory, for an environment or a game."""

import gymnasium as gym
import pytest
from helpers import small_rules
from rl_helpers import untrained

import ldp_agents
from ldp_agents.rl import EvidenceLearner, save
from ldp_gym.wrappers import EvidenceObservation, MixtureAction, VectorMixtureAction


def environments():
    single = gym.make("LDPDist-v0", **small_rules())
    vector = gym.make_vec("LDPDist-v0", num_envs=2, **small_rules())
    return (
        single,
        single.unwrapped,
        EvidenceObservation(MixtureAction(single)),
        vector,
        VectorMixtureAction(vector),
    )


def test_a_learner_is_made_for_an_environment_or_its_game():
    for env in environments():
        assert ldp_agents.make("bayes", env).game is env.unwrapped.game
    game = env.unwrapped.game
    assert ldp_agents.make("exp3", game).game is game
    assert repr(ldp_agents.make("exp3", game)) == f"EXP3({game.channel!r})"


def test_a_trained_model_goes_by_its_directory(tmp_path):
    env = gym.make("LDPDist-v0", **small_rules())
    save(untrained(), tmp_path)
    learner = ldp_agents.make(str(tmp_path), env)
    assert isinstance(learner, EvidenceLearner)
    assert learner.act(env.reset(seed=0)[0]).shape == (6,)
    with pytest.raises(TypeError, match="takes no option 'rate'"):
        ldp_agents.make(str(tmp_path), env, rate=2.0)
