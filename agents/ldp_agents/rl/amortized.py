"""Amortized inference: a network trained by the gradient of the KL itself.

The loss is differentiable and the messages do not depend on the learner, so no reinforcement learning is
needed: tapes are simulated, and the network descends the KL that it would have been charged on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.tensorboard import SummaryWriter

from ldp_agents.rl import network
from ldp_agents.rl.model import Model, game_parameters
from ldp_agents.rl.run import Run
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
        learning_rate: at the start; it falls linearly to zero.
    """

    network: str = "equivariant"
    hidden: tuple[int, ...] = (32, 32)
    episodes: int = 64
    kept: int = 10
    passes: int = 2
    batch_size: int = 1600
    learning_rate: float = 3e-3

    def __post_init__(self) -> None:
        """A network that exists."""
        network.features_of(self.network)


class Rounds(NamedTuple):
    """Rounds to learn from: features, the smooth candidates, and the truth's distribution."""

    features: torch.Tensor
    smooth: torch.Tensor
    truth: torch.Tensor


def simulate(
    scenario: Scenario, features: Features, seeds: Sequence[int], kept: int, rng: np.random.Generator
) -> Rounds:
    """Some rounds of one episode per seed."""
    batch, clipping, parts = len(seeds), scenario.game.clipping, []
    episodes = Episodes(
        scenario, [scenario.start_episode(first_generator(seed)) for seed in seeds], show_contexts=False
    )
    features.reset((batch,))
    for start in range(0, scenario.horizon, _BLOCK):
        rounds = min(_BLOCK, scenario.horizon - start)
        tape = episodes.play(rounds)
        pick = np.arange(batch)[:, None], rng.integers(rounds, size=(batch, max(1, kept * rounds // _BLOCK)))
        smooth = clipping.smooth_candidates(tape.candidates)
        parts.append(
            (
                features.along(tape.candidates, tape.messages)[pick],
                np.broadcast_to(smooth, (batch, rounds, *smooth.shape[-2:]))[pick],
                np.broadcast_to(tape.distributions, (batch, rounds, smooth.shape[-1]))[pick],
            )
        )
    return Rounds(*(_tensor(np.concatenate(part, axis=1)) for part in zip(*parts, strict=True)))


def _tensor(array: np.ndarray) -> torch.Tensor:
    """``(B, n, ...)`` as ``(B n, ...)`` in single precision."""
    return torch.from_numpy(array.reshape(-1, *array.shape[2:]).astype(np.float32))


def mixture_kl(logits: torch.Tensor, rounds: Rounds) -> torch.Tensor:
    """``KL(p*_t, p_hat_t)`` of the smooth mixture by these logits, which ``MixtureAction`` plays."""
    prediction = torch.einsum("bk,bkm->bm", torch.softmax(logits, dim=-1), rounds.smooth)
    truth = rounds.truth
    # A label that the truth never draws costs nothing, even if the prediction gives it nothing.
    cost = torch.xlogy(truth, truth) - truth * torch.log(prediction.clamp_min(torch.finfo().tiny))
    return cost.sum(dim=-1)


def fit(run: Run[Settings]) -> Model:
    """Train, or go on from a checkpoint; returns the model."""
    config, settings, scenario = run.config, run.settings, run.config.scenario
    torch.set_num_threads(1)
    name, trained_on = network.features_of(settings.network), game_parameters(scenario.game)
    features = FEATURES[name](scenario.game)
    outputs = network.num_outputs(settings.network, scenario.game.num_hypotheses)
    net = TorchNetwork(settings.network, features.shape, outputs, settings.hidden, config.seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.learning_rate)
    steps = 0
    if run.checkpoint is not None:
        state = torch.load(run.checkpoint, weights_only=True)
        net.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        steps = state["steps"]

    def make_model() -> Model:
        return Model(net.numpy(), name, trained_on, run.card)

    def save(path: Path) -> None:
        torch.save({"network": net.state_dict(), "optimizer": optimizer.state_dict(), "steps": steps}, path)

    with SummaryWriter(str(run.logs)) as writer:
        while steps < config.steps:
            rng = np.random.default_rng([config.seed, steps])
            seeds = rng.integers(2**62, size=settings.episodes).tolist()
            rounds = simulate(scenario, features, seeds, settings.kept, rng)
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1.0 - steps / config.steps)
            loss = _descend(net, optimizer, rounds, settings, rng)
            steps += settings.episodes * scenario.horizon
            writer.add_scalar("train/kl_per_round", loss, steps)
            run.progress(steps, make_model, save)
    return make_model()


def _descend(
    net: TorchNetwork,
    optimizer: torch.optim.Optimizer,
    rounds: Rounds,
    settings: Settings,
    rng: np.random.Generator,
) -> float:
    """Gradient steps on the rounds; returns the last step's KL per round."""
    for _ in range(settings.passes):
        order = torch.from_numpy(rng.permutation(len(rounds.truth)))
        for part in order.split(settings.batch_size):
            batch = Rounds(*(tensor[part] for tensor in rounds))
            loss = mixture_kl(network.logits(net.arrays, batch.features), batch).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return float(loss.item())
