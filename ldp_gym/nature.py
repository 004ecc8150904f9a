"""Nature: who picks the contexts ``x_1, ..., x_T`` (and, with the environment, the truth).

==================== ================================================================================
name                 contexts
==================== ================================================================================
``"iid"``            independent standard normal
``"sequence"``       a given list, one for each round
``"cycle"``          a pool, over and over
``"drift"``          a stationary walk, each context close to the last
``"adversary"``      from a pool, the one with the largest posterior-expected KL
``"omniscient"``     from a pool, the one with the largest KL from the truth: it leaks the truth
==================== ================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym import validation
from ldp_gym.arrays import FloatArray, IntArray, at, mixture
from ldp_gym.divergences import kl, negentropy
from ldp_gym.registry import Registry
from ldp_gym.sampling import normal

NATURES: Registry[Nature] = Registry("nature")

_ROUNDING = 1e-9
"""Scores, in nats, that differ by less count as equal."""

_LARGEST = 1e100
"""Contexts beyond it would overflow in the classes."""


@dataclass(frozen=True)
class Stretch:
    """What Nature may look at when it picks the contexts of n rounds of B episodes.

    Attributes:
        uniforms: ``(B, n, num_uniforms)``.
        rounds: which rounds these are, counted from 0, ``(B, n)``.
        previous: the context before the first of them, ``(B, d)``; anything in round 0.
        hypotheses: the class, from contexts ``(..., d)`` to candidates ``(..., K, M)``.
        posterior: the public posterior ``(B, K)``, for an adaptive nature alone; then n is 1.
        truths: the truths' indices ``(B,)``, for a nature that leaks the truth alone.
    """

    uniforms: FloatArray
    rounds: IntArray
    previous: FloatArray
    hypotheses: Callable[[FloatArray], FloatArray]
    posterior: FloatArray | None = None
    truths: IntArray | None = None


class Nature(ABC):
    """A rule for the contexts, as a pure function of uniforms and of what came before.

    Args:
        context_dim: d.

    Attributes:
        adaptive: whether the next context depends on the public posterior; then rounds are asked for one
            at a time.
        leaks_truth: whether the contexts depend on the truth other than through the public transcript, so
            that they tell about it.
    """

    adaptive: ClassVar[bool] = False
    leaks_truth: ClassVar[bool] = False

    def __init__(self, context_dim: int) -> None:
        self.context_dim = validation.whole("context_dim (d)", context_dim, least=1)

    @property
    @abstractmethod
    def num_uniforms(self) -> int:
        """How many uniforms one context takes."""

    @abstractmethod
    def contexts(self, stretch: Stretch) -> FloatArray:
        """The contexts ``(B, n, d)`` of a stretch of n rounds of B episodes."""

    def check_horizon(self, horizon: int) -> None:  # noqa: B027 - a nature without an end has nothing to check
        """Raise a ValueError if there are no contexts for so many rounds."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.context_dim})"


@NATURES.register("iid")
class IID(Nature):
    """Independent standard normal contexts."""

    @property
    def num_uniforms(self) -> int:
        """One for each coordinate."""
        return self.context_dim

    def contexts(self, stretch: Stretch) -> FloatArray:
        return normal(stretch.uniforms)


@NATURES.register("drift")
class Drift(IID):
    """A stationary walk ``x_t = sqrt(1 - r^2) x_{t-1} + r z_t`` with standard normal steps and start.

    Args:
        context_dim: d.
        rate: r in (0, 1]; the walk forgets its past in about ``2 / r^2`` rounds.
    """

    def __init__(self, context_dim: int, rate: float = 0.1) -> None:
        super().__init__(context_dim)
        self.rate = validation.positive("rate", rate)
        if self.rate > 1.0:
            raise ValueError(f"rate must lie in (0, 1], got {self.rate}")

    def contexts(self, stretch: Stretch) -> FloatArray:
        contexts, previous = normal(stretch.uniforms), stretch.previous
        keep = np.sqrt(1.0 - self.rate**2)
        for t in range(contexts.shape[1]):
            step = contexts[:, t]
            previous = np.where(stretch.rounds[:, t, None] == 0, step, keep * previous + self.rate * step)
            contexts[:, t] = previous
        return contexts


