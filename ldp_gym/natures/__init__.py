"""Nature: who picks the contexts ``x_1, ..., x_T`` (and, with the environment, the truth).

==================== ================================================================================
name                 contexts
==================== ================================================================================
``"iid"``            independent standard normal
``"sequence"``       a given list, one per round
``"cycle"``          a pool, over and over
``"drift"``          a stationary walk, each context close to the last
``"adversary"``      from a pool, the one of most expected KL for what its messages tell
``"omniscient"``     from a pool, the one with the largest KL from the truth: it leaks the truth
==================== ================================================================================
"""

from ldp_gym.natures.adversary import Adversary
from ldp_gym.natures.base import NATURES, Nature, NatureView
from ldp_gym.natures.cycle import Cycle
from ldp_gym.natures.drift import Drift
from ldp_gym.natures.iid import IID
from ldp_gym.natures.omniscient import Omniscient
from ldp_gym.natures.sequence import Sequence

__all__ = ["IID", "NATURES", "Adversary", "Cycle", "Drift", "Nature", "NatureView", "Omniscient", "Sequence"]

NATURES.own.update(
    {
        "adversary": Adversary,
        "cycle": Cycle,
        "drift": Drift,
        "iid": IID,
        "omniscient": Omniscient,
        "sequence": Sequence,
    }
)
