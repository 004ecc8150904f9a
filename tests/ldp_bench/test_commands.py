"""The command line, as a user types it."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from broken_channels import sharper
from command_line import run, run_in_line

from ldp_bench.commands.catalogue import LISTED
from ldp_gym.channels.base import Channel
from ldp_gym.channels.noisy import LaplaceSingle
from ldp_gym.channels.randomized_response import RandomizedResponse

SMALL = "--rule num_hypotheses=2 --rule num_labels=3"
CEILINGS = "laplace-single --hypotheses [[1,0,0],[0,0.5,0.5]] --horizon 100"
LITERAL = "--rule channel_kwargs.clipping=paper"
VECTORS = (
    "--delta 1e-5 --hypotheses softmax-linear --contexts 3 --rule channel_kwargs.calibration=tight"
)
AS_FUNCTION = "--num-labels 2 --epsilon 1"


COINS = np.random.default_rng(0)


def respond(label):
    """Randomized response at eps = log 9."""
    return label if COINS.random() < 0.9 else 1 - label


def crash(label):
    return 1 // label


def test_the_certificate_is_that_of_the_worst_context():
    found = []
    for contexts in (1, 4, 16):
        game = f"laplace-single --hypotheses softmax-linear --horizon 50 --contexts {contexts} {LITERAL}"
        _, output = run("audit", *game.split())
        found.append(float(re.search(r"found\W+eps = ([\d.]+)", output).group(1)))
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_a_channel_that_does_not_do_what_its_density_says_is_not_certified():
    code, output = run("audit", "broken_channels:ClearText", *SMALL.split(), "--trials", "2000")
    assert code == 1
    assert "breaks its contract" in output
    assert "gets no certificate" in output
    assert "holds" not in output
    assert (
        "black box: the claim of eps = 1 is broken" in output
    )  # what was asked for is run all the same


Louder = sharper(RandomizedResponse, 2.0, 2.0)


class Mute(LaplaceSingle):
    """Does not say where its density ratio is largest."""

    worst_case_messages = Channel.worst_case_messages


class Crashing(RandomizedResponse):
    def encode(self, *args):
        raise KeyError("nobody home")


class Quitting(RandomizedResponse):
    def encode(self, *args):
        raise SystemExit(0)


class NeverMade(RandomizedResponse):
    def __init__(self, *sizes, **options):
        raise SystemExit(0)


BLACK_BOX_HOLDS = "black box: no proof that the claim of eps = 1 is broken"
AUDITS = [
    (CEILINGS, 0, "the promise holds"),
    (f"{CEILINGS} {LITERAL}", 1, "eps = 1.01667016", "the promise is broken"),
    ("identity", 1, "no privacy at all"),
    ("split --epsilon 5e-324", 0, "the promise holds"),
    ("ldp_gym.channels:RandomizedResponse", 0, "the promise holds"),
    (f"laplace-vector {VECTORS}", 0, "worst of 3 contexts"),
    (f"gaussian-vector {VECTORS}", 0, "worst of 3 contexts"),
    ("adaptive-split", 0, "the promise holds", "public posterior"),
    ("randomized-response --trials 20000", 0, BLACK_BOX_HOLDS, "19,992 were drawn"),
    (f"HERE:respond {AS_FUNCTION} --trials 2e4", 1, "the claim of eps = 1 is broken"),
    (f"HERE:respond {AS_FUNCTION} --trials 2e4 --delta 0.7", 0, "no proof that the claim"),
    (f"HERE:crash {AS_FUNCTION}", 1, "no black-box audit: crash failed for label 0"),
    (f"HERE:Louder {SMALL}", 1, "the promise is broken"),
    (f"HERE:Louder {SMALL} --trials 20000", 1, "black box: the claim of eps = 1 is broken"),
    (f"HERE:Crashing {SMALL}", 1, "gets no certificate: KeyError: 'nobody home'"),
    (
        f"HERE:Crashing {SMALL} --trials 2000",
        1,
        "label 0 after 0 messages, with KeyError: 'nobody home'",
    ),
    (f"HERE:Quitting {SMALL} --trials 2000", 1, "no black-box audit"),
    (f"HERE:NeverMade {SMALL}", 2, "ended the program"),
    (f"HERE:Mute {SMALL}", 2, "Pass --trials to audit it from its messages"),
    (f"HERE:Mute {SMALL} --trials 2000", 0, "no exact audit"),
    ("laplace-singel", 2, "did you mean 'laplace-single'"),
    ("laplace-single --rule clipping", 2, "name=value, got 'clipping'"),
    ("laplace-single --horizon 9 --rule horizon=8", 2, "is already set"),
    ("laplace-single --contexts 0", 2, "--contexts must be at least 1, got 0"),
    ("laplace-single --trials 3", 2, "trials must be at least 320, got 3"),
    (f"laplace-single --trials {10**14}", 2, "--trials must be at most"),
    ("laplace-single --trials 1e-5", 2, "--trials must be a whole number"),
    ("HERE:respond --epsilon 1", 2, "a function needs --num-labels"),
    (f"HERE:respond {AS_FUNCTION} --rule horizon=9", 2, "a function needs --num-labels"),
    ("laplace-vector", 2, "pass for example --delta 1e-5"),
    ("builtins:dict", 2, "builtins:dict is not a channel"),
    ("laplace-single --rule channel_kwargs.clippin=paper", 2, "takes no option 'clippin'"),
    ("laplace-single --hypotheses [[1,0]", 2, "'[[1,0]' is not JSON"),
]


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit[0])
def test_an_audit_says_what_it_found_or_what_is_allowed(audit):
    arguments, expected, *messages = audit
    code, output = run_in_line("audit", *arguments.replace("HERE", __name__).split())
    assert code == expected, output
    assert all(message in output for message in messages), output


def test_list_has_a_sentence_for_everything_that_has_a_name():
    shown = run("list")[1]
    for registry in LISTED.values():
        for name in registry:
            line = next(
                line for line in shown.splitlines() if line.split() and line.split()[0] == name
            )
            assert len(line.split()) > 4, line
    assert "adaptive-split" in run("list", "channels")[1]
    assert "adaptive-split" not in run("list", "truths")[1]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_without_unicode_gets_the_findings_and_the_report_is_written_in_utf8(
    encoding, tmp_path
):
    environment = {
        **os.environ,
        "PYTHONIOENCODING": encoding,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    arguments = ["bench", "limit", "--size", "small", "--episodes", "2", "--jobs", "1", "--out"]
    command = [sys.executable, "-m", "ldp_bench", *arguments, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "limit: " in done.stdout.decode(encoding)  # what was printed can be decoded
    assert "ε" in (tmp_path / "report.html").read_text("utf-8")
