"""Run a suite: play the cells that are not yet in the store, on one machine or on a Dask cluster."""

from __future__ import annotations

import platform
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from ldp_bench.contained import call_contained
from ldp_bench.experiment import PARTY_REGISTRIES, Cell, Experiment, make_scenario
from ldp_bench.fingerprints import learner_code
from ldp_bench.results import Results, grouped
from ldp_bench.store import Outcome, Store
from ldp_bench.suites import SUITES, Suite
from ldp_gym.core import validation
from ldp_gym.core.errors import (
    BlindChannelWarning,
    BrokenPromiseWarning,
    IncompatibleChannelError,
    LearnerFailedError,
    NoPrivacyWarning,
    OutsideTrainingWarning,
    printable,
    summarize,
)
from ldp_gym.core.files import DIRECTORY
from ldp_gym.core.registry import is_address
from ldp_gym.engine.blindness import warn_of_blind_pairs
from ldp_gym.engine.learners import as_make_learner, is_directory
from ldp_gym.engine.rules import Rules
from ldp_gym.evaluation import Evaluation, Recording, evaluate
from ldp_gym.natures.base import IID
from ldp_gym.privacy.certificate import warn_of_broken_promise
from ldp_gym.processes import count_jobs, share_out
from ldp_gym.testing import (
    check_channel,
    check_hypotheses,
    check_learner,
    check_nature,
    check_truth,
)

_LOSSES_OF_CLAIMS = ("kl", "tv", "tv_squared")
"""Losses that are always stored: theorems bound the sum of squared TV too."""

_SILENCED = (
    BlindChannelWarning,  # a run gives it once, before it plays
    NoPrivacyWarning,  # the tables show that the channel is not private
    OutsideTrainingWarning,  # the suite chooses games of another kind on purpose
)
"""Warnings that a cell does not give, each with the place that says the same."""

_PIECES_PER_JOB = 4
"""Least number of pieces for each process, so that none is left with a long one at the end."""

_ROUNDS_ON_CLUSTER = 2 * 10**6
"""Number of rounds of a piece for a cluster, whose number of workers may change: seconds of work."""


def run(
    suite: str | Suite,
    *,
    learners: Sequence[str] = (),
    channels: Sequence[str] = (),
    episodes: int | None = None,
    seed: int = 0,
    jobs: int = -1,
    out: str | Path = DIRECTORY,
    size: str = "default",
    dask: str | None = None,
    trust: bool = False,
    on_start: Callable[[int, int, int], None] | None = None,
    on_cell: Callable[[Cell, Outcome], None] | None = None,
) -> Results:
    """Play a suite and return its results; cells that are already in the store are not played again.

    The same seed gives the same results for any number of jobs, and on a cluster.

    Args:
        suite: its name, or a :class:`~ldp_bench.suites.Suite`.
        learners: further learners, by name, as ``module:Class`` or as a trained model's directory, in every
            game of the suite that is not too long for them. A ``module:Class`` is held to the contract
            first, and plays in a subprocess.
        channels: further channels, on which the suite's learners play too.
        episodes: number of episodes, instead of the suite's own.
        seed: seed of the first episode.
        jobs: number of cells to play at a time; -1 for one per core.
        out: directory of the results.
        size: "default", or "small" for a quick look.
        dask: address of a Dask scheduler, to play the cells there instead.
        trust: whether a trained model's files may run code when they are read.
        on_start: called with the numbers of cells, of those already played, and of rounds to be played.
        on_cell: called with each cell and its outcome.

    Raises:
        UntrustedCodeError: if a trained model's files run code, and ``trust`` is not set.
    """
    if isinstance(suite, str):
        suite = SUITES[suite]()
    suite = validation.instance("suite", suite, Suite, "a suite (made, not its class), or its name")
    learners = validation.texts("learners", learners, "learners' names")
    channels = validation.texts("channels", channels, "channels' names")
    trust = validation.flag("trust", trust)
    validation.instance("dask", dask, (str, type(None)), "the address of a scheduler")
    validation.function("on_start", on_start, "of three numbers of cells and rounds")
    validation.function("on_cell", on_cell, "of a cell and its outcome")
    validation.seed("seed", seed)
    jobs = count_jobs(jobs)
    learners = [_full_name(name) for name in learners]
    _check_learners(learners, trust)
    experiments = suite.experiments(size, learners=learners, channels=channels, episodes=episodes)
    _warn_of_blind_games(experiments)

    cells = _cells_of(experiments, seed)
    keys = [cell.key for cell in cells]
    store = Store(out)
    finished = store.finished(keys)
    for fault in store.faults:
        warnings.warn(f"in {store.path}, {fault}", stacklevel=2)
    settings = {
        "learners": learners,
        "channels": channels,
        "parameters": suite.parameters,
        "episodes": episodes,
        "seed": seed,
        "size": size,
    }
    run_number = store.begin_run(suite.address, settings, keys)

    unplayed = [cell for cell in cells if cell.key not in finished]
    if on_start is not None:
        rounds = sum(cell.rounds for cell in unplayed)
        on_start(len(cells), len(cells) - len(unplayed), rounds)
    for cell, outcome in play_cells(unplayed, store, jobs, dask, trust):
        if on_cell is not None:
            on_cell(cell, outcome)
    store.end_run(run_number)
    return Results(store, experiments, seed)


