"""The environments: Gymnasium's and SB3's checkers, seeds, autoreset, errors, and what must not leak."""

import json
import math
import pickle
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from conftest import CHANNELS, CLASSES, NATURES, settings
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import ldp_gym
from ldp_gym.divergences import kl, tv
from ldp_gym.wrappers import MixtureAction, SoftmaxAction, VectorMixtureAction, VectorSoftmaxAction

# All that the checkers may say: messages and contexts are unbounded, candidates are (K, M), and actions are
# float64 on [0, 1], which the action wrappers answer.
TOLERATED = [
    "A Box observation space minimum value is -infinity",
    "A Box observation space maximum value is infinity",
    "Your observation candidates has an unconventional shape",
    "We recommend you to use a symmetric and normalized Box action space",
    "Your action space has dtype float64, we recommend using np.float32",
]


@pytest.fixture
def strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)
        for message in TOLERATED:
            warnings.filterwarnings("ignore", message=f".*{message}")
        yield


def variants():
    for channel in CHANNELS:
        yield pytest.param(settings(channel), id=channel)
    for name, more in CLASSES.items():
        yield pytest.param({"hypotheses": name, "horizon": 20, **more}, id=name)
    yield pytest.param({"hypotheses": "hadamard"}, id="hadamard")
    yield pytest.param({"observe_candidates": True, "horizon": 20}, id="candidates")
    yield pytest.param(
        {"hypotheses": "dirichlet", "observe_candidates": True, "redraw_hypotheses": True}, id="redrawn"
    )
    yield pytest.param({"hypotheses": [[0.5, 0.5], [0.9, 0.1]], "reveal": True}, id="table")


@pytest.mark.parametrize("game", list(variants()))
@pytest.mark.usefixtures("strict")
def test_gymnasium_s_checker_passes(game):
    check_env(gym.make("LDPDist-v0", **game).unwrapped)


@pytest.mark.parametrize("game", list(variants()))
@pytest.mark.usefixtures("strict")
def test_sb3_s_checker_passes(game):
    sb3_check_env(gym.make("LDPDist-v0", **game))


@pytest.mark.parametrize("wrapper", [MixtureAction, SoftmaxAction])
@pytest.mark.usefixtures("strict")
def test_wrapped_for_rl_the_checkers_pass(wrapper):
    env = wrapper(gym.make("LDPDist-v0"))
    assert env.action_space.dtype == np.float32
    sb3_check_env(env)


def play(env, actions, seed=None, options=None):
    """One episode of a single environment: what was shown, and what was charged."""
    observation, info = env.reset(seed=seed, options=options)
    shown, infos = [observation], [info]
    rewards, over = [], False
    while not over:
        observation, reward, over, truncated, info = env.step(actions[len(rewards)])
        assert not truncated
        shown.append(observation)
        rewards.append(reward)
        infos.append(info)
    return shown, np.array(rewards), infos


@pytest.fixture
def actions():
    return np.random.default_rng(5).dirichlet(np.ones(6), size=(40, 4))


