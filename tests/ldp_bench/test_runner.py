"""Runs: the same for any number of jobs, on a cluster, and after a kill."""

import contextlib
import inspect
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import pytest
import third_party

import ldp_bench
import ldp_gym
from ldp_bench import Experiment, Suite, experiment, runner
from ldp_bench.commands import benchmarking
from ldp_bench.runner import play
from ldp_bench.store import Outcome
from ldp_gym.engine.learners import LEARNERS


class Tiny(Suite):
    """Two channels, three learners; at the small size in longer cells, which changes nothing."""

    name = "tiny"
    title = claim = "for the tests"

    def own_experiments(self, small):
        rules = {"hypotheses": "dirichlet", "horizon": 400}
        return [
            Experiment(
                {**rules, "channel": channel}, learner, episodes=12, block=12 if small else 3
            )
            for channel in ("laplace-single", "split")
            for learner in ("uniform", "centred-exp3", "bayes")
        ]


def table(results):
    played = ((str(result.experiment), result.evaluation) for result in results.successes)
    return {name: (evaluation.kl.tolist(), evaluation.tv.tolist()) for name, evaluation in played}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    results = ldp_bench.run(Tiny(), jobs=1, out=tmp_path_factory.mktemp("alone"))
    assert len(results.successes) == 6
    return table(results)


def test_results_are_those_of_evaluate(expected):
    game = {"hypotheses": "dirichlet", "channel": "split", "horizon": 400}
    alone = ldp_gym.evaluate("bayes", game, episodes=12)
    assert expected["bayes on split, T = 400"] == (alone.kl.tolist(), alone.tv.tolist())


def test_the_command_has_the_same_defaults():
    here = inspect.signature(ldp_bench.run).parameters
    command = inspect.signature(benchmarking.bench_command).parameters
    shared = set(here) & set(command) - {"suite"}
    assert shared >= {"episodes", "seed", "jobs", "out", "size", "dask", "trust"}
    assert {name: command[name].default for name in shared} == {
        name: here[name].default for name in shared
    }


def test_any_number_of_jobs_and_nothing_is_played_twice(expected, tmp_path):
    failed = Tiny().experiments()[0].cells(0)[0]  # and is played again
    ldp_bench.Store(tmp_path).save(failed, Outcome("failed", None, "a disk was full", 0.1))
    results = ldp_bench.run(Tiny(), out=tmp_path, jobs=2)
    assert not results.failures
    assert table(results) == expected
    again = []
    ldp_bench.run(Tiny(), jobs=1, out=tmp_path, on_cell=lambda *cell: again.append(cell))
    assert not again
    ldp_bench.run(
        Tiny(), jobs=1, out=tmp_path, episodes=15, on_cell=lambda *cell: again.append(cell)
    )
    assert len(again) == 6  # three more episodes of each experiment


KILLED = """
import os, signal, sys
from test_runner import Tiny
import ldp_bench
played = []
def after(cell, outcome):
    played.append(cell)
    if len(played) == 14:
        os.kill(os.getpid(), signal.SIGKILL)
ldp_bench.run(Tiny(), jobs=1, out=sys.argv[1], on_cell=after)
"""


@pytest.mark.posix_only("SIGKILL")
def test_killed_and_resumed(expected, tmp_path):
    """The first process is killed after 14 of 24 cells, amid an experiment; the second plays the others."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
    }
    command = [sys.executable, "-c", KILLED, tmp_path]
    ends = [subprocess.run(command, env=environment, check=False).returncode for _ in range(2)]
    assert ends == [-signal.SIGKILL, 0]
    assert table(ldp_bench.run(Tiny(), jobs=1, out=tmp_path)) == expected


@pytest.mark.parametrize("stop", [SystemExit(15), KeyboardInterrupt()])
def test_a_stop_is_not_a_failure_of_the_learner(tmp_path, monkeypatch, stop):
    """SIGTERM under a host that turns it into SystemExit, while a learner of this package plays."""

    def stopped(*_, **__):
        raise stop

    with monkeypatch.context() as patch:
        patch.setattr(runner, "evaluate", stopped)
        with pytest.raises(type(stop)):
            ldp_bench.run(Tiny(), jobs=1, out=tmp_path)
    keys = [cell.key for experiment in Tiny().experiments() for cell in experiment.cells(0)]
    assert ldp_bench.Store(tmp_path).outcomes(keys) == {}


@contextlib.contextmanager
def cluster(workers):
    """A scheduler and workers, each a process, on loopback; their output is read and thrown away."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    common = ["--no-dashboard", "--host", "127.0.0.1"]
    processes = []

    def start(program, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments, *common]
        processes.append(
            subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        )
        return processes[-1].stderr

    try:
        said = start("dask_scheduler", "--port", "0")
        address = next(
            word for line in said for word in line.split() if word.startswith("tcp://127")
        )
        for _ in range(workers):
            start("dask_worker", address, "--no-nanny", "--nthreads", "1")
        for process in processes:
            threading.Thread(target=process.stderr.read, daemon=True).start()
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_a_cluster_whose_worker_is_killed(expected, tmp_path, monkeypatch):
    """Small pieces, so that the worker is killed amid the run."""
    pytest.importorskip("distributed", reason="needs the extra: pip install 'ldp-gym[cluster]'")
    monkeypatch.setattr(runner, "_ROUNDS_ON_CLUSTER", 1)
    with cluster(workers=2) as (address, workers):
        played = []

        def after(cell, outcome):
            played.append(outcome.status)
            if len(played) == 4:
                workers[0].kill()

        results = ldp_bench.run(Tiny(), jobs=1, out=tmp_path, dask=address, on_cell=after)
    assert not results.failures
    assert table(results) == expected


