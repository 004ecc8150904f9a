"""What an audit says of the channels that were played on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ldp_gym.bench.experiment import CHANNEL_RULES, Experiment, make_scenario
from ldp_gym.bench.page import NOTHING, Column, Value, count
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core.errors import summarize
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.engine.rules import rule_value
from ldp_gym.privacy.audit import Certificate, certify, uniform_posterior

LARGEST = 4096
"""Tables of more than K M entries are left to ``ldp-gym audit``: a report should not take minutes."""


@dataclass(frozen=True)
class ChannelAudit:
    """A channel in a game, and its certificate.

    Attributes:
        channel: its name.
        horizon: T, of the game that it was audited in, the smallest of its kind.
        hypotheses: that game's class, with K and M.
        certificate: what was found; None if it was not audited.
        note: why not.
    """

    channel: str
    horizon: int
    hypotheses: str
    certificate: Certificate | None
    note: str = ""

    @property
    def broken(self) -> bool:
        """Whether the promise is known to be broken."""
        return self.certificate is not None and not self.certificate.holds

    def __str__(self) -> str:
        if self.certificate is None:
            return f"{self.channel}: {self.note}"
        found, claimed = self.certificate.epsilon, self.certificate.claimed_epsilon
        what = f"promises ε = {claimed:g} and has ε = {found:.6g}"
        if found <= claimed:
            what = f"promises δ = {self.certificate.claimed_delta:g} and has δ = {self.certificate.delta:.4g}"
        return f"{self.channel} {what}, on {self.hypotheses}"


def audit_channels(experiments: Iterable[Experiment]) -> dict[str, ChannelAudit]:
    """Audit the experiments' channels: once per promise and kind of class, in the smallest game of it.

    A channel of others is audited in the largest that is not left to ``ldp-gym audit`` as well.

    Returns:
        The audits by what they depend on: see :func:`certificate_key`.
    """
    groups: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        groups.setdefault(certificate_key(experiment), []).append(experiment)
    return {key: _audit_group(group) for key, group in groups.items()}


def _audit_group(group: list[Experiment]) -> ChannelAudit:
    smallest, *others = sorted(group, key=_table_entries)
    audit = _audit(smallest)
    within = [other for other in others if _table_entries(smallest) < _table_entries(other) <= LARGEST]
    if audit.broken or not within or CHANNELS.is_builtin(smallest.channel):
        return audit
    larger = _audit(within[-1])
    return larger if larger.broken else audit


def certificate_key(experiment: Experiment) -> str:
    """What of an experiment its channel's certificate depends on."""
    return repr([rule_value(experiment.rules, name) for name in (*CHANNEL_RULES, "hypotheses")])


def _table_entries(experiment: Experiment) -> int:
    return experiment.num_hypotheses * experiment.num_labels


def _audit(experiment: Experiment) -> ChannelAudit:
    audit = partial(ChannelAudit, experiment.channel, experiment.horizon, experiment.hypotheses)
    if _table_entries(experiment) > LARGEST:
        return audit(None, "not audited here, its table is large: run ldp-gym audit")
    try:
        return audit(_certificate(experiment.rules))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a channel may be anybody's; its failure is what there is to report
        return audit(None, f"not audited: {summarize(error)}")


def _certificate(rules: Mapping[str, Any]) -> Certificate:
    scenario = make_scenario(**rules)
    channel, hypotheses = scenario.channel, scenario.hypotheses
    context = stream(Purpose.CERTIFICATE, 0).standard_normal(hypotheses.context_dim)
    return certify(channel, hypotheses(context), uniform_posterior(channel))


# -- As a table ---------------------------------------------------------------------------------------------


def _number(row: ChannelAudit, name: str) -> Value:
    if row.certificate is None:
        return NOTHING
    number = float(getattr(row.certificate, name))
    return Value("∞" if math.isinf(number) else f"{number:.6g}", number)


def _verdict(row: ChannelAudit) -> Value:
    if row.certificate is None:
        return Value(row.note, style="wrap")
    private = row.certificate.holds and not math.isinf(row.certificate.claimed_epsilon)
    return Value(row.certificate.verdict, style=None if private else "bad")


def _labels(row: ChannelAudit) -> Value:
    if row.certificate is None or row.certificate.labels is None:
        return NOTHING
    return Value("{} against {}".format(*row.certificate.labels))


COLUMNS: tuple[Column[ChannelAudit], ...] = (
    Column("Channel", lambda row: Value(row.channel)),
    Column("Class", lambda row: Value(row.hypotheses), common=True),
    Column("T", lambda row: count(row.horizon), numeric=True, common=True),
    Column("Promised ε", lambda row: _number(row, "claimed_epsilon"), numeric=True),
    Column("Found ε", lambda row: _number(row, "epsilon"), numeric=True),
    Column("Promised δ", lambda row: _number(row, "claimed_delta"), numeric=True),
    Column("Found δ", lambda row: _number(row, "delta"), numeric=True),
    Column("Verdict", _verdict),
    Column("Worst labels", _labels, "the pair that is told apart best"),
    Column("Method", lambda row: Value(row.certificate.method if row.certificate else "")),
)
