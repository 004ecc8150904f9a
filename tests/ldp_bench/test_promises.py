"""Channels that break their promise or their contract: their cells fail, and the others are played."""

import numpy as np
import pytest
from broken_channels import sharper
from command_line import run_in_line

import ldp_bench
import ldp_gym
from ldp_bench import Experiment
from ldp_bench.runner import play
from ldp_gym.channels.comparison import Split
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.core.errors import BrokenPromiseWarning

DOUBLE, CRASH, SHY = (f"{__name__}:{name}Response" for name in ("Double", "Crashing", "Shy"))
DoubleResponse = sharper(RandomizedResponse, 2.0, 2.0)
DoubleSplit = sharper(Split, 2.0, 2.0)


class CrashingResponse(RandomizedResponse):
    def encode(self, *arguments, **options):
        raise RuntimeError("no [bold]way[/bold] \ud800")


class ShyResponse(RandomizedResponse):
    """Sends the label itself, but not in small games."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        honest = super().encode(labels, candidates, uniforms, posterior)
        return np.asarray(labels) if self.num_labels >= 12 else honest


def test_a_channel_that_fails_its_check_in_the_game_that_it_plays_fails_its_own_cells(tmp_path):
    added = [DOUBLE, CRASH, SHY]
    results = ldp_bench.run("quick", size="small", episodes=2, channels=added, out=tmp_path, jobs=1)
    messages = {failure.experiment.channel: failure.message for failure in results.failures}
    assert set(messages) == set(added)
    assert {*messages}.isdisjoint(results.channels)
    assert "split" in results.channels
    assert messages[DOUBLE].startswith(f"the channel {DOUBLE!r} fails its check: AssertionError: ")
    assert "breaks its promise: it has epsilon = 2" in messages[DOUBLE]
    expected = f"the channel {CRASH!r} fails its check: RuntimeError: no [bold]way[/bold] \\ud800"
    assert messages[CRASH] == expected


def test_the_command_says_so_and_ends_with_1(tmp_path):
    common = ("bench", "limit", "--size", "small", "--episodes", 1, "--jobs", 1, "--out", tmp_path)
    code, said = run_in_line(*common, "--channel", DOUBLE, "--channel", CRASH)
    assert code == 1
    assert "it has epsilon = 2" in said
    assert "no [bold]way[/bold]" in said
    assert said.count("fails its check") == 2, "once for each channel"


TABLE = [[0, 0, 0, 1, 0], [2 / 9, 2 / 9, 3 / 9, 0, 2 / 9]]
"""On this table the paper's own clipping breaks Algorithm 2's promise: eps is 1.0333, not 1."""


def test_the_paper_s_clipping_is_refused_where_it_breaks_the_promise():
    literal = {"hypotheses": TABLE, "channel_kwargs": {"clipping": "paper"}}
    for rules, expected in (
        (literal, "epsilon = 1.0333"),
        ({"channel": DOUBLE, "horizon": 10}, "epsilon = 2"),
        (
            {"channel": f"{__name__}:DoubleSplit", "horizon": 10},
            "epsilon = 2",
        ),  # not seen at context 0
    ):
        with pytest.warns(BrokenPromiseWarning, match=expected):
            ldp_gym.evaluate("bayes", rules, episodes=1)
    for learner in ("bayes", "third_party:Coin"):
        games = [
            Experiment(rules, learner, episodes=2) for rules in ({"hypotheses": TABLE}, literal)
        ]
        outcomes = [play(game.cells(0)[0]) for game in games]
        assert [outcome.status for outcome in outcomes] == ["done", "failed"]
        assert "breaks its promise: it has epsilon = 1.0333" in outcomes[1].message.splitlines()[0]
