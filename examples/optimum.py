"""The least risk that any adaptive eps-private channel can reach, by dynamic programming.

On K disjoint supports the public posterior w is all there is to know, and the expected risk is the expected
sum of its entropies. A channel is a family of sets S of hypotheses with masses c_S (the extremal mechanisms
of Kairouz, Oh and Viswanath 2016): its message S has probability ``c_S e^eps`` for the members of S, ``c_S``
for others. If V(w) is the risk still to come, the best channel at w is a linear program over all these sets.

Policy iteration: play the channel that is best for V in every round, fit V to what was paid, and again. A
line has the risk of Bayes as a multiple of the information limit, with its standard error; the last is that
of the channel that tells most in each round.

    python examples/optimum.py --size 8
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np

from ldp_gym import theory

Values = Callable[[np.ndarray], np.ndarray]
"""A function of posteriors ``(..., K)``."""


def entropy(w: np.ndarray) -> np.ndarray:
    return -(w * np.log(np.maximum(w, 1e-300))).sum(axis=-1)


def caution(w: np.ndarray) -> np.ndarray:
    """A first guess at what is still to come, up to a factor: better than the entropy alone."""
    return entropy(w) + 0.3 * entropy(w) ** 2 + np.sqrt(w).sum(axis=-1)


def features(w: np.ndarray) -> np.ndarray:
    """Measures of uncertainty, all zero where the truth is known, and some of their products."""
    two_largest = np.partition(w, -2, axis=-1)[..., -2:]
    second = two_largest[..., 0]
    doubt = 1.0 - two_largest[..., 1]
    roots = np.sqrt(w)
    h = entropy(w)
    s = roots.sum(axis=-1) - 1  # sum of w^(1/2)
    t = (roots * np.sqrt(roots)).sum(axis=-1) - 1  # sum of w^(3/4)
    q = 1 - (w * w).sum(axis=-1)
    powers = [h, h**2, h**3, s, s**2, t, t**2, q, q**2, doubt, doubt**2, second, second**2]
    products = [s * h, q * h, doubt * h, second * h, second * doubt]
    return np.stack([*powers, *products], axis=-1)


class Channels:
    """All eps-private channels on K supports, and for B games at a time the best of them."""

    def __init__(self, size: int, epsilon: float, games: int) -> None:
        numbers = np.arange(1, 2**size - 1)
        self.sets = (numbers[:, None] >> np.arange(size)) & 1
        self.raised = np.where(self.sets, math.exp(epsilon), 1.0)
        # Where we are in each game: K sets that make a channel, at first the names of the hypotheses.
        self.chosen = np.tile(2 ** np.arange(size) - 1, (games, 1))
        # sum_S c_S raised_S = 1 for every hypothesis; a little more for some, so that sets do not tie.
        self.ones = 1.0 + 1e-7 * np.random.default_rng(0).random((games, size))

    def after(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The probability of each set in units of c_S, and the posterior after it, ``(B, 2^K - 2, K)``."""
        joint = w[:, None, :] * self.raised
        total = joint.sum(axis=-1, keepdims=True)
        return total[..., 0], joint / total

    def best(self, gain: np.ndarray) -> np.ndarray:
        """Masses ``(B, K)`` of the :attr:`chosen` sets with the largest total gain: the simplex method."""
        active = np.arange(len(gain))
        for _ in range(500):
            basis = np.linalg.inv(self.raised[self.chosen[active]])  # rows of it are sets
            price = np.einsum(
                "bkj,bj->bk", basis, np.take_along_axis(gain[active], self.chosen[active], 1)
            )
            surplus = gain[active] - price @ self.raised.T
            enters = surplus.argmax(axis=1)
            gains = surplus.max(axis=1) > 1e-9
            if not gains.any():
                break
            active, basis, enters = active[gains], basis[gains], enters[gains]
            masses = np.einsum("bk,bkj->bj", self.ones[active], basis)
            change = np.einsum("bk,bkj->bj", self.raised[enters], basis)
            steps = np.where(change > 1e-11, masses / np.where(change > 1e-11, change, 1.0), np.inf)
            self.chosen[active, steps.argmin(axis=1)] = enters
        masses = np.linalg.inv(self.raised[self.chosen]).sum(axis=1)
        return np.maximum(masses, 0.0)


def play(
    value: Values, guess: Values, arguments: argparse.Namespace, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The posteriors ``(T, B, K)`` of the channels that are best for a value, and the risk from each on.

    What luck has added to the guess of that risk in each round has mean zero, and is taken out.
    """
    games = arguments.episodes
    size = arguments.size
    rows = np.arange(games)
    channels = Channels(size, arguments.epsilon, games)
    w = np.full((games, size), 1.0 / size)
    truths = rng.integers(size, size=games)
    posteriors = []
    costs = []
    for _ in range(arguments.horizon):
        total, after = channels.after(w)
        gains = total * (value(w)[:, None] - value(after))
        masses = channels.best(gains)

        # A message of each game, drawn from those of its channel.
        chances = masses * channels.raised[channels.chosen, truths[:, None]]
        cumulative = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
        drawn = (cumulative[:, :-1] < rng.random((games, 1))).sum(axis=1)

        possible = after[rows[:, None], channels.chosen]
        guesses = guess(possible)
        mean_guess = (masses * total[rows[:, None], channels.chosen] * guesses).sum(axis=1)
        luck = guesses[rows, drawn] - mean_guess
        posteriors.append(w)
        costs.append(entropy(w) - luck)
        w = possible[rows, drawn]
    risks = np.cumsum(costs[::-1], axis=0)[::-1] + guess(w)
    return np.array(posteriors), risks


def fit(posteriors: np.ndarray, risks: np.ndarray) -> Values:
    """Least squares, with errors in proportion to the entropy."""
    inputs = features(posteriors).reshape(risks.size, -1)
    scale = 1.0 / (0.02 + inputs[:, :1])
    inputs, outputs = inputs * scale, risks.reshape(-1, 1) * scale
    ridge = 1e-6 * np.diag((inputs**2).sum(axis=0))
    solution = np.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ outputs)[:, 0]
    return lambda w: features(w) @ solution


def report(what: str, multiples: np.ndarray) -> None:
    error = multiples.std(ddof=1) / math.sqrt(len(multiples))
    print(f"  {what}: {multiples.mean():.4f} ± {error:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=8, help="K")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--horizon", type=int, default=120)
    parser.add_argument("--episodes", type=int, default=600)
    parser.add_argument("--iterations", type=int, default=3)
    arguments = parser.parse_args()
    limit = theory.information_limit(arguments.size, arguments.horizon, arguments.epsilon)
    print(f"K = {arguments.size}, eps = {arguments.epsilon:g}: limit {limit:.2f} nats", flush=True)
    rng = np.random.default_rng(0)
    value: Values = caution
    guess: Values = lambda w: 0.0 * w[..., 0]  # noqa: E731
    for _ in range(2):  # what luck adds can be taken out once there is a guess
        guess = fit(*play(value, guess, arguments, rng))
    for iteration in range(arguments.iterations):
        posteriors, risks = play(value, guess, arguments, rng)
        report(f"policy {iteration}", risks[0] / limit)
        value = guess = fit(posteriors, risks)
    _, risks = play(entropy, guess, arguments, rng)
    report("most information", risks[0] / limit)


if __name__ == "__main__":
    main()
