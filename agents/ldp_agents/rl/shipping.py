"""How a trained model becomes a pretrained one: it is checked, then copied into the package's weights."""

from __future__ import annotations

import shutil
from pathlib import Path

from ldp_agents.rl import network
from ldp_agents.rl.config import Config, differences
from ldp_agents.rl.loading import load
from ldp_agents.rl.model import CARD, WEIGHTS, Model, game_parameters
from ldp_agents.rl.run import LearnerFactory
from ldp_gym import CHANNELS, evaluate
from ldp_gym.engine.scenario import Scenario

MOST_BYTES = 100_000
"""How large the two files of a model may be together."""

MOST_TIMES_BAYES = 1.45
"""How large a model's risk may be on the default game of its channel, in units of Bayes' risk there."""

_SEED = 2 * 10**9
"""The seed of the first episode that a model is judged on: none that training saw or scored on."""


def ship(
    directory: Path, weights: Path, *, replace: bool = False, episodes: int = 128
) -> tuple[Path, dict[str, float]]:
    """Check a trained model, and copy its two files to ``weights/<algorithm>/<channel>``.

    Args:
        directory: what ``ldp-gym train`` has left.
        weights: the directory of the weights, ``ldp_agents.rl.pretrained.WEIGHTS_DIRECTORY``.
        replace: put it in the place of the model that is there.
        episodes: how many episodes it is judged on.

    Returns:
        Where its files are now, and its risk on its default game beside those of others on the same episodes.

    Raises:
        FileNotFoundError: if there is no model in the directory.
        FileExistsError: if there is one for this channel already and ``replace`` is not set.
        ValueError: if the model cannot ship, saying why.
    """
    model = _read(directory)
    config = Config(**model.card["config"])
    channel = _default_channel(model, config)
    target = weights / config.algorithm / channel
    rules = {"channel": channel, "delta": model.trained_on["delta"]}
    learners: dict[str, str | LearnerFactory] = {"this model": model, "bayes": "bayes", "uniform": "uniform"}
    if (target / CARD).exists():
        if not replace:
            raise FileExistsError(f"{target} holds a model already: --replace puts this one in its place")
        learners["the model that it replaces"] = Model.read(target)
    risks = {
        name: evaluate(learner, rules, episodes=episodes, seed=_SEED).risk
        for name, learner in learners.items()
    }
    ours, bayes = risks["this model"], risks["bayes"]
    if ours > MOST_TIMES_BAYES * bayes:
        raise ValueError(
            f"its risk on the default game of {channel!r} is {ours:.1f}, {ours / bayes:.2f} times that of "
            f"Bayes; what ships has at most {MOST_TIMES_BAYES} times: train for longer"
        )
    target.mkdir(parents=True, exist_ok=True)
    for name in (WEIGHTS, CARD):
        shutil.copyfile(directory / name, target / name)
    return target, risks


def _read(directory: Path) -> Model:
    """The model in a directory, if it is one of small arrays that plays any class."""
    model = load(directory)
    if not isinstance(model, Model):
        raise ValueError(
            f"{directory} holds a policy of stable-baselines3, which runs stored code when it is read; only "
            f"arrays ship: train 'ppo' or 'amortized'"
        )
    if "config" not in model.card:
        raise ValueError(f"the {CARD} in {directory} does not say what made the model: train one")
    if not network.is_equivariant(model.parameters):
        raise ValueError("a flat network plays one class alone: train with --setting network=equivariant")
    num_bytes = sum((directory / name).stat().st_size for name in (WEIGHTS, CARD))
    if num_bytes > MOST_BYTES:
        raise ValueError(f"the model has {num_bytes} bytes, at most {MOST_BYTES} ship: train smaller layers")
    return model


def _default_channel(model: Model, config: Config) -> str:
    """The name of the channel on whose default game the model was trained."""
    kind = type(config.scenario.channel)
    channel = next((name for name in CHANNELS if CHANNELS[name] is kind), None)
    if channel is None:
        raise ValueError(f"{kind.__name__} goes by no name: only models of registered channels ship")
    default = Scenario(channel=channel, delta=model.trained_on["delta"]).game
    if differ := differences(model.trained_on, game_parameters(default)):
        raise ValueError(f"models ship that were trained on the default game, this one has {differ}")
    return channel
