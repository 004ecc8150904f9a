"""``ldp-gym audit``: a channel's promise, checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldp_gym.bench.experiment import make_scenario
from ldp_gym.bench.figures import new_figure
from ldp_gym.channels.base import Channel
from ldp_gym.cli.options import option_of, search_here
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import MissingExtraError, extra, summarize
from ldp_gym.core.files import replacing
from ldp_gym.core.registry import is_builtin
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.engine.scenario import Scenario
from ldp_gym.privacy import audit as audits
from ldp_gym.privacy.audit import certify, uniform_posterior
from ldp_gym.privacy.black_box import validate_trials
from ldp_gym.testing import check_channel

_VOID = "void: it rests on the contract that the channel breaks"


def audit(
    channel: Annotated[str, typer.Argument(help="A channel's name, or your own as module:Class.")],
    hypotheses: Annotated[
        str, typer.Option(help="A class's name, module:Class, or a table as JSON: '[[1,0,0],[0,0.5,0.5]]'.")
    ] = "dirichlet",
    num_hypotheses: Annotated[int | None, typer.Option(help="K, for a named class.")] = None,
    num_labels: Annotated[int | None, typer.Option(help="M, for a named class.")] = None,
    class_seed: Annotated[int, typer.Option(help="The seed of a random class.")] = 0,
    horizon: Annotated[int, typer.Option(help="T.")] = 1000,
    epsilon: Annotated[float, typer.Option(help="The eps that the channel promises.")] = 1.0,
    delta: Annotated[
        float, typer.Option(help="The delta that the channel promises; 0 for pure channels.")
    ] = 0.0,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the channel, as name=value; repeatable.")
    ] = None,
    contexts: Annotated[
        int, typer.Option(min=1, help="How many random contexts to audit, where they matter.")
    ] = 16,
    trials: Annotated[int, typer.Option(min=0, help="Messages for the black-box audit; 0: none.")] = 0,
    picture: Annotated[Path | None, typer.Option(help="Save the density ratio's picture here.")] = None,
) -> None:
    """Audit a channel's promise on a class. Exit status 1 if the promise is broken.

    The certificate is for the worst of the contexts audited, and of an adaptive channel for the uniform
    public posterior. A channel of your own is held to its contract first: its messages must follow its
    density. A black-box audit can convict a channel and never acquit it. Exit status 0: the promise holds; 1:
    a check or an audit says that it is broken; 2: a wrong call. What floats give away is a line of its own
    and does not change the status: the promise is about real arithmetic.
    """
    console = Console()
    search_here()
    if picture is not None and (picture.is_dir() or not picture.suffix):
        raise typer.BadParameter(
            f"cannot save the picture: {picture} is no name of a .png, .svg or .pdf file"
        )
    try:
        scenario = make_scenario(
            hypotheses=_table_or_name(hypotheses),
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
        tables = _tables(scenario, contexts)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    except SystemExit as error:
        raise typer.BadParameter(f"the code of {channel!r} ended the program, by {error!r}") from error

    audited = scenario.channel
    honest = _is_honest(console, audited)
    try:
        kept = _keeps_promise(console, audited, tables, picture, trials, honest)
    except (
        SystemExit,
        Exception,
    ) as error:  # third-party code may raise anything, and must not end the command
        if isinstance(error, typer.BadParameter) or (honest and not isinstance(error, SystemExit)):
            raise
        console.print(f"no further audit: {summarize(error)}", style="bold red", markup=False)
        kept = False
    raise typer.Exit(0 if honest and kept else 1)


def _keeps_promise(
    console: Console,
    audited: Channel,
    tables: list[FloatArray],
    picture: Path | None,
    trials: int,
    honest: bool,
) -> bool:
    """Whether the exact audit and the black box, as far as there are any, leave the promise standing."""
    try:
        worst, kept = _print_certificate(console, audited, tables, picture, honest)
    except (ImportError, TypeError) as error:
        if not trials and honest:
            raise typer.BadParameter(f"{error}. Pass --trials to audit it from its messages") from error
        console.print(f"no exact audit: {error}", markup=False)
        worst, kept = tables[0], True
    except ValueError as error:
        console.print(f"no certificate: {error}", style="bold red", markup=False)
        worst, kept = tables[0], False
    survives = not trials or _survives_black_box(console, audited, worst, trials)
    return kept and survives


def _is_honest(console: Console, channel: Channel) -> bool:
    """Whether a third-party channel keeps its contract: a certificate is worth no more than its density."""
    if is_builtin(type(channel)):
        return True
    try:
        check_channel(channel)
    except (SystemExit, Exception) as error:  # whatever third-party code raises breaks the contract
        what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        console.print(f"{channel!r} breaks its contract: {what}", style="bold red", markup=False)
        return False
    return True


def _print_certificate(
    console: Console, channel: Channel, tables: list[FloatArray], picture: Path | None, honest: bool
) -> tuple[FloatArray, bool]:
    """Print the certificate of the worst context; the candidates there, and whether the promise is kept."""
    public = uniform_posterior(channel)
    certificates = [certify(channel, table, public) for table in tables]
    worst = max(range(len(tables)), key=lambda i: (certificates[i].epsilon, certificates[i].delta))
    certificate, table = certificates[worst], tables[worst]
    console.print(_certificate_table(channel, certificate, len(tables), honest))
    losses = _privacy_losses(channel, table, certificate, public)
    console.print(Text(_histogram(losses, certificate)))
    if picture is not None:
        _save_picture(picture, losses, certificate)
        console.print(Text(f"picture: {picture}"))
    return table, not _is_broken(certificate)


def _survives_black_box(console: Console, channel: Channel, table: FloatArray, trials: int) -> bool:
    """Print what the black box finds; whether that leaves the promise standing."""
    public = uniform_posterior(channel)
    found = audits.estimate_epsilon(channel, table, trials=trials, delta=channel.delta, posterior=public)
    convicted = found.epsilon > channel.epsilon
    verdict = "The promise is broken." if convicted else "That breaks no promise, and proves none."
    console.print(
        f"black box: eps >= {found.epsilon:.4f} with {found.confidence:.0%} confidence, from labels "
        f"{found.labels[0]} and {found.labels[1]} by the event: {found.event}. {verdict} ({found.usage})",
        style="bold red" if convicted else None,
        markup=False,
    )
    return not convicted


def _table_or_name(text: str) -> object:
    if not text.lstrip().startswith("["):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"--hypotheses {text!r} is no table in JSON: {error}") from error


def _tables(scenario: Scenario, contexts: int) -> list[FloatArray]:
    """The candidates at each audited context."""
    if scenario.hypotheses.constant:
        return [scenario.hypotheses(np.zeros(scenario.hypotheses.context_dim))]
    points = stream(Purpose.CERTIFICATE, 0).standard_normal((contexts, scenario.hypotheses.context_dim))
    return list(scenario.hypotheses(points))


def _certificate_table(
    channel: Channel, certificate: audits.Certificate, contexts: int, honest: bool
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
    colour = "green" if honest and not _is_broken(certificate) else "red"
    verdict = _VOID if certificate.holds and not honest else certificate.verdict
    table.add_row("in real arithmetic", Text(verdict, f"bold {colour}"))
    colour = {"holds": "green", "broken": "red"}.get(certificate.floats.verdict, "yellow")
    floats = str(certificate.floats)
    if certificate.floats.verdict == "holds" and not honest:
        floats, colour = _VOID, "red"
    table.add_row("in floats", Text(floats, f"bold {colour}"))
    return table


def _is_broken(certificate: audits.Certificate) -> bool:
    """A promise of no privacy is none."""
    return not certificate.holds or bool(np.isinf(certificate.claimed_epsilon))


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
    messages = channel.privatize(np.full(count, y), table, rng, public)
    density = channel.log_density(messages, table, public)
    return density[:, y] - density[:, other]


def _histogram(losses: FloatArray, certificate: audits.Certificate) -> str:
    finite = losses[np.isfinite(losses)]
    if not len(finite):
        return "log density ratio: infinite in every message"
    reach = max(np.abs(finite).max(), min(certificate.claimed_epsilon, 1e3)) * 1.02
    counts, edges = np.histogram(finite, bins=21, range=(-reach, reach))
    lines = ["log density ratio of the worst pair, over messages of the first label:"]
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        bar = "█" * round(50 * count / counts.max())
        limit = any(low <= sign * certificate.claimed_epsilon < high for sign in (-1, 1))
        lines.append(f"{(low + high) / 2:+8.3f} {'◄ eps' if limit else '     '} {bar}")
    return "\n".join(lines)


def _save_picture(path: Path, losses: FloatArray, certificate: audits.Certificate) -> None:
    try:
        with extra("bench", "--picture"):
            figure, [[axes]] = new_figure(width=7, height=4)
    except MissingExtraError as error:
        raise typer.BadParameter(str(error)) from error
    axes.hist(losses[np.isfinite(losses)], bins=81, color="tab:blue")
    for sign in (-1, 1):
        if np.isfinite(certificate.claimed_epsilon):
            axes.axvline(
                sign * certificate.claimed_epsilon, color="black", linestyle="--", label="promised eps"
            )
        if np.isfinite(certificate.epsilon):
            axes.axvline(sign * certificate.epsilon, color="tab:red", linestyle=":", label="found eps")
    axes.set_xlabel("log q(Z | y) - log q(Z | y'), the worst pair of labels")
    axes.set_ylabel("messages of label y")
    handles, names = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles[:2], names[:2])
    try:
        with replacing(path) as part:
            figure.savefig(part, dpi=150)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"cannot save the picture: {error}") from error
