"""Private model selection on real labels: which of K classifiers suits our users best?

K = 8 classifiers of handwritten digits are fitted on slices of the data, each slice photographed in another
way: turned by a quarter, mirrored, and so on. Then users come by, one at a time, who all hold their cameras
in one of these ways. The image is public, the digit is private. Each user sends one private message, and
the learner mixes the models' predictions by what the messages say. With ``--ways 1`` there is one for all:
no model is then much better than another, and there is little to select.

The labels are the users' own. No model made them, so none is the truth, and the referee of ``LDPDist-v0``,
which draws labels from one, is not asked: the channel and the learner are used by themselves. What is
charged is the log-loss ``-log p_hat_t[y_t]``. The table has its mean over the users, as an excess over the
single model that is best in hindsight; a negative excess means that the mixture beats every single model.

    python examples/model_selection.py --epsilon 1 --repeats 40
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

import ldp_agents
import ldp_gym
from ldp_gym.hypotheses.classifiers import Classifiers

CHANNELS = [
    "randomized-response",
    "subset-selection",
    "laplace-single",
    "split",
    "adaptive-split",
    "identity",
]


def photographed(images: np.ndarray, way: int) -> np.ndarray:
    """Images ``(n, 64)`` in one of the eight ways to hold a square."""
    squares = np.rot90(images.reshape(-1, 8, 8), way % 4, axes=(1, 2))
    return (squares if way < 4 else squares[:, :, ::-1]).reshape(-1, 64)


def fitted(images: np.ndarray, digits: np.ndarray, slices: list[np.ndarray], ways: int) -> Classifiers:
    """A model from each slice, the ways taking turns."""
    models = []
    for turn, rows in enumerate(slices):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        models.append(model.fit(photographed(images[rows], turn % ways), digits[rows]))
    return Classifiers(models, images.shape[1])


def play(
    channel: ldp_gym.Channel, hypotheses: Classifiers, candidates: np.ndarray, labels: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bayes' predictions for every user, and its weights in the end."""
    learner = ldp_agents.Bayes(ldp_gym.Game(hypotheses, channel, channel.horizon))
    rng, predictions = np.random.default_rng(seed), []
    for now, label in zip(candidates, labels, strict=True):
        predictions.append(learner.predict(now))
        public = learner.weights if channel.adaptive else None
        learner.update(now, channel.privatize(label, now, rng, public))
    return np.stack(predictions), learner.weights


def log_loss(predictions: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.log(predictions[np.arange(len(labels)), labels]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=40, help="how often to split the data anew")
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--ways", type=int, default=8, choices=range(1, 9), metavar="1..8")
    parser.add_argument("--channels", nargs="+", default=CHANNELS, choices=ldp_gym.CHANNELS.names())
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)  # it is the reference here
    images, digits = load_digits(return_X_y=True)

    excess: dict[str, list[float]] = {}
    found: dict[str, list[bool]] = {}
    for repeat in range(arguments.repeats):
        rng = np.random.default_rng(repeat)
        folds = StratifiedKFold(20, shuffle=True, random_state=repeat).split(images, digits)
        slices = [rows for _, rows in folds]  # 90 images each, every digit among them
        hypotheses = fitted(images, digits, slices[:8], arguments.ways)
        users = rng.permutation(np.concatenate(slices[8:]))[: arguments.users]
        way = int(rng.integers(arguments.ways))
        candidates, labels = hypotheses(photographed(images[users], way)), digits[users]
        alone = [log_loss(candidates[:, j], labels) for j in range(hypotheses.num_hypotheses)]
        best = int(np.argmin(alone))
        excess.setdefault("a model at random", []).append(np.mean(alone) - alone[best])
        uniform = log_loss(candidates.mean(axis=1), labels)
        excess.setdefault("uniform mixture", []).append(uniform - alone[best])
        for name in arguments.channels:
            channel = ldp_gym.CHANNELS[name](len(alone), 10, len(users), epsilon=arguments.epsilon)
            predictions, weights = play(channel, hypotheses, candidates, labels, repeat)
            excess.setdefault(name, []).append(log_loss(predictions, labels) - alone[best])
            found.setdefault(name, []).append(bool(weights.argmax() == best))

    count = arguments.repeats
    print(f"eps = {arguments.epsilon:g}, {arguments.users} users, {count} splits of the data")
    print("excess log-loss a user, with half of a 95% interval; how often the best model leads in the end")
    for name, values in excess.items():
        half = student.ppf(0.975, count - 1) * np.std(values, ddof=1) / np.sqrt(count)
        leads = f"   {np.mean(found[name]):4.0%}" if name in found else ""
        print(f"{name:20s} {np.mean(values):+.3f} ± {half:.3f}{leads}")


if __name__ == "__main__":
    main()
