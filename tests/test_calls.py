"""Wrong values in public calls: an error that names the argument, where the user hands the value over."""

import math
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import ldp_agents
import ldp_bench
import ldp_gym
from ldp_gym import audit, testing, theory
from ldp_gym.channels import accounting
from ldp_gym.privacy import ExactChannel

TABLE = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
RULES = {"hypotheses": TABLE, "horizon": 4, "channel": "randomized-response"}
CHANNEL = ldp_gym.CHANNELS["randomized-response"](2, 3, 4)
EXACT = ExactChannel(CHANNEL).table([], TABLE)
COMPARED = ExactChannel(ldp_gym.CHANNELS["split"](2, 3, 4))

NOT_NUMBERS = ["1", 1j, True, [1], {}, None, object(), math.nan, np.array([1.0, 2.0]), np.ma.masked]
COUNTS = [*NOT_NUMBERS, 2.5, math.inf, -1, 10**400]
POSITIVES = [*NOT_NUMBERS, 0.0, -1, math.inf, 10**400]
SEEDS = [*(value for value in NOT_NUMBERS if value is not None), 2.5, -1]
FLAGS = ["True", 1, None, [], math.nan]
ROWS = [
    "abc",
    None,
    [0.5, 0.5],
    [[0.5, 0.25, 0.25]],
    [0.5, 0.5, math.nan],
    [2.0, -1.0, 0.0],
    [1.0, 1.0, 1.0],
]
ENVS = [None, 3, "x", [], {"horizn": 3}, {1: 2}, gym.spaces.Discrete(2)]
LEARNERS = [None, 3, [], object(), "byes", {}]


def make(**rules):
    return gym.make("LDPDist-v0", **{**RULES, **rules})


def step(action):
    env = make()
    env.reset(seed=0)
    return env.step(action)


def reset(seed=0, options=None):
    return make().unwrapped.reset(seed=seed, options=options)


def evaluate(**arguments):
    return ldp_gym.evaluate(**{"learner": "uniform", "env": RULES, "episodes": 2, **arguments})


def run(**arguments):
    return ldp_bench.run(**{"suite": "limit", "out": "/proc/nowhere", **arguments})


BAYES, noisy = ldp_agents.make("bayes", make()), ldp_gym.CHANNELS["laplace-single"]