GAMES = (
    [settings(channel) for channel in CHANNELS]
    + [settings("randomized-response", nature) for nature in NATURES]
    + [
        settings(observe_candidates=True),
        settings(hypotheses="dirichlet"),
        settings(hypotheses="dirichlet", observe_candidates=True, redraw_hypotheses=True),
        settings(
            hypotheses="softmax-linear",
            observe_candidates=True,
            redraw_hypotheses=True,
            nature="adversary",
            nature_kwargs={"pool_size": 4},
        ),
        settings(hypotheses="dirichlet", nature="adversary", nature_kwargs={"pool_size": 4}),
    ]
)


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_single_sync_and_native_environments_play_the_same_game(game, actions):
    """Two episodes of four games, under seeds 11 to 14: to 1e-12."""
    native = gym.make_vec("LDPDist-v0", num_envs=4, **game)
    sync = gym.make_vec("LDPDist-v0", num_envs=4, vectorization_mode="sync", **game)
    assert isinstance(native.unwrapped, ldp_gym.LDPDistVectorEnv)
    shown = [envs.reset(seed=11)[0] for envs in (native, sync)]
    singles = [gym.make("LDPDist-v0", **game) for _ in range(4)]
    alone = [play(env, actions[:, i], seed=11 + i) for i, env in enumerate(singles)]
    again = [play(env, actions[:, i]) for i, env in enumerate(singles)]
    rounds = 0
    for t in range(82):
        episode, at = (alone, t) if t < 41 else (again, t - 41)
        for key, values in shown[0].items():
            np.testing.assert_allclose(values, shown[1][key], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(values, [e[0][at][key] for e in episode], rtol=1e-12, atol=1e-12)
            assert values.dtype == native.observation_space[key].dtype
        play_now = actions[min(at, 39)]
        steps = [envs.step(play_now) for envs in (native, sync)]
        shown = [step[0] for step in steps]
        for ours, theirs in zip(steps[0][1:4], steps[1][1:4], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
        if at < 40:
            rounds += 1
            np.testing.assert_allclose(steps[0][1], [e[1][at] for e in episode], rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(steps[0][4]["_kl"], steps[1][4]["_kl"])
            np.testing.assert_allclose(steps[0][4]["kl"], steps[1][4]["kl"], rtol=1e-12)
        else:
            assert not steps[0][4]["_kl"].any()
    assert rounds == 80


def test_async_environments_work(actions):
    envs = gym.make_vec("LDPDist-v0", num_envs=2, vectorization_mode="async", **settings())
    single = gym.make("LDPDist-v0", **settings())
    observations, _ = envs.reset(seed=3)
    np.testing.assert_allclose(observations["context"][1], single.reset(seed=4)[0]["context"])
    _, rewards, *_ = envs.step(actions[0, :2])
    np.testing.assert_allclose(rewards[1], single.step(actions[0, 1])[1])
    envs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=str)
def test_autoreset_modes_agree_with_gymnasium_s_own(mode, actions):
    """Games that end at different times: infos, final observations and masks as SyncVectorEnv has them."""
    game = settings(horizon=5, reveal=True)
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


def test_the_reward_is_the_capped_negative_kl(actions):
    env = gym.make("LDPDist-v0", **settings(reveal=True, max_loss=1.0))
    observation, info = env.reset(seed=0, options={"truth": 2})
    assert info == {"truth": 2}
    f = env.unwrapped.game.hypotheses
    for t in range(40):
        truth = f(observation["context"])[2]
        observation, reward, over, _, info = env.step(actions[t, 0])
        assert math.isclose(info["kl"], kl(truth, actions[t, 0]), rel_tol=1e-10)
        assert math.isclose(info["tv"], tv(truth, actions[t, 0]), rel_tol=1e-10)
        assert reward == -min(info["kl"], 1.0)
        assert info["truth"] == 2
        assert 0 <= info["label"] < 6
    assert over


def test_an_infinite_kl_is_in_info_and_capped_in_the_reward():
    env = gym.make("LDPDist-v0", hypotheses=[[0.5, 0.5], [0.1, 0.9]])
    env.reset(seed=0)
    _, reward, _, _, info = env.step([1.0, 0.0])
    assert info["kl"] == math.inf
    assert reward == -100.0


def test_labels_follow_the_truth():
    env = gym.make("LDPDist-v0", hypotheses=[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], horizon=20_000, reveal=True)
    env.reset(seed=0, options={"truth": 1})
    counts = np.zeros(3)
    for _ in range(20_000):
        counts[env.step([0.2, 0.2, 0.6])[4]["label"]] += 1
    from scipy import stats

    assert stats.chisquare(counts, 20_000 * np.array([0.1, 0.1, 0.8])).pvalue > 1e-6


def test_truths_are_uniform_fixed_or_chosen():
    env = gym.make("LDPDist-v0", reveal=True)
    truths = [env.reset(seed=seed)[1]["truth"] for seed in range(400)]
    assert min(np.bincount(truths, minlength=8)) > 20
    assert gym.make("LDPDist-v0", reveal=True, truth=5).reset(seed=0)[1]["truth"] == 5
    assert env.reset(seed=0, options={"truth": 3})[1]["truth"] == 3


@pytest.mark.parametrize("nature", ["adversary", "omniscient"])
@pytest.mark.parametrize("channel", ["laplace-single", "identity"])
def test_adaptive_natures_choose_alike_in_any_batch_long_after_the_truth_is_known(nature, channel):
    """All scores are rounding noise then, and the last bit depends on the batch; 300 rounds, 64 games."""
    game = {"channel": channel, "nature": nature, "horizon": 300}
    envs = gym.make_vec("LDPDist-v0", num_envs=64, **game)
    shown, _ = envs.reset(seed=0)
    alone = [gym.make("LDPDist-v0", **game) for _ in range(2)]
    contexts = [env.reset(seed=i)[0]["context"] for i, env in enumerate(alone)]
    uniform = np.full(16, 1 / 16)
    for _ in range(300):
        np.testing.assert_array_equal(shown["context"][:2], contexts)
        shown, *_ = envs.step(np.tile(uniform, (64, 1)))
        contexts = [env.step(uniform)[0]["context"] for env in alone]
    total = ldp_gym.evaluate("uniform", game, episodes=64).kl[0, -1]
    assert math.isclose(total, ldp_gym.evaluate("uniform", game, episodes=1).kl[0, -1], rel_tol=1e-9)


def test_what_is_returned_is_the_user_s_to_change(actions):
    game = settings(horizon=10)
    envs, twins = (gym.make_vec("LDPDist-v0", num_envs=4, **game) for _ in range(2))
    mask = np.array([True, False, False, False])
    for env in (envs, twins):
        env.reset(seed=0)
    for t in range(8):
        step, twin = envs.step(actions[t]), twins.step(actions[t])
        np.testing.assert_array_equal(step[1], twin[1])
        for array in (*step[0].values(), *step[1:4], *step[4].values()):
            array[...] = 1
        if t == 4:
            shown, twin_shown = (env.reset(options={"reset_mask": mask})[0] for env in (envs, twins))
            np.testing.assert_array_equal(shown["message"], twin_shown["message"])


def test_draws_from_the_environment_s_generator_do_not_change_the_game(actions):
    shown = []
    for draws in (0, 5):
        env = gym.make("LDPDist-v0", **settings())
        env.reset(seed=0)
        env.unwrapped.np_random.random(draws)
        shown.append(play(env, actions[:, 0])[0])
    for ours, theirs in zip(*shown, strict=True):
        np.testing.assert_array_equal(ours["message"], theirs["message"])


def test_many_partial_resets_leave_no_episodes_behind(actions):
    envs = gym.make_vec("LDPDist-v0", num_envs=4, **settings(hypotheses="dirichlet"))
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for t in range(200):
        mask = rng.random(4) < 0.5
        if mask.any():
            envs.reset(options={"reset_mask": mask})
        envs.step(actions[t % 40])
    cohorts = envs.unwrapped._referee._playback._cohorts
    assert sum(len(cohort.episodes.openings) for cohort in cohorts) == 4


# -- What must not leak -------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("nature", [name for name in NATURES if name != "omniscient"])
def test_observations_depend_on_the_truth_only_through_the_message(channel, nature):
    """Two truths with the same coins: while their messages are the same, so is all that is shown.

    The hypotheses are close, so that runs of equal messages occur; each game is followed until they differ.
    """
    near = [[0.34, 0.33, 0.33], [0.33, 0.34, 0.33], [0.33, 0.33, 0.34]]
    pool = [[1.0, 0.0, 2.0], [0.5, 0.1, 0.3]]
    kwargs = {"sequence": pool * 20} if nature == "sequence" else {}
    kwargs = {"pool": pool} if nature in ("cycle", "adversary") else kwargs
    agreed = 0
    for seed in range(10):
        games = [
            gym.make(
                "LDPDist-v0",
                **settings(
                    channel, nature, hypotheses=near, num_hypotheses=3, num_labels=3, nature_kwargs=kwargs
                ),
            )
            for _ in range(2)
        ]
        shown = [env.reset(seed=seed, options={"truth": j}) for j, env in enumerate(games)]
        assert shown[0][1] == shown[1][1] == {}
        for _ in range(40):
            np.testing.assert_array_equal(shown[0][0]["context"], shown[1][0]["context"])
            steps = [env.step(np.full(3, 1 / 3)) for env in games]
            assert all(set(step[4]) == {"kl", "tv"} for step in steps)
            if not np.array_equal(steps[0][0]["message"], steps[1][0]["message"]):
                break
            agreed += 1
            shown = [(step[0], {}) for step in steps]
    assert agreed > 20


def test_info_holds_kl_and_tv_alone(actions):
    env = gym.make("LDPDist-v0", **settings())
    assert env.reset(seed=0)[1] == {}
    assert set(env.step(actions[0, 0])[4]) == {"kl", "tv"}
    envs = gym.make_vec("LDPDist-v0", num_envs=4, **settings())
    assert envs.reset(seed=0)[1] == {}
    assert set(envs.step(actions[0])[4]) == {"kl", "_kl", "tv", "_tv"}


def test_the_game_holds_the_public_rules_alone():
    env = gym.make("LDPDist-v0", truth=3)
    env.reset(seed=0)
    assert set(vars(env.unwrapped.game)) == {"hypotheses", "channel", "horizon"}
    assert not hasattr(env.unwrapped.game.channel, "truth")
    redrawn = gym.make("LDPDist-v0", hypotheses="dirichlet", redraw_hypotheses=True, observe_candidates=True)
    assert redrawn.unwrapped.game.hypotheses is None


# -- Making, keeping and breaking ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "game",
    [
        {},
        {"hypotheses": [[0.5, 0.5], [0.9, 0.1]], "epsilon": 2.0},
        {"nature": "adversary", "nature_kwargs": {"pool_size": 4}, "channel_kwargs": {"gamma": 3.0}},
        {"channel": "ldp_gym.channels:RandomizedResponse"},
    ],
)
def test_specs_round_trip_through_json(game):
    env = gym.make("LDPDist-v0", **game)
    text = env.spec.to_json()
    json.loads(text)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(text))
    action = np.full(env.action_space.shape, 1 / env.action_space.shape[0])
    np.testing.assert_array_equal(env.reset(seed=1)[0]["context"], again.reset(seed=1)[0]["context"])
    np.testing.assert_array_equal(env.step(action)[0]["message"], again.step(action)[0]["message"])


