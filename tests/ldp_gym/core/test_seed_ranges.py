"""Seeds by purpose."""

import inspect

import pytest

from ldp_agents.rl import score_policy
from ldp_gym import evaluate
from ldp_gym.core.seed_ranges import TEST, TRAINING, VALIDATION, untrained_seed
from ldp_gym.datasets import write_dataset


def test_no_seed_has_two_purposes_and_defaults_have_theirs():
    assert (TEST.start, TEST.stop, VALIDATION.stop) == (0, VALIDATION.start, TRAINING.start)
    assert TEST.stop > 0 < len(VALIDATION)
    assert TRAINING.stop > 2**61
    for call, purpose in {evaluate: TEST, score_policy: TEST, write_dataset: TRAINING}.items():
        assert inspect.signature(call).parameters["seed"].default in purpose


def test_the_last_episode_of_a_score_is_not_for_training():
    assert untrained_seed(2_999_990, 10) == 2_999_990
    with pytest.raises(ValueError, match="from 3,000,000 on are for training, got 3,000,000 for the last"):
        untrained_seed(2_999_991, 10)
    with pytest.raises(ValueError, match="episodes"):
        untrained_seed(0, 0)
