"""A run that is killed between any two changes on the disk: nothing is lost, and nothing is half."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = '''
import json, os, shutil, sys
from pathlib import Path

import ldp_bench
from ldp_bench import Experiment, Store, Suite, report, store
from ldp_gym.core import files

class Tiny(Suite):
    name = title = claim = "tiny"

    def own_experiments(self, small):
        rules = {"hypotheses": "dirichlet", "horizon": 20}
        return [Experiment(rules, name, episodes=2, block=1) for name in ("uniform", "bayes")]

def play_and_report(directory):
    results = ldp_bench.run(Tiny(), jobs=1, out=directory)
    report.Report(directory, played={Tiny().address: (Tiny(), results)}).write()
    return {str(r.experiment): r.evaluation.kl.tolist() for r in results.successes}

def end_before(number):
    """Let this process end before its ``number``-th change on the disk; return the list of changes."""
    operations = []
    def count(operation):
        operations.append(operation)
        if len(operations) == number:
            os._exit(9)
    files.before_file_operation = store.before_file_operation = count
    return operations

def in_child(work):
    """Exit status of a copy of this process that does some work."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

out = Path(sys.argv[1])
operations = end_before(-1)
expected = play_and_report(out / "whole")
operations = list(operations)

ends = []
for number in range(1, len(operations) + 1):
    directory = out / str(number)
    def killed():
        end_before(number)
        play_and_report(directory)
    status = in_child(killed)

    opened = Store(directory)
    runs = opened.runs()
    keys = [cell.key for e in Tiny().experiments() for cell in e.cells(0)]
    kept = opened.finished(keys)
    page = directory / "report.html"
    whole = not page.exists() or page.read_text().rstrip().endswith("</html>")

    played = []
    ldp_bench.run(Tiny(), jobs=1, out=directory, on_cell=lambda *cell: played.append(cell))
    ends.append({
        "status": status,
        "faults": opened.faults,
        "page is whole": whole,
        "played again": len(played) - (len(keys) - len(kept)),
        "same": play_and_report(directory) == expected,
    })
print(json.dumps({"operations": operations, "ends": ends}))
'''


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The changes on the disk of a run and its report, and what was left after a kill before each."""
    pytest.importorskip("jinja2", reason="needs the extra: pip install 'ldp-gym[bench]'")
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, tmp_path_factory.mktemp("killed")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


pytestmark = pytest.mark.posix_only("fork")


def test_every_kind_of_change_is_counted(killed):
    """Tables, run, four cells and the run's end; two files of the figure, and the page."""
    assert killed["operations"] == ["commit"] * 7 + ["create", "sync", "replace"] * 3


def test_each_run_was_killed(killed):
    assert [end["status"] for end in killed["ends"]] == [9] * 16


def test_nothing_is_half(killed):
    assert [end["faults"] for end in killed["ends"]] == [[]] * 16
    assert [end["page is whole"] for end in killed["ends"]] == [True] * 16


def test_what_was_finished_is_not_played_again(killed):
    assert [end["played again"] for end in killed["ends"]] == [0] * 16


def test_the_same_command_goes_on_to_the_same_results(killed):
    assert [end["same"] for end in killed["ends"]] == [True] * 16
