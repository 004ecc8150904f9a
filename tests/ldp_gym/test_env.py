"""The single environment: rewards, truths, errors, extremes, and what must not leak."""

import math

import gymnasium as gym
import numpy as np
import pytest
from conftest import CHANNELS, NATURES, play, settings

import ldp_gym
from ldp_gym.numerics.divergences import kl, tv


def test_the_reward_is_the_capped_negative_kl(actions):
    env = gym.make("LDPDist-v0", **settings(reveal=True, max_loss=1.0))
    observation, info = env.reset(seed=0, options={"truth": 2})
    assert info == {"truth": 2}
    f = env.unwrapped.game.hypotheses
    for t in range(40):
        truth = f(observation["context"])[2]
        observation, reward, over, _, info = env.step(actions[t, 0])
        assert math.isclose(info["kl"], kl(truth, actions[t, 0]), rel_tol=1e-10)
        assert math.isclose(info["tv"], tv(truth, actions[t, 0]), rel_tol=1e-10)
        assert reward == -min(info["kl"], 1.0)
        assert info["truth"] == 2
        assert 0 <= info["label"] < 6
    assert over


def test_an_infinite_kl_is_in_info_and_capped_in_the_reward():
    env = gym.make("LDPDist-v0", hypotheses=[[0.5, 0.5], [0.1, 0.9]])
    env.reset(seed=0)
    _, reward, _, _, info = env.step([1.0, 0.0])
    assert info["kl"] == math.inf
    assert reward == -100.0


def test_labels_follow_the_truth():
    env = gym.make("LDPDist-v0", hypotheses=[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], horizon=20_000, reveal=True)
    env.reset(seed=0, options={"truth": 1})
    counts = np.zeros(3)
    for _ in range(20_000):
        counts[env.step([0.2, 0.2, 0.6])[4]["label"]] += 1
    from scipy import stats

    assert stats.chisquare(counts, 20_000 * np.array([0.1, 0.1, 0.8])).pvalue > 1e-6


def test_truths_are_uniform_fixed_or_chosen():
    env = gym.make("LDPDist-v0", reveal=True)
    truths = [env.reset(seed=seed)[1]["truth"] for seed in range(400)]
    assert min(np.bincount(truths, minlength=8)) > 20
    assert gym.make("LDPDist-v0", reveal=True, truth=5).reset(seed=0)[1]["truth"] == 5
    assert env.reset(seed=0, options={"truth": 3})[1]["truth"] == 3


def test_what_is_returned_is_the_user_s_to_change(actions):
    game = settings(horizon=10)
    envs, twins = (gym.make_vec("LDPDist-v0", num_envs=4, **game) for _ in range(2))
    mask = np.array([True, False, False, False])
    for env in (envs, twins):
        env.reset(seed=0)
    for t in range(8):
        step, twin = envs.step(actions[t]), twins.step(actions[t])
        np.testing.assert_array_equal(step[1], twin[1])
        for array in (*step[0].values(), *step[1:4], *step[4].values()):
            array[...] = 1
        if t == 4:
            shown, twin_shown = (env.reset(options={"reset_mask": mask})[0] for env in (envs, twins))
            np.testing.assert_array_equal(shown["message"], twin_shown["message"])


def test_draws_from_the_environment_s_generator_do_not_change_the_game(actions):
    shown = []
    for draws in (0, 5):
        env = gym.make("LDPDist-v0", **settings())
        env.reset(seed=0)
        env.unwrapped.np_random.random(draws)
        shown.append(play(env, actions[:, 0])[0])
    for ours, theirs in zip(*shown, strict=True):
        np.testing.assert_array_equal(ours["message"], theirs["message"])


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("nature", [name for name in NATURES if name != "omniscient"])
def test_observations_depend_on_the_truth_only_through_the_message(channel, nature):
    """Two truths with the same coins: while their messages are the same, so is all that is shown.

    The hypotheses are close, so that runs of equal messages occur; each game is followed until they differ.
    """
    near = [[0.34, 0.33, 0.33], [0.33, 0.34, 0.33], [0.33, 0.33, 0.34]]
    pool = [[1.0, 0.0, 2.0], [0.5, 0.1, 0.3]]
    kwargs = {"sequence": pool * 20} if nature == "sequence" else {}
    kwargs = {"pool": pool} if nature in ("cycle", "adversary") else kwargs
    agreed = 0
    for seed in range(10):
        games = [
            gym.make(
                "LDPDist-v0",
                **settings(
                    channel, nature, hypotheses=near, num_hypotheses=3, num_labels=3, nature_kwargs=kwargs
                ),
            )
            for _ in range(2)
        ]
        shown = [env.reset(seed=seed, options={"truth": j}) for j, env in enumerate(games)]
        assert shown[0][1] == shown[1][1] == {}
        for _ in range(40):
            np.testing.assert_array_equal(shown[0][0]["context"], shown[1][0]["context"])
            steps = [env.step(np.full(3, 1 / 3)) for env in games]
            assert all(set(step[4]) == {"kl", "tv"} for step in steps)
            if not np.array_equal(steps[0][0]["message"], steps[1][0]["message"]):
                break
            agreed += 1
            shown = [(step[0], {}) for step in steps]
    assert agreed > 20


