"""``ldp-gym select``: which of your models suits your users, found from private labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldp_gym.cli.arguments import allow_local_imports
from ldp_gym.core.registry import resolve
from ldp_gym.selection import DEFAULT_CHANNELS, DEFAULT_EPSILONS, DEFAULT_LEARNERS, select


def select_command(
    users: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="CSV file, a row per user.")],
    label: Annotated[str, typer.Option(help="Column of the private labels; the others are features.")],
    models: Annotated[
        str, typer.Option(help="module:object, a list or dict of fitted classifiers, or a function of them.")
    ],
    channel: Annotated[list[str] | None, typer.Option(help="Channel, once for each.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option(help="Privacy level, once for each.")] = None,
    learner: Annotated[list[str] | None, typer.Option(help="Learner, once for each.")] = None,
    runs: Annotated[int, typer.Option(min=2, help="Number of runs.")] = 100,
    batch: Annotated[int, typer.Option(min=1, help="Users who answer under one public posterior.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first run.")] = 0,
    jobs: Annotated[int, typer.Option(help="Number of processes; -1: one per core.")] = -1,
    figure: Annotated[Path | None, typer.Option(help="Picture to write, such as found.png.")] = None,
    table: Annotated[Path | None, typer.Option(help="CSV file to write all numbers to.")] = None,
) -> None:
    """Replay users of a CSV file; say which channel and eps find the best model, and from how many users."""
    import pandas as pd

    allow_local_imports()
    frame = pd.read_csv(users)
    if label not in frame.columns:
        raise typer.BadParameter(f"{users} has no column {label!r}, only {', '.join(frame.columns)}")
    try:
        chosen = select(
            resolve(models, "models"),
            frame.drop(columns=label),
            frame[label].to_numpy(),
            channels=channel or DEFAULT_CHANNELS,
            epsilons=epsilon or DEFAULT_EPSILONS,
            learners=learner or DEFAULT_LEARNERS,
            runs=runs,
            batch=batch,
            seed=seed,
            jobs=jobs,
        )
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    typer.echo(chosen)
    if figure is not None:
        chosen.save_figure(figure)
    if table is not None:
        chosen.frame.to_csv(table, index=False)
