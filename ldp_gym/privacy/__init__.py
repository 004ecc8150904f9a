"""Privacy promises and their checks: audits, exact integer tables, and what floats give away."""

from ldp_gym.privacy.exact_table import ExactChannel, ExactTable

__all__ = ["ExactChannel", "ExactTable"]