def test_environments_pickle_in_the_middle_of_a_game(actions):
    for env, act in (
        (gym.make("LDPDist-v0", **settings()), actions[:, 0]),
        (gym.make_vec("LDPDist-v0", num_envs=4, **settings()), actions),
    ):
        env.reset(seed=0)
        for t in range(5):
            env.step(act[t])
        twin = pickle.loads(pickle.dumps(env))
        for t in range(5, 45):
            if t == 40 and not isinstance(env, gym.vector.VectorEnv):
                break
            mine, other = env.step(act[t % 40]), twin.step(act[t % 40])
            np.testing.assert_array_equal(mine[0]["message"], other[0]["message"])


def test_the_environment_is_found_without_an_import():
    code = "import gymnasium as gym; print(gym.make('ldp_gym:LDPDist-v0').reset(seed=0)[0]['message'].shape)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "(8,)"


def test_importing_is_light():
    heavy = ("scipy", "torch", "stable_baselines3", "ldp_agents", "rich", "pygame", "importlib.metadata")
    code = f"import sys, ldp_gym; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("game", "error", "message"),
    [
        ({"hypotheses": "softmax-liner"}, ValueError, "did you mean 'softmax-linear'"),
        ({"channel": "laplace"}, ValueError, "did you mean 'laplace-"),
        ({"nature": "idd"}, ValueError, "did you mean 'iid'"),
        ({"channel": "nowhere:Channel"}, ValueError, "cannot import channel 'nowhere:Channel'"),
        ({"num_hypotheses": 1}, ValueError, "must be at least 2, got 1"),
        ({"num_labels": 2.5}, TypeError, "must be a whole number, got 2.5"),
        ({"horizon": 1}, ValueError, "must be at least 2, got 1"),
        ({"epsilon": 0}, ValueError, "epsilon must be positive, got 0"),
        ({"epsilon": math.nan}, ValueError, "got NaN"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a number, got '1'"),
        ({"delta": 1.0}, ValueError, r"\[0, 1\), got 1"),
        ({"delta": -0.1}, ValueError, "got -0.1"),
        ({"channel": "laplace-vector"}, ValueError, "needs delta > 0"),
        ({"nature": "sequence"}, TypeError, "nature 'sequence' needs the option 'sequence'"),
        ({"truth": 8}, ValueError, r"truth must lie in 0..7, got 8"),
        ({"truth": "unifrom"}, ValueError, "an index in 0..7 .*got 'unifrom'"),
        ({"max_loss": -1.0}, ValueError, "max_loss must be positive"),
        ({"redraw_hypotheses": True}, ValueError, "needs observe_candidates=True"),
        (
            {"redraw_hypotheses": True, "hypotheses": "hadamard", "observe_candidates": True},
            ValueError,
            "needs a random class by its name",
        ),
        ({"channel_kwargs": {"gama": 1}}, TypeError, "takes no option 'gama'"),
        ({"channel_kwargs": {"num_labels": 3}}, TypeError, "is the game's to say"),
        ({"channel": None}, TypeError, "channel must be a name or a Channel"),
        ({"nature": ldp_gym.NATURES["iid"]}, TypeError, "nature must be a name or a Nature"),
        ({"hypotheses": None}, TypeError, "hypotheses must be a name"),
        ({"hypotheses": "hadamard", "epsilon": math.nan}, ValueError, "epsilon must be a number, got NaN"),
        ({"epsilon": 1e-308}, ValueError, "beyond the floats"),
        ({"horzion": 5}, TypeError, "did you mean 'horizon'"),
        (
            {
                "hypotheses": "refined",
                "hypotheses_kwargs": {"base": [[0.5, 0.5], [0.9, 0.1]]},
                "redraw_hypotheses": True,
                "observe_candidates": True,
            },
            ValueError,
            "another seed gives another class",
        ),
        ({"render_mode": "disco"}, ValueError, "disco"),
    ],
)
def test_bad_arguments_are_named(game, error, message):
    with pytest.raises(error, match=message):
        ldp_gym.LDPDistEnv(**game)


