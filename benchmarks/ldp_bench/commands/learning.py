"""The command ``ldp-gym train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ldp_bench.commands import arguments
from ldp_bench.commands.arguments import allow_local_imports, make_console, option_of, rules_of
from ldp_gym.core.errors import MissingExtraError, extra
from ldp_gym.core.files import DIRECTORY

with extra("rl", "the command ldp-gym train"):
    import typer
    from rich.text import Text
    from typer import Argument, Option

_ALGORITHM = "ppo, a2c, sac, recurrent-ppo or amortized."
_STEPS = "Rounds, in whole updates; by default n_timesteps of the algorithm's settings."
_SETTING = "A setting, as name=value, such as n_steps=32; repeatable."
_OBSERVATION = "evidence, or message for raw messages."
_OUT = f"Directory of the model; {DIRECTORY}/ALGORITHM by default."


def train(
    algorithm: Annotated[str, Argument(metavar="ALGORITHM", help=_ALGORITHM)],
    hypotheses: arguments.HypothesesOption = None,
    channel: Annotated[str | None, Option(metavar="NAME", help="A channel's name.")] = None,
    epsilon: arguments.EpsilonOption = None,
    horizon: arguments.HorizonOption = None,
    rule: arguments.RuleOption = None,
    observation: Annotated[str, Option(metavar="KIND", help=_OBSERVATION)] = "evidence",
    steps: Annotated[int | None, Option(metavar="N", min=1, help=_STEPS)] = None,
    seed: Annotated[int, Option(metavar="N", min=0, help="Seed of episodes and network.")] = 0,
    setting: Annotated[list[str] | None, Option(metavar="SETTING", help=_SETTING)] = None,
    out: Annotated[Path | None, Option(metavar="DIR", help=_OUT)] = None,
) -> None:
    """Train an agent, save it with its settings in a directory, and print its score.

    Reinforcement learning trains on the game of these options; amortized trains on random games, and
    is scored on this one. Now and then the total KL on held-out episodes is printed next to that of
    the reference learners. The file rl/settings.yaml of ldp_agents has the settings.
    """
    allow_local_imports()
    try:
        from ldp_agents.rl import training
    except MissingExtraError as error:
        raise typer.BadParameter(str(error)) from error

    directory = out or DIRECTORY / algorithm
    console = make_console()
    try:
        rules = rules_of(
            rule, hypotheses=hypotheses, channel=channel, epsilon=epsilon, horizon=horizon
        )
        settings = dict(map(option_of, setting or []))
        rounds = steps or settings.get("n_timesteps") or training.default_steps(algorithm)
        config = training.Config(algorithm, rules, rounds, seed, settings, observation)
        training.train_agent(config, directory, console=console)
    except KeyboardInterrupt:
        console.print(
            Text(f"Stopped. {directory} holds the model of the last score, if there was one.")
        )
        raise typer.Exit(130) from None
    except (TypeError, ValueError, FileExistsError) as error:
        raise typer.BadParameter(str(error)) from error
    console.print(Text(f"model: {directory}"))
