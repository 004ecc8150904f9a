"""Uniforms, draws, random streams and seeds: no two collide, and the same seed gives the same."""

import inspect

import numpy as np
import pytest
from gymnasium.utils.seeding import np_random
from scipy.special import ndtri

import ldp_gym
from ldp_agents.rl import score_policy
from ldp_gym.core import sampling
from ldp_gym.core.sampling import Purpose
from ldp_gym.core.seed_ranges import TEST, TRAINING, VALIDATION, untrained_seed
from ldp_gym.datasets import write_dataset
from ldp_gym.engine.scenario import episode_generator, first_generator
from ldp_gym.hypotheses import Dirichlet, SoftmaxLinear
from ldp_gym.natures import Cycle


class Zeros:
    """A generator whose every draw is the one that U(0, 1) must not have."""

    def random(self, out):
        out[:] = 0.0


def test_uniforms_are_never_0():
    assert (sampling.open_uniforms([Zeros(), Zeros()], (3, 2)) > 0.0).all()


@pytest.mark.parametrize(
    ("uniform", "index"), [(0.2, 0), (0.25, 1), (0.49, 1), (0.5, 3), (0.999, 3)]
)
def test_an_index_begins_where_the_one_before_ends(uniform, index):
    """Probabilities 1/4, 1/4, 0, 1/2: index 1 holds [0.25, 0.5), index 2 nothing."""
    law = sampling.cumulative(np.array([0.25, 0.25, 0.0, 0.5]))
    assert sampling.inverse(law, np.array([uniform])).tolist() == [index]


def test_the_least_uniform_draws_no_index_of_probability_0():
    assert sampling.categorical(np.array([0.0, 1.0]), np.array([2.0**-54])).tolist() == [1]


def test_streams_drawn_ahead_give_the_generators_own_numbers_and_no_more():
    """1,024 numbers are drawn ahead, 341 rounds: blocks end before, at and beyond what is left of them."""
    expected = np.stack([np.random.default_rng(seed).random((700, 3)) for seed in range(3)])
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    streams, begin = sampling.UniformStreams(rngs, 3), 0
    for rounds in (1, 340, 300, 59):
        if begin == 341:
            streams.keep(np.array([0, 2]))
            expected = expected[[0, 2]]
        part = streams.take(rounds, most=700 - begin)
        np.testing.assert_array_equal(part, expected[:, begin : begin + rounds])
        assert part.strides[1] == 8
        begin += rounds
    for seed, drawn in ((0, 700), (1, 341), (2, 700)):
        rest = np.random.default_rng(seed).random(3 * drawn + 1)[-1]
        assert rngs[seed].random() == rest


def test_a_distribution_function_does_not_depend_on_the_number_of_rows():
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=2000)
    sums = rows.cumsum(axis=1)
    np.testing.assert_array_equal(sampling.cumulative(rows), sums / sums[:, 2:])
    np.testing.assert_array_equal([sampling.cumulative(row) for row in rows], sums / sums[:, 2:])


def test_the_least_prime_has_no_divisor():
    primes = np.array([n for n in range(2, 1100) if all(n % d for d in range(2, min(n, 34)))])
    assert [sampling.least_prime(n) for n in range(1000)] == [
        primes[primes >= n][0] for n in range(1000)
    ]


def test_keys_of_purposes_are_beyond_all_episodes():
    """An episode's key is its number, below 2^31."""
    keys = [purpose.value for purpose in Purpose if purpose.value != ()]
    assert all(key[0] >= 2**31 for key in keys)


def test_no_two_streams_collide():
    """Purposes, episodes and seeds: the first 63 bits of all are different, by chance to within 1e-14."""
    first_numbers = []
    for seed in (*range(100), 2**32 - 1, 2**32, 2**63):
        streams = [sampling.stream(purpose, seed) for purpose in Purpose]
        streams.append(first_generator(seed))
        for episode in (1, 2, 3):
            child = np.random.SeedSequence(seed, spawn_key=(episode,))
            streams.append(np.random.default_rng(child))
        first_numbers += [int(generator.integers(2**63)) for generator in streams]
    assert len(set(first_numbers)) == len(first_numbers)


@pytest.mark.parametrize("seed", range(10))
def test_a_pool_is_no_part_of_the_class_of_any_seed(seed):
    """Under the plain seed the pool was the weights of hypotheses 0 and 1."""
    weights = SoftmaxLinear(8, 16, 4, class_seed=seed).weights.reshape(-1, 4)
    for pool_seed in range(10):
        pool = Cycle(4, pool_size=32, pool_seed=pool_seed).pool
        assert not np.isin(pool, weights).any()


def test_pools_of_different_seeds_share_no_number():
    pools = [Cycle(4, pool_size=32, pool_seed=seed).pool for seed in range(10)]
    assert len(np.unique(np.concatenate(pools))) == 10 * 32 * 4


def test_the_dirichlet_class_keeps_the_plain_seed():
    """Same seeds, same games: the table of class_seed=0 is that of the first version."""
    expected = np.random.default_rng(0).dirichlet(np.full(16, 0.3), size=8)
    np.testing.assert_allclose(Dirichlet(class_seed=0)(np.zeros(1)), expected, rtol=1e-14)


def test_the_softmax_linear_class_keeps_the_plain_seed():
    weights = np.random.default_rng(5).standard_normal((8, 16, 4))
    np.testing.assert_array_equal(SoftmaxLinear(class_seed=5).weights, weights)


@pytest.mark.parametrize("seed", [0, 7, 2**40])
def test_the_first_episode_is_drawn_by_the_first_child_of_gymnasium_s_generator(seed):
    generator, _ = np_random(seed)
    expected = episode_generator(generator).random(5)
    np.testing.assert_array_equal(first_generator(seed).random(5), expected)


@pytest.mark.parametrize("seed", [0, 7, 2**40])
def test_an_episode_draws_the_truth_and_then_the_context(seed):
    """One number for the truth, which is not shown, then one for each coordinate of the context."""
    env = ldp_gym.LDPDistEnv(horizon=5, context_dim=4)
    observation, _ = env.reset(seed=seed)
    drawn = first_generator(seed).random(5)
    np.testing.assert_allclose(observation["context"], ndtri(drawn[1:]), rtol=1e-9)


def test_seeds_of_tests_begin_at_0():
    assert TEST.start == 0
    assert TEST.stop > 0


def test_seeds_of_validation_follow_those_of_tests():
    assert VALIDATION.start == TEST.stop
    assert len(VALIDATION) > 0


def test_seeds_of_training_follow_those_of_validation():
    assert TRAINING.start == VALIDATION.stop
    assert TRAINING.stop > 2**61


@pytest.mark.parametrize(
    ("call", "purpose"),
    [(ldp_gym.evaluate, TEST), (score_policy, TEST), (write_dataset, TRAINING)],
)
def test_a_default_seed_has_its_purpose(call, purpose):
    assert inspect.signature(call).parameters["seed"].default in purpose


def test_a_score_may_end_before_the_seeds_of_training():
    """Ten episodes, of which the last has the seed 2,999,999."""
    assert untrained_seed(2_999_990, 10) == 2_999_990


def test_the_last_episode_of_a_score_is_not_for_training():
    message = "from 3,000,000 on are for training, got 3,000,000 for the last"
    with pytest.raises(ValueError, match=message):
        untrained_seed(2_999_991, 10)


def test_a_score_of_no_episodes_is_refused():
    with pytest.raises(ValueError, match="episodes"):
        untrained_seed(0, 0)
