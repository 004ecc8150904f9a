"""Batch hypothesis selection from private samples: the paper's Section 6, and methods for this question.

K distributions are known and n users hold one sample each, of which they send one eps-private message. Three
questions, each over several Dirichlet(0.3) classes:

1. How far is an estimate from the truth? Play the online game over the n users and average the predictions,
   ``p_hat = (1/n) sum_t p_hat_t``: by convexity its total variation (TV) from the truth is at most the
   average of the rounds' (Section 6).
2. How many users does it take to pick a hypothesis within TV 0.1 of a truth that is a member, on average?
3. What does a pick lose against OPT, the TV of the best hypothesis, if the truth is outside the class?

For 2 and 3, learners of the game pick the hypothesis of the largest last weight. They are compared with
methods that answer only the batch question. Two are from Gopi, Kamath, Kulkarni, Nikolov, Wu and Zhang,
"Locally Private Hypothesis Selection" (COLT 2020):

- *round-robin*: the users are shared out among all K(K-1)/2 pairs. Those of a pair say through randomized
  response whether their sample lies in its Scheffe set, ``{y : f_i[y] > f_j[y]}``. The hypothesis of the pair
  whose probability of that set is closer to the estimate wins, and who wins most pairs is picked.
- *tournament*: t rounds, one after the other. In each, the hypotheses that are left are dealt into groups at
  random, every group plays a round-robin, and its winner goes on.

Their abstract states the rounds, O(log log K), and the users, K up to logarithms. The details could not be
looked up. Assumed here: groups of ``K^(2^(s-1) / (2^t - 1))`` in round s, with which every round plays about
as many pairs; ``t = 1 + log2(log2 K)`` rounded up, so that the first groups are pairs; as many users in every
round, and for every pair of a round; ties to the smaller index.

One is from Kamath, Pour, Regehr and Woodruff, "Query-Efficient Locally Private Hypothesis Selection via the
Scheffe Graph" (2025, arXiv 2509.16180):

- *dominating set*: non-interactive. A Scheffe set serves a pair if the two differ on it by at least half of
  their TV. The users are shared out among few sets that serve all pairs, found greedily. The hypothesis
  whose largest distance from the estimates is least is picked. *By likelihood* picks the likeliest instead.

The share of a half and equal numbers of users are assumed here. Pour, Ashtiani and Asoodeh (COLT 2024, arXiv
2312.05645) have the best known order with interaction; their algorithm is left out, as only its abstract was
at hand.

    python examples/hypothesis_selection.py --picture selection.png
"""

from __future__ import annotations

import argparse
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

import ldp_gym
from ldp_gym import HYPOTHESES, theory
from ldp_gym.core.divergences import tv

NUM_LABELS = 16  # M
CLOSE = 0.1  # in TV
QUESTIONS = [
    "bayes on split",
    "bayes on half-space",
    "bayes on adaptive-split",
    "bayes on challenge",
]
ESTIMATES = ["exp3 on laplace-single", "bayes on laplace-single", *QUESTIONS]


def draw_class(size: int, seed: int) -> np.ndarray:
    """K distributions, ``(K, M)``."""
    return HYPOTHESES["dirichlet"](size, NUM_LABELS, class_seed=seed)(np.zeros(1))


# -- Gopi et al. --------------------------------------------------------------------------------------


def ask(
    inside: np.ndarray, truth: np.ndarray, users: int, epsilon: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, float]:
    """Share the users out among sets ``(n, M)``: how many are asked and say yes, and how often they lie."""
    flip = 1.0 / (1.0 + np.exp(epsilon))
    asked = rng.permutation(np.arange(len(inside)) < users % len(inside)) + users // len(inside)
    said = rng.binomial(asked, flip + (1.0 - 2.0 * flip) * np.minimum(inside @ truth, 1.0))
    return asked, said, flip


