"""The profile of property tests, and fixtures that tests share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import hypothesis
import numpy as np
import pytest

import ldp_gym
from ldp_gym.core.errors import OutsideTrainingWarning

hypothesis.settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.load_profile("default")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Ignore warnings for users: tests play without privacy, and trained models on small games."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)
        warnings.simplefilter("ignore", OutsideTrainingWarning)
        yield


@pytest.fixture
def actions() -> np.ndarray:
    """Random predictions for 40 rounds of four small games."""
    return np.random.default_rng(5).dirichlet(np.ones(6), size=(40, 4))
