"""Work shared among processes by joblib, on this machine or on a Dask cluster."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, nullcontext
from functools import cache, lru_cache
from pickle import PicklingError
from typing import Any, TypeVar

from ldp_gym.core import validation
from ldp_gym.core.errors import extra

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def count_jobs(jobs: int) -> int:
    """The number of processes asked for; -1 asks for one per core that this process may use."""
    if isinstance(jobs, int) and jobs == -1:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
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
    if dask is None and (jobs == 1 or len(pieces) < 2):
        yield from ((index, work(piece)) for index, piece in enumerate(pieces))
        return
    with extra("bench", f"jobs={jobs}" if dask is None else "a Dask cluster"):
        from joblib import Parallel, delayed, parallel_config
    with ExitStack() as stack:
        backend: dict[str, Any] = {"backend": "loky", "inner_max_num_threads": 1, "n_jobs": jobs}
        if dask is not None:
            with extra("cluster", "a Dask cluster"):
                from distributed import Client
            stack.enter_context(Client(dask))  # type: ignore[no-untyped-call]
            backend = {"backend": "dask", "n_jobs": -1}

        def run(indices: list[int]) -> Iterator[tuple[int, Result]]:
            with parallel_config(**backend):
                parallel = Parallel(return_as="generator_unordered", batch_size=1, max_nbytes=None)
            owner = os.getpid() if dask is None else None
            return parallel(
                delayed(_numbered)(work, index, pieces[index], owner) for index in indices
            )

        left = list(range(len(pieces)))
        try:
            while left:
                try:
                    for index, result in run(list(left)):
                        left.remove(index)
                        yield index, result
                except BrokenProcessPool:
                    for index in left[:jobs]:  # loky works in order: one of these was being done
                        left.remove(index)
                        try:
                            yield from run([index])
                        except BrokenProcessPool as error:
                            yield index, error
        except PicklingError as error:
            reason = str(error.__cause__ or error).strip('" \n').splitlines()[-1]
            raise TypeError(
                f"with jobs={jobs} the learner and the game are sent to other processes, and one of them "
                f"cannot be ({reason}): give the learner by its class or its name, or play with jobs=1"
            ) from error


def share_out_all(
    work: Callable[[Piece], Result],
    pieces: Sequence[Piece],
    jobs: int,
    done: Callable[[Piece], None] | None = None,
) -> list[Result]:
    """Results of all pieces, in their order; see :func:`share_out`.

    Args:
        work: function of a piece.
        pieces: the arguments of the calls.
        jobs: number of processes; 1 for this one.
        done: callback with each piece that was finished.

    Raises:
        RuntimeError: if a piece's process was killed twice.
    """
    results: dict[int, Result] = {}
    for index, result in share_out(work, pieces, jobs):
        if isinstance(result, BrokenProcessPool):
            raise RuntimeError(
                "a process that played some of the episodes was killed twice"
            ) from result
        results[index] = result
        if done is not None:
            done(pieces[index])
    return [results[index] for index in range(len(pieces))]


def _numbered(
    work: Callable[[Piece], Result], index: int, piece: Piece, owner: int | None
) -> tuple[int, Result]:
    """Index and result of a piece; a worker process that ``owner`` started will end with it."""
    if owner is not None:
        _end_with(owner)
    return index, work(piece)


@cache
def _end_with(owner: int) -> None:
    """End this process soon after the one that started it was killed; otherwise it would idle for minutes."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@lru_cache(maxsize=1)
def _threads(num_modules: int) -> Any:
    """The controller of loaded BLAS libraries, made again when more modules have been imported."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


def one_thread() -> Any:
    """Context in which BLAS uses one thread, if threadpoolctl is installed.

    The last bit of a matrix product depends on the number of threads.
    """
    threads = _threads(len(sys.modules))
    return nullcontext() if threads is None else threads.limit(limits=1, user_api="blas")
