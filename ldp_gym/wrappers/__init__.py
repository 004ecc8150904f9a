"""Views of the environment for RL agents.

Of the action: numbers in [-1, 1] in, a distribution over the labels out (:class:`MixtureAction`,
:class:`SoftmaxAction`). Of the observation: the transcript so far as a fixed number of features
(:class:`DecodedMessage`, :class:`Evidence`, :class:`HypothesisFeatures`, :class:`HypothesisRow`). Each comes
for the single and, with ``Vector`` before its name, for the vector environment. None of them sees the label,
the truth or the reward.
"""

from ldp_gym.wrappers.actions import MixtureAction, SoftmaxAction, VectorMixtureAction, VectorSoftmaxAction
from ldp_gym.wrappers.observations import (
    DecodedMessage,
    Evidence,
    HypothesisFeatures,
    HypothesisRow,
    VectorDecodedMessage,
    VectorEvidence,
    VectorHypothesisFeatures,
    VectorHypothesisRow,
)
from ldp_gym.wrappers.staggered import StaggeredStart

__all__ = [
    "DecodedMessage",
    "Evidence",
    "HypothesisFeatures",
    "HypothesisRow",
    "MixtureAction",
    "SoftmaxAction",
    "StaggeredStart",
    "VectorDecodedMessage",
    "VectorEvidence",
    "VectorHypothesisFeatures",
    "VectorHypothesisRow",
    "VectorMixtureAction",
    "VectorSoftmaxAction",
]
