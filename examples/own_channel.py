"""A custom channel: written, held to the contract, audited, and measured against the built-in ones.

Labels here are ordered, like marks from 0 to 20, and a report close to the truth is as good as the truth. The
exponential mechanism reports z instead of y with probability proportional to ``exp(-strength |y - z|)``. With
``strength = eps / (2 (M - 1))`` the textbook proof makes it eps-private. The exact audit finds that it spends
half of that, certifies twice the strength, and convicts a version made for neighbouring marks only.

    python examples/own_channel.py
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np

import ldp_gym
from ldp_gym import audit
from ldp_gym.audit import certify
from ldp_gym.core.sampling import categorical
from ldp_gym.testing import check_channel


class Nearby(ldp_gym.Channel):
    """Reports a label near the true one. A message is the reported label."""

    def __init__(self, *args: int, strength: float | None = None, **privacy: float) -> None:
        super().__init__(*args, **privacy)
        if strength is None:
            strength = self.epsilon / (2.0 * (self.num_labels - 1))
        distance = np.abs(np.subtract.outer(np.arange(self.num_labels), np.arange(self.num_labels)))
        scores = -strength * distance
        self.table = scores - np.logaddexp.reduce(
            scores, axis=1, keepdims=True
        )  # log q(z | y), (y, z)

    num_uniforms = 1

    @property
    def message_space(self) -> gym.spaces.Discrete:
        return gym.spaces.Discrete(self.num_labels)

    def encode(self, labels, candidates, uniforms, posterior=None):
        return categorical(np.exp(self.table)[labels], uniforms[..., 0])

    def log_density(self, messages, candidates, posterior=None):
        return self.table.T[messages]


def marks(size: int, labels: int) -> np.ndarray:
    """K bell curves over the marks, their tops spread evenly."""
    tops = np.linspace(0.2, 0.8, size)[:, None] * (labels - 1)
    table = np.exp(-0.5 * ((np.arange(labels) - tops) / (0.15 * labels)) ** 2)
    return table / table.sum(axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=int, default=2000)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--csv", help="write the table here")
    arguments = parser.parse_args()
    horizon, epsilon, labels = arguments.horizon, arguments.epsilon, 21
    table = marks(6, labels)

    textbook = Nearby(6, labels, horizon, epsilon=epsilon)
    sharper = Nearby(6, labels, horizon, epsilon=epsilon, strength=epsilon / (labels - 1))
    wrong = Nearby(6, labels, horizon, epsilon=epsilon, strength=epsilon / 2.0)
    check_channel(textbook)
    check_channel(sharper)
    for name, channel in (("textbook", textbook), ("sharper", sharper), ("wrong", wrong)):
        certificate = certify(channel, table)
        verdict = certificate.verdict
        if not certificate.holds:
            verdict += f": labels {certificate.labels} at message {certificate.message}"
        print(f"{name:10s} claims eps = {epsilon:g}, has {certificate.epsilon:.4f}: {verdict}")
    estimate = audit.estimate_epsilon(wrong, table, trials=200_000)
    print(f"{'wrong':10s} convicted by its messages only: {estimate.verdict}\n")

    rivals = {"nearby, textbook": textbook, "nearby, sharper": sharper}
    rivals |= {
        name: name for name in ("randomized-response", "subset-selection", "split", "half-space")
    }
    rows = []
    for name, channel in rivals.items():
        rules = {"hypotheses": table, "channel": channel, "horizon": horizon, "epsilon": epsilon}
        result = ldp_gym.evaluate("bayes", rules, episodes=arguments.episodes)
        low, high = result.interval()
        print(
            f"{name:20s} Bayes' total KL {result.risk:6.1f}   95% interval {low:.1f} to {high:.1f}"
        )
        rows.append({"channel": name, "total KL": f"{result.risk:.1f} ({low:.1f} to {high:.1f})"})
    if arguments.csv:
        import pandas as pd

        pd.DataFrame(rows).to_csv(arguments.csv, index=False)


if __name__ == "__main__":
    main()
