"""Run a suite: play the cells that are not yet in the store, on one machine or on a Dask cluster."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from ldp_gym.bench.certificates import LARGEST, audit_channels
from ldp_gym.bench.commitment import commitment_to, seed_from
from ldp_gym.bench.experiment import (
    CHANNEL_RULES,
    Cell,
    Experiment,
    learner_code,
    may_play_here,
    runs_stored_code,
)
from ldp_gym.bench.isolation import LIMITS, IsolatedLearner, Limits
from ldp_gym.bench.results import Results
from ldp_gym.bench.store import DIRECTORY, HIDDEN, Outcome, Store
from ldp_gym.bench.suites import SUITES, Suite
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import validation
from ldp_gym.core.errors import (
    BrokenPromiseError,
    BrokenPromiseWarning,
    ChannelFailedError,
    IncompatibleChannelError,
    LearnerFailedError,
    NoPrivacyWarning,
    OutsideTrainingWarning,
    UntrustedCodeError,
    extra,
    printable,
    summarize,
)
from ldp_gym.core.registry import is_own
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import Learner, Track, as_make_learner, is_directory, track_of
from ldp_gym.engine.rules import rule_value
from ldp_gym.evaluation import Evaluation, Recording, as_scenario, evaluate
from ldp_gym.processes import count_jobs
from ldp_gym.testing import check_channel


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
    time_limit: float = LIMITS.seconds,
    memory_limit: float = LIMITS.memory,
    strict: bool = False,
    trust: bool = False,
    secret: str | None = None,
    on_start: Callable[[int, int, int], None] | None = None,
    on_cell: Callable[[Cell, Outcome], None] | None = None,
) -> Results:
    """Play a suite and return its results; cells that are already in the store are not played again.

    The same seed gives the same results for any number of jobs, and on a cluster.

    Args:
        suite: its name, or a :class:`~ldp_gym.bench.suites.Suite` of your own.
        learners: further learners, by name, as ``module:Class`` or as a trained model's directory, in every
            game of the suite that is not too long for them. Third-party learners are held to the contract
            first, and play in processes of their own.
        channels: further channels, on which the suite's learners play too.
        episodes: instead of the suite's own numbers.
        seed: of the first episode.
        jobs: how many cells to play at a time; -1 for one per core.
        out: the directory of the results.
        size: "default", or "small" for a quick look.
        dask: the address of a Dask scheduler, to play the cells there instead.
        time_limit: how many seconds a cell of a third-party learner may take.
        memory_limit: how many GiB its processes may use together.
        strict: whether to refuse to play if a channel breaks its promise.
        trust: whether a trained model's files may run code when they are read, in a process of their own.
        secret: what the seed comes from, instead of ``seed``; see :mod:`ldp_gym.bench.commitment`. Nothing is
            stored before the last cell is played, so that a run that is killed begins again.
        on_start: called with the number of cells, of those already played, and of the rounds to be played.
        on_cell: called with each cell and its outcome.

    Raises:
        BrokenPromiseError: if ``strict`` is set and a channel breaks its promise.
        UntrustedCodeError: if a trained model's files run code, and ``trust`` is not set.
    """
    limits = Limits(time_limit, memory_limit)
    suite = SUITES[suite]() if isinstance(suite, str) else suite
    suite = validation.instance("suite", suite, Suite, "a suite (made, not its class), or its name")
    learners = validation.texts("learners", learners, "learners' names")
    channels = validation.texts("channels", channels, "channels' names")
    strict, trust = validation.flag("strict", strict), validation.flag("trust", trust)
    out = validation.path("out", out)
    dask = None if dask is None else validation.text("dask", dask)
    validation.function("on_start", on_start, "of three numbers of cells and rounds")
    validation.function("on_cell", on_cell, "of a cell and its outcome")
    # By the whole path, so that a report finds a model from wherever it is written.
    learners = [str(Path(name).resolve()) if is_directory(name) else name for name in learners]
    validation.seed("seed", seed)
    if secret is not None:
        seed = seed_from(validation.text("secret", secret))
    jobs = count_jobs(jobs)
    tracks = {name: _find_track(name, limits, trust) for name in learners}
    experiments = suite.experiments(size, learners=learners, channels=channels, episodes=episodes)
    if strict:
        _refuse_broken_promises(experiments)
    store = Store(out)
    cells = list({cell.key: cell for experiment in experiments for cell in experiment.cells(seed)}.values())
    settings = {
        "learners": learners,
        "tracks": tracks,
        "channels": channels,
        "episodes": episodes,
        "seed": seed,
        "size": size,
        "parameters": suite.parameters,
    }
    hidden = {} if secret is None else {"seed": HIDDEN, "commitment": commitment_to(secret)}
    finished = store.finished()
    if store.faults:
        store.back_up()
    number = store.begin_run(suite.address, settings | hidden, [cell.key for cell in cells])
    # The longest first: no core is left with a long one at the end. The learners of a game side by side.
    todo = sorted(
        (cell for cell in cells if cell.key not in finished),
        key=lambda cell: (-cell.rounds, cell.experiment.canonical_rules, cell.seed),
    )
    if on_start is not None:
        on_start(len(cells), len(cells) - len(todo), sum(cell.rounds for cell in todo))
    kept = []
    for cell, outcome in _outcomes(todo, limits, jobs, dask):
        if secret is None:
            store.save(cell, outcome)
        else:  # a cell's record has its seed
            kept.append((cell, outcome))
        if on_cell is not None:
            on_cell(cell, outcome)
    for cell, outcome in kept:
        store.save(cell, outcome)
    revealed = {} if secret is None else {"commitment": commitment_to(secret), "secret": secret}
    store.end_run(number, settings | revealed)
    return Results(store, experiments, seed, tracks)


def _find_track(learner: str, limits: Limits, trust: bool) -> Track:
    """The track that a learner declares. An unknown one is an error now, not in every cell.

    Third-party code is not imported here.
    """
    learner_code(learner)
    if may_play_here(learner):
        return track_of(as_make_learner(learner))
    if runs_stored_code(learner) and not trust:
        raise UntrustedCodeError(
            f"the model in {learner} runs whatever code its files hold when it is read. If you trust its "
            f"author, say so: --trust, or trust=True"
        )
    with IsolatedLearner(learner, {}, limits) as isolated:
        try:
            return isolated.find()
        except LearnerFailedError as error:
            raise ValueError(str(error).partition("\n")[0]) from error


def _refuse_broken_promises(experiments: Sequence[Experiment]) -> None:
    broken = [str(audit) for audit in audit_channels(experiments).values() if audit.broken]
    if broken:
        raise BrokenPromiseError(f"broken promise: {'; '.join(broken)}")


def _channel_fault(experiment: Experiment) -> str | None:
    """How a third-party channel breaks the contract in the game that is played, or else in a small one."""
    if CHANNELS.is_builtin(experiment.channel):
        return None
    shape = experiment.num_hypotheses, experiment.num_labels
    shape = shape if math.prod(shape) <= LARGEST else _SMALL
    promise = {name: rule_value(experiment.rules, name) for name in ("epsilon", "delta")}
    game = {"num_hypotheses": shape[0], "num_labels": shape[1], "horizon": experiment.horizon, **promise}
    options = dict(rule_value(experiment.rules, "channel_kwargs") or {})
    return _fault_in_game(experiment.channel, json.dumps(game), json.dumps(options))


_SMALL = 4, 6
"""K and M of a game in which a channel can be checked."""


@cache
def _fault_in_game(name: str, game: str, options: str) -> str | None:
    try:
        check_channel(CHANNELS.build(name, json.loads(game), json.loads(options)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever it is, it fails the channel's own cells
        return summarize(error)
    return None


def _outcomes(
    cells: Sequence[Cell], limits: Limits, jobs: int, dask: str | None
) -> Iterable[tuple[Cell, Outcome]]:
    """Each cell with its outcome, as they come."""
    if dask is not None:
        return _on_dask(cells, limits, dask)
    if jobs == 1 or len(cells) < 2:
        return (_play_with_cell(cell, limits) for cell in cells)
    with extra("bench", "a benchmark in several processes"):
        from joblib import Parallel, delayed  # imported here: one job needs none of it

    parallel = Parallel(
        n_jobs=jobs,
        return_as="generator_unordered",
        batch_size=1,
        initializer=_end_with,
        initargs=(os.getpid(),),
    )
    outcomes: Iterable[tuple[Cell, Outcome]] = parallel(
        delayed(_play_with_cell)(cell, limits) for cell in cells
    )
    return outcomes


def _play_with_cell(cell: Cell, limits: Limits) -> tuple[Cell, Outcome]:
    return cell, play(cell, limits)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: its results are lost, and it holds the terminal."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _on_dask(cells: Sequence[Cell], limits: Limits, address: str) -> Iterator[tuple[Cell, Outcome]]:
    """The cells on a cluster. Those of a worker that dies are played by another."""
    with extra("cluster", "a Dask cluster"):
        from distributed import Client, as_completed
    with Client(address) as client:
        futures = {client.submit(play, cell, limits, pure=False, retries=3): cell for cell in cells}
        for future in as_completed(futures):
            cell = futures[future]
            fault = future.exception()
            yield cell, future.result() if fault is None else Outcome("failed", None, repr(fault), 0.0)


def play(cell: Cell, limits: Limits = LIMITS) -> Outcome:
    """Play a cell. What goes wrong in it is its own outcome, and no other cell's."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoPrivacyWarning)  # it is the reference here
            warnings.simplefilter("ignore", BrokenPromiseWarning)  # the results say so themselves
            warnings.simplefilter("ignore", OutsideTrainingWarning)  # its score says how it does there
            evaluation, saved = _evaluation(cell, limits)
            return Outcome("done", evaluation, None, time.perf_counter() - start + saved)
    except KeyboardInterrupt:
        raise
    except IncompatibleChannelError as error:
        status, message = "incompatible", str(error)
    except LearnerFailedError as error:
        status, message = "failed", str(error)
    except BaseException as error:  # a channel, class, nature or truth may raise anything, SystemExit too
        status, message = "failed", f"{summarize(error)}\n\n{traceback.format_exc()}"
    return Outcome(status, None, printable(message), time.perf_counter() - start)


