"""The contract of a nature, and the natures that ignore the transcript."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.registry import Registry, resolve
from ldp_gym.core.sampling import Purpose, normal, stream

NATURES: Registry[Nature] = Registry("nature", group="ldp_gym.natures")

Information = Callable[[FloatArray], Callable[[FloatArray], FloatArray]]
"""Information of a message about the truth, in nats, under the game's channel.

It maps candidates ``(..., P, K, M)`` to a function from posteriors ``(B, K)`` to ``(B, P)``. The
engine hands it in: natures do not know the channel.
"""


@dataclass(frozen=True)
class NatureView:
    """Inputs of a nature that picks the contexts of n rounds of B episodes.

    Attributes:
        uniforms: ``(B, n, num_uniforms)``.
        rounds: indices of these rounds, from 0, ``(B, n)``.
        previous: the context before the first of them, ``(B, d)``; arbitrary in round 0.
        hypotheses: the class, from contexts ``(..., d)`` to candidates ``(..., K, M)``.
        posterior: the public posterior ``(B, K)``; only for an adaptive nature, and then n is 1.
        rounds_left: number of rounds to play, this one included; only for an adaptive nature.
        prepared: the result of :meth:`Nature.prepare`; only for an adaptive nature.
        truth: the truth's distributions ``(B, P, M)`` in this round at P other contexts, from
            contexts ``(1, P, d)`` and candidates ``(B or 1, P, K, M)``; only for a nature that
            leaks the truth.
        episode: the truth's draw for the episodes; only for a nature that a truth brings along.
    """

    uniforms: FloatArray
    rounds: IntArray
    previous: FloatArray
    hypotheses: Callable[[FloatArray], FloatArray]
    posterior: FloatArray | None = None
    rounds_left: int | None = None
    prepared: Any = None
    truth: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    episode: npt.NDArray[Any] | None = None


class Nature(ABC):
    """Base of the rules that pick contexts, as pure functions of uniforms and of the past.

    Args:
        context_dim: d.

    Attributes:
        num_contexts: number of contexts to pick from, if known.
        adaptive: True if the next context depends on the public posterior; then it picks one round
            at a time.
        leaks_truth: True if the contexts depend on the truth other than through the public
            transcript.
    """

    num_contexts: int | None = None
    adaptive: ClassVar[bool] = False
    leaks_truth: ClassVar[bool] = False

    def __init__(self, context_dim: int) -> None:
        self.context_dim = validation.whole("context_dim (d)", context_dim, least=1)

    @property
    @abstractmethod
    def num_uniforms(self) -> int:
        """Number of uniforms per context."""

    def prepare(
        self, hypotheses: Callable[[FloatArray], FloatArray], information: Information
    ) -> Any:
        """Prepare, once for a class, what an adaptive nature needs in every round."""
        return None

    @abstractmethod
    def contexts(self, view: NatureView) -> FloatArray:
        """Return the contexts ``(B, n, d)`` of n rounds of B episodes."""

    def check_horizon(self, horizon: int) -> None:  # noqa: B027 - nothing to check by default
        """Raise a ValueError if there are too few contexts for the horizon."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.context_dim})"


class IID(Nature):
    """Independent standard normal contexts."""

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: one for each coordinate."""
        return self.context_dim

    def contexts(self, view: NatureView) -> FloatArray:
        """Return independent standard normal contexts, ``(B, n, d)``."""
        return normal(view.uniforms)


class Drift(IID):
    """Contexts that move slowly, in a stationary walk.

    ``x_t = sqrt(1 - r^2) x_{t-1} + r z_t``, with standard normal steps ``z_t`` and start.

    Args:
        context_dim: d.
        rate: r in (0, 1]; the walk forgets its past in about ``2 / r^2`` rounds.
    """

    def __init__(self, context_dim: int, rate: float = 0.1) -> None:
        super().__init__(context_dim)
        self.rate = validation.positive("rate", rate, most=1.0)

    def contexts(self, view: NatureView) -> FloatArray:
        """Return the next n contexts of the walks, ``(B, n, d)``; round 0 starts a new one."""
        steps = normal(view.uniforms)
        contexts = np.empty_like(steps)
        previous = view.previous
        memory = np.sqrt(1.0 - self.rate**2)
        for t in range(steps.shape[1]):
            is_first = view.rounds[:, t, None] == 0
            moved = memory * previous + self.rate * steps[:, t]
            previous = np.where(is_first, steps[:, t], moved)
            contexts[:, t] = previous
        return contexts


class PoolNature(Nature):
    """Base of natures that pick their contexts from a pool.

    Args:
        context_dim: d.
        pool: the contexts ``(P, d)``, or their address as ``"module:object"``; ``pool_size``
            standard normal ones when not given.
        pool_size: P.
        pool_seed: seed of a pool that is not given.
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
            validation.fits_memory("pool_size", size, self.context_dim, "contexts")
            rng = stream(Purpose.POOL, validation.seed("pool_seed", pool_seed))
            pool = rng.standard_normal((size, self.context_dim))
        self.pool = game_arrays.checked_contexts(
            "the contexts to pick from", resolve(pool, "contexts"), self.context_dim
        )
        self.num_contexts = len(self.pool)


class Cycle(PoolNature):
    """The given contexts in order, repeated from the start when they end.

    Args:
        context_dim: d.
        contexts: ``(P, d)``, or their address as ``"module:object"``; ``pool_size`` standard normal
            ones when not given.
        pool_size: P.
        pool_seed: seed of contexts that are not given.
    """

    def __init__(
        self,
        context_dim: int,
        contexts: npt.ArrayLike | None = None,
        pool_size: int = 32,
        pool_seed: int = 0,
    ) -> None:
        super().__init__(context_dim, contexts, pool_size, pool_seed)

    def contexts(self, view: NatureView) -> FloatArray:
        """Return the contexts of these rounds, ``(B, n, d)``."""
        return self.pool[view.rounds % len(self.pool)]


class Sequence(Cycle):
    """The given contexts, one per round.

    Args:
        context_dim: d.
        contexts: ``(n, d)`` with n at least the horizon, or their address as ``"module:object"``.
    """

    def __init__(self, context_dim: int, contexts: npt.ArrayLike) -> None:
        if contexts is None:
            raise ValueError("contexts must be given, one per round: a sequence draws none itself")
        super().__init__(context_dim, contexts)

    def check_horizon(self, horizon: int) -> None:
        """Raise a ValueError if there are fewer contexts than rounds."""
        if len(self.pool) < horizon:
            raise ValueError(
                f"the sequence has {len(self.pool)} contexts for a horizon of {horizon}; "
                f"give at least {horizon}, or use the nature 'cycle' to repeat them"
            )
