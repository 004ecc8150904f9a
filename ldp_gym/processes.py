"""Work shared out among processes.

Each process gets the work once, by value, and then one piece after the other. It starts from a fresh
interpreter (``forkserver``, or ``spawn`` where there is none), so no thread or lock is copied.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from typing import Any, TypeVar

from gymnasium.vector.utils import CloudpickleWrapper

from ldp_gym.core import validation

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_payload = b""


def count_jobs(jobs: int) -> int:
    """How many processes are asked for; -1 asks for one per core that this process may use."""
    if isinstance(jobs, int) and jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return validation.whole("jobs (-1: one per core)", jobs, least=1)


def share_out(
    work: Callable[[Piece], Result], pieces: Sequence[Piece], jobs: int, done: Callable[[Piece], None]
) -> list[Result]:
    """The results of all pieces, in their order.

    Args:
        work: what is done with a piece; classes and functions of a script or a notebook go along by value.
        pieces: what it is done with.
        jobs: how many processes.
        done: called with each piece as it is finished, in any order.

    Raises:
        TypeError: if the work cannot be sent to another process.
        RuntimeError: if a process ends before its work is done.
    """
    try:
        payload = pickle.dumps(CloudpickleWrapper(work))  # type: ignore[arg-type]
    except Exception as error:  # whatever an object raises that does not want to be copied
        raise TypeError(
            f"with jobs={jobs} the learner and the game are sent to other processes, and one of them cannot "
            f"be: {error}. Give the learner by its class or its name, or play with jobs=1"
        ) from error
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(min(jobs, len(pieces)), context, _start, (payload,)) as processes:
        futures = {processes.submit(_run, piece): piece for piece in pieces}
        try:
            for future in as_completed(futures):
                future.result()
                done(futures[future])
        except BrokenProcessPool as error:
            raise RuntimeError(
                f"one of {jobs} processes ended before its work was done. A script that asks for several "
                f'needs its calls below `if __name__ == "__main__":`, as each process imports the script'
            ) from error
        except BaseException:
            processes.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _start(payload: bytes) -> None:
    global _payload
    _payload = payload
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(piece: Any) -> Any:
    return _work()(piece)


@cache
def _work() -> Callable[[Any], Any]:
    # When the first piece comes: an error here is then an answer, and not the end of the process.
    work: Callable[[Any], Any] = pickle.loads(_payload).fn
    return work
