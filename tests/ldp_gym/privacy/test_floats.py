"""What floats give away: convictions, acquittals, and what cannot be judged."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import FINITE, make_channel
from scipy import stats

import ldp_gym
from ldp_gym import audit
from ldp_gym.channels.base import Channel
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.privacy.replay import ReplayGenerator

TABLE = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
WHEELS = ("wheel", "adaptive-wheel")
REAL = ("gaussian-vector", "hybrid", "laplace-single", "laplace-vector")


def judge(channel, table=TABLE, **options):
    posterior = np.full(len(table), 1.0 / len(table)) if channel.adaptive else None
    return audit.reachable(channel, table, posterior, **options)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_channels_with_noise_in_floats_are_convicted(name, seed):
    table = np.random.default_rng(seed).dirichlet(np.full(4, 0.5), size=3)
    found = judge(make_channel(name, 3, 4, 100), table, messages=400, seed=seed)
    assert found.verdict == "broken"
    assert not found.labels.all()


def test_three_in_a_hundred_messages_of_laplace_single_give_their_label_away():
    """The figure of the design: K = 2, M = 3, T = 100, eps = 1; 3.0%, and 98.7% of those the true one."""
    found = judge(make_channel("laplace-single", 2, 3, 100), messages=6000)
    assert found.judged == 6000
    assert 0.02 < found.share < 0.04
    assert 0.97 < found.correct <= 1.0


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("shape", [(2, 3), (6, 5)])
def test_finite_channels_are_acquitted_and_so_is_all_that_is_deployed(name, shape):
    table = np.random.default_rng(0).dirichlet(np.full(shape[1], 0.5), size=shape[0])
    channel = make_channel(name, *shape, 100)
    for one in (channel, ExactChannel(channel)):
        found = judge(one, table)
        assert found.holds, found
        assert found.share == 0.0


@pytest.mark.parametrize("name", WHEELS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_wheels_send_a_grid_and_no_message_excludes_a_label(name, size):
    table = np.random.default_rng(1).dirichlet(np.full(4, 0.5), size=size)
    found = judge(make_channel(name, size, 4, 100), table, messages=60)
    assert found.holds, found
    assert "grid" in found.reason


@pytest.mark.filterwarnings("ignore::ldp_gym.NoPrivacyWarning")
def test_what_hides_nothing_gives_every_label_away():
    found = judge(make_channel("identity", 2, 3, 100))
    assert found.verdict == "broken"
    assert found.share == 1.0


def test_a_probability_that_no_uniform_reaches_is_none():
    """At eps = 60 another label is reported with a probability of e^-60: never, by a uniform of 53 bits."""
    sharp = make_channel("randomized-response", 2, 3, 100, epsilon=60.0)
    assert judge(sharp).verdict == "broken"
    assert judge(ExactChannel(sharp)).holds


class Noisy(Channel):
    """A channel of one's own: the label plus Laplace noise, by inverse transform."""

    num_uniforms = 1

    @property
    def message_space(self):
        return gym.spaces.Box(-np.inf, np.inf, (), dtype=np.float64)

    def encode(self, labels, candidates, uniforms, posterior=None):
        return stats.laplace.ppf(uniforms[..., 0], loc=labels, scale=2.0 / self.epsilon)

    def log_density(self, messages, candidates, posterior=None):
        return stats.laplace.logpdf(messages[..., None], np.arange(self.num_labels), 2.0 / self.epsilon)


class NumPyNoise(Noisy):
    def privatize(self, labels, candidates, rng, posterior=None):
        return np.asarray(labels) + rng.laplace(scale=2.0 / self.epsilon, size=np.shape(labels))


class NumPyNoiseByLocation(Noisy):
    def privatize(self, labels, candidates, rng, posterior=None):
        return rng.laplace(np.asarray(labels, dtype=float), 2.0 / self.epsilon)


class Chaotic(Noisy):
    def encode(self, labels, candidates, uniforms, posterior=None):
        seeds = np.asarray(uniforms[..., 0] * 2.0**53).astype(np.int64)
        noise = np.vectorize(lambda seed: np.random.default_rng(seed).laplace())(seeds)
        return labels + noise


class Careless(Noisy):
    def encode(self, labels, candidates, uniforms, posterior=None):
        return labels + np.random.default_rng().laplace(size=np.shape(labels))


class Ziggurat(Noisy):
    def privatize(self, labels, candidates, rng, posterior=None):
        return labels + rng.normal(size=np.shape(labels))


class Rounded(Noisy):
    """The same noise in steps of 1/64: every step can be reached from every label."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        return np.round(super().encode(labels, candidates, uniforms) * 64.0) / 64.0


class Undeclared(RandomizedResponse):
    """Two values of a real message space, and it does not say that they are all."""

    @property
    def message_space(self):
        return gym.spaces.Box(0.0, 2.0, (), dtype=np.float64)


@pytest.mark.parametrize("kind", [Noisy, NumPyNoise, NumPyNoiseByLocation])
def test_laplace_noise_in_a_channel_of_ones_own_is_convicted(kind):
    found = judge(kind(2, 3, 100, epsilon=1.0), messages=1000)
    assert found.verdict == "broken"
    assert found.share > 0.0


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Chaotic, "could be followed"),
        (Careless, "do not follow from the uniforms"),
        (Ziggurat, "rng.normal"),
        (Undeclared, "does not list them"),
    ],
)
def test_what_cannot_be_told_is_not_judged(kind, reason):
    found = judge(kind(2, 3, 100, epsilon=1.0), messages=60)
    assert found.verdict == "not judged"
    assert reason in found.reason
    assert not found.holds


def test_noise_that_is_rounded_is_not_convicted():
    assert judge(Rounded(2, 3, 100, epsilon=1.0), messages=300).verdict != "broken"


def test_the_replayed_laplace_noise_is_numpys_own():
    uniforms = np.random.default_rng(5).random((1000, 1))
    replayed = ReplayGenerator(uniforms, np.random.default_rng()).laplace(0.3, 2.0, size=1000)
    assert np.allclose(replayed, np.random.default_rng(5).laplace(0.3, 2.0, size=1000), rtol=1e-13)


def test_a_certificate_has_both_answers():
    table = np.random.default_rng(0).dirichlet(np.full(16, 0.3), size=8)
    certificate = audit.certify(make_channel("laplace-single", 8, 16, 1000), table)
    assert certificate.holds
    assert certificate.floats.verdict == "broken"
    assert audit.certify(make_channel("split", 8, 16, 1000), table).floats.holds
    assert audit.Certificate(1.0, 0.0, 1.0, 0.0, "by hand").floats.verdict == "not judged"
    server = ldp_gym.deploy.Server({"hypotheses": table.tolist(), "channel": "vote"})
    server.question()
    assert server.certificate.holds
    assert server.certificate.floats.holds


def test_candidates_and_posteriors_are_checked():
    channel = make_channel("split", 2, 3, 100)
    with pytest.raises(ValueError, match="shape"):
        audit.reachable(channel, np.full((3, 3), 1 / 3))
    with pytest.raises(ValueError, match="posterior"):
        audit.reachable(channel, TABLE, [0.5, 0.6])
    with pytest.raises(ValueError, match="an audit is at one public posterior. Pass posterior="):
        audit.reachable(make_channel("adaptive-split", 2, 3, 100), TABLE)
