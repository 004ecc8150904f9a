"""Runs: the same for any number of jobs, on a cluster, after a kill; third-party code is contained."""

import contextlib
import inspect
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import ldp_gym
from ldp_gym import bench
from ldp_gym.bench import Experiment, Finding, Suite
from ldp_gym.bench.store import Outcome
from ldp_gym.cli import benchmarking

CHANNELS = ("laplace-single", "split")
LEARNERS = ("uniform", "centred-exp3", "bayes")


class Tiny(Suite):
    """Two channels, three learners; at the small size in longer cells, which changes nothing."""

    name = "tiny"
    title = claim = "for the tests"

    def own_experiments(self, small):
        return [
            Experiment(
                {"hypotheses": "dirichlet", "channel": channel, "horizon": 400},
                learner,
                episodes=12,
                block=12 if small else 3,
            )
            for channel in CHANNELS
            for learner in LEARNERS
        ]

    def findings(self, results):
        return [Finding("nothing")]

    def draw(self, results):
        raise NotImplementedError


def table(results):
    """Everything that was measured, by what was played."""
    return {
        str(p.experiment): (p.evaluation.kl.tolist(), p.evaluation.tv.tolist()) for p in results.successes
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    results = bench.run(Tiny(), jobs=1, out=tmp_path_factory.mktemp("alone"))
    assert len(results.successes) == 6
    return table(results)


def test_results_are_those_of_evaluate(expected):
    game = {"hypotheses": "dirichlet", "channel": "split", "horizon": 400}
    kl, tv = expected["bayes on split, T = 400"]
    alone = ldp_gym.evaluate("bayes", game, episodes=12)
    np.testing.assert_array_equal(kl, alone.kl)
    np.testing.assert_array_equal(tv, alone.tv)


def test_the_risk_has_the_interval_of_the_evaluation(tmp_path):
    results = bench.run(Tiny(), jobs=1, out=tmp_path)
    for result in results.successes:
        assert (result.risk.low, result.risk.high) == result.evaluation.interval()
        assert result.risk.value == result.evaluation.risk


def test_the_command_has_the_same_defaults():
    here = inspect.signature(bench.run).parameters
    command = inspect.signature(benchmarking.bench).parameters
    shared = set(here) & set(command) - {"suite"}
    assert shared >= {"episodes", "seed", "jobs", "out", "size", "dask", "time_limit"}
    assert {name: command[name].default for name in shared} == {name: here[name].default for name in shared}


def test_any_number_of_jobs(expected, tmp_path):
    assert table(bench.run(Tiny(), out=tmp_path, jobs=2)) == expected


def test_nothing_is_played_twice(tmp_path):
    bench.run(Tiny(), jobs=1, out=tmp_path)
    again = []
    bench.run(Tiny(), jobs=1, out=tmp_path, on_cell=lambda *cell: again.append(cell))
    assert not again
    bench.run(Tiny(), jobs=1, out=tmp_path, episodes=15, on_cell=lambda *cell: again.append(cell))
    assert len(again) == 6  # three more episodes of each experiment


def test_what_failed_is_played_again(expected, tmp_path):
    cell = Tiny().experiments()[0].cells(0)[0]
    bench.Store(tmp_path).save(cell, Outcome("failed", None, "a disk was full", 0.1))
    results = bench.run(Tiny(), jobs=1, out=tmp_path)
    assert not results.failures
    assert table(results) == expected


KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from test_runner import Tiny
from ldp_gym import bench
print("begin", flush=True)
bench.run(Tiny(), jobs=1, out=sys.argv[2], on_cell=lambda *_: __import__("time").sleep(0.1))
print("end", flush=True)
"""


def test_killed_and_resumed(expected, tmp_path):
    here, rng = os.path.dirname(__file__), random.Random(0)
    kills = 0
    while kills < 4:  # `make attack` has twenty
        process = subprocess.Popen([sys.executable, "-c", KILLED, here, tmp_path], stdout=subprocess.PIPE)
        process.stdout.readline()  # it has begun
        time.sleep(rng.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        finished = b"end" in process.communicate()[0]
        kills += 1
        if finished:
            break
    assert kills > 1
    assert table(bench.run(Tiny(), jobs=1, out=tmp_path)) == expected


@contextlib.contextmanager
def cluster(workers):
    """A real local cluster: a scheduler and workers, each a process, on loopback."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}

    def start(*arguments):
        command = [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]]
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    common = ["--no-dashboard", "--host", "127.0.0.1"]
    scheduler = start("dask_scheduler", *common, "--port", "0")
    address = next(part for line in scheduler.stderr for part in line.split() if part.startswith("tcp://127"))
    threading.Thread(target=scheduler.stderr.read, daemon=True).start()
    processes = [
        start("dask_worker", address, *common, "--no-nanny", "--nthreads", "1") for _ in range(workers)
    ]
    for process in processes:
        threading.Thread(target=process.stderr.read, daemon=True).start()
    try:
        yield address, processes
    finally:
        for process in [*processes, scheduler]:
            process.kill()
            process.communicate()


def test_a_cluster_whose_worker_is_killed(expected, tmp_path):
    with cluster(workers=2) as (address, workers):
        played = []

        def after(cell, outcome):
            played.append(outcome.status)
            if len(played) == 4:
                workers[0].kill()

        results = bench.run(Tiny(), jobs=1, out=tmp_path, dask=address, on_cell=after)
    assert not results.failures
    assert table(results) == expected


def test_third_party_learners_are_contained(expected, tmp_path):
    learners = [f"third_party:{name}" for name in ("Centred", "Crasher", "Negative")]
    results = bench.run(Tiny(), out=tmp_path, learners=learners, size="small", jobs=1)
    told = {failure.experiment.learner.partition(":")[2]: failure.message for failure in results.failures}
    assert "ZeroDivisionError" in told.pop("Crasher")
    assert "no negative probability" in told.pop("Negative")
    assert not told
    found = table(results)
    assert {key: value for key, value in found.items() if "third_party" not in key} == expected
    third_party, ours = (
        results[f"{name} on split, T = 400"][0]
        for results, name in ((found, "third_party:Centred"), (expected, "centred-exp3"))
    )
    np.testing.assert_allclose(third_party, ours, rtol=1e-9)


def test_a_sleeper_fails_alone(tmp_path):
    results = bench.run(
        Tiny(), out=tmp_path, learners=["third_party:Sleeper"], episodes=1, time_limit=2, jobs=2
    )
    assert {failure.experiment.learner for failure in results.failures} == {"third_party:Sleeper"}
    assert "more than its 2 seconds" in results.failures[0].message
    assert len(results.successes) == 6


def test_a_channel_that_breaks_fails_alone(expected, tmp_path):
    results = bench.run(Tiny(), jobs=1, out=tmp_path, channels=["third_party:Broken"], size="small")
    assert {failure.experiment.channel for failure in results.failures} == {"third_party:Broken"}
    assert "out of order" in results.failures[0].message
    assert table(results) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"suite": "quik"}, "did you mean 'quick'"),
        ({"learners": ["bayess"]}, "did you mean 'bayes'"),
        ({"channels": ["spilt"]}, "did you mean 'split'"),
        ({"learners": ["third_party:NoSuchLearner"]}, "cannot import learner 'third_party:NoSuchLearner'"),
        ({"size": "huge"}, "size must be one of default, small, got 'huge'"),
        ({"episodes": 0}, "episodes"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_arguments_say_what_is_allowed(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        bench.run(**{"suite": "quick", "out": tmp_path, **arguments})
