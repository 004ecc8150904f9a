"""The command line, as a user types it."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from broken_channels import sharper
from command_line import run, run_in_line

from ldp_gym.channels.base import Channel
from ldp_gym.channels.noisy import LaplaceSingle
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.cli.catalogue import REGISTRIES

SMALL = ["--rule", "num_hypotheses=2", "--rule", "num_labels=3"]
AS_FUNCTION = ["--num-labels", "2", "--epsilon", "1"]
CEILINGS = ["audit", "laplace-single", "--hypotheses", "[[1,0,0],[0,0.5,0.5]]", "--horizon", "100"]


@pytest.mark.parametrize("call", ["import ldp_gym.cli", "from ldp_gym.__main__ import main; main()"])
def test_without_the_extra_it_says_what_to_install(call):
    program = f"import sys; sys.modules['typer'] = None; {call}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("the command ldp-gym needs typer: pip install 'ldp-gym[bench]'\n")
    assert ("Traceback" in done.stderr) == call.startswith("import")


VECTORS = ["--rule", "delta=1e-5", "--hypotheses", "softmax-linear", "--contexts", "3"]
VECTORS += ["--rule", "channel_kwargs.calibration=tight"]
LITERAL = ["--rule", "channel_kwargs.clipping=paper"]


COINS = np.random.default_rng(0)


def respond(label):
    """Randomized response at eps = log 9."""
    return label if COINS.random() < 0.9 else 1 - label


def crash(label):
    return 1 // label


@pytest.mark.parametrize(
    ("function", "arguments", "expected", "message"),
    [
        ("respond", ["--trials", "2e4"], 1, "the claim of eps = 1 is broken"),
        ("respond", ["--trials", "2e4", "--rule", "delta=0.7"], 0, "no proof that the claim"),
        ("crash", [], 1, "no audit: crash failed for label 0"),
    ],
)
def test_a_function_is_audited_by_its_messages(function, arguments, expected, message):
    code, output = run_in_line("audit", f"{__name__}:{function}", *AS_FUNCTION, *arguments)
    assert code == expected
    assert message in output


@pytest.mark.parametrize(
    ("arguments", "expected", "messages"),
    [
        (CEILINGS, 0, ["the promise holds"]),
        ([*CEILINGS, *LITERAL], 1, ["eps = 1.01667016", "the promise is broken"]),
        (["audit", "identity"], 1, ["no privacy at all"]),
        (["audit", "split", "--epsilon", "5e-324"], 0, ["the promise holds"]),
        (["audit", "ldp_gym.channels:RandomizedResponse"], 0, ["the promise holds"]),
        (["audit", "laplace-vector", *VECTORS], 0, ["worst of 3 contexts"]),
        (["audit", "gaussian-vector", *VECTORS], 0, ["worst of 3 contexts"]),
        (["audit", "adaptive-split"], 0, ["the promise holds", "public posterior"]),
        (
            ["audit", "randomized-response", "--trials", "20000"],
            0,
            [
                "black box: no proof that the claim of eps = 1 is broken",
                "19,992 messages: 9,992 to choose two",
            ],
        ),
    ],
)
def test_an_audit_says_what_it_found(arguments, expected, messages):
    code, output = run_in_line(*arguments)
    assert code == expected
    assert all(message in output for message in messages), output


def test_the_certificate_is_that_of_the_worst_context():
    found = []
    for contexts in (1, 4, 16):
        _, output = run(
            "audit", "laplace-single", "--hypotheses", "softmax-linear", "--horizon", "50",
            "--contexts", str(contexts), *LITERAL,
        )  # fmt: skip
        found.append(float(re.search(r"found\W+eps = ([\d.]+)", output).group(1)))
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_a_channel_that_does_not_do_what_its_density_says_is_not_certified():
    code, output = run("audit", "broken_channels:ClearText", *SMALL, "--trials", "2000")
    assert code == 1
    assert "breaks its contract" in output
    assert "gets no certificate" in output
    assert "holds" not in output
    assert "black box: the claim of eps = 1 is broken" in output  # what was asked for is run all the same


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


@pytest.mark.parametrize(
    ("channel", "arguments", "expected", "message"),
    [
        ("Louder", [], 1, "the promise is broken"),
        ("Louder", ["--trials", "20000"], 1, "black box: the claim of eps = 1 is broken"),
        ("Crashing", [], 1, "gets no certificate: KeyError: 'nobody home'"),
        ("Crashing", ["--trials", "2000"], 1, "the channel failed with KeyError: 'nobody home'"),
        ("Quitting", ["--trials", "2000"], 1, "no black-box audit"),
        ("NeverMade", [], 2, "ended the program"),
        ("Mute", [], 2, "Pass --trials to audit it from its messages"),
        ("Mute", ["--trials", "2000"], 0, "no exact audit"),
    ],
)
def test_the_exit_status_says_what_was_found(channel, arguments, expected, message):
    code, output = run_in_line("audit", f"{__name__}:{channel}", *SMALL, *arguments)
    assert code == expected
    assert message in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "laplace-singel"], "did you mean 'laplace-single'"),
        (["audit", "laplace-vector"], "needs delta > 0"),
        (["audit", "laplace-single", "--rule", "clipping"], "name=value, got 'clipping'"),
        (["audit", "laplace-single", "--rule", "horizn=9"], "did you mean 'horizon'?"),
        (["audit", "laplace-single", "--horizon", "9", "--rule", "horizon=8"], "is already set"),
        (["audit", "laplace-single", "--contexts", "0"], "Invalid value for '--contexts'"),
        (["audit", "laplace-single", "--trials", "3"], "trials must be at least 320, got 3"),
        (["audit", "laplace-single", "--trials", str(10**14)], "Invalid value for '--trials'"),
        (["audit", "laplace-single", "--trials", "1e-5"], "Invalid value for '--trials'"),
        (["audit", f"{__name__}:respond", "--epsilon", "1"], "--num-labels and --epsilon"),
        (["audit", f"{__name__}:respond", *AS_FUNCTION, "--rule", "horizon=9"], "no rules but delta"),
        (["audit", "builtins:dict"], "builtins:dict is not a channel"),
        (["audit", "laplace-single", "--rule", "channel_kwargs.clippin=paper"], "takes no option 'clippin'"),
        (["audit", "laplace-single", "--hypotheses", "[[1,0],[0.5,0.6]]"], "hypothesis 1 sums to 1.1"),
        (["audit", "laplace-single", "--hypotheses", "[[1,0]"], "'[[1,0]' is not JSON"),
    ],
)
def test_bad_arguments_say_what_is_allowed(arguments, message):
    code, output = run_in_line(*arguments)
    assert code == 2
    assert message in output


def test_list_has_a_sentence_for_everything_that_has_a_name():
    shown = run("list")[1]
    for registry in REGISTRIES.values():
        for name in registry:
            line = next(line for line in shown.splitlines() if line.split() and line.split()[0] == name)
            assert len(line.split()) > 4, line
    assert "adaptive-split" in run("list", "channels")[1]
    assert "adaptive-split" not in run("list", "truths")[1]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_without_unicode_gets_the_findings_and_the_report_is_written_in_utf8(encoding, tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = ["bench", "limit", "--size", "small", "--episodes", "2", "--jobs", "1", "--out"]
    command = [sys.executable, "-m", "ldp_gym", *arguments, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "limit: " in done.stdout.decode(encoding)  # what was printed can be decoded
    assert "ε" in (tmp_path / "report.html").read_text("utf-8")
