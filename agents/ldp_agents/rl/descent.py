"""Training by the gradient of the KL: one batch of whole episodes after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ldp_agents.rl.model import Model
from ldp_agents.rl.run import Run
from ldp_agents.rl.torch_network import TorchNetwork
from ldp_gym.core.errors import extra

with extra("rl", "training"):
    import torch
    from torch.utils.tensorboard import SummaryWriter

_LARGEST_NORM = 1.0
"""To what length a longer gradient is cut."""


def descend(
    run: Run[Any],
    net: TorchNetwork,
    draw_kl: Callable[[np.random.Generator], tuple[torch.Tensor, int]],
    make_model: Callable[[], Model],
) -> Model:
    """Train a network, or go on from a checkpoint.

    Args:
        run: what is trained, and where it is kept; its settings have a ``learning_rate``, which falls
            linearly to zero.
        net: the network, as it is at the start.
        draw_kl: a batch's total KL under the network as it is now, and how many rounds the batch has.
        make_model: the model of now.
    """
    torch.set_num_threads(1)
    rate: float = run.settings.learning_rate
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    steps = 0
    if run.checkpoint is not None:
        state = torch.load(run.checkpoint, weights_only=True)
        net.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        steps = state["steps"]

    def save(path: Path) -> None:
        torch.save({"network": net.state_dict(), "optimizer": optimizer.state_dict(), "steps": steps}, path)

    with SummaryWriter(str(run.logs)) as writer:
        while steps < run.config.steps:
            for group in optimizer.param_groups:
                group["lr"] = rate * (1.0 - steps / run.config.steps)
            total, rounds = draw_kl(np.random.default_rng([run.config.seed, steps]))
            loss = torch.log(total)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), _LARGEST_NORM)
            optimizer.step()
            steps += rounds
            writer.add_scalar("train/log_kl", loss.item(), steps)
            run.progress(steps, make_model, save)
    return make_model()
