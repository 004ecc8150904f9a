"""What Nature and the users do, in any blocks, alone and in a batch; and what the referee makes of it."""

import gc
import weakref

import numpy as np
import pytest
from helpers import make_episodes, small_rules
from scipy import stats

import ldp_gym
from ldp_gym.core.divergences import kl, tv
from ldp_gym.engine.playback import Playback
from ldp_gym.engine.referee import Referee
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.tape import Episodes
from ldp_gym.envs.dist import Predictor


class Careless(ldp_gym.HypothesisClass):
    def __init__(self, candidates):
        super().__init__(2, 3, 1)
        self.candidates = None if candidates is None else np.asarray(candidates)

    def __call__(self, contexts):
        if self.candidates is None:
            return [[0.5, 0.5, 0.0]] * 2
        return np.broadcast_to(self.candidates, (*contexts.shape[:-1], *self.candidates.shape[-2:]))


class Lost(ldp_gym.Nature):
    num_uniforms = 1

    def __init__(self, given):
        super().__init__(1)
        self.given = given

    def contexts(self, stretch):
        return self.given


def test_a_class_that_gives_no_distributions_is_named():
    for candidates, message in (
        (
            [[0.5, 0.5, 0.1], [1, 0, 0]],
            r"Careless\(K=2, M=3, d=1\) gives wrong.*hypothesis 0 sums to 1.1",
        ),
        ([[1, 0]] * 3, r"floats, of shape \(1, 5, 2, 3\), got \(1, 5, 3, 2\)"),
        (None, "must give candidates as an array of floats"),
        ([[[1, 0.0, 0]] * 2] * 4 + [[[0.5, 0, 0]] * 2], "hypothesis 0 sums to 0.5"),
    ):
        with pytest.raises(ValueError, match=message):
            ldp_gym.LDPDistEnv(hypotheses=Careless(candidates), horizon=5).reset(seed=0)


@pytest.mark.parametrize("given", [np.full((1, 5, 1), np.nan), [[[0.0]] * 4]])
def test_a_nature_that_gives_no_contexts_is_named(given):
    with pytest.raises(ValueError, match=r"Lost\(d=1\) must give .*contexts"):
        ldp_gym.LDPDistEnv(nature=Lost(given), context_dim=1, horizon=5).reset(seed=0)


GAMES = [
    small_rules(),
    small_rules("split", "drift"),
    small_rules("adaptive-split"),
    small_rules("randomized-response", "adversary"),
    small_rules("adaptive-groups", "omniscient"),
    small_rules("randomized-response", hypotheses="dirichlet"),
    small_rules(hypotheses="dirichlet", observe_candidates=True, redraw_hypotheses=True),
    small_rules(nature="adversary", observe_candidates=True, redraw_hypotheses=True),
]
FIELDS = ["contexts", "distributions", "labels", "messages"]


def assert_same_rounds(tape, other, games=slice(None), rounds=slice(None), fields=FIELDS):
    for name in fields:
        ours, theirs = getattr(tape, name), getattr(other, name)
        ours = ours[games] if ours.shape[1] == 1 != tape.labels.shape[1] else ours[games, rounds]
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_rounds_are_the_same_in_any_blocks_alone_in_a_batch_and_after_others_ended(rules):
    whole, thinned = make_episodes(rules, 4).play(12), make_episodes(rules, 4)
    assert_same_rounds(whole, thinned.play(1), rounds=slice(0, 1))
    assert_same_rounds(whole, thinned.play(4), rounds=slice(1, 5))
    which = np.array([False, True, False, True])
    thinned.keep(which)
    assert_same_rounds(whole, thinned.play(7), games=which, rounds=slice(5, 12))
    for i in range(4):
        assert_same_rounds(whole, make_episodes(rules, 1, seed=i).play(12), games=slice(i, i + 1))


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_labels_come_from_the_truth_s_distribution(rules):
    """The candidates' row of the truth, whatever the class; and its negentropy."""
    tape = make_episodes(rules, 3).play(6)
    candidates = np.broadcast_to(tape.candidates, (3, 6, 4, 6))
    laws = np.broadcast_to(tape.distributions, (3, 6, 6))
    members = np.broadcast_to(tape.members, (3, 6))
    for b, t in np.ndindex(3, 6):
        np.testing.assert_array_equal(laws[b, t], candidates[b, t, members[b, t]])
        assert laws[b, t, tape.labels[b, t]] > 0.0
    negentropies = np.broadcast_to(tape.negentropies, (3, 6))
    np.testing.assert_allclose(negentropies, -stats.entropy(laws, axis=-1), atol=1e-12)


