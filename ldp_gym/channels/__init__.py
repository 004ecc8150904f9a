"""Channels, the private users of the game: one file per mechanism.

``ldp-gym list channels`` shows them all, by the kind of their messages.

The privacy promise holds in idealised real arithmetic, per round, for labels (contexts and the
class are public), with a simulator's random numbers. That is right for research, and not for
protecting real people's data. ``ldp_gym.audit.certify(channel, candidates)`` checks it.
"""

from ldp_gym.channels.adaptive_groups import AdaptiveGroups
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.channels.challenge import Challenge
from ldp_gym.channels.comparison import AdaptiveSplit, Scheffe, Split
from ldp_gym.channels.hadamard_response import HadamardResponse
from ldp_gym.channels.half_space import HalfSpace
from ldp_gym.channels.local_hashing import LocalHashing
from ldp_gym.channels.noisy import GaussianVector, LaplaceSingle, LaplaceVector
from ldp_gym.channels.one_bit import Hybrid, OneBit
from ldp_gym.channels.randomized_response import Identity, RandomizedResponse
from ldp_gym.channels.subset_selection import SubsetSelection, UnaryEncoding
from ldp_gym.channels.vote import Vote, Wheel

__all__ = [
    "CHANNELS",
    "AdaptiveGroups",
    "AdaptiveSplit",
    "Challenge",
    "Channel",
    "GaussianVector",
    "HadamardResponse",
    "HalfSpace",
    "Hybrid",
    "Identity",
    "LaplaceSingle",
    "LaplaceVector",
    "LocalHashing",
    "OneBit",
    "RandomizedResponse",
    "Scheffe",
    "Split",
    "SubsetSelection",
    "UnaryEncoding",
    "Vote",
    "Wheel",
]

CHANNELS.own |= {
    "adaptive-groups": AdaptiveGroups,
    "adaptive-split": AdaptiveSplit,
    "challenge": Challenge,
    "gaussian-vector": GaussianVector,
    "hadamard-response": HadamardResponse,
    "half-space": HalfSpace,
    "hybrid": Hybrid,
    "identity": Identity,
    "laplace-single": LaplaceSingle,
    "laplace-vector": LaplaceVector,
    "local-hashing": LocalHashing,
    "one-bit": OneBit,
    "randomized-response": RandomizedResponse,
    "scheffe": Scheffe,
    "split": Split,
    "subset-selection": SubsetSelection,
    "unary-encoding": UnaryEncoding,
    "vote": Vote,
    "wheel": Wheel,
}
