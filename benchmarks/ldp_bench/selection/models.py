"""A log of users: their labels, and the probabilities that each model gives to every label."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.hypotheses.base import HypothesisClass, Table, probabilities_of
from ldp_gym.truths.replay import label_indices

Predicted = tuple[list[str], npt.NDArray[Any] | None, FloatArray]
"""Names of the models, names of the labels if they have any, and probabilities ``(n, K, M)``."""

_MOST_BYTES = 2**31
"""Largest size in bytes of the probabilities, n x K x M floats: 2 GiB."""


class Predictions(HypothesisClass):
    """Models by their probabilities ``(n, K, M)`` for the rows of a log; a context is a row's index."""

    default_nature = None

    def __init__(self, table: FloatArray, fingerprint: str) -> None:
        super().__init__(table.shape[1], table.shape[2], 1)
        self._table, self.fingerprint = (
            table,
            fingerprint,
        )  # stands for the table in the keys of results

    def __call__(self, contexts: FloatArray) -> FloatArray:
        return self._table[contexts[..., 0].astype(np.int64)]


@dataclass(frozen=True)
class Log:
    """Users with known labels, and models that predict them.

    Attributes:
        names: names of the K models.
        classes: names of the M labels.
        table: smoothed probabilities ``(n, K, M)``; ``(1, K, M)`` for constant models.
        labels: indices of the users' labels, ``(n,)``.
        notes: sentences about the models, such as those that exclude a label.
    """

    names: list[str]
    classes: list[Any]
    table: FloatArray
    labels: IntArray
    notes: list[str]

    @cached_property
    def losses(self) -> FloatArray:
        """Log-loss ``(n, K)`` of every model for every user."""
        return -np.log(_of_labels(self.table, self.labels))

    @cached_property
    def hypotheses(self) -> HypothesisClass:
        """The models as a class, whose contexts are indices of rows."""
        if len(self.table) == 1:
            return Table(self.table[0])
        return Predictions(self.table, hashlib.sha256(self.table.tobytes()).hexdigest())


def read_log(models: Any, features: Any, labels: Any, probabilities: Any, smoothing: float) -> Log:
    """Check and smooth the arguments of :func:`ldp_bench.select`; equal models become one."""
    if labels is None or (models is None and probabilities is None):
        raise TypeError(
            "select needs models, X and y; or probabilities= in place of models and X, and y"
        )
    given = np.atleast_1d(labels)
    if probabilities is None:
        names, classes, table = _predicted(_named(models), features, len(given))
    else:
        names, classes, table = _given(probabilities, models)
    if len(table) not in (1, len(given)):
        raise ValueError(
            f"as many labels as users are needed, got {len(given)} labels, {len(table)} users"
        )
    if (classes is None or classes.dtype.kind in "iuf") and given.dtype.kind in "OUS":
        with suppress(
            ValueError
        ):  # a CSV file has text for numbers; the next line names other text
            given = given.astype(np.float64)
    found = label_indices(given, table.shape[-1], classes)
    if len(found) < 2:
        raise ValueError(f"select needs a log of two users or more, got {len(found)}")
    notes: list[str] = []
    kept: dict[bytes, int] = {}
    for j, name in enumerate(names):
        first = kept.setdefault(hashlib.sha256(table[:, j].tobytes()).digest(), j)
        if first != j:
            notes.append(f"{name!r} predicts exactly as {names[first]!r}: they are one model.")
    if len(kept) < 2:
        raise ValueError(f"select needs two or more models that differ, got only {names[0]!r}")
    table, names = table[:, list(kept.values())], [names[j] for j in kept.values()]
    labelled = list(range(table.shape[-1])) if classes is None else classes.tolist()
    if np.ptp(found) == 0:
        notes.append(
            f"All users of this log have label {labelled[found[0]]!r}; it is silent about others."
        )
    lowest = _of_labels(table, found).min(axis=0)
    if excluded := [repr(name) for name, least in zip(names, lowest, strict=True) if least <= 0.0]:
        notes.append(
            f"{', '.join(excluded)} gave probability 0 to a label that came, an infinite log-loss. Every "
            f"model is therefore mixed with {smoothing:.2%} of the uniform distribution."
        )
    table *= 1.0 - smoothing
    table += smoothing / table.shape[-1]
    return Log(names, labelled, table, found, notes)


def _of_labels(table: FloatArray, labels: IntArray) -> FloatArray:
    """Probabilities ``(n, K)`` of the users' labels."""
    return table[np.arange(len(labels)) if len(table) > 1 else 0, :, labels]


