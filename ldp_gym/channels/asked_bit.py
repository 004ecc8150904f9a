"""One private bit about a contrast that somebody picks: the channel of LDPAsk-v0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ldp_gym.channels.base import AdaptiveChannel, Channel, Public
from ldp_gym.channels.bit import BitChannel, Questions
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages
from ldp_gym.core.errors import IncompatibleChannelError


class AskedBit(AdaptiveChannel, BitChannel):
    """One private bit about a contrast that a policy, or an agent in the designer's seat, picks.

    With contrast a, the user answers "is my label in S?" for ``S = {y : sum_k a_k f_k[y] > 0}``,
    flipped with probability ``1 / (e^eps + 1)``; a label whose sum is 0 tosses a private coin. The
    message is the contrast, with negative coefficients for hypotheses that like labels of the
    answered side.

    Privacy: the contrast is public, and given it the ratio of an answer's probabilities is at most
        ``e^eps``.

    Args:
        policy: function from public posteriors ``(..., K)`` to contrasts ``(..., K)`` in [-1, 1];
            None if the questions come from outside (:meth:`answer`).
    """

    num_public_coins = 0
    possible = Channel.possible  # any contrast

    def __init__(
        self,
        *sizes: int,
        policy: Callable[[FloatArray], FloatArray] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*sizes, **options)
        self.policy = validation.function(
            "policy", policy, "a function from posteriors to contrasts"
        )

    def answer(
        self, questions: FloatArray, labels: IntArray, candidates: FloatArray, coins: FloatArray
    ) -> Messages:
        """Return the users' messages ``(..., K)`` about contrasts that the policy did not pick.

        Args:
            questions: the contrasts, ``(..., K)``.
            labels: the users' labels, ``(...)``.
            candidates: the public ``f_j(x_t)``, ``(..., K, M)``.
            coins: the users' private uniforms, ``(..., 1)``.
        """
        private_coin = coins[..., 0]
        return self._answer(questions, labels, candidates, private_coin)

    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        """Return the contrasts ``(..., K)`` that the policy picks at public posteriors."""
        if self.policy is None:
            raise IncompatibleChannelError(
                f"{self!r} has no policy: its questions come from an agent in the designer's seat"
            )
        contrasts = self.policy(self._public(posterior))
        return np.broadcast_to(contrasts, (*coins.shape[:-1], self.num_hypotheses))

    def _all_questions(self, candidates: FloatArray, posterior: Public) -> Questions:
        """Return the only question, which the policy picks without coins."""
        no_coins = np.zeros((1, 0))
        question = self._question(no_coins, candidates, posterior)
        return Questions(question, np.ones(1))
