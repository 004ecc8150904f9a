"""The channel that is designed for the candidates: its optimum, its privacy, its games, any processor."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize

import ldp_gym
from ldp_gym.channels import designed
from ldp_gym.channels.designed import Designed
from ldp_gym.core.divergences import kl
from ldp_gym.core.errors import IncompatibleChannelError

POOL = {"nature": "cycle", "nature_kwargs": {"pool_size": 3}, "num_labels": 5, "num_hypotheses": 3}


def random_table(size, labels, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(labels, 0.4), size=size)


def cost_of(laws, table, horizon):
    """J from the laws ``(N, K)`` of a channel's messages, written out."""
    total = 0.0
    for i, f in enumerate(table):
        for j, g in enumerate(table):
            if i != j:
                information = float(np.sum(laws[:, i] * np.log(laws[:, i] / laws[:, j])))
                total += float(kl(f, (f + g) / 2)) / (1 / horizon + information)
    return total


def laws_of(design, table, epsilon):
    low = math.exp(-epsilon)
    return design.masses[:, None] * (low + (1 - low) * design.sets @ table.T)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_design_is_the_optimum_of_a_general_solver(epsilon):
    """SLSQP over the masses of all 14 sets of four labels, from several starts."""
    table, low = random_table(3, 4), math.exp(-epsilon)
    sets = ((np.arange(1, 15)[:, None] >> np.arange(4)) & 1).astype(float)
    raised = low + (1 - low) * sets

    def cost(masses):
        return cost_of(np.maximum(masses, 1e-12)[:, None] * (low + (1 - low) * sets @ table.T), table, 500)

    best = np.inf
    for seed in range(3):
        start = np.random.default_rng(seed).random(14)
        found = minimize(
            cost,
            start / (start @ raised).mean(),
            bounds=[(0, None)] * 14,
            constraints={"type": "eq", "fun": lambda c: c @ raised - 1},
            options={"maxiter": 200},
        )
        if np.abs(found.x @ raised - 1).max() < 1e-7:
            best = min(best, found.fun)
    made = Designed(3, 4, 500, epsilon=epsilon).design(table)
    assert made.cost == pytest.approx(cost_of(laws_of(made, table, epsilon), table, 500), rel=1e-9)
    assert made.gap < 4e-3
    assert best * (1 + 1e-6) >= made.cost * (1 - made.gap)  # the gap is a proof
    assert made.cost <= best * (1 + 4e-3)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_channel_of_the_package_costs_less(epsilon):
    """Every pure non-adaptive channel: its exact cost is above the proved least."""
    table = random_table(4, 6, seed=1)
    made = Designed(4, 6, 1000, epsilon=epsilon).design(table)
    assert made.gap < 4e-3
    for name in ldp_gym.CHANNELS:
        maker = ldp_gym.CHANNELS[name]
        if maker.adaptive or not maker.pure or name in ("identity", "laplace-single"):
            continue
        channel = maker(4, 6, 1000, epsilon=epsilon)
        listed = channel.list_messages(table)
        laws = np.exp(channel.log_likelihood(listed.messages, table) + listed.log_weights[:, None])
        assert cost_of(laws[laws.min(axis=-1) > 0.0], table, 1000) >= made.cost * (1 - made.gap) * (1 - 1e-9)


def test_with_many_labels_it_tells_more_than_other_channels_that_are_not_adaptive():
    """Exact costs J of the designs of two tables at M = 64, against 'split', 'vote' and 'wheel'."""
    for seed in range(2):
        table = np.random.default_rng(seed).dirichlet(np.full(64, 0.3), size=8)
        own = Designed(8, 64, 1000, epsilon=1.0).design(table)
        assert own.gap is None
        for name in ("split", "vote", "wheel"):
            channel = ldp_gym.CHANNELS[name](8, 64, 1000, epsilon=1.0)
            listed = channel.list_messages(table)
            laws = np.exp(channel.log_likelihood(listed.messages, table) + listed.log_weights[:, None])
            assert own.cost < 0.97 * cost_of(laws[laws.min(axis=-1) > 0.0], table, 1000)


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 12.0, 800.0])
@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (4, 30), (2, 30)])
def test_masses_cover_all_labels_alike_and_the_cost_is_that_of_the_true_eps(shape, epsilon):
    table, low = random_table(*shape), math.exp(-epsilon)
    made = Designed(*shape, 100, epsilon=epsilon).design(table)
    np.testing.assert_allclose(made.masses @ (low + (1 - low) * made.sets), 1.0, rtol=1e-12)
    assert (made.masses > 0.0).all()
    assert len(made.masses) <= 128 + shape[1] // 2
    laws = np.maximum(laws_of(made, table, epsilon), 1e-300)
    assert made.cost == pytest.approx(cost_of(laws, table, 100), rel=1e-6)


def test_labels_that_are_cut_into_parts_change_nothing():
    """Parts of unequal sizes, in any order: all parts of a label are in a set, or none; the same cost."""
    table, rng = random_table(4, 6), np.random.default_rng(1)
    label, shares = rng.permutation(np.repeat(np.arange(6), 5)), rng.random(30)
    cut = table[:, label] * (shares / np.bincount(label, shares)[label])
    whole, parts = (Designed(4, t.shape[1], 1000).design(t) for t in (table, cut))
    assert parts.cost == pytest.approx(whole.cost, rel=1e-3)
    assert parts.gap is not None
    for y in range(6):
        assert (parts.sets[:, label == y].std(axis=1) == 0.0).all()


