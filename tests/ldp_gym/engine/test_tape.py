"""What Nature and the users do: the same in any blocks, alone and in a batch."""

import numpy as np
import pytest
from helpers import ALPHA, TABLE, make_episodes, record, small_rules
from scipy import stats

import ldp_gym
import ldp_gym.testing
from ldp_gym.engine.tape import Episodes


class Careless(ldp_gym.HypothesisClass):
    """A class whose candidates are what they are told to be."""

    def __init__(self, candidates):
        super().__init__(2, 3, 1)
        self.candidates = np.asarray(candidates)

    def __call__(self, contexts):
        return np.broadcast_to(self.candidates, (*contexts.shape[:-1], *self.candidates.shape))


class Lost(ldp_gym.Nature):
    num_uniforms = 1

    def contexts(self, stretch):
        return np.full((*stretch.uniforms.shape[:2], 1), np.nan)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([[0.5, 0.5, 0.1], [1, 0, 0]], r"Careless\(K=2, M=3, d=1\) gives wrong.*hypothesis 0 sums to 1.1"),
        ([[1, 0, 0], [1.5, -0.5, 0]], "hypothesis 1 has a negative probability at label 1: -0.5"),
        ([[1, 0], [1, 0], [1, 0]], r"candidates as an array of shape \(1, 5, 2, 3\), got \(1, 5, 3, 2\)"),
    ],
)
def test_a_class_that_gives_no_distributions_is_named(candidates, message):
    env = ldp_gym.LDPDistEnv(hypotheses=Careless(candidates), horizon=5)
    with pytest.raises(ValueError, match=message):
        env.reset(seed=0)


def test_a_nature_that_gives_no_contexts_is_named():
    game = {"hypotheses": Careless([[1, 0, 0], [0.5, 0.5, 0]]), "horizon": 5}
    assert ldp_gym.LDPDistEnv(**game).reset(seed=0)
    with pytest.raises(ValueError, match=r"Lost\(d=1\) must give finite contexts, got"):
        ldp_gym.LDPDistEnv(nature=Lost(1), **game).reset(seed=0)


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
    """The rounds of a tape are all that another tape has."""
    for name in fields:
        ours, theirs = getattr(tape, name), getattr(other, name)
        ours = ours[games] if ours.shape[1] == 1 != tape.labels.shape[1] else ours[games, rounds]
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_a_tape_has_its_shapes(rules):
    episodes = make_episodes(rules, 3)
    tape = episodes.play(7)
    channel, f = episodes.scenario.channel, episodes.scenario.hypotheses
    rounds = 1 if f.constant else 7
    assert tape.contexts.shape == (3, 7, f.context_dim)
    assert tape.candidates.shape == ((4, 6) if episodes.scenario.shares_table else (3, rounds, 4, 6))
    assert tape.distributions.shape == (3, rounds, 6)
    assert tape.negentropies.shape == (3, rounds)
    assert tape.labels.shape == (3, 7)
    assert tape.messages.shape == (3, 7, *channel.message_shape)
    acted_on = channel.adaptive or episodes.scenario.nature.adaptive
    assert (tape.log_likelihoods is not None) == acted_on
    for message in tape.messages.reshape(-1, *channel.message_shape):
        assert channel.message_space.contains(message)


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_the_block_size_does_not_change_the_rounds(rules):
    whole = make_episodes(rules, 2).play(12)
    in_parts = make_episodes(rules, 2)
    start = 0
    for length in (1, 4, 7):
        assert_same_rounds(whole, in_parts.play(length), rounds=slice(start, start + length))
        start += length


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_an_episode_is_the_same_alone_and_in_a_batch(rules):
    together = make_episodes(rules, 3).play(12)
    for i in range(3):
        assert_same_rounds(together, make_episodes(rules, 1, seed=i).play(12), games=slice(i, i + 1))


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_episodes_that_are_kept_go_on_as_they_were(rules):
    undisturbed, thinned = make_episodes(rules, 4).play(12), make_episodes(rules, 4)
    thinned.play(5)
    which = np.array([False, True, False, True])
    thinned.keep(which)
    assert_same_rounds(undisturbed, thinned.play(7), games=which, rounds=slice(5, 12))


@pytest.mark.parametrize("rules", GAMES, ids=str)
def test_labels_come_from_the_truth_s_distribution(rules):
    """The candidates' row of the truth, whatever the class; and its negentropy."""
    tape = make_episodes(rules, 3).play(6)
    candidates, members = (
        np.broadcast_to(tape.candidates, (3, 6, 4, 6)),
        np.broadcast_to(tape.members, (3, 6)),
    )
    for b, t in np.ndindex(3, 6):
        law = np.broadcast_to(tape.distributions, (3, 6, 6))[b, t]
        np.testing.assert_array_equal(law, candidates[b, t, members[b, t]])
        assert law[tape.labels[b, t]] > 0.0
        found = np.broadcast_to(tape.negentropies, (3, 6))[b, t]
        assert found == pytest.approx(-stats.entropy(law), abs=1e-12)


def test_labels_follow_the_truth():
    """One round of 20,000 episodes of one truth: chi-square at error rate 1e-6."""
    episodes = make_episodes({"hypotheses": TABLE.tolist(), "truth": 0, "horizon": 5}, 20_000)
    counts = np.bincount(episodes.play(1).labels[:, 0], minlength=4)
    assert counts[3] == 0
    assert stats.chisquare(counts[:3], 20_000 * TABLE[0, :3]).pvalue > ALPHA


def test_contexts_of_a_constant_class_can_be_left_out():
    """Labels and messages are the same, and a nature that looks at contexts is still asked."""
    rules = small_rules("adaptive-split", hypotheses="dirichlet", context_dim=1)
    shown = make_episodes(rules, 3)
    hidden = Episodes(shown.scenario, make_episodes(rules, 3).starts, show_contexts=False)
    ours, theirs = shown.play(10), hidden.play(10)
    assert theirs.contexts is None
    assert_same_rounds(ours, theirs, fields=["distributions", "labels", "messages"])
    needed = make_episodes(small_rules(), 2)
    assert Episodes(needed.scenario, needed.starts, show_contexts=False).play(3).contexts is not None


def test_log_likelihoods_are_those_under_the_posterior_before_each_round():
    """An adaptive channel, round by round: Bayes' rule by hand."""
    game, tape = record(small_rules("adaptive-split"), 10)
    weights = np.full(4, 0.25)
    for t in range(10):
        expected = game.channel.log_likelihood(tape.messages[0, t], tape.candidates[0, t], weights)
        np.testing.assert_allclose(tape.log_likelihoods[0, t], expected, rtol=1e-9)
        weights = weights * np.exp(expected)
        weights /= weights.sum()


def test_what_is_no_array_is_said_to_be_none():
    class Listing(ldp_gym.Nature):
        num_uniforms = 1

        def contexts(self, view):
            return view.uniforms.tolist()

    rules = {"hypotheses": "softmax-linear", "context_dim": 1, "nature": Listing(1), "horizon": 5}
    with pytest.raises(ValueError, match=r"Listing\(d=1\) must give contexts as an array of .*of type list"):
        ldp_gym.evaluate("uniform", rules, episodes=1)
