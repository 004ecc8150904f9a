"""Seats from outside: a role is an observation, an action and a reward, and the rules play the rest."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers import assert_same_games, record, small_rules, total_kl

from ldp_gym.core.divergences import kl
from ldp_gym.engine.role import Actions, Observation, Role
from ldp_gym.engine.seats import Moves, Seat
from ldp_gym.envs.single import SingleEnv
from ldp_gym.envs.vector import LockStepEnv

POOL = np.array([[1.0, 0.0, 2.0], [0.5, 0.1, 0.3], [-1.0, 1.0, 0.0]])


# A toy environment in Nature's seat: its whole code is an observation, an action and a reward.


class Weights(Observation):
    """The posterior weights."""

    def __init__(self, playback):
        self._playback = playback
        self.space = gym.spaces.Box(0.0, 1.0, (playback.scenario.game.num_hypotheses,), np.float64)

    def observe(self, game=...):
        return self._playback.weights[game].copy()


class Pick(Actions):
    """The index of a context."""

    def __init__(self, batch_shape):
        self.space = gym.spaces.Discrete(len(POOL))
        self.shape = batch_shape

    def read(self, action):
        return np.broadcast_to(np.asarray(action, dtype=np.int64), self.shape)


class ToyNature(Role):
    """Nature, paid the learner's loss."""

    seats = frozenset({Seat.NATURE})

    def __init__(self, playback, rules):
        super().__init__(playback, rules)
        self.observation = Weights(playback)

    def actions(self, batch_shape):
        return Pick(batch_shape)

    def moves(self, actions):
        return Moves(contexts=POOL[actions])

    def rewards(self, losses):
        return losses.copy()


class ToyEnv(SingleEnv):
    role = ToyNature


class ToyVectorEnv(LockStepEnv):
    role = ToyNature


CHANNELS = ["split", "adaptive-split", "laplace-single", "randomized-response"]


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_nature_from_outside_meets_the_users_and_the_learner_of_the_rules(channel):
    """Nature cycles through her pool: the same labels, messages and losses as with the nature "cycle"."""
    cycle = small_rules(channel, "cycle", nature_kwargs={"contexts": POOL.tolist()}, horizon=12)
    _, tape = record(cycle, seed=4)
    env = ToyEnv(**small_rules(channel, "cycle", horizon=12, reveal=True))

    env.reset(seed=4)
    steps = [env.step(t % 3) for t in range(12)]

    labels = [step[-1]["label"] for step in steps]
    assert labels == tape.labels[0].tolist()
    losses = sum(step[1] for step in steps)
    assert losses == pytest.approx(total_kl("bayes", gym.make("LDPDist-v0", **cycle), seed=4))
    assert losses == pytest.approx(sum(step[-1]["kl"] for step in steps))


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("channel", ["split", "adaptive-split"])
def test_single_and_vector_environments_of_a_role_agree(channel, mode):
    rules = small_rules(channel, "cycle", horizon=9)
    native = ToyVectorEnv(num_envs=3, autoreset_mode=mode, **rules)
    sync = SyncVectorEnv([lambda: ToyEnv(**rules)] * 3, autoreset_mode=mode)
    actions = np.random.default_rng(0).integers(3, size=(24, 3))
    assert_same_games(native, sync, actions, rtol=1e-9)


def test_the_environment_of_a_role_passes_gymnasium_s_checker():
    check_env(ToyEnv(**small_rules("split", "cycle", horizon=5)), skip_render_check=True)


def test_the_truth_s_distribution_is_revealed_and_gives_the_loss():
    env = ToyEnv(**small_rules("split", "cycle", truth="mixture", reveal=True, horizon=5))
    weights, info = env.reset(seed=0)
    assert info == {}, "the first round waits for its context"
    _, loss, _, _, info = env.step(1)
    candidates = env.game.hypotheses(POOL[1])
    assert info["distribution"].shape == (6,)
    assert loss == pytest.approx(kl(info["distribution"], weights @ candidates), rel=1e-9)
