"""``ldp-gym train``: a learned baseline from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ldp_agents.rl.config import Config
from ldp_gym.bench.store import DIRECTORY
from ldp_gym.cli.options import option_of


def train(
    algorithm: Annotated[str, typer.Argument(help="ppo, amortized, recurrent or sac.")],
    hypotheses: Annotated[str, typer.Option(help="A class's name, or module:Class.")] = "softmax-linear",
    num_hypotheses: Annotated[int | None, typer.Option(help="K, for a named class.")] = None,
    num_labels: Annotated[int | None, typer.Option(help="M, for a named class.")] = None,
    class_seed: Annotated[int, typer.Option(help="The seed of a random class.")] = 0,
    redraw: Annotated[bool, typer.Option(help="Draw another class of the family each episode.")] = False,
    channel: Annotated[str, typer.Option(help="A channel's name, or module:Class.")] = "laplace-single",
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the channel, as name=value; repeatable.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The privacy level.")] = 1.0,
    delta: Annotated[float, typer.Option(help="0 for pure channels.")] = 0.0,
    horizon: Annotated[int, typer.Option(help="T.")] = 1000,
    steps: Annotated[int | None, typer.Option(min=1, help="Rounds to play; the algorithm knows.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the games and of the network.")] = 0,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="A setting of the algorithm, as name=value, such as network=flat; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where the model goes; ldp-gym-results/ALGORITHM if not given.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on from the checkpoint in that directory.")] = False,
) -> None:
    """Train a learned baseline, and leave it in a directory with all that made it.

    The bar shows its total KL on held-out episodes beside those of the reference learners.
    """
    try:
        from ldp_agents.rl import train as training

        rounds = steps or training.default_steps(algorithm)
    except ImportError as error:
        raise typer.BadParameter(f"training needs {error.name}: pip install 'ldp-gym[rl]'") from error
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    try:
        given = {
            "num_hypotheses": num_hypotheses,
            "num_labels": num_labels,
            "channel_kwargs": dict(option_of(text) for text in option or []) or None,
            "redraw_hypotheses": redraw or None,
        }
        game = {
            "hypotheses": hypotheses,
            "class_seed": class_seed,
            "channel": channel,
            "epsilon": epsilon,
            "delta": delta,
            "horizon": horizon,
            **{name: value for name, value in given.items() if value is not None},
        }
        settings = dict(option_of(text) for text in setting or [])
        config = Config(algorithm, game, rounds, seed, settings)
        directory = out or DIRECTORY / algorithm
        console = Console()
        training.train(config, directory, resume=resume, console=console)
    except (TypeError, ValueError, FileExistsError) as error:
        raise typer.BadParameter(str(error)) from error
    console.print(f"model: {directory}")
