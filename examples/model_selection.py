"""Private model selection on real labels: which of K classifiers suits our users best?

K = 8 classifiers of handwritten digits are fitted on slices of the data, each slice photographed in another
way: turned by a quarter, mirrored, and so on. Then users come by, one at a time, who all hold their cameras
in one of these ways. The image is public, the digit is private. Each user sends one private message, and
the learner mixes the models' predictions by what the messages say. With ``--ways 1`` there is one for all:
no model is then much better than another, and there is little to select.

The labels are the users' own: the truth is replayed, and the charge is the log-loss ``-log p_hat_t[y_t]``.
The table has its mean per user as an excess over the single model that is best in hindsight (the regret); a
negative excess means that the mixture beats every single model.

    python examples/model_selection.py --epsilons 1 3 --repeats 40
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.stats import t as student
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ldp_gym

CHANNELS = [
    "randomized-response",
    "subset-selection",
    "laplace-single",
    "split",
    "half-space",
    "adaptive-split",
    "challenge",
    "identity",
]


def photograph(images: np.ndarray, way: int) -> np.ndarray:
    """Images ``(n, 64)`` in one of the eight ways to hold a square."""
    squares = np.rot90(images.reshape(-1, 8, 8), way % 4, axes=(1, 2))
    return (squares if way < 4 else squares[:, :, ::-1]).reshape(-1, 64)


def draw_game(ways: int, users: int, seed: int) -> dict:
    """Models fitted on slices of the data, and users with pictures of their own: the rules of a game."""
    images, digits = load_digits(return_X_y=True)
    folds = StratifiedKFold(20, shuffle=True, random_state=seed).split(images, digits)
    slices = [rows for _, rows in folds]  # 90 images each, every digit among them
    models = []
    for turn, rows in enumerate(slices[:8]):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        models.append(model.fit(photograph(images[rows], turn % ways), digits[rows]))
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(np.concatenate(slices[8:]))[:users]
    seen = photograph(images[chosen], int(rng.integers(ways)))
    return {
        "hypotheses": models,
        "truth": "replay",
        "truth_kwargs": {"contexts": seen, "labels": digits[chosen]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0], metavar="EPS")
    parser.add_argument("--repeats", type=int, default=40, help="how often to split the data again")
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--ways", type=int, default=8, choices=range(1, 9), metavar="1..8")
    parser.add_argument("--channels", nargs="+", default=CHANNELS, choices=list(ldp_gym.CHANNELS))
    parser.add_argument("--learner", default="bayes")
    parser.add_argument("--csv", help="write the table here")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)  # it is the reference here

    excess: dict[tuple[str, float], list[float]] = {}
    found: dict[tuple[str, float], list[float]] = {}
    for repeat in range(arguments.repeats):
        game = draw_game(arguments.ways, arguments.users, repeat)
        uniform = ldp_gym.evaluate("uniform", {**game, "channel": "split"}, episodes=1, seed=repeat)
        alone = uniform.comparator[0] / uniform.rounds[-1]
        for epsilon in arguments.epsilons:
            excess.setdefault(("a model at random", epsilon), []).append(alone.mean() - alone.min())
            mixture = uniform.regret[0] / uniform.rounds[-1]
            excess.setdefault(("uniform mixture", epsilon), []).append(mixture)
            for name in arguments.channels:
                rules = {**game, "channel": name, "epsilon": epsilon}
                result = ldp_gym.evaluate(arguments.learner, rules, episodes=1, seed=repeat)
                excess.setdefault((name, epsilon), []).append(result.regret[0] / result.rounds[-1])
                found.setdefault((name, epsilon), []).append(result.identification_rate)

    count = arguments.repeats
    print(
        f"{arguments.learner}, {arguments.users} users, {count} splits: excess log-loss per user, with half"
    )
    print("of a 95% interval; how often the best model leads in the end")
    cells: dict[str, dict[str, str]] = {}
    for (name, epsilon), values in excess.items():
        half = student.ppf(0.975, count - 1) * np.std(values, ddof=1) / np.sqrt(count)
        cell = f"{np.mean(values):.3f} ± {half:.3f}"
        leads = f"{np.mean(found[name, epsilon]):.0%}" if (name, epsilon) in found else ""
        cells.setdefault(f"excess, eps = {epsilon:g}", {})[name] = cell
        cells.setdefault(f"found, eps = {epsilon:g}", {})[name] = leads
        print(f"eps = {epsilon:<4g} {name:20s} {cell:>16s} {leads:>6s}")
    if arguments.csv:
        import pandas as pd

        pd.DataFrame(cells).rename_axis("channel").to_csv(arguments.csv)


if __name__ == "__main__":
    main()
