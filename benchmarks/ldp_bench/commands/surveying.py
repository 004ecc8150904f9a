"""``ldp-gym plan``, ``answer`` and ``read``: a private survey, from its plan to its end."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Exit, Option, echo

from ldp_bench.commands.arguments import allow_local_imports, place_in_own_code, value_of
from ldp_bench.planning.models import Models
from ldp_bench.planning.reading import Survey, answer_line, candidates_at
from ldp_bench.planning.record import Plan
from ldp_bench.planning.search import plan
from ldp_gym.core.errors import summarize
from ldp_gym.core.files import write_text
from ldp_gym.core.registry import resolve
from ldp_gym.privacy import ExactChannel

_MODELS = (
    'module:object, models by name; or a table as JSON: \'{"a": [0.9, 0.1], "b": [0.5, 0.5]}\'.'
)
_USERS = "CSV of features, a row per user, without labels; or of predictions, columns model:label."

_GO_ON = 3
"""Exit status of `ldp-gym read` for a survey that is not finished."""

PlanFile = Annotated[
    Path, Argument(metavar="PLAN", exists=True, dir_okay=False, help="JSON from `ldp-gym plan`.")
]
ModelsOption = Annotated[str | None, Option(metavar="MODELS", help=_MODELS)]
LabelsOption = Annotated[
    str | None, Option(metavar="NAMES", help="Names of a table's labels, separated by commas.")
]


def plan_command(
    users: Annotated[
        Path | None, Argument(metavar="USERS", exists=True, dir_okay=False, help=_USERS)
    ] = None,
    models: ModelsOption = None,
    epsilon: Annotated[
        list[float] | None, Option(metavar="EPS", help="Privacy level; repeatable.")
    ] = None,
    channel: Annotated[
        list[str] | None, Option(metavar="NAME", help="Channel; repeatable.")
    ] = None,
    labels: LabelsOption = None,
    alpha: Annotated[
        float, Option(metavar="P", help="Largest probability to drop a model that is right.")
    ] = 0.05,
    tolerance: Annotated[
        float, Option(metavar="NATS", help="Divergence per user that does not matter.")
    ] = 0.0,
    most_users: Annotated[int, Option(metavar="N", help="Largest number of users.")] = 100_000,
    batch: Annotated[int, Option(metavar="N", help="Users who answer at the same time.")] = 1,
    runs: Annotated[int, Option(metavar="N", help="Simulated surveys of each truth.")] = 100,
    seed: Annotated[int, Option(metavar="N", min=0, help="Seed of the simulation.")] = 0,
    jobs: Annotated[int, Option(metavar="N", help="Number of processes; -1: one per core.")] = -1,
    table: Annotated[
        Path | None, Option(metavar="FILE", help="CSV file to write all numbers to.")
    ] = None,
    to: Annotated[
        Path | None, Option("--plan", metavar="FILE", help="JSON file for the recommended plan.")
    ] = None,
) -> None:
    """Plan a private survey that tells which of your models is right, without labels.

    It says how many users to ask, and through which channel. Exit status 1 if the survey needs more than the
    largest number of users.
    """
    with _one_line_errors():
        if epsilon is None:
            raise ValueError("state the privacy level that you allow: --epsilon 1")
        _check_writable(table)
        _check_writable(to)
        frame = None
        if users is not None:
            frame = _read_csv(users)
        features = frame
        probabilities = None
        if models is None:  # then the columns of the file are predictions
            features = None
            probabilities = frame
        planned = plan(
            _read_models(models, labels),
            features,
            probabilities=probabilities,
            epsilon=epsilon,
            channels=channel,
            alpha=alpha,
            tolerance=tolerance,
            most_users=most_users,
            batch=batch,
            runs=runs,
            seed=seed,
            jobs=jobs,
        )
    echo(planned)
    if table is not None:
        planned.frame.to_csv(table, index=False)
    if planned.plan is None:
        if to is not None:
            echo(f"There is no plan to write to {to}.", err=True)
        raise Exit(1)
    if to is not None:
        write_text(to, planned.plan.to_json())


def answer_command(
    path: PlanFile,
    label: Annotated[str, Option(metavar="LABEL", help="The private label.")],
    context: Annotated[
        str | None,
        Option(metavar="JSON", help="The user's features: a list, or an object by name."),
    ] = None,
    posterior: Annotated[
        str | None, Option(metavar="JSON", help="Public posterior, from `ldp-gym read`.")
    ] = None,
    models: ModelsOption = None,
    most: Annotated[float, Option(metavar="EPS", help="Largest eps that you allow.")] = 1.0,
) -> None:
    """Print one private message about a label, as a line of JSON.

    Integer probabilities, and coins of the operating system. Answer once per person.
    """
    with _one_line_errors():
        agreed = Plan.from_json(path.read_text("utf-8"), most=most)
        channel = ExactChannel(agreed, most=most)
        features = None
        if context is not None:
            features = value_of(context)
        public = None
        if channel.channel.adaptive:
            public = value_of(posterior or "null")
            if public is None:
                raise ValueError(
                    "users of this channel answer in turn: --posterior, from `ldp-gym read`"
                )

        candidates = candidates_at(agreed, _read_agreed(agreed, models), features)
        message, _ = channel.answer(agreed.label(label), candidates, public)
        if agreed.table is not None:  # the server needs no features to read the message
            features = None
        line = answer_line(message, features, public)
    echo(line)


def read_command(
    path: PlanFile,
    messages: Annotated[
        Path, Argument(metavar="MESSAGES", exists=True, dir_okay=False, help="A line per answer.")
    ],
    models: ModelsOption = None,
) -> None:
    """Read all messages of a survey; print what is left, how sure it is, and whether to stop.

    The file is the whole state: append new answers, and read it again. Exit status 0 to stop, 3 to go on.
    """
    with _one_line_errors():
        agreed = Plan.from_json(path.read_text("utf-8"))
        survey = Survey(agreed, _read_agreed(agreed, models))
        lines = messages.read_text("utf-8").splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            echo("The last line is not complete, and is left out.", err=True)
            lines.pop()
        survey.read_lines(lines)
    echo(f"{survey.asked:,} messages read of {agreed.users:,} planned.")
    likeliest_first = sorted(survey.weights, key=lambda name: -survey.weights[name])
    for name in likeliest_first:
        weight = survey.weights[name]
        status = "ruled out"
        if name in survey.left:
            status = "left"
        echo(f"  {name}: {status}, posterior weight {weight:.3g}")
    echo(survey.verdict)
    if survey.posterior is not None:
        echo(f"posterior for the next user: {json.dumps(survey.posterior.tolist())}")
    stops = survey.finished or survey.asked >= agreed.most_users
    if not stops:
        raise Exit(_GO_ON)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Import from the working directory, and turn errors into one line: a user's models fail in any way."""
    allow_local_imports()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            yield
    except (OSError, Exit):
        raise
    except Exception as error:
        text = summarize(error)
        if isinstance(error, TypeError | ValueError):  # such as ours: the message says enough
            text = str(error)
        raise BadParameter(f"{text}{place_in_own_code(error)}") from error
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        echo(f"Warning: {text}", err=True)


