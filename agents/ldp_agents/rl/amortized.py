"""Amortized inference: a network trained by the gradient of the KL itself.

The loss is differentiable and the messages do not depend on the learner, so no reinforcement learning is
needed: tapes are simulated, and the network descends the KL that it would have been charged on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ldp_agents.rl import network
from ldp_agents.rl.config import Config, ProgressCallback
from ldp_agents.rl.model import Model, facts, features_of
from ldp_agents.rl.torch_network import TorchNetwork
from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.seeding import first_generator
from ldp_gym.engine.tape import Episodes
from ldp_gym.features.sums import FEATURES, Features

_BLOCK = 100
"""How many rounds are simulated at a time."""

STEPS = 3_200_000
"""How many rounds are enough for the default game."""


@dataclass(frozen=True)
class Settings:
    """The settings of amortized inference.

    Attributes:
        network: ``"equivariant"``, which plays any class and any K, or ``"flat"``, for one class.
        hidden: the widths of the hidden layers.
        episodes: how many are simulated at a time.
        kept: how many of a hundred rounds, picked at random, are learned from.
        passes: how often each is.
        batch_size: of a gradient step.
        learning_rate: at the beginning; it falls linearly to zero.
    """

    network: str = "equivariant"
    hidden: tuple[int, ...] = (32, 32)
    episodes: int = 64
    kept: int = 10
    passes: int = 2
    batch_size: int = 1600
    learning_rate: float = 3e-3

    def __post_init__(self) -> None:
        """A network that there is."""
        features_of(self.network)


class Rounds(NamedTuple):
    """Rounds to learn from: features, candidates ``f_j(x_t)``, and the truth's distribution."""

    features: torch.Tensor
    candidates: torch.Tensor
    truth: torch.Tensor


def simulate(
    scenario: Scenario, features: Features, seeds: Sequence[int], kept: int, rng: np.random.Generator
) -> Rounds:
    """Some rounds of one episode a seed."""
    batch, parts = len(seeds), []
    episodes = Episodes(
        scenario, [scenario.start_episode(first_generator(seed)) for seed in seeds], show_contexts=False
    )
    features.reset((batch,))
    for start in range(0, scenario.horizon, _BLOCK):
        rounds = min(_BLOCK, scenario.horizon - start)
        tape = episodes.play(rounds)
        seen = features.along(tape.candidates, tape.messages)
        pick = np.arange(batch)[:, None], rng.integers(rounds, size=(batch, max(1, kept * rounds // _BLOCK)))
        table = tape.candidates.shape[-2:]
        parts.append(
            (
                seen[pick],
                np.broadcast_to(tape.candidates, (batch, rounds, *table))[pick],
                np.broadcast_to(tape.distributions, (batch, rounds, table[-1]))[pick],
            )
        )
    return Rounds(*(_tensor(np.concatenate(part, axis=1)) for part in zip(*parts, strict=True)))


def _tensor(array: np.ndarray) -> torch.Tensor:
    """``(B, n, ...)`` as ``(B n, ...)`` in single precision."""
    return torch.from_numpy(array.reshape(-1, *array.shape[2:]).astype(np.float32))


def charged(logits: torch.Tensor, rounds: Rounds, horizon: int) -> torch.Tensor:
    """``KL(f(x_t), p_hat_t)`` of the smoothed mixture by these logits, which ``MixtureAction`` plays."""
    weights = torch.softmax(logits, dim=-1)
    lengths = rounds.candidates.amax(dim=-2)
    shares = lengths / lengths.sum(dim=-1, keepdim=True)
    mixed = torch.einsum("bk,bkm->bm", weights, rounds.candidates)
    prediction = (1.0 - 1.0 / horizon) * mixed + shares / horizon
    truth = rounds.truth
    # A label that the truth never draws costs nothing, even if the prediction gives it nothing.
    cost = torch.xlogy(truth, truth) - truth * torch.log(prediction.clamp_min(torch.finfo().tiny))
    return cost.sum(dim=-1)


def fit(
    config: Config, watch: ProgressCallback, checkpoint: Path | None = None, logs: Path | None = None
) -> Model:
    """Train, or go on from a checkpoint; returns the model."""
    settings, scenario = config.read(Settings), config.scenario
    torch.set_num_threads(1)
    name = features_of(settings.network)
    features = FEATURES[name](scenario.game)
    size = scenario.game.num_hypotheses
    outputs = 1 if settings.network == "equivariant" else size
    net = TorchNetwork(settings.network, features.shape, outputs, settings.hidden, config.seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.learning_rate)
    steps = 0
    if checkpoint is not None:
        state = torch.load(checkpoint, weights_only=True)
        net.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        steps = state["steps"]
    writer = _writer(logs)
    trained_on = facts(scenario.game)

    def player() -> Model:
        return Model(net.numpy(), name, trained_on, config.card(settings))

    def save(path: Path) -> None:
        torch.save({"network": net.state_dict(), "optimizer": optimizer.state_dict(), "steps": steps}, path)

    while steps < config.steps:
        rng = np.random.default_rng([config.seed, steps])
        seeds = rng.integers(2**62, size=settings.episodes).tolist()
        rounds = simulate(scenario, features, seeds, settings.kept, rng)
        rate = settings.learning_rate * (1.0 - steps / config.steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        for _ in range(settings.passes):
            order = torch.from_numpy(rng.permutation(len(rounds.truth)))
            for part in order.split(settings.batch_size):
                batch = Rounds(*(tensor[part] for tensor in rounds))
                logits = network.logits(net.arrays, batch.features)
                loss = charged(logits, batch, scenario.horizon).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        steps += settings.episodes * scenario.horizon
        if writer is not None:
            writer.add_scalar("train/kl_per_round", loss.item(), steps)
        watch(steps, player, save)
    return player()


def _writer(logs: Path | None) -> Any:
    if logs is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(logs))
