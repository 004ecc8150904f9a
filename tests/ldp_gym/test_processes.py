"""Work shared among processes: the same results, and clear errors."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from helpers import is_running

import ldp_agents
import ldp_gym
from ldp_gym.processes import one_thread, share_out

RULES = {"hypotheses": [[0.5, 0.5], [0.9, 0.1]], "channel": "split", "horizon": 25_000}


@pytest.mark.parametrize(
    "learner", ["exp3", lambda game: ldp_agents.Bayes(game)], ids=["name", "function"]
)
def test_any_number_of_processes_gives_the_same_numbers(learner):
    rules = {**RULES, "channel": "laplace-single"} if learner == "exp3" else RULES
    rounds = []
    options = {
        "episodes": 8,
        "seed": 3,
        "averages": True,
        "leaders": True,
        "progress": rounds.append,
    }
    one, two = (ldp_gym.evaluate(learner, rules, jobs=jobs, **options) for jobs in (1, 2))
    assert set(one.arrays) >= {"rounds", "losses/kl", "losses/tv", "comparator", "leaders"}
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(two.arrays[name], array, err_msg=name)
    assert sum(rounds) == 2 * 8 * 25_000
    assert len(rounds) > 2
    if learner == "exp3":
        one, two = (
            ldp_gym.evaluate("uniform", RULES, episodes=4, truth="all", jobs=j) for j in (1, 2)
        )
        assert two.kl.shape[:2] == (2, 4)
        np.testing.assert_array_equal(one.kl, two.kl)


def test_a_learner_that_cannot_be_sent_says_so():
    lock = threading.Lock()
    with pytest.raises(
        TypeError, match=r"jobs=2 .* sent to other processes.*lock.*class or its name"
    ):
        ldp_gym.evaluate(lambda game: lock and ldp_agents.Bayes(game), RULES, episodes=8, jobs=2)


@pytest.mark.parametrize("error", [ValueError("no luck"), SystemExit(15)])
def test_an_error_or_a_stop_in_a_process_is_the_caller_s(error):
    def fail(piece):
        raise error

    with pytest.raises(type(error), match=str(error)):
        list(share_out(fail, [1, 2, 3], 2))


class NeedsTwoTexts(Exception):
    """An error that cannot be unpickled: its arguments are not those of its constructor."""

    def __init__(self, what, where):
        super().__init__(f"{what} in {where}")


def test_an_error_that_cannot_be_unpickled_arrives_with_its_text():
    def fail(piece):
        raise NeedsTwoTexts("no luck", "the attic")

    with pytest.raises(RuntimeError, match=r"NeedsTwoTexts: no luck in the attic") as caught:
        list(share_out(fail, [1, 2, 3], 2))
    assert "in fail" in str(caught.value), "the traceback of the other process"


def test_evaluate_gives_the_text_of_an_error_that_cannot_be_unpickled():
    class Fails(ldp_agents.Uniform):
        def play(self, *tape):
            raise NeedsTwoTexts("no luck", "a round")

    with pytest.raises(RuntimeError, match=r"NeedsTwoTexts: no luck in a round"):
        ldp_gym.evaluate(Fails, RULES, episodes=8, jobs=2)


def test_the_work_of_a_killed_process_is_done_again(tmp_path):
    """Piece 3 ends its process once, piece 7 always."""
    mark = tmp_path / "once"

    def work(piece):
        if piece == 7 or (piece == 3 and not mark.exists()):
            mark.touch()
            os._exit(1)
        return 2 * piece

    done = dict(share_out(work, range(9), 2))
    assert isinstance(done.pop(7), BrokenProcessPool)
    assert done == {piece: 2 * piece for piece in range(9) if piece != 7}


SCRIPT = """
import ldp_agents, ldp_gym
class Mine(ldp_agents.Bayes):
    pass
rules = {"hypotheses": [[0.5, 0.5], [0.9, 0.1]], "channel": "split", "horizon": 25_000}
one, two = (ldp_gym.evaluate(Mine, rules, episodes=8, jobs=jobs).risk for jobs in (1, 2))
print("same" if one == two else "different")
"""


def test_a_script_needs_no_guard_and_its_classes_no_module(tmp_path):
    pytest.importorskip("joblib")
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "same\n", done.stderr


def test_products_of_matrices_use_one_thread():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    seen = []

    class Looks(ldp_agents.Uniform):
        def play(self, *tape):
            pools = threadpoolctl.threadpool_info()
            seen.extend(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")
            return super().play(*tape)

    with threadpoolctl.threadpool_limits(2):
        ldp_gym.evaluate(Looks, {"horizon": 5}, episodes=1)
    assert seen
    assert set(seen) == {1}


def num_blas_threads():
    """Number of threads of each BLAS library in this process."""
    threadpoolctl = pytest.importorskip("threadpoolctl")
    pools = threadpoolctl.threadpool_info()
    return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}


def test_the_last_thread_that_leaves_gives_blas_its_threads_back():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with threadpoolctl.threadpool_limits(2):
        first = one_thread()
        second = one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert num_blas_threads() == {1}, "the second is still inside"
        second.__exit__(None, None, None)
        assert num_blas_threads() == {2}


def test_threads_that_evaluate_at_the_same_time_give_the_numbers_of_each_alone():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    rules = {"hypotheses": "dirichlet", "channel": "split", "horizon": 300}
    alone = [ldp_gym.evaluate("bayes", rules, episodes=20, seed=seed).kl for seed in range(4)]
    together = {}

    def play(seed):
        together[seed] = ldp_gym.evaluate("bayes", rules, episodes=20, seed=seed).kl

    with threadpoolctl.threadpool_limits(2):
        threads = [threading.Thread(target=play, args=[seed]) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert num_blas_threads() == {2}
    for seed in range(4):
        np.testing.assert_array_equal(together[seed], alone[seed])


STARTED = """
import os, signal, sys, time
from ldp_gym.processes import one_thread, share_out

def work(piece):
    open(sys.argv[1] + f"/{os.getpid()}", "w").close()
    time.sleep(0 if piece < 2 else 600)

for index, _ in share_out(work, range(4), 2):
    if index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.posix_only("SIGKILL")
def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path):
    pytest.importorskip("joblib", reason="needs the extra: pip install 'ldp-gym[bench]'")
    command = [sys.executable, "-c", STARTED, str(tmp_path)]
    subprocess.run(
        command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False
    )
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert workers
    deadline = time.monotonic() + 60.0
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(map(is_running, workers))
