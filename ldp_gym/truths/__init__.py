"""Truths: the distributions that labels are drawn from, by context and round."""

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
