"""Suites: experiments, the quantity of the x-axis, and claims.

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

from ldp_gym.bench.suites import learners, paper, replay
from ldp_gym.bench.suites.base import DELTA, SIZES, SUITES, Suite
from ldp_gym.bench.suites.own_game import OwnGame

_OWN = (
    *(learners.Quick, learners.Contexts, learners.Splits, learners.Misspecified, learners.Switching),
    *(paper.Upper, paper.NumHypotheses, paper.Epsilon, paper.NumLabels, paper.Lower, paper.Limit, paper.TV),
    replay.Replay,
)
SUITES.own.update({suite.name: suite for suite in _OWN})

__all__ = ["DELTA", "SIZES", "SUITES", "OwnGame", "Suite"]
