"""Policies of LDPNature-v0 as natures: learned contexts, to compare with those of other natures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ldp_agents.rl.asking import first_of_env, mean_action
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.divergences import mixture_loss
from ldp_gym.envs.nature import observe_pool
from ldp_gym.natures.adversary import Adversary
from ldp_gym.natures.base import NatureView


class PolicyNature(Adversary):
    """Nature that plays a policy of LDPNature-v0 on a pool of contexts.

    It reads only the public transcript, as ``adversary`` does.

    Args:
        context_dim: d.
        policy: function from observations ``(B, 2 K + 1 + 2 P)`` to indices ``(B,)`` of contexts.
        pool: the contexts ``(P, d)``; ``pool_size`` standard normal ones when not given.
        pool_size: P.
        pool_seed: seed of a pool that is not given.
    """

    def __init__(
        self,
        context_dim: int,
        policy: Callable[[Any], Any],
        pool: Any = None,
        pool_size: int = 32,
        pool_seed: int = 0,
    ) -> None:
        super().__init__(context_dim, pool, pool_size, pool_seed)
        what = "a function from observations to indices of contexts"
        self.policy = validation.function("policy", policy, what)

    def contexts(self, view: NatureView) -> FloatArray:
        """Return the context that the policy picks in each of B games, ``(B, 1, d)``.

        The policy observes what it observes in LDPNature-v0: the posterior of each game, the share
        t / T of the rounds that have been played, and the expected loss and information of the
        next round at each of the P contexts in the pool.

        Raises:
            ValueError: if the policy does not return one index of the pool per game.
        """
        assert view.posterior is not None, "an adaptive nature gets the public posterior"
        assert view.rounds_left is not None, "an adaptive nature gets the number of rounds left"
        num_games = len(view.rounds)
        pool_size = len(self.pool)

        # The pool's candidates, their negentropies and the information of messages at them, as
        # returned by Adversary.prepare: what does not change from round to round.
        pool_facts = view.prepared
        posterior_per_context = view.posterior[:, None]
        losses = mixture_loss(posterior_per_context, pool_facts.candidates, pool_facts.negentropies)
        information = pool_facts.information(view.posterior)

        rounds_played = view.rounds[:, 0]
        horizon = rounds_played + view.rounds_left
        observations = observe_pool(
            weights=view.posterior,
            progress=rounds_played / horizon,
            losses=np.broadcast_to(losses, (num_games, pool_size)),
            information=np.broadcast_to(information, (num_games, pool_size)),
        )

        choices = validation.indices("contexts", self.policy(observations), pool_size)
        if choices.shape != (num_games,):
            raise ValueError(
                f"the policy must return {num_games} indices of contexts, got shape {choices.shape}"
            )
        chosen_contexts = self.pool[choices]
        return chosen_contexts[:, None]


def as_nature(policy: Any, env: Any, *, pool_seed: int = 0) -> PolicyNature:
    """Turn a policy of LDPNature-v0 into a nature, for ``evaluate`` and the benchmark.

    A nature has one pool. It is the environment's, if that keeps one; then users meet the same
    contexts, and send the same messages, as in the environment on the same seeds.

    Args:
        policy: a trained algorithm of stable-baselines3, which plays its most likely action; or a
            function from observations ``(B, 2 K + 1 + 2 P)`` to indices ``(B,)`` of contexts.
        env: the environment of LDPNature-v0 that the policy plays, or an SB3 ``VecEnv`` of it.
        pool_seed: seed of the pool, if the environment draws one in every episode.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> from ldp_agents.adversaries import LargestLoss
        >>> env = gym.make("LDPNature-fixed-v0", horizon=50)
        >>> nature = as_nature(LargestLoss(env), env)
        >>> rules = {"channel": "split", "horizon": 50, "nature": nature}
        >>> ldp_gym.evaluate("bayes", rules, episodes=10).risk > 0.0
        True
    """
    arguments = first_of_env(env, "arguments")
    if getattr(arguments, "env_id", None) != "LDPNature-v0":
        raise TypeError(f"env must be an environment of LDPNature-v0, got {env!r}")
    if callable(policy):
        act = policy
    elif callable(getattr(policy, "predict", None)):
        act = partial(mean_action, policy)
    else:
        raise TypeError(
            f"policy must be a function or have predict(), got {validation.describe(policy)}"
        )

    scenario = first_of_env(env, "scenario")
    redraws_pool = arguments.redraw_hypotheses and arguments.pool is None
    if redraws_pool:
        pool = None
    else:
        pool = scenario.nature.pool
    return PolicyNature(
        context_dim=scenario.hypotheses.context_dim,
        policy=act,
        pool=pool,
        pool_size=arguments.pool_size,
        pool_seed=pool_seed,
    )
