"""Certificates of the channels that were played on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from ldp_gym.bench.experiment import CHANNEL_RULES, Experiment, GameRules, canonical, make_scenario
from ldp_gym.core.errors import summarize
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.engine.rules import rule_value
from ldp_gym.privacy.audit import Certificate, certify, uniform_posterior

LARGEST = 4096
"""Largest table, in K M entries, that a report audits; larger ones are left to ``ldp-gym audit``."""


@dataclass(frozen=True)
class ChannelAudit:
    """A channel in a game, with its certificate, or a note why it has none."""

    channel: str
    horizon: int
    hypotheses: str
    certificate: Certificate | None
    note: str

    @property
    def broken(self) -> bool:
        """True if the promise is known to be broken."""
        return self.certificate is not None and not self.certificate.holds

    def __str__(self) -> str:
        if self.certificate is None:
            return f"{self.channel}: not audited, {self.note}"
        found, claimed = self.certificate.epsilon, self.certificate.claimed_epsilon
        what = f"promises ε = {claimed:g} and has ε = {found:.6g}"
        if found <= claimed:
            what = f"promises δ = {self.certificate.claimed_delta:g} and has δ = {self.certificate.delta:.4g}"
        return f"{self.channel} {what}, on {self.hypotheses}"


def audit_channels(experiments: Iterable[Experiment]) -> dict[str, ChannelAudit]:
    """Audit the experiments' channels once per promise and kind of class, by :func:`certificate_key`.

    The game audited is the largest within :data:`LARGEST`.
    """
    groups: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        groups.setdefault(certificate_key(experiment), []).append(experiment)
    return {key: _audit(group) for key, group in groups.items()}


def certificate_key(experiment: Experiment) -> str:
    """The part of the rules that a channel's certificate depends on."""
    return canonical([rule_value(experiment.rules, name) for name in (*CHANNEL_RULES, "hypotheses")])


def _audit(group: list[Experiment]) -> ChannelAudit:
    small = [e for e in group if e.num_hypotheses * e.num_labels <= LARGEST]
    audited = max(small or group, key=lambda e: e.num_hypotheses * e.num_labels)
    found = _certify(GameRules(audited.rules)) if small else (None, "its table is large: run ldp-gym audit")
    return ChannelAudit(audited.channel, audited.horizon, audited.hypotheses, *found)


@cache
def _certify(game: GameRules) -> tuple[Certificate | None, str]:
    """The certificate of a game's channel, or the reason why it has none."""
    try:
        scenario = make_scenario(**game.rules)
        channel, hypotheses = scenario.channel, scenario.hypotheses
        context = stream(Purpose.CERTIFICATE, 0).standard_normal(hypotheses.context_dim)
        return certify(channel, hypotheses(context), uniform_posterior(channel)), ""
    except Exception as error:  # of a third-party channel; its cells report it
        return None, summarize(error)
