"""The trained models that come with the package: they play with NumPy alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from ldp_agents.rl.model import Model, ModelLearner
from ldp_gym import Game

WEIGHTS_DIRECTORY = Path(__file__).parent / "weights"
"""One model per algorithm, ``weights/<algorithm>``, with the configuration that made it."""

MEASURED: dict[str, dict[str, str]] = {
    "amortized": {
        "epsilon": "1.00 to 1.03 times Bayes at eps = 0.1, and 1.00 at eps = 16",
        "K": "1.00 to 1.01 times Bayes at K = 128",
        "M": "1.00 to 1.01 times Bayes at M = 512",
        "T": "1.00 to 1.03 times Bayes at T = 50 and 10,000",
    },
    "ppo": {
        "epsilon": "1.00 to 1.15 times Bayes at eps = 0.1, and 1.00 to 1.39 at eps = 16",
        "K": "1.00 to 1.05 times Bayes at K = 2 and 64, 1.00 to 1.13 at K = 128; 1.00 to 1.33 at K = M = 2",
        "M": "1.00 to 1.02 times Bayes at M = 128 and 512; 1.00 to 1.33 at K = M = 2",
        "T": "1.00 to 1.11 times Bayes at T = 50, 3,000 and 10,000",
    },
    "any-truth": {},
}
"""What was measured outside of the games that each is trained on; docs/learned.md has the tables."""


@cache
def model_of(algorithm: str) -> Model:
    """The pretrained model of an algorithm."""
    return replace(Model.read(WEIGHTS_DIRECTORY / algorithm), measured=MEASURED[algorithm])


def ppo(game: Game) -> ModelLearner:
    """Learned from rewards alone, by PPO: how much to trust what messages say about labels.

    ``ldp-gym train ppo`` makes it. What it was trained on, and how far it holds, is in docs/learned.md.

    Args:
        game: the public rules.
    """
    return model_of("ppo")(game)


def amortized(game: Game) -> ModelLearner:
    """Learned from simulated games: how much to trust what messages say about labels; close to Bayes.

    ``ldp-gym train amortized`` makes it. What it was trained on, and how far it holds, is in docs/learned.md.

    Args:
        game: the public rules.
    """
    return model_of("amortized")(game)


def any_truth(game: Game) -> ModelLearner:
    """Learned from simulated games: what to believe where the truth may be no member of the class.

    ``ldp-gym train any-truth`` makes it. What it was trained on, and how far it holds, is in docs/learned.md.

    Args:
        game: the public rules.
    """
    return model_of("any-truth")(game)


for _learner in (ppo, amortized, any_truth):
    _learner.track = Model.track  # type: ignore[attr-defined]
