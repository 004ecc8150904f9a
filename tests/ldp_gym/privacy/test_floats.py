"""Messages that exclude labels in floating-point arithmetic."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import FINITE, make_channel

from ldp_gym import audit
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.privacy import ExactChannel

TABLE = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])


def judge(channel, table=TABLE, **options):
    posterior = np.full(len(table), 1.0 / len(table)) if channel.adaptive else None
    return audit.reachable(channel, table, posterior, **options)


def test_three_in_a_hundred_messages_of_laplace_single_give_their_label_away():
    """The figure of the design: K = 2, M = 3, T = 100, eps = 1; 3.0%, and 98.7% of those the true one."""
    found = judge(make_channel("laplace-single", 2, 3, 100), messages=6000)
    assert found.judged == 6000
    assert found.verdict == "broken"
    assert not found.labels.all()
    assert 0.02 < found.share < 0.04
    assert 0.97 < found.correct <= 1.0


def test_every_label_sends_every_message_where_h_t_exchanges_it():
    """Once in T: label y sends, bit by bit, what label 0 sends with the same noise."""
    channel, rng = make_channel("laplace-single", 2, 3, 100), np.random.default_rng(0)
    uniforms = rng.random((200, 4))
    uniforms[:, :2] = 0.9, 1e-6
    kept = channel.encode(np.zeros(200, dtype=np.int64), TABLE, uniforms)
    uniforms[:, 0] = 0.5 / 100  # below 1/T: the second uniform picks the new label, here the first
    for label in range(3):
        assert np.array_equal(channel.encode(np.full(200, label), TABLE, uniforms), kept)


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("shape", [(2, 3), (6, 5)])
def test_finite_channels_exclude_no_label(name, shape):
    table = np.random.default_rng(0).dirichlet(np.full(shape[1], 0.5), size=shape[0])
    found = judge(make_channel(name, *shape, 100), table)
    assert found.holds, found
    assert found.share == 0.0


@pytest.mark.filterwarnings("ignore::ldp_gym.NoPrivacyWarning")
def test_what_hides_nothing_gives_every_label_away():
    found = judge(make_channel("identity", 2, 3, 100))
    assert found.verdict == "broken"
    assert found.share == 1.0


def test_a_probability_below_the_step_of_a_uniform_counts_as_zero():
    """At eps = 60 another label is reported with a probability of e^-60; an exact table makes it 2^-64."""
    sharp = make_channel("randomized-response", 2, 3, 100, epsilon=60.0)
    assert judge(sharp).verdict == "broken"
    assert ExactChannel(sharp).table(np.zeros(0), TABLE).counts.min() > 0


class Undeclared(RandomizedResponse):
    """Randomized response in a message space of real numbers."""

    @property
    def message_space(self):
        return gym.spaces.Box(0.0, 2.0, (), dtype=np.float64)


@pytest.mark.parametrize(
    "channel",
    [make_channel("gaussian-vector", 2, 3, 100), make_channel("wheel", 2, 3, 100), Undeclared(2, 3, 9)],
)
def test_other_real_messages_are_not_judged(channel):
    found = judge(channel)
    assert found.verdict == "not judged"
    assert "real numbers" in found.reason
    assert not found.holds


def test_a_certificate_has_both_answers():
    table = np.random.default_rng(0).dirichlet(np.full(16, 0.3), size=8)
    certificate = audit.certify(make_channel("laplace-single", 8, 16, 1000), table)
    assert certificate.holds
    assert certificate.floats.verdict == "broken"
    assert audit.certify(make_channel("split", 8, 16, 1000), table).floats.holds
    assert audit.Certificate(1.0, 0.0, 1.0, 0.0, "by hand").floats.verdict == "not judged"


def test_candidates_and_posteriors_are_checked():
    channel = make_channel("split", 2, 3, 100)
    with pytest.raises(ValueError, match="shape"):
        audit.reachable(channel, np.full((3, 3), 1 / 3))
    with pytest.raises(ValueError, match="posterior"):
        audit.reachable(channel, TABLE, [0.5, 0.6])
    with pytest.raises(ValueError, match="an audit is at one public posterior. Pass posterior="):
        audit.reachable(make_channel("adaptive-split", 2, 3, 100), TABLE)