class Pooled(Nature):
    """A nature that picks its contexts from a pool.

    Args:
        context_dim: d.
        pool: the contexts ``(P, d)``; ``pool_size`` standard normal ones when not given.
        pool_size: P.
        pool_seed: the seed of a pool that is not given.
    """

    num_uniforms = 0

    def __init__(
        self,
        context_dim: int,
        pool: npt.ArrayLike | None = None,
        pool_size: int = 32,
        pool_seed: int = 0,
    ) -> None:
        super().__init__(context_dim)
        if pool is None:
            size = validation.whole("pool_size", pool_size, least=1)
            rng = np.random.default_rng(validation.whole("pool_seed", pool_seed, least=0))
            pool = rng.standard_normal((size, self.context_dim))
        try:
            self.pool = np.array(pool, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"a pool is an array of numbers, (P, d), got {pool!r}") from error
        if self.pool.ndim != 2 or self.pool.shape[1] != self.context_dim or not len(self.pool):
            raise ValueError(f"a pool has shape (P, d) with d={self.context_dim}, got {self.pool.shape}")
        sound = np.abs(self.pool) <= _LARGEST
        if not sound.all():
            raise ValueError(f"a pool must be finite and within {_LARGEST:g}, got {self.pool[~sound][0]}")
        self.pool.flags.writeable = False


@NATURES.register("cycle")
class Cycle(Pooled):
    """The pool from its beginning, over and over."""

    def contexts(self, stretch: Stretch) -> FloatArray:
        return self.pool[stretch.rounds % len(self.pool)]


@NATURES.register("sequence")
class Sequence(Cycle):
    """The given contexts, one for each round.

    Args:
        context_dim: d.
        sequence: ``(n, d)`` with n at least the horizon.
    """

    def __init__(self, context_dim: int, sequence: npt.ArrayLike) -> None:
        super().__init__(context_dim, pool=sequence)

    def check_horizon(self, horizon: int) -> None:
        """The sequence must last; a cycle is another nature."""
        if len(self.pool) < horizon:
            raise ValueError(
                f"the sequence has {len(self.pool)} contexts for a horizon of {horizon}; "
                f"give at least {horizon}, or use the nature 'cycle' to repeat them"
            )


@NATURES.register("adversary")
class Adversary(Pooled):
    """The context of the largest posterior-expected KL from the posterior mixture.

    With public weights w this is ``sum_k w_k KL(f_k(x), sum_j w_j f_j(x))``, the information that the round's
    label carries about the truth. It reads nothing but the public transcript, so Bayes stays optimal.
    """

    adaptive: ClassVar[bool] = True
    _kept: tuple[object, FloatArray] | None = None

    def contexts(self, stretch: Stretch) -> FloatArray:
        scores = self._scores(self._pool_candidates(stretch), stretch)
        scores = np.broadcast_to(scores, (len(stretch.rounds), len(self.pool)))
        # The first within rounding of the best: the last bit depends on the batch, the choice must not.
        best = scores >= scores.max(axis=-1, keepdims=True) - _ROUNDING
        return self.pool[best.argmax(axis=-1)][:, None]

    def _scores(self, candidates: FloatArray, stretch: Stretch) -> FloatArray:
        """How much each context of the pool is worth to Nature, ``(B, P)``."""
        weights = _public(stretch.posterior)
        spread = np.einsum("...k,...k->...", weights, negentropy(candidates))
        return spread - negentropy(mixture(weights, candidates))

    def _pool_candidates(self, stretch: Stretch) -> FloatArray:
        """The candidates ``(B or 1, P, K, M)`` of the pool, kept while the class stays the same."""
        if self._kept is None or self._kept[0] is not stretch.hypotheses:
            self._kept = (stretch.hypotheses, stretch.hypotheses(self.pool[None]))
        return self._kept[1]


@NATURES.register("omniscient")
class Omniscient(Adversary):
    """The context of the largest KL from the truth to the posterior mixture: the paper's worst case.

    It knows the truth and leaks it through the context, so Bayes' optimality and the information limit do
    not hold against it.
    """

    leaks_truth: ClassVar[bool] = True

    def _scores(self, candidates: FloatArray, stretch: Stretch) -> FloatArray:
        assert stretch.truths is not None, "a nature that leaks the truth gets it"
        truth = at(candidates, stretch.truths[:, None], slice(None))
        return kl(truth, mixture(_public(stretch.posterior), candidates))


def _public(posterior: FloatArray | None) -> FloatArray:
    assert posterior is not None, "an adaptive nature gets the public posterior"
    return posterior[:, None]
