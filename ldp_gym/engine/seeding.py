"""Where an episode's randomness comes from: a generator of its own, a child of its environment's."""

from __future__ import annotations

import numpy as np


def episode_generator(root: np.random.Generator) -> np.random.Generator:
    """The next episode's own generator, a child of the environment's.

    It depends on the seed and on how many came before: not on how far earlier tapes were recorded, nor on
    what a wrapper draws from the environment's generator.
    """
    return root.spawn(1)[0]


def first_generator(seed: int) -> np.random.Generator:
    """The generator of the episode that ``reset(seed=seed)`` begins."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed).spawn(1)[0]))
