"""Arrays, sampling, divergences, checks of values and arrays, registries: nothing here plays a game."""

VERSION = "0.1.0"
"""Version of the package; stored results name the version that played them."""
