"""How a trained model becomes a pretrained one: it is checked, then copied into the package's weights."""

from __future__ import annotations

import shutil
from pathlib import Path

from ldp_agents.rl.config import Config
from ldp_agents.rl.loading import load
from ldp_agents.rl.model import CARD, WEIGHTS, Model
from ldp_agents.rl.network import ANY_TRUTH
from ldp_agents.rl.run import LearnerFactory
from ldp_gym import evaluate
from ldp_gym.core.errors import UntrustedCodeError

MOST_BYTES = 100_000
"""How large the two files of a model may be together."""

MOST_TIMES_BAYES = 1.15
"""How large a model's risk may be, in units of Bayes' risk, on each of the games that it is judged on."""

MOST_FOR_ANY_TRUTH = 1.6
"""The same for a model that does not rely on a member: here it pays for its doubt, as "robust" does."""

JUDGES = {
    f"{channel}, eps = {epsilon:g}": {"channel": channel, "epsilon": epsilon}
    for channel in ("laplace-single", "split")
    for epsilon in (1.0, 4.0)
}
"""The games that a model is judged on: the default game on a few channels."""

_SEED = 2 * 10**9
"""The seed of the first episode that a model is judged on: none that training saw or scored on."""


def ship(
    directory: Path, weights: Path, *, replace: bool = False, episodes: int = 128
) -> tuple[Path, dict[str, float]]:
    """Check a trained model, and copy its two files to ``weights/<algorithm>``.

    Args:
        directory: what ``ldp-gym train`` has left.
        weights: the directory of the weights, ``ldp_agents.rl.pretrained.WEIGHTS_DIRECTORY``.
        replace: put it in the place of the model that is there.
        episodes: how many episodes of each game it is judged on.

    Returns:
        Where its files are now, and its risk over that of Bayes on each game of :data:`JUDGES`.

    Raises:
        FileNotFoundError: if there is no model in the directory.
        FileExistsError: if there is one of this algorithm already and ``replace`` is not set.
        ValueError: if the model cannot ship, saying why.
    """
    model = _read(directory)
    target = weights / Config(**model.card["config"]).algorithm
    if (target / CARD).exists() and not replace:
        raise FileExistsError(f"{target} holds a model already: --replace puts this one in its place")
    most = MOST_FOR_ANY_TRUTH if model.evidence == ANY_TRUTH else MOST_TIMES_BAYES
    ratios = {}
    for name, rules in JUDGES.items():
        learners: tuple[str | LearnerFactory, ...] = (model, "bayes")
        ours, bayes = (evaluate(one, rules, episodes=episodes, seed=_SEED).risk for one in learners)
        ratios[name] = ours / bayes
        if ours > most * bayes:
            raise ValueError(
                f"its risk on the default game of {name} is {ours:.1f}, {ours / bayes:.2f} times that of "
                f"Bayes; what ships has at most {most} times: train for longer"
            )
    target.mkdir(parents=True, exist_ok=True)
    for file in (WEIGHTS, CARD):
        shutil.copyfile(directory / file, target / file)
    return target, ratios


def _read(directory: Path) -> Model:
    """The model in a directory, if it is one of small arrays."""
    try:
        model = load(directory)
    except UntrustedCodeError as error:
        raise ValueError(f"{error}. Only arrays ship: train 'amortized', 'ppo' or 'any-truth'") from error
    assert isinstance(model, Model), "what runs no stored code is arrays"
    if "config" not in model.card:
        raise ValueError(f"the {CARD} in {directory} does not say what made the model: train one")
    num_bytes = sum((directory / name).stat().st_size for name in (WEIGHTS, CARD))
    if num_bytes > MOST_BYTES:
        raise ValueError(f"the model has {num_bytes} bytes, at most {MOST_BYTES} ship: train smaller layers")
    return model
