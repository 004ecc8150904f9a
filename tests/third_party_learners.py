"""Learners that are no subclasses of ours, as somebody else would write them."""

import numpy as np


class Coin:
    """Has coins of its own: it mixes the first two labels at random, and reads nothing."""

    randomized = True
    track = "uninformed"

    def __init__(self, game):
        self.game = game

    def reset(self, batch_shape=(), generators=None):
        (self.games,) = batch_shape
        self.generators = generators

    def predict(self, candidates):
        share = np.array([generator.random() for generator in self.generators])
        prediction = np.full((self.games, self.game.num_labels), 0.1 / self.game.num_labels)
        prediction[:, 0] += 0.9 * share
        prediction[:, 1] += 0.9 * (1 - share)
        return prediction

    def update(self, candidates, message):
        pass


class Picky:
    """Plays one game alone, like a policy that was trained for it, and says which."""

    example_rules = {"hypotheses": "dirichlet", "num_hypotheses": 8, "num_labels": 3, "horizon": 2000}
    track = "uninformed"

    def __init__(self, game):
        from ldp_gym.core.errors import IncompatibleChannelError

        if (game.num_hypotheses, game.num_labels) != (8, 3):
            raise IncompatibleChannelError(f"Picky was trained for K = 8 and M = 3, not {game!r}")

    def reset(self, batch_shape=()):
        self.batch = batch_shape

    def predict(self, candidates):
        return np.broadcast_to(candidates.mean(axis=-2), (*self.batch, candidates.shape[-1]))

    def update(self, candidates, message):
        pass
