"""Third-party learners that mean harm: at import, in processes of their own, by memory and by noise."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import ldp_gym
from ldp_gym import bench
from ldp_gym.bench import Experiment
from ldp_gym.bench.isolation import IsolatedLearner, Limits
from ldp_gym.bench.runner import play
from ldp_gym.core.errors import LearnerFailedError

GAME = {"hypotheses": "dirichlet", "horizon": 60}

UNIFORM = """
import numpy as np
class Learner:
    def __init__(self, game): pass
    def reset(self, batch_shape=()): self.batch_shape = batch_shape
    def predict(self, candidates):
        mixed = candidates.mean(axis=-2)
        return np.broadcast_to(mixed, (*self.batch_shape, mixed.shape[-1]))
    def update(self, candidates, message): pass
"""


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Writes a module whose top level does something, and then offers a harmless learner."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(top, name="hostile"):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(top) + UNIFORM)
        return f"{name}:Learner"

    return write


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


PATCH = """
import ldp_gym.evaluation, ldp_gym.core.divergences as divergences
ldp_gym.evaluation.kl = divergences.kl = lambda *_, **__: 0.0
"""


def test_what_it_patches_at_import_is_its_own(hostile, tmp_path):
    learner = hostile(PATCH)
    cell = Experiment(GAME, learner, episodes=2).cells(seed=0)[0]
    expected = ldp_gym.evaluate("uniform", GAME, episodes=2)
    np.testing.assert_allclose(play(cell).evaluation.kl, expected.kl, rtol=1e-12)
    assert "hostile" not in sys.modules


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ("raise SystemExit(0)", "cannot import learner 'hostile:Learner': SystemExit: 0"),
        ("import os; os._exit(0)", "the process of hostile:Learner ended with status 0"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
        ("import time; time.sleep(3600)", "took more than its 2 seconds"),
        ("raise BaseException('[/red] \\ud800')", r"BaseException: \[/red\] \\ud800"),
    ],
)
def test_what_it_does_at_import_is_told(hostile, tmp_path, top, message):
    seconds = 2 if "2 seconds" in message else 60
    with pytest.raises(ValueError, match=message):
        bench.run("limit", learners=[hostile(top)], out=tmp_path, size="small", jobs=1, time_limit=seconds)


ESCAPE = """
import os, pathlib, subprocess, sys, time
mark = pathlib.Path({mark!r})
program = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(3600)"
subprocess.Popen([sys.executable, "-S", "-c", program, mark], start_new_session=True)
while not mark.exists() or not mark.read_text():
    time.sleep(0.01)
if os.fork():
    os._exit(0) if {leave} else time.sleep(3600)
