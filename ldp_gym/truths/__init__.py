"""What labels are drawn from: a distribution-valued function of the context and the round.

================== =========================================================================================
``truth=``         what it is
================== =========================================================================================
``"uniform"``      a member of the class, drawn for each episode: the truth of the paper
(an index)         that member
``"mixture"``      a mixture of members, in the convex hull of the class
``"contaminated"`` a member, and now and then another distribution
``"switching"``    a member that gives way to another
``"replay"``       logged contexts and labels
(a row)            one distribution over the labels, whatever the context
(a callable)       a function from contexts to distributions; so is a fitted classifier
(a ``Truth``)      one of your own
================== =========================================================================================
"""

from ldp_gym.truths.base import NO_MEMBER, TRUTHS, Truth, TruthView
from ldp_gym.truths.contaminated import Contaminated
from ldp_gym.truths.member import Member
from ldp_gym.truths.mixture import Mixture
from ldp_gym.truths.replay import Replay
from ldp_gym.truths.sources import as_truth
from ldp_gym.truths.switching import Switching

__all__ = [
    "NO_MEMBER",
    "TRUTHS",
    "Contaminated",
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
