"""Amortized inference: what a message's relation to a label weighs, learned by the gradient of the KL itself.

The loss is differentiable and the messages do not depend on the learner, so no reinforcement learning is
needed: tapes are simulated, and the network descends the KL that it would have been charged on them. The
gradient goes through whole episodes: log-weights are running sums of the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ldp_agents.rl import network
from ldp_agents.rl.descent import descend
from ldp_agents.rl.games import CLASSES, RANGES, describe_ranges, describe_split, draw_from_split, draw_rules
from ldp_agents.rl.model import Model, smoothing_of
from ldp_agents.rl.run import Run
from ldp_agents.rl.torch_network import TorchNetwork
from ldp_gym.bench.splits import SPLITS
from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra
from ldp_gym.engine.scenario import Scenario, first_generator
from ldp_gym.engine.tape import Episodes
from ldp_gym.wrappers.features.evidence import nodes
from ldp_gym.wrappers.features.relations import relation_of

with extra("rl", "training"):
    import torch


STEPS = 30_000_000
"""How many rounds are enough."""


@dataclass(frozen=True)
class Settings:
    """The settings of amortized inference.

    Attributes:
        split: the split of ``ldp_gym.bench.splits`` whose games alone it trains on, such as ``train``; if
            empty, games are drawn from all class families and the ranges of ``ldp_agents.rl.games``.
        channels: those of the games that are drawn.
        hidden: the widths of the hidden layers.
        cells: how many numbers a batch has at most, over its episodes, rounds, labels and hypotheses: a game
            that would have more in two episodes is not drawn.
        episodes: how many a batch has at most.
        learning_rate: at the start; it falls linearly to zero.
    """

    split: str = ""
    channels: tuple[str, ...] = (
        "laplace-single",
        "gaussian-vector",
        "split",
        "one-bit",
        "hybrid",
    )
    hidden: tuple[int, ...] = (64, 64)
    cells: int = 1_000_000
    episodes: int = 32
    learning_rate: float = 4e-3

    def __post_init__(self) -> None:
        """See whether there is such a split."""
        if self.split and self.split not in SPLITS:
            raise ValueError(f"unknown split {self.split!r}; known: {', '.join(SPLITS)}")


class Weighing(NamedTuple):
    """Where relations ``(B, n, M)`` lie among the nodes: the node below, and the share of the one above."""

    below: torch.Tensor
    share: torch.Tensor


class Batch(NamedTuple):
    """Whole episodes to learn from.

    Attributes:
        channel: of their messages.
        relations: what a message says, one thing after another.
        laws: of the label that a message is about, ``(B or 1, n or 1, K, M)``.
        smooth: the smooth candidates that a prediction mixes, alike.
        truth: the truth's distributions, ``(B, n or 1, M)``.
    """

    channel: Channel
    relations: list[Weighing]
    laws: torch.Tensor
    smooth: torch.Tensor
    truth: torch.Tensor

    @property
    def num_rounds(self) -> int:
        """Of all episodes together."""
        return self.relations[0].below.shape[:2].numel()


def simulate(rules: dict[str, Any], episodes: int, rng: np.random.Generator) -> Batch:
    """Episodes of a game."""
    scenario = Scenario(**rules)
    seeds = rng.integers(2**62, size=episodes).tolist()
    starts = [scenario.start_episode(first_generator(seed)) for seed in seeds]
    tape = Episodes(scenario, starts, show_contexts=False).play(scenario.horizon)
    relation = relation_of(scenario.channel)
    points = nodes(relation)
    width = points[1] - points[0]
    relations = []
    for values in relation.read(tape.messages, tape.candidates):
        place = (values - points[0]) / width
        below = np.clip(place.astype(np.int64), 0, len(points) - 2)
        relations.append(Weighing(torch.from_numpy(below), _tensor(place - below)))
    candidates = tape.candidates.reshape((1,) * (4 - tape.candidates.ndim) + tape.candidates.shape)
    return Batch(
        scenario.channel,
        relations,
        _tensor(relation.laws(candidates)),
        _tensor(smoothing_of(scenario.game).smooth_candidates(candidates)),
        _tensor(tape.distributions),
    )


def _tensor(array: FloatArray) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.float32))


def label_evidence(net: TorchNetwork, batch: Batch) -> torch.Tensor:
    """``log sum_y f_k[y] exp(q_y)``, ``(B, n, K)``, up to a constant of each round."""
    outputs = net(_tensor(network.describe_nodes(batch.channel)))[:, 0]
    table = network.weights_of(outputs, batch.channel, torch.logaddexp)
    step = torch.diff(table)
    weights = sum((table[below] + share * step[below] for below, share in batch.relations), torch.zeros(()))
    likelihood = torch.exp(weights - weights.detach().amax(dim=-1, keepdim=True))
    return torch.log(torch.einsum("bnm,bnkm->bnk", likelihood, batch.laws))


def total_kl(evidence: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The KL of all rounds, per episode, of the smooth mixture by the running sums of the evidence."""
    before = torch.cumsum(evidence, dim=1) - evidence
    return mixture_kl(torch.softmax(before, dim=-1), batch)


def mixture_kl(weights: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The KL of all rounds, per episode, of the smooth mixture by weights ``(B, n, K)``."""
    prediction = torch.einsum("bnk,bnkm->bnm", weights, batch.smooth)
    truth = batch.truth
    # A label that the truth never draws costs nothing, even if the prediction gives it nothing.
    cost = torch.xlogy(truth, truth) - truth * torch.log(prediction.clamp_min(torch.finfo().tiny))
    return cost.sum() / len(weights)


def draw_batch(settings: Settings, rng: np.random.Generator) -> Batch:
    """Episodes of a random game."""
    while True:
        split = settings.split
        rules = draw_from_split(rng, split) if split else draw_rules(rng, settings.channels)
        labels = rules.get("num_labels", 2 * rules["num_hypotheses"])
        vary = rules["hypotheses"] == "softmax-linear" or rules["channel"].endswith("-vector")
        cells = rules["horizon"] * labels * (rules["num_hypotheses"] if vary else 8)
        episodes = min(settings.episodes, settings.cells // cells)
        if episodes >= 2:
            return simulate(rules, episodes, rng)


def fit(run: Run[Settings]) -> Model:
    """Train, or go on from a checkpoint; returns the model."""
    net = TorchNetwork(
        network.make(network.NODE_INPUTS, run.settings.hidden, 1, np.random.default_rng(run.config.seed))
    )
    split = run.settings.split
    trained_on = describe_split(split) if split else describe_ranges(CLASSES, RANGES)

    def make_model() -> Model:
        return Model(net.numpy(), "weights", trained_on, run.card)

    def draw_kl(rng: np.random.Generator) -> tuple[torch.Tensor, int]:
        batch = draw_batch(run.settings, rng)
        return total_kl(label_evidence(net, batch), batch), batch.num_rounds

    return descend(run, net, draw_kl, make_model)
