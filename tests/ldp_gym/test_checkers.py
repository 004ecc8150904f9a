"""What Gymnasium and SB3 demand of an environment: their checkers, specs, pickles, imports."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers import CHANNELS, HYPOTHESES, small_rules
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import ldp_gym
from ldp_gym.wrappers import MixtureAction, SoftmaxAction

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


VARIANTS = {channel: small_rules(channel) for channel in CHANNELS}
VARIANTS |= {name: {"hypotheses": name, "horizon": 20, **more} for name, more in HYPOTHESES.items()}
VARIANTS |= {
    "hadamard": {"hypotheses": "hadamard"},
    "candidates": {"observe_candidates": True, "horizon": 20},
    "redrawn": {"hypotheses": "dirichlet", "observe_candidates": True, "redraw_hypotheses": True},
    "table": {"hypotheses": [[0.5, 0.5], [0.9, 0.1]], "reveal": True},
}


@pytest.mark.parametrize("game", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.usefixtures("strict")
def test_the_checkers_pass(game):
    env = gym.make("LDPDist-v0", **game)
    check_env(env.unwrapped)
    sb3_check_env(env)


@pytest.mark.parametrize("wrapper", [MixtureAction, SoftmaxAction])
@pytest.mark.usefixtures("strict")
def test_wrapped_for_rl_the_checkers_pass(wrapper):
    env = wrapper(gym.make("LDPDist-v0"))
    assert env.action_space.dtype == np.float32
    sb3_check_env(env)


@pytest.mark.parametrize(
    "game",
    [
        {"hypotheses": [[0.5, 0.5], [0.9, 0.1]], "epsilon": 2.0},
        {"nature": "adversary", "nature_kwargs": {"pool_size": 4}, "channel_kwargs": {"gamma": 3.0}},
        {"channel": "ldp_gym.channels:RandomizedResponse"},
    ],
)
def test_specs_round_trip_through_json(game):
    env = gym.make("LDPDist-v0", **game)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    action = np.full(env.action_space.shape, 1 / env.action_space.shape[0])
    np.testing.assert_array_equal(env.reset(seed=1)[0]["context"], again.reset(seed=1)[0]["context"])
    np.testing.assert_array_equal(env.step(action)[0]["message"], again.step(action)[0]["message"])


def test_environments_pickle_in_the_middle_of_a_game(actions):
    for env, act, rounds in (
        (gym.make("LDPDist-v0", **small_rules()), actions[:, 0], 40),
        (gym.make_vec("LDPDist-v0", num_envs=4, **small_rules()), actions, 45),  # into the next episode
    ):
        env.reset(seed=0)
        for t in range(5):
            env.step(act[t])
        twin = pickle.loads(pickle.dumps(env))
        for t in range(5, rounds):
            mine, other = env.step(act[t % 40]), twin.step(act[t % 40])
            np.testing.assert_array_equal(mine[0]["message"], other[0]["message"])


def output_of(code):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def test_the_environment_is_found_without_an_import():
    code = "import gymnasium as gym; print(gym.make('ldp_gym:LDPDist-v0').reset(seed=0)[0]['message'].shape)"
    assert output_of(code) == "(8,)"


def test_the_version_is_the_same_everywhere():
    root = Path(__file__).parents[2]
    assert f'version = "{ldp_gym.__version__}"' in (root / "pyproject.toml").read_text()
    assert f"version: {ldp_gym.__version__}" in (root / "CITATION.cff").read_text()


def test_importing_is_light():
    heavy = ("scipy", "torch", "stable_baselines3", "ldp_agents", "rich", "pygame", "importlib.metadata")
    heavy += ("matplotlib", "joblib", "pandas", "typer", "sqlite3")
    code = "import sys, gymnasium; known = set(sys.modules); import ldp_gym;"
    code += f"print([module for module in {heavy} if module in sys.modules.keys() - known])"
    assert output_of(code) == "[]"
