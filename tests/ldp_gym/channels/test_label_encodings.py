"""Unary encoding and local hashing: protocols that LDP libraries have, and their estimators' variances."""

import math

import numpy as np
import pytest

import ldp_gym
from ldp_gym.channels import local_hashing

LABELS, FREQUENCY = 8, 0.3


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "name", ["randomized-response", "unary-encoding", "local-hashing", "subset-selection"]
)
def test_estimators_have_the_variance_that_the_literature_gives(name, epsilon, monkeypatch):
    """Wang et al. (2017), as in multi-freq-ldpy's ``VAR_Pure``, per user, for a label that a share f has:

    ``q (1 - q) / (p - q)^2 + f (1 - p - q) / (p - q)``

    where a message fits the user's own label with probability p and another label with q. Their p and q:
    GRR ``e^eps / (e^eps + M - 1)`` and ``1 / (e^eps + M - 1)``; OUE 1/2 and ``1 / (e^eps + 1)``; OLH
    ``e^eps / (e^eps + g - 1)`` and 1/g with ``g = round(e^eps) + 1``; SS with w labels in a set,
    ``w e^eps / (w e^eps + M - w)`` and ``((w - 1) p + w (1 - p)) / (M - 1)``. Here they are found by
    listing all messages, and so is the variance of ``(fits - q) / (p - q)``.
    """
    monkeypatch.setattr(local_hashing, "MOST_MESSAGES", 300_000)  # all hashes
    channel = ldp_gym.CHANNELS[name](2, LABELS, 50, epsilon=epsilon)
    law = np.full(LABELS, (1 - FREQUENCY) / (LABELS - 1))
    law[0] = FREQUENCY
    listed = channel.list_messages(np.stack([law, law]))
    assert listed.complete
    log_density = channel.log_density(listed.messages, np.stack([law, law]))
    density = np.exp(log_density + listed.log_weights[:, None])
    fits = log_density[:, 0] > log_density.min(axis=-1) + epsilon / 2
    fits |= (log_density.max(axis=-1) - log_density.min(axis=-1) < 1e-9) & _says_yes(name, listed.messages)
    own, other = density[fits, 0].sum(), density[fits, 1:].sum() / (LABELS - 1)
    variance = FREQUENCY * own * (1 - own) + (1 - FREQUENCY) * other * (1 - other)
    variance /= (own - other) ** 2

    e = math.exp(epsilon)
    buckets, size = round(e) + 1, max(1, round(LABELS / (e + 1)))
    p, q = {
        "randomized-response": (e / (e + LABELS - 1), 1 / (e + LABELS - 1)),
        "unary-encoding": (0.5, 1 / (e + 1)),
        "local-hashing": (e / (e + buckets - 1), 1 / buckets),
        "subset-selection": (size * e / (size * e + LABELS - size), None),
    }[name]
    q = ((size - 1) * p + size * (1 - p)) / (LABELS - 1) if q is None else q
    published = q * (1 - q) / (p - q) ** 2 + FREQUENCY * (1 - p - q) / (p - q)
    # Two labels collide a little less often under the hash than the 1/g of the formula.
    assert variance == pytest.approx(published, rel=0.05 if name == "local-hashing" else 1e-9)
    assert variance <= published * (1 + 1e-9)


def _says_yes(name, messages):
    """Of messages that fit all labels or none: which fit the first."""
    return messages[:, 0] == 1 if name == "unary-encoding" else np.zeros(len(messages), dtype=bool)


def test_unary_encoding_is_subset_selection_of_random_size():
    """Given the number of ones, all sets of this size are alike but for whether they hold the label."""
    channel = ldp_gym.CHANNELS["unary-encoding"](2, 6, 50, epsilon=1.3)
    table = np.full((2, 6), 1 / 6)
    messages = channel.list_messages(table).messages
    density = np.exp(channel.log_density(messages, table))
    for size in range(7):
        rows = messages.sum(axis=-1) == size
        total = density[rows].sum(axis=0)
        np.testing.assert_allclose(total, total[0])  # the size says nothing about the label
        for held, value in ((1, math.exp(1.3)), (0, 1.0)):
            values = density[rows][messages[rows] == held]
            np.testing.assert_allclose(values, values[0] if len(values) else value)


def test_hashes_are_those_of_the_formula():
    channel = ldp_gym.CHANNELS["local-hashing"](2, 300, 50, epsilon=1.0)
    assert (channel.num_buckets, channel.prime) == (4, 307)
    message = np.array([10, 5, 2])
    table = np.full((2, 300), 1 / 300)
    members = [y for y in range(300) if (11 * y + 5) % 307 % 4 == 2]
    density = channel.log_density(message, table)
    assert np.flatnonzero(density == density.max()).tolist() == members
    assert np.exp(density).max() == pytest.approx(math.e / (math.e + 3))


def test_there_are_no_more_buckets_than_labels():
    assert ldp_gym.CHANNELS["local-hashing"](2, 5, 50, epsilon=800.0).num_buckets == 5
