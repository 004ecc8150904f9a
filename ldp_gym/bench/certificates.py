"""What an audit says of the channels that were played on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.page import NOTHING, Column, Value, count
from ldp_gym.engine.rules import rule_value
from ldp_gym.engine.scenario import Scenario
from ldp_gym.errors import NoPrivacyWarning
from ldp_gym.privacy.certificate import Certificate, certify

LARGEST = 4096
"""Tables of more than K M entries are left to ``ldp-gym audit``: a report should not take minutes."""

_GROUND = ("channel", "channel_kwargs", "epsilon", "delta", "hypotheses")
"""What of a game a channel's certificate depends on."""


@dataclass(frozen=True)
class Audited:
    """A channel in a game, and its certificate.

    Attributes:
        channel: its name.
        game: the game that it was audited in, the smallest of its kind.
        hypotheses: the class's kind, with its size.
        certificate: what was found; None if it was not audited.
        note: why not.
    """

    channel: str
    game: Mapping[str, Any]
    hypotheses: str
    certificate: Certificate | None
    note: str = ""


def certificates(entries: Iterable[Entry]) -> list[Audited]:
    """Audit the entries' channels: each once for every promise and kind of class, at one context."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        ground = [rule_value(entry.game, name) for name in _GROUND]
        groups.setdefault(repr(ground), []).append(entry)
    return [_audited(group) for group in groups.values()]


def _audited(group: list[Entry]) -> Audited:
    sizes = [entry.size for entry in group]
    smallest = min(range(len(group)), key=lambda i: sizes[i][0] * sizes[i][1])
    entry, (num_hypotheses, num_labels) = group[smallest], sizes[smallest]

    def said(certificate: Certificate | None, note: str = "") -> Audited:
        return Audited(entry.channel, entry.game, entry.kind, certificate, note)

    if num_hypotheses * num_labels > LARGEST:
        return said(None, "not audited here, its table is large: run ldp-gym audit")
    try:
        return said(_certificate(entry.game))
    except Exception as error:  # a channel may be anybody's; its failure is what there is to report
        return said(None, f"not audited: {type(error).__name__}: {error}")


def _certificate(game: Mapping[str, Any]) -> Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoPrivacyWarning)  # the report says it
        scenario = Scenario(**game)
    channel, hypotheses = scenario.channel, scenario.hypotheses
    context = np.random.default_rng(0).standard_normal(hypotheses.context_dim)
    public = np.full(channel.num_hypotheses, 1.0 / channel.num_hypotheses) if channel.adaptive else None
    return certify(channel, hypotheses(context), public)


# -- As a table ---------------------------------------------------------------------------------------------


def _epsilon(row: Audited, name: str) -> Value:
    if row.certificate is None:
        return NOTHING
    epsilon = float(getattr(row.certificate, name))
    return Value("∞" if math.isinf(epsilon) else f"{epsilon:.6g}", epsilon)


def _delta(row: Audited, name: str) -> Value:
    if row.certificate is None:
        return NOTHING
    delta = float(getattr(row.certificate, name))
    return Value(f"{delta:.4g}", delta)


def _verdict(row: Audited) -> Value:
    if row.certificate is None:
        return Value(row.note, style="wrap")
    if math.isinf(row.certificate.claimed_epsilon):
        return Value("no privacy at all", style="bad")
    return (
        Value("the promise holds") if row.certificate.holds else Value("the promise is broken", style="bad")
    )


def _labels(row: Audited) -> Value:
    if row.certificate is None or row.certificate.labels is None:
        return NOTHING
    return Value("{} against {}".format(*row.certificate.labels))


COLUMNS: tuple[Column[Audited], ...] = (
    Column("Channel", lambda row: Value(row.channel)),
    Column("Class", lambda row: Value(row.hypotheses), common=True),
    Column("T", lambda row: count(rule_value(row.game, "horizon")), numeric=True, common=True),
    Column("Promised ε", lambda row: _epsilon(row, "claimed_epsilon"), numeric=True),
    Column("Found ε", lambda row: _epsilon(row, "epsilon"), numeric=True),
    Column("Promised δ", lambda row: _delta(row, "claimed_delta"), numeric=True),
    Column("Found δ", lambda row: _delta(row, "delta"), numeric=True),
    Column("Verdict", _verdict),
    Column("Worst labels", _labels, "the pair that is told apart best"),
    Column("Method", lambda row: Value(row.certificate.method if row.certificate else "")),
)
