"""``ldp-gym audit``: check the promise of a channel, or of any function from labels to messages."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from ldp_bench.commands import arguments
from ldp_bench.commands.arguments import allow_local_imports, one_line_errors, rules_of, say
from ldp_bench.experiment import make_scenario
from ldp_gym import audit as audits
from ldp_gym.audit import certify, uniform_posterior
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import MechanismFailedError, summarize
from ldp_gym.core.registry import import_object, is_address
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.engine.rules import Rules
from ldp_gym.privacy.black_box import validate_trials
from ldp_gym.testing import check_channel

_CHANNEL = "A name, module:Class, or module:function from a label to a message."
_TRIALS = "Number of messages of the black-box audit, such as 1e5; 0: none, 1e5 for a function."


def audit_command(
    channel: Annotated[str, Argument(metavar="CHANNEL", help=_CHANNEL)],
    hypotheses: arguments.HypothesesOption = "dirichlet",
    epsilon: arguments.EpsilonOption = None,
    delta: Annotated[float | None, Option(metavar="DELTA", help="Delta; 0 if not given.")] = None,
    horizon: arguments.HorizonOption = None,
    rule: arguments.RuleOption = None,
    contexts: Annotated[
        int, Option(metavar="N", help="Number of random contexts, where they matter.")
    ] = 16,
    trials: Annotated[float, Option(metavar="N", help=_TRIALS)] = 0,
    num_labels: Annotated[
        int | None, Option(metavar="M", help="Number of labels, for a function.")
    ] = None,
    confidence: Annotated[
        float, Option(metavar="P", help="Confidence of the black-box audit.")
    ] = 0.99,
) -> None:
    """Audit the privacy of a channel on a class, or of a function.

    Exit status 1 if the promise is broken, 2 for a wrong call. The certificate is for the worst of the
    contexts audited, and for the uniform public posterior if the channel is adaptive. A module:Class is held
    to its contract first: its messages must follow its density. A black-box audit can show that a promise is
    broken, never that it holds. The line about floats does not change the status.
    """
    console = Console()
    allow_local_imports()
    with one_line_errors():
        validation.whole("--contexts", contexts, least=1, most=10**4)
        number = int(trials) if trials.is_integer() else trials
        messages = validation.whole("--trials", number, least=0, most=10**9)
        found = import_object(channel, "channel") if is_address(channel) else None
        if found is not None and not isinstance(found, type):
            if num_labels is None or epsilon is None or rule:
                raise ValueError(
                    "a function needs --num-labels and --epsilon (its claim), and no --rule"
                )
            claim = {"num_labels": num_labels, "claimed": epsilon, "delta": delta or 0.0}
            kept = _survives_trials(console, found, None, messages or 100_000, confidence, **claim)
            raise typer.Exit(0 if kept else 1)
        if not issubclass(CHANNELS.class_of(channel), Channel):
            raise TypeError(f"{channel} is not a channel: it must be a subclass of ldp_gym.Channel")
        short = {"hypotheses": hypotheses, "num_labels": num_labels, "horizon": horizon}
        rules = rules_of(rule, channel=channel, epsilon=epsilon, delta=delta, **short)
        if not CHANNELS.class_of(channel).pure and not rules.get("delta"):
            raise ValueError(f"{channel} needs delta > 0: pass for example --delta 1e-5")
        scenario = make_scenario(Rules.of(rules))
        if messages:
            validate_trials(messages, scenario.channel.num_labels)
        points = stream(Purpose.CERTIFICATE, 0).standard_normal(
            (contexts, scenario.hypotheses.context_dim)
        )
        constant = scenario.hypotheses.constant
        tables = [scenario.hypotheses(points[0])] if constant else list(scenario.hypotheses(points))

    audited = scenario.channel
    honest = channel in CHANNELS.own or _keeps_contract(console, audited)
    worst, kept = _certify(console, audited, tables, messages) if honest else (tables[0], False)
    if messages:
        granted = {"delta": audited.delta, "posterior": uniform_posterior(audited)}
        kept = _survives_trials(console, audited, worst, messages, confidence, **granted) and kept
    raise typer.Exit(0 if kept else 1)


def _keeps_contract(console: Console, channel: Channel) -> bool:
    """Check a third-party channel: a certificate is worth no more than its density."""
    try:
        check_channel(channel, promise=False)
    except (SystemExit, Exception) as error:  # whatever it raises breaks the contract
        what = str(error) if isinstance(error, AssertionError) else summarize(error)
        say(
            console, f"{channel!r} breaks its contract, and gets no certificate: {what}", "bold red"
        )
        return False
    return True


def _certify(
    console: Console, channel: Channel, tables: list[FloatArray], trials: int
) -> tuple[FloatArray, bool]:
    """Print the worst certificate, if there is one; return its table, and False if the promise is broken."""
    try:
        certificates = [certify(channel, table, uniform_posterior(channel)) for table in tables]
    except (ImportError, TypeError) as error:
        if not trials:
            raise typer.BadParameter(
                f"{error}. Pass --trials to audit it from its messages"
            ) from error
        say(console, f"no exact audit: {error}")
        return tables[0], True
    except ValueError as error:
        say(console, f"no certificate: {error}", "bold red")
        return tables[0], False
    place = max(range(len(tables)), key=lambda i: (certificates[i].epsilon, certificates[i].delta))
    found = certificates[place]
    kept = bool(found.holds) and not np.isinf(found.claimed_epsilon)
    floats = audits.reachable(channel, tables[place], uniform_posterior(channel))
    colour = {"holds": "green", "broken": "red"}.get(floats.verdict, "yellow")
    facts: dict[str, str | Text | None] = {
        "promised": f"eps = {found.claimed_epsilon:g}, delta = {found.claimed_delta:g}",
        "found": f"eps = {found.epsilon:.9g}, delta = {found.delta:.6g}",
        "by": found.method + (f", worst of {len(tables)} contexts" if len(tables) > 1 else ""),
        "public posterior": "uniform" if channel.adaptive else None,
        "worst labels": "{} against {}".format(*found.labels) if found.labels else None,
        "worst message": None
        if found.message is None
        else np.array2string(found.message, precision=4),
        "in real arithmetic": Text(found.verdict, f"bold {'green' if kept else 'red'}"),
        "in floats": Text(str(floats), f"bold {colour}"),
    }
    shown = Table(title=Text(repr(channel)), show_header=False)
    for name, fact in facts.items():
        if fact is not None:
            shown.add_row(name, Text(fact) if isinstance(fact, str) else fact)
    console.print(shown)
    return tables[place], kept


def _survives_trials(console: Console, mechanism: Any, *given: Any, **options: Any) -> bool:
    """Print the black-box audit; return False if it fails or shows that the promise is broken."""
    try:
        found = audits.estimate_epsilon(mechanism, *given, **options)
    except MechanismFailedError as error:
        say(console, f"no black-box audit: {error}", "bold red")
        return False
    say(console, f"black box: {found}", "" if found.holds else "bold red")
    return bool(found.holds)
