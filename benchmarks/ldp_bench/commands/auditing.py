"""``ldp-gym audit``: check the promise of a channel, or of any function from labels to messages."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from ldp_bench.commands import arguments
from ldp_bench.commands.arguments import (
    allow_local_imports,
    make_console,
    one_line_errors,
    rules_of,
    say,
)
from ldp_bench.experiment import make_scenario
from ldp_gym import audit
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import MechanismFailedError, summarize
from ldp_gym.core.registry import import_object, is_address
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.engine.rules import Rules
from ldp_gym.privacy.black_box import validate_trials
from ldp_gym.testing import check_channel, check_promise

_CHANNEL = "A name, module:Class, or module:function from a label to a message."
_TRIALS = "Number of messages of the black-box audit, such as 1e5; 0: none, 1e5 for a function."
_CONTEXTS = "Number of random contexts, where they matter."
_CONFIDENCE = "Confidence of the black-box audit."

_DEFAULT_TRIALS = 100_000
"""Number of messages of the audit of a function, unless another is given."""

_INTERRUPTED = 130
"""Exit status after Ctrl-C: neither verdict."""

_NO_AUDIT = "no exact audit: "
"""Opening words if a channel declares nothing that could be certified."""

_COLOURS = {"holds": "green", "broken": "red", "not judged": "yellow"}
"""Colours of the verdicts on floats."""


def audit_command(
    channel: Annotated[str, Argument(metavar="CHANNEL", help=_CHANNEL)],
    hypotheses: arguments.HypothesesOption = "dirichlet",
    epsilon: arguments.EpsilonOption = None,
    delta: Annotated[float | None, Option(metavar="DELTA", help="Delta; 0 if not given.")] = None,
    horizon: arguments.HorizonOption = None,
    rule: arguments.RuleOption = None,
    contexts: Annotated[int, Option(metavar="N", help=_CONTEXTS)] = 16,
    trials: Annotated[float, Option(metavar="N", help=_TRIALS)] = 0,
    num_labels: Annotated[
        int | None, Option(metavar="M", help="Number of labels, for a function.")
    ] = None,
    confidence: Annotated[float, Option(metavar="P", help=_CONFIDENCE)] = 0.99,
) -> None:
    """Audit the privacy of a channel on a class, or of a function.

    Exit status 0 if no violation was found, 1 if the promise is broken, 2 for a wrong call, 130 after Ctrl-C;
    whether anyone reads the output does not matter. The certificate is for the worst of the contexts audited,
    and for the uniform public posterior if the channel is adaptive. A module:Class is held to its contract
    first: its messages must follow its density. A black-box audit can show that a promise is broken, never
    that it holds. The line about floats does not change the status.
    """
    console = make_console(_PatientConsole)
    allow_local_imports()
    try:
        with one_line_errors():
            validation.whole("--contexts", contexts, least=1, most=10**4)
            num_trials = _whole_trials(trials)
            function = _function_of(channel)
            if function is not None:
                is_kept = _audit_function(
                    console, function, num_labels, epsilon, delta, rule, num_trials, confidence
                )
            else:
                audited, tables = _prepare_channel(
                    channel, hypotheses, epsilon, delta, horizon, rule, num_labels, contexts
                )
                if num_trials:
                    validate_trials(num_trials, audited.num_labels)
        if function is None:
            # Outside the block above: an error here is not about the user's values.
            is_trusted = channel in CHANNELS.own
            is_kept = _audit_channel(console, audited, tables, is_trusted, num_trials, confidence)
    except KeyboardInterrupt:
        typer.echo("ldp-gym: interrupted: no verdict", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    raise typer.Exit(int(not is_kept))


def _whole_trials(trials: float) -> int:
    """Check the number of messages, which may be written as 1e5."""
    number: float = trials
    if trials.is_integer():
        number = int(trials)
    return validation.whole("--trials", number, least=0, most=10**9)


def _function_of(channel: str) -> Any:
    """Return the function that ``module:function`` names; None for a channel's name or class."""
    if not is_address(channel):
        return None
    named = import_object(channel, "channel")
    if isinstance(named, type):
        return None
    return named


