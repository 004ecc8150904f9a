"""Games in lock step: the same as one by one, in every autoreset mode."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers import CHANNELS, NATURES, assert_same_games, small_rules

import ldp_gym
from ldp_gym.engine.scenario import Scenario

REDRAWN = {"observe_candidates": True, "redraw_hypotheses": True}
NEAR = {"nature": "adversary", "nature_kwargs": {"pool_size": 4}}
GAMES = (
    [small_rules(channel) for channel in CHANNELS]
    + [small_rules("randomized-response", nature) for nature in NATURES if nature != "iid"]
    + [
        small_rules(observe_candidates=True),
        small_rules(hypotheses="dirichlet"),
        small_rules(hypotheses="dirichlet", **REDRAWN),
        small_rules("adaptive-groups", hypotheses="dirichlet"),
        small_rules("adaptive-groups", hypotheses="dirichlet", **REDRAWN),
        small_rules(**REDRAWN, **NEAR),
        small_rules(hypotheses="dirichlet", **NEAR),
    ]
)


def make_both(game, mode=AutoresetMode.NEXT_STEP):
    native = gym.make_vec("LDPDist-v0", num_envs=4, autoreset_mode=mode.value, **game)
    assert isinstance(native.unwrapped, ldp_gym.LDPDistVectorEnv)
    return native, SyncVectorEnv([lambda: gym.make("LDPDist-v0", **game)] * 4, autoreset_mode=mode)


@pytest.mark.parametrize(
    ("game", "mode"),
    [(game, AutoresetMode.NEXT_STEP) for game in GAMES]
    + [(small_rules(reveal=True), mode) for mode in AutoresetMode],
    ids=str,
)
def test_native_and_single_environments_play_the_same_game(game, mode, actions, monkeypatch):
    """Over two ends of episodes: observations, rewards, infos, final observations and masks.

    Some games begin anew before their end, and the others go on in blocks of four rounds.
    """
    monkeypatch.setattr(Scenario, "rounds_at_a_time", lambda self, episodes, cells: 4)
    assert_same_games(*make_both({**game, "horizon": 10}, mode), actions[:26])


@pytest.mark.parametrize("nature", ["adversary", "omniscient"])
@pytest.mark.parametrize("channel", ["laplace-single", "identity"])
def test_adaptive_natures_choose_alike_in_any_batch_long_after_the_truth_is_known(nature, channel):
    """All scores are rounding noise then, and the last bit depends on the batch; 200 rounds, 16 games."""
    game = {"channel": channel, "nature": nature, "horizon": 200}
    envs = gym.make_vec("LDPDist-v0", num_envs=16, **game)
    shown, _ = envs.reset(seed=0)
    alone = [gym.make("LDPDist-v0", **game) for _ in range(2)]
    contexts = [env.reset(seed=i)[0]["context"] for i, env in enumerate(alone)]
    uniform = np.full(16, 1 / 16)
    for _ in range(200):
        np.testing.assert_array_equal(shown["context"][:2], contexts)
        shown, *_ = envs.step(np.tile(uniform, (16, 1)))
        contexts = [env.step(uniform)[0]["context"] for env in alone]
    total = ldp_gym.evaluate("uniform", game, episodes=16).kl[0, -1]
    assert math.isclose(
        total, ldp_gym.evaluate("uniform", game, episodes=1).kl[0, -1], rel_tol=1e-9
    )
