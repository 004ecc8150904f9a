"""Real labels: the suite ``replay``, on two data sets that come with scikit-learn.

The models and the users are functions here, which rules name as ``"ldp_gym.bench.suites.replay:digits"``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.suites.base import channel_rules
from ldp_gym.bench.suites.own_game import EPSILONS, SelectionSuite
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.errors import extra

_CHANNELS = (
    "laplace-single",
    "randomized-response",
    "subset-selection",
    "split",
    "adaptive-split",
    "identity",
)
_LEARNERS = ("uniform", "centred-exp3", "bayes", "fixed-share", "soft-bayes", "robust")


class Replay(SelectionSuite):
    """Fitted classifiers, and users whose own labels stay private."""

    name = "replay"
    title = "Real labels: which channel and eps pick the right model"
    claim = (
        "Logged labels are replayed in a new order in every episode, each user once; the charge is the "
        "log-loss, and the right model is the one that is charged least over all users. digits: eight "
        "models of handwritten digits, each fitted on pictures held in another way, and users who all hold "
        "theirs in one of these ways. tumours: six models of breast tumours, from naive to good. With two "
        "labels a comparison is randomized response on the label: there split, adaptive-split and "
        "randomized-response are one channel in law, and their differences are chance."
    )
    order = 96

    def own_experiments(self, small: bool) -> list[Experiment]:
        with extra("examples", "the suite replay"):
            import sklearn  # noqa: F401 - its parts are imported where models are fitted
        channels = ("laplace-single", "split", "identity") if small else _CHANNELS
        experiments = []
        for game in ("digits", "tumours"):
            users = {part: f"{__name__}:{game}_{part}" for part in ("contexts", "labels")}
            rules: dict[str, Any] = {"hypotheses": f"{__name__}:{game}", "truth": "replay"}
            rules |= {"truth_kwargs": {**users, "order": "shuffled"}} | ({"horizon": 100} if small else {})
            for channel in channels:
                levels = EPSILONS[:1] if channel == "identity" else EPSILONS[::3] if small else EPSILONS
                experiments += [
                    Experiment(
                        {**rules, **channel_rules(channel), "epsilon": epsilon},
                        learner,
                        episodes=8 if small else 64,
                        leaders=True,
                        block=64,
                    )
                    for epsilon in levels
                    for learner in (("uniform", "bayes", "robust") if small else _LEARNERS)
                ]
        return experiments


@cache
def _digits() -> tuple[list[Any], FloatArray, IntArray]:
    """Models of digits in pictures held in eight ways, and 400 users who all hold theirs in the sixth."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pictures, labels = load_digits(return_X_y=True)
    slices = [rows for _, rows in StratifiedKFold(20, shuffle=True, random_state=0).split(pictures, labels)]
    models = []
    for way, rows in enumerate(slices[:8]):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
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
    from sklearn.compose import make_column_transformer
    from sklearn.datasets import load_breast_cancer
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    measured, labels = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(labels))
    fitted, users = rows[:120], rows[120:]
    models = [
        DummyClassifier(strategy="prior"),
        make_pipeline(make_column_transformer((StandardScaler(), [1])), LogisticRegression()),
        make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1.0)),
        make_pipeline(StandardScaler(), LogisticRegression(C=1e-3)),
        make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
        make_pipeline(StandardScaler(), KNeighborsClassifier(60)),
    ]
    return [model.fit(measured[fitted], labels[fitted]) for model in models], measured[users], labels[users]


def digits() -> list[Any]:
    """Models of handwritten digits."""
    return _digits()[0]


def digits_contexts() -> FloatArray:
    """Users' pictures."""
    return _digits()[1]


def digits_labels() -> IntArray:
    """Users' digits."""
    return _digits()[2]


def tumours() -> list[Any]:
    """Models of breast tumours."""
    return _tumours()[0]


def tumours_contexts() -> FloatArray:
    """Users' measurements."""
    return _tumours()[1]


def tumours_labels() -> IntArray:
    """Users' diagnoses."""
    return _tumours()[2]
