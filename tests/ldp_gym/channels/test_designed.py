"""The channel that is designed for the candidates: its privacy, its games, and that it is made once."""

import numpy as np
import pytest

import ldp_gym
from ldp_gym.channels import designed, extremal
from ldp_gym.channels.designed import Designed
from ldp_gym.core.errors import IncompatibleChannelError
from ldp_gym.testing import check_channel

POOL = {"nature": "cycle", "nature_kwargs": {"pool_size": 3}, "num_labels": 5, "num_hypotheses": 3}


@pytest.mark.parametrize("labels", [2, 9, 40])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_its_certificate_is_exact(labels, epsilon):
    table = np.random.default_rng(labels).dirichlet(np.full(labels, 0.3), size=4)
    certificate = ldp_gym.audit.certify(Designed(4, labels, 100, epsilon=epsilon), table)
    assert certificate.holds
    assert certificate.epsilon == pytest.approx(epsilon, rel=1e-12)


def test_it_keeps_the_contract():
    check_channel(Designed(4, 30, 100, epsilon=1.0))


def test_every_number_is_a_message():
    channel = Designed(3, 5, 100, epsilon=1.0)
    table = np.random.default_rng(0).dirichlet(np.ones(5), size=3)
    density = np.exp(channel.log_density(np.arange(channel.num_messages), table))
    assert (density > 0.0).all()
    np.testing.assert_allclose(density.sum(axis=0), 1.0)


def test_messages_follow_the_distribution_functions():
    """By hand: the number at which a label's cumulative density first exceeds the uniform."""
    channel = Designed(3, 5, 100, epsilon=1.0)
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(5), size=3)
    density = np.exp(channel.log_density(np.arange(channel.num_messages), table))
    labels, uniforms = rng.integers(5, size=500), rng.random((500, 1))
    by_hand = [
        int(np.searchsorted(np.cumsum(density[:, y]), u)) for y, u in zip(labels, uniforms[:, 0], strict=True)
    ]
    assert channel.encode(labels, table, uniforms).tolist() == by_hand


def test_tables_of_a_batch_each_have_their_own_design():
    channel = Designed(3, 5, 100, epsilon=1.0)
    rng = np.random.default_rng(1)
    tables = rng.dirichlet(np.ones(5), size=(4, 3))
    which = rng.integers(4, size=(6, 7))
    labels, uniforms = rng.integers(5, size=(6, 7)), rng.random((6, 7, 1))
    messages = channel.encode(labels, tables[which], uniforms)
    losses = channel.loss_estimates(messages, tables[which])
    for i, j in np.ndindex(6, 7):
        alone = tables[which[i, j]]
        assert channel.encode(labels[i, j], alone, uniforms[i, j]) == messages[i, j]
        np.testing.assert_allclose(channel.loss_estimates(messages[i, j], alone), losses[i, j])


def test_it_is_designed_once_and_kept(monkeypatch):
    made = []
    original = extremal.design
    monkeypatch.setattr(extremal, "design", lambda *arguments: made.append(1) or original(*arguments))
    designed._design.cache_clear()
    designed._plan.cache_clear()
    result = ldp_gym.evaluate("bayes", {**POOL, "channel": "designed", "horizon": 30}, episodes=4)
    again = ldp_gym.evaluate("bayes", {**POOL, "channel": "designed", "horizon": 30}, episodes=4)
    assert len(made) == 3  # a design per context of the pool, for two channels and their learners
    np.testing.assert_array_equal(result.kl, again.kl)


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"nature": "drift"},
        {"nature": "cycle", "nature_kwargs": {"pool_size": 65}},
        {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True},
    ],
)
def test_games_with_many_tables_are_refused_with_the_reason(rules):
    with pytest.raises(IncompatibleChannelError, match="for every table of candidates"):
        ldp_gym.LDPDistEnv(channel="designed", **rules)


def test_too_many_labels_are_refused_with_what_to_do():
    with pytest.raises(ValueError, match=r"4,096 labels at most; got 5,000\. 'split'"):
        Designed(4, 5000, 100)


def test_it_says_how_far_from_the_best_it_is():
    table = np.random.default_rng(0).dirichlet(np.full(10, 0.3), size=8)
    few = Designed(8, 10, 1000).design(table)
    assert few.exact
    assert 0.0 <= few.gap < extremal.GAP
    many = Designed(8, 20, 1000).design(np.random.default_rng(0).dirichlet(np.full(20, 0.3), size=8))
    assert not many.exact


def test_it_tells_more_than_the_best_other_channel_that_is_not_adaptive():
    """Exact costs J of the designs of four tables at M = 64, against 'split', 'vote' and 'wheel'."""
    for seed in range(4):
        table = np.random.default_rng(seed).dirichlet(np.full(64, 0.3), size=8)
        own = Designed(8, 64, 1000, epsilon=1.0).design(table).cost
        for name in ("split", "vote", "wheel"):
            assert own < 0.97 * _cost(ldp_gym.CHANNELS[name](8, 64, 1000, epsilon=1.0), table)


def _cost(channel, table):
    listed = channel.list_messages(table)
    laws = np.exp(channel.log_likelihood(listed.messages, table) + listed.log_weights[:, None])
    logs = np.log(laws, where=laws > 0.0, out=np.zeros_like(laws))
    information = np.einsum("ni,ni->i", laws, logs)[:, None] - laws.T @ logs
    pairs = ~np.eye(len(table), dtype=bool)
    prices = extremal.families.Table(table, 1.0).prices
    return float((prices[pairs] / (information[pairs] + 1 / channel.horizon)).sum())


def test_equal_hypotheses_have_a_design_too():
    """Nothing can be told apart, and nothing is worth anything."""
    certificate = ldp_gym.audit.certify(Designed(3, 4, 50), np.full((3, 4), 0.25))
    assert certificate.holds
