"""``ldp-gym audit``: check a channel's promise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldp_gym.bench.experiment import make_scenario
from ldp_gym.bench.figures import new_figure
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.cli.options import json_of, option_of, search_here, told_in_a_line
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra, printable, summarize
from ldp_gym.core.files import replacing
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.privacy import audit as audits
from ldp_gym.privacy.audit import certify, uniform_posterior
from ldp_gym.privacy.black_box import validate_trials
from ldp_gym.testing import check_channel

_VOID = "void: it rests on the contract that the channel breaks"


def audit(
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
    picture: Annotated[Path | None, typer.Option(help="Save a picture of the density ratio here.")] = None,
) -> None:
    """Audit a channel's promise on a class. Exit status 1 if the promise is broken.

    The certificate is for the worst of the contexts audited, and for the uniform public posterior if the
    channel is adaptive. A module:Class is held to its contract first: its messages must follow its density. A
    black-box audit can show that a promise is broken, never that it holds. Exit status 0: the promise holds;
    1: a check or an audit found it broken; 2: a wrong call. The line about floats does not change the status:
    the promise is about real arithmetic.
    """
    console = Console()
    search_here()
    with told_in_a_line():
        if picture is not None and (picture.is_dir() or not picture.suffix):
            raise ValueError(
                f"cannot save the picture: {picture} is not the name of a .png, .svg or .pdf file"
            )
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
        kept = _keeps_promise(console, audited, tables, picture, trials, honest)
    except (SystemExit, Exception) as error:  # a channel that breaks its contract may raise anything
        if honest or isinstance(error, typer.BadParameter):
            raise
        _say(console, f"no further audit: {summarize(error)}", "bold red")
        kept = False
    raise typer.Exit(0 if honest and kept else 1)


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(printable(text), style), highlight=False)


def _keeps_contract(console: Console, channel: Channel) -> bool:
    """Check a third-party channel: a certificate is worth no more than its density."""
    try:
        check_channel(channel)
    except (SystemExit, Exception) as error:  # whatever it raises breaks the contract
        what = str(error) if isinstance(error, AssertionError) else summarize(error)
        _say(console, f"{channel!r} breaks its contract: {what}", "bold red")
        return False
    return True


def _keeps_promise(
    console: Console,
    audited: Channel,
    tables: list[FloatArray],
    picture: Path | None,
    trials: int,
    honest: bool,
) -> bool:
    """Print the exact audit and the black box, as far as there are any; False if the promise is broken."""
    public, worst, kept = uniform_posterior(audited), tables[0], True
    try:
        certificates = [certify(audited, table, public) for table in tables]
        place = max(range(len(tables)), key=lambda i: (certificates[i].epsilon, certificates[i].delta))
        worst, certificate = tables[place], certificates[place]
        kept = certificate.holds and not np.isinf(certificate.claimed_epsilon)
        console.print(_certificate_table(audited, certificate, len(tables), honest, bool(kept)))
        losses = _privacy_losses(audited, worst, certificate, public)
        console.print(Text(_histogram(losses, certificate)))
        if picture is not None:
            _save_picture(picture, losses, certificate)
            _say(console, f"picture: {picture}")
    except (ImportError, TypeError) as error:
        if not trials and honest:
            raise typer.BadParameter(f"{error}. Pass --trials to audit it from its messages") from error
        _say(console, f"no exact audit: {error}")
    except ValueError as error:
        _say(console, f"no certificate: {error}", "bold red")
        kept = False
    if not trials:
        return bool(kept)
    found = audits.estimate_epsilon(audited, worst, trials=trials, delta=audited.delta, posterior=public)
    convicted = found.epsilon > audited.epsilon
    verdict = "The promise is broken." if convicted else "That breaks no promise, and proves none."
    _say(
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


def _privacy_losses(
    channel: Channel, table: FloatArray, certificate: audits.Certificate, public: FloatArray | None
) -> FloatArray:
    """``log q(Z | y) - log q(Z | y')`` over messages Z of y, for the worst pair of labels."""
    rng = np.random.default_rng(0)
    if certificate.labels is not None:
        y, other = certificate.labels
    else:  # of some labels, the pair that typical messages tell apart best
        some = np.arange(channel.num_labels)[:64]
        density = channel.log_density(
            channel.privatize(np.resize(some, 1000), table, rng, public), table, public
        )
        spread = (density[:, some, None] - density[:, None, some]).std(axis=0)
        y, other = divmod(int(spread.argmax()), len(some))
    count = max(500, min(20_000, 10**7 // channel.num_labels))
    density = channel.log_density(channel.privatize(np.full(count, y), table, rng, public), table, public)
    return density[:, y] - density[:, other]


def _histogram(losses: FloatArray, certificate: audits.Certificate) -> str:
    finite = losses[np.isfinite(losses)]
    if not len(finite):
        return "log density ratio: infinite in every message"
    reach = max(np.abs(finite).max(), min(certificate.claimed_epsilon, 1e3), 1e-9) * 1.02
    counts, edges = np.histogram(finite, bins=21, range=(-reach, reach))
    lines = ["log density ratio of the worst pair, over messages of the first label:"]
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        bar = "█" * round(50 * count / counts.max())
        limit = any(low <= sign * certificate.claimed_epsilon < high for sign in (-1, 1))
        lines.append(f"{(low + high) / 2:+8.3f} {'◄ eps' if limit else '     '} {bar}")
    return "\n".join(lines)


def _save_picture(path: Path, losses: FloatArray, certificate: audits.Certificate) -> None:
    with told_in_a_line(), extra("bench", "--picture"):
        figure, [[axes]] = new_figure(width=7, height=4)
    axes.hist(losses[np.isfinite(losses)], bins=81, color="tab:blue")
    ends = ((certificate.claimed_epsilon, "--", "promised eps"), (certificate.epsilon, ":", "found eps"))
    for end, style, label in ends:
        for sign in (-1, 1) if np.isfinite(end) else ():
            axes.axvline(sign * end, color="black", linestyle=style, label=label if sign > 0 else None)
    axes.set(xlabel="log q(Z | y) - log q(Z | y'), the worst pair of labels", ylabel="messages of label y")
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
    try:
        with replacing(path) as part:
            figure.savefig(part, dpi=150)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"cannot save the picture: {error}") from error
