"""Decoded messages against their law."""

import math

import numpy as np
import pytest
from helpers import ALPHA, CHANNELS, record, small_rules
from scipy.stats import norm

import ldp_gym
from ldp_gym.engine.scenario import Scenario
from ldp_gym.features.decoding import CLIP, decoder_of

READABLE = [name for name in CHANNELS if not ldp_gym.CHANNELS[name].adaptive]

NOISY = ["laplace-single", "laplace-vector", "gaussian-vector"]


@pytest.mark.parametrize("calibration", ["paper", "tight"])
@pytest.mark.parametrize("channel", NOISY)
def test_a_noisy_message_decodes_to_its_noise_in_units_of_it(channel, calibration):
    """By loops over hypotheses, coordinates and labels, from the paper's formulas."""
    game, tape = record(small_rules(channel, channel_kwargs={"calibration": calibration}), 12)
    size, labels, horizon = 4, 6, 40
    decoded = decoder_of(game.channel).decode(tape.messages, tape.candidates)
    for t in range(12):
        f, message = tape.candidates[0, t], tape.messages[0, t]
        lengths = labels * f.max(axis=0)
        pbar = (1 - 1 / horizon) * f / lengths + 1 / (horizon * lengths.sum())
        moved = (1 - 1 / horizon) * f + lengths / lengths.sum() / horizon  # the law of h_t(y)
        noise = game.channel.noise(f)
        law = 2.0 if channel != "gaussian-vector" else 1.0
        for k in range(size):
            matched = bounded = energy = 0.0
            for j in range(size):
                means = [sum(moved[i, y] * math.log(pbar[j, y]) for y in range(labels)) for i in range(size)]
                deviation = math.sqrt(law) * noise.scale[j]
                if message[j] == 0.0:
                    assert decoded.values[0, t, j] == decoded.shown[0, t, j] == 0.0
                    continue
                revealed = float(noise.offset) - math.log(labels) - message[j] / float(noise.slope)
                value = (revealed - sum(means) / size) / deviation
                shift = (means[k] - sum(means) / size) / deviation
                np.testing.assert_allclose(decoded.values[0, t, j], value, rtol=1e-9, atol=1e-12)
                matched += value * shift
                bounded += min(max(value, -CLIP), CLIP) * shift
                energy += shift**2
            got = decoded.matched[0, t, k], decoded.bounded[0, t, k], decoded.energy[0, t, k]
            np.testing.assert_allclose(got, (matched, bounded, energy), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("channel", NOISY)
def test_the_matched_statistic_has_the_energy_for_its_mean(channel):
    """Under hypothesis k, over real messages; error rate 1e-6 for each test."""
    game = Scenario(**small_rules(channel, epsilon=8.0)).game
    rng, rounds = np.random.default_rng(3), 200_000
    f = game.hypotheses(rng.standard_normal(3))
    for k in range(4):
        labels = rng.choice(6, size=rounds, p=f[k])
        decoded = decoder_of(game.channel).decode(game.channel.privatize(labels, f, rng), f)
        gap = decoded.matched[:, k] - decoded.energy[:, k]
        error = gap.std() / math.sqrt(rounds)
        assert abs(gap.mean()) < norm.isf(ALPHA / 8) * error
        # The noise has unit size: the values' own variance is 1 and what the labels add.
        shown = decoded.shown[:, 0] > 0
        assert decoded.values[shown, 0].var() > 0.98


@pytest.mark.parametrize("channel", [name for name in READABLE if name not in NOISY])
def test_any_other_message_decodes_to_its_likelihood_ratio(channel):
    game, tape = record(small_rules(channel), 12, episodes=2)
    decoded = decoder_of(game.channel).decode(tape.messages, tape.candidates)
    density = np.exp(game.channel.log_density(tape.messages, tape.candidates))
    likelihood = np.einsum("btkm,btm->btk", tape.candidates, density)
    expected = likelihood / likelihood.mean(axis=-1, keepdims=True) - 1.0
    np.testing.assert_allclose(decoded.values, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(decoded.energy, expected**2, rtol=1e-9, atol=1e-12)
    assert (decoded.shown == 1.0).all()