def test_info_holds_kl_and_tv_alone(actions):
    env = gym.make("LDPDist-v0", **settings())
    assert env.reset(seed=0)[1] == {}
    assert set(env.step(actions[0, 0])[4]) == {"kl", "tv"}
    envs = gym.make_vec("LDPDist-v0", num_envs=4, **settings())
    assert envs.reset(seed=0)[1] == {}
    assert set(envs.step(actions[0])[4]) == {"kl", "_kl", "tv", "_tv"}


def test_the_game_holds_the_public_rules_alone():
    env = gym.make("LDPDist-v0", truth=3)
    env.reset(seed=0)
    assert set(vars(env.unwrapped.game)) == {"hypotheses", "channel", "horizon"}
    assert not hasattr(env.unwrapped.game.channel, "truth")
    redrawn = gym.make("LDPDist-v0", hypotheses="dirichlet", redraw_hypotheses=True, observe_candidates=True)
    assert redrawn.unwrapped.game.hypotheses is None


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
        ([[1, 0], [1, 0], [1, 0]], r"candidates of shape \(1, 5, 2, 3\), got \(1, 5, 3, 2\)"),
    ],
)
def test_a_class_that_gives_no_distributions_is_named(candidates, message):
    env = ldp_gym.LDPDistEnv(hypotheses=Careless(candidates), horizon=5)
    with pytest.raises(ValueError, match=message):
        env.reset(seed=0)


def test_a_chosen_truth_changes_nothing_but_the_truth():
    drawn, chosen = ldp_gym.LDPDistEnv(reveal=True), ldp_gym.LDPDistEnv(reveal=True)
    for seed in range(5):
        observation, info = drawn.reset(seed=seed)
        again, _ = chosen.reset(seed=seed, options={"truth": info["truth"]})
        for _ in range(3):
            assert np.array_equal(observation["context"], again["context"])
            assert np.array_equal(observation["message"], again["message"])
            observation, again = (env.step(np.full(16, 1 / 16))[0] for env in (drawn, chosen))


@pytest.mark.parametrize("nature", ["adversary", "omniscient"])
def test_a_nature_looks_at_the_class_that_is_played(nature):
    game = {"nature": nature, "nature_kwargs": {"pool_size": 4}, "num_labels": 4, "horizon": 20}
    redrawn = {**game, "redraw_hypotheses": True, "observe_candidates": True}
    used = ldp_gym.LDPDistEnv(**redrawn)
    used.reset(seed=1)
    for seed in range(2, 6):
        contexts = [env.reset(seed=seed)[0]["context"] for env in (used, ldp_gym.LDPDistEnv(**redrawn))]
        assert np.array_equal(*contexts)


def test_a_nature_that_gives_no_contexts_is_named():
    game = {"hypotheses": Careless([[1, 0, 0], [0.5, 0.5, 0]]), "horizon": 5}
    assert ldp_gym.LDPDistEnv(**game).reset(seed=0)
    with pytest.raises(ValueError, match=r"Lost\(d=1\) must give finite contexts of shape \(1, 5, 1\)"):
        ldp_gym.LDPDistEnv(nature=Lost(1), **game).reset(seed=0)


def test_stepping_out_of_turn_and_wrong_seeds_are_errors(actions):
    env = ldp_gym.LDPDistEnv(**settings(horizon=2))
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        env.step(actions[0, 0])
    env.reset(seed=0)
    env.step(actions[0, 0])
    env.step(actions[0, 0])
    with pytest.raises(gym.error.ResetNeeded, match="the game is over"):
        env.step(actions[0, 0])
    with pytest.raises(gym.error.Error, match="float"):
        env.reset(seed=1.5)
    with pytest.raises(gym.error.Error, match="-3"):
        env.reset(seed=-3)
    with pytest.raises(ValueError, match=r"unknown reset options \['truht'\]"):
        env.reset(options={"truht": 1})
    envs = ldp_gym.LDPDistVectorEnv(2, autoreset_mode="Disabled", **settings(horizon=2))
    with pytest.raises(gym.error.ResetNeeded, match=r"games \[0, 1\]"):
        envs.step(actions[0, :2])
    with pytest.raises(TypeError, match="seed must be an int"):
        envs.reset(seed="7")
    with pytest.raises(ValueError, match="expected 2 seeds"):
        envs.reset(seed=[1, 2, 3])
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": [True, False]})
    with pytest.raises(ValueError, match="num_envs must be at least 1, got 0"):
        ldp_gym.LDPDistVectorEnv(0)


@pytest.mark.parametrize("epsilon", [1e-6, 400.0, 800.0])
@pytest.mark.parametrize("hypotheses", ["hadamard", "dirichlet"])
def test_extreme_epsilons_make_every_class(hypotheses, epsilon):
    horizon = 10**13 if hypotheses == "hadamard" and epsilon < 1 else 100
    env = gym.make("LDPDist-v0", hypotheses=hypotheses, epsilon=epsilon, horizon=horizon)
    env.reset(seed=0)
    assert math.isfinite(env.step(np.full(env.action_space.shape, 1 / env.action_space.shape[0]))[1])


@pytest.mark.parametrize("epsilon", [1e-6, 800.0])
@pytest.mark.parametrize("channel", CHANNELS)
def test_extreme_epsilons_play(channel, epsilon, actions):
    _, rewards, _ = play(gym.make("LDPDist-v0", **settings(channel, epsilon=epsilon)), actions[:, 0], seed=0)
    assert np.isfinite(rewards).all()
