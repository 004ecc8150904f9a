"""What everything is computed with: arrays, sampling, divergences, and the checks of arguments."""
