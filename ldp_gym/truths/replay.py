"""Replayed logs: the truth of a round is the point mass at its logged label."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.registry import resolve
from ldp_gym.natures.base import Nature, NatureView
from ldp_gym.truths.base import Truth, TruthView

_NAMES_IN_ERRORS = 10
"""Number of names of classes that an error lists."""


class Replay(Truth):
    """Logged data: by default every row once, with its own context and label.

    The KL from a point mass is the log-loss ``-log p_hat_t[y_t]``. With ``resample`` the log is a
    sample of a population: each episode draws a population (:meth:`population`), and then its users
    from it with replacement, as many as the horizon.

    Args:
        num_labels: M.
        context_dim: d.
        contexts: ``(n, d)``, an array, a list of rows, a data frame, or ``(n,)`` where d = 1; or
            their address as ``"module:object"``.
        labels: ``(n,)``: indices ``0..M-1``, or names of labels where the class has them; or their
            address.
        order: ``"given"``, or ``"shuffled"`` again in each episode.
        classes: the names of the labels, as the class has them.
        resample: whether rows are drawn with replacement; with the order "given" they are sorted as
            in the log.
        horizon: T, the number of rows to draw.
    """

    needs_contexts: ClassVar[bool] = False

    def __init__(
        self,
        num_labels: int,
        context_dim: int,
        contexts: Any,
        labels: Any,
        order: str = "given",
        classes: npt.NDArray[Any] | None = None,
        resample: bool = False,
        horizon: int = 0,
    ) -> None:
        self.resample = validation.flag("resample", resample)
        self.horizon = horizon
        self.order = validation.choice("order", order, ("given", "shuffled"))
        self.num_labels = num_labels
        self.contexts = game_arrays.checked_contexts(
            "contexts", resolve(contexts, "contexts"), context_dim
        )
        self.labels = label_indices(resolve(labels, "labels"), num_labels, classes)
        if len(self.contexts) != len(self.labels):
            raise ValueError(
                f"replay needs as many labels as contexts, got {len(self.labels)} labels and "
                f"{len(self.contexts)} contexts"
            )
        if len(self.labels) < 2:
            raise ValueError(f"replay needs at least 2 rows, got {len(self.labels)}")
        self.num_rounds = None if self.resample else len(self.labels)
        # One uniform seeds the generator that draws or shuffles the rows of an episode.
        draws_rows = self.resample or self.order == "shuffled"
        self.num_episode_uniforms = 1 if draws_rows else 0
        self.nature = ReplayedContexts(context_dim, self)

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[np.int64]:
        """Draw the rows of the episodes, in order: ``(B, n)``, or ``(B, T)`` with ``resample``."""
        num_rows = len(self.labels)
        if self.resample:
            rows = np.stack([self._resampled(rng) for rng in _generators(uniforms)])
            if self.order == "given":
                return np.sort(rows, axis=-1)
            return rows
        if self.order == "shuffled":
            return np.stack([rng.permutation(num_rows) for rng in _generators(uniforms)])
        return np.broadcast_to(np.arange(num_rows), (len(uniforms), num_rows))

    def _resampled(self, rng: np.random.Generator) -> IntArray:
        """Draw a population of weighted rows, and from it the rows ``(T,)`` of T users."""
        weights = rng.exponential(size=len(self.labels))
        ends = np.cumsum(weights)
        return np.searchsorted(ends, ends[-1] * rng.random(self.horizon), side="right")

    def population(self, uniforms: FloatArray) -> FloatArray:
        """Return the probabilities ``(B, n)`` of the rows in the populations of episodes.

        Independent Exp(1) weights over their sum: Rubin's Bayesian bootstrap (1981), the posterior
        of the population given the log.
        """
        num_rows = len(self.labels)
        weights = np.stack([rng.exponential(size=num_rows) for rng in _generators(uniforms)])
        return weights / weights.sum(axis=-1, keepdims=True)

    def rows(self, episode: npt.NDArray[Any], rounds: IntArray) -> IntArray:
        """Return the indices ``(B, n)`` of the rows that are played in these rounds ``(B, n)``."""
        return np.take_along_axis(episode, rounds, axis=-1)

    def distributions(self, view: TruthView) -> FloatArray:
        """Return point masses at the logged labels, ``(B, n, M)``."""
        labels = self.labels[self.rows(view.episode, view.rounds)]
        return (labels[..., None] == np.arange(self.num_labels)).astype(np.float64)

    def __repr__(self) -> str:
        resampled = ", resampled" if self.resample else ""
        return f"Replay({len(self.labels):,} rows, {self.order}{resampled})"


class ReplayedContexts(Nature):
    """The contexts of the rows that a :class:`Replay` plays."""

    num_uniforms = 0

    def __init__(self, context_dim: int, replay: Replay) -> None:
        super().__init__(context_dim)
        self._replay = replay

    def contexts(self, view: NatureView) -> FloatArray:
        """Return the logged contexts of the rows that are played, ``(B, n, d)``."""
        assert view.episode is not None, "the contexts of a replay come in its order"
        return self._replay.contexts[self._replay.rows(view.episode, view.rounds)]


def _generators(uniforms: FloatArray) -> list[np.random.Generator]:
    """Make a generator for each of B episodes, seeded by its first uniform of ``(B, n)``."""
    # NumPy's uniforms are multiples of 2^-53, so that different uniforms give different seeds.
    seeds = (uniforms[:, 0] * 2.0**53).astype(np.int64).tolist()
    return [np.random.default_rng(seed) for seed in seeds]


def label_indices(labels: Any, num_labels: int, classes: npt.NDArray[Any] | None) -> IntArray:
    """Return labels ``(n,)`` as indices ``0..M-1``.

    Args:
        labels: names of labels if the classes have names, else indices.
        num_labels: M.
        classes: names of the classes ``(M,)``, or None.
    """
    values = np.asarray(labels)
    if values.ndim != 1:
        raise ValueError(f"labels must be one per row, of shape (n,), got shape {values.shape}")
    if classes is not None:
        return _by_name(values, classes)
    whole_floats = values.dtype.kind == "f" and (values == np.rint(values)).all()
    if whole_floats:
        values = values.astype(np.int64)
    if values.dtype.kind not in "iu":
        first_labels = validation.describe(values[:3].tolist())
        raise ValueError(
            f"labels must be indices in 0..{num_labels - 1}, got {first_labels}; names of labels "
            f"go with a class of fitted classifiers, through their classes_"
        )
    outside = (values < 0) | (values >= num_labels)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(f"labels must lie in 0..{num_labels - 1}, got {values[row]} in row {row}")
    return values.astype(np.int64)


def _by_name(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> IntArray:
    """Return the indices ``(n,)`` of labels ``(n,)`` among the names of the classes."""
    index_of = {name: i for i, name in enumerate(classes.tolist())}
    for row, label in enumerate(labels.tolist()):
        if label not in index_of:
            known = ", ".join(map(repr, classes[:_NAMES_IN_ERRORS].tolist()))
            if len(classes) > _NAMES_IN_ERRORS:
                known += ", ..."
            raise ValueError(f"label {label!r} in row {row} is not among the classes: {known}")
    return np.array([index_of[label] for label in labels.tolist()], dtype=np.int64)
