import itertools

import numpy as np

import ldp_gym
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.engine.scenario import first_generator
from ldp_gym.hypotheses import Dirichlet, SoftmaxLinear
from ldp_gym.natures import Cycle


def test_no_two_streams_collide():
    """Purposes, episodes and seeds: the first 64 bits of all are different, by chance to within 1e-14."""
    first = {}
    for seed in (*range(100), 2**32 - 1, 2**32, 2**63):
        for purpose in Purpose:
            first[purpose.name, seed] = int(stream(purpose, seed).integers(2**63))
        first["first episode", seed] = int(first_generator(seed).integers(2**63))
        for episode in range(1, 4):
            child = np.random.SeedSequence(seed, spawn_key=(episode,))
            first["episode", seed, episode] = int(np.random.default_rng(child).integers(2**63))
    assert len(set(first.values())) == len(first)


def test_purposes_have_keys_of_their_own_beyond_all_episodes():
    keys = [purpose.value for purpose in Purpose]
    assert len(set(keys)) == len(keys)
    assert all(key == () or key[0] >= 2**31 for key in keys)


def test_a_pool_is_no_part_of_the_class_of_the_same_seed():
    """Under the plain seed the pool was the weights of hypotheses 0 and 1."""
    for seed in range(10):
        weights = SoftmaxLinear(8, 16, 4, class_seed=seed).weights.reshape(-1, 4)
        pools = [Cycle(4, pool_size=32, pool_seed=other).pool for other in range(10)]
        assert not np.isin(np.concatenate(pools), weights).any()
    for one, other in itertools.combinations(pools, 2):
        assert not np.isin(one, other).any()


def test_classes_keep_the_plain_seed():
    """Same seeds, same games: the tables of class_seed=0 are those of the first version."""
    expected = np.random.default_rng(0).dirichlet(np.full(16, 0.3), size=8)
    np.testing.assert_allclose(Dirichlet(class_seed=0)(np.zeros(1)), expected, rtol=1e-14)
    weights = np.random.default_rng(5).standard_normal((8, 16, 4))
    np.testing.assert_array_equal(SoftmaxLinear(class_seed=5).weights, weights)


def test_the_environment_plays_the_first_stream_of_its_seed():
    env = ldp_gym.LDPDistEnv(horizon=5, nature="iid", context_dim=2)
    observation, _ = env.reset(seed=3)
    from scipy.special import ndtri

    generator = first_generator(3)
    generator.random(1)  # the truth's
    np.testing.assert_allclose(observation["context"], ndtri(generator.random(2)))
