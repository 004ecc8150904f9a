"""A nature that knows the truth, and takes the largest charge at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ldp_gym.core.arrays import FloatArray, mixture
from ldp_gym.core.divergences import kl
from ldp_gym.natures.adversary import WorstOfPool
from ldp_gym.natures.base import Information, NatureView


class Omniscient(WorstOfPool):
    """Knows the truth, and picks the context on which the public posterior's mixture pays most.

    It knows the truth and leaks it through the context, so Bayes' optimality and the information limit do not
    hold against it. Nor is it the paper's worst case: it takes the largest charge of the round, and on such
    contexts the messages tell most, so that Bayes pays less than on i.i.d. contexts. ``adversary`` is harder.
    """

    leaks_truth: ClassVar[bool] = True

    def prepare(self, hypotheses: Callable[[FloatArray], FloatArray], information: Information) -> Any:
        """The pool's candidates."""
        return hypotheses(self.pool[None])

    def _scores(self, view: NatureView, posterior: FloatArray) -> FloatArray:
        assert view.truth is not None, "a nature that leaks the truth gets it"
        truth = view.truth(self.pool[None], view.prepared)
        return kl(truth, mixture(posterior[:, None], view.prepared))
