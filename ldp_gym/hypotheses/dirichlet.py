"""A random table."""

from __future__ import annotations

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.streams import Purpose, stream
from ldp_gym.hypotheses.table import Table


class Dirichlet(Table):
    """A random table, its rows drawn independently from the symmetric Dirichlet law.

    Args:
        num_hypotheses: K.
        num_labels: M.
        context_dim: d; the contexts carry nothing.
        class_seed: the seed of the table.
        concentration: the Dirichlet parameter; small values give rows with few heavy labels.
    """

    def __init__(
        self,
        num_hypotheses: int = 8,
        num_labels: int = 16,
        context_dim: int = 1,
        class_seed: int = 0,
        concentration: float = 0.3,
    ) -> None:
        alpha = validation.positive("concentration", concentration)
        num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
        labels = validation.whole("num_labels (M)", num_labels, least=2)
        validation.fits_memory("num_hypotheses", num_hypotheses, labels, "the table")
        rng = stream(Purpose.CLASS, validation.seed("class_seed", class_seed))
        super().__init__(rng.dirichlet(np.full(labels, alpha), size=num_hypotheses), context_dim)
