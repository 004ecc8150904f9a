"""What the tests share: the games that everything is played on."""

from __future__ import annotations

import warnings

import hypothesis
import numpy as np
import pytest

import ldp_gym
from ldp_gym.channels.base import Channel

hypothesis.settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.load_profile("default")

ALPHA = 1e-6
"""The probability with which a statistical test of correct code fails."""

CHANNELS = ldp_gym.CHANNELS.names()
LOSSLESS = {name for name in CHANNELS if not ldp_gym.CHANNELS[name].reveals_losses}
M_FREE = [name for name in CHANNELS if ldp_gym.CHANNELS.class_of(name).free_of_num_labels]
"""The channels that do not see that labels are cut into parts."""

TABLE = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.8, 0.0], [0.0, 0.9, 0.1, 0.0]])
"""Three hypotheses; the last label is one that none allows."""

NATURES = {
    "iid": {},
    "drift": {"rate": 0.3},
    "cycle": {"pool_size": 5},
    "sequence": {"sequence": np.random.default_rng(7).standard_normal((40, 3)).tolist()},
    "adversary": {"pool_size": 6},
    "omniscient": {"pool_size": 6},
}
HYPOTHESES = {
    "softmax-linear": {},
    "dirichlet": {},
    "disjoint": {},
    "refined": {"hypotheses_kwargs": {"parts": 2}},
}


def delta_of(channel: str) -> float:
    return 1e-5 if channel.endswith("-vector") else 0.0


def settings(channel: str = "laplace-single", nature: str = "iid", **more: object) -> dict:
    """A small game with contexts that matter."""
    game = {
        "channel": channel,
        "delta": delta_of(channel),
        "nature": nature,
        "nature_kwargs": NATURES[nature],
        "num_hypotheses": 4,
        "num_labels": 6,
        "context_dim": 3,
        "horizon": 40,
    }
    return {**game, **more}


def make_channel(name: str, size: int, labels: int, horizon: int, **options: object) -> Channel:
    return ldp_gym.CHANNELS[name](size, labels, horizon, **{"delta": delta_of(name), **options})


@pytest.fixture(autouse=True)
def _quiet_identity():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)
        yield


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
