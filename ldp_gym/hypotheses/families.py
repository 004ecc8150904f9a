"""Named classes: random ones, disjoint supports, refinements, and those of the lower bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, sums_in_order
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.hypotheses.base import HypothesisClass, Table, as_hypotheses, check_size

_FEW_LABELS = 64
"""Number of labels up to which the rounds are neighbours in memory, if there are several."""

_SAFE_EXPONENT = 600.0
"""Absolute value of exponents up to which sums of exponentials neither overflow nor vanish."""


class SoftmaxLinear(HypothesisClass):
    """``f_j(x) = softmax(W_j x)`` with standard normal weights ``W_j``: contexts matter.

    Args:
        num_hypotheses: K.
        num_labels: M.
        context_dim: d.
        class_seed: seed of the weights.
        scale: standard deviation of the weights; larger values give sharper distributions.
    """

    def __init__(
        self,
        num_hypotheses: int = 8,
        num_labels: int = 16,
        context_dim: int = 4,
        class_seed: int = 0,
        scale: float = 1.0,
    ) -> None:
        super().__init__(num_hypotheses, num_labels, context_dim)
        num_weights = self.num_hypotheses * self.num_labels
        validation.fits_memory("context_dim", self.context_dim, num_weights, "the weights")
        scale = validation.positive("scale", scale, most=1e100)

        rng = stream(Purpose.CLASS, validation.seed("class_seed", class_seed))
        shape = (self.num_hypotheses, self.num_labels, self.context_dim)
        self.weights = scale * rng.standard_normal(shape)
        self.weights.flags.writeable = False
        self._by_coordinate = np.ascontiguousarray(np.moveaxis(self.weights, -1, 0))  # (d, K, M)

        # Contexts with larger coordinates may have unsafe exponents.
        largest_sum = np.abs(self.weights).sum(axis=-1).max()
        self._safe_coordinate = _SAFE_EXPONENT / max(1e-300, largest_sum)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the softmax of ``W_j x`` at contexts x ``(..., d)``, ``(..., K, M)``."""
        rows = np.asarray(contexts, dtype=np.float64).reshape(-1, self.context_dim)
        candidates = self._exponents(rows)

        # Exponents that are large for floats are shifted, so that the largest of a row is 0.
        coordinates = np.abs(rows)
        if not coordinates.max(initial=0.0) <= self._safe_coordinate:  # or NaN
            large = ~(coordinates <= self._safe_coordinate).all(axis=-1)
            candidates[large] -= candidates[large].max(axis=-1, keepdims=True)

        np.exp(candidates, out=candidates)
        candidates *= 1.0 / self._totals(candidates)  # products are faster than quotients
        return candidates.reshape(*contexts.shape[:-1], *candidates.shape[1:])

    def _exponents(self, rows: FloatArray) -> FloatArray:
        """Return ``W_j x`` of contexts ``(n, d)``, ``(n, K, M)``, in the layout that is fastest.

        By einsum, not by a BLAS product: its sums do not depend on the number of rows, so that the
        labels do not either.
        """
        few_rows = 5 * len(rows) < self.num_labels
        if len(rows) == 1 or (few_rows and self.num_labels > _FEW_LABELS):
            # The labels are neighbours in memory.
            exponents = np.empty((len(rows), self.num_hypotheses, self.num_labels))
            for row, table in zip(rows, exponents, strict=True):
                np.einsum("d,dkm->km", row, self._by_coordinate, out=table)
        else:
            # The rows are neighbours in memory.
            exponents = np.empty((*self.weights.shape[:2], len(rows))).transpose(2, 0, 1)
            np.einsum("dr,kmd->rkm", np.ascontiguousarray(rows.T), self.weights, out=exponents)
        return exponents

    def _totals(self, masses: FloatArray) -> FloatArray:
        """Return the sums ``(n, K, 1)`` over the labels of masses ``(n, K, M)``.

        They are added up in an order that does not depend on the layout, to the same last bit.
        """
        if self.num_labels > _FEW_LABELS:
            return sums_in_order(masses)
        if len(masses) == 1:
            # The order in which a reduction adds up labels that are no neighbours in memory.
            return np.add.accumulate(masses, axis=-1)[..., -1:]
        return np.add.reduce(masses, axis=-1, keepdims=True)