def _evaluation(cell: Cell, limits: Limits) -> tuple[Evaluation, float]:
    """What a learner was charged, and how many seconds an earlier cell's recording saved."""
    experiment = cell.experiment
    fault = _channel_fault(experiment)
    if fault is not None:
        raise ChannelFailedError(f"the channel {experiment.channel!r} fails its check: {fault}")
    if may_play_here(experiment.learner):
        return _evaluate(cell, as_make_learner(experiment.learner, experiment.options))
    # It is checked in a game on the same channel; the rest of the rules is as the learner says.
    kept = {name: experiment.rules[name] for name in CHANNEL_RULES if name in experiment.rules}
    _check_learner(experiment.learner, json.dumps(dict(experiment.options)), json.dumps(kept), limits)
    with IsolatedLearner(experiment.learner, experiment.options, limits) as isolated:
        return _evaluate(cell, isolated)


def _evaluate(cell: Cell, make_learner: Callable[[Game], Learner]) -> tuple[Evaluation, float]:
    experiment, recording = cell.experiment, _recording(cell)
    before = recording.seconds_saved
    evaluation = evaluate(
        make_learner,
        recording,
        episodes=experiment.episodes,
        seed=cell.seed,
        truth=experiment.truth,
        averages=experiment.averages,
        leaders=experiment.leaders,
    )
    return evaluation, recording.seconds_saved - before


def _recording(cell: Cell) -> Recording:
    """The game of a cell.

    The next cell mostly has it too, with another learner. A third party's class, nature, truth or channel
    may remember what it did before, and is made anew for every cell.
    """
    rules = json.dumps(dict(cell.experiment.rules))
    others = (
        source.rpartition(" ")[2] for source in cell.sources.keys() - {"ldp-gym", cell.experiment.learner}
    )
    is_ours = all(map(is_own, others))
    return _last_recording(rules, cell.seed) if is_ours else Recording(as_scenario(json.loads(rules)))


@lru_cache(maxsize=1)
def _last_recording(rules: str, seed: int) -> Recording:
    return Recording(as_scenario(json.loads(rules)))


@cache
def _check_learner(learner: str, options: str, rules: str, limits: Limits) -> None:
    """Hold a third-party learner to the contract: in another process than it plays in, and once."""
    with IsolatedLearner(learner, json.loads(options), limits) as isolated:
        isolated.check(json.loads(rules))
