"""Training of ``amortized``: descend the KL of simulated games.

This is supervised learning through the simulator, not reinforcement learning. The loss is differentiable and
messages do not depend on the learner, so episodes are simulated, and the gradient of the KL goes through
whole episodes: log-weights are running sums of learned log-likelihoods. Every batch is another random game.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_agents.rl import network
from ldp_agents.rl.learner import Model, smoothing_of
from ldp_gym.channels import CHANNELS
from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra
from ldp_gym.core.seed_ranges import TRAINING
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import first_generator
from ldp_gym.engine.tape import Episodes

if TYPE_CHECKING:
    from ldp_agents.rl.training import Config, ProgressCallback

with extra("rl", "training"):
    import torch


CLASSES: dict[str, dict[str, Any]] = {
    "dirichlet(0.05)": {"hypotheses": "dirichlet", "hypotheses_kwargs": {"concentration": 0.05}},
    "dirichlet(0.3)": {"hypotheses": "dirichlet", "hypotheses_kwargs": {"concentration": 0.3}},
    "dirichlet(1)": {"hypotheses": "dirichlet", "hypotheses_kwargs": {"concentration": 1.0}},
    "softmax-linear": {"hypotheses": "softmax-linear"},
    "disjoint": {"hypotheses": "disjoint"},
    "hadamard": {"hypotheses": "hadamard"},
}
"""Class families by name, as keyword arguments of ``gym.make``."""

RANGES = {"epsilon": (0.25, 8.0), "K": (2, 64), "M": (2, 128), "T": (100, 3000)}
"""Smallest and largest numbers of the simulated games."""

DRAWN_GAMES = {
    "classes": sorted({str(rules["hypotheses"]) for rules in CLASSES.values()}),
    **{key: list(ends) for key, ends in RANGES.items()},
}
"""Description of the games of :func:`draw_rules`, for a model's ``trained_on``."""

_REDRAWN = ("dirichlet", "softmax-linear")
"""Families from which every episode draws a new class."""


@dataclass(frozen=True)
class AmortizedSettings:
    """Settings of the training of ``amortized``.

    Attributes:
        channels: names of the channels to draw games from.
        hidden: widths of the hidden layers.
        cells: largest size of a batch, over its episodes, rounds, labels and hypotheses, at least 10^5; a
            game with more in two episodes is not drawn.
        episodes: largest number of episodes of a batch, at least 2.
        learning_rate: learning rate at the start; it falls linearly to zero.
    """

    channels: tuple[str, ...] = ("laplace-single", "gaussian-vector", "split", "one-bit", "hybrid")
    hidden: tuple[int, ...] = (64, 64)
    cells: int = 1_000_000
    episodes: int = 32
    learning_rate: float = 4e-3

    def __post_init__(self) -> None:
        """Check the settings; with one episode or few cells, hardly any game could be drawn."""
        validation.whole("cells", self.cells, least=10**5)
        validation.whole("episodes", self.episodes, least=2)
        validation.positive("learning_rate", self.learning_rate)
        validation.whole("the least width in hidden", min(self.hidden, default=1), least=1)
        if not self.channels:
            raise ValueError("channels must name at least one channel, got none")
        for name in self.channels:
            CHANNELS[name]  # an unknown one is an error that names the nearest


def fit_amortized(config: Config, settings: AmortizedSettings, progress: ProgressCallback) -> Model:
    """Train an agent on random games."""
    torch.set_num_threads(1)
    net = TorchNetwork(network.make_parameters(settings.hidden, np.random.default_rng(config.seed)))
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.learning_rate)
    steps = 0

    def make_model() -> Model:
        return Model(net.numpy(), DRAWN_GAMES, replace(config, steps=steps).card(settings))

    while steps < config.steps:
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1.0 - steps / config.steps)
        batch = draw_batch(settings, np.random.default_rng([config.seed, steps]))
        loss = torch.log(total_kl(learned_log_likelihoods(net, batch), batch))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
        optimizer.step()
        steps += batch.num_rounds
        progress(steps, make_model)
    return make_model()


