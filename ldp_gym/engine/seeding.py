"""Where an episode's randomness comes from: a generator of its own, a child of its environment's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

_LEARNER = 0
"""The child of an episode's seed that is the learner's; the episode itself has no others."""


def episode_generator(root: np.random.Generator) -> np.random.Generator:
    """The next episode's own generator, a child of the environment's.

    It depends on the seed and on how many came before: not on how far earlier tapes were recorded, nor on
    what a wrapper draws from the environment's generator.
    """
    return root.spawn(1)[0]


def first_generator(seed: int) -> np.random.Generator:
    """The generator of the episode that ``reset(seed=seed)`` begins."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed).spawn(1)[0]))


class LearnerGenerators:
    """Makes generators for a learner's own coins, one for the current episode of each game of a batch.

    They are always in their initial state, and share nothing with what the episodes draw: each is seeded by a
    hash of its episode's seed. Nothing else is kept here, so that no learner finds more.

    Args:
        episodes: the episodes' own generators.

    Example:
        >>> source = LearnerGenerators([first_generator(7), first_generator(8)])
        >>> one, other = (generator.random() for generator in source())
        >>> one == source()[0].random(), one == other
        (True, False)
    """

    def __init__(self, episodes: Sequence[np.random.Generator] = ()) -> None:
        self._seeds = {i: _learner_seed(episode) for i, episode in enumerate(episodes)}

    def begin(self, games: Iterable[int], episodes: Sequence[np.random.Generator]) -> None:
        """New episodes begin in the given games."""
        self._seeds |= zip(games, map(_learner_seed, episodes), strict=True)

    def __call__(self) -> list[np.random.Generator]:
        """The generators, in the order of the games."""
        return [np.random.default_rng(self._seeds[game]) for game in sorted(self._seeds)]


def _learner_seed(episode: np.random.Generator) -> list[int]:
    source = episode.bit_generator.seed_seq
    child = np.random.SeedSequence(source.entropy, spawn_key=(*source.spawn_key, _LEARNER))  # type: ignore[attr-defined]
    return child.generate_state(4, np.uint64).tolist()
