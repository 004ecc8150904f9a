"""ldp_agents.make: a learner by its name or its directory, for an environment or a game."""

import gymnasium as gym
import pytest
from helpers import small_rules
from rl_helpers import untrained

import ldp_agents
from ldp_agents.rl import EvidenceLearner, save
from ldp_gym.engine.game import Game
from ldp_gym.wrappers import EvidenceObservation, MixtureAction, VectorMixtureAction


def test_a_learner_is_made_for_an_environment_or_its_game():
    single = gym.make("LDPDist-v0", **small_rules())
    vector = gym.make_vec("LDPDist-v0", num_envs=2, **small_rules())
    wrapped = (EvidenceObservation(MixtureAction(single)), VectorMixtureAction(vector))
    for env in (single, single.unwrapped, vector, *wrapped):
        game = env.unwrapped.game
        assert ldp_agents.make("bayes", env).game is ldp_agents.make("exp3", game).game is game
    for other in (gym.make("CartPole-v1"), None, "split", Game):
        with pytest.raises(TypeError, match="expected an environment of LDPDist-v0 or a Game, got"):
            ldp_agents.make("bayes", other)


def test_a_trained_model_goes_by_its_directory(tmp_path):
    env = gym.make("LDPDist-v0", **small_rules())
    save(untrained(), tmp_path)
    learner = ldp_agents.make(str(tmp_path), env)
    assert isinstance(learner, EvidenceLearner)
    assert learner.act(env.reset(seed=0)[0]).shape == (6,)
    with pytest.raises(TypeError, match="takes no option 'rate'"):
        ldp_agents.make(str(tmp_path), env, rate=2.0)
