"""What Nature and the users do: the same in any blocks, alone and in a batch."""

import numpy as np
import pytest

import ldp_gym


class Careless(ldp_gym.HypothesisClass):
    """A class whose candidates are what they are told to be."""

    def __init__(self, candidates):
        super().__init__(2, 3, 1)
        self.candidates = np.asarray(candidates)

    def __call__(self, contexts):
        return np.broadcast_to(self.candidates, (*contexts.shape[:-1], *self.candidates.shape))


class Lost(ldp_gym.Nature):
    num_uniforms = 1

    def contexts(self, stretch):
        return np.full((*stretch.uniforms.shape[:2], 1), np.nan)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([[0.5, 0.5, 0.1], [1, 0, 0]], r"Careless\(K=2, M=3, d=1\) gives wrong.*hypothesis 0 sums to 1.1"),
        ([[1, 0, 0], [1.5, -0.5, 0]], "hypothesis 1 has a negative probability at label 1: -0.5"),
        ([[1, 0], [1, 0], [1, 0]], r"candidates of shape \(1, 5, 2, 3\), got \(1, 5, 3, 2\)"),
    ],
)
def test_a_class_that_gives_no_distributions_is_named(candidates, message):
    env = ldp_gym.LDPDistEnv(hypotheses=Careless(candidates), horizon=5)
    with pytest.raises(ValueError, match=message):
        env.reset(seed=0)


def test_a_nature_that_gives_no_contexts_is_named():
    game = {"hypotheses": Careless([[1, 0, 0], [0.5, 0.5, 0]]), "horizon": 5}
    assert ldp_gym.LDPDistEnv(**game).reset(seed=0)
    with pytest.raises(ValueError, match=r"Lost\(d=1\) must give finite contexts of shape \(1, 5, 1\)"):
        ldp_gym.LDPDistEnv(nature=Lost(1), **game).reset(seed=0)
