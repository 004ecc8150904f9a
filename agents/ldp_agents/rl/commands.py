"""``ldp-gym train`` and ``ldp-gym ship``: learned baselines from the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from ldp_agents.rl import shipping
from ldp_agents.rl.config import CONFIG, Config, read_config
from ldp_agents.rl.pretrained import WEIGHTS_DIRECTORY
from ldp_gym.bench.store import DIRECTORY
from ldp_gym.cli.arguments import option_of, search_here
from ldp_gym.core.errors import MissingExtraError, extra

with extra("bench", "the command ldp-gym"):
    import typer
    from rich.console import Console
    from rich.text import Text
    from typer.core import TyperCommand


class TrainCommand(TyperCommand):
    """``ldp-gym train``, whose help names every setting; it reads them when asked, as that takes PyTorch."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The options, and each algorithm's steps and settings with their defaults."""
        try:
            from ldp_agents.rl.algorithms import ALGORITHMS
        except MissingExtraError as error:
            self.epilog = str(error).replace("[", "\\[")
        else:
            defaults = ", ".join(f"{name} {known.steps:,}" for name, known in ALGORITHMS.items())
            for parameter in self.params:
                if parameter.name == "steps":
                    parameter.help = f"Rounds to play in all. Default: {defaults}."  # type: ignore[attr-defined]
            lines = [f"{name}: {_settings_text(known.settings)}" for name, known in ALGORITHMS.items()]
            self.epilog = "\n\n".join(["Settings of the algorithms, by --setting name=value:", *lines])
        super().format_help(ctx, formatter)


def _settings_text(settings: type[Any]) -> str:
    """The settings with their defaults, in one line."""
    pairs = vars(settings()).items()
    values = [f"{name}={list(value) if isinstance(value, tuple) else value}" for name, value in pairs]
    return ", ".join(values).replace("[", "\\[")


def train(
    context: typer.Context,
    algorithm: Annotated[
        str,
        typer.Argument(help="ppo, amortized, any-truth, recurrent, sac, or sb3 to train a policy further."),
    ],
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
    steps: Annotated[
        int | None, typer.Option(min=1, help="Rounds to play in all; each algorithm has its own default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes and of the network.")] = 0,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            help="A setting of the algorithm, as name=value, such as learning_rate=0.001; repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help=f"Where the model goes; {DIRECTORY}/ALGORITHM if not given.")
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Go on from the checkpoint in that directory, with its rules and settings.")
    ] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Run the code that a checkpoint holds.")] = False,
) -> None:
    """Train a learned baseline, and leave it in a directory with all that made it.

    The bar shows its total KL on held-out episodes beside those of the reference learners.
    """
    search_here()
    try:
        from ldp_agents.rl import algorithms, training
    except MissingExtraError as error:
        raise typer.BadParameter(str(error)) from error
    directory, console = out or DIRECTORY / algorithm, Console()
    try:
        given = {
            "hypotheses": hypotheses,
            "num_hypotheses": num_hypotheses,
            "num_labels": num_labels,
            "class_seed": class_seed,
            "redraw_hypotheses": redraw or None,
            "channel": channel,
            "channel_kwargs": dict(map(option_of, option)) if option else None,
            "epsilon": epsilon,
            "delta": delta,
            "horizon": horizon,
        }
        rules = {name: value for name, value in given.items() if value is not None}
        rounds = steps or algorithms.algorithm_of(algorithm).steps
        config = Config(algorithm, rules, rounds, seed, dict(map(option_of, setting or [])))
        if resume:
            config = _config_to_resume(directory, config, steps, context)
        training.train(config, directory, resume=resume, trust=trust, console=console)
    except (TypeError, ValueError, FileExistsError) as error:
        raise typer.BadParameter(str(error)) from error
    console.print(Text(f"model: {directory}"))


train.command_class = TrainCommand  # type: ignore[attr-defined]

_NOT_OF_THE_RUN = {"context", "algorithm", "steps", "out", "resume", "trust"}


def _config_to_resume(directory: Path, asked: Config, steps: int | None, context: typer.Context) -> Config:
    """The stored configuration of a run, with the steps asked for; the one asked for if it names more."""
    if not (directory / CONFIG).exists():
        raise ValueError(f"there is no run to resume in {directory}: leave --resume out to begin one")
    sources = {name: str(context.get_parameter_source(name)) for name in context.params}
    if {name for name in sources if sources[name].endswith("COMMANDLINE")} - _NOT_OF_THE_RUN:
        return asked
    stored = read_config(directory)
    if stored.algorithm != asked.algorithm:
        raise ValueError(f"{directory} holds a run of {stored.algorithm!r}, not of {asked.algorithm!r}")
    return replace(stored, steps=stored.steps if steps is None else steps)


def ship(
    directory: Annotated[Path, typer.Argument(help="What 'ldp-gym train --out' has left.")],
    replace: Annotated[bool, typer.Option(help="Take the place of the model that ships now.")] = False,
) -> None:
    """Put a trained model among those that come with the package, if it passes the checks.

    It then goes by the name of its algorithm.
    """
    console = Console()
    try:
        target, ratios = shipping.ship(directory, WEIGHTS_DIRECTORY, replace=replace)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from error
    for name, ratio in ratios.items():
        console.print(Text(f"{name}: {ratio:.3f} times Bayes"))
    console.print(Text(f"shipped: {target}"))
