"""The command ``ldp-gym train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ldp_bench.commands import arguments
from ldp_bench.commands.arguments import allow_local_imports, option_of, rules_of
from ldp_gym.core.errors import MissingExtraError, extra
from ldp_gym.core.files import DIRECTORY

with extra("rl", "the command ldp-gym train"):
    import typer
    from rich.console import Console
    from rich.text import Text
    from typer import Argument, Option

_STEPS = "Rounds, in whole updates; by default 300,000 for ppo, 30,000,000 for amortized."
_SETTING = "A setting, as name=value, such as n_steps=32; repeatable."
_OUT = f"Directory of the model; {DIRECTORY}/ALGORITHM by default."


def train(
    algorithm: Annotated[str, Argument(metavar="ALGORITHM", help="ppo or amortized.")],
    hypotheses: arguments.HypothesesOption = None,
    channel: Annotated[str | None, Option(metavar="NAME", help="A channel's name.")] = None,
    epsilon: arguments.EpsilonOption = None,
    horizon: arguments.HorizonOption = None,
    rule: arguments.RuleOption = None,
    steps: Annotated[int | None, Option(metavar="N", min=1, help=_STEPS)] = None,
    seed: Annotated[int, Option(metavar="N", min=0, help="Seed of episodes and network.")] = 0,
    setting: Annotated[list[str] | None, Option(metavar="SETTING", help=_SETTING)] = None,
    out: Annotated[Path | None, Option(metavar="DIR", help=_OUT)] = None,
) -> None:
    """Train an agent, and save it with its settings in a directory.

    ppo trains on the game of these options; amortized trains on random games, and is scored on this one.
    Now and then its total KL on held-out episodes is printed next to those of the reference learners.
    """
    allow_local_imports()
    try:
        from ldp_agents.rl import training
    except MissingExtraError as error:
        raise typer.BadParameter(str(error)) from error
    directory, console = out or DIRECTORY / algorithm, Console()
    try:
        rules = rules_of(
            rule, hypotheses=hypotheses, channel=channel, epsilon=epsilon, horizon=horizon
        )
        rounds = steps or training.algorithm_of(algorithm).steps
        config = training.Config(
            algorithm, rules, rounds, seed, dict(map(option_of, setting or []))
        )
        training.train_agent(config, directory, console=console)
    except KeyboardInterrupt:
        console.print(
            Text(f"Stopped. {directory} holds the model of the last score, if there was one.")
        )
        raise typer.Exit(130) from None
    except (TypeError, ValueError, FileExistsError) as error:
        raise typer.BadParameter(str(error)) from error
    console.print(Text(f"model: {directory}"))
