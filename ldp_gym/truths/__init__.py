"""Truths: distribution-valued functions of the context and the round, from which labels are drawn.

================== =========================================================================================
``truth=``         meaning
================== =========================================================================================
``"uniform"``      a member of the class, drawn for each episode: the truth of the paper
(an index)         that member
``"mixture"``      a mixture of members, in the convex hull of the class
``"contaminated"`` a member, and now and then another distribution
``"switching"``    a member that gives way to another
``"replay"``       logged contexts and labels
(a row)            one distribution over the labels, whatever the context
(a callable)       a function from contexts to distributions; so is a fitted classifier
(a ``Truth``)      a custom truth
================== =========================================================================================
"""

from ldp_gym.truths.base import NO_MEMBER, TRUTHS, Fixed, Function, Member, Truth, TruthView, as_truth
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

TRUTHS.own.update(
    {
        "contaminated": Contaminated,
        "mixture": Mixture,
        "replay": Replay,
        "switching": Switching,
        "uniform": Member,
    }
)
