"""From rules to parties, and learners from their names or factories."""

from functools import partial

import numpy as np
import pytest
from helpers import ALPHA, Stepwise, record, small_rules
from scipy import stats

import ldp_agents
import ldp_gym
from ldp_gym.engine.learners import as_make_learner, build_learner, is_directory
from ldp_gym.engine.rules import Rules


def test_the_default_game_is_the_design_s():
    """Section 1 of the design: K = 8, M = 16, d = 4, laplace-single at eps = 1, T = 1000."""
    scenario = Rules().scenario()
    f, channel = scenario.hypotheses, scenario.channel
    assert (f.num_hypotheses, f.num_labels, f.context_dim) == (8, 16, 4)
    assert type(channel) is ldp_gym.CHANNELS["laplace-single"]
    assert type(f) is ldp_gym.HYPOTHESES["softmax-linear"]
    assert type(scenario.nature) is ldp_gym.NATURES["iid"]
    assert (channel.epsilon, channel.delta, scenario.horizon) == (1.0, 0.0, 1000)
    assert (repr(scenario.truth), scenario.max_loss) == ("Member(drawn)", 100.0)
    assert (scenario.observe_candidates, scenario.redraws, scenario.reveal) == (False, False, False)


REDRAWN = {"redraw_hypotheses": True, "observe_candidates": True}
ROWS = [[0.5, 0.5], [0.9, 0.1]]


def test_a_channel_s_own_promise_is_not_contradicted():
    channel = ldp_gym.CHANNELS["split"](4, 6, 40, epsilon=2.0)
    game = {"num_hypotheses": 4, "num_labels": 6, "horizon": 40}
    for name, value in (("epsilon", 0.01), ("delta", 0.1), ("horizon", 10)):
        message = f"made for {name}={getattr(channel, name)}, not for the game's {value}"
        with pytest.raises(ValueError, match=message):
            ldp_gym.LDPDistEnv(channel=channel, **{**game, name: value})
    assert ldp_gym.LDPDistEnv(channel=channel, **game).game.channel.epsilon == 2.0
    made = ldp_gym.CHANNELS["split"](8, 8, 1000, epsilon=2.0)
    hadamard = {"hypotheses": "hadamard", "num_hypotheses": 8, "horizon": 1000}
    both = {"channel": made}, {"channel": "split", "epsilon": 2.0}
    tables = [Rules(**rules, **hadamard).scenario().hypotheses.table for rules in both]
    assert np.array_equal(*tables), "the class is made for the channel's epsilon"


class HandsOn(ldp_gym.CHANNELS["randomized-response"]):
    def __init__(self, *args, verbose=False, **promise):
        super().__init__(*args, **promise)
        self.verbose = verbose


class Deaf(ldp_gym.CHANNELS["randomized-response"]):
    def __init__(self, num_hypotheses, num_labels, horizon):
        super().__init__(num_hypotheses, num_labels, horizon, epsilon=3.0)


class Seeded(ldp_gym.HYPOTHESES["dirichlet"]):
    def __init__(self, **options):
        super().__init__(**options)


def test_what_a_subclass_hands_on_comes_from_the_game():
    env = ldp_gym.LDPDistEnv(
        channel=f"{__name__}:HandsOn", epsilon=0.1, channel_kwargs={"verbose": True}
    )
    assert env.game.channel.epsilon == 0.1
    assert env.game.channel.verbose
    with pytest.raises(TypeError, match="takes no option 'loud'; its options: verbose"):
        ldp_gym.LDPDistEnv(channel=f"{__name__}:HandsOn", channel_kwargs={"loud": True})
    with pytest.raises(ValueError, match="made for epsilon=3.0, not for the game's 0.1"):
        ldp_gym.LDPDistEnv(channel=f"{__name__}:Deaf", epsilon=0.1)
    made = [ldp_gym.LDPDistEnv(hypotheses=f"{__name__}:Seeded", class_seed=seed) for seed in (1, 2)]
    assert not np.array_equal(*(env.game.hypotheses.table for env in made))
    ldp_gym.LDPDistEnv(hypotheses=f"{__name__}:Seeded", **REDRAWN).reset(seed=0)


