"""Features against sums of decoded messages."""

import math

import numpy as np
import pytest
from helpers import CHANNELS, record, small_rules

import ldp_gym
from ldp_gym.engine.scenario import Scenario
from ldp_gym.features.decoding import decoder_of
from ldp_gym.features.sums import FEATURES
from ldp_gym.numerics.divergences import kl

READABLE = [name for name in CHANNELS if not ldp_gym.CHANNELS[name].adaptive]


@pytest.mark.parametrize("channel", READABLE)
@pytest.mark.parametrize("name", ["evidence", "slopes"])
def test_features_along_a_tape_are_those_of_stepping(name, channel):
    for more in ({}, {"hypotheses": "dirichlet", "horizon": 12}):
        game, tape = record(small_rules(channel, **more), 12, episodes=3)
        stepped, along = FEATURES[name](game), FEATURES[name](game)
        stepped.reset((3,))
        along.reset((3,))
        half = [slice(0, 5), slice(5, 12)]
        shared = tape.candidates.ndim == 2
        whole = np.concatenate(
            [
                along.along(tape.candidates if shared else tape.candidates[:, s], tape.messages[:, s])
                for s in half
            ],
            axis=1,
        )
        for t in range(12):
            candidates = tape.candidates if shared else tape.candidates[:, t]
            np.testing.assert_allclose(stepped.read(candidates), whole[:, t], rtol=1e-9, atol=1e-12)
            stepped.update(candidates, tape.messages[:, t])


def test_evidence_is_scaled_sums_and_counts():
    game, tape = record({"hypotheses": "dirichlet", "horizon": 50}, 50)
    evidence = FEATURES["evidence"](game)
    evidence.reset((1,))
    seen = evidence.along(tape.candidates, tape.messages)[0]
    values = decoder_of(game.channel).decode(tape.messages, tape.candidates).values[0]
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
    features = FEATURES["slopes"](game)
    features.reset((2,))
    seen = features.along(tape.candidates, tape.messages)
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
    seen = []
    for names in (np.arange(4), order):
        features = FEATURES["slopes"](game)
        features.reset((2,))
        seen.append(features.along(tape.candidates[:, :, names], tape.messages[..., names]))
    np.testing.assert_allclose(seen[0][:, :, order], seen[1], rtol=1e-9, atol=1e-12)
