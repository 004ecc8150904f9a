"""Shared by the tests of learned agents: an untrained model, and an easy game."""

import numpy as np

from ldp_agents.rl import Model, network

EASY = {
    "hypotheses": "disjoint",
    "num_hypotheses": 4,
    "epsilon": 6.0,
    "channel": "split",
    "horizon": 40,
}
"""A game that a few seconds of training are enough for."""


def untrained(seed=0, **card):
    """A model with random parameters, which says nothing about what it was trained on."""
    parameters = network.make_parameters((7, 5), np.random.default_rng(seed))
    parameters["w"] *= 10.0
    return Model(parameters, {}, card)
