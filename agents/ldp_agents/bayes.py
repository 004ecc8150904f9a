"""Bayes' rule on a channel's likelihood: the posterior mean, maximum likelihood and Thompson."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_agents.base import ExponentialWeights, SmoothedLearner
from ldp_gym import Game
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages, softmax
from ldp_gym.core.sampling import categorical, open_uniforms
from ldp_gym.engine.game import require_game
from ldp_gym.engine.posterior import finite

_TIE = 1e-9
"""Difference of log-likelihoods, in nats, below which hypotheses tie."""


class Bayes(ExponentialWeights):
    """The exact posterior mean: the least risk on average over truths in the class.

    It reads any channel. Under a truth drawn from its prior, and contexts that depend on it only
    through the public transcript, no learner on the same channel has a smaller expected risk. For a
    truth outside the class it can be worse than never learning; a rate below 1 trusts every message
    less, which can help.

    Args:
        game: the public rules.
        rate: the exponent of the likelihoods, positive: 1, Bayes' rule, when not given; less is
            tempered.
        prior: K weights that sum to one; uniform when not given.

    Example:
        Stop as soon as one hypothesis is left. The truth is dropped in at most 5% of all games:

        >>> import gymnasium as gym
        >>> env = gym.make("LDPDist-v0", channel="challenge", epsilon=2.0)
        >>> learner, (observation, _) = Bayes(env.unwrapped.game), env.reset(seed=0)
        >>> while learner.confidence_set(0.05).sum() > 1:
        ...     observation, *_ = env.step(learner.act(observation))
        >>> int(observation["round"][0]) < 200
        True

    References:
        Grünwald, P. (2012). The safe Bayesian: learning the learning rate via the mixability gap.
        ALT.
    """

    rate = 1.0

    def __init__(
        self, game: Game, rate: float | None = None, prior: npt.ArrayLike | None = None
    ) -> None:
        require_game(game)
        if rate is not None:
            self.rate = validation.positive("rate", rate)

        if prior is None:
            self._start = np.zeros(game.num_hypotheses)
        else:
            weights = game_arrays.row("prior", prior, game.num_hypotheses, "hypothesis")
            self._start = starting_losses(weights, self.rate)

        # Summed losses less this are negative log posteriors at rate 1. A hypothesis of prior
        # weight 0 starts at infinity and stays there: nothing is to be subtracted.
        possible = np.isfinite(self._start)
        self._offset = np.zeros(game.num_hypotheses)
        self._offset[possible] = (1.0 - self.rate) * self._start[possible]
        super().__init__(game)

    @property
    def _prior(self) -> FloatArray:
        """Losses before the first message, for which :meth:`_weigh` gives the prior."""
        return self._start

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin an episode in each of a batch of games, and forget the smallest posteriors."""
        super().reset(batch_shape)
        # Smallest posterior weight of each hypothesis in earlier rounds, (..., K).
        self._smallest_posterior = np.ones(self._state.shape)

    def restart(self, mask: BoolArray) -> None:
        """Begin a new episode in those games of the batch that ``mask`` selects."""
        super().restart(mask)
        self._smallest_posterior[mask] = 1.0

    def confidence_set(self, alpha: float) -> BoolArray:
        """Return a mask ``(..., K)`` of hypotheses not ruled out: a confidence set for the truth.

        A hypothesis is dropped for good when its posterior weight, at rate 1, is at most ``alpha``
        times its prior weight. Under truth ``*`` the ratio
        ``prior_* / posterior_* = sum_k prior_k L_k / L_*`` is a martingale that starts at 1, so by
        Ville's inequality a truth in the class is ever dropped with probability at most ``alpha``,
        however often one looks, and whoever picks the contexts.

        Args:
            alpha: probability, in (0, 1), that the truth is ever dropped, at most.
        """
        alpha = validation.fraction("alpha", alpha)
        posterior = self._posterior(self._state, axis=-1)
        prior = self._posterior(self._start, axis=-1)
        smallest_ever = np.minimum(self._smallest_posterior, posterior)
        return smallest_ever > alpha * prior

    def _posterior(self, totals: FloatArray, axis: int) -> FloatArray:
        """The posterior at rate 1, from summed losses.

        Args:
            totals: summed losses of the hypotheses.
            axis: axis of the hypotheses, negative.
        """
        # Summed losses hold the prior divided by the rate; the offset restores the prior itself.
        trailing_axes = tuple(range(1, -axis))  # the axes behind that of the hypotheses
        offset = np.expand_dims(self._offset, trailing_axes)
        return softmax(offset - totals, axis=axis)

    def _learn(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from a round's messages; before, note the posterior for the confidence sets."""
        posterior = self._posterior(self._state, axis=-1)
        self._smallest_posterior = np.minimum(self._smallest_posterior, posterior)
        super()._learn(candidates, message)

    def _weigh_along(self, totals: FloatArray) -> FloatArray:
        """Weights from summed losses ``(B, K, n)`` before each of n rounds; note the posteriors there."""
        is_posterior = self.rate == 1.0 and type(self)._weigh is Bayes._weigh
        if is_posterior:
            weights = super()._weigh_along(totals)
            posterior = weights
        else:
            # First the posterior: the weights overwrite the totals.
            posterior = self._posterior(totals, axis=-2)
            weights = super()._weigh_along(totals)
        smallest_here = posterior.min(axis=-1)
        self._smallest_posterior = np.minimum(self._smallest_posterior, smallest_here)
        return weights

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Negative log-likelihoods ``(..., K)`` of the messages under the hypotheses, at most 1e6 each.

        Hypothesis k gives message z the likelihood ``sum_y f_k[y] q(z | y)``, where ``q(z | y)`` is the
        channel's probability of z for label y.
        """
        return -finite(self.log_likelihoods(messages, candidates))


def starting_losses(prior: FloatArray, rate: float) -> FloatArray:
    """Summed losses ``(K,)`` for which exponential weights at this rate are the prior.

    >>> starting_losses(np.array([1.0, 0.0]), rate=0.5).tolist()
    [0.0, inf]
    """
    with np.errstate(divide="ignore"):  # a weight of 0 has an infinite loss
        log_prior = np.log(prior)
    return np.maximum(-log_prior, 0.0) / rate  # rounding may leave a weight above 1


class MLE(SmoothedLearner, Bayes):
    """Maximum likelihood: predicts the likeliest hypothesis, or the mean of those that tie.

    It trusts its leader from the first message on, and pays for it: the smoothing keeps the KL
    finite, not small.
    """

    def _weigh(self, totals: FloatArray, axis: int) -> FloatArray:
        """Equal weights of the hypotheses with the smallest summed loss, along their axis."""
        smallest = totals.min(axis=axis, keepdims=True)
        leads = (totals <= smallest + _TIE).astype(np.float64)
        return leads / leads.sum(axis=axis, keepdims=True)


class Thompson(SmoothedLearner, Bayes):
    """Thompson sampling: predicts a new draw from Bayes' posterior in every round, smoothed by 1/T.

    Here an action does not decide what is seen next, and the KL is convex in the prediction: on
    average it loses at least as much as the posterior mean, smoothed alike. It is an example of a
    randomized learner.

    References:
        Thompson, W. R. (1933). On the likelihood that one unknown probability exceeds another in
        view of the evidence of two samples. Biometrika 25.
    """

    randomized: ClassVar[bool] = True

    def reset(
        self,
        batch_shape: tuple[int, ...] = (),
        generators: Sequence[np.random.Generator] | None = None,
    ) -> None:
        """Begin an episode, with a random generator for each game; new ones when not given."""
        super().reset(batch_shape)
        if not generators:
            generators = np.random.default_rng().spawn(math.prod(batch_shape))
        self._generators = generators
        self._uniforms = self._draw_uniforms(batch_shape)

    def predict(self, candidates: FloatArray) -> FloatArray:
        """Predict the hypothesis drawn for this round; repeated calls return the same."""
        chosen = categorical(self.weights, self._uniforms)
        one_hot_weights = np.eye(self.game.num_hypotheses)[chosen]
        return self._predict(one_hot_weights, self._check(candidates))

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Apply Bayes' rule, and draw anew for the next round."""
        super().update(candidates, message)
        self._uniforms = self._draw_uniforms(self._uniforms.shape)

    def _draw_uniforms(self, batch_shape: tuple[int, ...]) -> FloatArray:
        """One uniform number for each game, from the game's own generator."""
        return open_uniforms(self._generators, (1,)).reshape(batch_shape)
