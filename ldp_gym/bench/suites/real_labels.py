"""Real labels: the suite ``replay``, on two data sets that come with scikit-learn.

Models and users are attributes of this module, such as ``digits``, ``digits_contexts`` and ``digits_labels``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.suites.own_game import EPSILONS, SelectionSuite
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.errors import extra


class RealLabels(SelectionSuite):
    """Fitted classifiers, and users whose own labels stay private."""

    name = "replay"
    title = "Real labels: which channel and eps pick the right model"
    claim = (
        "Logged labels are replayed in a new order in every episode, each user once; the charge is the "
        "log-loss, and the right model is the one that is charged least over all users. digits: eight "
        "models of handwritten digits, each fitted on pictures held in another way, and users who all hold "
        "theirs in one of these ways. tumours: six models of breast tumours. With two labels a comparison "
        "is randomized response on the label: there split, adaptive-split and randomized-response are one "
        "channel in law, and their differences are chance."
    )

    def own_experiments(self, small: bool) -> list[Experiment]:
        with extra("examples", "the suite replay"):
            import sklearn  # noqa: F401 - its parts are imported where models are fitted
        pure = ("laplace-single", "split", "randomized-response", "subset-selection", "adaptive-split")
        every = ("uniform", "bayes", "robust", "centred-exp3", "fixed-share", "soft-bayes")
        channels, learners, count = (pure[:2], every[:3], 8) if small else (pure, every, 64)
        levels = [(channel, epsilon) for channel in channels for epsilon in EPSILONS[:: 3 if small else 1]]
        return [
            Experiment(
                {**rules, "channel": channel, "epsilon": epsilon}, learner, episodes=count, leaders=True
            )
            for rules in (_rules("digits", small), _rules("tumours", small))
            for channel, epsilon in (*levels, ("identity", EPSILONS[0]))
            for learner in learners
        ]


def _rules(game: str, small: bool) -> dict[str, Any]:
    users = {part: f"{__name__}:{game}_{part}" for part in ("contexts", "labels")}
    rules = {"hypotheses": f"{__name__}:{game}", "truth": "replay"}
    return rules | {"truth_kwargs": {**users, "order": "shuffled"}} | ({"horizon": 100} if small else {})


@cache
def _digits() -> tuple[list[Any], FloatArray, IntArray]:
    """Models of digits in pictures held in eight ways, and 400 users who all hold theirs in the sixth."""
    from sklearn import datasets, linear_model, model_selection, pipeline, preprocessing

    pictures, labels = datasets.load_digits(return_X_y=True)
    folds = model_selection.StratifiedKFold(20, shuffle=True, random_state=0)
    slices = [rows for _, rows in folds.split(pictures, labels)]
    models = []
    for way, rows in enumerate(slices[:8]):
        regression = linear_model.LogisticRegression(C=0.1, max_iter=1000)
        model = pipeline.make_pipeline(preprocessing.StandardScaler(), regression)
        models.append(model.fit(_held(pictures[rows], way), labels[rows]))
    users = np.concatenate(slices[8:])[:400]
    return models, _held(pictures[users], 5), labels[users]


def _held(pictures: FloatArray, way: int) -> FloatArray:
    """Pictures ``(n, 64)`` held in one of the eight ways: turned, and in a mirror or not."""
    squares = np.rot90(pictures.reshape(-1, 8, 8), way % 4, axes=(1, 2))
    return (squares if way < 4 else squares[:, :, ::-1]).reshape(-1, 64)


@cache
def _tumours() -> tuple[list[Any], FloatArray, IntArray]:
    """Models of tumours, fitted on 120 patients, and the other patients' measurements and diagnoses."""
    from sklearn import compose, datasets, linear_model, naive_bayes, neighbors
    from sklearn.dummy import DummyClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    measured, labels = datasets.load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(labels))
    fitted, users = rows[:120], rows[120:]
    models = [
        DummyClassifier(strategy="prior"),
        make_pipeline(
            compose.make_column_transformer((StandardScaler(), [1])), linear_model.LogisticRegression()
        ),
        make_pipeline(StandardScaler(), naive_bayes.GaussianNB(var_smoothing=1.0)),
        make_pipeline(StandardScaler(), linear_model.LogisticRegression(C=1e-3)),
        make_pipeline(StandardScaler(), linear_model.LogisticRegression(C=0.1)),
        make_pipeline(StandardScaler(), neighbors.KNeighborsClassifier(60)),
    ]
    return [model.fit(measured[fitted], labels[fitted]) for model in models], measured[users], labels[users]


def __getattr__(name: str) -> Any:
    """Models, contexts and labels of a game, made when they are first asked for."""
    game, _, part = name.partition("_")
    if game not in ("digits", "tumours") or part not in ("", "contexts", "labels"):
        raise AttributeError(f"{__name__} has no attribute {name!r}")
    made = _digits() if game == "digits" else _tumours()
    return made[("", "contexts", "labels").index(part)]