def test_contexts_of_a_constant_class_can_be_left_out():
    """Labels and messages are the same, and a nature that looks at contexts is still asked."""
    rules = small_rules("adaptive-split", hypotheses="dirichlet", context_dim=1)
    shown = make_episodes(rules, 3)
    hidden = Episodes(shown.scenario, make_episodes(rules, 3).starts, show_contexts=False)
    ours, theirs = shown.play(10), hidden.play(10)
    assert theirs.contexts is None
    assert_same_rounds(ours, theirs, fields=["distributions", "labels", "messages"])
    needed = make_episodes(small_rules(), 2)
    assert (
        Episodes(needed.scenario, needed.starts, show_contexts=False).play(3).contexts is not None
    )


def generators(*seeds):
    return [np.random.default_rng(seed) for seed in seeds]


@pytest.mark.parametrize("channel", ["laplace-single", "randomized-response", "adaptive-groups"])
def test_a_judgement_is_of_the_round_that_was_shown(channel, actions):
    scenario = Rules(**small_rules(channel, horizon=6, reveal=True, max_loss=0.5)).scenario()
    tape = Episodes(scenario, scenario.start_episodes(generators(1, 2))).play(6)
    members = tape.members[:, 0]
    referee = Referee(scenario, 2, Predictor)
    assert referee.begin(np.arange(2), generators(1, 2))["truth"].tolist() == members.tolist()
    for t in range(6):
        shown = referee.role.observation.observe()
        assert shown["round"].tolist() == [[t], [t]]
        np.testing.assert_array_equal(shown["context"], tape.contexts[:, t])
        before = tape.messages[:, t - 1] if t else 0 * tape.messages[:, 0]
        np.testing.assert_array_equal(shown["message"], before)
        np.testing.assert_allclose(referee.playback.candidates, tape.candidates[:, t], rtol=1e-12)
        assert not referee.over.any()
        rewards, info = referee.judge(actions[t, :2])
        np.testing.assert_allclose(
            info["kl"], kl(tape.distributions[:, t], actions[t, :2]), rtol=1e-12
        )
        np.testing.assert_allclose(
            info["tv"], tv(tape.distributions[:, t], actions[t, :2]), rtol=1e-12
        )
        np.testing.assert_array_equal(rewards, -np.minimum(info["kl"], 0.5))
        np.testing.assert_array_equal(info["label"], tape.labels[:, t])
        np.testing.assert_array_equal(info["truth"], members)
    assert referee.over.all()
    last = referee.role.observation.observe()
    assert last["round"].tolist() == [[6], [6]]
    np.testing.assert_array_equal(last["message"], tape.messages[:, 5])
    np.testing.assert_array_equal(last["context"], tape.contexts[:, 5])


def test_a_game_that_is_over_counts_no_more_rounds(actions):
    referee = Referee(Rules(**small_rules(horizon=4)).scenario(), 2, Predictor)
    referee.begin(np.arange(2), generators(1, 2))
    for _ in range(2):
        referee.judge(actions[0, :2])
    referee.begin(np.array([1]), generators(3))
    shown = referee.role.observation.observe()
    assert shown["round"].tolist() == [[2], [0]]
    assert shown["message"][0].any()
    assert not shown["message"][1].any()
    for _ in range(3):
        referee.judge(actions[0, :2])
    assert referee.role.observation.observe()["round"].tolist() == [[4], [3]]
    assert referee.over.tolist() == [True, False]


def test_many_partial_resets_leave_no_episodes_behind():
    scenario = Rules(**small_rules(hypotheses="dirichlet")).scenario()
    player, rng, episodes = Playback(scenario, 4), np.random.default_rng(0), []

    def begin_in(games, seeds):
        starts = scenario.start_episodes(generators(*seeds))
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