def test_a_party_made_for_another_game_is_refused():
    channel = ldp_gym.CHANNELS["laplace-single"](4, 6, 10)
    with pytest.raises(ValueError, match="made for horizon=10, not for 40"):
        ldp_gym.LDPDistEnv(channel=channel, num_hypotheses=4, num_labels=6, horizon=40)
    with pytest.raises(ValueError, match="made for context_dim=2, not for 4"):
        ldp_gym.LDPDistEnv(nature=ldp_gym.NATURES["iid"](2))


def test_stepping_out_of_turn_and_wrong_seeds_are_errors(actions):
    env = ldp_gym.LDPDistEnv(**settings(horizon=2))
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        env.step(actions[0, 0])
    env.reset(seed=0)
    env.step(actions[0, 0])
    env.step(actions[0, 0])
    with pytest.raises(gym.error.ResetNeeded, match="the game is over"):
        env.step(actions[0, 0])
    with pytest.raises(gym.error.Error, match="float"):
        env.reset(seed=1.5)
    with pytest.raises(gym.error.Error, match="-3"):
        env.reset(seed=-3)
    with pytest.raises(ValueError, match=r"unknown reset options \['truht'\]"):
        env.reset(options={"truht": 1})
    envs = ldp_gym.LDPDistVectorEnv(2, autoreset_mode="Disabled", **settings(horizon=2))
    with pytest.raises(gym.error.ResetNeeded, match=r"games \[0, 1\]"):
        envs.step(actions[0, :2])
    with pytest.raises(TypeError, match="seed must be an int"):
        envs.reset(seed="7")
    with pytest.raises(ValueError, match="expected 2 seeds"):
        envs.reset(seed=[1, 2, 3])
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": [True, False]})
    with pytest.raises(ValueError, match="num_envs must be at least 1, got 0"):
        ldp_gym.LDPDistVectorEnv(0)