class Dirichlet(Table):
    """A random table, whose rows are drawn from the symmetric Dirichlet distribution.

    Args:
        num_hypotheses: K.
        num_labels: M.
        context_dim: d; the contexts have no effect.
        class_seed: seed of the table.
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
        hypotheses, labels = check_size(num_hypotheses, num_labels)
        rng = stream(Purpose.CLASS, validation.seed("class_seed", class_seed))
        super().__init__(rng.dirichlet(np.full(labels, alpha), size=hypotheses), context_dim)


class Disjoint(Table):
    """K uniform distributions with disjoint supports: a single label reveals the truth.

    Args:
        num_hypotheses: K.
        num_labels: M, at least K; spread over the supports as evenly as possible. K when not given.
        context_dim: d; the contexts have no effect.
    """

    def __init__(
        self, num_hypotheses: int = 8, num_labels: int | None = None, context_dim: int = 1
    ) -> None:
        if num_labels is None:
            num_labels = num_hypotheses
        hypotheses, labels = check_size(num_hypotheses, num_labels)
        validation.whole("num_labels (M)", labels, least=hypotheses)

        table = np.zeros((hypotheses, labels))
        supports = np.array_split(np.arange(labels), hypotheses)
        for row, support in zip(table, supports, strict=True):
            row[support] = 1.0 / len(support)
        super().__init__(table, context_dim)


class Refined(HypothesisClass):
    """A base class with every label cut into equal parts: only M grows.

    Args:
        base: the name of the base class, a table, or a HypothesisClass.
        parts: number of parts of each label.
        num_hypotheses: K of a named base.
        num_labels: M after the cut, a multiple of ``parts``.
        context_dim: d of a named base.
        class_seed: seed of a named base.
        **base_options: further options of a named base.

    Example:
        >>> Refined([[0.5, 0.5], [1.0, 0.0]], parts=2)(np.zeros(1)).tolist()
        [[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]]
    """

    def __init__(
        self,
        base: str | npt.ArrayLike | HypothesisClass = "dirichlet",
        parts: int = 2,
        num_hypotheses: int | None = None,
        num_labels: int | None = None,
        context_dim: int | None = None,
        class_seed: int = 0,
        **base_options: Any,
    ) -> None:
        self.parts = validation.whole("parts", parts, least=1)
        if num_labels is not None:
            num_labels = validation.whole("num_labels (M)", num_labels, least=2)
            if num_labels % self.parts:
                raise ValueError(
                    f"num_labels must be a multiple of parts={self.parts}, got {num_labels}"
                )
            num_labels //= self.parts
        sizes = {
            "num_hypotheses": num_hypotheses,
            "num_labels": num_labels,
            "context_dim": context_dim,
        }
        self.base = as_hypotheses(base, sizes | {"class_seed": class_seed}, base_options)
        super().__init__(
            self.base.num_hypotheses, self.base.num_labels * self.parts, self.base.context_dim
        )
        self.constant = self.base.constant
        self._table = None
        if self.constant:
            self._table = self._refine(np.zeros(self.context_dim))

    def _refine(self, contexts: FloatArray) -> FloatArray:
        """Return the base's candidates at contexts ``(..., d)``, with each label cut; read-only.

        All parts of a label have the same probability.
        """
        candidates = np.repeat(self.base(contexts), self.parts, axis=-1)
        candidates /= self.parts
        candidates.flags.writeable = False
        return candidates

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the base's candidates with each label cut, ``(..., K, M)``."""
        if self._table is not None:
            return self._table
        return self._refine(contexts)


class Hadamard(Table):
    """The paper's lower bound's class: pairs that private channels hardly tell apart (eq. (16)).

    Here ``num_hypotheses`` is 2K for K pairs, and M is the power of two N with
    ``N/2 <= K <= N - 1``. Pair i uses column i + 1 of the Sylvester-Hadamard matrix (column 1 is
    all ones)::

        p_{i,1} = (1 - H_{i+1}) / N,    p_{i,2} = p_{i,1} + a H_{i+1} / N

    Args:
        num_hypotheses: 2K, even.
        context_dim: d; the contexts have no effect.
        epsilon: the privacy level that the gap is made for.
        horizon: the horizon T that the gap is made for.
        gap: ``a`` in [0, 1]; from epsilon and the horizon when not given.
    """

    def __init__(
        self,
        num_hypotheses: int = 8,
        context_dim: int = 1,
        epsilon: float = 1.0,
        horizon: int = 1000,
        gap: float | None = None,
    ) -> None:
        from scipy.linalg import hadamard as sylvester_matrix  # imported here: it takes a while

        num_hypotheses = validation.whole(
            "num_hypotheses (2K, for K pairs)", num_hypotheses, least=2
        )
        if num_hypotheses % 2:
            raise ValueError(
                f"the Hadamard class comes in pairs: num_hypotheses must be even, got "
                f"{num_hypotheses}"
            )
        validation.fits_memory("num_hypotheses", num_hypotheses, 2 * num_hypotheses, "the table")
        if gap is None:
            gap = hadamard_gap(num_hypotheses, horizon, epsilon)
        self.gap = validation.real("gap (a)", gap)
        if not 0.0 <= self.gap <= 1.0:
            raise ValueError(
                f"the Hadamard class needs a gap a in [0, 1], got {self.gap:.6g}: "
                f"raise the horizon to at least {hadamard_horizon(num_hypotheses, epsilon):.0f}"
            )

        pairs = num_hypotheses // 2
        order = 1 << pairs.bit_length()
        columns = sylvester_matrix(order)[1 : pairs + 1]
        first = (1.0 - columns) / order
        second = first + self.gap * columns / order
        table = np.stack([first, second], axis=1).reshape(num_hypotheses, order)
        super().__init__(table, context_dim)


