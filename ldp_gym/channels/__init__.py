"""The private users: one module a mechanism.

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
``adaptive-wheel``       pure    the same on the public posterior's circle (interactive)
``adaptive-scheffe``     pure    the same for a likely pair (interactive)
``adaptive-split``       pure    the same for two sides of equal posterior (interactive)
``adaptive-groups``      pure    which of a few groups of equal posterior likes the label best (interactive)
``identity``             none    the label
======================== ======= =============================================================

What is promised: idealised real arithmetic, per round, for the labels alone (contexts and the class are
public), with a simulator's random numbers. That is right for research, and not for protecting real
people's data. ``channel.certificate(candidates)`` checks it; see ``ldp_gym.audit``.
"""

from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.channels.comparison import AdaptiveScheffe, AdaptiveSplit, Scheffe, Split
from ldp_gym.channels.gaussian_vector import GaussianVector
from ldp_gym.channels.groups import AdaptiveGroups
from ldp_gym.channels.hadamard_response import HadamardResponse
from ldp_gym.channels.identity import Identity, NoPrivacyWarning
from ldp_gym.channels.laplace_single import LaplaceSingle
from ldp_gym.channels.laplace_vector import LaplaceVector
from ldp_gym.channels.one_bit import Hybrid, OneBit
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.channels.subset_selection import SubsetSelection, Vote
from ldp_gym.channels.wheel import AdaptiveWheel, Wheel

__all__ = [
    "CHANNELS",
    "AdaptiveGroups",
    "AdaptiveScheffe",
    "AdaptiveSplit",
    "AdaptiveWheel",
    "Channel",
    "GaussianVector",
    "HadamardResponse",
    "Hybrid",
    "Identity",
    "LaplaceSingle",
    "LaplaceVector",
    "NoPrivacyWarning",
    "OneBit",
    "RandomizedResponse",
    "Scheffe",
    "Split",
    "SubsetSelection",
    "Vote",
    "Wheel",
]