CALLS = [
    (make, "horizn", [3]),
    (make, "horizon", ["1", 1j, True, [1], 2.5, -1, 0]),
    (make, "epsilon", ["1", 1j, True, [1], object(), math.nan, 0.0, -1, 10**400]),
    (make, "delta", ["0", -0.1, 1.0, math.nan]),
    (make, "max_loss", POSITIVES),
    (make, "class_seed", SEEDS),
    (make, "batch", [0, -1, 1.5, "3", None, True]),
    (ldp_gym.LDPDistVectorEnv, "autoreset_mode", ["same", 3]),
    (ldp_gym.LDPDistVectorEnv, "num_envs", [0, 1.5, "2"]),
    (make, "losses", [3, "tv", None, [3], ["tvv"], ["nowhere:LOSS"], ["math:pi"]]),
    (make, "reveal", FLAGS),
    (make, "channel", [3, "splt", RULES, type(CHANNEL), "nowhere:Channel"]),
    (make, "hypotheses", ["dirichet", 3, [[0.5, 0.5]], [[0.5, 0.6], [0.5, 0.5]]]),
    (make, "num_labels", [2.5, "3", 1]),
    (make, "nature", [3, "adversery", []]),
    (make, "truth", ["nobody", 2, -1, 1.5, True, [0.5, 0.5]]),
    (make, "channel_kwargs", [3, "x", [1], {1: 2}]),
    (ldp_gym.LDPDistEnv, "render_mode", ["disco", 3]),
    (step, "action", ROWS),
    (reset, "seed", SEEDS),
    (lambda seed: ldp_gym.LDPDistVectorEnv(2).reset(seed=seed), "seed", SEEDS),
    (reset, "options", [3, "x", {"truth": 9}, {"truth": "a"}, {"truth": True}]),
    (evaluate, "learner", LEARNERS),
    (evaluate, "env", ENVS),
    (evaluate, "episodes", [*COUNTS, 0, 10**12]),
    (evaluate, "seed", [*SEEDS, None]),
    (evaluate, "truth", ["nobody", -1, 2, 1.5, True, []]),
    (evaluate, "checkpoints", [3, "x", [0], [99], [1.5], [None]]),
    (evaluate, "losses", [3, "tv", [3], ["tvv"], ["nowhere:LOSS"], ["math:pi"]]),
    (evaluate, "averages", FLAGS),
    (evaluate, "leaders", FLAGS),
    (evaluate, "alpha", [0.0, 1.0, "x", True]),
    (evaluate, "jobs", [0, -2, 1.5, True, "2", None]),
    (evaluate, "progress", [3, "x", []]),
    (run, "suite", [3, None, "quik", ldp_bench.Suite]),
    (run, "learners", ["bayes", 3, [3], ["byes"]]),
    (run, "channels", ["split", 3, [3], ["splt"]]),
    (run, "episodes", [0, -1, 2.5, "3", True]),
    (run, "seed", [*SEEDS, None]),
    (run, "jobs", [0, -2, 1.5, "2"]),
    (run, "size", ["huge", 3, None]),
    (run, "trust", FLAGS),
    (theory.capacity, "epsilon", POSITIVES),
    (theory.nonprivate_bound, "num_hypotheses", [*COUNTS, 0]),
    (lambda candidates: audit.exact_epsilon(CHANNEL, candidates), "candidates", [3, "x", TABLE[0]]),
    (lambda horizon: theory.fixed_share_bound(2, horizon, 3, 0.1), "horizon", [3, 2.5, "9", None]),
    (theory.rank, "candidates", [3, "x", TABLE[0], TABLE[:1]]),
    (lambda tolerance: theory.rank(TABLE, tolerance=tolerance), "tolerance", [math.nan, 0.0, "0", None]),
    (lambda rank: theory.half_space_kl_bound(4, 9, 1.0, rank=rank), "rank", [4, -1, 1.5, "1"]),
    (lambda failure: theory.half_space_tv_bound(4, 9, 1.0, failure=failure), "failure", [0.0, 1.0, "x"]),
    (lambda candidates: theory.blind_pairs(CHANNEL, candidates), "candidates", [3, "x", TABLE[0]]),
    (lambda tolerance: theory.blind_pairs(CHANNEL, TABLE, tolerance), "tolerance", [math.nan, -1, "0", None]),
    (lambda among: theory.blind_pairs(CHANNEL, TABLE, among=among), "among", [3, [True], np.ones((2, 2))]),
    (lambda label: EXACT.pick(label, 0), "label", [-1, 3, 0.5, None]),
    (lambda label: EXACT.probabilities(label), "label", [-1, 3, 0.5, None]),
    (lambda number: EXACT.pick(0, number), "number", [-1, 2**64, 0.5, None]),
    (lambda coins: COMPARED.table(coins, TABLE), "coins", [[math.nan] * 2, [0.0, 0.5], [0.5, 1.0], "ab"]),
    (lambda epsilon: audit.exact_delta(CHANNEL, TABLE, epsilon), "epsilon", POSITIVES),
    (lambda messages: audit.reachable(CHANNEL, TABLE, messages=messages), "messages", [0, 1.5, math.nan]),
    (lambda epsilon: accounting.laplace_vector_scale(2, epsilon, 0.1), "epsilon", [math.nan, 0.0, -1.0]),
    (lambda shifts: accounting.laplace_delta(shifts, 1.0), "shifts", [3.0, [math.nan], [-1.0], [math.inf]]),
    (lambda shift: accounting.gaussian_delta(shift, 1.0), "shift", [math.nan, -1.0, math.inf]),
    (lambda delta: accounting.gaussian_vector_scale(2, 1.0, delta), "delta", [math.nan, 0.0, 1.0]),
    (testing.check_nature, "nature", [3, None, "iid", ldp_gym.NATURES["iid"]]),
    (testing.check_channel, "channel", [3, None, type(CHANNEL)]),
    (lambda rate: ldp_agents.Bayes(make().unwrapped.game, rate=rate), "rate", [0.0, -1, math.nan, "1"]),
    (ldp_agents.Uniform, "game", [3, None, RULES, make()]),
    (partial(noisy, 3, 4, 9), "gamma", [-1.0, "1"]),
    (partial(noisy, 3, 4, 9), "calibration", ["loose", None]),
    (partial(noisy, 3, 4, 9), "clipping", ["round", 3]),
    (partial(ldp_gym.CHANNELS["adaptive-groups"], 3, 4, 9), "posterior_rate", [0.0, 1.1]),
    (partial(ldp_gym.CHANNELS["adaptive-groups"], 3, 4, 9), "posterior_share", [1.0, -0.1]),
    (partial(noisy, 3, 4), "horizon", [1, 1.5]),
    (partial(ldp_agents.Bayes, BAYES.game), "prior", [[1.0], [0.5, 0.6], [1.5, -0.5]]),
    (partial(ldp_agents.FixedShare, BAYES.game), "share", [1.0, -0.1]),
    (partial(ldp_agents.SoftBayes, BAYES.game), "rate", [0.0, 1.5]),
    (BAYES.restart, "mask", [np.array([1, 0, 1]), [True, False, True], None]),
    (BAYES.act, "observation", [None, np.zeros(3), {"context": np.zeros(3)}]),
]  # fmt: skip
CASES = [(call, argument, value) for call, argument, values in CALLS for value in values]
NAMES = {"horizn": "did you mean 'horizon'",
         "hypotheses": "hypothes", "options": "truth|options", "learners": "learner", "channels": "channel",
         "runs": "run", "candidates": "candidates|hypothes|table", "game": "Game", "action": "action",
         "nature": "[Nn]ature", "env": "env|horizn", "channel": "[Cc]hannel", "split": "split",
         "losses": "loss"}  # fmt: skip


