"""Work shared among processes by joblib, on this machine or on a Dask cluster."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import cache, lru_cache
from pickle import PicklingError
from typing import Any, TypeVar

from ldp_gym.core import validation
from ldp_gym.core.errors import extra, summarize

_WAIT_FOR_WORKERS = 60.0
"""Longest wait for the first worker of a Dask cluster, in seconds."""

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def count_jobs(jobs: int) -> int:
    """The number of processes asked for; -1 asks for one per core that this process may use."""
    if isinstance(jobs, int) and jobs == -1:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1  # None if it is not known
    return validation.whole("jobs (-1: one per core)", jobs, least=1)


def share_out(
    work: Callable[[Piece], Result], pieces: Sequence[Piece], jobs: int, dask: str | None = None
) -> Iterator[tuple[int, Result | BrokenProcessPool]]:
    """Yield the index and the result of each piece as it is finished, in any order.

    A worker process that is killed does not end the work: the pieces that it may have held are done again,
    one at a time. The result of a piece that kills its worker twice is the error.

    Args:
        work: function of a piece; classes and functions of a script or a notebook are sent by value.
        pieces: the arguments of the calls.
        jobs: number of processes; 1 for this one.
        dask: address of a Dask scheduler, to work there instead.
    """
    if dask is not None:
        yield from _share_out_on_cluster(work, pieces, dask)
        return
    if jobs == 1 or len(pieces) < 2:
        for index, piece in enumerate(pieces):
            yield index, work(piece)
        return
    try:
        yield from _share_out_here(work, pieces, jobs)
    except PicklingError as error:
        cause = str(error.__cause__ or error)
        reason = cause.strip('" \n').splitlines()[-1]
        raise TypeError(
            f"with jobs={jobs} the learner and the game are sent to other processes, and one of them "
            f"cannot be ({reason}): give the learner by its class or its name, or play with jobs=1"
        ) from error


def _share_out_here(
    work: Callable[[Piece], Result], pieces: Sequence[Piece], jobs: int
) -> Iterator[tuple[int, Result | BrokenProcessPool]]:
    """Yield the index and the result of each piece, which processes of this machine do.

    A process that is killed breaks its pool. Then the pieces that it may have held are done one at a time,
    and the others in a new pool.
    """
    left = list(range(len(pieces)))
    while left:
        try:
            for index, result in _run_pool(work, pieces, list(left), jobs):
                left.remove(index)
                yield index, result
        except BrokenProcessPool:
            # The pool works in order: one of the first pieces was being done.
            for index in left[:jobs]:
                left.remove(index)
                try:
                    yield from _run_pool(work, pieces, [index], jobs)
                except BrokenProcessPool as error:
                    yield index, error


def _run_pool(
    work: Callable[[Piece], Result], pieces: Sequence[Piece], indices: Sequence[int], jobs: int
) -> Iterator[tuple[int, Result]]:
    """Do the pieces of these indices in a pool of processes; yield index and result of each."""
    with extra("bench", f"jobs={jobs}"):
        from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1, n_jobs=jobs):
        parallel = Parallel(return_as="generator_unordered", batch_size=1, max_nbytes=None)
    owner = os.getpid()
    calls = [delayed(_numbered)(work, index, pieces[index], owner) for index in indices]
    return parallel(calls)


def _share_out_on_cluster(
    work: Callable[[Piece], Result], pieces: Sequence[Piece], address: str
) -> Iterator[tuple[int, Result | BrokenProcessPool]]:
    """Yield the index and the result of each piece, which the workers of a Dask cluster do.

    Dask does the pieces of a worker that was killed again, elsewhere; the result of a piece that kills
    several workers is the error.
    """
    with extra("cluster", "a Dask cluster"):
        from distributed import Client, as_completed
        from distributed.scheduler import KilledWorker
    with Client(address) as client:  # type: ignore[no-untyped-call]
        try:
            client.wait_for_workers(1, timeout=_WAIT_FOR_WORKERS)
        except TimeoutError as error:
            raise TimeoutError(
                f"the Dask cluster at {address} has no workers: start some with `dask worker {address}`"
            ) from error
        futures = client.map(work, pieces, pure=False)
        index_of = {future.key: index for index, future in enumerate(futures)}
        for future in as_completed(futures):  # type: ignore[no-untyped-call]
            try:
                result = future.result()
            except KilledWorker as error:
                result = BrokenProcessPool(str(error))
            yield index_of[future.key], result


def share_out_all(
    work: Callable[[Piece], Result],
    pieces: Sequence[Piece],
    jobs: int,
    done: Callable[[Piece], None] | None = None,
) -> list[Result]:
    """Do pieces of work in several processes; return the results in the order of the pieces.

    Args:
        work: function of a piece.
        pieces: the arguments of the calls.
        jobs: number of processes; 1 for this one.
        done: callback with each finished piece.

    Raises:
        RuntimeError: if a piece's process was killed twice, or its error cannot be sent.
    """
    results: dict[int, Result] = {}
    for index, result in share_out(work, pieces, jobs):
        if isinstance(result, BrokenProcessPool):
            raise RuntimeError(
                f"a process that played some of the episodes ended twice without a result: {result}"
            ) from result
        results[index] = result
        if done is not None:
            done(pieces[index])
    return [results[index] for index in range(len(pieces))]


def _numbered(
    work: Callable[[Piece], Result], index: int, piece: Piece, owner: int
) -> tuple[int, Result]:
    """Do a piece of work in a worker process; return its index and its result.

    Args:
        work: function of a piece.
        index: number of the piece.
        piece: argument of the call.
        owner: id of the process that started this one, which ends with it.
    """
    _end_with(owner)
    try:
        return index, work(piece)
    except BaseException as error:
        if _can_be_sent(error):
            raise
        # Where it arrives it would break the pool, as if the process had been killed.
        raise RuntimeError(
            f"{summarize(error)}\n\nIn another process:\n{traceback.format_exc()}"
        ) from None


def _can_be_sent(error: BaseException) -> bool:
    """Tell if an exception can be sent to another process and made again there."""
    import cloudpickle  # type: ignore[import-untyped]  # a dependency of Gymnasium

    try:
        pickle.loads(cloudpickle.dumps(error))
    except Exception:  # a user's class of errors may raise anything
        return False
    return True


@cache
def _end_with(owner: int) -> None:
    """End this process soon after the one that started it was killed; otherwise it would idle for minutes."""

    def watch() -> None:
        """End when the process has another parent, as the first one was killed."""
        while os.getppid() == owner:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@lru_cache(maxsize=1)
def _blas_controller(num_modules: int) -> Any:
    """Controller of the loaded BLAS libraries; None if threadpoolctl is not installed.

    Args:
        num_modules: number of imported modules: with more there may be more libraries, so that the
            controller is made again.
    """
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


class _OneThread:
    """Context in which BLAS uses one thread; it may be entered by several threads at a time.

    The number of threads belongs to the process. So the first that enters sets it, and the last that
    leaves restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limited: Any = None  # the controller whose libraries are limited
        self._limits: list[Any] = []

    def __enter__(self) -> None:
        """Limit the libraries that are not limited yet."""
        with self._lock:
            controller = _blas_controller(len(sys.modules))
            is_new = controller is not None and controller is not self._limited
            if is_new:
                self._limits.append(controller.limit(limits=1, user_api="blas"))
                self._limited = controller
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        """Restore the limits if no thread is left inside."""
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limited = None
                while self._limits:
                    self._limits.pop().restore_original_limits()


_ONE_THREAD = _OneThread()
"""The context of this process."""


def one_thread() -> _OneThread:
    """Context in which BLAS uses one thread, if threadpoolctl is installed.

    The last bit of a matrix product depends on the number of threads.
    """
    return _ONE_THREAD
