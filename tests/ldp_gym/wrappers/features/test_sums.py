"""Features against sums of decoded messages."""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers import record, small_rules

from ldp_gym.core.divergences import kl
from ldp_gym.engine.scenario import Scenario
from ldp_gym.wrappers.features.decoding import decode
from ldp_gym.wrappers.features.sums import FEATURES


def read_rounds(name, game, tape):
    """The features before each round of a tape, ``(B, n, *shape)``."""
    features, seen = FEATURES[name](game), []
    features.reset(tape.messages.shape[:1])
    for t in range(tape.messages.shape[1]):
        candidates = tape.candidates if tape.candidates.ndim == 2 else tape.candidates[:, t]
        seen.append(features.read(candidates))
        features.update(candidates, tape.messages[:, t])
    return np.stack(seen, axis=1)


def test_evidence_is_scaled_sums_and_counts():
    game, tape = record({"hypotheses": "dirichlet", "horizon": 50}, 50)
    seen = read_rounds("evidence", game, tape)[0]
    values = decode(game.channel, tape.messages, tape.candidates).values[0]
    for t in (0, 1, 20, 49):
        past = values[:t]
        expected = [
            *past.sum(axis=0) * math.sqrt(8 / 50),
            *past.clip(-0.7, 0.7).sum(axis=0) * math.sqrt(8 / 50),
            *(past != 0).sum(axis=0) * 8 / 50,
            t / 50,
        ]
        np.testing.assert_allclose(seen[t], expected, rtol=1e-9, atol=1e-12)


def test_slope_features_are_sums_of_label_evidence_and_say_what_is_at_stake():
    """By loops over rounds and slopes, from the formula."""
    game, tape = record(small_rules("subset-selection"), 5, episodes=2)
    seen = read_rounds("slopes", game, tape)
    mixed = tape.candidates.mean(axis=-2, keepdims=True)
    np.testing.assert_allclose(seen[..., -1], kl(tape.candidates, mixed), rtol=1e-9)
    for i, slope in enumerate((0.25, 0.5, 1.0, 2.0, 4.0, 8.0)):
        total = np.zeros((2, 4))
        for t in range(5):
            expected = total / slope - total.max(axis=-1, keepdims=True) / slope
            np.testing.assert_allclose(seen[:, t, :, i], expected, rtol=1e-9, atol=1e-12)
            total += np.log((tape.candidates[:, t] * np.exp(slope * tape.messages[:, t, None])).sum(axis=-1))


def test_slope_features_refuse_adaptive_channels():
    with pytest.raises(ValueError, match="depends on the public posterior"):
        FEATURES["slopes"](Scenario(**small_rules("adaptive-split")).game)


def test_naming_hypotheses_otherwise_renames_slope_features():
    game, tape = record(small_rules(), 20, episodes=2)
    order = np.array([2, 0, 3, 1])
    renamed = replace(tape, candidates=tape.candidates[:, :, order], messages=tape.messages[..., order])
    seen, otherwise = (read_rounds("slopes", game, each) for each in (tape, renamed))
    np.testing.assert_allclose(seen[:, :, order], otherwise, rtol=1e-9, atol=1e-12)
