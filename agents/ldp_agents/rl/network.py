"""The networks, written once for PyTorch, which trains them, and for NumPy, which plays them.

A network is a dict of arrays, or of tensors, and :func:`apply` uses operations that NumPy and PyTorch spell
alike. So what is trained is what is played, and a trained model plays where PyTorch is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ldp_gym.numerics.arrays import FloatArray

Parameters = Mapping[str, Any]
"""Arrays or tensors by name: ``w0``, ``p0``, ``b0`` of the first layer, and so on; ``w``, ``b``, ``skip``."""

_GAIN = 10.0
"""How much faster than the layers the straight way learns: features are scaled to be small."""


_FEATURES_OF = {"flat": "evidence", "equivariant": "matched"}


def features_of(kind: str) -> str:
    """The name of the features that a kind of network reads.

    Raises:
        ValueError: if there is no such kind.
    """
    if kind not in _FEATURES_OF:
        raise ValueError(f"network must be one of {', '.join(_FEATURES_OF)}, got {kind!r}")
    return _FEATURES_OF[kind]


def num_outputs(kind: str, num_hypotheses: int) -> int:
    """How many numbers a network must have come out to give K logits: an equivariant one has K of each."""
    return 1 if kind == "equivariant" else num_hypotheses


def make(
    kind: str, features: tuple[int, ...], outputs: int, hidden: tuple[int, ...], rng: np.random.Generator
) -> dict[str, FloatArray]:
    """New parameters: layers initialised as by He et al. (2015), and an output that is near zero at first.

    Args:
        kind: ``"flat"``: all features at once; ``"equivariant"``: hypothesis by hypothesis, ``(K, F)``.
        features: the shape of the features.
        outputs: how many numbers come out, of each hypothesis if equivariant.
        hidden: the widths of the hidden layers.
        rng: for the initial weights.
    """
    width = features[-1]
    parameters: dict[str, FloatArray] = {"skip": np.zeros((width, outputs))}
    for i, layer_width in enumerate(hidden):
        parameters[f"w{i}"] = rng.standard_normal((width, layer_width)) * np.sqrt(2.0 / width)
        if kind == "equivariant":
            parameters[f"p{i}"] = rng.standard_normal((width, layer_width)) * np.sqrt(1.0 / width)
        parameters[f"b{i}"] = np.zeros(layer_width)
        width = layer_width
    parameters["w"] = rng.standard_normal((width, outputs)) * (0.1 / np.sqrt(width))
    parameters["b"] = np.zeros(outputs)
    return parameters


def apply(parameters: Parameters, features: Any) -> Any:
    """The outputs ``(..., outputs)``; of an equivariant network ``(..., K, outputs)``.

    A layer of an equivariant network maps each hypothesis' row together with the mean of all rows (Zaheer et
    al. 2017), so that naming the hypotheses otherwise renames the outputs and does nothing else, and any K
    will do. The features also go straight to the output: log-likelihoods are nearly linear in them.
    """
    layer, i = features, 0
    while f"w{i}" in parameters:
        mapped = layer @ parameters[f"w{i}"] + parameters[f"b{i}"]
        if f"p{i}" in parameters:
            mapped = mapped + layer.mean(-2)[..., None, :] @ parameters[f"p{i}"]
        layer, i = mapped.clip(0), i + 1
    return layer @ parameters["w"] + parameters["b"] + _GAIN * (features @ parameters["skip"])


def is_equivariant(parameters: Parameters) -> bool:
    """Whether the network plays any number of hypotheses."""
    return "p0" in parameters


def logits(parameters: Parameters, features: Any) -> Any:
    """The hypotheses' logits ``(..., K)``."""
    outputs = apply(parameters, features)
    return outputs[..., 0] if is_equivariant(parameters) else outputs
