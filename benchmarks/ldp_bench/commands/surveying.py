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
        for path in (table, to):
            if path is not None and not path.parent.is_dir():
                raise ValueError(f"cannot write {path}: there is no directory {path.parent}")
        frame = None if users is None else _read_csv(users)
        data: dict[str, Any] = {"models": _read_models(models, labels), "X": frame}
        if models is None:
            data = {"models": None, "probabilities": frame}
        planned = plan(
            **data,
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
        features = None if context is None else value_of(context)
        candidates = candidates_at(agreed, _read_agreed(agreed, models), features)
        public = None if posterior is None else value_of(posterior)
        if channel.channel.adaptive and public is None:
            raise ValueError(
                "users of this channel answer in turn: --posterior, from `ldp-gym read`"
            )
        if not channel.channel.adaptive:
            public = None
        message, _ = channel.answer(agreed.label(label), candidates, public)
        shown = None if agreed.table is not None else features
        line = answer_line(message, shown, public)
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
    for name, weight in sorted(survey.weights.items(), key=lambda item: -item[1]):
        status = "left" if name in survey.left else "ruled out"
        echo(f"  {name}: {status}, posterior weight {weight:.3g}")
    echo(survey.verdict)
    if survey.posterior is not None:
        echo(f"posterior for the next user: {json.dumps(survey.posterior.tolist())}")
    stops = survey.finished or survey.asked >= agreed.most_users
    raise Exit(0 if stops else 3)


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
        text = str(error) if isinstance(error, TypeError | ValueError) else summarize(error)
        raise BadParameter(f"{text}{place_in_own_code(error)}") from error
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        echo(f"Warning: {text}", err=True)


def _read_models(given: str | None, labels: str | None = None) -> Models | None:
    """Models of an address or a JSON table."""
    if given is None:
        return None
    names = None if labels is None else [name.strip() for name in labels.split(",")]
    found = value_of(given)
    if isinstance(found, str):
        found = resolve(found, "models")
        if isinstance(found, str):
            raise ValueError(f"--models must be module:object or a JSON table, got {given!r}")
    return found if isinstance(found, Models) else Models(found, names)


def _read_agreed(agreed: Plan, given: str | None) -> Models | None:
    """The models of a plan; None for a plan with its own table."""
    if agreed.table is not None:
        return None
    if given is None:
        raise ValueError(
            "the plan's models predict from features: name them, --models module:object"
        )
    models = resolve(given, "models")
    names = [str(label) for label in agreed.labels]
    made = models if isinstance(models, Models) else Models(models)
    if made.labels is None:
        made.labels = names
    agreed.check_models(made)
    return made


def _read_csv(path: Path) -> Any:
    """The users of a CSV file."""
    import pandas as pd

    try:
        frame = pd.read_csv(path)
    except ValueError as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8 with a header: {error}") from None
    if frame.empty:
        raise ValueError(f"{path} has a header and no users")
    return frame
