"""Online-to-batch conversion (Section 6 of the paper) and the median trick.

The average prediction of T rounds, which ``ldp_gym.evaluate(..., averages=True)`` keeps, estimates the truth:
with ``p_hat = mean_t p_hat_t`` convexity gives ``E |p - p_hat|_TV <= (1/T) sum_t E |p - p_hat_t|_TV``, the
averaged TV-risk. The median of several independent runs is good with high probability.
"""

from __future__ import annotations

import numpy as np

from ldp_gym.core import game_arrays
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.divergences import tv


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
