"""Independent contexts."""

from __future__ import annotations

from ldp_gym.natures.base import Nature, NatureView
from ldp_gym.numerics.arrays import FloatArray
from ldp_gym.numerics.sampling import normal


class IID(Nature):
    """Independent standard normal contexts."""

    @property
    def num_uniforms(self) -> int:
        """One for each coordinate."""
        return self.context_dim

    def contexts(self, view: NatureView) -> FloatArray:
        return normal(view.uniforms)
