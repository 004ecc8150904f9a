"""The moving picture of the README: users are asked for their label, and users are asked about hypotheses.

Both columns play one episode: the same truth, users and eps, and the exact Bayesian learner. Only the
question differs. The class has 16 groups of equal labels, so 1,024 labels fit into 16 bars.

    python examples/animation.py --gif animation.gif
"""

from __future__ import annotations

import argparse
import io
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import ldp_agents
import ldp_gym  # noqa: F401 - registers LDPDist-v0

QUESTIONS = {
    "randomized-response": ("Which label do you have?", "#c44e52"),
    "split": ("Which half of the hypotheses fits?", "#2a6f97"),
}
GREY = "#9a9a9a"


@dataclass
class Episode:
    """One episode as a spectator sees it, round by round."""

    truth: np.ndarray
    predictions: np.ndarray
    beliefs: np.ndarray
    losses: np.ndarray
    member: int


def play(channel: str, arguments: argparse.Namespace) -> Episode:
    parts = arguments.labels // 16
    env = gym.make(
        "LDPDist-v0",
        hypotheses="refined",
        hypotheses_kwargs={"parts": parts},
        channel=channel,
        epsilon=1.0,
        horizon=arguments.users,
        reveal=True,  # for the picture: the learner sees only observations
    )
    learner = ldp_agents.make("bayes", env)
    observation, _ = env.reset(seed=arguments.seed)
    predictions, beliefs, losses, over = [], [], [], False
    while not over:
        prediction = learner.act(observation)
        predictions.append(prediction.reshape(16, parts).sum(axis=1))
        beliefs.append(learner.weights)
        observation, _, over, _, info = env.step(prediction)
        losses.append(info["kl"])
    member = int(info["truth"])
    truth = env.unwrapped.game.hypotheses(observation["context"])[member]
    totals = np.cumsum(losses)
    return Episode(
        truth.reshape(16, parts).sum(axis=1),
        np.array(predictions),
        np.array(beliefs),
        totals,
        member,
    )


def draw(episodes: dict[str, Episode], users: int, arguments: argparse.Namespace) -> Image.Image:
    """Both episodes after this many users, as a picture of 720 x 396 pixels."""
    figure = Figure(figsize=(7.2, 3.96), dpi=100)
    panels = figure.subplots(2, 3, width_ratios=[1, 1, 1.05], height_ratios=[1.35, 1])
    figure.subplots_adjust(0.03, 0.135, 0.97, 0.77, wspace=0.16, hspace=0.5)
    figure.text(0.03, 0.93, "Same privacy, different question", size=13, weight="bold")
    words = (
        f"{arguments.labels:,} labels, 8 hypotheses, eps = 1; one episode (seed {arguments.seed})"
    )
    figure.text(0.97, 0.93, words, size=8, color="#555555", ha="right")
    for column, (channel, episode) in enumerate(episodes.items()):
        question, colour = QUESTIONS[channel]
        top, bottom = panels[:, column]
        figure.text(
            top.get_position().x0, 0.845, f"“{question}”", size=8.4, color=colour, weight="bold"
        )
        top.bar(range(16), episode.truth, width=0.9, color="#d5d5d5")
        top.bar(range(16), episode.predictions[users], width=0.45, color=colour)
        top.set(ylim=(0, 1.15 * episode.truth.max()))
        top.set_title("prediction on the truth (grey)", size=8, loc="left", pad=3)
        hues = [colour if hypothesis == episode.member else GREY for hypothesis in range(8)]
        bottom.bar(range(8), episode.beliefs[users], width=0.8, color=hues)
        bottom.set(ylim=(0, 1.05))
        bottom.set_title("belief (colour: the truth)", size=8, loc="left", pad=3)
        bottom.set_xlabel(channel, size=8)
    for panel in panels[:, :2].flat:
        panel.set(xticks=[], yticks=[])
        panel.spines[["top", "right", "left"]].set_visible(False)
    grid = panels[0, 2].get_gridspec()
    for panel in panels[:, 2]:
        panel.remove()
    risk = figure.add_subplot(grid[:, 2])
    most = 1.1 * max(episode.losses[-1] for episode in episodes.values())
    for channel, episode in episodes.items():
        colour = QUESTIONS[channel][1]
        risk.plot(np.arange(1, users + 2), episode.losses[: users + 1], color=colour, linewidth=2)
        if (
            np.ptp([other.losses[users] for other in episodes.values()]) > 0.06 * most
        ):  # else they overlap
            place, words = (users + 1, episode.losses[users]), {"size": 11, "weight": "bold"}
            risk.annotate(
                f"{place[1]:.0f}", place, (4, -1), textcoords="offset points", color=colour, **words
            )
    risk.set(xlim=(0, 1.18 * arguments.users), ylim=(0, most), xticks=[0, arguments.users])
    risk.tick_params(labelsize=8)
    risk.set_title("total KL loss (nats)", size=8, loc="left", pad=3)
    risk.set_xlabel(f"user {users + 1} of {arguments.users}", size=8)
    risk.spines[["top", "right"]].set_visible(False)
    memory = io.BytesIO()
    figure.savefig(memory, format="png")
    return Image.open(memory).convert("RGB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, default=1024, help="a multiple of 16")
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--frames", type=int, default=72)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gif", help="save the picture here")
    arguments = parser.parse_args()
    episodes = {channel: play(channel, arguments) for channel in QUESTIONS}
    for channel, episode in episodes.items():
        print(f"{channel:20} total KL {episode.losses[-1]:5.1f} nats over {arguments.users} users")
    if not arguments.gif:
        return
    places = np.linspace(0, 1, arguments.frames) ** 1.6 * (
        arguments.users - 1
    )  # slower while beliefs move
    frames = [draw(episodes, users, arguments) for users in np.unique(places.astype(int))]
    palette = frames[-1].quantize(32)
    first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    pauses = [100] * len(others) + [3000]
    first.save(
        arguments.gif, save_all=True, append_images=others, duration=pauses, loop=0, optimize=True
    )


if __name__ == "__main__":
    main()
