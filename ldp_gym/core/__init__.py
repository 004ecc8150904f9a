"""Arrays, sampling, divergences, validation and registries: nothing here knows of the game."""

VERSION = "0.1.0"
"""Version of the package; stored results name the version that played them."""