REDRAWN = {"redraw_hypotheses": True, "observe_candidates": True}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"hypotheses": "softmax-liner"}, "did you mean 'softmax-linear'"),
        ({"channel": "laplace-vector"}, "needs delta > 0"),
        ({"nature": "sequence"}, "nature 'sequence' needs the option 'contexts'"),
        ({"nature": "cycle", "nature_kwargs": {"contexts": "abc"}}, "contexts .*'abc'"),
        ({"nature": "cycle", "nature_kwargs": {"pool_seed": "x"}}, "pool_seed must be a whole"),
        ({"nature": ldp_gym.NATURES["iid"](2)}, "made for context_dim=2, not for 4"),
        ({"redraw_hypotheses": True}, "needs observe_candidates=True"),
        ({"hypotheses": "hadamard", **REDRAWN}, "needs a random class by its name"),
        (
            {"hypotheses": "refined", "hypotheses_kwargs": {"base": TABLE}, **REDRAWN},
            "another seed gives",
        ),
        ({"hypotheses": "hadamard", "epsilon": math.nan}, "epsilon must be a number, got NaN"),
        ({"epsilon": 1e-308}, "beyond the floats"),
        ({"channel_kwargs": {"gama": 1}}, "takes no option 'gama'"),
        ({"channel_kwargs": {"num_labels": 3}}, "the game decides 'num_labels'"),
        ({"channel": "split", "channel_kwargs": {"x": 1}}, "no option 'x'; its options: none"),
    ],
)
def test_rules_that_do_not_fit_together_are_named(rules, message):
    with pytest.raises((TypeError, ValueError), match=message):
        gym.make("LDPDist-v0", **rules)


@pytest.mark.parametrize(("call", "argument", "value"), CASES)
def test_an_error_names_the_argument(call, argument, value):
    named = NAMES.get(argument, argument)
    with np.errstate(all="ignore"), pytest.raises((TypeError, ValueError), match=named):
        call(**{argument: value})


def test_the_smallest_epsilon_is_a_number_like_others():
    """5e-324, whose half is 0: channels play it, or say that the noise would be beyond the floats."""
    for name in ldp_gym.CHANNELS:
        delta = 0.0 if ldp_gym.CHANNELS[name].pure else 1e-5
        rules = {
            "hypotheses": "dirichlet",
            "channel": name,
            "epsilon": 5e-324,
            "delta": delta,
            "horizon": 3,
        }
        try:
            assert ldp_gym.evaluate("bayes", rules, episodes=1).risk >= 0.0
        except ValueError as error:
            assert "float" in str(error)  # noqa: PT017 - either is fine
