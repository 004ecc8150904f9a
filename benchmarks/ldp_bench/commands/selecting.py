"""``ldp-gym select``: which of your models suits your users, found from private labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option, echo

from ldp_bench.commands.arguments import (
    RuleOption,
    allow_local_imports,
    place_in_own_code,
    rules_of,
)
from ldp_bench.selection import select
from ldp_gym.core.errors import summarize
from ldp_gym.core.registry import resolve

_MODELS = (
    "module:object, fitted classifiers. Else the other columns are predictions, named model:label."
)


def select_command(
    log: Annotated[
        Path, Argument(metavar="LOG", exists=True, dir_okay=False, help="CSV, a row per user.")
    ],
    label: Annotated[str, Option(metavar="COLUMN", help="Column of the private labels.")],
    models: Annotated[str | None, Option(metavar="OBJECT", help=_MODELS)] = None,
    tolerance: Annotated[
        float | None, Option(metavar="NATS", help="Log-loss per user to ignore.")
    ] = None,
    channel: Annotated[
        list[str] | None, Option(metavar="NAME", help="Channel; repeatable.")
    ] = None,
    epsilon: Annotated[
        list[float] | None, Option(metavar="EPS", help="Privacy level; repeatable.")
    ] = None,
    learner: Annotated[
        list[str] | None, Option(metavar="NAME", help="Learner; repeatable.")
    ] = None,
    users: Annotated[
        int | None, Option(metavar="N", help="Most users; default: 4 times the log.")
    ] = None,
    batch: Annotated[
        int | None, Option(metavar="N", help="Users who answer at the same time.")
    ] = None,
    rule: RuleOption = None,
    runs: Annotated[int, Option(metavar="N", help="Simulated surveys of each choice.")] = 100,
    order: Annotated[
        str, Option(metavar="ORDER", help="Users are shuffled, or as given.")
    ] = "shuffled",
    seed: Annotated[int, Option(metavar="N", min=0, help="Seed of the first run.")] = 0,
    jobs: Annotated[int, Option(metavar="N", help="Number of processes; -1: one per core.")] = -1,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="Results, to go on after a stop.")
    ] = None,
    table: Annotated[
        Path | None, Option(metavar="FILE", help="CSV file to write all numbers to.")
    ] = None,
    plan: Annotated[
        Path | None, Option(metavar="FILE", help="JSON file for the recommended plan.")
    ] = None,
) -> None:
    """Plan a private survey that finds your best model.

    It names a channel, which turns a label into one random message; eps (no message is more than e^eps times
    as likely under one label as under another); a learner to read messages; and how many users to ask.
    """
    allow_local_imports()
    try:
        for path in filter(None, (table, plan)):
            if not path.parent.is_dir():
                raise ValueError(f"cannot write {path}: there is no directory {path.parent}")
        rest = _read(log, label)
        y = rest.pop(label).to_numpy()
        data = (
            {"probabilities": rest}
            if models is None
            else {"models": resolve(models, "models"), "X": rest}
        )
        lists = {"channels": channel, "epsilons": epsilon, "learners": learner}
        more: dict[str, Any] = {name: given for name, given in lists.items() if given}
        more |= {"order": order, "seed": seed, "jobs": jobs, "out": out} | rules_of(
            rule, batch=batch
        )
        chosen = select(**data, y=y, tolerance=tolerance, users=users, runs=runs, **more)
    except OSError:
        raise  # the command says it in a line
    except Exception as error:  # a user's models may fail in any way
        said = str(error) if isinstance(error, TypeError | ValueError) else summarize(error)
        raise BadParameter(f"{said}{place_in_own_code(error)}") from error
    echo(chosen)
    if table is not None:
        chosen.frame.to_csv(table, index=False)
    if plan is not None and chosen.plan is not None:
        plan.write_text(chosen.plan.to_json(), "utf-8")
    elif plan is not None:
        echo(f"There is no plan to write to {plan}.", err=True)


def _read(path: Path, label: str) -> Any:
    """The users of a CSV file, with the labels as text."""
    import pandas as pd

    try:
        frame = pd.read_csv(path)
    except ValueError as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8 with a header: {error}") from None
    if label not in frame.columns:
        raise ValueError(
            f"{path} has no column {label!r}, only {', '.join(map(str, frame.columns[:20]))}"
        )
    frame[label] = pd.read_csv(path, usecols=[label], dtype=str, keep_default_na=False)[
        label
    ]  # "NA", "01"
    if frame.empty:
        raise ValueError(f"{path} has a header and no users")
    return frame
