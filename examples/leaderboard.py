"""The learners on the main channels of the default game: the table that `make demo` prints.

A cell is the total KL over T rounds, in nats, with its 95% interval; the same seeds for all. A dash marks a
channel whose messages the learner does not understand. Beside the learners stand the theorem's bound for
the channel, where the paper has one, and the risk without privacy, from which its price is measured.

    python examples/leaderboard.py --horizon 1000 --episodes 200 --channels split vote --learners bayes mle
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import ldp_agents
import ldp_gym
from ldp_gym import theory
from ldp_gym.scenario import Scenario

CHANNELS = [
    "laplace-vector",
    "laplace-single",
    "randomized-response",
    "split",
    "wheel",
    "adaptive-split",
    "identity",
]
LEARNERS = ["uniform", "wma", "exp3", "centred-exp3", "mle", "ppo", "amortized", "bayes"]


def settings(channel: str, horizon: int, epsilon: float) -> dict:
    delta = 0.0 if ldp_gym.CHANNELS[channel].pure else 1e-5
    return {"channel": channel, "horizon": horizon, "epsilon": epsilon, "delta": delta}


def bound(channel: str, size: int, horizon: int, epsilon: float) -> str:
    if channel == "laplace-single":
        return f"{theory.exp3_bound(size, horizon, epsilon):,.0f}"
    if channel == "laplace-vector":
        return f"{theory.wma_bound(size, horizon, epsilon, 1e-5):,.0f}"
    return f"{theory.nonprivate_bound(size):.2f}" if channel == "identity" else "-"


def cell(learner: str, game: dict, episodes: int) -> str:
    try:
        result = ldp_gym.evaluate(partial(ldp_agents.make, learner), game, episodes=episodes)
    except ldp_agents.IncompatibleChannelError:
        return "-"
    low, high = result.interval()
    digits = 0 if result.risk >= 100 else 1
    return f"{result.risk:,.{digits}f} ± {(high - low) / 2:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=int, default=1000, help="rounds of an episode (default 1000)")
    parser.add_argument("--episodes", type=int, default=100, help="episodes a cell (default 100)")
    parser.add_argument("--epsilon", type=float, default=1.0, help="privacy level (default 1)")
    parser.add_argument(
        "--channels", nargs="+", default=CHANNELS, choices=ldp_gym.CHANNELS.names(), metavar="NAME"
    )
    parser.add_argument(
        "--learners", nargs="+", default=LEARNERS, choices=ldp_gym.LEARNERS.names(), metavar="NAME"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)  # it is the reference here

    console = Console() if sys.stdout.isatty() else Console(width=120)
    channels, learners = arguments.channels, arguments.learners
    game = Scenario(horizon=arguments.horizon).game
    title = (
        f"Total KL (nats) over T = {arguments.horizon:,} rounds, eps = {arguments.epsilon:g}, "
        f"K = {game.num_hypotheses}, M = {game.num_labels}, softmax-linear; {arguments.episodes} episodes"
    )
    table = Table(title=title, caption="± half of a 95% interval")
    for column in ("channel", *learners, "bound"):
        table.add_column(column, no_wrap=True, justify="left" if column == "channel" else "right")
    bar = Progress(
        TextColumn("{task.description:40s}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    with bar:
        task = bar.add_task("playing", total=len(channels) * len(learners))
        for channel in channels:
            row = []
            for learner in learners:
                bar.update(task, description=f"{learner} on {channel}")
                rules = settings(channel, arguments.horizon, arguments.epsilon)
                row.append(cell(learner, rules, arguments.episodes))
                bar.advance(task)
            limit = bound(channel, game.num_hypotheses, arguments.horizon, arguments.epsilon)
            table.add_row(channel, *row, limit)
    console.print(table)
    console.print("The row 'identity' has no privacy: its distance to the others is the price of privacy.")


if __name__ == "__main__":
    main()
