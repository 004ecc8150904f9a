"""``ldp-gym audit``: check a channel's promise."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldp_gym.bench.experiment import make_scenario
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.cli import arguments
from ldp_gym.cli.arguments import allow_local_imports, one_line_errors, rules_of, say
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import summarize
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.engine.rules import Rules
from ldp_gym.privacy import audit as audits
from ldp_gym.privacy.audit import certify, uniform_posterior
from ldp_gym.privacy.black_box import validate_trials
from ldp_gym.testing import check_channel


def audit_command(
    channel: Annotated[str, typer.Argument(help="Name of a channel, or module:Class.")],
    hypotheses: arguments.HypothesesOption = "dirichlet",
    epsilon: arguments.EpsilonOption = None,
    horizon: arguments.HorizonOption = None,
    rule: arguments.RuleOption = None,
    contexts: Annotated[
        int, typer.Option(min=1, max=10**4, help="Number of random contexts, where they matter.")
    ] = 16,
    trials: Annotated[
        int, typer.Option(min=0, max=10**9, help="Number of messages of the black-box audit; 0: none.")
    ] = 0,
) -> None:
    """Audit a channel's promise on a class. Exit status 1 if the promise is broken.

    The certificate is for the worst of the contexts audited, and for the uniform public posterior if the
    channel is adaptive. A module:Class is held to its contract first: its messages must follow its density. A
    black-box audit can show that a promise is broken, never that it holds. Exit status 2 for a wrong call.
    The line about floats does not change the status: the promise is about real arithmetic.
    """
    console = Console()
    allow_local_imports()
    with one_line_errors():
        if not issubclass(CHANNELS.class_of(channel), Channel):
            raise TypeError(f"{channel} is not a channel: it must be a subclass of ldp_gym.Channel")
        short = {"channel": channel, "hypotheses": hypotheses, "epsilon": epsilon, "horizon": horizon}
        scenario = make_scenario(Rules.of(rules_of(rule, **short)))
        if trials:
            validate_trials(trials, scenario.channel.num_labels)
        points = stream(Purpose.CERTIFICATE, 0).standard_normal((contexts, scenario.hypotheses.context_dim))
        constant = scenario.hypotheses.constant
        tables = [scenario.hypotheses(points[0])] if constant else list(scenario.hypotheses(points))

    audited = scenario.channel
    honest = channel in CHANNELS.own or _keeps_contract(console, audited)
    worst, kept = _certify(console, audited, tables, trials) if honest else (tables[0], False)
    if trials:
        kept = _survives_trials(console, audited, worst, trials) and kept
    raise typer.Exit(0 if kept else 1)


def _keeps_contract(console: Console, channel: Channel) -> bool:
    """Check a third-party channel: a certificate is worth no more than its density."""
    try:
        check_channel(channel)
    except (SystemExit, Exception) as error:  # whatever it raises breaks the contract
        what = str(error) if isinstance(error, AssertionError) else summarize(error)
        say(console, f"{channel!r} breaks its contract, and gets no certificate: {what}", "bold red")
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
            raise typer.BadParameter(f"{error}. Pass --trials to audit it from its messages") from error
        say(console, f"no exact audit: {error}")
        return tables[0], True
    except ValueError as error:
        say(console, f"no certificate: {error}", "bold red")
        return tables[0], False
    place = max(range(len(tables)), key=lambda i: (certificates[i].epsilon, certificates[i].delta))
    found = certificates[place]
    kept = bool(found.holds) and not np.isinf(found.claimed_epsilon)
    table = Table(title=Text(repr(channel)), show_header=False)
    table.add_row("promised", f"eps = {found.claimed_epsilon:g}, delta = {found.claimed_delta:g}")
    table.add_row("found", f"eps = {found.epsilon:.9g}, delta = {found.delta:.6g}")
    table.add_row("by", found.method + (f", worst of {len(tables)} contexts" if len(tables) > 1 else ""))
    if channel.adaptive:
        table.add_row("public posterior", "uniform")
    if found.labels is not None:
        table.add_row("worst labels", f"{found.labels[0]} against {found.labels[1]}")
    if found.message is not None:
        table.add_row("worst message", Text(np.array2string(np.asarray(found.message), precision=4)))
    table.add_row("in real arithmetic", Text(found.verdict, f"bold {'green' if kept else 'red'}"))
    colour = {"holds": "green", "broken": "red"}.get(found.floats.verdict, "yellow")
    table.add_row("in floats", Text(str(found.floats), f"bold {colour}"))
    console.print(table)
    return tables[place], kept


def _survives_trials(console: Console, channel: Channel, table: FloatArray, trials: int) -> bool:
    """Print the black-box audit; return False if it shows that the promise is broken."""
    public = uniform_posterior(channel)
    try:
        found = audits.estimate_epsilon(channel, table, trials=trials, delta=channel.delta, posterior=public)
    except (SystemExit, Exception) as error:  # whatever it raises
        say(console, f"no black-box audit: the channel failed with {summarize(error)}", "bold red")
        return False
    convicted = found.epsilon > channel.epsilon
    verdict = "The promise is broken." if convicted else "That breaks no promise, and proves none."
    say(
        console,
        f"black box: eps >= {found.epsilon:.4f} with {found.confidence:.0%} confidence, from labels "
        f"{found.labels[0]} and {found.labels[1]} by the event: {found.event}. {verdict} ({found.usage})",
        "bold red" if convicted else "",
    )
    return not convicted
