"""Views of LDPDist-v0 for RL agents, each for the single and for the vector environment.

``MixtureAction`` and ``SoftmaxAction`` turn logits into distributions. ``EvidenceObservation`` shows an agent
without a memory the evidence so far, ``MessageObservation`` shows an agent with a memory the last message.
None of them sees the label, the truth or the reward. LDPDistBox-v0 is faster, and has all of this built in.
"""

from ldp_gym.wrappers.actions import MixtureAction, SoftmaxAction, VectorMixtureAction, VectorSoftmaxAction
from ldp_gym.wrappers.observations import (
    EvidenceObservation,
    MessageObservation,
    VectorEvidenceObservation,
    VectorMessageObservation,
)

__all__ = [
    "EvidenceObservation",
    "MessageObservation",
    "MixtureAction",
    "SoftmaxAction",
    "VectorEvidenceObservation",
    "VectorMessageObservation",
    "VectorMixtureAction",
    "VectorSoftmaxAction",
]