class _PatientConsole(Console):
    """A console that goes on when nobody reads its output any more: the exit status is the verdict."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, unless the pipe is closed."""
        try:
            super().print(*objects, **options)
        except BrokenPipeError:  # an older rich does not call on_broken_pipe
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Print nothing more, and leave nothing to be written when the program ends."""
        self.quiet = True
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# -- Functions --------------------------------------------------------------------------------------------


def _audit_function(
    console: Console,
    function: Any,
    num_labels: int | None,
    epsilon: float | None,
    delta: float | None,
    rule: list[str] | None,
    trials: int,
    confidence: float,
) -> bool:
    """Audit a function by its messages; return False if it fails or its claim is broken.

    Args:
        console: where to print.
        function: a function from a label, 0 to ``num_labels - 1``, to a message.
        num_labels: number of labels.
        epsilon: claimed eps.
        delta: claimed delta; None or 0 for none.
        rule: rules of a game, which a function does not take.
        trials: number of messages; 0 for the default.
        confidence: confidence of the audit.
    """
    if num_labels is None or epsilon is None or rule:
        raise ValueError("a function needs --num-labels and --epsilon (its claim), and no --rule")
    num_messages = trials or _DEFAULT_TRIALS

    def estimate() -> audit.EpsilonEstimate | audit.DeltaEstimate:
        """Estimate the delta of the function at its eps if it claims a delta, or else its eps."""
        if delta:
            return audit.estimate_delta(
                function,
                trials=num_messages,
                confidence=confidence,
                num_labels=num_labels,
                epsilon=epsilon,
                claimed=delta,
            )
        return audit.estimate_epsilon(
            function,
            trials=num_messages,
            confidence=confidence,
            num_labels=num_labels,
            claimed=epsilon,
        )

    return _survives_trials(console, estimate)


def _survives_trials(
    console: Console, estimate: Callable[[], audit.EpsilonEstimate | audit.DeltaEstimate]
) -> bool:
    """Run and print a black-box audit; return False if it fails or shows that the promise is broken.

    Args:
        console: where to print.
        estimate: runs the audit.
    """
    try:
        result = estimate()
    except MechanismFailedError as error:
        say(console, f"no black-box audit: {error}", "bold red")
        return False
    style = ""
    if not result.holds:
        style = "bold red"
    say(console, f"black box: {result}", style)
    return bool(result.holds)


# -- Channels ---------------------------------------------------------------------------------------------


def _prepare_channel(
    name: str,
    hypotheses: str | None,
    epsilon: float | None,
    delta: float | None,
    horizon: int | None,
    rule: list[str] | None,
    num_labels: int | None,
    contexts: int,
) -> tuple[Channel, list[FloatArray]]:
    """Make a channel, and the tables of candidates ``(K, M)`` at which it is audited.

    They are those of a class at random contexts; a class that does not depend on contexts has only one.
    """
    kind = CHANNELS.class_of(name)
    if not issubclass(kind, Channel):
        raise TypeError(f"{name} is not a channel: it must be a subclass of ldp_gym.Channel")
    rules = rules_of(
        rule,
        channel=name,
        epsilon=epsilon,
        delta=delta,
        hypotheses=hypotheses,
        num_labels=num_labels,
        horizon=horizon,
    )
    if not kind.pure and not rules.get("delta"):
        raise ValueError(f"{name} needs delta > 0: pass for example --delta 1e-5")
    scenario = make_scenario(Rules.of(rules))

    rng = stream(Purpose.CERTIFICATE, 0)
    points = rng.standard_normal((contexts, scenario.hypotheses.context_dim))
    if scenario.hypotheses.constant:
        return scenario.channel, [scenario.hypotheses(points[0])]
    return scenario.channel, list(scenario.hypotheses(points))


def _audit_channel(
    console: Console,
    channel: Channel,
    tables: list[FloatArray],
    is_trusted: bool,
    trials: int,
    confidence: float,
) -> bool:
    """Audit a channel; return False if its contract or its promise is broken.

    Args:
        console: where to print.
        channel: the channel.
        tables: tables of candidates ``(K, M)``.
        is_trusted: whether it is a shipped channel, whose contract the tests check.
        trials: number of messages of the black-box audit, or 0.
        confidence: confidence of the black-box audit.
    """
    table = tables[0]
    is_kept = is_trusted or _keeps_contract(console, channel)
    if is_kept:
        worst = _certify(channel, tables)
        table = tables[worst.table_index]
        _print_certificate(console, channel, worst, tables, trials)
        is_kept = worst.is_kept
    if is_kept and not is_trusted:
        is_kept = _keeps_promise_elsewhere(console, channel)
    if not trials:
        return is_kept

    def estimate() -> audit.EpsilonEstimate | audit.DeltaEstimate:
        """Estimate the channel's eps, or its delta if it promises one."""
        posterior = audit.uniform_posterior(channel)
        if channel.pure:
            return audit.estimate_epsilon(channel, table, trials, confidence, posterior=posterior)
        return audit.estimate_delta(channel, table, trials, confidence, posterior=posterior)

    survives = _survives_trials(console, estimate)
    return is_kept and survives


