"""Natures, which pick the contexts ``x_1, ..., x_T``."""

from ldp_gym.natures.adversary import Adversary, Omniscient
from ldp_gym.natures.base import IID, NATURES, Cycle, Drift, Nature, NatureView, Sequence

__all__ = [
    "IID",
    "NATURES",
    "Adversary",
    "Cycle",
    "Drift",
    "Nature",
    "NatureView",
    "Omniscient",
    "Sequence",
]

NATURES.own |= {
    "adversary": Adversary,
    "cycle": Cycle,
    "drift": Drift,
    "iid": IID,
    "omniscient": Omniscient,
    "sequence": Sequence,
}