os.setsid()  # and it keeps the pipe
time.sleep(3600)
"""


@pytest.mark.parametrize("leave", [True, False])
def test_no_session_of_its_own_outlives_the_limit(hostile, tmp_path, leave):
    mark = tmp_path / "escaped"
    learner = hostile(ESCAPE.format(mark=str(mark), leave=leave))
    start = time.monotonic()
    with IsolatedLearner(learner, {}, Limits(2.0)) as isolated, pytest.raises(LearnerFailedError):
        isolated.find()
    assert time.monotonic() - start < 8
    assert wait_until(lambda: not is_alive(int(mark.read_text())))


ALONE = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup would have it ignore
sys.path.insert(0, {place!r})
from ldp_gym.bench.isolation import IsolatedLearner, Limits
with IsolatedLearner("hostile:Learner", {{}}, Limits(3600.0)) as isolated:
    isolated.find()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_it_ends_with_whoever_asked_for_it(hostile, tmp_path, number):
    mark = tmp_path / "escaped"
    hostile(ESCAPE.format(mark=str(mark), leave=False))
    referee = subprocess.Popen([sys.executable, "-c", ALONE.format(place=str(tmp_path))])
    assert wait_until(lambda: mark.exists() and mark.read_text())
    referee.send_signal(number)
    referee.wait()
    assert wait_until(lambda: not is_alive(int(mark.read_text())))


def test_memory_is_limited(hostile):
    learner = hostile("import numpy; hoard = numpy.ones(2**28)")
    with (
        IsolatedLearner(learner, {}, Limits(30.0, 1.0)) as isolated,
        pytest.raises(LearnerFailedError, match="MemoryError"),
    ):
        isolated.find()
    many = """
    import os, time
    for _ in range(3):
        if not os.fork():
            hoard = bytearray(400 * 2**20)
            time.sleep(3600)
    time.sleep(3600)
    """
    with (
        IsolatedLearner(hostile(many, "many"), {}, Limits(30.0, 1.0)) as isolated,
        pytest.raises(LearnerFailedError, match="more than its 1 GiB of memory"),
    ):
        isolated.find()


def test_answers_are_bounded(hostile):
    flood = """
    import os
    for descriptor in range(3, 20):
        try: os.write(descriptor, b"numbers 99999999999\\n")
        except OSError: pass
    """
    with (
        IsolatedLearner(hostile(flood), {}, Limits(5.0)) as isolated,
        pytest.raises(LearnerFailedError, match="sent an answer of 799999999992 bytes"),
    ):
        isolated.find()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"seconds": 0.0}, "time_limit"),
        ({"seconds": float("nan")}, "time_limit"),
        ({"seconds": float("inf")}, "time_limit"),
        ({"seconds": "a"}, "time_limit"),
        ({"memory": 0.1}, "at least 0.5 GiB"),
    ],
)
def test_limits_are_numbers(limits, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Limits(**limits)


WORKERS = """
from ldp_gym import bench
from ldp_gym.bench import Experiment, Suite
class Slow(Suite):
    name = title = claim = "slow"
    def own_experiments(self, small):
        rules = {{"hypotheses": "dirichlet", "channel": "slow_channel:Slow"}}
        return [Experiment({{**rules, "horizon": n}}, "uniform") for n in (200, 201, 202)]
    def findings(self, results): return []
    def draw(self, results): raise NotImplementedError
bench.run(Slow(), jobs=2, out={out!r})
"""

SLOW = """
import os, time
from ldp_gym.channels.randomized_response import RandomizedResponse
class Slow(RandomizedResponse):
    def encode(self, labels, candidates, uniforms, posterior=None):
        if self.horizon > 100:
            open(os.path.join(os.path.dirname(__file__), f"worker-{os.getpid()}"), "w").close()
            time.sleep(3600)
        return super().encode(labels, candidates, uniforms, posterior)
"""


def test_workers_end_with_their_parent(tmp_path):
    import_module("joblib")  # which the other process needs
    (tmp_path / "slow_channel.py").write_text(SLOW)
    program = WORKERS.format(out=str(tmp_path / "out"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    referee = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], env=environment)
    assert wait_until(lambda: len(list(tmp_path.glob("worker-*"))) == 2)
    workers = [int(path.name.partition("-")[2]) for path in tmp_path.glob("worker-*")]
    referee.kill()
    referee.wait()
    assert wait_until(lambda: not any(map(is_alive, workers)))


CHANNEL = """
from ldp_gym.channels.randomized_response import RandomizedResponse
class Raising(RandomizedResponse):
    def encode(self, labels, candidates, uniforms, posterior=None):
        if self.horizon > 100:
            raise {what}
        return super().encode(labels, candidates, uniforms, posterior)
"""


@pytest.mark.parametrize(
    ("what", "summary"),
    [
        ("SystemExit(0)", "SystemExit: 0"),
        ("RuntimeError('half of a pair: \\ud800')", "RuntimeError: half of a pair: \\ud800"),
        ("GeneratorExit", "GeneratorExit"),
    ],
)
def test_a_channel_may_raise_anything(tmp_path, monkeypatch, what, summary):
    monkeypatch.syspath_prepend(tmp_path)
    name = "raising_" + str(abs(hash(what)))
    (tmp_path / f"{name}.py").write_text(CHANNEL.format(what=what))
    rules = {"hypotheses": "dirichlet", "channel": f"{name}:Raising", "horizon": 200}
    cell = Experiment(rules, "uniform", episodes=2).cells(seed=0)[0]
    outcome = play(cell, Limits())
    assert outcome.status == "failed"
    first = f"ChannelFailedError: the channel '{name}:Raising' fails its check: {summary}"
    assert outcome.message.splitlines()[0] == first
    store = bench.Store(tmp_path)
    store.save(cell, outcome)
    assert store.outcomes([cell.key])[cell.key].message == outcome.message
