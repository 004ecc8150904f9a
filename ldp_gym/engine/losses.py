"""The ledger of losses: each loss of a prediction once, by name.

The referee, ``evaluate`` and the Box environment compute losses with :func:`charge`; info, stored results and
tables have the names of this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ldp_gym.core import divergences, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.registry import Registry, is_address

DEFAULT_LOSSES = ("kl", "tv")
"""Losses that are computed unless others are asked for."""


@dataclass(frozen=True)
class Loss:
    """A loss of predictions.

    Attributes:
        formula: function of the truth's distributions and of the predictions, ``(..., M)`` each, that returns
            the losses ``(...)``. With ``of``, a function of the values of that loss.
        infinite_off_support: True if the loss is infinite where a prediction excludes a label that can occur.
        of: name of the loss from whose values this one is computed; None if it has a formula of its own.

    Example:
        >>> brier = Loss(lambda truth, prediction: np.square(truth - prediction).sum(axis=-1))
        >>> float(brier(np.array([1.0, 0.0]), np.array([0.5, 0.5])))
        0.5
    """

    formula: Callable[..., FloatArray]
    infinite_off_support: bool = False
    of: str | None = None

    def __call__(self, truth: FloatArray, predictions: FloatArray) -> FloatArray:
        """Losses ``(...)`` of predictions ``(..., M)`` under the truth's distributions ``(..., M)``."""
        if self.of is None:
            return self.formula(truth, predictions)
        return self.formula(as_loss(self.of)(truth, predictions))


LOSSES: Registry[FloatArray] = Registry("loss", group="ldp_gym.losses")

LOSSES.own |= {
    "kl": Loss(divergences.kl, infinite_off_support=True),
    "tv": Loss(divergences.tv),
    "tv_squared": Loss(np.square, of="tv"),
    "hellinger": Loss(divergences.squared_hellinger),
    "chi_square": Loss(divergences.chi_square, infinite_off_support=True),
}


def as_loss(name: str) -> Loss:
    """Look up a loss by its name or its address ``"module:object"``."""
    loss = LOSSES[name]
    if not isinstance(loss, Loss):
        raise TypeError(
            f"the loss {name!r} must be an ldp_gym.Loss, got {validation.describe(loss)}"
        )
    return loss


def loss_names(names: object) -> tuple[str, ...]:
    """Check names of losses; return them without repetitions, the KL first. Addresses are not imported.

    Example:
        >>> loss_names(["hellinger", "tv", "tv"])
        ('kl', 'hellinger', 'tv')
        >>> loss_names(["helinger"])
        Traceback (most recent call last):
        ...
        ValueError: unknown loss 'helinger'; did you mean 'hellinger'? Known: chi_square, ...
    """
    given = validation.texts("losses", names, "names of losses, such as 'tv'")
    for name in given:
        if not is_address(name):
            as_loss(name)
    return tuple(dict.fromkeys(["kl", *given]))


def load_losses(names: object) -> tuple[str, ...]:
    """Check names of losses as :func:`loss_names` does, and import those that are addresses."""
    checked = loss_names(names)
    for name in checked:
        as_loss(name)
    return checked


def further_losses(names: Sequence[str]) -> dict[str, Loss]:
    """Look up losses other than the KL by their names, which :func:`load_losses` checked."""
    return {name: as_loss(name) for name in names if name != "kl"}


def charge(
    names: Sequence[str],
    truth: FloatArray,
    predictions: FloatArray,
    negentropies: FloatArray | None = None,
) -> dict[str, FloatArray]:
    """Compute losses ``(...)`` of predictions ``(..., M)``, by name; the KL is always one of them.

    Args:
        names: further losses, checked by :func:`load_losses`.
        truth: the truth's distributions, ``(..., M)``.
        predictions: ``(..., M)``.
        negentropies: negative entropies of the truth's distributions, ``(...)``, if they are known.

    Example:
        >>> truth, prediction = np.array([1.0, 0.0]), np.array([0.5, 0.5])
        >>> {name: float(loss.round(3)) for name, loss in charge(["tv"], truth, prediction).items()}
        {'kl': 0.693, 'tv': 0.5}
    """
    return charge_each(further_losses(names), truth, predictions, negentropies)


def charge_each(
    losses: Mapping[str, Loss],
    truth: FloatArray,
    predictions: FloatArray,
    negentropies: FloatArray | None = None,
) -> dict[str, FloatArray]:
    """Compute the KL and further losses, which :func:`further_losses` looked up, as :func:`charge` does.

    A game looks its losses up once: in every step that would take a tenth of the time.
    """
    charged = {"kl": divergences.kl(truth, predictions, negentropies)}
    for name, loss in losses.items():
        if loss.of is None:
            charged[name] = loss.formula(truth, predictions)
        elif loss.of in charged:  # a function of values that are computed already
            charged[name] = loss.formula(charged[loss.of])
        else:
            charged[name] = loss(truth, predictions)
    return charged
