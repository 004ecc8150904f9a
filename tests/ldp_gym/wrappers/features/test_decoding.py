"""Decoded messages against their law."""

import math

import numpy as np
import pytest
from helpers import READABLE, record, small_rules

from ldp_gym.wrappers.features.decoding import decode

NOISY = ["laplace-single", "laplace-vector", "gaussian-vector"]


@pytest.mark.parametrize("calibration", ["paper", "tight"])
@pytest.mark.parametrize("channel", NOISY)
def test_a_noisy_message_decodes_to_its_noise_in_units_of_it(channel, calibration):
    """By loops over hypotheses, coordinates and labels, from the paper's formulas."""
    game, tape = record(small_rules(channel, channel_kwargs={"calibration": calibration}), 12)
    size, labels, horizon = 4, 6, 40
    decoded = decode(game.channel, tape.messages, tape.candidates)
    for t in range(12):
        f, message = tape.candidates[0, t], tape.messages[0, t]
        lengths = labels * f.max(axis=0)
        pbar = (1 - 1 / horizon) * f / lengths + 1 / (horizon * lengths.sum())
        moved = (1 - 1 / horizon) * f + lengths / lengths.sum() / horizon  # the law of h_t(y)
        noise = game.channel.noise(f)
        law = 2.0 if channel != "gaussian-vector" else 1.0
        for j in range(size):
            if message[j] == 0.0:
                assert decoded.values[0, t, j] == decoded.shown[0, t, j] == 0.0
                continue
            means = [sum(moved[i, y] * math.log(pbar[j, y]) for y in range(labels)) for i in range(size)]
            revealed = float(noise.offset) - math.log(labels) - message[j] / float(noise.slope)
            value = (revealed - sum(means) / size) / (math.sqrt(law) * noise.scale[j])
            np.testing.assert_allclose(decoded.values[0, t, j], value, rtol=1e-9, atol=1e-12)
            assert decoded.shown[0, t, j] == 1.0


@pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.NoPrivacyWarning")
@pytest.mark.parametrize("channel", [name for name in READABLE if name not in NOISY])
def test_any_other_message_decodes_to_how_far_labels_agree_with_it(channel):
    game, tape = record(small_rules(channel), 12, episodes=2)
    decoded = decode(game.channel, tape.messages, tape.candidates)
    agreement = game.channel.agreement(tape.messages, tape.candidates)
    expected = np.einsum("btkm,btm->btk", tape.candidates, agreement)
    expected -= expected.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(decoded.values, expected, rtol=1e-9, atol=1e-12)
    assert (decoded.shown == 1.0).all()
