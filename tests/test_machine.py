"""Games on another processor: numbers may differ in their last digits, never in what they decide."""

import os
import platform
import subprocess
import sys
import warnings
from typing import Any

import helpers
import numpy as np
import pytest
from gymnasium.spaces import Box
from helpers import NATURES, small_rules

import ldp_agents
import ldp_gym

CLASSES = {
    "hadamard": {"num_hypotheses": 8, "num_labels": 8},
    "hadamard-star": {"num_hypotheses": 4, "num_labels": 5},
    "refined": {"hypotheses_kwargs": {"parts": 2}},
}
"""Rules that some classes need in addition to the small ones."""
REPLAYED = {"contexts": NATURES["sequence"]["contexts"], "labels": [0, 5, 2, 3] * 10}
TRUTHS = {"replay": {"truth_kwargs": REPLAYED}}
TOLERANCE = 1e-9
CORES = {"x86_64": "Nehalem", "amd64": "Nehalem", "aarch64": "ARMV8", "arm64": "ARMV8"}
"""The oldest core that OpenBLAS has code for, by architecture."""


def games() -> dict[str, dict[str, Any]]:
    """Rules of one game or more for every channel, class, nature and truth."""
    games = {}
    for channel in ldp_gym.CHANNELS:
        games[f"channel {channel}"] = small_rules(channel, "cycle")
        games[f"channel {channel}, constant"] = small_rules(
            channel, hypotheses="dirichlet", context_dim=1
        )
    for name in ldp_gym.HYPOTHESES:
        games[f"class {name}"] = small_rules("split", hypotheses=name, **CLASSES.get(name, {}))
    for name in ldp_gym.NATURES:
        for channel in ("laplace-single", "adaptive-split"):
            games[f"nature {name}, {channel}"] = small_rules(channel, name)
    for name in ldp_gym.TRUTHS:
        games[f"truth {name}"] = small_rules("split", truth=name, **TRUTHS.get(name, {}))
    replayed = games["truth replay"]
    del replayed["nature"], replayed["nature_kwargs"]
    return games


def record_game(rules: dict[str, Any]) -> dict[str, np.ndarray]:
    """Contexts, labels, messages and the laws of labels in two episodes."""
    game, tape = helpers.record(rules, episodes=2, seed=3)
    messages = "messages" if isinstance(game.channel.message_space, Box) else "exact messages"
    return {
        "contexts": tape.contexts,
        "labels": tape.labels,
        messages: tape.messages,
        "laws": tape.distributions,
    }


def record_learner(learner: str, channel: str) -> dict[str, np.ndarray]:
    """Losses of a learner, and its last weights; nothing for a channel that it refuses."""
    try:
        result = ldp_gym.evaluate(learner, small_rules(channel, hypotheses="dirichlet"), episodes=2)
    except ldp_agents.IncompatibleChannelError:
        return {}
    weights = {} if result.weights is None else {"weights": result.weights}
    return {"kl": result.kl, "tv": result.tv, **weights}


def record() -> dict[str, np.ndarray]:
    """Every number that two processors must agree on."""
    warnings.simplefilter("ignore")
    parts = {name: record_game(rules) for name, rules in games().items()}
    for learner in ldp_gym.LEARNERS:
        for channel in ("laplace-single", "randomized-response", "adaptive-split"):
            parts[f"learner {learner}, {channel}"] = record_learner(learner, channel)
    for channel in ldp_gym.CHANNELS:
        parts[f"channel {channel}, played by bayes"] = record_learner("bayes", channel)
    return {
        f"{name}: {key}": array for name, arrays in parts.items() for key, array in arrays.items()
    }


def dispatched_features() -> list[str]:
    """Features of this processor for which NumPy has separate code."""
    from numpy._core import _multiarray_umath as numpy_core

    return [name for name in numpy_core.__cpu_dispatch__ if numpy_core.__cpu_features__[name]]


@pytest.fixture(scope="module")
def here_and_there(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, np.ndarray], Any]:
    """Numbers of this processor, and of one that lacks its newer instructions."""
    features, machine = dispatched_features(), platform.machine().lower()
    if not features or machine not in CORES:
        pytest.skip(
            f"NumPy has a single code path on this processor ({machine}): it cannot play another"
        )
    path = tmp_path_factory.mktemp("other") / "numbers.npz"
    older = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(features),
        "OPENBLAS_CORETYPE": CORES[machine],
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, __file__, str(path)]
    done = subprocess.run(
        command, env={**os.environ, **older}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [], "features that the other process should have switched off"
    with np.load(path) as there, warnings.catch_warnings():
        return record(), dict(there)


KINDS = ["channel", "class", "nature", "truth", "learner"]
REGISTRIES = [
    ldp_gym.CHANNELS,
    ldp_gym.HYPOTHESES,
    ldp_gym.NATURES,
    ldp_gym.TRUTHS,
    ldp_gym.LEARNERS,
]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, names in zip(KINDS, REGISTRIES, strict=True) for name in names],
)
def test_another_processor_computes_the_same(kind: str, name: str, here_and_there: Any) -> None:
    here, there = here_and_there
    starts = (f"{kind} {name}:", f"{kind} {name},")
    keys, others = ([key for key in part if key.startswith(starts)] for part in (here, there))
    assert keys == others != []
    for key in keys:
        tolerance = 0.0 if key.endswith((": labels", ": exact messages")) else TOLERANCE
        np.testing.assert_allclose(
            here[key], there[key], rtol=tolerance, atol=tolerance, err_msg=key
        )


if __name__ == "__main__":
    print(*dispatched_features())
    np.savez(sys.argv[1], **record())
