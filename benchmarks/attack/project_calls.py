"""Calls for a project around the game: benchmark runs, deployments and splits."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from attack.call import Call
from attack.wrong_values import (
    CHANNEL,
    COUNTS,
    FLAGS,
    FUNCTIONS,
    JOBS,
    MEASURES,
    OPTIONS,
    RULES,
    SHARES,
    THINGS,
    WORDS,
    no_arrays,
)

from ldp_gym import bench, splits
from ldp_gym.bench import findings
from ldp_gym.privacy import ExactChannel

SPLIT = splits.Split("tiny", "a game", {"game": RULES})
PATHS: list[Any] = [3, 1.5, True, object(), [], {}, math.nan, b"x", np.zeros(2)]
NAMES: list[Any] = ["abc", 3, 1.5, True, object(), [3], [None], {"a": 1}, b"x", ["nobody-at-all"]]
NEW = "a new directory"
NO_DICTS = [*(value for value in OPTIONS if not isinstance(value, dict)), {1: 2}]
TEXTS: list[Any] = [3, 1.5, True, object(), [], {}, b"x"]
SPLITS: list[Any] = [*THINGS, [], {}, splits.Split, np.zeros(3)]


def _temporarily(function: Callable[..., Any], argument: str) -> Callable[..., Any]:
    """The function with a directory of its own, unless the argument is another."""

    def call(**arguments: Any) -> Any:
        with tempfile.TemporaryDirectory() as directory:
            if arguments[argument] is NEW:
                arguments[argument] = Path(directory)
            return function(**arguments)

    return call


def _bench_calls() -> Iterator[Call]:
    yield Call(
        "bench.run",
        _temporarily(bench.run, "out"),
        {
            "suite": "limit",
            "size": "small",
            "episodes": 2,
            "jobs": 1,
            "out": NEW,
            "learners": [],
            "channels": [],
            "seed": 0,
            "dask": None,
            "time_limit": 60.0,
            "memory_limit": 4.0,
            "strict": False,
            "trust": False,
            "secret": None,
            "on_start": None,
            "on_cell": None,
        },
        {
            "suite": SPLITS,
            "size": WORDS,
            "jobs": JOBS,
            "out": PATHS,
            "learners": NAMES,
            "channels": NAMES,
            "dask": TEXTS,
            "time_limit": MEASURES,
            "memory_limit": MEASURES,
            "strict": FLAGS,
            "trust": FLAGS,
            "secret": TEXTS,
            "on_start": FUNCTIONS,
            "on_cell": FUNCTIONS,
        },
        words={"learners": ("learner",), "channels": ("channel",)},
        optional=("episodes",),
        covers=bench.run,
    )
    yield Call(
        "Store",
        _temporarily(bench.Store, "directory"),
        {"directory": NEW},
        {"directory": PATHS},
        covers=bench.Store,
    )
    experiment = {
        "rules": RULES,
        "learner": "uniform",
        "options": {},
        "episodes": 2,
        "truth": None,
        "averages": False,
        "leaders": False,
        "block": 2,
    }
    yield Call(
        "Experiment",
        bench.Experiment,
        experiment,
        {
            "rules": OPTIONS,
            "options": NO_DICTS,
            "learner": TEXTS,
            "truth": [*TEXTS[1:], -1],
            "block": COUNTS,
        },
    )
    samples = np.array([1.0, 2.0, 3.0])
    for name in ("above", "below"):
        yield Call(
            name,
            getattr(findings, name),
            {"samples": samples, "value": 0.0},
            {"samples": no_arrays(3, 3), "value": SHARES[:-6]},
        )

    lists: list[Any] = ["ab", 3, 1.5, True, object(), [3], [None], {"a": 1}, b"x"]
    yield Call("certain", bench.certain, {"holds": True}, {"holds": FLAGS})
    yield Call("every", bench.every, {"parts": [bench.certain(True)]}, {"parts": lists})
    yield Call("judge", bench.judge, {"findings": [bench.Finding("so")]}, {"findings": lists})
    finding = {"text": "so", "evidence": None}
    yield Call("Finding", bench.Finding, finding, {"text": TEXTS, "evidence": [*FLAGS, 3, "yes"]})


def _deployment_calls() -> Iterator[Call]:
    yield Call("ExactChannel", ExactChannel, {"channel": CHANNEL})


def _split_calls() -> Iterator[Call]:
    yield Call(
        "splits.score",
        splits.score,
        {"learner": "bayes", "split": SPLIT, "episodes": 4, "seed": 0, "progress": None},
        {"split": SPLITS},
    )
    yield Call("split_of", splits.split_of, {"name": "memory"}, {"name": SPLITS}, words={"name": ("split",)})
    yield Call(
        "Split",
        splits.Split,
        {"name": "a", "about": "b", "games": {"c": RULES}},
        {"name": TEXTS, "about": TEXTS, "games": [*OPTIONS, {}, {"c": 3}]},
        words={"name": ("name",)},
    )
    totals = np.arange(1.0, 5.0)
    yield Call(
        "score_totals",
        splits.score_totals,
        {"uniform": totals + 9, "totals": totals, "bayes": totals - 0.5},
        dict.fromkeys(("uniform", "totals", "bayes"), no_arrays(4)),
    )


def project_calls() -> Iterator[Call]:
    """All of them."""
    for part in (_bench_calls, _deployment_calls, _split_calls):
        yield from part()
