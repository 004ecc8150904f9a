"""The learner of Wu et al. (2023) for randomized response, as Section 3 describes it."""

from __future__ import annotations

from ldp_agents.bayes import Bayes
from ldp_gym import Game
from ldp_gym.channels import RandomizedResponse
from ldp_gym.learners import IncompatibleChannelError


class NoisyMixture(Bayes):
    """The Bayes mixture over the hypotheses' noisy kernels, with the weights it gives to the noiseless ones.

    A hypothesis predicts the reported label with its own distribution passed through randomized response; the
    mixture of those has log-loss regret log K, and its weights mix the hypotheses. On this channel that is
    the exact posterior, so it predicts as :class:`Bayes` does; it stands here under its own name, and reads
    nothing else.

    Args:
        game: the public rules; the channel must be randomized response.
    """

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        if not isinstance(game.channel, RandomizedResponse):
            raise IncompatibleChannelError(
                f"NoisyMixture reads randomized response, not {game.channel!r}; 'bayes' reads every channel"
            )
