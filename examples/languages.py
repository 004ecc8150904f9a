"""Private language identification: users send one private word each; which language do they write?

The hypotheses are the word frequencies of 24 languages (package wordfreq), close relatives among them: Danish
and Norwegian, Czech and Slovak, Indonesian and Malay. The labels are all words that are common in any of
them, more than 10^5 with 5,500 words a language. Randomized response hides a word among all words, and at
that M its messages say nothing. Channels that compare hypotheses do not care how many words there are.

The table has the risk of the exact Bayes learner, total KL in nats over the users' words, with 95% intervals.

    pip install -e '.[examples]'   # in a checkout
    python examples/languages.py --picture languages.png
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from wordfreq import get_frequency_dict

import ldp_gym

LANGUAGES = [
    "bg", "ca", "cs", "da", "de", "en", "es", "fi", "fr", "hu", "id", "it",
    "lt", "lv", "ms", "nb", "nl", "pl", "pt", "ro", "sk", "sl", "sv", "tr",
]  # fmt: skip
CHANNELS = [
    "randomized-response",
    "laplace-single",
    "vote",
    "wheel",
    "split",
    "half-space",
    "adaptive-split",
    "challenge",
    "identity",
]


def word_table(words: int) -> np.ndarray:
    """The word frequencies of every language over all their common words, ``(K, M)``."""
    frequencies = [get_frequency_dict(language, wordlist="small") for language in LANGUAGES]
    common = [sorted(known, key=known.get, reverse=True)[:words] for known in frequencies]
    vocabulary = {word: y for y, word in enumerate(sorted(set().union(*common)))}
    table = np.zeros((len(LANGUAGES), len(vocabulary)))
    for row, known in zip(table, frequencies, strict=True):
        for word in vocabulary.keys() & known.keys():
            row[vocabulary[word]] = known[word]
    return table / table.sum(axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--words", nargs="+", type=int, default=[2, 50, 550, 5500], help="of each language"
    )
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--channels", nargs="+", default=CHANNELS, choices=list(ldp_gym.CHANNELS))
    parser.add_argument("--csv", help="write the table here")
    parser.add_argument("--picture", help="save a picture here")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)  # it is the reference here

    curves: dict[str, list[tuple[int, float, float]]] = {}
    cells: dict[str, dict[str, str]] = {}
    for words in arguments.words:
        table = word_table(words)
        size, labels = table.shape
        print(f"K = {size} languages, M = {labels:,} words, {arguments.users} users", flush=True)
        for channel in ["uniform mixture", *arguments.channels]:
            learner = "uniform" if channel == "uniform mixture" else "bayes"
            rules = {
                "hypotheses": table,
                "channel": "split" if learner == "uniform" else channel,
                "horizon": arguments.users,
                "epsilon": arguments.epsilon,
            }
            result = ldp_gym.evaluate(learner, rules, episodes=arguments.episodes)
            low, high = result.interval()
            curves.setdefault(channel, []).append((labels, result.risk, (high - low) / 2))
            cell = f"{result.risk:.1f} ± {(high - low) / 2:.1f}"
            cells.setdefault(f"M = {labels:,}", {})[channel] = cell
            print(f"  {channel:20s} {cell}", flush=True)
    if arguments.csv:
        import pandas as pd

        pd.DataFrame(cells).rename_axis("channel").to_csv(arguments.csv)
    if arguments.picture:
        draw(arguments.picture, curves, arguments)


def draw(
    path: str, curves: dict[str, list[tuple[int, float, float]]], arguments: argparse.Namespace
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, points in curves.items():
        labels, risks, halves = zip(*points, strict=True)
        style = "--" if name in ("uniform mixture", "identity") else "-"
        axes.errorbar(
            labels, risks, yerr=halves, marker="o", capsize=3, linestyle=style, label=name
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="words M",
        ylabel=f"total KL over {arguments.users} users (nats)",
        title=f"Which of {len(LANGUAGES)} languages? eps = {arguments.epsilon:g}, 95% intervals",
    )
    axes.legend(fontsize="small", loc=(0.12, 0.2), ncols=2)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
