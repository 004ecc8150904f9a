"""An adversary that knows the truth."""

from __future__ import annotations

from typing import ClassVar

from ldp_gym.natures.adversary import Adversary, _public
from ldp_gym.natures.base import NatureView
from ldp_gym.numerics.arrays import FloatArray, mixture
from ldp_gym.numerics.divergences import kl


class Omniscient(Adversary):
    """The context of the largest KL from the truth to the posterior mixture: the paper's worst case.

    It knows the truth and leaks it through the context, so Bayes' optimality and the information limit do
    not hold against it.
    """

    leaks_truth: ClassVar[bool] = True

    def _scores(self, candidates: FloatArray, view: NatureView) -> FloatArray:
        assert view.truth is not None, "a nature that leaks the truth gets it"
        truth = view.truth(self.pool[None], candidates)
        return kl(truth, mixture(_public(view.posterior), candidates))
