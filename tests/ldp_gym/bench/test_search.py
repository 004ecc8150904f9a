import numpy as np
import pytest
from context_search import hardest_contexts

import ldp_gym

GAME = {"num_hypotheses": 3, "num_labels": 4, "context_dim": 2, "horizon": 100, "channel": "split"}
SMALL = {"sequences": 16, "episodes": 8, "generations": 2, "fresh": 100}


def test_what_is_found_costs_more_than_iid_contexts_on_fresh_seeds():
    """The seeds are fixed, so the test cannot fail by chance."""
    found = hardest_contexts(GAME, "bayes", **SMALL)
    again = ldp_gym.evaluate("bayes", found.rules, episodes=100, seed=10**9)
    iid = ldp_gym.evaluate("bayes", GAME, episodes=400, seed=10**9)
    assert found.evaluation.risk > 1.2 * iid.risk
    assert again.risk > 1.2 * iid.risk


def test_a_search_is_a_function_of_its_seed():
    first, again = (hardest_contexts(GAME, "uniform", length=3, **SMALL) for _ in range(2))
    np.testing.assert_array_equal(first.contexts, again.contexts)
    np.testing.assert_array_equal(first.evaluation.kl, again.evaluation.kl)
    assert len(first.contexts) <= 3
    assert not np.array_equal(hardest_contexts(GAME, "uniform", seed=1, **SMALL).contexts, first.contexts)


def test_the_final_episodes_are_none_that_the_search_has_seen():
    """Two rounds of random sequences and two generations have had seeds of their own."""
    search = hardest_contexts(GAME, "uniform", **SMALL)
    expected = ldp_gym.evaluate("uniform", search.rules, episodes=100, seed=4 * 2**20)
    np.testing.assert_array_equal(search.evaluation.kl, expected.kl)


def test_constant_classes_have_no_hard_contexts():
    with pytest.raises(ValueError, match="does not depend on it"):
        hardest_contexts({"hypotheses": "dirichlet"}, "bayes")