def _distinguishability(epsilon: float) -> float:
    """Return ``min{(e^eps - 1)^2, 1} e^eps`` of eq. (16); infinity if too large for a float."""
    epsilon = validation.squarable("epsilon", epsilon)
    growth = math.inf
    if epsilon < 700.0:  # else e^eps overflows
        growth = math.exp(epsilon)
    # The minimum is 1 from eps = log 2 on, so that a larger eps need not be squared.
    return min(math.expm1(min(epsilon, 1.0)) ** 2, 1.0) * growth


def hadamard_gap(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """Return the gap ``a`` of Appendix A, eq. (16), for ``num_hypotheses = 2K`` (K pairs).

    Example:
        >>> round(hadamard_gap(8, horizon=1000, epsilon=1.0), 4)
        0.0128
    """
    rounds = validation.whole("horizon (T)", horizon, least=1, most=10**150)
    pairs = validation.whole("num_hypotheses (2K)", num_hypotheses, least=2) / 2.0
    return math.sqrt(pairs / (9.0 * rounds * _distinguishability(epsilon)))


def hadamard_horizon(num_hypotheses: int, epsilon: float) -> float:
    """Return the least horizon of the paper's Theorem 3, below which the gap would exceed 1.

    ``num_hypotheses`` is 2K, for K pairs of hypotheses.
    """
    pairs = validation.whole("num_hypotheses (2K)", num_hypotheses, least=2) / 2.0
    rounds = pairs / (9.0 * _distinguishability(epsilon))
    if math.isinf(rounds):
        return math.inf
    return math.ceil(rounds)


class HadamardStar(Table):
    """The class of our lower bounds: a centre and K - 1 leaves that messages hardly tell apart.

    Let N be the least power of two above K - 1, ``H_1, ..., H_{K-1}`` Hadamard columns (signs) on N
    labels, U the uniform distribution on these labels, and ``d_0`` the point mass at a further
    label 0. Hypothesis 0 is the centre ``(1-a) d_0 + a U``, and the leaves are
    ``(1-a) d_0 + a U (1 + H_k)``. With ``loss="tv"`` there is no label 0: they are U and
    ``U (1 + a H_k)``.

    Args:
        num_hypotheses: K.
        context_dim: d; the contexts have no effect.
        epsilon: the privacy level that the amplitude is made for.
        horizon: the horizon T that the amplitude is made for.
        amplitude: ``a`` in (0, 1]; from epsilon and the horizon when not given
            (:func:`star_amplitude`).
        loss: "kl" or "tv", the loss that the lower bound is about.

    Example:
        >>> HadamardStar(3, amplitude=0.8)(np.zeros(1)).round(3).tolist()
        [[0.2, 0.2, 0.2, 0.2, 0.2], [0.2, 0.4, 0.0, 0.4, 0.0], [0.2, 0.4, 0.4, 0.0, 0.0]]
    """

    def __init__(
        self,
        num_hypotheses: int = 8,
        context_dim: int = 1,
        epsilon: float = 1.0,
        horizon: int = 1000,
        amplitude: float | None = None,
        loss: str = "kl",
    ) -> None:
        from scipy.linalg import hadamard as sylvester_matrix  # imported here: it takes a while

        size = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
        validation.fits_memory("num_hypotheses", size, 2 * size, "the table")
        loss = validation.choice("loss", loss, ("kl", "tv"))
        if amplitude is None:
            amplitude = star_amplitude(size, horizon, epsilon, loss)
        self.amplitude = validation.positive("amplitude (a)", amplitude, most=1.0)

        # Row 0 of the matrix, all ones, is no leaf: the centre takes its place, without signs.
        num_signs = 1 << (size - 1).bit_length()
        signs = sylvester_matrix(num_signs)[:size]
        signs[0] = 0
        if loss == "kl":
            signed = self.amplitude * (1.0 + signs) / num_signs
            table = np.column_stack([np.full(size, 1.0 - self.amplitude), signed])
        else:
            table = (1.0 + self.amplitude * signs) / num_signs
        super().__init__(table, context_dim)


def star_amplitude(num_hypotheses: int, horizon: int, epsilon: float, loss: str = "kl") -> float:
    """Return the amplitude of ``hadamard-star`` with the largest lower bound for large T.

    It is ``1.5 sqrt((K-1) / T) / (e^{eps/2} - 1)`` for KL, at most 1; for TV the denominator is
    ``sinh(eps/2)``.

    Example:
        >>> round(star_amplitude(8, horizon=1000, epsilon=1.0), 4)
        0.1935
    """
    size = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
    rounds = validation.whole("horizon (T)", horizon, least=1, most=10**150)
    half = validation.positive("epsilon", epsilon, most=300.0) / 2.0
    loss = validation.choice("loss", loss, ("kl", "tv"))
    if loss == "kl":
        growth = math.expm1(half)
    else:
        growth = math.sinh(half)
    return min(1.0, 1.5 * math.sqrt((size - 1) / rounds) / growth)
