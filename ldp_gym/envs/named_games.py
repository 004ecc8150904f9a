"""The ids of the environments: their games, and the references of their scores, which never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym

NAMED_GAMES: dict[str, dict[str, Any]] = {
    "easy": {
        "hypotheses": "dirichlet",
        "num_hypotheses": 4,
        "num_labels": 8,
        "channel": "split",
        "epsilon": 4.0,
        "horizon": 200,
    },
    "medium": {},
    "memory": {"channel": "split", "observation": "message"},
    "hard": {"channel": "randomized-response", "observation": "message"},
}
"""Keyword arguments of LDPDistBox-easy-v0, -medium-v0, -memory-v0 and -hard-v0. They never change."""

META_GAME: dict[str, Any] = {
    "hypotheses": "dirichlet",
    "num_hypotheses": 4,
    "num_labels": 8,
    "channel": "randomized-response",
    "epsilon": 2.0,
    "horizon": 200,
    "redraw_hypotheses": True,
    "observation": "message",
}
"""Keyword arguments of LDPDistBox-meta-v0, where the class is redrawn and shown. They never change."""

NAMED_GAINS = {
    "easy": 125.32672312895633,
    "medium": 627.9104731492098,
    "memory": 771.9955800391841,
    "hard": 679.1131281328284,
    "meta": 110.22755578483651,
}
"""Gains of Bayes in the named games, as :func:`ldp_gym.envs.box.estimate_bayes_gain` has them."""


class ScoreScale(NamedTuple):
    """The mean that scores 0, and the distance from there to the mean that scores 1."""

    zero: float
    unit: float


ASK_REFERENCES = ScoreScale(zero=65.99355971903589, unit=33.41807140560086)
"""Risk of random questions in LDPAsk-v0, and how much less greedy ones pay."""

ASK_META_REFERENCES = ScoreScale(zero=68.32246506248822, unit=34.15031340573325)
"""Risk of random questions in LDPAskMeta-v0, and how much less greedy ones pay."""

NATURE_REFERENCES = ScoreScale(zero=44.8690127568109, unit=34.98922978980057)
"""Mean return of random contexts in LDPNature-v0, and how much more the adversary's is; 1,024 episodes."""

NATURE_FIXED_REFERENCES = ScoreScale(zero=43.66686945349404, unit=30.124527310544867)
"""Mean return of random contexts in LDPNature-fixed-v0, and how much more the adversary's is; likewise."""

_ASK_FIRST_LOSS = 0.7346604083436381
"""Expected loss ``J(uniform)`` of the first round of LDPAsk-v0, the unit of its rewards."""

_SOLVED = 0.95
"""Score at which a game counts as solved."""


def register_environments() -> None:
    """Register all ids with Gymnasium."""
    _register("LDPDist-v0", "dist:LDPDist")
    _register("LDPDistBox-v0", "box:LDPDistBox", {}, _SOLVED * NAMED_GAINS["medium"])
    for name, game in {**NAMED_GAMES, "meta": META_GAME}.items():
        threshold = _SOLVED * NAMED_GAINS[name]
        _register(f"LDPDistBox-{name}-v0", "box:LDPDistBox", game, threshold)

    # The return of LDPAsk-v0 is T - risk / J(uniform), in expectation.
    solved_risk = ASK_REFERENCES.zero - _SOLVED * ASK_REFERENCES.unit
    _register("LDPAsk-v0", "ask:LDPAsk", {}, 200.0 - solved_risk / _ASK_FIRST_LOSS)
    _register("LDPAskMeta-v0", "ask:LDPAsk", {"redraw_hypotheses": True})

    solved = NATURE_REFERENCES.zero + _SOLVED * NATURE_REFERENCES.unit
    _register("LDPNature-v0", "nature:LDPNature", {}, solved)
    solved = NATURE_FIXED_REFERENCES.zero + _SOLVED * NATURE_FIXED_REFERENCES.unit
    fixed = {"redraw_hypotheses": False}
    _register("LDPNature-fixed-v0", "nature:LDPNature", fixed, solved)


def _register(
    env_id: str,
    place: str,
    game: Mapping[str, Any] | None = None,
    reward_threshold: float | None = None,
) -> None:
    """Register an id, whose classes are ``{place}Env`` and ``{place}VectorEnv`` in this package."""
    gym.register(
        id=env_id,
        entry_point=f"ldp_gym.envs.{place}Env",
        vector_entry_point=f"ldp_gym.envs.{place}VectorEnv",
        order_enforce=False,  # the environments say themselves what to call first
        reward_threshold=reward_threshold,
        kwargs=dict(game or {}),
    )
