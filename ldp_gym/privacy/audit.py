"""Privacy that can be checked: exact audits of a channel's density, and a black-box audit of its messages.

========================== ======================================== ======================================
audit                      needs                                    says
========================== ======================================== ======================================
:func:`exact_epsilon`      ``log_density``, ``worst_case_messages`` the least eps of the density, to 1e-9
:func:`exact_delta`        ``delta_bounds``                         bounds on the least delta at an eps
:func:`estimate_epsilon`   ``privatize`` alone                      a lower bound on eps, with confidence
:func:`reachable`          ``encode`` or ``privatize``              whether floats give labels away
========================== ======================================== ======================================

The exact audits judge the density that a channel declares, so a channel whose messages do not follow it
escapes them; ``ldp_gym.testing.check_channel`` and the black-box audit look at the messages themselves. A
black-box audit can convict a channel and never acquit it.

All of it is about one round and protects the label alone. The audits of eps and delta are about real
arithmetic; :func:`reachable` is about the machine's.
"""

from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.privacy.black_box import EpsilonEstimate, estimate_epsilon
from ldp_gym.privacy.certificate import Certificate, certify, uniform_posterior
from ldp_gym.privacy.exact import ExactEpsilon, exact_delta, exact_epsilon
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
