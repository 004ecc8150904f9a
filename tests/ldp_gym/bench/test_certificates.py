"""What the report says of channels: the good, the broken, the large and those that cannot be audited."""

import pytest

from ldp_gym.bench import Experiment, certificates, tables
from ldp_gym.channels.randomized_response import RandomizedResponse

BROKEN = [[0, 0, 0, 1, 0], [2 / 9, 2 / 9, 3 / 9, 0, 2 / 9]]
"""On this table the paper's own clipping breaks Algorithm 2's promise: eps is 1.0333, not 1."""


class Secretive(RandomizedResponse):
    """A channel that does not let itself be audited."""

    def worst_case_messages(self, candidates, posterior=None):
        raise RuntimeError("none of your business")


def verdict(**rules):
    (row,) = certificates.audit_channels([Experiment(rules, "bayes")]).values()
    return row, tables.certificates([row])["Verdict"][0]


def test_a_broken_promise_is_said():
    row, said = verdict(hypotheses=BROKEN, channel="laplace-single", channel_kwargs={"clipping": "paper"})
    assert row.certificate.epsilon == pytest.approx(1.0333, abs=1e-4)
    assert said == "the promise is broken"
    assert row.hypotheses == "table, K = 2, M = 5"
    row, said = verdict(hypotheses=BROKEN, channel="laplace-single")
    assert said == "the promise holds"
    assert row.certificate.epsilon <= 1.0 + 1e-9


def test_a_large_table_is_left_to_the_audit():
    _, said = verdict(hypotheses="dirichlet", num_hypotheses=64, num_labels=1000, channel="split")
    assert said == "not audited here, its table is large: run ldp-gym audit"


def test_a_channel_that_cannot_be_audited_says_why():
    row, said = verdict(channel=f"{__name__}:Secretive")
    assert row.certificate is None
    assert said == "not audited: RuntimeError: none of your business"


def test_a_channel_is_audited_once_for_a_promise_and_kind_on_the_smallest_class():
    experiments = [
        Experiment({"channel": "split", "hypotheses": "dirichlet", "num_labels": labels, **rules}, "bayes")
        for labels in (32, 16, 64)
        for rules in ({}, {"epsilon": 1.0}, {"epsilon": 2.0})
    ]
    rows = certificates.audit_channels(experiments).values()
    assert [row.certificate.claimed_epsilon for row in rows] == [1.0, 2.0]
    assert {row.hypotheses for row in rows} == {"dirichlet, K = 8, M = 16"}
