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


class Replay(Truth):
    """Logged data: by default every row once, with its own context and label.

    The KL from a point mass is the log-loss ``-log p_hat_t[y_t]``. With ``resample`` the log stands for the
    population that it is a sample of: each episode draws a population (:meth:`population`), and then its
    users from it with replacement, as many as the horizon.

    Args:
        num_labels: M.
        context_dim: d.
        contexts: ``(n, d)``, an array, a list of rows, a data frame, or ``(n,)`` where d = 1; or their
            address as ``"module:object"``.
        labels: ``(n,)``: indices ``0..M-1``, or names of labels where the class has them; or their address.
        order: ``"given"``, or ``"shuffled"`` again in each episode.
        classes: the names of the labels, as the class has them.
        resample: whether rows are drawn with replacement; users in the order of the log if it is "given".
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
        self.resample, self.horizon = validation.flag("resample", resample), horizon
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
        self.num_episode_uniforms = int(
            self.resample or self.order == "shuffled"
        )  # it seeds the rows
        self.nature = ReplayedContexts(context_dim, self)

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[np.int64]:
        """Draw the rows of the episodes, in order: ``(B, n)``, or ``(B, T)`` with ``resample``."""
        if not self.num_episode_uniforms:
            return np.broadcast_to(np.arange(len(self.labels)), (len(uniforms), len(self.labels)))
        if not self.resample:
            return np.stack([rng.permutation(len(self.labels)) for rng in _generators(uniforms)])
        drawn = []
        for rng in _generators(uniforms):
            ends = np.cumsum(rng.exponential(size=len(self.labels)))
            drawn.append(np.searchsorted(ends, ends[-1] * rng.random(self.horizon), side="right"))
        return np.sort(drawn, axis=-1) if self.order == "given" else np.stack(drawn)

    def population(self, uniforms: FloatArray) -> FloatArray:
        """Probabilities ``(B, n)`` of the rows in the populations that ``resample`` draws from.

        Independent Exp(1) weights over their sum: Rubin's Bayesian bootstrap (1981), the posterior of the
        population given the log.
        """
        weights = np.stack(
            [rng.exponential(size=len(self.labels)) for rng in _generators(uniforms)]
        )
        return weights / weights.sum(axis=-1, keepdims=True)

    def rows(self, episode: npt.NDArray[Any], rounds: IntArray) -> IntArray:
        """Indices of the rows of these rounds ``(B, n)``."""
        return np.take_along_axis(episode, rounds, axis=-1)

    def distributions(self, view: TruthView) -> FloatArray:
        labels = self.labels[self.rows(view.episode, view.rounds)]
        return (labels[..., None] == np.arange(self.num_labels)).astype(np.float64)

    def __repr__(self) -> str:
        return f"Replay({len(self.labels):,} rows, {self.order}{', resampled' if self.resample else ''})"


class ReplayedContexts(Nature):
    """The contexts of the rows that a :class:`Replay` plays."""

    num_uniforms = 0

    def __init__(self, context_dim: int, replay: Replay) -> None:
        super().__init__(context_dim)
        self._replay = replay

    def contexts(self, view: NatureView) -> FloatArray:
        assert view.episode is not None, "the contexts of a replay come in its order"
        return self._replay.contexts[self._replay.rows(view.episode, view.rounds)]


def _generators(uniforms: FloatArray) -> list[np.random.Generator]:
    """Generators of the episodes' rows, seeded by their first uniforms."""
    return [
        np.random.default_rng(seed) for seed in (uniforms[:, 0] * 2.0**53).astype(np.int64).tolist()
    ]


def label_indices(labels: Any, num_labels: int, classes: npt.NDArray[Any] | None) -> IntArray:
    """Labels as indices: by the classes' names if there are any, else they are indices already."""
    values = np.asarray(labels)
    if values.ndim != 1:
        raise ValueError(f"labels must be one per row, of shape (n,), got shape {values.shape}")
    if classes is not None:
        return _by_name(values, classes)
    if values.dtype.kind == "f" and (values == np.rint(values)).all():
        values = values.astype(np.int64)
    if values.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be indices in 0..{num_labels - 1}, got {validation.describe(values[:3].tolist())}; "
            f"names of labels go with a class of fitted classifiers, through their classes_"
        )
    outside = (values < 0) | (values >= num_labels)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(f"labels must lie in 0..{num_labels - 1}, got {values[row]} in row {row}")
    return values.astype(np.int64)


def _by_name(values: npt.NDArray[Any], classes: npt.NDArray[Any]) -> IntArray:
    index = {name: i for i, name in enumerate(classes.tolist())}
    for row, value in enumerate(values.tolist()):
        if value not in index:
            known = ", ".join(map(repr, classes[:10].tolist())) + (
                ", ..." if len(classes) > 10 else ""
            )
            raise ValueError(f"label {value!r} in row {row} is not among the classes: {known}")
    return np.array([index[value] for value in values.tolist()], dtype=np.int64)
