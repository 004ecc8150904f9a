"""Policies of LDPAsk-v0 as channels: learned private questions, to compare with hand-made ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ldp_gym.channels.asked_bit import AskedBit
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.game import game_of
from ldp_gym.envs.ask import observe_posterior


def as_channel(policy: Any, env: Any, *, progress: float = 0.5) -> AskedBit:
    """Turn a policy of LDPAsk-v0 into an adaptive channel, which is private whatever the policy asks.

    ``audit.certify`` and ``evaluate`` take it as they take every channel. On the same seeds its users send
    the answers that they give in the environment, if the policy does not read t / T.

    Args:
        policy: a trained algorithm of stable-baselines3, which plays its mean action, or a function from
            observations ``(n, 2 K + 1)`` to contrasts ``(n, K)``.
        env: the environment of LDPAsk-v0 that the policy plays, or an SB3 ``VecEnv`` of it.
        progress: the t / T that the policy is shown, as a channel does not know the round.
    """
    channel = (env.get_attr("game")[0] if hasattr(env, "env_is_wrapped") else game_of(env)).channel
    if not isinstance(channel, AskedBit):
        raise TypeError(
            f"env must be an environment of LDPAsk-v0, got one with the channel {channel!r}"
        )
    if not callable(policy) and not callable(getattr(policy, "predict", None)):
        raise TypeError(
            f"policy must be a function or have predict(), got {validation.describe(policy)}"
        )
    act = policy if callable(policy) else partial(_mean_action, policy)
    ask = partial(_questions, act, validation.probability("progress", progress))
    sizes = channel.num_hypotheses, channel.num_labels, channel.horizon
    return AskedBit(*sizes, epsilon=channel.epsilon, policy=ask)


def _mean_action(model: Any, rows: Any) -> Any:
    """Mean actions of a model of stable-baselines3, with its ``VecNormalize`` if it has one."""
    normalizer = getattr(model, "get_vec_normalize_env", lambda: None)()
    seen = rows if normalizer is None else normalizer.normalize_obs(rows)
    return model.predict(seen, deterministic=True)[0]


def _questions(act: Callable[[Any], Any], progress: float, posterior: FloatArray) -> FloatArray:
    """Contrasts ``(..., K)`` in [-1, 1] that a policy picks at public posteriors ``(..., K)``."""
    weights = posterior.reshape(-1, posterior.shape[-1])
    contrasts = validation.numbers("contrasts", act(observe_posterior(weights, progress)))
    if contrasts.shape != weights.shape or not np.isfinite(contrasts).all():
        raise ValueError(
            f"the policy must return finite contrasts of shape {weights.shape}, got shape {contrasts.shape}: "
            f"{validation.describe(contrasts)}"
        )
    contrasts = contrasts / np.maximum(np.abs(contrasts).max(axis=-1, keepdims=True), 1.0)
    return contrasts.reshape(posterior.shape)
