"""Randomized response on the labels, Section 3: good for a few labels, hopeless for many."""

from __future__ import annotations

import math
import warnings
from functools import cached_property

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.two_level import EvenChannel, LabelChannel
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, masses
from ldp_gym.core.errors import NoPrivacyWarning
from ldp_gym.core.sampling import integers


class RandomizedResponse(EvenChannel, LabelChannel):
    """The label itself with probability ``e^eps / (e^eps + M - 1)``, else another one (Section 3).

    The message is the reported label. Every other label is reported with probability
    ``1 / (e^eps + M - 1)``.

    Example:
        K = 3, M = 3, eps = 1: the label is kept with probability 0.576. The probability of hearing
        label 0:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> channel = RandomizedResponse(3, 3, 100)
        >>> np.exp(channel.log_likelihood(np.array(0), table)).round(3).tolist()
        [0.43, 0.321, 0.248]

    Privacy: a report is ``e^eps`` times likelier from its own label than from another, and never
        more.

    When to use it: two to five labels, or eps of 4 and more. When not: the chance to hear the label
    falls as ``e^eps / M``; at M = 16 and eps = 1 ``split`` pays two fifths of its risk.

    The base measure of :meth:`log_density` counts labels.
    """

    num_uniforms = 2  # whether to keep the label, and which other to report

    @cached_property
    def _log_fit(self) -> float:
        """Log probability of reporting the label itself."""
        # e^eps / (e^eps + M - 1), divided through by e^eps, which may overflow.
        return -math.log1p((self.num_labels - 1) * math.exp(-self.epsilon))

    @property
    def agreement_rates(self) -> tuple[float, float]:
        """Probabilities of reporting the user's label, and of reporting any one other label."""
        keep = math.exp(self._log_fit)
        return keep, (1.0 - keep) / (self.num_labels - 1)

    @property
    def message_space(self) -> gym.spaces.Discrete:
        """Space of messages: the reported label."""
        return gym.spaces.Discrete(self.num_labels)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw reported labels ``(...)``: the user's, or a uniformly random other one."""
        keeps = uniforms[..., 0] < math.exp(self._log_fit)
        steps_to_another = 1 + integers(self.num_labels - 1, uniforms[..., 1])
        others = (labels + steps_to_another) % self.num_labels
        return np.where(keeps, labels, others)

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return 1 for the label that is reported, 0 for others."""
        return (np.asarray(messages)[..., None] == np.arange(self.num_labels)).astype(np.float64)

    def _chances(self, messages: Messages, candidates: FloatArray, posterior: Public) -> FloatArray:
        """Return each hypothesis' probability of the reported label, ``(..., K)``."""
        return masses(candidates, np.asarray(messages))

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return the report of label 0; all reports attain the largest ratio."""
        return np.array([0])


class Identity(RandomizedResponse):
    """No privacy: the label itself, to measure what privacy costs.

    The message is the label; a NoPrivacyWarning says so when the channel is made. An ``epsilon``
    that is passed, as a sweep over all channels does, has no effect: eps is infinite.

    Example:
        K = 3: hearing label 0 has the likelihoods ``f_k[0]``. Bayes on it pays at most ``log K``
        whatever the class (Section 1): 1.1 nats for K = 3.

    Privacy: none. When to use it: as a reference in experiments. When not: with data about people.
    """

    def _valid_epsilon(self, epsilon: float) -> float:
        """Warn that there is no privacy, and return infinity."""
        if not validation.real("epsilon", epsilon) > 0.0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")
        warnings.warn(
            "the channel 'identity' reveals every label: it gives no privacy at all (epsilon = "
            "inf)",
            NoPrivacyWarning,
            stacklevel=2,
        )
        return math.inf
