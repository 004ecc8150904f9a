"""Our ids as Gymnasium and stable-baselines3 test environments, and as their users make them."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

import ldp_gym
from ldp_gym.wrappers import MixtureAction, VectorEvidenceObservation, VectorMixtureAction

IDS = ["LDPDist-v0", "LDPDistBox-v0"]
RULES = {"num_hypotheses": 3, "num_labels": 4, "context_dim": 2, "horizon": 6}
GAMES = [
    ("LDPDist-v0", RULES),
    ("LDPDistBox-v0", RULES),
    ("LDPDistBox-v0", {"hypotheses": "dirichlet", "channel": "split", "horizon": 6}),
    ("LDPDistBox-v0", {**RULES, "redraw_hypotheses": True, "observation": "message"}),
]


def same(one, other):
    """Gymnasium's data_equivalence, with its types."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return np.asarray(one).dtype == np.asarray(other).dtype and np.array_equal(one, other)


def flatten(shown):
    if not isinstance(shown, dict):
        return shown
    return np.concatenate([np.ravel(shown[key]) for key in sorted(shown)])


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*Box observation space m[a-z]* value is")  # messages are unbounded
@pytest.mark.filterwarnings("ignore:.*recommend using a symmetric and normalized space")  # a unit is a logit
@pytest.mark.parametrize(("name", "rules"), GAMES, ids=str)
def test_gymnasium_s_checker_has_nothing_to_say(name, rules):
    check_env(gym.make(name, **rules), skip_render_check=True)


@pytest.mark.parametrize(("name", "rules"), GAMES, ids=str)
def test_two_environments_of_a_seed_are_the_same_step_for_step(name, rules):
    """Gymnasium's test_envs.py: rollouts are deterministic, and a pickled environment goes on."""
    first, second = gym.make(name, **rules), gym.make(name, **rules)
    assert same(first.reset(seed=5)[0], second.reset(seed=5)[0])
    second = pickle.loads(pickle.dumps(second))
    first.action_space.seed(1)
    for _ in range(6):
        action = first.action_space.sample()
        ours, theirs = first.step(action), second.step(action)
        assert ours[0] in first.observation_space
        assert all(same(one, other) for one, other in zip(ours, theirs, strict=True))
    assert ours[2] is True
    assert ours[3] is False


@pytest.mark.parametrize(("name", "rules"), GAMES, ids=str)
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_the_vector_environment_is_gymnasium_s_of_single_ones(name, rules, mode):
    ours = gym.make_vec(name, num_envs=3, autoreset_mode=mode, **rules)
    theirs = gym.make_vec(
        name, num_envs=3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **rules
    )
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.single_action_space == theirs.single_action_space
    shown, expected = ours.reset(seed=4)[0], theirs.reset(seed=4)[0]
    assert ours.unwrapped.np_random_seed == theirs.np_random_seed == (4, 5, 6)
    theirs.action_space.seed(0)
    for _ in range(9):
        flat = [flatten(part) for part in (shown, expected)]
        np.testing.assert_allclose(*flat, rtol=1e-6, atol=1e-6)
        actions = np.stack([space.sample() for space in [theirs.single_action_space] * 3])
        (shown, *mine, _), (expected, *other, _) = ours.step(actions), theirs.step(actions)
        for one, another in zip(mine, other, strict=True):
            np.testing.assert_allclose(one, another, rtol=1e-9)


@pytest.mark.parametrize(("name", "rules"), GAMES, ids=str)
def test_specs_make_the_same_environment_again(name, rules):
    env = gym.make(name, **rules)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert same(env.reset(seed=2)[0], again.reset(seed=2)[0])
    assert env.observation_space == again.observation_space


def test_a_spec_has_arrays_as_json_has_them():
    table, contexts = np.full((2, 4), 0.25), np.zeros((6, 1))
    env = gym.make(
        "LDPDist-v0",
        hypotheses=table,
        nature="cycle",
        nature_kwargs={"contexts": contexts},
        horizon=np.int64(6),
    )
    assert EnvSpec.from_json(env.spec.to_json()).kwargs["hypotheses"] == table.tolist()
    envs = gym.make_vec("LDPDist-v0", num_envs=2, hypotheses=table, horizon=np.int64(5))
    assert gym.make_vec(EnvSpec.from_json(envs.spec.to_json())).game.horizon == 5
    assert env.spec.kwargs["horizon"] == 6


def test_time_aware_observations_need_the_horizon_as_a_limit():
    """Documented in docs/other-libraries.md: Gymnasium then sets both flags in the last round."""
    env = gym.make("LDPDist-v0", **RULES, max_episode_steps=6)
    env = gym.wrappers.TimeAwareObservation(env, flatten=False)
    env.reset(seed=0)
    for _ in range(6):
        *_, terminated, truncated, _ = env.step(np.full(4, 0.25))
    assert (terminated, truncated) == (True, True)


