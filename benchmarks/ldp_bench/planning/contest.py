"""Channels in a comparison: how far their surveys are, and which one is chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ldp_bench.planning.answer import SURE, needed_information, quantile
from ldp_bench.planning.surveys import Outcomes, Surveys
from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import BoolArray, FloatArray

WITHOUT_WAITING = 1.25
"""Largest ratio of users up to which a channel without waiting is preferred to an adaptive one."""

_BEHIND = 0.75
"""Share of surveys that must have ended, for each truth, when the best channel is done; others stop."""

_ESTIMATE_MARGIN = 2.0
"""Factor by which the information of a message may be underestimated."""


class Contest(NamedTuple):
    """A channel in the comparison.

    Attributes:
        name: name of the channel.
        channel: the channel.
        surveys: its surveys, in groups of runs.
        hopeless: truths ``(K,)`` that are not played, as they need more users than are allowed.
    """

    name: str
    channel: Channel
    surveys: list[Surveys]
    hopeless: BoolArray

    @property
    def outcomes(self) -> Outcomes:
        """Outcomes of all surveys, of all groups of runs."""
        parts = [surveys.outcomes for surveys in self.surveys]
        return Outcomes(
            users=np.concatenate([part.users for part in parts], axis=1),
            left=np.concatenate([part.left for part in parts], axis=1),
            asked=max(part.asked for part in parts),
        )

    @property
    def _users(self) -> FloatArray:
        """Number of users when each survey ended, ``(truths, runs)``, of the truths that are played."""
        parts = [surveys.outcomes.users for surveys in self.surveys]
        return np.concatenate(parts, axis=1)[~self.hopeless]

    @property
    def worst(self) -> float:
        """The 95% quantile of users under the truth, of those played, for which it is largest."""
        users = self._users
        return max((quantile(row, SURE).value for row in users), default=math.inf)

    @property
    def behind(self) -> bool:
        """True if, for a truth that is played, few surveys have ended."""
        ended = np.isfinite(self._users).mean(axis=1)
        return bool((ended < _BEHIND).any())

    def give_up(self, truths: BoolArray) -> None:
        """Play no more surveys of some truths."""
        for surveys in self.surveys:
            surveys.abandon(truths)

    def beyond_reach(self, alike: BoolArray, alpha: float, most_users: int) -> BoolArray:
        """Truths ``(K,)`` that most_users messages cannot tell from a rival, by their information so far.

        For near rivals the log-likelihood ratio of n messages has variance ``2 n D``, D the KL divergence of
        a message; the bound on n D is :func:`needed_information`.
        """
        ratios = [surveys.squared_ratios for surveys in self.surveys]
        sums = np.sum([part.sums for part in ratios], axis=0)
        counts = np.sum([part.counts for part in ratios], axis=0)
        asked = self.outcomes.asked

        # D of each truth and rival, (K, K): the mean square is 2 n D. No surveys: any number will do.
        information = sums / (2.0 * asked * np.maximum(counts, 1)[:, None])
        nearest = np.where(alike, np.inf, information).min(axis=1)
        is_too_little = _ESTIMATE_MARGIN * most_users * nearest < needed_information(alpha)

        # A truth under which half of the surveys have ended is within reach.
        num_runs = sum(len(surveys.runs) for surveys in self.surveys)
        are_most_under_way = counts >= 0.5 * num_runs
        return are_most_under_way & is_too_little


def fewest_users(contests: Sequence[Contest]) -> float:
    """Smallest :attr:`Contest.worst` of the channels that play the most truths; inf if not known yet."""
    fewest_given_up = min(contest.hopeless.sum() for contest in contests)
    best = [contest for contest in contests if contest.hopeless.sum() == fewest_given_up]
    return min(contest.worst for contest in best)


def choose(contests: Sequence[Contest]) -> Contest | None:
    """Choose the channel of the fewest users, or one without waiting that needs little more.

    Returns:
        None if no channel tells all truths apart within the users that are allowed.
    """
    able = [contest for contest in contests if math.isfinite(_users_needed(contest))]
    if not able:
        return None
    best = min(able, key=_users_needed)
    allowed = WITHOUT_WAITING * _users_needed(best)
    without_waiting = [
        contest
        for contest in able
        if not contest.channel.adaptive and _users_needed(contest) <= allowed
    ]
    return min(without_waiting, key=_users_needed, default=best)


def _users_needed(contest: Contest) -> float:
    """Users within which 95% of the surveys end under each truth; inf if a truth was given up."""
    if contest.hopeless.any():
        return math.inf
    return contest.worst
