"""Audits: exact audits of a channel's declared density, and a black-box audit of any mechanism's messages.

========================== ======================================== ======================================
audit                      needs                                    result
========================== ======================================== ======================================
:func:`exact_epsilon`      ``log_density``, ``worst_case_messages`` least eps of the density, to 1e-9
                           or a table of probabilities              least eps of the table
:func:`exact_delta`        ``delta_bounds``                         bounds on the least delta at an eps
:func:`estimate_epsilon`   a Channel, or a function of a label      a lower bound on eps, with confidence
:func:`reachable`          finite messages, or ``laplace-single``   messages that exclude a label in floats
========================== ======================================== ======================================

The exact audits judge the density that a channel declares; ``ldp_gym.testing.check_channel`` and the
black-box audit look at the messages themselves. A black-box audit can show that a promise is broken, never
that it holds.

All audits are about one round and protect only the label. Those of eps and delta are about real arithmetic;
:func:`reachable` is about floating-point arithmetic, and so is the black-box audit of a function.
"""

from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.privacy.black_box import EpsilonEstimate, estimate_epsilon
from ldp_gym.privacy.exact import (
    Certificate,
    ExactEpsilon,
    certify,
    exact_delta,
    exact_epsilon,
    uniform_posterior,
)
from ldp_gym.privacy.floats import Reachability, reachable

__all__ = [
    "Certificate",
    "DeltaBounds",
    "EpsilonEstimate",
    "ExactEpsilon",
    "Reachability",
    "certify",
    "estimate_epsilon",
    "exact_delta",
    "exact_epsilon",
    "reachable",
    "uniform_posterior",
]