def _full_name(learner: str) -> str:
    """Name of a learner; of a trained model, its whole path, by which a report elsewhere finds it."""
    if is_directory(learner):
        return str(Path(learner).resolve())
    return learner


def _check_learners(learners: Sequence[str], trust: bool) -> None:
    """Raise an error about an unknown learner now: later each of its cells would fail."""
    for learner in learners:
        learner_code(learner)
        if not is_address(learner):  # an address is imported in a subprocess only
            as_make_learner(learner, trust=trust)


def _cells_of(experiments: Sequence[Experiment], seed: int) -> list[Cell]:
    """All cells of the experiments, in their order; a cell that two of them share comes once."""
    cells_by_key: dict[str, Cell] = {}
    for experiment in experiments:
        for cell in experiment.cells(seed):
            cells_by_key[cell.key] = cell
    return list(cells_by_key.values())


def play_cells(
    cells: Sequence[Cell], store: Store, jobs: int, dask: str | None = None, trust: bool = False
) -> Iterator[tuple[Cell, Outcome]]:
    """Play cells, keep their outcomes in a store, and yield each as it is finished."""
    pieces = _cut_into_pieces(cells, jobs, dask)
    for piece, outcomes in _play_pieces(pieces, jobs, dask, trust):
        played = list(zip(piece, outcomes, strict=True))
        store.save_all(played)
        yield from played


def _cut_into_pieces(cells: Sequence[Cell], jobs: int, dask: str | None) -> list[list[Cell]]:
    """Cut cells into pieces, each for one process at a time, with the longest piece first.

    The cells of a piece have the same game and seed: their learners play one tape, which is recorded once.
    """
    longest_first = sorted(
        cells, key=lambda cell: (-cell.rounds, cell.experiment.rules.key, cell.seed)
    )
    if dask is None and jobs == 1:
        return [[cell] for cell in longest_first]  # this process keeps the tape from cell to cell

    if dask is None:
        most_rounds = sum(cell.rounds for cell in cells) // (_PIECES_PER_JOB * jobs)
    else:
        most_rounds = _ROUNDS_ON_CLUSTER
    same_tape = grouped(
        longest_first,
        lambda cell: (cell.experiment.rules.key, cell.seed, cell.experiment.episodes),
    )
    pieces = [piece for group in same_tape.values() for piece in _cut(group, most_rounds)]
    return sorted(pieces, key=_rounds_of, reverse=True)


def _cut(cells: Sequence[Cell], most_rounds: int) -> list[list[Cell]]:
    """Cut a list of cells into pieces of at most ``most_rounds`` rounds, or of one longer cell."""
    pieces: list[list[Cell]] = [[]]
    for cell in cells:
        if pieces[-1] and _rounds_of(pieces[-1]) + cell.rounds > most_rounds:
            pieces.append([])
        pieces[-1].append(cell)
    return pieces


def _rounds_of(piece: Sequence[Cell]) -> int:
    return sum(cell.rounds for cell in piece)


def _play_pieces(
    pieces: Sequence[list[Cell]], jobs: int, dask: str | None, trust: bool
) -> Iterator[tuple[list[Cell], list[Outcome]]]:
    """Yield pieces with their outcomes; the cells of one that kills its process are played singly."""
    work = partial(_play_piece, trust=trust, is_elsewhere=dask is not None)
    for index, outcomes in share_out(work, pieces, jobs, dask):
        piece = pieces[index]
        if not isinstance(outcomes, BrokenProcessPool):
            yield piece, outcomes
        elif len(piece) == 1:
            message = "the process that played it was killed, twice"
            yield piece, [Outcome("failed", evaluation=None, message=message, seconds=0.0)]
        else:
            yield from _play_pieces([[cell] for cell in piece], jobs, dask, trust)


def _play_piece(cells: Sequence[Cell], trust: bool, is_elsewhere: bool) -> list[Outcome]:
    """Play cells one after the other; on another machine only if it has the same code."""
    if is_elsewhere:
        return [_other_code(cell) or play(cell, trust) for cell in cells]
    return [play(cell, trust) for cell in cells]


def _other_code(cell: Cell) -> Outcome | None:
    """The refusal of a worker whose code is not that of the cell; None if it is the same."""
    try:
        sources = cell.experiment.sources()
    except (ValueError, ImportError) as error:
        message = f"the worker cannot read its code: {error}"
        return Outcome("failed", evaluation=None, message=message, seconds=0.0)
    different = [name for name, code in cell.sources.items() if sources.get(name) != code]
    if not different:
        return None
    refusal = (
        f"the worker on {platform.node()} has other code of {', '.join(different)} than this run: install "
        f"the same code there, and start the worker again"
    )
    return Outcome("failed", evaluation=None, message=refusal, seconds=0.0)