@pytest.mark.parametrize("wrapper", [MixtureAction, SoftmaxAction])
def test_wrappers_say_what_is_wrong(wrapper):
    env = wrapper(ldp_gym.LDPDistEnv())
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"finite numbers in \[-1, 1\], got shape \(3,\)"):
        env.step(np.zeros(3))
    with pytest.raises(ValueError, match="finite numbers"):
        env.step(np.full(env.action_space.shape, np.nan))
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        MixtureAction(ldp_gym.LDPDistEnv()).step(np.zeros(8))


@pytest.mark.parametrize("epsilon", [1e-6, 400.0, 800.0])
@pytest.mark.parametrize("hypotheses", ["hadamard", "dirichlet"])
def test_extreme_epsilons_make_every_class(hypotheses, epsilon):
    horizon = 10**13 if hypotheses == "hadamard" and epsilon < 1 else 100
    env = gym.make("LDPDist-v0", hypotheses=hypotheses, epsilon=epsilon, horizon=horizon)
    env.reset(seed=0)
    assert math.isfinite(env.step(np.full(env.action_space.shape, 1 / env.action_space.shape[0]))[1])


@pytest.mark.parametrize("epsilon", [1e-6, 800.0])
@pytest.mark.parametrize("channel", CHANNELS)
def test_extreme_epsilons_play(channel, epsilon, actions):
    _, rewards, _ = play(gym.make("LDPDist-v0", **settings(channel, epsilon=epsilon)), actions[:, 0], seed=0)
    assert np.isfinite(rewards).all()


