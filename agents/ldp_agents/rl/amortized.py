"""Training of ``amortized``: descend the KL of simulated games.

This is supervised learning through the simulator, not reinforcement learning. The loss is
differentiable and messages do not depend on the learner, so episodes are simulated, and the
gradient of the KL goes through whole episodes: log-weights are running sums of learned
log-likelihoods. Every batch is another random game.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_agents.rl import network
from ldp_agents.rl.learner import Model, smoothing_of
from ldp_agents.rl.settings import NUM_ROUNDS
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

_VECTOR_DELTA = 1e-5
"""Delta of the channels that send a vector with noise."""

_FIXED_TABLE_COPIES = 8
"""Numbers per label and round that a game with one fixed table is taken to need."""


@dataclass(frozen=True)
class AmortizedSettings:
    """Settings of the training of ``amortized``; ``settings.yaml`` has their values.

    Attributes:
        channels: names of the channels to draw games from.
        hidden: widths of the hidden layers.
        cells: largest size of a batch, over its episodes, rounds, labels and hypotheses, at least
            10^5; a game with more in two episodes is not drawn.
        episodes: largest number of episodes of a batch, at least 2.
        learning_rate: learning rate at the start; it falls linearly to zero.
    """

    channels: tuple[str, ...]
    hidden: tuple[int, ...]
    cells: int
    episodes: int
    learning_rate: float

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

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> AmortizedSettings:
        """Convert a mapping as in ``settings.yaml``; the number of rounds is not among them."""
        arguments = dict(settings)
        arguments.pop(NUM_ROUNDS, None)
        arguments["channels"] = tuple(arguments["channels"])
        arguments["hidden"] = tuple(arguments["hidden"])
        return cls(**arguments)


def fit_amortized(config: Config, progress: ProgressCallback) -> Model:
    """Train a network on random games by gradient descent on the log of the mean total KL.

    Args:
        config: the configuration of the run.
        progress: called after each batch with the rounds played and a function that returns the
            current model.
    """
    torch.set_num_threads(1)
    settings = AmortizedSettings.of(config.settings)
    initial = network.make_parameters(settings.hidden, np.random.default_rng(config.seed))
    net = TorchNetwork(initial)
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.learning_rate)
    steps = 0

    def make_model() -> Model:
        """Return the network as it is now, as a model."""
        config_so_far = replace(config, steps=steps)
        return Model(net.numpy(), DRAWN_GAMES, config_so_far.card)

    while steps < config.steps:
        # The learning rate falls linearly to zero.
        remaining_share = 1.0 - steps / config.steps
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * remaining_share

        batch = draw_batch(settings, np.random.default_rng([config.seed, steps]))
        log_likelihoods = learned_log_likelihoods(net, batch)
        loss = torch.log(total_kl(log_likelihoods, batch))

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
        arrays = {}
        for name, tensor in self.arrays.items():
            arrays[name] = tensor.detach().numpy().astype(np.float64)
        return arrays


class RelationValues(NamedTuple):
    """Relations of messages to labels, each between two nodes where the weight is known."""

    below: torch.Tensor  # index of the node below, (B, n, M)
    share: torch.Tensor  # weight of the node above, (B, n, M)


class Batch(NamedTuple):
    """Whole episodes of one game."""

    channel: Channel
    relations: list[RelationValues]  # one for each number that a message reveals
    laws: torch.Tensor  # of the label that a message is about, (B or 1, n or 1, K, M)
    smooth: torch.Tensor  # the smooth candidates that a prediction mixes, in the same shape
    truth: torch.Tensor  # the truth's distributions, (B, n or 1, M)

    @property
    def num_rounds(self) -> int:
        """Number of rounds of all episodes."""
        num_episodes, rounds, _ = self.relations[0].below.shape
        return num_episodes * rounds


def make_rules(
    family: str, channel: str, epsilon: float, num_hypotheses: int, num_labels: int, horizon: int
) -> dict[str, Any]:
    """Return the rules of a game, with M as close to ``num_labels`` as the family allows."""
    rules = {
        **CLASSES[family],
        "num_hypotheses": num_hypotheses,
        "channel": channel,
        "epsilon": epsilon,
        "delta": 0.0,
        "horizon": horizon,
    }
    if channel.endswith("-vector"):
        rules["delta"] = _VECTOR_DELTA
    if rules["hypotheses"] in _REDRAWN:
        rules |= {
            "num_labels": num_labels,
            "redraw_hypotheses": True,
            "observe_candidates": True,
        }
    elif family == "disjoint":
        rules["num_labels"] = max(num_hypotheses, num_labels)
    else:
        # Hadamard classes come in pairs, which determine M.
        rules["num_hypotheses"] = num_hypotheses + num_hypotheses % 2
    return rules


def draw_rules(rng: np.random.Generator, channels: Sequence[str]) -> dict[str, Any]:
    """Draw a game: family and channel uniform, numbers log-uniform in :data:`RANGES`."""
    numbers = {}
    for name, ends in RANGES.items():
        log_smallest, log_largest = np.log(ends)
        numbers[name] = float(np.exp(rng.uniform(log_smallest, log_largest)))
    family = str(rng.choice(list(CLASSES)))
    channel = str(rng.choice(list(channels)))
    return make_rules(
        family,
        channel,
        epsilon=numbers["epsilon"],
        num_hypotheses=round(numbers["K"]),
        num_labels=round(numbers["M"]),
        horizon=round(numbers["T"]),
    )


def draw_batch(settings: AmortizedSettings, rng: np.random.Generator) -> Batch:
    """Draw a random game of which two episodes fit into a batch, and simulate episodes of it."""
    while True:
        rules = draw_rules(rng, settings.channels)
        most_episodes = settings.cells // _size_of_episode(rules)
        episodes = min(settings.episodes, most_episodes)
        if episodes >= 2:
            return simulate(rules, episodes, rng)


def _size_of_episode(rules: Mapping[str, Any]) -> int:
    """Estimate how many numbers an episode holds: rounds x labels x numbers per label."""
    num_hypotheses: int = rules["num_hypotheses"]
    # A Hadamard class, whose rules do not give M, is counted with two labels per hypothesis.
    num_labels: int = rules.get("num_labels", 2 * num_hypotheses)
    has_contexts = rules["hypotheses"] == "softmax-linear"
    reveals_vectors = rules["channel"].endswith("-vector")
    numbers_per_label = _FIXED_TABLE_COPIES
    if has_contexts or reveals_vectors:
        numbers_per_label = num_hypotheses
    return rules["horizon"] * num_labels * numbers_per_label


def simulate(rules: dict[str, Any], episodes: int, rng: np.random.Generator) -> Batch:
    """Simulate episodes of a game with seeds for training, and collect what the loss needs."""
    scenario = Rules.of(rules).scenario()
    seeds = rng.integers(TRAINING.start, TRAINING.stop, size=episodes).tolist()
    starts = scenario.start_episodes([first_generator(seed) for seed in seeds])
    tape = Episodes(scenario, starts, show_contexts=False).play(scenario.horizon)

    relation = network.Relation(scenario.channel)
    relations = []
    for values in relation.read(tape.messages, tape.candidates):
        relations.append(_between_nodes(values, relation.nodes))

    # A constant class has one table: give it axes for episodes and rounds.
    missing_axes = (1,) * (4 - tape.candidates.ndim)
    candidates = tape.candidates.reshape(missing_axes + tape.candidates.shape)
    smoothing = smoothing_of(scenario.game)
    return Batch(
        channel=scenario.channel,
        relations=relations,
        laws=_tensor(relation.laws(candidates)),
        smooth=_tensor(smoothing.smooth_candidates(candidates)),
        truth=_tensor(tape.distributions),
    )


def _between_nodes(values: FloatArray, nodes: FloatArray) -> RelationValues:
    """Locate relations ``(B, n, M)`` between nodes at equal distances."""
    distance = nodes[1] - nodes[0]
    position = (values - nodes[0]) / distance  # 0 at the first node, 1 at the second
    # The last node has none above it: it is the upper end of the last interval.
    last_interval = len(nodes) - 2
    below = np.clip(position.astype(np.int64), 0, last_interval)
    return RelationValues(torch.from_numpy(below), _tensor(position - below))


def _tensor(array: FloatArray) -> torch.Tensor:
    """The array in single precision."""
    return torch.from_numpy(array.astype(np.float32))


def learned_log_likelihoods(net: TorchNetwork, batch: Batch) -> torch.Tensor:
    """Return ``log sum_y f_k[y] exp(q_y)`` up to a constant per round, ``(B, n, K)``.

    Here f_k is the law, under hypothesis k, of the label that a message is about, and q_y the sum
    of the learned weights of the message's relations to label y.
    """
    outputs = net(_tensor(network.describe_nodes(batch.channel)))[:, 0]
    weights_at_nodes = network.node_weights(outputs, batch.channel, torch.logaddexp)
    steps = torch.diff(weights_at_nodes)

    weights = torch.zeros(())
    for values in batch.relations:
        from_this_number = weights_at_nodes[values.below] + values.share * steps[values.below]
        weights = weights + from_this_number

    largest = weights.detach().amax(dim=-1, keepdim=True)
    likelihoods = torch.exp(weights - largest)
    return torch.log(torch.einsum("bnm,bnkm->bnk", likelihoods, batch.laws))


def total_kl(log_likelihoods: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the mean over episodes of the total KL of a learner, as a differentiable scalar.

    The learner predicts mixtures of the smooth candidates. Their weights are the softmax of the sum
    of the log-likelihoods ``(B, n, K)`` of the rounds before.
    """
    before_each_round = torch.cumsum(log_likelihoods, dim=1) - log_likelihoods
    weights = torch.softmax(before_each_round, dim=-1)
    predictions = torch.einsum("bnk,bnkm->bnm", weights, batch.smooth)

    # A label that the truth never draws costs nothing, even if the prediction gives it nothing.
    log_predictions = torch.log(predictions.clamp_min(torch.finfo().tiny))
    kl_terms = torch.xlogy(batch.truth, batch.truth) - batch.truth * log_predictions
    num_episodes = len(weights)
    return kl_terms.sum() / num_episodes
