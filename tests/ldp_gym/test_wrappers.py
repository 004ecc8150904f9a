"""The views for RL: decoded messages against their law, features against sums, single against vector."""

import math
import warnings

import gymnasium as gym
import numpy as np
import pytest
from conftest import ALPHA, CHANNELS, settings
from gymnasium.vector import AutoresetMode
from scipy.stats import norm
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import ldp_gym
from ldp_gym import wrappers
from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.tape import Episodes
from ldp_gym.features.decoding import CLIP, decoder_of
from ldp_gym.features.sums import FEATURES
from ldp_gym.numerics.divergences import kl
from ldp_gym.wrappers import MixtureAction, SoftmaxAction, VectorMixtureAction, VectorSoftmaxAction

READABLE = [name for name in CHANNELS if not ldp_gym.CHANNELS[name].adaptive]
NOISY = ["laplace-single", "laplace-vector", "gaussian-vector"]
VIEWS = ["DecodedMessage", "Evidence", "HypothesisFeatures"]
REDRAWN = {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True, "horizon": 9}


def record(game, episodes, rounds, seed=0):
    scenario = Scenario(**game)
    starts = [scenario.start_episode(np.random.default_rng(seed + i)) for i in range(episodes)]
    return scenario.game, Episodes(scenario, starts).play(rounds)


