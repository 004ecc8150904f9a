"""The tape, one round at a time, for games that begin together or not."""

import gc
import weakref

import numpy as np
import pytest
from helpers import small_rules

from ldp_gym.core.arrays import at_round
from ldp_gym.engine.referee import Playback
from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.tape import Episodes

RULES = [
    small_rules(observe_candidates=True),
    small_rules("adaptive-split", "drift"),
    small_rules("randomized-response", "adversary"),
    small_rules(hypotheses="dirichlet", observe_candidates=True),
    small_rules(hypotheses="dirichlet", observe_candidates=True, redraw_hypotheses=True),
]
FIELDS = ["members", "contexts", "distributions", "negentropies", "labels", "messages"]


def begin(scenario, seeds):
    return [scenario.start_episode(np.random.default_rng(seed)) for seed in seeds]


def tape_of(scenario, seed):
    """The whole episode of a seed."""
    return Episodes(scenario, begin(scenario, [seed])).play(scenario.horizon)


def assert_shows(player, game, tape, t):
    for name in FIELDS:
        values = getattr(tape, name)[0]
        expected = values[t] if len(values) > 1 else values[0]
        np.testing.assert_allclose(player.now(name)[game], expected, rtol=1e-9, atol=1e-12, err_msg=name)
    candidates = tape.candidates if tape.candidates.ndim == 2 else at_round(tape.candidates, t)[0]
    np.testing.assert_allclose(player.candidates[game], candidates, rtol=1e-12)


@pytest.fixture(params=[1, 3, 8])
def _blocks(request, monkeypatch):
    monkeypatch.setattr(Scenario, "rounds_at_a_time", lambda self, episodes, cells: request.param)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_games_that_begin_at_different_times_are_each_in_their_round(rules):
    scenario = Scenario(**{**rules, "horizon": 8})
    player = Playback(scenario, 3)
    assert player.over.all()
    player.begin(np.arange(3), begin(scenario, [5, 6, 7]))
    seeds, ages = [5, 6, 7], [0, 0, 0]
    for t in range(20):
        if t in (2, 3, 11):
            again = sorted({t % 3, 2})
            fresh = [100 + 10 * t + game for game in again]
            player.begin(np.array(again), begin(scenario, fresh))
            for game, seed in zip(again, fresh, strict=True):
                seeds[game], ages[game] = seed, 0
        for game in range(3):
            assert player.over[game] == (ages[game] >= 8)
            tape = tape_of(scenario, seeds[game])
            assert_shows(player, game, tape, min(ages[game], 7))
        player.advance()
        ages = [age + 1 for age in ages]


def test_many_partial_resets_leave_no_episodes_behind():
    """Only the episodes that are played are kept in memory."""
    scenario = Scenario(**small_rules(hypotheses="dirichlet"))
    player, rng, episodes = Playback(scenario, 4), np.random.default_rng(0), []

    def begin_in(games, seeds):
        starts = begin(scenario, seeds)
        episodes.extend(weakref.ref(start) for start in starts)
        player.begin(games, starts)

    begin_in(np.arange(4), range(4))
    for t in range(200):
        games = np.flatnonzero(rng.random(4) < 0.5)
        if games.size:
            begin_in(games, 1000 * t + games)
        player.advance()
    gc.collect()
    assert len(episodes) > 200
    assert sum(episode() is not None for episode in episodes) == 4


@pytest.mark.parametrize(
    ("rules", "lengths"),
    [
        (small_rules("adaptive-split"), [2, 2, 4, 8, 16, 8]),
        (small_rules("split", "adversary"), [2, 2, 4, 8, 16, 8]),
        (small_rules("split"), [40]),
    ],
)
def test_an_episode_starts_with_few_rounds_where_they_depend_on_each_other(rules, lengths, monkeypatch):
    recorded, play = [], Episodes.play
    monkeypatch.setattr(Episodes, "play", lambda self, rounds: recorded.append(rounds) or play(self, rounds))
    player = Playback(scenario := Scenario(**rules), 1)
    player.begin(np.arange(1), begin(scenario, [5]))
    for _ in range(scenario.horizon):
        player.advance()
    assert recorded == lengths
