"""Seeds of episodes by purpose, so that no agent is scored on an episode that it was trained on.

Episode i of a run has the seed ``seed + i``. Three ranges have a purpose; ``evaluate`` takes any
seed.
"""

from __future__ import annotations

from ldp_gym.core import validation

TEST = range(10**6)
"""Seeds of reported numbers: the benchmark, scores, and ``evaluate`` by default."""

VALIDATION = range(TEST.stop, 3 * 10**6)
"""Seeds of scores that shape an agent: during its training, and to choose between agents."""

TRAINING = range(VALIDATION.stop, 2**62)
"""Seeds of training, and of the offline datasets."""


def untrained_seed(seed: int, episodes: int) -> int:
    """Check that no episode that scores an agent has a seed for training; returns the first seed.

    Example:
        >>> untrained_seed(7, episodes=100)
        7
    """
    first = validation.seed("seed", seed)
    last = first + validation.whole("episodes", episodes, least=1) - 1
    if last >= TRAINING.start:
        raise ValueError(
            f"seeds from {TRAINING.start:,} on are for training, got {last:,} for the last "
            f"episode of a score"
        )
    return seed
