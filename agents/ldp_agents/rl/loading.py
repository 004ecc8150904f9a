"""Trained models from their directories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ldp_agents.rl.model import CARD, WEIGHTS, Model, read_card
from ldp_agents.rl.policies import POLICY, PolicyLearner, Scaling, check_fit
from ldp_agents.rl.run import LearnerFactory
from ldp_gym import Game
from ldp_gym.core import validation
from ldp_gym.core.errors import UntrustedCodeError
from ldp_gym.engine.learners import Track


def load(directory: str | Path, *, trust: bool = False) -> LearnerFactory:
    """A trained model from its directory: a callable from Game to Learner that can be sent to a process.

    It checks that it fits the game, and says what differs.

    Args:
        directory: where it is stored.
        trust: whether a policy that runs code when it is read may do so. Weights run none.

    Raises:
        FileNotFoundError: if there is no model in the directory.
        UntrustedCodeError: if it is such a policy, and ``trust`` is not set.
    """
    path, trust = validation.path("directory", directory), validation.flag("trust", trust)
    if not (path / CARD).exists():
        raise FileNotFoundError(
            f"no trained model in {path}: it has no {CARD}; 'ldp-gym train --out' makes one"
        )
    if (path / WEIGHTS).exists():
        return Model.read(path)
    if not trust:
        raise UntrustedCodeError(
            f"{path / POLICY} runs whatever code it holds when it is read. If you trust whoever made it: "
            f"ldp_agents.rl.load({str(path)!r}, trust=True), or --trust on the command line"
        )
    return StoredPolicy(path)


@dataclass(frozen=True)
class StoredPolicy:
    """A policy on disk, read when it is asked for a learner: it can be sent to another process.

    Reading it runs whatever code was pickled into it: take policies from people whom you trust.

    Attributes:
        directory: where it is stored.
    """

    track: ClassVar[Track] = "uninformed"

    directory: Path
    runs_stored_code: ClassVar[bool] = True

    @property
    def example_rules(self) -> dict[str, Any]:
        """The rules of the game that it was trained on."""
        rules: dict[str, Any] = self._card["config"]["rules"]
        return rules

    @property
    def _card(self) -> dict[str, Any]:
        return read_card(self.directory)

    def __call__(self, game: Game) -> PolicyLearner:
        """The policy as a learner of the game."""
        from ldp_agents.rl.algorithms import policy_class  # the extra `rl`

        card = self._card
        check_fit(card["trained_on"], game)
        algorithm = policy_class(card["config"]).load(self.directory / POLICY, device="cpu")
        scaling = Scaling(**card["scaling"]) if "scaling" in card else None
        return PolicyLearner(game, algorithm, card["features"], card["logit_range"], scaling)