class TorchNetwork(torch.nn.Module):
    """Parameters of :func:`ldp_agents.rl.network.make_parameters` as a PyTorch module."""

    def __init__(self, arrays: Mapping[str, FloatArray]) -> None:
        super().__init__()
        self.arrays = torch.nn.ParameterDict(
            {name: _tensor(array) for name, array in arrays.items()}
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return network.apply_network(self.arrays, rows)

    def numpy(self) -> dict[str, FloatArray]:
        """Parameters as NumPy arrays, by name."""
        return {
            name: array.detach().numpy().astype(np.float64) for name, array in self.arrays.items()
        }


class Batch(NamedTuple):
    """Whole episodes of one game."""

    channel: Channel
    # One pair for each number that a message reveals. Relations (B, n, M) to labels lie between two nodes:
    relations: list[
        tuple[torch.Tensor, torch.Tensor]
    ]  # index of the node below, weight of the node above
    laws: torch.Tensor  # of the label that a message is about, (B or 1, n or 1, K, M)
    smooth: torch.Tensor  # the smooth candidates that a prediction mixes, in the same shape
    truth: torch.Tensor  # the truth's distributions, (B, n or 1, M)

    @property
    def num_rounds(self) -> int:
        return self.relations[0][0].shape[:2].numel()


def make_rules(
    family: str, channel: str, epsilon: float, num_hypotheses: int, num_labels: int, horizon: int
) -> dict[str, Any]:
    """The rules of a game, with M as close to ``num_labels`` as the family allows."""
    rules = {
        **CLASSES[family],
        "num_hypotheses": num_hypotheses,
        "channel": channel,
        "epsilon": epsilon,
        "delta": 1e-5 if channel.endswith("-vector") else 0.0,
        "horizon": horizon,
    }
    if rules["hypotheses"] in _REDRAWN:
        return {
            **rules,
            "num_labels": num_labels,
            "redraw_hypotheses": True,
            "observe_candidates": True,
        }
    if family == "disjoint":
        return {**rules, "num_labels": max(num_hypotheses, num_labels)}
    return {
        **rules,
        "num_hypotheses": num_hypotheses + num_hypotheses % 2,
    }  # pairs, which determine M


def draw_rules(rng: np.random.Generator, channels: Sequence[str]) -> dict[str, Any]:
    """The rules of a random game: family and channel uniform, numbers log-uniform in :data:`RANGES`."""
    epsilon, *sizes = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in RANGES.values())
    num_hypotheses, num_labels, horizon = map(round, sizes)
    family, channel = rng.choice(list(CLASSES)), rng.choice(list(channels))
    return make_rules(str(family), str(channel), epsilon, num_hypotheses, num_labels, horizon)


def draw_batch(settings: AmortizedSettings, rng: np.random.Generator) -> Batch:
    """Draw a random game and simulate episodes of it."""
    while True:
        rules = draw_rules(rng, settings.channels)
        labels = rules.get("num_labels", 2 * rules["num_hypotheses"])
        vary = rules["hypotheses"] == "softmax-linear" or rules["channel"].endswith("-vector")
        cells = rules["horizon"] * labels * (rules["num_hypotheses"] if vary else 8)
        episodes = min(settings.episodes, settings.cells // cells)
        if episodes >= 2:
            return simulate(rules, episodes, rng)


def simulate(rules: dict[str, Any], episodes: int, rng: np.random.Generator) -> Batch:
    """Simulate episodes of a game."""
    scenario = Rules.of(rules).scenario()
    seeds = rng.integers(TRAINING.start, TRAINING.stop, size=episodes).tolist()
    starts = scenario.start_episodes([first_generator(seed) for seed in seeds])
    tape = Episodes(scenario, starts, show_contexts=False).play(scenario.horizon)
    relation = network.Relation(scenario.channel)
    points = relation.nodes
    relations = []
    for values in relation.read(tape.messages, tape.candidates):
        place = (values - points[0]) / (points[1] - points[0])
        below = np.clip(place.astype(np.int64), 0, len(points) - 2)
        relations.append((torch.from_numpy(below), _tensor(place - below)))
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


def learned_log_likelihoods(net: TorchNetwork, batch: Batch) -> torch.Tensor:
    """Log-likelihoods ``log sum_y f_k[y] exp(q_y)``, ``(B, n, K)``, up to a constant of each round."""
    outputs = net(_tensor(network.describe_nodes(batch.channel)))[:, 0]
    table = network.node_weights(outputs, batch.channel, torch.logaddexp)
    step = torch.diff(table)
    weights = sum(
        (table[below] + share * step[below] for below, share in batch.relations), torch.zeros(())
    )
    likelihood = torch.exp(weights - weights.detach().amax(dim=-1, keepdim=True))
    return torch.log(torch.einsum("bnm,bnkm->bnk", likelihood, batch.laws))


def total_kl(log_likelihoods: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Mean total KL of smoothed mixtures, with weights from running sums of log-likelihoods."""
    weights = torch.softmax(torch.cumsum(log_likelihoods, dim=1) - log_likelihoods, dim=-1)
    prediction = torch.einsum("bnk,bnkm->bnm", weights, batch.smooth)
    truth = batch.truth
    # A label that the truth never draws costs nothing, even if the prediction gives it nothing.
    cost = torch.xlogy(truth, truth) - truth * torch.log(prediction.clamp_min(torch.finfo().tiny))
    return cost.sum() / len(weights)
