"""Supports that do not meet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldp_gym.core import validation
from ldp_gym.hypotheses.table import Table


class Disjoint(Table):
    """K uniform distributions whose supports do not meet: one label names the truth.

    Args:
        num_hypotheses: K.
        num_labels: M, at least K; spread over the supports as evenly as it goes. K when not given.
        context_dim: d; the contexts carry nothing.
        sizes: the number of labels of each support instead.
    """

    def __init__(
        self,
        num_hypotheses: int | None = None,
        num_labels: int | None = None,
        context_dim: int = 1,
        sizes: Sequence[int] | None = None,
    ) -> None:
        if sizes is None:
            num_hypotheses = validation.whole(
                "num_hypotheses (K)", 8 if num_hypotheses is None else num_hypotheses, least=2
            )
            labels = validation.whole(
                "num_labels (M)", num_hypotheses if num_labels is None else num_labels, least=num_hypotheses
            )
            validation.fits_memory("num_labels", labels, num_hypotheses, "the table")
            sizes = [len(part) for part in np.array_split(np.arange(labels), num_hypotheses)]
        sizes = validation.list_of("sizes", sizes, "numbers of labels")
        widths = [validation.whole(f"sizes[{j}]", width, least=1) for j, width in enumerate(sizes)]
        validation.fits_memory("sizes", sum(widths), len(widths), "the table")
        owners = np.repeat(np.arange(len(widths)), widths)
        supports = owners == np.arange(len(widths))[:, None]
        super().__init__(supports / np.array(widths, dtype=np.float64)[:, None], context_dim)
