"""LDPDistBox-v0: the game for any RL library, numbers in and numbers out.

What the messages have said so far is a float32 ``Box`` in, the logits of a mixture of the hypotheses a
``Box`` out. It is LDPDist-v0 in the wrappers of this package, and its learner sees no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from ldp_gym.engine.rules import Rules
from ldp_gym.envs.single import LDPDistEnv
from ldp_gym.envs.vector import LDPDistVectorEnv
from ldp_gym.wrappers.actions import MixtureAction, VectorMixtureAction
from ldp_gym.wrappers.observations import Evidence, HypothesisRow, VectorEvidence, VectorHypothesisRow


def make_box_env(
    *, logit_range: float = 10.0, render_mode: str | None = None, **rules: Unpack[Rules]
) -> gym.Env[Any, Any]:
    """The entry point of ``gym.make("LDPDistBox-v0")``.

    A class without contexts shows the sums of its messages (:class:`~ldp_gym.wrappers.Evidence`), any other
    what they have said for each hypothesis (:class:`~ldp_gym.wrappers.HypothesisRow`).

    Args:
        logit_range: the logit that an action of 1 stands for.
        render_mode: as in LDPDist-v0.
        **rules: those of LDPDist-v0.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> env = gym.make("LDPDistBox-v0", hypotheses="dirichlet", channel="randomized-response")
        >>> env.observation_space.shape, env.observation_space.dtype, env.action_space
        ((25,), dtype('float32'), Box(-1.0, 1.0, (8,), float32))
    """
    game = LDPDistEnv(render_mode=render_mode, **_showing_candidates(rules))
    env = MixtureAction(game, logit_range)
    return Evidence(env) if game.scenario.shares_table else HypothesisRow(env)


def make_box_vector_env(
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    logit_range: float = 10.0,
    render_mode: str | None = None,
    **rules: Unpack[Rules],
) -> gym.vector.VectorEnv[Any, Any, Any]:
    """The entry point of ``gym.make_vec("LDPDistBox-v0", num_envs=B)``: :func:`make_box_env`, B at once."""
    games = LDPDistVectorEnv(
        num_envs, autoreset_mode=autoreset_mode, render_mode=render_mode, **_showing_candidates(rules)
    )
    envs = VectorMixtureAction(games, logit_range)
    return VectorEvidence(envs) if games.scenario.shares_table else VectorHypothesisRow(envs)


def _showing_candidates(rules: Mapping[str, Any]) -> Rules:
    """A class that is redrawn must be shown; the features are made from what is shown."""
    redraws = rules.get("redraw_hypotheses") is True
    return {**rules, "observe_candidates": True} if redraws else dict(rules)  # type: ignore[return-value, typeddict-item]
