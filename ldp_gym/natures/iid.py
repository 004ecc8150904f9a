"""Independent contexts."""

from __future__ import annotations

from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.sampling import normal
from ldp_gym.natures.base import Nature, NatureView


class IID(Nature):
    """Independent standard normal contexts."""

    @property
    def num_uniforms(self) -> int:
        """One for each coordinate."""
        return self.context_dim

    def contexts(self, view: NatureView) -> FloatArray:
        return normal(view.uniforms)