def _keeps_contract(console: Console, channel: Channel) -> bool:
    """Check a third-party channel: a certificate is worth no more than its density."""
    try:
        check_channel(channel, promise=False)
    except (SystemExit, Exception) as error:  # whatever it raises breaks the contract
        text = f"{channel!r} breaks its contract, and gets no certificate: {_reason(error)}"
        say(console, text, "bold red")
        return False
    return True


def _keeps_promise_elsewhere(console: Console, channel: Channel) -> bool:
    """Check the promise of a third-party channel at other tables of candidates."""
    try:
        check_promise(channel)
    except (SystemExit, Exception) as error:  # whatever it raises breaks the promise
        say(console, f"the promise is broken at other candidates: {_reason(error)}", "bold red")
        return False
    return True


def _reason(error: BaseException) -> str:
    """Message of a check that failed; of another error, its class too."""
    if isinstance(error, AssertionError):
        return str(error)
    return summarize(error)


class _Worst(NamedTuple):
    """The worst certificate of a channel at several tables, or why there is none.

    Attributes:
        table_index: index of the table that it is for.
        certificate: the certificate, or None.
        reason: why there is none.
        is_kept: False if the promise is known to be broken.
    """

    table_index: int
    certificate: audit.Certificate | None
    reason: str = ""
    is_kept: bool = False


def _certify(channel: Channel, tables: list[FloatArray]) -> _Worst:
    """Certify a channel at each table of candidates ``(K, M)``; return the worst certificate.

    A promise of eps = inf is not privacy: it counts as broken.
    """
    posterior = audit.uniform_posterior(channel)
    try:
        certificates = [audit.certify(channel, table, posterior) for table in tables]
    except (ImportError, TypeError) as error:  # it declares nothing that could be certified
        return _Worst(0, certificate=None, reason=f"{_NO_AUDIT}{error}", is_kept=True)
    except ValueError as error:
        return _Worst(0, certificate=None, reason=f"no certificate: {error}")

    def badness(index: int) -> tuple[bool, float, float]:
        """Sort key of a table: broken promises last, then by eps, then by delta."""
        certificate = certificates[index]
        return not certificate.holds, certificate.epsilon, certificate.delta

    index = max(range(len(tables)), key=badness)
    worst = certificates[index]
    is_kept = worst.holds and not math.isinf(worst.claimed_epsilon)
    return _Worst(index, worst, is_kept=is_kept)


def _print_certificate(
    console: Console, channel: Channel, worst: _Worst, tables: list[FloatArray], trials: int
) -> None:
    """Print the worst certificate as a table, or why there is none."""
    if worst.certificate is None:
        if worst.is_kept and not trials:
            text = worst.reason.removeprefix(_NO_AUDIT)
            raise typer.BadParameter(f"{text}. Pass --trials to audit it from its messages")
        style = "bold red"
        if worst.is_kept:
            style = ""
        say(console, worst.reason, style)
        return
    shown = _table_of(channel, worst.certificate, worst.is_kept, len(tables))
    posterior = audit.uniform_posterior(channel)
    in_floats = audit.reachable(channel, tables[worst.table_index], posterior)
    shown.add_row("in floats", Text(str(in_floats), f"bold {_COLOURS[in_floats.verdict]}"))
    console.print(shown)


def _table_of(
    channel: Channel, certificate: audit.Certificate, is_kept: bool, num_tables: int
) -> Table:
    """Table of a certificate, the worst of a channel's at this number of tables of candidates."""
    method = certificate.method
    if num_tables > 1:
        method += f", worst of {num_tables} contexts"
    colour = "red"
    if is_kept:
        colour = "green"
    claim = f"eps = {certificate.claimed_epsilon:g}, delta = {certificate.claimed_delta:g}"

    shown = Table(title=Text(repr(channel)), show_header=False)
    shown.add_row("promised", Text(claim))
    shown.add_row(
        "found", Text(f"eps = {certificate.epsilon:.9g}, delta = {certificate.delta:.6g}")
    )
    shown.add_row("by", Text(method))
    if channel.adaptive:
        shown.add_row("public posterior", Text("uniform"))
    if certificate.labels is not None:
        shown.add_row("worst labels", Text("{} against {}".format(*certificate.labels)))
    if certificate.message is not None:
        message = np.array2string(certificate.message, precision=4)
        shown.add_row("worst message", Text(message))
    if certificate.objection is not None:
        shown.add_row("it needs", Text(certificate.objection))
    shown.add_row("in real arithmetic", Text(certificate.verdict, f"bold {colour}"))
    return shown