def test_a_design_hardly_depends_on_the_order_of_the_hypotheses():
    table, order = random_table(4, 6), [2, 0, 1, 3]
    first, second = (Designed(4, 6, 100).design(t).cost for t in (table, table[order]))
    assert first == pytest.approx(second, rel=1e-3)


@pytest.mark.parametrize(
    "table", [np.full((3, 5), 0.2), np.eye(3)[[0, 0, 1]], np.full((3, 40), 1 / 40), np.eye(16)]
)
def test_equal_and_symmetric_hypotheses_have_a_design(table):
    channel = Designed(*table.shape, 100)
    made = channel.design(table)
    assert len(made.masses) >= 2
    assert np.isfinite(made.cost)
    assert ldp_gym.audit.certify(channel, table).holds


PROGRAM = """
import sys
import numpy as np
from ldp_gym.channels.designed import Designed
rng, out = np.random.default_rng(5), {}
shapes = [(8, 10, 0.3), (3, 36, 0.1), (11, 14, 1.0), (6, 50, 0.3)]
tables = [rng.dirichlet(np.full(m, a), size=k) for k, m, a in shapes]
tables += [np.eye(8), np.eye(12), 0.3 * np.eye(12) + 0.7 / 12, np.kron(tables[0], [[0.5, 0.5]])]
tables += [np.concatenate([tables[0], tables[0][:1]]), np.full((3, 20), 0.05)]
for i, table in enumerate(tables):
    channel = Designed(*table.shape, 1000, epsilon=(1.0, 4.0, 0.1)[i % 3])
    made, labels = channel.design(table), rng.integers(table.shape[1], size=2000)
    out[f"{i}/design"] = np.column_stack([made.sets, made.masses])
    out[f"{i}/messages"] = channel.encode(labels, table, rng.random((2000, 1)))
np.savez(sys.argv[1], **out)
"""


def test_every_processor_finds_the_same_design(tmp_path):
    """Another processor, played by older instructions in NumPy and OpenBLAS: sets and messages are equal."""
    from numpy._core._multiarray_umath import __cpu_features__

    newer = ("AVX512F", "AVX512CD", "AVX512_SKX", "AVX512_CLX", "AVX512_CNL", "AVX512_ICL", "AVX2", "FMA3")
    disabled = " ".join(name for name in newer if __cpu_features__.get(name))
    other = {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": disabled}
    results = []
    for name, extra in (("this", {}), ("other", other)):
        path = tmp_path / f"{name}.npz"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **extra}
        subprocess.run([sys.executable, "-c", PROGRAM, str(path)], env=environment, check=True)
        results.append(np.load(path))
    this, other = results
    for key in this.files:
        np.testing.assert_allclose(this[key], other[key], rtol=0.0, atol=0 if "messages" in key else 1e-9)


@pytest.mark.parametrize("labels", [2, 9, 40])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_its_certificate_is_exact(labels, epsilon):
    table = np.random.default_rng(labels).dirichlet(np.full(labels, 0.3), size=4)
    certificate = ldp_gym.audit.certify(Designed(4, labels, 100, epsilon=epsilon), table)
    assert certificate.holds
    assert certificate.epsilon == pytest.approx(epsilon, rel=1e-12)


def test_messages_follow_the_distribution_functions():
    """By hand: the number at which a label's cumulative density first exceeds the uniform."""
    channel, rng = Designed(3, 5, 100, epsilon=1.0), np.random.default_rng(0)
    table = rng.dirichlet(np.ones(5), size=3)
    density = np.exp(channel.log_density(np.arange(channel.num_messages), table))
    assert (density > 0.0).all()
    np.testing.assert_allclose(density.sum(axis=0), 1.0)
    labels, uniforms = rng.integers(5, size=500), rng.random((500, 1))
    by_hand = [
        int(np.searchsorted(np.cumsum(density[:, y]), u)) for y, u in zip(labels, uniforms[:, 0], strict=True)
    ]
    assert channel.encode(labels, table, uniforms).tolist() == by_hand
    last = channel.encode(np.arange(5), table, np.full((5, 1), 1.0 - 2.0**-53))
    assert (last == channel.num_messages - 1).all()


def test_tables_of_a_batch_each_have_their_own_design():
    channel, rng = Designed(3, 5, 100, epsilon=1.0), np.random.default_rng(1)
    tables, which = rng.dirichlet(np.ones(5), size=(4, 3)), rng.integers(4, size=(6, 7))
    labels, uniforms = rng.integers(5, size=(6, 7)), rng.random((6, 7, 1))
    messages = channel.encode(labels, tables[which], uniforms)
    losses = channel.loss_estimates(messages, tables[which])
    for i, j in np.ndindex(6, 7):
        alone = tables[which[i, j]]
        assert channel.encode(labels[i, j], alone, uniforms[i, j]) == messages[i, j]
        np.testing.assert_allclose(channel.loss_estimates(messages[i, j], alone), losses[i, j])


def test_it_is_designed_once_and_kept():
    designed._make_plan.cache_clear()
    result = ldp_gym.evaluate("bayes", {**POOL, "channel": "designed", "horizon": 30}, episodes=4)
    again = ldp_gym.evaluate("bayes", {**POOL, "channel": "designed", "horizon": 30}, episodes=4)
    assert designed._make_plan.cache_info().misses == 3  # a design per context of the pool
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


@pytest.mark.parametrize("shape", [(4, 65), (33, 8), (3000, 16)])
def test_tables_that_are_too_large_are_refused_with_what_to_do(shape):
    with pytest.raises(ValueError, match=r"at most 64 labels and 32 hypotheses, got .*'split' and 'wheel'"):
        Designed(*shape, 100)
