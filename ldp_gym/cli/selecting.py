"""``ldp-gym select``: which of your models suits your users, found from private labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ldp_gym.cli.arguments import RuleOption, allow_local_imports, place_in_own_code, rules_of
from ldp_gym.core.errors import summarize
from ldp_gym.core.registry import resolve
from ldp_gym.selection import select
from ldp_gym.selection.search import DEFAULT_CHANNELS, DEFAULT_EPSILONS, DEFAULT_LEARNERS


def select_command(
    log: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="CSV file, a row per user.")],
    label: Annotated[str, typer.Option(help="Column of the private labels.")],
    models: Annotated[
        str | None,
        typer.Option(
            help="module:object, a list or dict of fitted classifiers, or a function of them. Without it the "
            "other columns are predictions, named model:label."
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Nats of log-loss per user that do not matter; a share of the spread if not given."
        ),
    ] = None,
    channel: Annotated[list[str] | None, typer.Option(help="Channel, once for each.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option(help="Privacy level, once for each.")] = None,
    learner: Annotated[list[str] | None, typer.Option(help="Learner, once for each.")] = None,
    users: Annotated[
        int | None, typer.Option(help="Most users to ask; 4 times the log if not given.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Users who answer under one public posterior.")] = None,
    rule: RuleOption = None,
    runs: Annotated[int, typer.Option(help="Number of runs that screen a row.")] = 100,
    order: Annotated[
        str, typer.Option(help="shuffled, or given: users come in the log's order.")
    ] = "shuffled",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first run.")] = 0,
    jobs: Annotated[int, typer.Option(help="Number of processes; -1: one per core.")] = -1,
    out: Annotated[Path | None, typer.Option(help="Directory of results, to go on after a stop.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Picture to write, such as found.png.")] = None,
    table: Annotated[Path | None, typer.Option(help="CSV file to write all numbers to.")] = None,
    plan: Annotated[Path | None, typer.Option(help="JSON file to write the recommended plan to.")] = None,
) -> None:
    """Learn from a log of users which channel and eps find the best model, and from how many users."""
    allow_local_imports()
    try:
        _check_outputs(figure, table, plan)
        frame = _read(log, label)
        rest = frame.drop(columns=label)
        data = {"probabilities": rest} if models is None else {"models": resolve(models, "models"), "X": rest}
        chosen = select(
            **data,
            y=frame[label].to_numpy(),
            tolerance=tolerance,
            channels=channel or DEFAULT_CHANNELS,
            epsilons=epsilon or DEFAULT_EPSILONS,
            learners=learner or DEFAULT_LEARNERS,
            users=users,
            runs=runs,
            order=order,
            seed=seed,
            jobs=jobs,
            out=out,
            **rules_of(rule, batch=batch),
        )
    except OSError:
        raise  # the command says it in a line
    except Exception as error:  # a user's models may fail in any way
        said = str(error) if isinstance(error, TypeError | ValueError) else summarize(error)
        raise typer.BadParameter(f"{said}{place_in_own_code(error)}") from error
    typer.echo(chosen)
    if figure is not None:
        chosen.save_figure(figure)
    if table is not None:
        chosen.frame.to_csv(table, index=False)
    if plan is not None and chosen.plan is not None:
        plan.write_text(chosen.plan.to_json(), "utf-8")


def _read(path: Path, label: str) -> Any:
    """The users of a CSV file, with the labels as text."""
    import pandas as pd

    try:
        frame = pd.read_csv(path, converters={label: str})
    except ValueError as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8 with a header: {error}") from None
    if label not in frame.columns:
        names = ", ".join(map(str, frame.columns[:20]))
        raise ValueError(f"{path} has no column {label!r}, only {names}")
    if frame.empty:
        raise ValueError(f"{path} has a header and no users")
    return frame


def _check_outputs(figure: Path | None, *others: Path | None) -> None:
    """Find out before the runs that a file cannot be written."""
    from matplotlib.figure import Figure

    for path in filter(None, (figure, *others)):
        if not path.parent.is_dir():
            raise ValueError(f"cannot write {path}: there is no directory {path.parent}")
    endings = sorted(Figure().canvas.get_supported_filetypes())
    if figure is not None and figure.suffix[1:].lower() not in endings:
        raise ValueError(f"a figure ends in one of {', '.join(endings)}; got {figure.name!r}")
