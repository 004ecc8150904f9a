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

from typing import Any

from ldp_gym.natures.base import NATURES, Nature, NatureView

__all__ = ["NATURES", "Nature", "NatureView"]


def __getattr__(name: str) -> Any:
    """A registered nature by its class, such as ``ldp_gym.natures.Drift``."""
    return NATURES.class_named(name, __name__)
