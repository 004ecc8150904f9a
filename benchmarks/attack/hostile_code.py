"""Third-party learners and channels that mean harm. The referee goes on, and its numbers stay."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import ldp_gym
from ldp_gym.bench import Experiment
from ldp_gym.bench.isolation import Limits
from ldp_gym.bench.runner import play

RULES = {"hypotheses": "dirichlet", "horizon": 60}
_SECONDS, _GRACE = 4.0, 12.0

_LEARNER = """
import os, sys, time, signal, subprocess, threading
import numpy as np
{top}
class Learner:
    def __init__(self, game):
        self.game, self.big = game, game.horizon > 12
        {make}
    def reset(self, batch_shape=()):
        self.batch_shape = batch_shape
    def predict(self, candidates):
        mixed = candidates.mean(axis=-2)
        prediction = np.broadcast_to(mixed, (*self.batch_shape, mixed.shape[-1])).copy()
        if self.big:
            {predict}
        return prediction
    def update(self, candidates, message):
        if self.big:
            {update}
"""

_CHANNEL = """
from ldp_gym.channels.randomized_response import RandomizedResponse
class Channel(RandomizedResponse):
    def encode(self, labels, candidates, uniforms, posterior=None):
        if self.horizon == 60:
            {encode}
        return super().encode(labels, candidates, uniforms, posterior)
"""

_PATCH = "import ldp_gym.evaluation as e; e.kl = lambda *_, **__: np.zeros(1)"
_SESSION = "subprocess.Popen(['sleep', '3600'], start_new_session=True)"
_DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
_DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(3600)
"""
_FLOOD = """
for number in range(3, 12):
    try: os.write(number, b"numbers 99999999999\\n" * 100)
    except OSError: pass
"""

LEARNERS: list[tuple[str, dict[str, str], bool]] = [
    ("patches the divergence at import", {"top": _PATCH}, True),
    ("patches the divergence when it predicts", {"predict": _PATCH}, True),
    ("exits at import", {"top": "raise SystemExit(0)"}, False),
    ("leaves at import", {"top": "os._exit(0)"}, False),
    ("crashes at import", {"top": "os.kill(os.getpid(), signal.SIGSEGV)"}, False),
    ("sleeps at import", {"top": "time.sleep(3600)"}, False),
    ("raises a BaseException at import", {"top": "raise BaseException('[/red]')"}, False),
    ("is no Python", {"top": "this is no Python"}, False),
    ("exits when made", {"make": "sys.exit(0)"}, False),
    ("exits when it predicts", {"predict": "sys.exit(0)"}, False),
    ("leaves when it predicts", {"predict": "os._exit(0)"}, False),
    ("sleeps when it predicts", {"predict": "time.sleep(3600)"}, False),
    ("sleeps when it learns", {"update": "time.sleep(3600)"}, False),
    ("starts a daemon at import", {"top": _DAEMON}, True),
    ("starts a process in another session", {"predict": _SESSION}, True),
    ("ignores signals and sleeps", {"predict": _DEAF}, False),
    ("eats memory", {"predict": "self.hoard = np.ones(2**30)"}, False),
    ("returns NaN", {"predict": "prediction[:] = np.nan"}, False),
    ("returns negative numbers", {"predict": "prediction = 1 - 2 * prediction"}, False),
    ("returns another shape", {"predict": "prediction = prediction[..., :-1]"}, False),
    ("returns objects", {"predict": "prediction = self"}, False),
    ("returns complex numbers", {"predict": "prediction = prediction * 1j"}, False),
    ("returns a gigabyte", {"predict": "prediction = np.ones(2**27)"}, False),
    ("floods the pipe", {"predict": _FLOOD.strip().replace("\n", "\n            ")}, False),
    ("closes every file", {"predict": "os.closerange(0, 100)"}, False),
    ("prints without end", {"predict": "print('x' * 10**6)"}, True),
    ("kills its parent", {"predict": "os.kill(os.getppid(), signal.SIGKILL)"}, False),
    ("kills its group", {"predict": "os.killpg(0, signal.SIGKILL)"}, False),
    ("recurses", {"predict": "f = lambda f: f(f); f(f)"}, False),
    ("has surrogates in its error", {"predict": "raise ValueError('\\ud800[/]')"}, False),
    ("rewrites what it is handed", {"update": "candidates[...] = 0; message[...] = 0"}, False),
    ("forks and both answer", {"predict": "os.fork()"}, False),
]  # fmt: skip
"""What each does, where, and whether it may play on as the harmless learner that it else is."""

CHANNELS = {
    "a channel that exits": "raise SystemExit(0)",
    "a channel that raises a surrogate": "raise RuntimeError('\\ud800')",
    "a channel that raises GeneratorExit": "raise GeneratorExit",
    "a channel that gives text": "return 'message'",
}


def run(rng: np.random.Generator, count: int = 36) -> tuple[int, list[str]]:
    """Play so many of them, drawn by ``rng``; how many were tried, and those that fell."""
    fallen = []
    everyone = [*range(len(LEARNERS) + len(CHANNELS))]
    chosen = sorted(rng.permutation(everyone)[:count])
    expected = ldp_gym.evaluate("uniform", RULES, episodes=2).kl
    with tempfile.TemporaryDirectory() as directory:
        sys.path.insert(0, directory)
        try:
            for number in chosen:
                fault = _attack(Path(directory), int(number), expected)
                if fault:
                    fallen.append(fault)
        finally:
            sys.path.remove(directory)
    return len(chosen), fallen


def _attack(directory: Path, number: int, expected: np.ndarray) -> str | None:
    name = f"hostile_{number}"
    if number < len(LEARNERS):
        about, parts, harmless = LEARNERS[number]
        text = _LEARNER.format(**{"top": "", "make": "pass", "predict": "pass", "update": "pass", **parts})
        experiment = Experiment(RULES, f"{name}:Learner", episodes=2)
    else:
        about, harmless = list(CHANNELS)[number - len(LEARNERS)], False
        text = _CHANNEL.format(encode=CHANNELS[about])
        experiment = Experiment({**RULES, "channel": f"{name}:Channel"}, "uniform", episodes=2)
    (directory / f"{name}.py").write_text(text)
    start, before = time.monotonic(), _processes()
    outcome = play(experiment.cells(0)[0], Limits(_SECONDS, 2.0))
    if time.monotonic() - start > 2 * (_SECONDS + _GRACE):
        return f"{about}: it took {time.monotonic() - start:.0f} seconds"
    if outcome.status == "done":
        assert outcome.evaluation is not None
        if not np.allclose(outcome.evaluation.kl, expected, rtol=1e-9):
            return f"{about}: its losses are not those of its predictions"
    elif harmless or outcome.status != "failed" or not (outcome.message or "").strip():
        return f"{about}: {outcome.status}, {(outcome.message or '').strip()[:200]}"
    if number < len(LEARNERS) and name in sys.modules:
        return f"{about}: it was imported beside the referee"
    end = time.monotonic() + _GRACE
    while (left := _processes() - before) and time.monotonic() < end:
        time.sleep(0.1)
    return f"{about}: {len(left)} processes are left" if left else None


def _processes() -> set[int]:
    """The processes of this user that were started with this directory's modules, or by those that were."""
    found = set()
    mark = f"LDP_GYM_ATTACK={os.getpid()}".encode()
    os.environ["LDP_GYM_ATTACK"] = str(os.getpid())
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            facts = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            if facts[0] != "Z" and mark in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                found.add(int(name))
        except OSError:
            continue
    return found
