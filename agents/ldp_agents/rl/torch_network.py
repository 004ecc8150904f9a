"""A network of :mod:`ldp_agents.rl.network` as PyTorch trains it."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ldp_agents.rl import network
from ldp_gym.numerics.arrays import FloatArray


class TorchNetwork(nn.Module):
    """Trained arrays; see :func:`ldp_agents.rl.network.make` for the arguments."""

    def __init__(
        self, kind: str, features: tuple[int, ...], outputs: int, hidden: tuple[int, ...], seed: int
    ) -> None:
        super().__init__()
        arrays = network.make(kind, features, outputs, hidden, np.random.default_rng(seed))
        self.arrays = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor(array, dtype=torch.float32)) for name, array in arrays.items()}
        )
        self._shape = features

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """The outputs ``(B, outputs)``, equivariant ``(B, K, outputs)``, of features that may be flat."""
        outputs: torch.Tensor = network.apply(self.arrays, features.reshape(-1, *self._shape))
        return outputs

    def numpy(self) -> dict[str, FloatArray]:
        """The arrays as NumPy plays them."""
        return {name: array.detach().numpy().astype(np.float64) for name, array in self.arrays.items()}
