"""What the tests of the learned baselines share: an untrained model, and an easy game."""

import numpy as np

from ldp_agents.rl import Model, network

ENDS = {"weights": (network.NODE_INPUTS, 1), "slopes": (network.CHANNEL_INPUTS, network.SLOPE_OUTPUTS)}
"""How many inputs and outputs a network has, by what it says."""

EASY = {"hypotheses": "disjoint", "num_hypotheses": 4, "epsilon": 6.0, "horizon": 40}
"""A game that a few seconds of training are enough for."""


def untrained(evidence="weights", seed=0, **card):
    """A model with random parameters, that says nothing of what it was trained on."""
    inputs, outputs = ENDS[evidence]
    parameters = network.make(inputs, (7, 5), outputs, np.random.default_rng(seed))
    parameters["w"] *= 10.0
    return Model(parameters, evidence, {}, card)