def test_a_cluster_with_one_thread_plays_and_this_process_does_not(expected, tmp_path, monkeypatch):
    pytest.importorskip("distributed", reason="needs the extra: pip install 'ldp-gym[cluster]'")

    def play_here(*_):
        raise AssertionError("this process plays")

    monkeypatch.setattr(runner, "play", play_here)
    with cluster(workers=1) as (address, _):
        results = ldp_bench.run(Tiny(), jobs=1, out=tmp_path, dask=address)
    assert table(results) == expected


def test_a_worker_with_other_code_refuses_a_cell(monkeypatch):
    (cell, *_) = Tiny().experiments()[0].cells(seed=0)
    (same,) = runner._play_piece([cell], trust=False, is_elsewhere=True)
    assert same.status == "done"

    monkeypatch.setattr(experiment, "own_code", lambda: "other code")
    (refused,) = runner._play_piece([cell], trust=False, is_elsewhere=True)
    assert refused.status == "failed"
    assert "has other code of ldp-gym than this run: install the same code" in refused.message


def test_a_worker_without_a_learner_s_package_refuses_a_cell(monkeypatch):
    (cell, *_) = replace(Tiny().experiments()[0], learner="third_party:Coin").cells(seed=0)
    elsewhere = replace(cell, experiment=replace(cell.experiment, learner="nowhere:Coin"))
    (refused,) = runner._play_piece([elsewhere], trust=False, is_elsewhere=True)
    assert refused.status == "failed"
    assert (
        "the worker cannot read its code: cannot import learner 'nowhere:Coin'" in refused.message
    )


# -- Pieces of work -----------------------------------------------------------------------------------------


def pieces_of_tiny(jobs, dask=None):
    cells = [cell for one in Tiny().experiments() for cell in one.cells(seed=0)]
    assert len(cells) == 24
    return runner._cut_into_pieces(cells, jobs, dask)


def test_cells_of_one_tape_are_one_piece():
    """Two channels, and four blocks of episodes; on each three learners."""
    pieces = pieces_of_tiny(jobs=2)
    assert [len(piece) for piece in pieces] == [3] * 8
    for piece in pieces:
        assert len({(cell.experiment.channel, cell.seed) for cell in piece}) == 1


def test_many_processes_get_small_pieces():
    assert [len(piece) for piece in pieces_of_tiny(jobs=12)] == [1] * 24


def test_one_process_saves_each_cell_by_itself():
    assert [len(piece) for piece in pieces_of_tiny(jobs=1)] == [1] * 24


def test_a_cluster_gets_whole_tapes():
    assert [len(piece) for piece in pieces_of_tiny(jobs=1, dask="tcp://nowhere")] == [3] * 8


def test_a_cell_that_kills_its_process_fails_alone(tmp_path, monkeypatch):
    cells = Tiny().experiments()[0].cells(seed=0)
    deadly = cells[1]

    def share_out(work, pieces, jobs, dask):
        for index, piece in enumerate(pieces):
            if deadly in piece:
                yield index, BrokenProcessPool("killed twice")
            else:
                yield index, work(piece)

    monkeypatch.setattr(runner, "share_out", share_out)
    monkeypatch.setattr(runner, "_cut_into_pieces", lambda cells, *_: [list(cells)])
    played = {
        cell.seed: outcome
        for cell, outcome in runner.play_cells(cells, ldp_bench.Store(tmp_path), jobs=2)
    }
    statuses = [played[cell.seed].status for cell in cells]
    assert statuses == ["done", "failed", "done", "done"]
    assert "was killed, twice" in played[deadly.seed].message


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"hypotheses": "third_party:RandomClass"}, "the same candidates when asked twice"),
        ({"nature": "third_party:RandomNature"}, "the same contexts"),
        ({"truth": "third_party:RandomTruth"}, "the same distribution alone and in a batch"),
    ],
)
def test_third_party_classes_natures_and_truths_are_checked(rules, message):
    outcome = play(Experiment({"horizon": 50, **rules}, "uniform", episodes=2).cells(0)[0])
    assert outcome.status == "failed"
    ((party, name),) = rules.items()
    assert outcome.message.startswith(f"the {party} {name!r} fails its check: AssertionError: ")
    assert message in outcome.message


def test_an_experiment_whose_cells_end_differently_has_failed(tmp_path, monkeypatch):
    monkeypatch.setitem(LEARNERS.own, "moody", third_party.Moody)
    results = ldp_bench.run(Tiny(), jobs=1, out=tmp_path, learners=["moody"])
    assert {failure.experiment.learner for failure in results.failures} == {"moody"}
    said = results.failures[0].summary
    assert re.match(r"it refused \d of 4 cells, and played the others: not today", said)
    assert "moody" not in results.learners
    again = ldp_bench.run(Tiny(), jobs=1, out=tmp_path, learners=["moody"])
    assert len(again.failures) == len(results.failures)
