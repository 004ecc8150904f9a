"""A network of :mod:`ldp_agents.rl.network` as PyTorch trains it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ldp_agents.rl import network
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra

with extra("rl", "training"):
    import torch
    from torch import nn


class TorchNetwork(nn.Module):
    """Arrays of :func:`ldp_agents.rl.network.make`, to be trained."""

    def __init__(self, arrays: Mapping[str, FloatArray]) -> None:
        super().__init__()
        self.arrays = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor(array, dtype=torch.float32)) for name, array in arrays.items()}
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """The outputs ``(..., outputs)`` of inputs ``(..., inputs)``."""
        outputs: torch.Tensor = network.apply(self.arrays, rows)
        return outputs

    def numpy(self) -> dict[str, FloatArray]:
        """The arrays as NumPy plays them."""
        return {name: array.detach().numpy().astype(np.float64) for name, array in self.arrays.items()}
