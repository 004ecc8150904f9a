"""From rules to parties: who is made how, and what is refused."""

import math

import numpy as np
import pytest

import ldp_gym


@pytest.mark.parametrize(
    ("game", "error", "message"),
    [
        ({"hypotheses": "softmax-liner"}, ValueError, "did you mean 'softmax-linear'"),
        ({"channel": "laplace"}, ValueError, "did you mean 'laplace-"),
        ({"nature": "idd"}, ValueError, "did you mean 'iid'"),
        ({"channel": "nowhere:Channel"}, ValueError, "cannot import channel 'nowhere:Channel'"),
        ({"num_hypotheses": 1}, ValueError, "must be at least 2, got 1"),
        ({"num_labels": 2.5}, TypeError, "must be a whole number, got 2.5"),
        ({"horizon": 1}, ValueError, "must be at least 2, got 1"),
        ({"epsilon": 0}, ValueError, "epsilon must be positive, got 0"),
        ({"epsilon": math.nan}, ValueError, "got NaN"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a number, got '1'"),
        ({"delta": 1.0}, ValueError, r"\[0, 1\), got 1"),
        ({"delta": -0.1}, ValueError, "got -0.1"),
        ({"channel": "laplace-vector"}, ValueError, "needs delta > 0"),
        ({"nature": "sequence"}, TypeError, "nature 'sequence' needs the option 'sequence'"),
        ({"truth": 8}, ValueError, r"truth must lie in 0..7, got 8"),
        ({"truth": "unifrom"}, ValueError, "an index in 0..7 .*got 'unifrom'"),
        ({"max_loss": -1.0}, ValueError, "max_loss must be positive"),
        ({"redraw_hypotheses": True}, ValueError, "needs observe_candidates=True"),
        (
            {"redraw_hypotheses": True, "hypotheses": "hadamard", "observe_candidates": True},
            ValueError,
            "needs a random class by its name",
        ),
        ({"channel_kwargs": {"gama": 1}}, TypeError, "takes no option 'gama'"),
        ({"channel_kwargs": {"num_labels": 3}}, TypeError, "the game decides 'num_labels'"),
        ({"channel": None}, TypeError, "channel must be a name or a Channel"),
        ({"nature": ldp_gym.NATURES["iid"]}, TypeError, "nature must be a name or a Nature"),
        ({"hypotheses": None}, TypeError, "hypotheses must be a name"),
        ({"hypotheses": "hadamard", "epsilon": math.nan}, ValueError, "epsilon must be a number, got NaN"),
        ({"epsilon": 1e-308}, ValueError, "beyond the floats"),
        ({"horzion": 5}, TypeError, "did you mean 'horizon'"),
        (
            {
                "hypotheses": "refined",
                "hypotheses_kwargs": {"base": [[0.5, 0.5], [0.9, 0.1]]},
                "redraw_hypotheses": True,
                "observe_candidates": True,
            },
            ValueError,
            "another seed gives another class",
        ),
        ({"render_mode": "disco"}, ValueError, "disco"),
        ({"reveal": "false"}, TypeError, "reveal must be True or False, got 'false'"),
        ({"observe_candidates": 1}, TypeError, "observe_candidates must be True or False, got 1"),
        ({"channel_kwargs": 3}, TypeError, "channel_kwargs must be a dict of options, got 3"),
        ({"channel": "split", "channel_kwargs": {"x": 1}}, TypeError, "no option 'x'; its options: none"),
        (
            {"nature": "cycle", "nature_kwargs": {"pool": "abc"}},
            ValueError,
            "a pool is an array of numbers.*'abc'",
        ),
        (
            {"nature": "cycle", "nature_kwargs": {"pool_seed": "x"}},
            TypeError,
            "pool_seed must be a whole number",
        ),
        ({"hypotheses": 3}, TypeError, r"must be a name, a \(K, M\) table, .*; got 3"),
    ],
)
def test_bad_arguments_are_named(game, error, message):
    with pytest.raises(error, match=message):
        ldp_gym.LDPDistEnv(**game)


def test_a_party_made_for_another_game_is_refused():
    channel = ldp_gym.CHANNELS["laplace-single"](4, 6, 10)
    with pytest.raises(ValueError, match="made for horizon=10, not for the game.s 40"):
        ldp_gym.LDPDistEnv(channel=channel, num_hypotheses=4, num_labels=6, horizon=40)
    with pytest.raises(ValueError, match="made for context_dim=2, not for 4"):
        ldp_gym.LDPDistEnv(nature=ldp_gym.NATURES["iid"](2))


def test_a_channel_s_own_promise_is_not_contradicted():
    channel = ldp_gym.CHANNELS["split"](4, 6, 40, epsilon=2.0)
    game = {"num_hypotheses": 4, "num_labels": 6, "horizon": 40}
    with pytest.raises(ValueError, match="made for epsilon=2.0, not for the game's 0.01"):
        ldp_gym.LDPDistEnv(channel=channel, epsilon=0.01, **game)
    with pytest.raises(ValueError, match="made for delta=0.0, not for the game's 0.1"):
        ldp_gym.LDPDistEnv(channel=channel, delta=0.1, **game)
    assert ldp_gym.LDPDistEnv(channel=channel, **game).game.channel.epsilon == 2.0
    hadamard = {"hypotheses": "hadamard", "num_hypotheses": 8, "horizon": 1000}
    made = [
        ldp_gym.LDPDistEnv(channel=ldp_gym.CHANNELS["split"](8, 8, 1000, epsilon=2.0), **hadamard),
        ldp_gym.LDPDistEnv(channel="split", epsilon=2.0, **hadamard),
    ]
    tables = [env.game.hypotheses(np.zeros(1)) for env in made]
    assert np.array_equal(*tables), "the class is made for the channel's epsilon"


class HandsOn(ldp_gym.CHANNELS["randomized-response"]):
    """Takes what its base takes."""

    def __init__(self, *args, verbose=False, **promise):
        super().__init__(*args, **promise)
        self.verbose = verbose


class Deaf(ldp_gym.CHANNELS["randomized-response"]):
    """Does not listen to the game."""

    def __init__(self, num_hypotheses, num_labels, horizon):
        super().__init__(num_hypotheses, num_labels, horizon, epsilon=3.0)


class Seeded(ldp_gym.HYPOTHESES["dirichlet"]):
    def __init__(self, **options):
        super().__init__(**options)


def test_what_a_subclass_hands_on_comes_from_the_game():
    env = ldp_gym.LDPDistEnv(channel=f"{__name__}:HandsOn", epsilon=0.1, channel_kwargs={"verbose": True})
    assert env.game.channel.epsilon == 0.1
    assert env.game.channel.verbose
    with pytest.raises(TypeError, match="takes no option 'loud'; its options: verbose"):
        ldp_gym.LDPDistEnv(channel=f"{__name__}:HandsOn", channel_kwargs={"loud": True})
    with pytest.raises(ValueError, match="made for epsilon=3.0, not for the game's 0.1"):
        ldp_gym.LDPDistEnv(channel=f"{__name__}:Deaf", epsilon=0.1)
    tables = [
        ldp_gym.LDPDistEnv(hypotheses=f"{__name__}:Seeded", class_seed=seed).game.hypotheses.table
        for seed in (1, 2)
    ]
    assert not np.array_equal(*tables)
    redrawn = {"hypotheses": f"{__name__}:Seeded", "redraw_hypotheses": True, "observe_candidates": True}
    ldp_gym.LDPDistEnv(**redrawn).reset(seed=0)
