"""A suite that plays in a moment, for stores to be damaged and runs to be killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ldp_gym import bench
from ldp_gym.bench import Experiment, Finding, Results, Store, Suite


class Tiny(Suite):
    """Two channels, three learners, four cells each."""

    name = "tiny"
    title = "A suite to be attacked"
    claim = "Nothing is lost."

    def own_experiments(self, small: bool) -> list[Experiment]:
        """A few cells."""
        return [
            Experiment(
                {"hypotheses": "dirichlet", "channel": channel, "horizon": 400}, learner, episodes=8, block=2
            )
            for channel in ("laplace-single", "split")
            for learner in ("uniform", "centred-exp3", "bayes")
        ]

    def findings(self, results: Results) -> list[Finding]:
        """None."""
        return []

    def draw(self, results: Results) -> Any:
        """Nothing."""
        raise NotImplementedError


def play(directory: Path) -> list[dict[str, Any]]:
    """Run the suite, or what is left of it; every row that the store then has."""
    bench.run(Tiny(), jobs=1, out=directory)
    return list(Store(directory, read_only=True).rows())