# -- Decoding ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", ["paper", "tight"])
@pytest.mark.parametrize("channel", NOISY)
def test_a_noisy_message_decodes_to_its_noise_in_units_of_it(channel, calibration):
    """By loops over hypotheses, coordinates and labels, from the paper's formulas."""
    game, tape = record(settings(channel, channel_kwargs={"calibration": calibration}), 1, 12)
    size, labels, horizon = 4, 6, 40
    decoded = decoder_of(game.channel).decode(tape.messages, tape.candidates)
    for t in range(12):
        f, message = tape.candidates[0, t], tape.messages[0, t]
        lengths = labels * f.max(axis=0)
        pbar = (1 - 1 / horizon) * f / lengths + 1 / (horizon * lengths.sum())
        moved = (1 - 1 / horizon) * f + lengths / lengths.sum() / horizon  # the law of h_t(y)
        noise = game.channel.noise(f)
        law = 2.0 if channel != "gaussian-vector" else 1.0
        for k in range(size):
            matched = bounded = energy = 0.0
            for j in range(size):
                means = [sum(moved[i, y] * math.log(pbar[j, y]) for y in range(labels)) for i in range(size)]
                deviation = math.sqrt(law) * noise.scale[j]
                if message[j] == 0.0:
                    assert decoded.values[0, t, j] == decoded.shown[0, t, j] == 0.0
                    continue
                revealed = float(noise.offset) - math.log(labels) - message[j] / float(noise.slope)
                value = (revealed - sum(means) / size) / deviation
                shift = (means[k] - sum(means) / size) / deviation
                np.testing.assert_allclose(decoded.values[0, t, j], value, rtol=1e-9, atol=1e-12)
                matched += value * shift
                bounded += min(max(value, -CLIP), CLIP) * shift
                energy += shift**2
            got = decoded.matched[0, t, k], decoded.bounded[0, t, k], decoded.energy[0, t, k]
            np.testing.assert_allclose(got, (matched, bounded, energy), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("channel", NOISY)
def test_the_matched_statistic_has_the_energy_for_its_mean(channel):
    """Under hypothesis k, over real messages; error rate 1e-6 for each test."""
    game = Scenario(**settings(channel, epsilon=8.0)).game
    rng, rounds = np.random.default_rng(3), 200_000
    f = game.hypotheses(rng.standard_normal(3))
    for k in range(4):
        labels = rng.choice(6, size=rounds, p=f[k])
        decoded = decoder_of(game.channel).decode(game.channel.privatize(labels, f, rng), f)
        gap = decoded.matched[:, k] - decoded.energy[:, k]
        error = gap.std() / math.sqrt(rounds)
        assert abs(gap.mean()) < norm.isf(ALPHA / 8) * error
        # The noise has unit size: the values' own variance is 1 and what the labels add.
        shown = decoded.shown[:, 0] > 0
        assert decoded.values[shown, 0].var() > 0.98


@pytest.mark.parametrize("channel", [name for name in READABLE if name not in NOISY])
def test_any_other_message_decodes_to_its_likelihood_ratio(channel):
    game, tape = record(settings(channel), 2, 12)
    decoded = decoder_of(game.channel).decode(tape.messages, tape.candidates)
    density = np.exp(game.channel.log_density(tape.messages, tape.candidates))
    likelihood = np.einsum("btkm,btm->btk", tape.candidates, density)
    expected = likelihood / likelihood.mean(axis=-1, keepdims=True) - 1.0
    np.testing.assert_allclose(decoded.values, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(decoded.energy, expected**2, rtol=1e-9, atol=1e-12)
    assert (decoded.shown == 1.0).all()


@pytest.mark.parametrize("channel", READABLE)
def test_none_yet_decodes_to_nothing(channel):
    game = Scenario(**settings(channel)).game
    f = game.hypotheses(np.zeros((2, 3)))
    nothing = np.zeros((2, *game.channel.message_shape), dtype=game.channel.message_space.dtype)
    for part in decoder_of(game.channel).decode(nothing, f):
        assert not part.any()


@pytest.mark.parametrize("channel", ["adaptive-split", "adaptive-wheel"])
@pytest.mark.parametrize("view", VIEWS)
def test_an_interactive_channel_is_refused(view, channel):
    with pytest.raises(ValueError, match="depends on the public posterior"):
        getattr(wrappers, view)(gym.make("LDPDist-v0", **settings(channel)))


# -- Features ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", READABLE)
@pytest.mark.parametrize("name", ["evidence", "matched"])
def test_features_along_a_tape_are_those_of_stepping(name, channel):
    for more in ({}, {"hypotheses": "dirichlet", "horizon": 12}):
        game, tape = record(settings(channel, **more), 3, 12)
        stepped, along = FEATURES[name](game), FEATURES[name](game)
        stepped.reset((3,))
        along.reset((3,))
        half = [slice(0, 5), slice(5, 12)]
        shared = tape.candidates.ndim == 2
        whole = np.concatenate(
            [
                along.along(tape.candidates if shared else tape.candidates[:, s], tape.messages[:, s])
                for s in half
            ],
            axis=1,
        )
        for t in range(12):
            candidates = tape.candidates if shared else tape.candidates[:, t]
            np.testing.assert_allclose(stepped.read(candidates), whole[:, t], rtol=1e-9, atol=1e-12)
            stepped.update(candidates, tape.messages[:, t])


def test_evidence_is_scaled_sums_and_counts():
    game, tape = record({"hypotheses": "dirichlet", "horizon": 50}, 1, 50)
    evidence = FEATURES["evidence"](game)
    evidence.reset((1,))
    seen = evidence.along(tape.candidates, tape.messages)[0]
    values = decoder_of(game.channel).decode(tape.messages, tape.candidates).values[0]
    for t in (0, 1, 20, 49):
        past = values[:t]
        expected = [
            *past.sum(axis=0) * math.sqrt(8 / 50),
            *past.clip(-0.7, 0.7).sum(axis=0) * math.sqrt(8 / 50),
            *(past != 0).sum(axis=0) * 8 / 50,
            t / 50,
        ]
        np.testing.assert_allclose(seen[t], expected, rtol=1e-9, atol=1e-12)


def test_matched_features_say_what_is_at_stake_now():
    game, tape = record(settings(), 2, 5)
    features = FEATURES["matched"](game)
    features.reset((2,))
    seen = features.along(tape.candidates, tape.messages)
    mixed = tape.candidates.mean(axis=-2, keepdims=True)
    np.testing.assert_allclose(seen[..., 5], kl(tape.candidates, mixed), rtol=1e-9)
    assert not seen[:, 0, :, :5].any()


def test_naming_hypotheses_otherwise_renames_matched_features():
    game, tape = record(settings(), 2, 20)
    order = np.array([2, 0, 3, 1])
    seen = []
    for names in (np.arange(4), order):
        features = FEATURES["matched"](game)
        features.reset((2,))
        seen.append(features.along(tape.candidates[:, :, names], tape.messages[..., names]))
    np.testing.assert_allclose(seen[0][:, :, order], seen[1], rtol=1e-9, atol=1e-12)


# -- Views ------------------------------------------------------------------------------------------------


def leaves(shown):
    return [shown[key] for key in sorted(shown)] if isinstance(shown, dict) else [shown]


def assert_same(one, other):
    for a, b in zip(leaves(one), leaves(other), strict=True):
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("game", [settings(horizon=9), settings("split", horizon=9), REDRAWN], ids=str)
def test_single_and_vector_views_agree(game, view, mode):
    """Through the end of an episode, whichever way the next begins."""
    envs = getattr(wrappers, f"Vector{view}")(
        gym.make_vec("LDPDist-v0", num_envs=3, autoreset_mode=mode, **game)
    )
    alone = [getattr(wrappers, view)(gym.make("LDPDist-v0", **game)) for _ in range(3)]
    shown, _ = envs.reset(seed=5)
    ours = [env.reset(seed=5 + i)[0] for i, env in enumerate(alone)]
    actions = envs.action_space.sample()
    for t in range(24):
        for i in range(3):
            assert_same({k: v[i] for k, v in shown.items()} if isinstance(shown, dict) else shown[i], ours[i])
        shown, _, over, _, infos = envs.step(actions)
        for i, env in enumerate(alone):
            if mode is AutoresetMode.NEXT_STEP and t % 10 == 9:
                ours[i] = env.reset()[0]
                continue
            ours[i], _, ended, _, _ = env.step(actions[i])
            assert ended == over[i]
            if ended and mode is AutoresetMode.SAME_STEP:
                assert_same(infos["final_obs"][i], ours[i])
                ours[i] = env.reset()[0]
        if mode is AutoresetMode.DISABLED and over.any():
            shown, _ = envs.reset(options={"reset_mask": over})
            ours = [env.reset()[0] for env in alone]


@pytest.mark.parametrize("view", VIEWS)
def test_a_reset_of_some_games_leaves_the_others_evidence(view):
    game = settings(horizon=30)
    envs, alone = (
        getattr(wrappers, f"Vector{view}")(
            gym.make_vec("LDPDist-v0", num_envs=3, autoreset_mode="Disabled", **game)
        )
        for _ in range(2)
    )
    actions = envs.action_space.sample()
    for env in (envs, alone):
        env.reset(seed=1)
        for _ in range(5):
            env.step(actions)
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    shown, kept = envs.step(actions)[0], alone.step(actions)[0]
    for a, b in zip(leaves(shown), leaves(kept), strict=True):
        np.testing.assert_array_equal(a[[0, 2]], b[[0, 2]])
        assert not np.array_equal(a[1], b[1])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("channel", ["laplace-single", "randomized-response", "split"])
def test_the_checkers_pass_with_views(view, channel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for tolerated in ("A Box observation space m", "Your observation .*unconventional shape"):
            warnings.filterwarnings("ignore", message=f".*{tolerated}")
        env = getattr(wrappers, view)(
            ldp_gym.wrappers.MixtureAction(gym.make("LDPDist-v0", **settings(channel)))
        )
        sb3_check_env(env)
    for _ in range(3):
        assert env.observation_space.contains(env.reset()[0])
        assert env.observation_space.contains(env.step(env.action_space.sample())[0])


@pytest.mark.parametrize("view", VIEWS)
def test_views_do_not_depend_on_truth_label_or_reward_but_by_the_message(view):
    """Two environments with the same messages and contexts, and everything hidden different."""

    class Deceived(gym.Wrapper):
        def step(self, action):
            observation, reward, *flags, info = self.env.step(action)
            return (
                observation,
                -1e6 * reward,
                *flags,
                {"truth": 3, "label": 2, "kl": 1e9, "tv": info["tv"] + 7},
            )

    game = settings(reveal=True)
    plain, deceived = (
        getattr(wrappers, view)(wrap(gym.make("LDPDist-v0", **game))) for wrap in (lambda env: env, Deceived)
    )
    assert_same(plain.reset(seed=3)[0], deceived.reset(seed=3)[0])
    rng = np.random.default_rng(0)
    for _ in range(30):
        assert_same(plain.step(rng.dirichlet(np.ones(6)))[0], deceived.step(rng.dirichlet(np.ones(6)))[0])


def test_a_staggered_start_spreads_the_games_over_the_episode():
    games = gym.make_vec(
        "LDPDist-v0", num_envs=5, horizon=20, hypotheses="dirichlet", autoreset_mode="SameStep"
    )
    envs = wrappers.StaggeredStart(wrappers.VectorEvidence(wrappers.VectorMixtureAction(games)))
    shown, _ = envs.reset(seed=0)
    np.testing.assert_allclose(shown[:, -1] * 20, [16, 12, 8, 4, 0], atol=1e-4)
    ended = [np.flatnonzero(envs.step(np.zeros((5, 8)))[2]).tolist() for _ in range(20)]
    assert [games for games in ended if games] == [[0], [1], [2], [3], [4]]
    assert [t for t, games in enumerate(ended) if games] == [3, 7, 11, 15, 19]


def test_a_staggered_start_of_distributions():
    envs = wrappers.StaggeredStart(gym.make_vec("LDPDist-v0", num_envs=2, horizon=4))
    shown, _ = envs.reset(seed=0)
    assert shown["message"][0].any()
    assert not shown["message"][1].any()


# -- Actions ------------------------------------------------------------------------------------------


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


def test_what_wrappers_go_around_is_checked():
    other = gym.make("CartPole-v1")
    for wrapper in (
        ldp_gym.wrappers.Evidence,
        ldp_gym.wrappers.MixtureAction,
        ldp_gym.wrappers.SoftmaxAction,
    ):
        with pytest.raises(TypeError, match="expected an environment of LDPDist-v0, got .*CartPole"):
            wrapper(other)
    seen = ldp_gym.wrappers.Evidence(gym.make("LDPDist-v0"))
    with pytest.raises(TypeError, match="goes around what shows messages; <Evidence"):
        ldp_gym.wrappers.Evidence(seen)


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
