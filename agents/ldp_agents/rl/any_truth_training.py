"""Training of the update for any truth: the gradient of the KL through whole episodes, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldp_agents.rl import any_truth, pretrained
from ldp_agents.rl.amortized import Batch, label_evidence, mixture_kl, simulate
from ldp_agents.rl.descent import descend
from ldp_agents.rl.games import describe_ranges, draw_sizes, make_rules
from ldp_agents.rl.model import Model
from ldp_agents.rl.network import ANY_TRUTH
from ldp_agents.rl.run import Run
from ldp_agents.rl.torch_network import TorchNetwork
from ldp_gym import Game
from ldp_gym.core.errors import extra
from ldp_gym.engine.scenario import Scenario

with extra("rl", "training"):
    import torch

STEPS = 2_500_000
"""How many rounds are enough."""

RANGES: dict[str, tuple[float, float]] = {"epsilon": (0.5, 8.0), "K": (4, 16), "M": (8, 32), "T": (100, 2000)}
"""Between which numbers the games lie."""

FAMILIES = {"dirichlet(0.05)": 0.2, "dirichlet(0.3)": 0.6, "dirichlet(1)": 0.2}
TRUTHS = {"member": 0.2, "pair": 0.2, "mixture": 0.15, "switching": 0.25, "contaminated": 0.2}
"""How often each class family and each kind of truth is drawn."""


@dataclass(frozen=True)
class Settings:
    """The settings of the learned update.

    Attributes:
        channels: those of the games that it trains on.
        hidden: the widths of the hidden layers.
        episodes: how many a batch has.
        learning_rate: at the start; it falls linearly to zero.
    """

    channels: tuple[str, ...] = ("laplace-single", "split", "subset-selection")
    hidden: tuple[int, ...] = (16,)
    episodes: int = 24
    learning_rate: float = 2e-2


def draw_rules(channels: tuple[str, ...], rng: np.random.Generator) -> dict[str, Any]:
    """The rules of a random game: mixtures of two or all, one or two switches, up to 0.3 contaminated."""
    epsilon, num_hypotheses, num_labels, horizon = draw_sizes(rng, RANGES)
    family, truth = (str(rng.choice(list(each), p=list(each.values()))) for each in (FAMILIES, TRUTHS))
    truths: dict[str, dict[str, Any]] = {
        "member": {},
        "pair": {"truth": "mixture", "truth_kwargs": {"num_members": 2}},
        "mixture": {"truth": "mixture", "truth_kwargs": {"num_members": num_hypotheses}},
        "switching": {"truth": "switching", "truth_kwargs": {"num_switches": int(rng.integers(1, 3))}},
        "contaminated": {"truth": "contaminated", "truth_kwargs": {"rho": float(rng.uniform(0.05, 0.3))}},
    }
    rules = make_rules(family, str(rng.choice(channels)), epsilon, num_hypotheses, num_labels, horizon)
    return {**rules, **truths[truth]}


def total_kl(net: TorchNetwork, evidence: torch.Tensor, batch: Batch, game: Game) -> torch.Tensor:
    """The KL of all rounds, per episode, of the update that the network tunes."""
    likelihoods = torch.exp(evidence - evidence.amax(dim=-1, keepdim=True)).unbind(1)
    logits, trust = any_truth.read_outputs(net(torch.tensor(any_truth.describe(game), dtype=torch.float32)))
    begin = any_truth.start(np.ones(1), game.num_hypotheses, (len(evidence),))
    weights, _, pairs, _ = (torch.tensor(numbers, dtype=torch.float32) for numbers in begin)
    trust = trust.expand(len(evidence), -1)
    state = any_truth.State(weights, trust[:, :-1], pairs, trust[:, -1:])
    mixtures = torch.tensor(any_truth.mixtures_of(game.num_hypotheses), dtype=torch.float32)
    mixed = []
    for t, likelihood in enumerate(likelihoods):
        mixed.append(state.mix(mixtures))
        state = any_truth.advance(state, likelihood, any_truth.dials_at(logits, t), mixtures)
    return mixture_kl(torch.stack(mixed, dim=1), batch)


def fit(run: Run[Settings]) -> Model:
    """Train on the label evidence of the shipped model, or go on from a checkpoint; returns the model."""
    evidence = pretrained.model_of("amortized").parameters
    reader = TorchNetwork(evidence)
    net = TorchNetwork(any_truth.make(run.settings.hidden, np.random.default_rng(run.config.seed)))
    trained_on = describe_ranges(FAMILIES, RANGES)

    def make_model() -> Model:
        dials = {any_truth.PREFIX + name: array for name, array in net.numpy().items()}
        return Model({**evidence, **dials}, ANY_TRUTH, trained_on, run.card)

    def draw_kl(rng: np.random.Generator) -> tuple[torch.Tensor, int]:
        rules = draw_rules(run.settings.channels, rng)
        batch = simulate(rules, run.settings.episodes, rng)
        with torch.no_grad():
            said = label_evidence(reader, batch)
        return total_kl(net, said, batch, Scenario(**rules).game), batch.num_rounds

    return descend(run, net, draw_kl, make_model)
