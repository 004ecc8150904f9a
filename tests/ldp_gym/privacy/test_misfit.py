"""Messages that do not follow the declared density are found, those of every shipped channel are not."""

import math

import numpy as np
import pytest
from broken_channels import (
    ClearText,
    Denied,
    FlatClearText,
    FlatReal,
    Nameless,
    TooFar,
    less_noise,
    permuted,
    sharper,
)

import ldp_gym
from ldp_gym.channels import GaussianVector, LaplaceSingle, RandomizedResponse
from ldp_gym.privacy.audit import certify
from ldp_gym.privacy.misfit import ERROR_RATE, _log_gains, _Sample, find_misfit
from ldp_gym.testing import check_channel

TABLE = np.random.default_rng(0).dirichlet(np.full(5, 0.5), size=3)


@pytest.mark.parametrize(
    "kind",
    [
        FlatClearText,
        FlatReal,
        ClearText,
        permuted(RandomizedResponse),
        permuted(LaplaceSingle),
        less_noise(LaplaceSingle, 0.7),
        *[sharper(ldp_gym.CHANNELS[name]) for name in ("randomized-response", "split", "one-bit", "wheel")],
        sharper(RandomizedResponse, 1.0, 2.0),
    ],
    ids=lambda kind: f"{kind.__name__}({kind.__base__.__name__})",
)
def test_messages_that_do_not_follow_the_density_are_reported(kind):
    """At the smallest effort that shows it with any seed; see below for the default effort."""
    for seed in range(3):
        assert "follow log_density" in find_misfit(kind(3, 5, 50), samples=30_000, seed=seed)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (TooFar, "expected messages in Box"),
        (Denied, "a positive density of every message"),
        (Nameless, "NaN"),
    ],
)
def test_messages_outside_of_the_space_or_of_density_zero_are_reported(kind, reason):
    with pytest.raises(AssertionError, match=reason):
        check_channel(kind(3, 5, 50, epsilon=0.1), samples=5_000)


@pytest.mark.parametrize("kind", [ClearText, FlatReal, less_noise(GaussianVector, 0.7)])
def test_check_channel_says_so_at_the_default_effort(kind):
    with pytest.raises(AssertionError, match="expected messages that follow log_density: "):
        check_channel(kind(3, 5, 50, epsilon=0.5, **({"delta": 1e-5} if not kind.pure else {})))


def test_a_density_of_twice_the_promised_eps_is_found_by_the_exact_audit():
    channel = sharper(RandomizedResponse, 2.0, 2.0)(3, 5, 50, epsilon=1.0)
    check_channel(channel, samples=20_000)
    certificate = certify(channel, TABLE)
    assert not certificate.holds
    assert certificate.epsilon == pytest.approx(2.0)


def test_a_worst_case_that_is_not_the_worst_is_reported():
    class Lopsided(RandomizedResponse):
        """Message 0 tells the least; it is the only one that worst_case_messages() names."""

        def encode(self, labels, candidates, uniforms, posterior=None):
            other = np.where(uniforms[..., 1] < 0.5, labels, self.num_labels - 1)
            return np.where(uniforms[..., 0] < 0.5, 0, other)

        def log_density(self, messages, candidates, posterior=None):
            messages = np.asarray(messages)[..., None]
            same = messages == np.arange(self.num_labels)
            density = 0.5 * (messages == 0) + 0.25 * same + 0.25 * (messages == self.num_labels - 1)
            with np.errstate(divide="ignore"):
                return np.log(density)

        def worst_case_messages(self, candidates, posterior=None):
            return np.zeros(1, dtype=np.int64)

    assert "worst_case_messages among which" in find_misfit(Lopsided(3, 5, 50), samples=5_000)


def test_the_error_rate_is_at_most_the_stated_one():
    """The classifiers' mean product exceeds 1/a with probability at most a: counted at a = 1/20.

    With a binomial bound at 1e-6.
    """
    rng, exceeded, repeats = np.random.default_rng(0), 0, 1500
    law = rng.dirichlet(np.ones(4), size=3)  # three labels, four messages
    for _ in range(repeats):
        places = rng.integers(3, size=60)
        messages = (rng.random(60)[:, None] > law.cumsum(axis=1)[places]).sum(axis=1)
        sample = _Sample(TABLE, None, places, messages, np.log(law.T[messages]))
        gains = [gain for _, gain in _log_gains(sample)]
        exceeded += np.logaddexp.reduce(gains) - math.log(len(gains)) >= math.log(20.0)
    from scipy.stats import binom

    assert exceeded <= binom.isf(ERROR_RATE, repeats, 1 / 20)


def test_samples_are_validated():
    with pytest.raises(ValueError, match="samples must be at least 1000, got 10"):
        check_channel(RandomizedResponse(2, 5, 10), samples=10)
