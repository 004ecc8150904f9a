"""Games in lock step: the same as one by one, in every autoreset mode."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers import CHANNELS, NATURES, play, small_rules

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
        small_rules(**REDRAWN, **NEAR),
        small_rules(hypotheses="dirichlet", **NEAR),
    ]
)


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_single_sync_and_native_environments_play_the_same_game(game, actions):
    """Two episodes of four games of 10 rounds, under seeds 11 to 14: to 1e-12."""
    game, horizon = {**game, "horizon": 10}, 10
    native = ldp_gym.LDPDistVectorEnv(4, **game)
    sync = SyncVectorEnv([lambda: ldp_gym.LDPDistEnv(**game)] * 4)
    shown = [envs.reset(seed=11)[0] for envs in (native, sync)]
    singles = [ldp_gym.LDPDistEnv(**game) for _ in range(4)]
    episodes = [[play(env, actions[:, i], seed=11 + i) for i, env in enumerate(singles)]]
    episodes.append([play(env, actions[:, i]) for i, env in enumerate(singles)])
    for episode, at in np.ndindex(2, horizon + 1):
        alone = episodes[episode]
        for key, values in shown[0].items():
            single = [e[0][at][key] for e in alone]
            np.testing.assert_allclose([values, shown[1][key]], [single, single], rtol=1e-12, atol=1e-12)
            assert values.dtype == native.observation_space[key].dtype
        steps = [envs.step(actions[at]) for envs in (native, sync)]
        shown = [step[0] for step in steps]
        for ours, theirs in zip(steps[0][1:4], steps[1][1:4], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
        if at < horizon:
            np.testing.assert_allclose(steps[0][1], [e[1][at] for e in alone], rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(steps[0][4]["_kl"], steps[1][4]["_kl"])
            np.testing.assert_allclose(steps[0][4]["kl"], steps[1][4]["kl"], rtol=1e-12)
        else:  # the step that begins the next episode
            assert not steps[0][4]["_kl"].any()


def test_async_environments_work(actions):
    envs = gym.make_vec("LDPDist-v0", num_envs=2, vectorization_mode="async", **small_rules())
    single = gym.make("LDPDist-v0", **small_rules())
    observations, _ = envs.reset(seed=3)
    np.testing.assert_allclose(observations["context"][1], single.reset(seed=4)[0]["context"])
    _, rewards, *_ = envs.step(actions[0, :2])
    np.testing.assert_allclose(rewards[1], single.step(actions[0, 1])[1])
    envs.close()


STAGGERED = [
    small_rules(channel="adaptive-split"),
    small_rules(channel="adaptive-groups", hypotheses="dirichlet"),
    small_rules(**NEAR),
    small_rules(nature="drift"),
    small_rules(hypotheses="dirichlet", **REDRAWN),
    small_rules("adaptive-wheel", hypotheses="dirichlet", **REDRAWN),
]


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("game", STAGGERED, ids=str)
def test_games_go_on_as_they_were_when_others_begin_anew(game, block, actions, monkeypatch):
    """What is kept of those that stay decides all later blocks."""
    monkeypatch.setattr(Scenario, "rounds_at_a_time", lambda self, episodes, cells: block)
    envs = ldp_gym.LDPDistVectorEnv(4, autoreset_mode="Disabled", **game)
    singles = [ldp_gym.LDPDistEnv(**game) for _ in range(4)]
    shown, _ = envs.reset(seed=21)
    alone = [env.reset(seed=21 + i)[0] for i, env in enumerate(singles)]
    for t in range(30):
        if t == 10:
            mask = np.array([True, False, True, False])
            shown, _ = envs.reset(seed=[51, 0, 53, 0], options={"reset_mask": mask})
            alone[0], alone[2] = singles[0].reset(seed=51)[0], singles[2].reset(seed=53)[0]
            assert shown["round"][:, 0].tolist() == [0, 10, 0, 10]
            assert not shown["message"][mask].any()
        for key, values in shown.items():
            np.testing.assert_allclose(values, [each[key] for each in alone], rtol=1e-9, atol=1e-9)
        shown, rewards, *_ = envs.step(actions[t])
        steps = [env.step(actions[t, i]) for i, env in enumerate(singles)]
        alone = [step[0] for step in steps]
        np.testing.assert_allclose(rewards, [step[1] for step in steps], rtol=1e-9)


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=str)
def test_autoreset_modes_agree_with_gymnasium_s_own(mode, actions):
    """Games that end at different times: infos, final observations and masks as SyncVectorEnv has them."""
    game = small_rules(horizon=5, reveal=True)
    native = gym.make_vec("LDPDist-v0", num_envs=4, autoreset_mode=mode.value, **game)
    sync = SyncVectorEnv([lambda: gym.make("LDPDist-v0", **game)] * 4, autoreset_mode=mode)
    assert native.metadata["autoreset_mode"] is mode
    for envs in (native, sync):
        envs.reset(seed=0)
        for t in range(2):
            envs.step(actions[t])
    mask = np.array([True, False, True, False])
    results = [envs.reset(seed=50, options={"reset_mask": mask.copy()}) for envs in (native, sync)]
    compare_vector(results[0], results[1])
    for t in range(14):
        steps = [envs.step(actions[t]) for envs in (native, sync)]
        compare_vector(steps[0], steps[1])
        over = steps[0][2]
        if mode is AutoresetMode.DISABLED and over.any():
            results = [envs.reset(options={"reset_mask": over.copy()}) for envs in (native, sync)]
            compare_vector(results[0], results[1])


def compare_vector(ours, theirs):
    for key, values in theirs[0].items():
        np.testing.assert_allclose(ours[0][key], values, rtol=1e-12, atol=1e-12)
    for mine, other in zip(ours[1:-1], theirs[1:-1], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)
    compare_infos(ours[-1], theirs[-1])


def compare_infos(ours, theirs):
    for key in (key for key in theirs if f"_{key}" in theirs):
        mask = theirs[f"_{key}"]
        np.testing.assert_array_equal(ours[f"_{key}"], mask)
        if key == "final_obs":
            for mine, other in zip(ours[key][mask], theirs[key][mask], strict=True):
                for name in other:
                    np.testing.assert_allclose(mine[name], other[name], rtol=1e-12)
        elif isinstance(theirs[key], dict):
            compare_infos(ours[key], theirs[key])
        else:
            np.testing.assert_allclose(np.asarray(ours[key])[mask], theirs[key][mask], rtol=1e-12)
    assert all(key in theirs or not np.any(ours[f"_{key}"]) for key in ours if f"_{key}" in ours)


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
    assert math.isclose(total, ldp_gym.evaluate("uniform", game, episodes=1).kl[0, -1], rel_tol=1e-9)
