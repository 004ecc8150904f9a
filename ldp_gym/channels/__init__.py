"""The private users: one file per mechanism.

``ldp-gym list channels`` shows them all, by what their messages speak about.

What is promised: idealised real arithmetic, per round, for the labels alone (contexts and the class are
public), with a simulator's random numbers. That is right for research, and not for protecting real
people's data. ``ldp_gym.audit.certify(channel, candidates)`` checks it.
"""

from typing import Any

from ldp_gym.channels.base import CHANNELS, Channel

__all__ = ["CHANNELS", "Channel"]


def __getattr__(name: str) -> Any:
    """A registered channel by its class, such as ``ldp_gym.channels.Split``."""
    return CHANNELS.class_named(name, __name__)
