"""What everything is computed with: arrays, sampling, divergences, intervals, and checks of arguments."""
