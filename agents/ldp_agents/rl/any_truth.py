"""A learned update for truths that are no members: experts that a network has tuned, and trust in each.

An expert keeps weights of the hypotheses. It goes a *step* towards Bayes' rule at some *rate*, and then
shares a little of its weight among all: with a full step it finds a member, with small ones a mixture, and
what is shared lets it follow a truth that moves. How large these dials are, from round to round, a network
says of eps, K and T. One more expert, which has no dials, is Bayes' rule over mixtures of two. The rule is
written once for PyTorch, which trains it, and for NumPy, which plays it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ldp_agents.pairs import MOST_BESIDE_OTHERS, mixtures_of_two
from ldp_agents.rl import network
from ldp_gym import Game
from ldp_gym.core.arrays import FloatArray

EXPERTS: tuple[tuple[float, ...], ...] = (
    (0.0, 0.0, -9.0, 0.0, 5.0, 0.0),  # Bayes' rule
    (0.0, 0.0, -5.0, 0.0, 5.0, 0.0),  # the same, with a share
    (0.0, 0.0, -9.0, 0.0, -2.0, 0.0),  # a small step
    (0.0, 0.0, -9.0, 0.0, 1.0, -5.0),  # a step that falls as 1/t
    (-1.0, 0.0, -7.0, 0.0, 0.0, 0.0),  # something between them
)
"""Where experts begin: rate, share and step, each as a logit and how it changes with log(t) / 5."""

NUM_INPUTS = 4
NUM_EXPERTS = len(EXPERTS) + 1
"""With the one that expects a mixture of two."""

NUM_OUTPUTS = len(EXPERTS) * len(EXPERTS[0]) + NUM_EXPERTS

PREFIX = "dials_"
"""What the names of the dials' arrays begin with in a model that holds both networks."""

_LEAST = 1e-30
"""What a hypothesis or an expert keeps, so that a later message can bring it back."""

Numbers = Any
"""An array or a tensor."""


class Dials(NamedTuple):
    """What the experts that have dials do in a round, ``(E, 1)`` each.

    Attributes:
        rate: the exponent of the likelihoods.
        share: what is spread evenly over all hypotheses.
        step: how far they go towards Bayes' rule.
    """

    rate: Numbers
    share: Numbers
    step: Numbers


class State(NamedTuple):
    """What is kept of the messages.

    Attributes:
        weights: of the hypotheses, by expert with dials, ``(..., E, K)``.
        trust: in these experts, ``(..., E)``.
        pairs: of the mixtures of two, ``(..., N)``.
        trust_in_pairs: in the expert that expects them, ``(..., 1)``; all trust sums to one.
    """

    weights: Numbers
    trust: Numbers
    pairs: Numbers
    trust_in_pairs: Numbers

    def mix(self, mixtures: Numbers) -> Numbers:
        """The weights ``(..., K)`` of the hypotheses; ``mixtures`` as :func:`mixtures_of` has them."""
        return (self.trust[..., None] * self.weights).sum(-2) + self.trust_in_pairs * (self.pairs @ mixtures)


def mixtures_of(num_hypotheses: int) -> FloatArray:
    """What the last expert chooses from: weights ``(N, K)``, of mixtures of two; members alone if many."""
    few = num_hypotheses <= MOST_BESIDE_OTHERS
    return mixtures_of_two(num_hypotheses) if few else np.eye(num_hypotheses)


def describe(game: Game) -> FloatArray:
    """What the network reads of a game, ``(4,)``: eps, and logarithms of eps, K and T."""
    of_eps = network.describe(game.channel)[-2:]
    return np.append(of_eps, [math.log(game.num_hypotheses) / 3.0, math.log(game.horizon) / 7.0])


def read_outputs(outputs: Numbers) -> tuple[Numbers, Numbers]:
    """The logits of all dials ``(E, 6)``, and the trust ``(E + 1,)`` at first, of the network's outputs."""
    logits, trust = outputs[:-NUM_EXPERTS].reshape(len(EXPERTS), -1), math.e ** outputs[-NUM_EXPERTS:]
    return logits, trust / trust.sum()


def dials_at(logits: Numbers, t: int) -> Dials:
    """The dials before message t, from 0."""
    now = logits[:, 0::2] + logits[:, 1::2] * (math.log(t + 1.0) / 5.0)
    share = 1.0 / (1.0 + math.e ** (-now))
    return Dials(2.0 * share[:, 0:1], share[:, 1:2], share[:, 2:3])


def advance(state: State, likelihoods: Numbers, dials: Dials, mixtures: Numbers) -> State:
    """The state after messages of these likelihoods ``(..., K)``, the largest of them 1."""
    weights, trust, pairs, trust_in_pairs = state
    trust = trust * (weights * likelihoods[..., None, :]).sum(-1) + _LEAST
    posterior = weights * likelihoods[..., None, :] ** dials.rate + _LEAST
    posterior = posterior / posterior.sum(-1)[..., None]
    weights = (1.0 - dials.step) * weights + dials.step * posterior
    weights = (1.0 - dials.share) * weights + dials.share / weights.shape[-1]
    pairs = pairs * (likelihoods @ mixtures.T) + _LEAST  # a mixture has the mixture of the likelihoods
    predicted = pairs.sum(-1)[..., None]
    trust_in_pairs = trust_in_pairs * predicted + _LEAST
    all_trust = trust.sum(-1)[..., None] + trust_in_pairs
    return State(weights, trust / all_trust, pairs / predicted, trust_in_pairs / all_trust)


def start(trust: FloatArray, num_hypotheses: int, batch_shape: tuple[int, ...]) -> State:
    """Equal weights, and the trust ``(E + 1,)`` at first, as arrays."""
    num_mixtures = len(mixtures_of(num_hypotheses))
    weights = np.full((*batch_shape, len(EXPERTS), num_hypotheses), 1.0 / num_hypotheses)
    pairs = np.full((*batch_shape, num_mixtures), 1.0 / num_mixtures)
    trust = np.broadcast_to(trust, (*batch_shape, NUM_EXPERTS)).copy()
    return State(weights, trust[..., :-1], pairs, trust[..., -1:])


def make(hidden: tuple[int, ...], rng: np.random.Generator) -> dict[str, FloatArray]:
    """New parameters of the dials' network: it begins at :data:`EXPERTS`, and trusts all of them alike."""
    parameters = network.make(NUM_INPUTS, hidden, NUM_OUTPUTS, rng)
    parameters["b"] = np.append(np.array(EXPERTS).reshape(-1), np.zeros(NUM_EXPERTS))
    return parameters
