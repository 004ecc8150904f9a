"""Run a suite: play the cells that are not yet in the store, on one machine or on a Dask cluster."""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from ldp_gym.batch import estimates
from ldp_gym.bench.experiment import Cell, may_play_here
from ldp_gym.bench.isolation import Isolated
from ldp_gym.bench.results import Results
from ldp_gym.bench.store import Outcome, Store
from ldp_gym.bench.suites import SUITES, Suite
from ldp_gym.channels.base import CHANNELS
from ldp_gym.errors import IncompatibleChannelError, NoPrivacyWarning
from ldp_gym.evaluation import evaluate
from ldp_gym.game import Game
from ldp_gym.learners import Learner, is_directory, learner_maker
from ldp_gym.numerics import validation
from ldp_gym.registry import is_builtin
from ldp_gym.testing import check_channel

TIME_LIMIT = 600.0
"""How many seconds a cell of somebody else's learner may take."""

Report = Callable[[Cell, Outcome], None]


def run(
    suite: str | Suite,
    *,
    learners: Sequence[str] = (),
    channels: Sequence[str] = (),
    episodes: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    out: str | Path = "ldp-gym-results",
    size: str = "default",
    dask: str | None = None,
    time_limit: float = TIME_LIMIT,
    on_start: Callable[[int, int, int], None] | None = None,
    on_cell: Report | None = None,
) -> Results:
    """Play a suite and return its results; cells that are already in the store are not played again.

    The same seed gives the same results for any number of jobs, and on a cluster.

    Args:
        suite: its name, or a :class:`~ldp_gym.bench.suites.Suite` of your own.
        learners: further learners, by name, as ``module:Class`` or as a trained model's directory, in every
            game of the suite that is not too long for them. Those whose code is not ours are held to the
            contract first, and play in processes of their own.
        channels: further channels, on which the suite's learners play too.
        episodes: instead of the suite's own numbers.
        seed: of the first episode.
        jobs: how many cells to play at a time; -1 for one on each core.
        out: the directory of the results.
        size: "default", or "small" for a quick look.
        dask: the address of a Dask scheduler, to play the cells there instead.
        time_limit: how many seconds a cell of somebody else's learner may take.
        on_start: called with the number of cells, of those already played, and of the rounds to be played.
        on_cell: called with each cell and its outcome.
    """
    suite = SUITES[suite]() if isinstance(suite, str) else suite
    validation.whole("seed", seed, least=0)
    if jobs != -1:
        validation.whole("jobs (-1: one on each core)", jobs, least=1)
    for name in learners:
        learner_maker(name)  # an unknown name is an error now, not in every cell
    for name in channels:
        _checked_channel(name)
    entries = suite.entries(size, learners=learners, channels=channels, episodes=episodes)
    store = Store(out)
    cells = list({cell.key: cell for entry in entries for cell in entry.cells(seed)}.values())
    settings = {
        "learners": list(learners),
        "channels": list(channels),
        "episodes": episodes,
        "seed": seed,
        "size": size,
    }
    number = store.begin_run(suite.address, settings, [cell.key for cell in cells])
    finished = store.finished()
    # The longest first: no core is left with a long one at the end.
    todo = sorted((cell for cell in cells if cell.key not in finished), key=lambda cell: -cell.rounds)
    if on_start is not None:
        on_start(len(cells), len(cells) - len(todo), sum(cell.rounds for cell in todo))
    for cell, outcome in _outcomes(partial(play, seconds=time_limit), todo, jobs, dask):
        store.save(cell, outcome)
        if on_cell is not None:
            on_cell(cell, outcome)
    store.end_run(number)
    return Results(store, entries, seed)


def _checked_channel(name: str) -> None:
    """A channel of somebody else's is held to the contract first."""
    maker = CHANNELS[name]
    if not is_builtin(maker):
        facts: dict[str, Any] = {"num_hypotheses": 4, "num_labels": 6, "horizon": 100}
        delta = 0.0 if getattr(maker, "pure", True) else 1e-5
        check_channel(CHANNELS.build(name, {**facts, "epsilon": 1.0, "delta": delta}, {}))


def _outcomes(
    work: Callable[[Cell], Outcome], cells: Sequence[Cell], jobs: int, dask: str | None
) -> Iterator[tuple[Cell, Outcome]]:
    """Each cell with its outcome, as they come."""
    if dask is not None:
        yield from _on_dask(work, cells, dask)
        return
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield cell, work(cell)
        return
    from joblib import Parallel, delayed  # imported here: one job needs none of it

    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(_paired)(work, cell) for cell in cells)


def _paired(work: Callable[[Cell], Outcome], cell: Cell) -> tuple[Cell, Outcome]:
    return cell, work(cell)


def _on_dask(
    work: Callable[[Cell], Outcome], cells: Sequence[Cell], address: str
) -> Iterator[tuple[Cell, Outcome]]:
    """The cells on a cluster. Those of a worker that dies are played by another."""
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise ImportError("a Dask cluster needs distributed: pip install 'ldp-gym[cluster]'") from error
    with Client(address) as client:
        futures = {client.submit(work, cell, pure=False, retries=3): cell for cell in cells}
        for future in as_completed(futures):
            cell = futures[future]
            fault = future.exception()
            yield cell, future.result() if fault is None else Outcome("failed", {}, repr(fault), 0.0)


def play(cell: Cell, seconds: float = TIME_LIMIT) -> Outcome:
    """Play a cell. What goes wrong in it is its outcome, and nobody else's."""
    start = time.perf_counter()

    def outcome(status: str, arrays: dict[str, Any] | None = None, message: str | None = None) -> Outcome:
        return Outcome(status, arrays or {}, message, time.perf_counter() - start)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoPrivacyWarning)  # it is the reference here
            return outcome("done", _arrays(cell, seconds))
    except IncompatibleChannelError as error:
        return outcome("incompatible", message=str(error))
    except Exception:
        return outcome("failed", message=traceback.format_exc())


def _arrays(cell: Cell, seconds: float) -> dict[str, Any]:
    entry = cell.entry
    if may_play_here(entry.learner):
        return _measured(cell, learner_maker(entry.learner, entry.options))
    if not is_directory(entry.learner):  # a trained model plays its own game, not a small one
        small = {name: entry.game[name] for name in _PROMISES if name in entry.game}
        _check(entry.learner, json.dumps(dict(entry.options)), json.dumps(small), seconds)
    with Isolated(entry.learner, entry.options, seconds) as player:
        return _measured(cell, player)


def _measured(cell: Cell, maker: Callable[[Game], Learner]) -> dict[str, Any]:
    entry = cell.entry
    if entry.estimates:
        truth = entry.truth if isinstance(entry.truth, int) else None
        averages = estimates(maker, entry.game, episodes=entry.episodes, seed=cell.seed, truth=truth)
        return {"estimates": averages}
    played = evaluate(maker, entry.game, episodes=entry.episodes, seed=cell.seed, truth=entry.truth)
    return {"rounds": played.rounds, "kl": played.kl, "tv": played.tv}


_PROMISES = ("channel", "channel_kwargs", "epsilon", "delta")
"""What of a game a small one keeps, on which a learner is checked."""


@cache
def _check(learner: str, options: str, game: str, seconds: float) -> None:
    """Hold somebody else's learner to the contract: in another process than it plays in, and once."""
    with Isolated(learner, json.loads(options), seconds) as player:
        player.check(json.loads(game))
