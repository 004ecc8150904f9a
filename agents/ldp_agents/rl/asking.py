"""Policies of LDPAsk-v0 as channels: learned private questions, to compare with hand-made ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ldp_gym.channels.asked_bit import AskedBit
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.envs.ask import observe_posterior


def as_channel(policy: Any, env: Any, *, progress: float = 0.5) -> AskedBit:
    """Turn a policy of LDPAsk-v0 into an adaptive channel, private whatever the policy asks.

    ``audit.certify`` and ``evaluate`` take it as they take every channel. On the same seeds its
    users send the answers that they give in the environment, if the policy does not read t / T.

    Args:
        policy: a trained algorithm of stable-baselines3, which plays its mean action, or a function
            from observations ``(n, 2 K + 1)`` to contrasts ``(n, K)``.
        env: the environment of LDPAsk-v0 that the policy plays, or an SB3 ``VecEnv`` of it.
        progress: the t / T that the policy is shown, as a channel does not know the round.
    """
    channel = getattr(first_of_env(env, "game"), "channel", None)
    if not isinstance(channel, AskedBit):
        raise TypeError(
            f"env must be an environment of LDPAsk-v0, got one with the channel {channel!r}"
        )
    if callable(policy):
        act = policy
    elif callable(getattr(policy, "predict", None)):
        act = partial(mean_action, policy)
    else:
        raise TypeError(
            f"policy must be a function or have predict(), got {validation.describe(policy)}"
        )

    ask = partial(_questions, act, validation.probability("progress", progress))
    return AskedBit(
        channel.num_hypotheses,
        channel.num_labels,
        channel.horizon,
        epsilon=channel.epsilon,
        policy=ask,
    )


def first_of_env(env: Any, name: str) -> Any:
    """Return an attribute of the environment below all wrappers, None if it has none.

    The environment may be single, vector or an SB3 ``VecEnv``, whose first game is asked.
    """
    if hasattr(env, "env_is_wrapped"):  # an SB3 VecEnv
        return env.get_attr(name)[0]
    unwrapped = getattr(env, "unwrapped", env)
    return getattr(unwrapped, name, None)


def mean_action(model: Any, rows: Any) -> Any:
    """Return the mean actions of an SB3 model at rows of observations.

    If the model was trained with a ``VecNormalize``, that scales the observations first.
    """
    if hasattr(model, "get_vec_normalize_env"):
        normalizer = model.get_vec_normalize_env()
        if normalizer is not None:
            rows = normalizer.normalize_obs(rows)
    actions, _ = model.predict(rows, deterministic=True)
    return actions


def _questions(act: Callable[[Any], Any], progress: float, posterior: FloatArray) -> FloatArray:
    """Return the contrasts ``(..., K)`` that a policy picks at public posteriors ``(..., K)``.

    Contrasts that leave [-1, 1] are divided by the largest absolute value among the K.

    Raises:
        ValueError: if they are not finite, or not one per hypothesis.
    """
    weights = posterior.reshape(-1, posterior.shape[-1])
    observations = observe_posterior(weights, progress)
    contrasts = validation.numbers("contrasts", act(observations))
    if contrasts.shape != weights.shape or not np.isfinite(contrasts).all():
        raise ValueError(
            f"the policy must return finite contrasts of shape {weights.shape}, got shape "
            f"{contrasts.shape}: {validation.describe(contrasts)}"
        )
    largest = np.abs(contrasts).max(axis=-1, keepdims=True)
    in_range = contrasts / np.maximum(largest, 1.0)
    return in_range.reshape(posterior.shape)
