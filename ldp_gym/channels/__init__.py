"""The private users: one module a mechanism.

======================== ======= =============================================================
name                     privacy message
======================== ======= =============================================================
``laplace-vector``       approx. all K clipped log-likelihoods with noise (Algorithm 1)
``gaussian-vector``      approx. the same with the least Gaussian noise
``laplace-single``       pure    one of them, at random (Algorithm 2)
``randomized-response``  pure    the label, or another (Section 3)
``identity``             none    the label
======================== ======= =============================================================

What is promised: idealised real arithmetic, per round, for the labels alone (contexts and the class are
public), with a simulator's random numbers. That is right for research, and not for protecting real
people's data. ``channel.certificate(candidates)`` checks it; see ``ldp_gym.audit``.
"""

from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.channels.gaussian_vector import GaussianVector
from ldp_gym.channels.identity import Identity, NoPrivacyWarning
from ldp_gym.channels.laplace_single import LaplaceSingle
from ldp_gym.channels.laplace_vector import LaplaceVector
from ldp_gym.channels.randomized_response import RandomizedResponse

__all__ = [
    "CHANNELS",
    "Channel",
    "GaussianVector",
    "Identity",
    "LaplaceSingle",
    "LaplaceVector",
    "NoPrivacyWarning",
    "RandomizedResponse",
]