def _named(models: Any) -> dict[str, Any]:
    """Models by name: fitted classifiers, functions, or rows of probabilities."""
    if isinstance(models, Mapping):
        return {str(name): model for name, model in models.items()}
    given = list(models) if isinstance(models, np.ndarray) else models
    listed = validation.list_of(
        "models", given, "classifiers, functions or rows, or a dict of these"
    )
    kinds = [
        "row" if isinstance(model, Sequence | np.ndarray) else type(model).__name__
        for model in listed
    ]
    return {f"{kind} {j}": model for j, (kind, model) in enumerate(zip(kinds, listed, strict=True))}


def _given(given: Any, names: Any) -> Predicted:
    """Probabilities ``(n, K, M)``, or a data frame with a column ``model:label`` for each."""
    classes = None
    if hasattr(given, "columns"):
        split = [str(column).rpartition(":") for column in given.columns]
        if (wrong := ["".join(parts) for parts in split if not parts[0]]) or not split:
            raise ValueError(
                f"without models, all other columns are named model:label, got {wrong[:3]}"
            )
        names = list(dict.fromkeys(model for model, _, _ in split))
        classes = np.array(list(dict.fromkeys(label for _, _, label in split)))
        columns = [f"{model}:{label}" for model in names for label in classes]
        if missing := [column for column in columns if column not in given.columns]:
            raise ValueError(
                f"every model needs a column for every label; {missing[0]!r} is missing"
            )
        given = given[columns].to_numpy().reshape(len(given), len(names), len(classes))
    table = validation.numbers("probabilities", given)
    if table.ndim != 3:
        raise ValueError(f"probabilities must have shape (n, K, M), got {table.shape}")
    _check_size(*table.shape)
    named = [f"model {j}" for j in range(table.shape[1])] if names is None else names
    named = validation.texts("models, next to probabilities,", named, "names")
    if (different := len(set(named))) != table.shape[1]:
        raise ValueError(
            f"{table.shape[1]} models need as many names, got {different} different ones"
        )
    return (
        named,
        classes,
        game_arrays.distributions(table, lambda at: f"{named[at[1]]!r} in row {at[0]}"),
    )


def _predicted(models: Mapping[str, Any], features: Any, users: int) -> Predicted:
    """Probabilities ``(n, K, M)`` by the models, over all classes that any of them knows."""
    if not models:
        raise ValueError("select needs two or more models, got none")
    if not any(
        hasattr(m, "predict") or hasattr(m, "predict_proba") or callable(m) for m in models.values()
    ):
        rows = game_arrays.checked_table(list(models.values()), "table", "model")
        return list(models), None, rows[None].copy()
    if features is None:
        raise TypeError("X is needed: the users' features, which the models predict from")
    known: list[Any] = [getattr(model, "classes_", None) for model in models.values()]
    named = all(labels is not None for labels in known)
    classes = np.array(list(dict.fromkeys(np.concatenate(known).tolist()))) if named else None
    for j, (name, model) in enumerate(models.items()):
        part = _predict(name, model, features)
        if j == 0:
            width = part.shape[-1] if classes is None else len(classes)
            _check_size(users, len(models), width)
            table = np.zeros((users, len(models), width))
        columns = np.arange(width) if classes is None else label_indices(known[j], width, classes)
        if part.shape != (users, len(columns)):
            wanted = f"{users} rows of {len(columns)} labels"
            raise ValueError(f"{name!r} must predict {wanted}, got shape {part.shape}")
        table[:, j, columns] = game_arrays.distributions(part, f"what {name!r} predicts for user")
    return list(models), classes, table


def _predict(name: str, model: Any, features: Any) -> FloatArray:
    """Probabilities ``(n, M)`` by a classifier, or by a function of all rows or of one."""
    columns = getattr(model, "feature_names_in_", None)
    if hasattr(features, "columns") and columns is not None:
        return validation.numbers(
            f"what {name!r} predicts", model.predict_proba(features[list(columns)])
        )
    rows = np.asarray(features)
    if hasattr(model, "predict_proba"):
        return probabilities_of(model, rows)
    if not callable(model):
        raise TypeError(f"model {name!r} must be a function, or have predict_proba; got {model!r}")
    with suppress(Exception):  # whatever a function of one row does with several
        found = validation.numbers(f"what {name!r} returns", model(rows))
        if found.ndim == 2 and len(found) == len(rows):
            return found
    return np.stack([validation.numbers(f"what {name!r} returns", model(row)) for row in rows])


def _check_size(users: int, models: int, labels: int) -> None:
    size = 8 * users * models * labels
    if size > _MOST_BYTES:
        raise ValueError(
            f"probabilities of {users:,} users, {models:,} models and {labels:,} labels take "
            f"{size / 2**30:.1f} GiB, more than {_MOST_BYTES / 2**30:g}: give a random sample of at most "
            f"{_MOST_BYTES // (8 * models * labels):,} users"
        )
