"""Candidate models of a survey: named rows of a table, functions of features, or fitted classifiers."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.registry import plain
from ldp_gym.hypotheses.base import probabilities_of
from ldp_gym.truths.replay import label_indices

ROUNDING = 1e-3
"""Largest distance by which the sum of rounded predictions may miss 1 before they are refused."""

_FINGERPRINT_DIGITS = 6
"""Digits of the predictions that a fingerprint depends on: fewer than machines differ in."""

_PROBE_SHARES = (0.25, 0.5, 0.75)
"""Quantiles of each feature that make the probe rows."""

_LABELS_SHOWN = 10
"""Largest number of labels that a message lists."""

_MOST_NUMBERS = 2**25
"""Largest table of predictions at the contexts, in floats: 256 MiB."""


class Models:
    """K named models, each a map from features to probabilities of the same M labels.

    Attributes:
        names: names of the models.
        labels: names of the labels: text, numbers or booleans.
        table: the models' probabilities ``(K, M)`` if they are constant, else None.

    Example:
        >>> models = Models({"fair": [0.5, 0.5], "loaded": [0.1, 0.9]}, labels=["tails", "heads"])
        >>> models.predict(None).tolist()
        [[[0.5, 0.5], [0.1, 0.9]]]
    """

    def __init__(self, models: Any, labels: Sequence[Any] | None = None) -> None:
        """Check the models and the names of their labels.

        Args:
            models: models by name, a list of them, or a table ``(K, M)``.
            labels: names of the M labels; not for classifiers, whose ``classes_`` are these.
        """
        self._models = _named(models)
        self.names = list(self._models)
        if len(self.names) < 2:
            raise ValueError(f"a survey compares two or more models, got {len(self.names)}")

        self.table: FloatArray | None = None
        if not any(map(_is_function, self._models.values())):
            rows = [_as_row(name, row) for name, row in self._models.items()]
            if len({len(row) for row in rows}) > 1:
                raise ValueError("the rows of a table must have the same number of labels")
            self.table = np.stack(rows)

        self.labels: list[Any] | None = None
        classes_of_models = [getattr(model, "classes_", None) for model in self._models.values()]
        if all(classes is not None for classes in classes_of_models):
            names: list[Any] = []
            for classes in classes_of_models:
                names += np.asarray(classes).tolist()
            self.labels = list(dict.fromkeys(names))
            if labels is not None:
                raise TypeError(
                    "the labels' names come from the classifiers' classes_: leave out labels"
                )
        elif labels is not None:
            self.labels = _label_names(labels)
        elif self.table is not None:
            self.labels = list(range(self.table.shape[1]))

    def predict(self, features: Any) -> FloatArray:
        """Predict at n rows of features: probabilities ``(n, K, M)``; ``(1, K, M)`` of a table."""
        if self.table is not None:
            self._check_labels(self.table.shape[1])
            return self.table[None]
        if features is None:
            raise TypeError("X is needed: the users' features, which the models predict from")
        parts = [self._predict(name, features) for name in self.names]
        return np.stack(parts, axis=1)

    def _predict(self, name: str, features: Any) -> FloatArray:
        """Predict with one model at n rows: probabilities ``(n, M)``."""
        model = self._models[name]
        rows = _call(name, model, features)
        if rows.ndim != 2 or len(rows) != len(features):
            raise ValueError(
                f"{name!r} must predict a row of probabilities for each of {len(features)} users, got "
                f"shape {rows.shape}"
            )
        rows = normalised(rows, f"what {name!r} predicts for user")
        classes = getattr(model, "classes_", None)
        if classes is None or self.labels is None:
            self._check_labels(rows.shape[1])
            return rows

        # A label that this classifier never saw has probability 0.
        columns = label_indices(np.asarray(classes), len(self.labels), np.array(self.labels))
        complete = np.zeros((len(rows), len(self.labels)))
        complete[:, columns] = rows
        return complete

    def _check_labels(self, num_labels: int) -> None:
        """Name the labels of models without names, and hold all models to the same number."""
        if self.labels is None:
            self.labels = list(range(num_labels))
        if len(self.labels) != num_labels:
            raise ValueError(
                f"{len(self.labels)} names of labels for models with {num_labels} labels"
            )

    def fingerprint(self, probe: Sequence[Sequence[Any]], features: Sequence[str] | None) -> str:
        """Hash of the predictions at the probe rows, or of the table."""
        if self.table is not None:
            return fingerprint_of(self.table)
        return fingerprint_of(self.predict(rows_of_features(probe, features)))


class Prediction(NamedTuple):
    """Predictions of K models for n users.

    Attributes:
        names: names of the K models.
        labels: names of the M labels.
        table: probabilities ``(n, K, M)``; ``(1, K, M)`` for constant models.
        constant: True if the models do not depend on features.
        features: names of the features; None for a table, or features without names.
        probe: made-up rows of features at which the models are compared.
        fingerprint: hash of the predictions at the probe rows, or of the table.
        notes: sentences about the models.
    """

    names: list[str]
    labels: list[Any]
    table: FloatArray
    constant: bool
    features: list[str] | None
    probe: list[list[Any]]
    fingerprint: str
    notes: list[str]


def predict_users(
    models: Any, features: Any, probabilities: Any, labels: Sequence[Any] | None, seed: int
) -> Prediction:
    """Predict at the users' features, or take predictions that are given.

    Args:
        models: models; next to ``probabilities`` their names, or None.
        features: a row of features per user; None for a table.
        probabilities: predictions ``(n, K, M)``, or a data frame of them; None if the models predict.
        labels: names of the labels, or None.
        seed: seed of a random sample of the users, if there are too many.
    """
    if probabilities is not None:
        return _given(probabilities, models, labels)
    if isinstance(models, Models):
        bundle = models
    else:
        bundle = Models(models, labels)
    notes: list[str] = []
    names: list[str] | None = None
    probe: list[list[Any]] = []
    if bundle.table is None and features is not None:
        features, notes = _sample(features, len(bundle.names), bundle, seed)
        if hasattr(features, "columns"):
            names = [str(column) for column in features.columns]
        probe = _probe_rows(features)
    table = bundle.predict(features)
    assert bundle.labels is not None
    return Prediction(
        names=bundle.names,
        labels=bundle.labels,
        table=table,
        constant=bundle.table is not None,
        features=names,
        probe=probe,
        fingerprint=bundle.fingerprint(probe, names),
        notes=[*notes, *_notes_on_zeros(bundle.names, bundle.labels, table)],
    )


def _sample(features: Any, num_models: int, bundle: Models, seed: int) -> tuple[Any, list[str]]:
    """Take a random sample of the rows, if the predictions at all rows would not fit into memory.

    Returns:
        The rows, in their order, and sentences about the sample: one, or none if all rows are taken.
    """
    if not hasattr(features, "columns"):
        features = np.asarray(features)
    if features.ndim != 2 or not len(features):
        raise ValueError(f"X must have a row of features per user, got shape {features.shape}")
    num_labels = bundle.predict(features[:1]).shape[-1]
    most = max(1, _MOST_NUMBERS // (num_models * num_labels))
    if len(features) <= most:
        return features, []
    rows = np.sort(np.random.default_rng(seed).choice(len(features), most, replace=False))
    if hasattr(features, "columns"):
        sample = features.iloc[rows]
    else:
        sample = features[rows]
    return sample, [f"Of the {len(features):,} rows of X a random {most:,} are used."]


def _given(given: Any, names: Any, labels: Sequence[Any] | None) -> Prediction:
    """Check predictions that the user has computed.

    Args:
        given: predictions ``(n, K, M)``, or a data frame with a column ``model:label`` for each of them.
        names: names of the models; None for a data frame, or for "model 0" and so on.
        labels: names of the labels; None for a data frame, or for 0, 1, ...
    """
    notes: list[str] = []
    if hasattr(given, "columns"):
        given, names, labels, notes = _from_columns(given)
    table = validation.numbers("probabilities", given)
    if table.ndim != 3 or not len(table):
        raise ValueError(f"probabilities must have shape (n, K, M), got {table.shape}")
    _, num_models, num_labels = table.shape
    if names is None:
        names = [f"model {k}" for k in range(num_models)]
    names = validation.texts("models, next to probabilities,", names, "names")
    if len(set(names)) != num_models or num_models < 2:
        raise ValueError(
            f"{num_models} models need as many different names, two at least; got {names}"
        )
    label_names = list(range(num_labels))
    if labels is not None:
        label_names = _label_names(labels)
    if len(label_names) != num_labels:
        raise ValueError(f"{num_labels} labels need as many names, got {len(label_names)}")
    parts = [normalised(table[:, k], f"{name!r} in row") for k, name in enumerate(names)]
    table = np.stack(parts, axis=1)
    constant = len(table) == 1
    hashed = table
    if constant:
        hashed = table[0]
    return Prediction(
        names=names,
        labels=label_names,
        table=table,
        constant=constant,
        features=None,
        probe=[],
        fingerprint=fingerprint_of(hashed),
        notes=[*notes, *_notes_on_zeros(names, label_names, table)],
    )


def _from_columns(frame: Any) -> tuple[FloatArray, list[str], list[str], list[str]]:
    """Predictions, models' and labels' names, and notes, from columns ``model:label``."""
    columns = [str(column) for column in frame.columns]
    pairs = [column.rpartition(":") for column in columns]
    names = list(dict.fromkeys(model for model, _, _ in pairs if model))
    labels = list(dict.fromkeys(label for model, _, label in pairs if model))
    if not names:
        raise ValueError(
            f"without models, predictions are columns named model:label, got {', '.join(columns[:5])}"
        )
    wanted = [f"{model}:{label}" for model in names for label in labels]
    missing = [column for column in wanted if column not in columns]
    if missing:
        raise ValueError(f"a model needs a column for every label; {missing[0]!r} is missing")
    ignored = [repr(column) for column in columns if column not in wanted]
    notes = []
    if ignored:
        notes.append(f"Columns that are not predictions are ignored: {', '.join(ignored)}.")
    values = frame.set_axis(columns, axis=1)[wanted].to_numpy()
    return values.reshape(len(frame), len(names), len(labels)), names, labels, notes


def _notes_on_zeros(names: Sequence[str], labels: Sequence[Any], table: FloatArray) -> list[str]:
    """A sentence for each model that gives probability 0 to a label."""
    notes = []
    for k, name in enumerate(names):
        excluded = (table[:, k] == 0.0).any(axis=0)
        if excluded.any():
            first = labels[int(excluded.argmax())]
            notes.append(
                f"{name!r} gives probability 0 to {int(excluded.sum())} of {len(labels)} labels, such as "
                f"{first!r}. If such users exist, no survey should name it: mix it with a little of "
                f"another distribution first."
            )
    return notes


def _named(models: Any) -> dict[str, Any]:
    """Return models by name; those of a list are called by their kind and number, such as "row 0"."""
    if isinstance(models, Mapping):
        return {str(name): model for name, model in models.items()}
    if isinstance(models, np.ndarray):
        models = list(models)
    listed = validation.list_of(
        "models", models, "classifiers, functions or rows, or a dict of them"
    )
    named = {}
    for k, model in enumerate(listed):
        kind = "row"
        if _is_function(model):
            kind = type(model).__name__
        named[f"{kind} {k}"] = model
    return named


def _is_function(model: Any) -> bool:
    """Tell if a model predicts from features; otherwise it is a row of probabilities."""
    return hasattr(model, "predict_proba") or hasattr(model, "predict") or callable(model)


def _as_row(name: str, row: Any) -> FloatArray:
    """Check a row of probabilities ``(M,)``."""
    values = validation.numbers(f"model {name!r}", row)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(
            f"model {name!r} must be a fitted classifier, a function, or a row of two or more "
            f"probabilities, got shape {values.shape}"
        )
    return normalised(values[None], f"model {name!r}, row")[0]


def _label_names(labels: Any) -> list[Any]:
    """Check that names of labels differ, and return them as plain Python values."""
    names = [plain(name) for name in validation.list_of("labels", labels, "names of labels")]
    for name in names:
        validation.instance("labels", name, (str, int, float), "a list of texts or numbers")
    if len(set(map(str, names))) != len(names):
        raise ValueError(f"labels must have different names, got {names}")
    return names


def _call(name: str, model: Any, features: Any) -> FloatArray:
    """Probabilities ``(n, M)`` that a model predicts.

    Args:
        name: name of the model, for messages.
        model: a classifier, or a function of all rows or of one row.
        features: features of n users, an array ``(n, d)`` or a data frame.
    """
    what = f"what {name!r} predicts"
    columns = getattr(model, "feature_names_in_", None)
    if hasattr(features, "columns") and columns is not None:
        missing = [column for column in columns if column not in features.columns]
        if missing:
            raise ValueError(f"{name!r} needs the feature {missing[0]!r}, which is not in X")
        return validation.numbers(what, model.predict_proba(features[list(columns)]))
    rows = np.asarray(features)
    if hasattr(model, "predict_proba"):
        return probabilities_of(model, rows)
    if not callable(model):
        raise TypeError(f"model {name!r} must be a function, or have predict_proba; got {model!r}")
    return _call_function(what, model, rows)


def _call_function(what: str, function: Any, rows: npt.NDArray[Any]) -> FloatArray:
    """Values ``(n, M)`` of a function that takes all rows at once, or else one row at a time.

    Args:
        what: the values in words, for messages.
        function: the function.
        rows: features of n users, ``(n, d)``.
    """

    def call_with(argument: npt.NDArray[Any]) -> FloatArray:
        """Call the function, and check that it returns numbers."""
        return validation.numbers(what, function(argument))

    of_all = None
    with suppress(Exception):  # a function of one row may do anything with several
        of_all = call_with(rows)
    if of_all is None or of_all.ndim != 2 or len(of_all) != len(rows):
        return np.stack([call_with(row) for row in rows])

    of_first = None
    with suppress(Exception):  # a function of several rows may do anything with one
        of_first = call_with(rows[0])
    if of_first is None or of_first.ndim != 1:
        return of_all

    # The function takes both. If it treats columns as rows, of a square array, its values are others.
    of_last = call_with(rows[-1])
    ends = of_all[[0, -1]]
    if ends.shape[1:] == of_first.shape and np.allclose(ends, [of_first, of_last]):
        return of_all
    return np.stack([call_with(row) for row in rows])


def normalised(rows: FloatArray, name: str) -> FloatArray:
    """Check distributions ``(n, M)``, and normalise them.

    A row whose sum misses one by as much as rounding its numbers may do is normalised with a warning.

    Args:
        rows: the distributions.
        name: name of a row, to which messages add its number.
    """
    with np.errstate(invalid="ignore"):  # infinities are an error below
        off = np.abs(rows.sum(axis=-1) - 1.0)
    largest_miss = ROUNDING * (1.0 + 1e-9)  # the sum itself is rounded
    rounded = (off > game_arrays.ROW_TOLERANCE) & (off <= largest_miss)
    if rounded.any():
        warnings.warn(
            f"{name} {int(rounded.argmax())} sums to one only up to {off[rounded].max():.1g}, like a rounded "
            f"prediction; {int(rounded.sum())} such rows are renormalised",
            stacklevel=2,
        )
        rows = rows.copy()
        rows[rounded] /= rows[rounded].sum(axis=-1, keepdims=True)
    return game_arrays.distributions(rows, lambda row: f"{name} {row[0]}")


# -- Probe rows and fingerprints ----------------------------------------------------------------------------


def _probe_rows(features: Any) -> list[list[Any]]:
    """Made-up users: the lower quartile, median and upper quartile of each feature, one feature at a time.

    Features that are not numbers take their most frequent value.
    """
    if hasattr(features, "columns"):
        columns = [features.iloc[:, i] for i in range(features.shape[1])]
        values = [_quantiles(column.to_numpy()) for column in columns]
    else:
        values = [_quantiles(column) for column in np.asarray(features).T]
    return [list(row) for row in zip(*values, strict=True)]


def _quantiles(values: npt.NDArray[Any]) -> list[Any]:
    """Quartiles of a feature's values ``(n,)``; three times the most frequent value if they are not numbers.

    Of a feature without a finite value they are 0.
    """
    kind = values.dtype.kind
    if kind == "f":
        values = values[np.isfinite(values)]
        if not values.size:
            return [0.0] * len(_PROBE_SHARES)
    is_number = kind in ("i", "u", "f")  # integers, unsigned ones, floats
    if is_number:
        nearest: list[Any] = np.quantile(values, _PROBE_SHARES, method="nearest").tolist()
        return nearest
    names, counts = np.unique(values.astype(str), return_counts=True)
    commonest = names[counts.argmax()]
    value = next(value for value in values.tolist() if str(value) == commonest)
    return [value] * len(_PROBE_SHARES)


def rows_of_features(rows: Sequence[Any], features: Sequence[str] | None) -> Any:
    """Rows of features as the models take them: a data frame if the features have names."""
    if features is None:
        return np.asarray(rows)
    from pandas import DataFrame

    return DataFrame(list(rows), columns=list(features))


def fingerprint_of(table: FloatArray) -> str:
    """SHA-256 hash of probabilities, rounded to six digits.

    Example:
        >>> fingerprint_of(np.array([0.5, 0.5])) == fingerprint_of(np.array([0.5 + 1e-9, 0.5 - 1e-9]))
        True
    """
    rounded = np.round(table, _FINGERPRINT_DIGITS) + 0.0  # -0.0 becomes 0.0
    text = json.dumps(rounded.tolist())
    return hashlib.sha256(text.encode()).hexdigest()


def label_index(labels: Sequence[Any], label: object) -> int:
    """Index of a label by its name, or by the name's text, as from a command line."""
    names = [str(name) for name in labels]
    if str(label) not in names:
        shown = ", ".join(names[:_LABELS_SHOWN])
        if len(names) > _LABELS_SHOWN:
            shown += ", ..."
        raise ValueError(f"there is no label {str(label)!r} in this survey; its labels: {shown}")
    return names.index(str(label))