def test_vector_wrappers_hand_on_when_games_begin_again():
    envs = gym.make_vec("LDPDist-v0", num_envs=2, autoreset_mode="SameStep", **RULES)
    envs = VectorEvidenceObservation(VectorMixtureAction(envs))
    assert envs.autoreset_mode is AutoresetMode.SAME_STEP


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("NormalizeObservation", {}),
        ("NormalizeReward", {"gamma": 0.0}),
        ("ClipAction", {}),
        ("RescaleAction", {"min_action": np.float32(-1.0), "max_action": np.float32(1.0)}),
        ("RescaleObservation", {"min_obs": np.float32(-1.0), "max_obs": np.float32(1.0)}),
        ("FlattenObservation", {}),
    ],
)
def test_gymnasium_s_vector_wrappers_go_around_the_vector_environment(name, options):
    envs = gym.wrappers.vector.RecordEpisodeStatistics(gym.make_vec("LDPDistBox-v0", 3, **RULES))
    envs = getattr(gym.wrappers.vector, name)(envs, **options)
    envs.reset(seed=0)
    for _ in range(6):
        observations, *_, infos = envs.step(np.zeros((3, 3), dtype=np.float32))
    assert observations in envs.observation_space
    np.testing.assert_allclose(infos["episode"]["r"], 0.0, atol=1e-9)  # the uniform mixture gains nothing
    np.testing.assert_allclose(infos["score"], 0.0, atol=1e-9)


def test_a_wrapper_names_the_one_to_use_instead():
    envs, env = gym.make_vec("LDPDist-v0", num_envs=2, **RULES), gym.make("LDPDist-v0", **RULES)
    with pytest.raises(TypeError, match="around a vector environment goes VectorMixtureAction"):
        MixtureAction(envs)
    with pytest.raises(TypeError, match="around a single environment goes MixtureAction"):
        VectorMixtureAction(env)


def test_the_bare_id_s_error_names_the_one_that_trains():
    env = gym.make("LDPDist-v0", **RULES)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="LDPDistBox-v0"):
        env.unwrapped.step(np.zeros(4))


# -- The simplex among Gymnasium's spaces -------------------------------------------------------------


@pytest.mark.parametrize(
    "space",
    [
        ldp_gym.Simplex(3),
        ldp_gym.Simplex(3, (2,)),
        spaces.Tuple([ldp_gym.Simplex(3), spaces.Discrete(2)]),
        spaces.Dict(p=ldp_gym.Simplex(3), q=spaces.Tuple([ldp_gym.Simplex(2)])),
    ],
    ids=str,
)
def test_a_simplex_goes_where_a_box_goes(space):
    batched = batch_space(space, 4)
    batched.seed(0)
    items = list(iterate(batched, batched.sample()))
    assert len(items) == 4
    assert all(item in space for item in items)
    joined = concatenate(space, items, create_empty_array(space, 4))
    assert joined in batched
    flat = spaces.flatten(space, items[0])
    again = spaces.unflatten(space, flat)
    assert again in space


@pytest.mark.parametrize("space", [ldp_gym.Simplex(3), ldp_gym.Simplex(3, (2, 4))], ids=str)
def test_a_simplex_is_what_it_says(space):
    assert eval(repr(space), {"Simplex": ldp_gym.Simplex}) == space
    assert pickle.loads(pickle.dumps(space)) == space
    assert np.asarray(space.sample()).astype(str) not in space


def test_half_precision_actions_are_taken():
    rng, space = np.random.default_rng(0), ldp_gym.Simplex(16)
    for _ in range(200):
        logits = rng.normal(scale=3.0, size=16).astype(np.float16)
        weights = np.exp(logits - logits.max())
        assert (weights / weights.sum(dtype=np.float16)).astype(np.float16) in space
    assert (np.full(16, 1 / 16) * 1.003).astype(np.float16) not in space


# -- stable-baselines3 ----------------------------------------------------------------------------------


def test_stable_baselines_trains_by_the_id():
    sb3 = pytest.importorskip("stable_baselines3", reason="the extra rl")
    from stable_baselines3.common.env_checker import check_env as check

    env = gym.make("LDPDistBox-v0", **RULES)
    with pytest.warns(UserWarning, match="symmetric and normalized"):  # here a unit is one logit
        check(env)
    model = sb3.PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu", seed=0).learn(32)
    action, _ = model.predict(env.reset(seed=0)[0])
    assert action in env.action_space


def test_games_in_lock_step_are_filmed(tmp_path):
    pytest.importorskip("stable_baselines3", reason="the extra rl")
    pytest.importorskip("pygame", reason="the extra render")
    from ldp_agents.rl import SB3VecEnv

    envs = gym.make_vec("LDPDistBox-v0", 2, autoreset_mode="SameStep", render_mode="rgb_array", **RULES)
    venv = SB3VecEnv(envs)
    venv.seed(0)
    venv.reset()
    images = venv.get_images()
    assert len(images) == 2
    assert images[0].ndim == 3
    assert venv.render_mode == "rgb_array"
    assert venv.render().size == images[0].size + images[1].size
    with pytest.raises(TypeError, match="goes around a vector environment"):
        SB3VecEnv(gym.make("LDPDist-v0", **RULES))