def _read_models(given: str | None, labels: str | None = None) -> Models | None:
    """Read the models of an address or a JSON table.

    Args:
        given: ``module:object`` or JSON; None for no models.
        labels: names of the labels, separated by commas.
    """
    if given is None:
        return None
    names = None
    if labels is not None:
        names = [name.strip() for name in labels.split(",")]
    models = value_of(given)
    if isinstance(models, str):
        models = resolve(models, "models")
        if isinstance(models, str):
            raise ValueError(f"--models must be module:object or a JSON table, got {given!r}")
    if isinstance(models, Models):
        return models
    return Models(models, names)


def _read_agreed(agreed: Plan, given: str | None) -> Models | None:
    """Import the models of a plan and check that they are its; None for a plan with its own table.

    Args:
        agreed: the plan.
        given: ``module:object``, which names the models.
    """
    if agreed.table is not None:
        return None
    if given is None:
        raise ValueError(
            "the plan's models predict from features: name them, --models module:object"
        )
    models = resolve(given, "models")
    if not isinstance(models, Models):
        models = Models(models)
    if models.labels is None:
        models.labels = [str(label) for label in agreed.labels]
    agreed.check_models(models)
    return models


def _check_writable(path: Path | None) -> None:
    """Raise an error about a file whose directory does not exist, before the plan is computed."""
    if path is not None and not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no directory {path.parent}")


def _read_csv(path: Path) -> Any:
    """Read users from a CSV file into a data frame with a row per user."""
    import pandas as pd

    try:
        frame = pd.read_csv(path)
    except ValueError as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8 with a header: {error}") from None
    if frame.empty:
        raise ValueError(f"{path} has a header and no users")
    return frame
