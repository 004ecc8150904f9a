"""Suites: experiments, the quantity of the x-axis, and claims."""

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
