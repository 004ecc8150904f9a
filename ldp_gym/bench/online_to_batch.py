"""Online-to-batch conversion (Section 6 of the paper) and the median trick.

The average prediction of T rounds estimates the truth: with ``p_hat = mean_t p_hat_t`` convexity gives
``E |p - p_hat|_TV <= (1/T) sum_t E |p - p_hat_t|_TV``, the
averaged TV-risk. The median of several independent runs is good with high probability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from ldp_gym.core import game_arrays
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.divergences import tv
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import LearnerProtocol
from ldp_gym.evaluation import evaluate


def estimates(
    learner: str | Callable[[Game], LearnerProtocol],
    env: Mapping[str, Any] | gym.Env[Any, Any],
    *,
    episodes: int,
    seed: int = 0,
    truth: int | None = None,
) -> FloatArray:
    """Average prediction ``mean_t p_hat_t`` of each episode, ``(episodes, M)``.

    Arguments as in :func:`ldp_gym.evaluate`. The class must not depend on contexts.

    Example:
        >>> rules = {"hypotheses": [[0.5, 0.5], [0.9, 0.1]], "channel": "split", "horizon": 400}
        >>> estimates("bayes", rules, episodes=2, truth=1).round(1).tolist()
        [[0.9, 0.1], [0.9, 0.1]]
    """
    played = evaluate(learner, env, episodes=episodes, seed=seed, truth=truth, averages=True)
    assert played.average_prediction is not None, "asked for"
    return played.average_prediction


def median_run(runs: FloatArray) -> int:
    """Index of the estimate, of ``(R, M)``, with the least median TV distance to the others.

    If more than half of the runs are within alpha of the truth in TV, each of those has more than half of
    all runs within 2 alpha. So does the one returned, which therefore lies within 3 alpha of the truth. The
    probability that fewer than half are good falls exponentially in R.

    Example:
        >>> median_run(np.array([[0.9, 0.1], [0.5, 0.5], [0.52, 0.48]]))
        1
    """
    runs = game_arrays.checked_table(runs, "table of runs", "run")
    distances = tv(runs[:, None], runs[None])
    return int(np.median(distances, axis=1).argmin())
