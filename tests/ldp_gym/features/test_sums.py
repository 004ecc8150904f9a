"""Features against sums of decoded messages."""

import math

import numpy as np
import pytest
from helpers import CHANNELS, record, small_rules

import ldp_gym
from ldp_gym.features.decoding import decoder_of
from ldp_gym.features.sums import FEATURES
from ldp_gym.numerics.divergences import kl

READABLE = [name for name in CHANNELS if not ldp_gym.CHANNELS[name].adaptive]


@pytest.mark.parametrize("channel", READABLE)
@pytest.mark.parametrize("name", ["evidence", "matched"])
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


def test_matched_features_say_what_is_at_stake_now():
    game, tape = record(small_rules(), 5, episodes=2)
    features = FEATURES["matched"](game)
    features.reset((2,))
    seen = features.along(tape.candidates, tape.messages)
    mixed = tape.candidates.mean(axis=-2, keepdims=True)
    np.testing.assert_allclose(seen[..., 5], kl(tape.candidates, mixed), rtol=1e-9)
    assert not seen[:, 0, :, :5].any()


def test_naming_hypotheses_otherwise_renames_matched_features():
    game, tape = record(small_rules(), 20, episodes=2)
    order = np.array([2, 0, 3, 1])
    seen = []
    for names in (np.arange(4), order):
        features = FEATURES["matched"](game)
        features.reset((2,))
        seen.append(features.along(tape.candidates[:, :, names], tape.messages[..., names]))
    np.testing.assert_allclose(seen[0][:, :, order], seen[1], rtol=1e-9, atol=1e-12)
