"""What centred EXP3, which averages a channel's losses, pays for not knowing the likelihood, truth by truth.

On the default Dirichlet table: the largest share of uniform's risk that it has on any truth, the highest
share of any single episode, and its mean risk over that of Bayes, with the standard error over the episodes.

    python benchmarks/losses.py --episodes 4
"""

from __future__ import annotations

import argparse

import numpy as np

import ldp_gym

NUM_HYPOTHESES = 8


def play(learner: str, rules: dict[str, object], episodes: int) -> np.ndarray:
    """The total KL of a learner, by truth and episode; no two episodes have the same seed."""
    results = [
        ldp_gym.evaluate(learner, {**rules, "truth": truth}, episodes=episodes, seed=truth * episodes)
        for truth in range(NUM_HYPOTHESES)
    ]
    return np.stack([result.kl[:, -1] for result in results])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    channels = ["split", "scheffe", "vote", "wheel", "designed"]
    parser.add_argument("--channels", nargs="+", default=channels, metavar="NAME")
    parser.add_argument("--horizon", type=int, default=100_000)
    parser.add_argument("--episodes", type=int, default=4, help="of every truth")
    arguments = parser.parse_args()
    for channel in arguments.channels:
        rules = {
            "hypotheses": "dirichlet",
            "num_hypotheses": NUM_HYPOTHESES,
            "horizon": arguments.horizon,
            "channel": channel,
        }
        exp3, bayes = (play(learner, rules, arguments.episodes) for learner in ("centred-exp3", "bayes"))
        uniform = play("uniform", rules, 1)
        ratio = exp3.mean() / bayes.mean()
        error = (exp3 - ratio * bayes).std(ddof=1) / np.sqrt(exp3.size) / bayes.mean()
        print(
            f"{channel}: at most {(exp3.mean(axis=1) / uniform[:, 0]).max():.2%} of uniform on any truth, "
            f"{(exp3 / uniform).max():.2%} in any episode; {exp3.mean():.1f} against {bayes.mean():.1f} "
            f"of Bayes, a ratio of {ratio:.2f} ± {error:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
