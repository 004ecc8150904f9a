"""The command ``ldp-gym train``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from ldp_gym.cli import arguments
from ldp_gym.cli.arguments import allow_local_imports, option_of, rules_of
from ldp_gym.core.errors import MissingExtraError, extra
from ldp_gym.core.files import DIRECTORY

with extra("rl", "the command ldp-gym train"):
    import typer
    from rich.console import Console
    from rich.text import Text


def train(
    context: typer.Context,
    algorithm: Annotated[str, typer.Argument(help="ppo or amortized.")],
    hypotheses: arguments.HypothesesOption = None,
    channel: Annotated[str | None, typer.Option(help="A channel's name.")] = None,
    epsilon: arguments.EpsilonOption = None,
    horizon: arguments.HorizonOption = None,
    rule: arguments.RuleOption = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Rounds to play, in whole updates.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episodes and of the network.")] = 0,
    setting: Annotated[
        list[str] | None, typer.Option(help="A setting, as name=value, such as n_steps=32; repeatable.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help=f"Directory of the model; {DIRECTORY}/ALGORITHM by default.")
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Go on from the checkpoint in that directory, with its rules and settings.")
    ] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Run the code that a checkpoint holds.")] = False,
) -> None:
    """Train an agent, and save it with its settings in a directory.

    ppo trains on the game of these options; amortized trains on random games, and is scored on this one.
    The bar shows its total KL on held-out episodes next to those of the reference learners.
    """
    allow_local_imports()
    try:
        from ldp_agents.rl import training
    except MissingExtraError as error:
        raise typer.BadParameter(str(error)) from error
    directory, console = out or DIRECTORY / algorithm, Console()
    try:
        short = {"hypotheses": hypotheses, "channel": channel, "epsilon": epsilon, "horizon": horizon}
        rules = rules_of(rule, **short)
        rounds = steps or training.algorithm_of(algorithm).steps
        config = training.Config(algorithm, rules, rounds, seed, dict(map(option_of, setting or [])))
        if resume:
            config = _config_to_resume(directory, config, steps, context)
        training.train_agent(config, directory, resume=resume, trust=trust, console=console)
    except (TypeError, ValueError, FileExistsError) as error:
        raise typer.BadParameter(str(error)) from error
    console.print(Text(f"model: {directory}"))


_NOT_OF_THE_RUN = {"context", "algorithm", "steps", "out", "resume", "trust"}


def _config_to_resume(directory: Path, asked: Any, steps: int | None, context: typer.Context) -> Any:
    """The stored configuration with new steps; the one asked for if other options were given."""
    from ldp_agents.rl.training import CONFIG, stored_config

    if not (directory / CONFIG).exists():
        raise ValueError(f"there is no run to resume in {directory}: leave --resume out to begin one")
    stored = stored_config(directory)
    if stored.algorithm != asked.algorithm:
        raise ValueError(f"{directory} holds a run of {stored.algorithm!r}, not of {asked.algorithm!r}")
    sources = {name: str(context.get_parameter_source(name)) for name in context.params}
    given = {name for name in sources if sources[name].endswith("COMMANDLINE")} - _NOT_OF_THE_RUN
    return replace(asked if given else stored, steps=steps or stored.steps)
