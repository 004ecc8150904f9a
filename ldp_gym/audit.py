"""Audits: exact audits of a channel's declared density, and a black-box audit of any mechanism's messages.

========================== ======================================== ======================================
audit                      needs                                    result
========================== ======================================== ======================================
:func:`certify`            a Channel                                its promise next to what was found
:func:`exact_epsilon`      ``log_density``, ``worst_case_messages`` least eps of the density, to 1e-9
                           or a table of probabilities              least eps of the table
:func:`exact_delta`        ``delta_bounds``                         bounds on the least delta at an eps
:func:`estimate_epsilon`   a Channel, or a function of a label      a lower bound on eps, with confidence
:func:`estimate_delta`     a Channel, or a function of a label      a lower bound on delta at an eps
:func:`reachable`          finite messages, or ``laplace-single``   messages that exclude a label in floats
========================== ======================================== ======================================

The exact audits judge the density that a channel declares; ``ldp_gym.testing.check_channel`` and the
black-box audits look at the messages themselves. A black-box audit can show that a promise is broken, never
that it holds.

All audits are about one round and protect only the label. Those of eps and delta are about real arithmetic;
:func:`reachable` is about floating-point arithmetic, and so are the black-box audits of a function.
"""

from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.privacy.black_box import (
    DeltaEstimate,
    EpsilonEstimate,
    estimate_delta,
    estimate_epsilon,
)
from ldp_gym.privacy.certificate import Certificate, certify, uniform_posterior
from ldp_gym.privacy.densities import ExactEpsilon
from ldp_gym.privacy.exact import exact_delta, exact_epsilon
from ldp_gym.privacy.floats import Reachability, reachable

__all__ = [
    "Certificate",
    "DeltaBounds",
    "DeltaEstimate",
    "EpsilonEstimate",
    "ExactEpsilon",
    "Reachability",
    "certify",
    "estimate_delta",
    "estimate_epsilon",
    "exact_delta",
    "exact_epsilon",
    "reachable",
    "uniform_posterior",
]
