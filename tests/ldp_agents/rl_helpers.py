"""What the tests of the learned baselines share: an untrained model, an easy game, and the command."""

import re

import numpy as np
from typer.testing import CliRunner

from ldp_agents.rl import Model, network
from ldp_agents.rl.model import game_parameters
from ldp_gym.cli import app
from ldp_gym.features.sums import FEATURES

KINDS = ("flat", "equivariant")
EASY = {"hypotheses": "disjoint", "num_hypotheses": 4, "epsilon": 6.0, "horizon": 40}
"""A game that a few seconds of training are enough for."""


def untrained(game, kind="equivariant", seed=0, **card):
    features = network.features_of(kind)
    outputs = network.num_outputs(kind, game.num_hypotheses)
    shape, rng = FEATURES[features](game).shape, np.random.default_rng(seed)
    parameters = network.make(kind, shape, outputs, (7, 5), rng)
    parameters["skip"] += rng.standard_normal(parameters["skip"].shape)
    return Model(parameters, features, game_parameters(game), card)


def run(*arguments):
    """The command's exit code, and what it printed, in one line."""
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    return result.exit_code, re.sub(r"[\s│]+", " ", result.output)