def test_blocks_fit_the_memory_that_is_given():
    """At least one round, at most the horizon, and otherwise the most that fit."""
    scenario = Rules(**small_rules(horizon=1000)).scenario()
    assert scenario.rounds_at_a_time(1, 10**9) == 1000
    assert scenario.rounds_at_a_time(10**6, 10) == 1
    rounds = scenario.rounds_at_a_time(5, 10_000)
    assert rounds * 5 * scenario.footprint <= 10_000 < (rounds + 1) * 5 * scenario.footprint


def test_a_truth_is_drawn_even_where_it_is_given():
    """So that episodes of different truths share all else."""
    scenario = Rules(**small_rules()).scenario()
    starts = [
        scenario.start_episodes([np.random.default_rng(3)], truth)[0] for truth in (None, 0, 1)
    ]
    starts += Rules(**small_rules(truth=2)).scenario().start_episodes([np.random.default_rng(3)])
    assert [start.truth.item() for start in starts[1:]] == [0, 1, 2]
    assert len({start.generator.random() for start in starts}) == 1


def test_every_truth_is_as_likely():
    """4,000 episodes: a chi-square test at error rate 1e-6."""
    scenario = Rules(**small_rules()).scenario()
    starts = scenario.start_episodes([np.random.default_rng(seed) for seed in range(4000)])
    truths = [start.truth.item() for start in starts]
    assert stats.chisquare(np.bincount(truths, minlength=4)).pvalue > ALPHA


def test_episodes_that_begin_together_are_those_that_begin_alone():
    """Not a bit of the sum of ten weights may differ. A truth that draws one row for all is refused."""
    scenario = Rules(
        **small_rules(num_hypotheses=12, truth="mixture", truth_kwargs={"num_members": 10})
    ).scenario()
    for seed, start in enumerate(
        scenario.start_episodes([np.random.default_rng(s) for s in range(50)])
    ):
        (alone,) = scenario.start_episodes([np.random.default_rng(seed)])
        np.testing.assert_array_equal(start.truth, alone.truth)
    scenario.truth.draw_episode = lambda uniforms: np.zeros((1, 12))
    with pytest.raises(ValueError, match=r"must draw \(2, ...\) episodes, got shape \(1, 12\)"):
        scenario.start_episodes([np.random.default_rng(seed) for seed in range(2)])


def test_a_redrawn_class_is_the_episode_s_own():
    scenario = Rules(**small_rules(hypotheses="dirichlet", **REDRAWN)).scenario()
    starts = scenario.start_episodes([np.random.default_rng(seed) for seed in (1, 1, 2)])
    tables = [start.hypotheses.table for start in starts]
    np.testing.assert_array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])
    assert scenario.game.hypotheses is None
    plain = Rules(**small_rules()).scenario()
    assert plain.start_episodes([np.random.default_rng(1)])[0].hypotheses is plain.hypotheses


@pytest.fixture
def game():
    return record(small_rules(), 1)[0]


def test_a_learner_goes_by_a_name_a_path_or_what_makes_it(game):
    for source in (
        "exp3",
        "ldp_agents.literal:EXP3",
        ldp_agents.EXP3,
        partial(ldp_agents.make, "exp3"),
    ):
        assert type(build_learner(source, game)) is ldp_agents.EXP3
    assert type(build_learner("helpers:Stepwise", game)) is Stepwise
    assert type(as_make_learner("wma", {"rate": "box"})(game)) is ldp_agents.WMA
    with pytest.raises(TypeError, match="takes no option 'speed'"):
        as_make_learner("wma", {"speed": 2})(game)
    with pytest.raises(TypeError, match="a learner has reset, predict and update; .* made 7"):
        build_learner(lambda game: 7, game)


def test_a_registered_name_is_no_directory(tmp_path, monkeypatch):
    for name in ("bayes", "mine"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert [is_directory(name) for name in ("bayes", "mine", "nowhere")] == [False, True, False]
