"""Audits of channels: good, broken, large, and not possible."""

import pytest

from ldp_gym.bench import Experiment, certificates, tables
from ldp_gym.channels.randomized_response import RandomizedResponse

BROKEN = [[0, 0, 0, 1, 0], [2 / 9, 2 / 9, 3 / 9, 0, 2 / 9]]
"""On this table the paper's own clipping breaks Algorithm 2's promise: eps is 1.0333, not 1."""


class Secretive(RandomizedResponse):
    """A channel that cannot be audited."""

    def worst_case_messages(self, candidates, posterior=None):
        raise RuntimeError("none of your business")


LARGE = {"hypotheses": "dirichlet", "num_hypotheses": 64, "num_labels": 1000, "channel": "split"}


@pytest.mark.parametrize(
    ("rules", "epsilon", "verdict"),
    [
        ({"hypotheses": BROKEN}, 0.9988, "the promise holds"),
        ({"hypotheses": BROKEN, "channel_kwargs": {"clipping": "paper"}}, 1.0333, "the promise is broken"),
        (LARGE, None, "not audited: its table is large: run ldp-gym audit"),
        ({"channel": f"{__name__}:Secretive"}, None, "not audited: RuntimeError: none of your business"),
    ],
)
def test_the_table_has_a_verdict(rules, epsilon, verdict):
    (audit,) = certificates.audit_channels([Experiment(rules, "bayes")]).values()
    assert tables.certificate_table([audit])["Verdict"][0] == verdict
    assert (audit.certificate is None) == (epsilon is None)
    if epsilon:
        assert audit.certificate.epsilon == pytest.approx(epsilon, abs=1e-4)
        assert audit.hypotheses == "table, K = 2, M = 5"


def test_a_channel_is_audited_once_for_a_promise_and_kind_on_the_largest_class():
    experiments = [
        Experiment({"channel": "split", "hypotheses": "dirichlet", "num_labels": labels, **rules}, "bayes")
        for labels in (32, 16, 64, 10_000)
        for rules in ({}, {"epsilon": 1.0}, {"epsilon": 2.0})
    ]
    rows = certificates.audit_channels(experiments).values()
    assert [row.certificate.claimed_epsilon for row in rows] == [1.0, 2.0]
    assert {row.hypotheses for row in rows} == {"dirichlet, K = 8, M = 64"}
