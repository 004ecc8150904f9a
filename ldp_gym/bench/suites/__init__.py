"""The suites, one file each: what is run, its findings and its figure.

================== ===================================================================================
``quick``          every learner on the main channels of the default game
``upper``          risk against T: the theorems' upper bounds, and where the literal learners learn
``num-hypotheses`` risk against K
``epsilon``        risk against eps
``lower``          the Hadamard class against the lower bound
``num-labels``     risk against M: the paper's main point
``tv``             total variation, online-to-batch conversion and the median trick
``limit``          disjoint supports against the information limit
``contexts``       natures from kind to omniscient
``splits``         agents on games that they were not trained on
``misspecified``   truths outside the class
``switching``      truths that move
``replay``         which channel and eps pick the right model, on real labels
================== ===================================================================================
"""

from ldp_gym.bench.suites.base import DELTA, SIZES, SUITES, Suite, SuiteTable

__all__ = ["DELTA", "SIZES", "SUITES", "Suite", "SuiteTable"]
