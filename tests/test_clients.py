"""Our ids as Gymnasium and stable-baselines3 test environments, and as their users make them."""

import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import utils
from helpers import CHANNELS, HYPOTHESES, assert_same, small_rules

import ldp_gym
from ldp_gym import wrappers

RULES = {"num_hypotheses": 3, "num_labels": 4, "context_dim": 2, "horizon": 6}
GAMES = [
    ("LDPDist-v0", RULES),
    ("LDPDistBox-v0", RULES),
    ("LDPDistBox-v0", {"hypotheses": "dirichlet", "channel": "split", "horizon": 6}),
    ("LDPDistBox-v0", {**RULES, "redraw_hypotheses": True, "observation": "message"}),
]


# All that the checkers may say: messages and contexts are unbounded, candidates are (K, M), and actions are
# float64 on [0, 1], which the action wrappers answer.
TOLERATED = [
    "A Box observation space minimum value is -infinity",
    "A Box observation space maximum value is infinity",
    "Your observation candidates has an unconventional shape",
    "We recommend you to use a symmetric and normalized Box action space",
    "Your action space has dtype float64, we recommend using np.float32",
    "we recommend using a symmetric and normalized space",
    ".*different from the unwrapped version",
]


def sb3_check(env):
    from stable_baselines3.common.env_checker import check_env

    check_env(env)


@pytest.fixture
def _strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)
        for message in TOLERATED:
            warnings.filterwarnings("ignore", message=f".*{message}")
        yield


VARIANTS = {channel: small_rules(channel) for channel in CHANNELS}
VARIANTS |= {name: {"hypotheses": name, "horizon": 20, **more} for name, more in HYPOTHESES.items()}
VARIANTS |= {
    "hadamard": {"hypotheses": "hadamard"},
    "candidates": {"observe_candidates": True, "horizon": 20},
    "redrawn": {"hypotheses": "dirichlet", "observe_candidates": True, "redraw_hypotheses": True},
    "table": {"hypotheses": [[0.5, 0.5], [0.9, 0.1]], "reveal": True},
}


@pytest.mark.parametrize(
    ("name", "rules"),
    [*[("LDPDist-v0", rules) for rules in VARIANTS.values()], *GAMES[1:]],
    ids=str,
)
@pytest.mark.usefixtures("_strict")
def test_the_checkers_have_nothing_to_say(name, rules):
    env = gym.make(name, **rules)
    check_env(env.unwrapped, skip_render_check=name != "LDPDist-v0")
    sb3_check(env)
    if name == "LDPDist-v0":
        for action in (wrappers.MixtureAction, wrappers.SoftmaxAction):
            sb3_check(action(env))


@pytest.mark.parametrize(("name", "rules"), GAMES, ids=str)
def test_two_environments_of_a_seed_are_the_same_step_for_step(name, rules):
    """Gymnasium's test_envs.py: rollouts are deterministic, and a pickled environment goes on."""
    first, second = gym.make(name, **rules), gym.make(name, **rules)
    assert_same(first.reset(seed=5)[0], second.reset(seed=5)[0], 0.0)
    first.action_space.seed(1)
    for t in range(6):
        if t in (0, 3):
            second = pickle.loads(pickle.dumps(second))
        action = first.action_space.sample()
        ours, theirs = first.step(action), second.step(action)
        assert ours[0] in first.observation_space
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other, 0.0)
    assert ours[2] is True
    assert ours[3] is False


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        *GAMES,
        ("LDPDist-v0", {"hypotheses": [[0.5, 0.5], [0.9, 0.1]], "epsilon": 2.0}),
        ("LDPDist-v0", {"nature": "adversary", "nature_kwargs": {"pool_size": 4}}),
        ("LDPDist-v0", {"channel": "ldp_gym.channels:RandomizedResponse"}),
        ("LDPDist-v0", {"channel_kwargs": {"gamma": 3.0}}),
    ],
    ids=str,
)
def test_specs_make_the_same_environment_again(name, rules):
    env = gym.make(name, **rules)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert env.observation_space == again.observation_space
    assert_same(env.reset(seed=2)[0], again.reset(seed=2)[0], 0.0)
    action = np.full(env.action_space.shape, 1 / env.action_space.shape[0])
    assert_same(env.step(action)[0], again.step(action)[0], 0.0)


def test_a_spec_has_arrays_as_json_has_them():
    table, contexts = np.full((2, 4), 0.25), np.zeros((6, 1))
    nature = {"nature": "cycle", "nature_kwargs": {"contexts": contexts}}
    env = gym.make("LDPDist-v0", hypotheses=table, horizon=np.int64(6), **nature)
    assert EnvSpec.from_json(env.spec.to_json()).kwargs["hypotheses"] == table.tolist()
    envs = gym.make_vec("LDPDist-v0", num_envs=2, hypotheses=table, horizon=np.int64(5))
    assert gym.make_vec(EnvSpec.from_json(envs.spec.to_json())).game.horizon == 5
    assert env.spec.kwargs["horizon"] == 6


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
    batched = utils.batch_space(space, 4)
    batched.seed(0)
    items = list(utils.iterate(batched, batched.sample()))
    assert len(items) == 4
    assert all(item in space for item in items)
    assert utils.concatenate(space, items, utils.create_empty_array(space, 4)) in batched
    assert spaces.unflatten(space, spaces.flatten(space, items[0])) in space
    assert pickle.loads(pickle.dumps(space)) == space
    assert utils.batch_differing_spaces([space] * 4) == batched


def test_half_precision_actions_are_taken():
    rng, space = np.random.default_rng(0), ldp_gym.Simplex(16)
    for _ in range(200):
        logits = rng.normal(scale=3.0, size=16).astype(np.float16)
        weights = np.exp(logits - logits.max())
        assert (weights / weights.sum(dtype=np.float16)).astype(np.float16) in space
    assert (np.full(16, 1 / 16) * 1.003).astype(np.float16) not in space
    assert space.sample().astype(str) not in space


@pytest.mark.parametrize("policy", ["MlpPolicy", "MultiInputPolicy"])
def test_an_agent_for_boxes_is_refused_when_it_is_made(policy):
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    with pytest.raises(AssertionError, match=r"Simplex\(16\).*ldp_gym\.wrappers\.MixtureAction"):
        stable_baselines3.PPO(policy, "LDPDist-v0")