def play_pairs(
    table: np.ndarray,
    truth: np.ndarray,
    pairs: np.ndarray,
    users: int,
    epsilon: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Number of pairs ``(n, 2)`` that each hypothesis wins, ``(K,)``; the pairs share the users."""
    first, second = pairs.T
    inside = table[first] > table[second]  # the Scheffe sets, (n, M)
    asked, said, flip = ask(inside, truth, users, epsilon, rng)
    estimate = (said / np.maximum(asked, 1) - flip) / (1.0 - 2.0 * flip)
    middle = ((table[first] + table[second]) * inside).sum(axis=1) / 2.0
    first_wins = np.where(asked > 0, estimate > middle, rng.random(len(pairs)) < 0.5)
    return np.bincount(np.where(first_wins, first, second), minlength=len(table))


def all_pairs(hypotheses: np.ndarray) -> np.ndarray:
    """Pairs ``(n, 2)`` of the given hypotheses."""
    return hypotheses[np.transpose(np.triu_indices(len(hypotheses), 1))]


def round_robin(
    table: np.ndarray, truth: np.ndarray, users: int, epsilon: float, rng: np.random.Generator
) -> int:
    """Every hypothesis against every other, at once: non-interactive."""
    pairs = all_pairs(np.arange(len(table)))
    return int(play_pairs(table, truth, pairs, users, epsilon, rng).argmax())


def tournament(
    table: np.ndarray, truth: np.ndarray, users: int, epsilon: float, rng: np.random.Generator
) -> int:
    """Round-robins in small groups, then among their winners: one interaction per round."""
    size = len(table)
    rounds = 1 + int(np.ceil(np.log2(np.log2(size))))
    left = np.arange(size)
    for turn in range(rounds):
        width = size ** (2**turn / (2**rounds - 1))
        count = 1 if turn == rounds - 1 else max(1, round(len(left) / width))
        groups = [np.sort(group) for group in np.array_split(rng.permutation(left), count)]
        pairs = np.concatenate([all_pairs(group) for group in groups])
        if len(pairs):  # none if a single hypothesis is left already
            wins = play_pairs(table, truth, pairs, users // rounds, epsilon, rng)
            left = np.array([group[wins[group].argmax()] for group in groups])
    return int(left[0])


# -- Kamath et al. ------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def dominating_sets(rows: bytes, size: int) -> np.ndarray:
    """Few Scheffe sets ``(n, M)`` that together serve all pairs of a table (as bytes), chosen greedily."""
    table = np.frombuffer(rows).reshape(size, -1)
    first, second = all_pairs(np.arange(size)).T
    inside = table[first] > table[second]
    masses = inside @ table.T  # of every set under every hypothesis
    gaps = np.abs(masses[:, first] - masses[:, second])
    serves = gaps >= tv(table[first], table[second]) / 2.0
    chosen, missing = [], np.ones(len(first), dtype=bool)
    while missing.any():
        chosen.append(int((serves & missing).sum(axis=1).argmax()))
        missing &= ~serves[chosen[-1]]
    return inside[chosen]


def dominating_set(
    table: np.ndarray,
    truth: np.ndarray,
    users: int,
    epsilon: float,
    rng: np.random.Generator,
    by_likelihood: bool = False,
) -> int:
    """Ask about few sets, and pick by least largest distance, or by likelihood."""
    inside = dominating_sets(np.ascontiguousarray(table).tobytes(), len(table))
    asked, said, flip = ask(inside, truth, users, epsilon, rng)
    yes = flip + (1.0 - 2.0 * flip) * np.minimum(table @ inside.T, 1.0)  # (K, n)
    if by_likelihood:
        return int((said * np.log(yes) + (asked - said) * np.log1p(-yes)).sum(axis=1).argmax())
    distances = np.abs(said / np.maximum(asked, 1) - yes) * (asked > 0)
    return int(distances.max(axis=1).argmin())


# -- Both ---------------------------------------------------------------------------------------------


def picks(
    method: str, table: np.ndarray, truths: np.ndarray, users: int, epsilon: float, episodes: int
) -> np.ndarray:
    """The hypotheses that a method picks, ``(n, episodes)``, when samples come from ``truths`` ``(n, M)``."""
    if method in METHODS:
        return np.array(
            [
                [METHODS[method](table, truth, users, epsilon, rng) for _ in range(episodes)]
                for truth, rng in zip(
                    truths, np.random.default_rng(0).spawn(len(truths)), strict=True
                )
            ]
        )
    learner, channel = method.split(" on ")
    rules = {"hypotheses": table, "channel": channel, "epsilon": epsilon, "horizon": users}
    options = {"episodes": episodes, "checkpoints": [users]}
    if truths is table:  # every member in turn, all played together
        weights = ldp_gym.evaluate(learner, rules, truth="all", **options).weights
    else:
        results = [
            ldp_gym.evaluate(learner, rules | {"truth": truth}, seed=1000 * j, **options)
            for j, truth in enumerate(truths)
        ]
        weights = np.stack([result.weights for result in results])
    return weights.argmax(axis=-1)


METHODS = {
    "round-robin": round_robin,
    "tournament": tournament,
    "dominating set": dominating_set,
    "dominating set, by likelihood": partial(dominating_set, by_likelihood=True),
}
PICKS = [*METHODS, "bayes on scheffe", *QUESTIONS]


def mean_distance(
    method: str, table: np.ndarray, truths: np.ndarray, users: int, epsilon: float, episodes: int
) -> float:
    """The mean TV of a pick from the truths ``(n, M)``."""
    chosen = picks(method, table, truths, users, epsilon, episodes)
    return float(tv(table[chosen], truths[:, None]).mean())


def users_needed(method: str, table: np.ndarray, epsilon: float, episodes: int, most: int) -> float:
    """Number of users that make the mean TV from a member 0.1: among powers of 2, interpolated in log n."""
    before = 8, 1.0
    for users in 2 ** np.arange(4, int(np.log2(most)) + 1):
        distance = mean_distance(method, table, table, int(users), epsilon, episodes)
        if distance <= CLOSE:
            step = (before[1] - CLOSE) / (before[1] - distance)
            return float(before[0] * (users / before[0]) ** step)
        before = users, distance
    return np.inf


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", nargs="+", type=int, default=[100, 300, 1000, 3000, 10_000])
    parser.add_argument("--users-outside", nargs="+", type=int, default=[100, 300, 1000, 3000])
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=[4, 8, 16, 32, 64], help="K of question 2"
    )
    parser.add_argument("--most", type=int, default=2**17, help="where question 2 gives up")
    parser.add_argument(
        "--classes", type=int, default=3, help="how many classes, questions 2 and 3"
    )
    parser.add_argument("--episodes", type=int, default=25, help="of each truth, where K = 8")
    parser.add_argument(
        "--outside", type=float, default=0.3, help="rho: how far question 3 is from a member"
    )
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument(
        "--csv", type=Path, help="write the tables of questions 1 and 2 into this directory"
    )
    parser.add_argument("--picture", help="save a picture here")
    arguments = parser.parse_args()
    epsilon, episodes = arguments.epsilon, arguments.episodes

    print("1. TV of the average prediction from the truth, K = 8, with 95% intervals")
    curves: dict[str, list[tuple[float, float]]] = {}
    estimates_by_users: dict[str, dict[str, str]] = {}
    table = draw_class(8, seed=0)
    for name in ESTIMATES:
        learner, channel = name.split(" on ")
        for users in arguments.users:
            rules = {"hypotheses": table, "channel": channel, "horizon": users, "epsilon": epsilon}
            played = [
                ldp_gym.evaluate(
                    learner, rules, episodes=episodes, seed=1000 * j, truth=j, averages=True
                )
                for j in range(8)
            ]
            distance = tv(table[:, None], np.stack([one.average_prediction for one in played]))
            half = 1.96 * distance.std(ddof=1) / np.sqrt(distance.size)
            curves.setdefault(name, []).append((distance.mean(), half))
            cell = f"{distance.mean():.3f} ± {half:.3f}"
            estimates_by_users.setdefault(name, {})[f"{users:,}"] = cell
            print(f"  {name:26s} n = {users:6,}: {cell}", flush=True)
    needed = theory.sample_complexity(8, CLOSE, epsilon)
    print(f"  the theorem's guarantee of TV <= {CLOSE} for exp3 begins at n = {needed:,}")

    print(
        f"\n2. Users until a pick is within TV {CLOSE} of a member on average: median (range of classes)"
    )
    needs_by_size: dict[str, dict[int, str]] = {}
    for size in arguments.sizes:
        tables = [draw_class(size, seed) for seed in range(arguments.classes)]
        for method in PICKS:
            each = max(1, 8 * episodes // size)  # as many episodes in all as with K = 8
            counts = [
                users_needed(method, table, epsilon, each, arguments.most) for table in tables
            ]
            spread = f"{sorted(counts)[len(counts) // 2]:,.0f} ({min(counts):,.0f} to {max(counts):,.0f})"
            needs_by_size.setdefault(method, {})[size] = spread
            print(f"  K = {size:3d} {method:28s} {spread}", flush=True)

    print(
        f"\n3. TV of a pick above OPT, K = 8, {arguments.outside:g} of the truth foreign (range of classes)"
    )
    games = []
    for seed in range(arguments.classes):
        table = draw_class(8, seed)
        foreign = np.random.default_rng(1000 + seed).dirichlet(np.full(NUM_LABELS, 0.3), size=8)
        truths = (1 - arguments.outside) * table + arguments.outside * foreign
        games.append((table, truths, tv(truths[:, None], table).min(axis=1).mean()))
    print(f"  OPT is {np.mean([opt for _, _, opt in games]):.3f}")
    for method in PICKS:
        for users in arguments.users_outside:
            excess = [
                mean_distance(method, table, truths, users, epsilon, episodes) - opt
                for table, truths, opt in games
            ]
            spread = f"{np.mean(excess):.3f} ({min(excess):.3f} to {max(excess):.3f})"
            print(f"  {method:24s} n = {users:6,}: {spread}", flush=True)

    if arguments.csv:
        import pandas as pd

        pd.DataFrame(estimates_by_users).rename_axis("users").to_csv(arguments.csv / "batch-tv.csv")
        pd.DataFrame(needs_by_size).rename_axis("K").to_csv(arguments.csv / "batch-users.csv")
    if arguments.picture:
        draw(arguments.picture, arguments.users, curves)


def draw(path: str, users: list[int], curves: dict[str, list[tuple[float, float]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, points in curves.items():
        means, halves = zip(*points, strict=True)
        axes.errorbar(users, means, yerr=halves, marker="o", capsize=3, label=name)
    axes.set(
        xscale="log", yscale="log", xlabel="users", ylabel="TV from the truth, with 95% intervals"
    )
    axes.legend()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
