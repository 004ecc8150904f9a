"""The channels' laws against brute force."""

import math

import numpy as np
import pytest
from helpers import CHANNELS, TABLE, make_channel

import ldp_gym
from ldp_gym import theory
from ldp_gym.channels.two_level import log_mixture
from ldp_gym.privacy.audit import certify, estimate_epsilon, uniform_posterior
from ldp_gym.testing import check_channel


@pytest.mark.parametrize(("labels", "epsilon"), [(5, 1e-6), (5, 0.5), (5, 4.0), (5, 800.0), (70, 1.0)])
@pytest.mark.parametrize("name", CHANNELS)
def test_every_channel_keeps_the_contract(name, labels, epsilon):
    """Fails a correct channel with probability at most 1e-6. Above 64 labels some are checked."""
    labels = min(labels, ldp_gym.CHANNELS[name].most_labels or labels)
    channel = make_channel(name, 3, labels, 50, epsilon=epsilon)
    check_channel(channel, samples=20_000)
    if channel.pure:
        table = np.random.default_rng(0).dirichlet(np.full(labels, 0.3), size=3)
        table[:, 0] = 0.0  # a label that nobody allows
        table /= table.sum(axis=-1, keepdims=True)
        assert certify(channel, table, uniform_posterior(channel)).holds


@pytest.mark.parametrize("name", CHANNELS)
def test_what_a_user_hands_over_is_checked(name):
    channel = make_channel(name, 3, 4, 50)
    rng, public = np.random.default_rng(0), np.array([0.2, 0.5, 0.3])
    for labels in (-1, 4, [0, 7], 1.5):
        with pytest.raises((TypeError, ValueError), match="labels must"):
            channel.privatize(labels, TABLE, rng, public)
    for candidates in (TABLE * 2.0, TABLE[:2], np.full((3, 4), math.nan)):
        with pytest.raises(ValueError, match="hypothesis 0|candidates must have shape"):
            channel.privatize(1, candidates, rng, public)
    calls = [
        lambda posterior: channel.privatize(1, TABLE, rng, posterior),
        lambda posterior: estimate_epsilon(channel, TABLE, 1000, posterior=posterior),
        lambda posterior: theory.information_rate(channel, TABLE, posterior),
    ]
    for call in calls + [lambda posterior: certify(channel, TABLE, posterior)] * channel.pure:
        for posterior in (np.full(3, math.nan), [1.0], [0.5, 0.5, 0.5], [1.5, -0.5, 0.0]):
            with pytest.raises(ValueError, match="posterior"):
                call(posterior)
    assert channel.privatize(np.uint8(1), TABLE, rng, public).shape == channel.message_shape


@pytest.mark.parametrize("name", CHANNELS)
def test_labels_candidates_coins_and_losses_broadcast(name):
    channel = make_channel(name, 3, 4, 50)
    rng = np.random.default_rng(0)
    coins = rng.random((6, 5, channel.num_uniforms))
    spread = np.broadcast_to(TABLE, (6, 1, 3, 4))
    public = np.array([0.2, 0.5, 0.3]) if channel.adaptive else None
    expected = channel.encode(np.full((6, 5), 2), np.broadcast_to(TABLE, (6, 5, 3, 4)), coins, public)
    np.testing.assert_allclose(channel.encode(2, TABLE, coins, public), expected)
    np.testing.assert_allclose(channel.encode(np.full(5, 2), spread, coins, public), expected)
    tables = np.random.default_rng(1).dirichlet(np.ones(4), size=(2, 3))
    which = rng.integers(2, size=(6, 5))
    messages = channel.encode(2, tables[which], coins, public)
    losses = channel.loss_estimates(messages, tables[which], public)
    for i in np.ndindex(6, 5):
        alone = channel.loss_estimates(messages[i], tables[which[i]], public)
        np.testing.assert_allclose(alone, losses[i], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("laplace-single", {"epsilon": 0.0}, "epsilon must be positive and finite, got 0"),
        ("laplace-single", {"epsilon": math.nan}, "epsilon must be a number, got NaN"),
        ("laplace-single", {"delta": 1e-5}, "pure channel: it takes delta=0 only, got 1e-05"),
        ("laplace-vector", {"delta": 0.0}, "needs delta > 0"),
        ("laplace-vector", {"delta": 1.0}, r"delta must lie in \[0, 1\), got 1"),
        ("laplace-single", {"gamma": -1.0}, "gamma must be positive"),
        ("laplace-single", {"calibration": "loose"}, "calibration must be one of paper, tight, got 'loose'"),
        ("laplace-single", {"clipping": "round"}, "continuous, paper, got 'round'"),
        ("adaptive-groups", {"posterior_rate": 0.0}, "posterior_rate must be positive"),
        ("adaptive-groups", {"posterior_share": 1.0}, "posterior_share must"),
        ("one-bit", {"epsilon": 1e-310}, "beyond the floats: raise epsilon"),
        ("hybrid", {"epsilon": 1e-310}, "beyond the floats: raise epsilon"),
        ("gaussian-vector", {"epsilon": 1e18, "delta": 1e-5}, "epsilon must be positive and at most"),
        ("randomized-response", {"horizon": 1}, r"horizon \(T\) must be at least 2, got 1"),
        ("randomized-response", {"num_hypotheses": 1}, r"num_hypotheses \(K\) must be at least 2, got 1"),
    ],
)
def test_bad_parameters_are_named(name, options, message):
    facts = {"num_hypotheses": 3, "num_labels": 4, "horizon": 10, "delta": 0.0, **options}
    with pytest.raises(ValueError, match=message):
        ldp_gym.CHANNELS[name](**facts)


@pytest.mark.parametrize("name", [name for name in CHANNELS if ldp_gym.CHANNELS[name].reveals_losses])
def test_what_is_known_of_a_loss_s_size_is_its_size(name):
    channel = make_channel(name, 3, 5, 50, epsilon=2.0)
    table = np.random.default_rng(2).dirichlet(np.ones(5), size=3)
    public = np.full(3, 1 / 3) if channel.adaptive else None
    rng = np.random.default_rng(0)
    messages = channel.privatize(rng.integers(5, size=50_000), table, rng, public)
    estimates = channel.loss_estimates(messages, table, public)
    spread = estimates.var(axis=0).mean()
    known = channel.loss_variance(table)
    assert spread < 1.05 * known
    # The wheel's losses are in (0, 1], and the bound is for any in [-1, 1].
    assert spread > (0.05 if "wheel" in name else 0.2) * known


def test_log_densities_stay_finite_where_rounding_leaves_the_unit_interval():
    for epsilon in (1.0, 60.0, 800.0):
        density = log_mixture(np.array([1.0 + 1e-12, -1e-12]), 0.0, epsilon)
        np.testing.assert_allclose(density, [0.0, -epsilon], atol=1e-9)
