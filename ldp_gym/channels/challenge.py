"""A hypothesis challenges the mixture: does it give the label more probability?

Let w be the public posterior, ``q_k`` proportional to ``sqrt(w_k)``, and
``fbar = sum_k q_k f_k(x)``. One private bit says whether the label lies in a public set S. Under
the truth * the potential ``1 / q_*`` starts at K and is never below 1. With ``s = tanh(eps/2)``, a
round lowers it in expectation by at least

    ``(s^2 / 2) (1 / q_*) sum_k q_k (f_k(S) - f_*(S))^2``.

docs/proofs.md proves this. So sets that tell the truth from the others bound the sum of all losses,
without a logarithm, whoever picks the contexts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldp_gym.channels.base import AdaptiveChannel, Public
from ldp_gym.channels.bit import TIE, BitChannel, Questions, differences, label_sides
from ldp_gym.channels.half_space import turn_contrast
from ldp_gym.core import validation
from ldp_gym.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Messages,
    at,
    expectations,
    mixture,
    sums_in_order,
)
from ldp_gym.core.sampling import categorical, normal


class Challenge(AdaptiveChannel, BitChannel):
    """A hypothesis challenges the prediction: does it like the label better?

    Public coins draw a hypothesis j from the tempered posterior q, proportional to the square root
    of the public posterior. The user answers whether ``f_j(x)[y]`` is above ``fbar(x)[y]``, the
    mixture with weights q. The answer is flipped with probability ``1 / (e^eps + 1)``; where both
    are equal, a private coin answers. The message is the contrast of j and the mixture, scaled to a
    largest coefficient of 1, with negative coefficients for the hypotheses that like labels of the
    answered side.

    By default the set of labels is then *turned* three times for the posterior: each step takes the
    labels that the hypotheses above the mean give more probability to (:func:`turn_contrast`), so
    that the answers of likely hypotheses differ more. The last of these sets that passes the guard
    (the first does) is used:

        ``sum_k q_k (f_k(S) - f_j(S))^2 >= guard * TV(f_j, fbar)^2``.

    Example:
        K = 3, eps = 1 (flip probability 0.269), posterior (0.64, 0.32, 0.04): q is (0.51, 0.36,
        0.13) and fbar is (0.43, 0.31, 0.26). Hypothesis 2 gives labels 1 and 2 more than that. The
        contrast is (-0.8, 1, -0.2), and the probability of the answer "yes" under each hypothesis:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> posterior = np.array([0.64, 0.32, 0.04])
        >>> channel = Challenge(3, 3, 100, turns=0)
        >>> no, yes = channel.messages_given_coins(np.array([0.6]), table, posterior)
        >>> yes.round(2).tolist()
        [0.8, -1.0, 0.2]
        >>> np.exp(channel.log_likelihood(yes, table, posterior)).round(3).tolist()
        [0.454, 0.592, 0.685]

    Privacy: the question depends on public values only. Given the question, an answer has
    probability ``e^eps / (e^eps + 1)`` or ``1 / (e^eps + 1)``, or 1/2 on a tie: the ratio is at
    most ``e^eps``.

    When to use it: users can wait for each other, and eps is small (measured at eps = 1). It is
    never blind. Theorems hold for every class, every truth in it and any contexts that are chosen
    before the coins of their round: the learner ``bayes`` with ``rate=0.5``, whose weights are q,
    has ``sum_t E TV_t^2 <= 2 (K - 1) / (guard * tanh^2(eps/2))`` (guard = 1 without turning), and a
    KL-risk of at most ``2 sqrt(pi (K - 1) T) / tanh(eps/2)`` with ``question="all"``. Ties cost
    less than 1e-11 in TV.

    When not: users answer all at once (``half-space``); hypotheses on disjoint labels (2 to 5 times
    the risk of ``adaptive-groups`` at K = 8 and 32); eps above 1, where ``adaptive-groups`` says
    more than a bit. With ``batch``, a ``posterior_rate`` below 1 or a ``posterior_share`` the
    theorems are lost.

    The arguments that are not listed here are those of every adaptive channel.

    Args:
        question: ``"one"`` as above, or ``"all"``: public normal coins g, and the set of labels y
            with ``sum_j g_j sqrt(q_j f_j[y]) > 0``, summed over the hypotheses j with
            ``f_j[y] > fbar[y]``. The message is g, scaled, negative where j likes the answer.
        turns: number of steps that turn the set; 0 for ``question="all"``.
        guard: the share, in (0, 1], of the theorem's constant that a turned set must keep.
    """

    def __init__(
        self,
        *sizes: int,
        question: str = "one",
        turns: int = 3,
        guard: float = 0.25,
        **options: Any,
    ) -> None:
        super().__init__(*sizes, **options)
        self.question = validation.choice("question", question, ("one", "all"))
        self.turns = validation.whole("turns", turns, least=0)
        self.guard = validation.positive("guard", guard, most=1.0)
        if self.question == "all" and self.turns:
            raise ValueError(
                f'the set of question="all" is not turned: pass turns=0, got {self.turns}'
            )

    @property
    def num_public_coins(self) -> int:
        """Number of public coins: one, which draws a hypothesis, or K with ``question="all"``."""
        if self.question == "one":
            return 1
        return self.num_hypotheses

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages with a largest absolute coefficient of 1.

        With ``question="one"`` the coefficients must sum to 0 too, up to rounding.
        """
        if self.question == "one":
            return super().possible(messages)
        return np.asarray(np.abs(messages).max(axis=-1) == 1.0)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw messages ``(..., K)``: a public question, negated if the private answer is yes."""
        factors = self._factors(candidates, posterior)
        return super().encode(labels, factors, uniforms, posterior)

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return 1 for labels that the answer favours, 0 for others, 1/2 for labels on no side."""
        return super().agreement(messages, self._factors(candidates, posterior), posterior)

    def _factors(self, candidates: FloatArray, posterior: Public) -> FloatArray:
        """Return the numbers that a contrast's coefficients multiply, ``(..., K, M)``.

        They are the candidates; with ``question="all"`` the numbers ``sqrt(q_j f_j[y])`` where
        ``f_j[y]`` is above the mixture ``sum_k q_k f_k[y]``, and 0 elsewhere. The weights q are the
        tempered posterior.
        """
        if self.question == "one":
            return candidates
        tempered = self._tempered(posterior)

        # Differences from the likeliest hypothesis: where all nearly agree, they keep their digits.
        likeliest = at(candidates, tempered.argmax(axis=-1), slice(None))[..., None, :]
        ahead = candidates - likeliest
        mean_ahead = mixture(tempered, ahead)[..., None, :]
        is_above_mixture = ahead - mean_ahead > TIE * candidates
        return np.where(is_above_mixture, np.sqrt(tempered[..., None] * candidates), 0.0)

    def _tempered(self, posterior: Public) -> FloatArray:
        """Return the tempered posterior ``(..., K)``: normalised square roots of the public one."""
        roots = np.sqrt(self._public(posterior))
        return roots / sums_in_order(roots)

    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        """Return the contrasts ``(..., K)`` that public coins ``(..., num_public_coins)`` draw.

        With ``question="all"`` these are normal numbers, scaled to a largest absolute value of 1.
        Else a coin draws the hypothesis that challenges the mixture.
        """
        if self.question == "all":
            coefficients = normal(coins)
            return coefficients / np.abs(coefficients).max(axis=-1, keepdims=True)
        tempered = self._tempered(posterior)
        shape = np.broadcast_shapes(coins.shape[:-1], tempered.shape[:-1])
        weights = np.broadcast_to(tempered, (*shape, self.num_hypotheses))
        challenger = categorical(weights, coins[..., 0])
        return self._challenge(challenger, candidates, posterior, tempered)

    def _all_questions(self, candidates: FloatArray, posterior: Public) -> Questions | None:
        """Return a challenge by each hypothesis, with its probability; None for random normals."""
        if self.question == "all":
            return None
        hypotheses = np.arange(self.num_hypotheses)
        tempered = self._tempered(posterior)
        questions = self._challenge(hypotheses, candidates, posterior, tempered)
        return Questions(questions, tempered)

    def _challenge(
        self,
        challenger: IntArray,
        candidates: FloatArray,
        posterior: Public,
        tempered: FloatArray,
    ) -> FloatArray:
        """Return the contrasts ``(..., K)`` of challenges by the hypotheses j of ``(...)``.

        A contrast is that of ``f_j`` and the mixture with weights q: coefficients ``1 - q_j`` for j
        and ``-q_k`` for the others, scaled to a largest coefficient of 1. It may then be turned.
        """
        is_challenger = np.arange(self.num_hypotheses) == challenger[..., None]
        others = np.where(is_challenger, 0.0, tempered)
        total_of_others = sums_in_order(others)  # 1 - q_j, also where q_j is nearly 1
        scale = np.where(total_of_others > 0.0, total_of_others, 1.0)
        contrast = np.where(is_challenger, total_of_others, -others) / scale
        if self.turns == 0:
            return contrast
        return self._turned(contrast, challenger, candidates, posterior, tempered)

    def _turned(
        self,
        contrast: FloatArray,
        challenger: IntArray,
        candidates: FloatArray,
        posterior: Public,
        tempered: FloatArray,
    ) -> FloatArray:
        """Turn contrasts ``(..., K)`` step by step, and return the last ones that pass the guard.

        The set S of labels that a contrast favours passes if
        ``sum_k q_k (f_k(S) - f_j(S))^2 >= guard * TV(f_j, fbar)^2``, for challenger j and the
        mixture fbar with weights q.
        """
        weights = self._public(posterior)
        terms = differences(candidates)
        ahead = candidates - at(candidates, challenger, slice(None))[..., None, :]  # f_k - f_j
        distance = sums_in_order(np.maximum(-mixture(tempered, ahead), 0.0))  # TV(f_j, fbar)
        needed = self.guard * np.square(distance)

        turned = contrast
        last_that_passes = contrast
        for _ in range(self.turns):
            turned = turn_contrast(turned, candidates, terms, weights)
            answers_ahead = expectations(ahead, label_sides(turned, candidates))  # f_k(S) - f_j(S)
            mean_square = sums_in_order(tempered * np.square(answers_ahead))
            last_that_passes = np.where(mean_square >= needed, turned, last_that_passes)
        return last_that_passes
