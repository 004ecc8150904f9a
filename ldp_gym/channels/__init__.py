"""The private users: one file per mechanism.

======================== ======= =============================================================
name                     privacy message
======================== ======= =============================================================
``laplace-vector``       approx. all K clipped log-likelihoods with noise (Algorithm 1)
``gaussian-vector``      approx. the same with the least Gaussian noise
``laplace-single``       pure    one of them, at random (Algorithm 2)
``one-bit``, ``hybrid``  pure    one of them, with less noise than Laplace's
``randomized-response``  pure    the label, or another (Section 3)
``subset-selection``     pure    a set of labels that tends to hold the label
``hadamard-response``    pure    a column that tends to say yes to the label
``vote``                 pure    a set of hypotheses that tends to hold the one that likes the label best
``scheffe``              pure    which of two hypotheses likes the label better
``split``                pure    which half of the hypotheses likes the label better
``wheel``                pure    an arc that tends to cover the label, on a circle of labels
``adaptive-wheel``       pure    the same on the public posterior's circle (adaptive)
``adaptive-scheffe``     pure    the same for a likely pair (adaptive)
``adaptive-split``       pure    the same for two sides of equal posterior (adaptive)
``adaptive-groups``      pure    which of a few groups of equal posterior likes the label best (adaptive)
``identity``             none    the label
======================== ======= =============================================================

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