def _warn_of_blind_games(experiments: Sequence[Experiment]) -> None:
    """Warn once of each game whose channel never tells two hypotheses apart."""
    for rules in dict.fromkeys(e.rules for e in experiments if not e.rules.redraw_hypotheses):
        try:
            scenario = make_scenario(rules)
        except Exception:  # its cells report it
            continue
        warn_of_blind_pairs(scenario, stacklevel=3)


def play(cell: Cell, trust: bool = False) -> Outcome:
    """Play a cell. An error is the outcome of this cell only; a request to stop (SystemExit) is not."""
    start = time.perf_counter()
    learner = cell.experiment.learner
    try:
        with warnings.catch_warnings():
            for warning in _SILENCED:
                warnings.simplefilter("ignore", warning)
            warnings.simplefilter("error", BrokenPromiseWarning)
            fault = _party_fault(cell.experiment)
            if fault is not None:
                return _failed("failed", fault, start)
            if is_address(learner):
                evaluation, seconds = call_contained(learner, _check_and_evaluate, cell)
            else:
                evaluation, seconds = _evaluate(cell, trust)
            return Outcome("done", evaluation, message=None, seconds=seconds)
    except IncompatibleChannelError as error:
        return _failed("incompatible", str(error), start)
    except LearnerFailedError as error:
        return _failed("failed", str(error), start)
    except Exception as error:
        return _failed("failed", f"{summarize(error)}\n\n{traceback.format_exc()}", start)


def _failed(status: str, message: str, start: float) -> Outcome:
    """Outcome without a result, of a cell that was begun at the time ``start``."""
    seconds = time.perf_counter() - start
    return Outcome(status, evaluation=None, message=printable(message), seconds=seconds)


def _check_and_evaluate(cell: Cell) -> tuple[Evaluation, float]:
    """Check that a learner keeps its contract on the cell's channel, then play the cell."""
    experiment = cell.experiment
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", BrokenPromiseWarning)
        check_learner(
            as_make_learner(experiment.learner, experiment.options), **experiment.channel_rules
        )
        return _evaluate(cell)


def _evaluate(cell: Cell, trust: bool = False) -> tuple[Evaluation, float]:
    """Play a cell; return its losses and the seconds that it took.

    The first learner of a game records the tape, which the next ones play again.
    """
    start = time.perf_counter()
    experiment = cell.experiment
    evaluation = evaluate(
        as_make_learner(experiment.learner, experiment.options, trust=trust),
        _recording(experiment.rules, cell.seed),
        episodes=experiment.episodes,
        seed=cell.seed,
        truth=experiment.truth,
        losses=(*_LOSSES_OF_CLAIMS, *experiment.rules.losses),
        leaders=experiment.leaders,
    )
    return evaluation, time.perf_counter() - start


@lru_cache(maxsize=1)  # the next cell mostly has the same game, with another learner
def _recording(rules: Rules, seed: int) -> Recording:
    """Tapes of a game from this seed on, shared by the learners that play it one after the other."""
    return Recording(make_scenario(rules))


# -- Checks of third-party parties --------------------------------------------------------------------------


def _party_fault(experiment: Experiment) -> str | None:
    """Name the party of a game that breaks its contract, and how; None if all keep theirs.

    Built-in parties and data, such as a table, are not checked. A channel is checked on a built-in class, so
    that an error is its own.
    """
    game_of_channel = {
        "hypotheses": "dirichlet",
        "num_hypotheses": experiment.num_hypotheses,
        "num_labels": experiment.num_labels,
        "horizon": experiment.horizon,
        **experiment.channel_rules,
    }
    for party, registry in PARTY_REGISTRIES.items():
        name = getattr(experiment.rules, party)
        is_data = isinstance(name, int | list | tuple | np.ndarray | None)
        if is_data or name in registry.own:
            continue
        rules = experiment.rules
        if party == "channel":
            rules = Rules.of(game_of_channel)
        fault = _find_fault(party, rules)
        if fault is not None:
            return f"the {party} {name!r} fails its check: {fault}"
    return None


@lru_cache(maxsize=64)  # rules hold a user's data
def _find_fault(party: str, rules: Rules) -> str | None:
    """Error of a party that breaks its contract in a game, in one line; None if it keeps the contract.

    Raises:
        IncompatibleChannelError: if the channel does not fit the game, which is no fault.
    """
    try:
        _check_party(party, rules)
    except IncompatibleChannelError:
        raise
    except Exception as error:
        return summarize(error)
    return None


def _check_party(party: str, rules: Rules) -> None:
    """Check that a party of a game keeps its contract, and a channel its privacy promise."""
    scenario = make_scenario(rules)
    if party == "channel":
        check_channel(scenario.channel)
        candidates = scenario.hypotheses(np.zeros(scenario.hypotheses.context_dim))
        warn_of_broken_promise(scenario.channel, candidates)  # an error here
    elif party == "nature":
        check_nature(scenario.nature, scenario.hypotheses)
    elif party == "truth":
        check_truth(scenario.truth, scenario.hypotheses)
    elif isinstance(scenario.nature, IID):  # else the class may need contexts that are not normal
        check_hypotheses(scenario.hypotheses)
