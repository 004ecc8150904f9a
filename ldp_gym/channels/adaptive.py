"""What adaptive channels share: the public posterior that they act on."""

from __future__ import annotations

from typing import ClassVar

from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import IncompatibleChannelError


class AdaptiveChannel(Channel):
    """A channel whose message depends on the public posterior.

    The posterior assumes a member of the class. Where the truth is a mixture, or switches, it soon trusts
    one hypothesis alone, and the channel asks about little else. A posterior that shares a little of its
    weight in every round goes on asking about all of them.

    The arguments that are not listed here are those of every :class:`Channel`.

    Args:
        posterior_rate: the rate, in (0, 1], at which the public posterior learns from a message; 1 is Bayes'
            rule.
        posterior_share: the share of its weight, in [0, 1), that the public posterior spreads over all
            hypotheses after every message.
    """

    adaptive: ClassVar[bool] = True

    def __init__(
        self,
        num_hypotheses: int,
        num_labels: int,
        horizon: int,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        posterior_rate: float = 1.0,
        posterior_share: float = 0.0,
    ) -> None:
        super().__init__(num_hypotheses, num_labels, horizon, epsilon=epsilon, delta=delta)
        self.posterior_rate = validation.positive("posterior_rate", posterior_rate, most=1.0)
        self.posterior_share = validation.probability_below_one("posterior_share", posterior_share)

    def _public(self, posterior: FloatArray | None) -> FloatArray:
        """The public posterior, which the channel must be given."""
        if posterior is None:
            raise IncompatibleChannelError(
                f"{self!r} is adaptive: what a message says depends on the public posterior. Pass it: "
                f"a subclass of ldp_agents.ExponentialWeights has it as self.posterior, and "
                f"game.public_posterior() keeps one"
            )
        return posterior
