"""Bayes with the least favourable prior of its game: nearly the least risk at the worst truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldp_agents.bayes import Bayes
from ldp_gym import Game
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.game import require_game
from ldp_gym.engine.rules import Rules
from ldp_gym.value import least_favourable_prior

_PRIORS: dict[tuple[str, int, int], FloatArray] = {}
"""Priors that were found in this process, by the key of the rules, episodes and seed."""


class MinimaxBayes(Bayes):
    """The exact posterior mean under a least favourable prior, which is searched when it is made.

    At its worst truth it pays nearly the least that a learner on the channel can;
    :func:`ldp_gym.minimax` says how nearly. On average over the truths the uniform prior of
    :class:`Bayes` pays less.

    Args:
        game: the public rules; the class must not be redrawn.
        nature: where the contexts of the search come from: a name or a Nature, as in the rules of
            the game. The default is the class's own. A class without contexts needs none.
        nature_kwargs: further options of a named nature.
        episodes: largest number of episodes per truth in the search.
        seed: seed of the first of these episodes.

    Attributes:
        prior: the prior, ``(K,)``.

    Example:
        >>> import ldp_agents, ldp_gym
        >>> rules = {"hypotheses": [[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]], "channel": "half-space"}
        >>> bayes = ldp_gym.evaluate("bayes", rules, episodes=400, truth="all")
        >>> minimax = ldp_gym.evaluate("minimax", rules, episodes=400, truth="all")
        >>> minimax.risk < bayes.risk  # the risk at the worst truth
        True
    """

    def __init__(
        self,
        game: Game,
        nature: Any = None,
        nature_kwargs: Mapping[str, Any] | None = None,
        episodes: int = 100,
        seed: int = 0,
    ) -> None:
        require_game(game)
        if game.hypotheses is None:
            raise ValueError(
                "minimax needs one class: its prior is about the hypotheses of the game, and here "
                "they are redrawn in every episode"
            )
        rules = Rules(
            hypotheses=game.hypotheses,
            channel=game.channel,
            horizon=game.horizon,
            batch=game.batch,
            nature=nature,
            nature_kwargs=nature_kwargs,
        )
        self.prior = _prior_of(rules, episodes, seed)
        super().__init__(game, prior=self.prior)


def _prior_of(rules: Rules, episodes: int, seed: int) -> FloatArray:
    """Return the least favourable prior ``(K,)`` of a game, from an earlier search if there was one.

    Args:
        rules: the game.
        episodes: largest number of episodes per truth in the search.
        seed: seed of the first of these episodes.
    """
    try:
        key = (rules.key, episodes, seed)
    except (TypeError, ValueError):
        # No key: a custom part that cannot be told from others, or a channel without privacy.
        return least_favourable_prior(rules, episodes=episodes, seed=seed)
    if key not in _PRIORS:
        _PRIORS[key] = least_favourable_prior(rules, episodes=episodes, seed=seed)
    return _PRIORS[key].copy()
