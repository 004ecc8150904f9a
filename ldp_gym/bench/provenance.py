"""Help for readers of a report: how to read it, and its runs with command lines, seeds and versions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ldp_gym.bench.page import Column, Html, Value, count, table, tag


def explain() -> Html:
    """A section on the meaning of the numbers."""
    return tag(
        "section",
        tag("h2", "How to read it"),
        tag(
            "p",
            "In each round a learner predicts a distribution over the labels. Its loss is the KL divergence"
            " from the true distribution to its prediction, in nats. It sees a private message about the "
            "label, and never its loss. The risk is the expected sum over T rounds: the mean over episodes,"
            " with a 95% interval; of the worst truth, if every truth was played. All learners in a game "
            "play the same tapes (contexts, labels and messages), so that their differences are paired.",
        ),
        tag(
            "p",
            "The score is (uniform - risk) / (uniform - Bayes) on the same tapes: 1 is Bayes, 0 has learned"
            " nothing; it is blank if the denominator is within its error, or the truth is outside the "
            "class. The regret is the risk minus that of the best hypothesis in hindsight. The marks of "
            "findings are computed from the data. Learners that do not understand a channel's messages are "
            "absent from it. Click a header to sort a table.",
        ),
        class_="reading",
        id="reading",
    )


def list_runs(runs: Sequence[Mapping[str, Any]]) -> Html:
    """A table of all runs."""
    columns: list[Column[Mapping[str, Any]]] = [
        Column("Run", lambda run: count(run["id"]), numeric=True),
        Column("Suite", lambda run: Value(run["suite"])),
        Column("Started", lambda run: Value(format_time(run["started"]))),
        Column(
            "Finished", lambda run: Value(format_time(run["finished"]) if run["finished"] else "not finished")
        ),
        Column("Cells", lambda run: count(len(run["keys"])), "blocks of episodes", numeric=True),
        Column("Seeds", lambda run: Value(f"from {run['settings']['seed']}"), common=True),
        Column("Machine", lambda run: Value(run["machine"]), common=True),
        Column("Versions", lambda run: Value(versions(run)), common=True),
        Column("Command line, as it was", lambda run: Value(run["command"], style="wrap"), common=True),
    ]
    return tag(
        "section",
        tag("h2", "Runs"),
        table(columns, runs, label="Runs", identifier="run-table"),
        id="runs",
    )


def commands(runs: Sequence[Mapping[str, Any]], directory: Path) -> str:
    """The command lines that give the same results."""
    return "\n".join(_command(run, directory) for run in runs)


def _command(run: Mapping[str, Any], directory: Path) -> str:
    settings = run["settings"]
    rules = settings.get("parameters", {}).get("rules", {})
    words = ["ldp-gym", "bench", *([] if rules else [run["suite"]])]
    for name, value in rules.items():
        words += ["--rule", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    for option, names in (("--learner", settings["learners"]), ("--channel", settings["channels"])):
        for name in names:
            words += [option, name]
    if settings["episodes"] is not None:
        words += ["--episodes", str(settings["episodes"])]
    if settings["size"] != "default":
        words += ["--size", settings["size"]]
    words += ["--seed", str(settings["seed"]), "--out", directory.name or "."]
    return shlex.join(words)


def versions(run: Mapping[str, Any]) -> str:
    """The versions of a run in one line."""
    return ", ".join(f"{name} {version}" for name, version in run["versions"].items())


def format_time(stamp: str) -> str:
    """An ISO 8601 time for readers."""
    return stamp[:19].replace("T", " ") + " UTC"
