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
from ldp_gym.cli.arguments import json_of, option_of, say, search_here, told_in_a_line
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import summarize
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.privacy import audit as audits
from ldp_gym.privacy.audit import certify, uniform_posterior
from ldp_gym.privacy.black_box import validate_trials
from ldp_gym.testing import check_channel

_VOID = "void: it rests on the contract that the channel breaks"


def audit_command(
    channel: Annotated[str, typer.Argument(help="Name of a channel, or module:Class.")],
    hypotheses: Annotated[
        str, typer.Option(help="Name of a class, module:Class, or a table as JSON: '[[1,0,0],[0,0.5,0.5]]'.")
    ] = "dirichlet",
    num_hypotheses: Annotated[int | None, typer.Option(help="K, for a named class.")] = None,
    num_labels: Annotated[int | None, typer.Option(help="M, for a named class.")] = None,
    class_seed: Annotated[int, typer.Option(help="Seed of a random class.")] = 0,
    horizon: Annotated[int, typer.Option(help="Number of rounds, T.")] = 1000,
    epsilon: Annotated[float, typer.Option(help="Promised eps.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Promised delta; 0 for pure channels.")] = 0.0,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the channel, as name=value; repeatable.")
    ] = None,
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
    search_here()
    with told_in_a_line():
        if not issubclass(CHANNELS.class_of(channel), Channel):
            raise TypeError(f"{channel} is not a channel: it must be a subclass of ldp_gym.Channel")
        scenario = make_scenario(
            hypotheses=json_of(hypotheses) if hypotheses.lstrip().startswith("[") else hypotheses,
            num_hypotheses=num_hypotheses,
            num_labels=num_labels,
            class_seed=class_seed,
            channel=channel,
            channel_kwargs=dict(option_of(text) for text in option or []),
            epsilon=epsilon,
            delta=delta,
            horizon=horizon,
        )
        if trials:
            validate_trials(trials, scenario.channel.num_labels)
        points = stream(Purpose.CERTIFICATE, 0).standard_normal((contexts, scenario.hypotheses.context_dim))
        constant = scenario.hypotheses.constant
        tables = [scenario.hypotheses(points[0])] if constant else list(scenario.hypotheses(points))

    audited = scenario.channel
    honest = channel in CHANNELS.own or _keeps_contract(console, audited)
    try:
        kept = _keeps_promise(console, audited, tables, trials, honest)
    except (SystemExit, Exception) as error:  # a channel that breaks its contract may raise anything
        if honest or isinstance(error, typer.BadParameter):
            raise
        say(console, f"no further audit: {summarize(error)}", "bold red")
        kept = False
    raise typer.Exit(0 if honest and kept else 1)


def _keeps_contract(console: Console, channel: Channel) -> bool:
    """Check a third-party channel: a certificate is worth no more than its density."""
    try:
        check_channel(channel)
    except (SystemExit, Exception) as error:  # whatever it raises breaks the contract
        what = str(error) if isinstance(error, AssertionError) else summarize(error)
        say(console, f"{channel!r} breaks its contract: {what}", "bold red")
        return False
    return True


def _keeps_promise(
    console: Console, audited: Channel, tables: list[FloatArray], trials: int, honest: bool
) -> bool:
    """Print the exact audit and the black box, as far as there are any; False if the promise is broken."""
    public, worst, kept = uniform_posterior(audited), tables[0], True
    try:
        certificates = [certify(audited, table, public) for table in tables]
        place = max(range(len(tables)), key=lambda i: (certificates[i].epsilon, certificates[i].delta))
        worst, certificate = tables[place], certificates[place]
        kept = certificate.holds and not np.isinf(certificate.claimed_epsilon)
        console.print(_certificate_table(audited, certificate, len(tables), honest, bool(kept)))
    except (ImportError, TypeError) as error:
        if not trials and honest:
            raise typer.BadParameter(f"{error}. Pass --trials to audit it from its messages") from error
        say(console, f"no exact audit: {error}")
    except ValueError as error:
        say(console, f"no certificate: {error}", "bold red")
        kept = False
    if not trials:
        return bool(kept)
    found = audits.estimate_epsilon(audited, worst, trials=trials, delta=audited.delta, posterior=public)
    convicted = found.epsilon > audited.epsilon
    verdict = "The promise is broken." if convicted else "That breaks no promise, and proves none."
    say(
        console,
        f"black box: eps >= {found.epsilon:.4f} with {found.confidence:.0%} confidence, from labels "
        f"{found.labels[0]} and {found.labels[1]} by the event: {found.event}. {verdict} ({found.usage})",
        "bold red" if convicted else "",
    )
    return bool(kept) and not convicted


def _certificate_table(
    channel: Channel, certificate: audits.Certificate, contexts: int, honest: bool, kept: bool
) -> Table:
    table = Table(title=Text(repr(channel)), show_header=False)
    table.add_row("promised", f"eps = {certificate.claimed_epsilon:g}, delta = {certificate.claimed_delta:g}")
    table.add_row("found", f"eps = {certificate.epsilon:.9g}, delta = {certificate.delta:.6g}")
    table.add_row("by", certificate.method + (f", worst of {contexts} contexts" if contexts > 1 else ""))
    if channel.adaptive:
        table.add_row("public posterior", "uniform")
    if certificate.labels is not None:
        table.add_row("worst labels", f"{certificate.labels[0]} against {certificate.labels[1]}")
    if certificate.message is not None:
        table.add_row("worst message", Text(np.array2string(np.asarray(certificate.message), precision=4)))
    verdict = _VOID if certificate.holds and not honest else certificate.verdict
    table.add_row("in real arithmetic", Text(verdict, f"bold {'green' if honest and kept else 'red'}"))
    found = certificate.floats.verdict
    void = found == "holds" and not honest
    colour = "red" if void else {"holds": "green", "broken": "red"}.get(found, "yellow")
    table.add_row("in floats", Text(_VOID if void else str(certificate.floats), f"bold {colour}"))
    return table
