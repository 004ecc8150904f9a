"""Random streams by purpose: what is drawn for one purpose is never what is drawn for another.

If a seed alone named a stream, a class and a pool of the same seed would be made of the same numbers. Here
a purpose and a seed name it. Classes keep the plain seed. The episodes of an environment are the children of
its seed, numbered from 0 (:mod:`ldp_gym.engine.seeding`). All others are children whose numbers no
environment reaches.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

_BEYOND_EPISODES = 2**31


class Purpose(Enum):
    """What random numbers are drawn for, beside the episodes; the value is a seed's child."""

    CLASS = ()
    """The hypotheses of a random class: the plain seed."""
    POOL = (_BEYOND_EPISODES,)
    """The contexts that a nature picks from."""
    CERTIFICATE = (_BEYOND_EPISODES + 1,)
    """The contexts at which a channel is certified."""
    INFORMATION = (_BEYOND_EPISODES + 2,)
    """The coins of the messages from which the information of a message is estimated."""
    SEARCH = (_BEYOND_EPISODES + 3,)
    """The contexts that a search tries."""


def stream(purpose: Purpose, seed: int) -> np.random.Generator:
    """The generator of a purpose under a seed.

    Example:
        >>> float(stream(Purpose.CLASS, 7).random()) == float(np.random.default_rng(7).random())
        True
        >>> float(stream(Purpose.POOL, 7).random()) == float(np.random.default_rng(7).random())
        False
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose.value))