@pytest.mark.parametrize(
    ("single", "vector"), [(MixtureAction, VectorMixtureAction), (SoftmaxAction, VectorSoftmaxAction)]
)
def test_wrapped_single_and_vector_environments_agree(single, vector):
    games = 3
    envs = vector(gym.make_vec("LDPDist-v0", num_envs=games, **settings()))
    envs.reset(seed=2)
    alone = [single(gym.make("LDPDist-v0", **settings())) for _ in range(games)]
    for i, env in enumerate(alone):
        env.reset(seed=2 + i)
    envs.action_space.seed(0)
    for _ in range(10):
        acts = envs.action_space.sample()
        _, rewards, *_ = envs.step(acts)
        np.testing.assert_allclose(rewards, [env.step(a)[1] for env, a in zip(alone, acts, strict=True)])
        assert np.isfinite(rewards).all()


def test_equal_logits_are_the_uniform_mixture():
    env = MixtureAction(gym.make("LDPDist-v0", **settings()))
    env.reset(seed=0)
    mixed = env.unwrapped.candidates.mean(axis=0)
    _, reward, *_ = env.step(np.zeros(4, dtype=np.float32))
    env.reset(seed=0)
    cells = ldp_gym.CHANNELS["laplace-single"](4, 6, 40).clipping.cells(env.unwrapped.candidates)
    expected = env.unwrapped.step((1 - 1 / 40) * mixed + cells.shares / 40)[1]
    assert math.isclose(reward, expected, rel_tol=1e-12)
