"""Natures, which pick the contexts ``x_1, ..., x_T``.

==================== ================================================================================
name                 contexts
==================== ================================================================================
``"iid"``            independent standard normal
``"sequence"``       a given list, one per round
``"cycle"``          a pool, over and over
``"drift"``          a stationary walk, each context close to the last
``"adversary"``      from a pool, the one of most expected KL per information of its message
``"omniscient"``     from a pool, the one with the largest KL from the truth: it leaks the truth
==================== ================================================================================
"""

from ldp_gym.natures.adversary import Adversary, Omniscient
from ldp_gym.natures.base import IID, NATURES, Cycle, Drift, Nature, NatureView, Sequence

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
