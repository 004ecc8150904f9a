"""Truths: distribution-valued functions of the context and the round, from which labels are drawn."""

from ldp_gym.truths.base import (
    NO_MEMBER,
    TRUTHS,
    Fixed,
    Function,
    Member,
    Truth,
    TruthView,
    as_truth,
)
from ldp_gym.truths.combined import Contaminated, Mixture, Switching
from ldp_gym.truths.replay import Replay

__all__ = [
    "NO_MEMBER",
    "TRUTHS",
    "Contaminated",
    "Fixed",
    "Function",
    "Member",
    "Mixture",
    "Replay",
    "Switching",
    "Truth",
    "TruthView",
    "as_truth",
]

TRUTHS.own |= {
    "contaminated": Contaminated,
    "mixture": Mixture,
    "replay": Replay,
    "switching": Switching,
    "uniform": Member,
}
