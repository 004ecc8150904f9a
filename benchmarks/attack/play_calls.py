"""Calls that make a game and its parts, play it and judge it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from attack.call import Call
from attack.wrong_values import (
    CHANNEL,
    COUNTS,
    FINE,
    GAMES,
    GENERATORS,
    JOBS,
    LABELS,
    LEARNERS,
    LISTS,
    MEASURES,
    MESSAGES,
    NO_ARRAYS,
    OPTIONS,
    RULES,
    SEEDS,
    SHARES,
    TABLE,
    THINGS,
    WORDS,
    no_arrays,
    no_rows,
    no_tables,
)

import ldp_agents
import ldp_gym
from ldp_gym import audit, batch, hypotheses, search, spaces, testing, theory, truths, wrappers
from ldp_gym.calibration import accounting, clipping, extremal, noise_scales
from ldp_gym.game import game_of


def _environment(**rules: Any) -> Any:
    env = gym.make("LDPDist-v0", **rules)
    env.reset(seed=0)
    return env


def _step(action: Any) -> Any:
    return _environment(**RULES).step(action)


def _vector_step(actions: Any) -> Any:
    envs = gym.make_vec("LDPDist-v0", num_envs=2, **RULES)
    envs.reset(seed=0)
    return envs.step(actions)


def _reset(seed: Any = 0, options: Any = None) -> Any:
    return gym.make("LDPDist-v0", **RULES).unwrapped.reset(seed=seed, options=options)


def _vector_reset(seed: Any = 0, options: Any = None) -> Any:
    return gym.make_vec("LDPDist-v0", num_envs=2, **RULES).reset(seed=seed, options=options)


def _wrapped_step(wrapper: Any, rules: dict[str, Any]) -> Callable[[Any], Any]:
    def step(action: Any) -> Any:
        env = wrapper(gym.make("LDPDist-v0", **rules))
        env.reset(seed=0)
        return env.step(action)

    return step


def _game() -> ldp_gym.Game:
    return game_of(gym.make("LDPDist-v0", **RULES))


def _learn(maker: Any) -> Callable[..., Any]:
    def learn(candidates: Any, message: Any) -> Any:
        learner = maker(_game())
        learner.reset()
        learner.predict(candidates)
        learner.update(candidates, message)
        return learner.predict(candidates)

    return learn


def _act(message: Any, context: Any, round: Any) -> Any:
    learner = ldp_agents.make("bayes", _game())
    learner.act({"round": np.array([0]), "context": np.zeros(1), "message": np.int64(0)})
    return learner.act({"round": round, "context": context, "message": message})


def _privatize(labels: Any, candidates: Any, rng: Any, posterior: Any = None) -> Any:
    return CHANNEL.privatize(labels, candidates, rng, posterior)


def _rules_calls() -> Iterator[Call]:
    """The rules of a game, through gym.make, gym.make_vec and evaluate."""
    named = {
        "num_hypotheses": 3,
        "num_labels": 4,
        "context_dim": 2,
        "class_seed": 0,
        "epsilon": 1.0,
        "delta": 0.0,
        "horizon": 5,
        "max_loss": 3.0,
        "observe_candidates": False,
        "redraw_hypotheses": False,
        "reveal": False,
        "hypotheses_kwargs": None,
        "channel_kwargs": None,
        "nature_kwargs": None,
        "truth_kwargs": None,
        "hypotheses": "softmax-linear",
        "channel": "laplace-single",
        "nature": "iid",
        "truth": "uniform",
    }
    names = [*THINGS, "builtins:int", "builtins:dict", "os:path", "nowhere:X", ":", "a:b:c", [], FINE]
    truths = [value for value in THINGS if not isinstance(value, int)] + [
        -1,
        99,
        True,
        "builtins:int",
        *no_rows(4),
    ]
    wrong = {
        "hypotheses": [*no_tables(3, 4), "builtins:int", "os:path", "nowhere:X", [print, 3], [], [len, len]],
        "channel": names,
        "nature": names,
        "truth": [value for value in truths if not callable(value) or isinstance(value, type)],
    }
    words = {f"{party}_kwargs": (f"{party}_kwargs", "option") for party in ("channel", "nature", "truth")}
    words["hypotheses_kwargs"] = ("hypotheses_kwargs", "option")
    words["hypotheses"] = ("hypothes", "table")
    optional = ("num_hypotheses", "num_labels", "context_dim", "nature", "epsilon", "delta", "horizon")
    for name, function in {
        "gym.make": lambda **rules: gym.make("LDPDist-v0", **rules),
        "gym.make_vec": lambda **rules: gym.make_vec("LDPDist-v0", num_envs=2, **rules),
        "LDPDistEnv": ldp_gym.LDPDistEnv,
        "evaluate rules": lambda **rules: ldp_gym.evaluate("uniform", rules, episodes=1),
    }.items():
        yield Call(name, function, named, wrong, words, ldp_gym.LDPDistEnv, optional)


def _registered_calls() -> Iterator[Call]:
    """Every class that goes by a name."""
    right = {
        "num_hypotheses": 4,
        "num_labels": 8,
        "horizon": 1000,
        "context_dim": 2,
        "epsilon": 1.0,
        "class_seed": 0,
        "contexts": np.zeros((8, 2)).tolist(),
        "labels": [0, 1] * 4,
        "base": TABLE,
    }
    wrong = {
        "contexts": no_arrays(8, 2),
        "pool": no_arrays(8, 2),
        "labels": ["abc", 3, 1.5, *([odd] * 8 for odd in (1j, -1, 99, math.nan, [0], "0", None)), [0]],
        "classes": [],  # the class of hypotheses brings them
        "base": [*THINGS, "nowhere:X", "builtins:int", [], *no_tables(2, 3)[13:20]],
        "sizes": LISTS,
        "other": no_rows(8),
        "member": COUNTS,
        "members": LISTS,
        "switches": LISTS,
        "weights": no_rows(2),
        "gap": SHARES,
        "posterior_rate": [*MEASURES, 2],
        "posterior_share": [*SHARES, 1.0],
        "epsilon": [
            value for value in MEASURES if value is not math.inf and not isinstance(value, np.float64)
        ],
    }
    words = {"pool": ("contexts",), "member": ("truth",), "base": ("hypothes", "table", "base")}
    optional = ("num_hypotheses", "num_labels", "context_dim")
    for registry in (ldp_gym.HYPOTHESES, ldp_gym.CHANNELS, ldp_gym.NATURES, ldp_gym.TRUTHS):
        for name, maker in registry.items():
            if not registry.is_builtin(name):
                continue
            own = {p: value for p, value in right.items() if registry.takes(name, p)}
            own = {**registry.defaults(name), **own}
            if name.endswith("-vector"):
                own["delta"] = 1e-5
            if name == "refined":
                own = {"base": TABLE, "parts": 2, "class_seed": 0}
            free = optional if registry is ldp_gym.HYPOTHESES else ("contexts",) if name == "cycle" else ()
            yield Call(f"{registry.kind} {name}", maker, own, wrong, words, optional=free)


class _Coin:
    """A fitted classifier of two features."""

    n_features_in_ = 2

    def predict_proba(self, rows: Any) -> Any:
        return np.full((len(rows), 3), 1 / 3)


def _source_calls() -> Iterator[Call]:
    """From what a user hands over to classes and truths."""
    makers = [*NO_ARRAYS, [], [3, 3], [print, 3], ["a", "b"], None]
    dims = {"context_dim": COUNTS}
    yield Call(
        "Table", hypotheses.Table, {"table": TABLE, "context_dim": 1}, {"table": no_tables(2, 3), **dims}
    )
    yield Call(
        "Callables",
        hypotheses.Callables,
        {"functions": [lambda x: [0.5, 0.5]] * 2, "context_dim": 2},
        {
            "functions": [
                *makers,
                [len, len],
                [lambda x: "ab"] * 2,
                [lambda x: None] * 2,
                [lambda x: [2.0, 3.0]] * 2,
            ]
        },
        {"functions": ("function", "hypothesis")},
    )
    yield Call(
        "Classifiers",
        hypotheses.Classifiers,
        {"models": [_Coin(), _Coin()], "context_dim": 2},
        {"models": makers},
        {"models": ("models", "predict_proba"), "context_dim": ("context_dim",)},
        optional=("context_dim",),
    )
    yield Call(
        "as_hypotheses",
        hypotheses.as_hypotheses,
        {"source": TABLE, "game_parameters": {}, "options": None},
        {"source": no_tables(2, 3), "game_parameters": []},
        {"source": ("hypothes", "table"), "options": ("options", "hypotheses_kwargs")},
    )
    yield Call(
        "as_truth",
        truths.as_truth,
        {"source": 0, "hypotheses": hypotheses.Table(TABLE), "horizon": 5, "options": None},
        {"source": [b"x", "nobody", 1.5, 1j, -1, 9, object(), *no_rows(3)[14:]], "hypotheses": []},
        {"source": ("truth",), "options": ("options", "truth_kwargs")},
    )


def _function_calls() -> Iterator[Call]:
    bounds = {"num_hypotheses": 8, "horizon": 1000, "epsilon": 1.0}
    delta = {"delta": [*MEASURES, 1.0, 2]}
    yield Call("capacity", theory.capacity, {"epsilon": 1.0})
    yield Call("best_share", theory.best_share, {"epsilon": 1.0})
    yield Call("nonprivate_bound", theory.nonprivate_bound, {"num_hypotheses": 8})
    yield Call("wma_bound", theory.wma_bound, {**bounds, "delta": 1e-5, "gamma": None}, delta)
    yield Call("exp3_bound", theory.exp3_bound, {**bounds, "gamma": None})
    yield Call("wma_regret_bound", theory.wma_regret_bound, {**bounds, "delta": 1e-5, "gamma": None}, delta)
    yield Call("exp3_regret_bound", theory.exp3_regret_bound, {**bounds, "gamma": None})
    yield Call("tv_bound", theory.tv_bound, {"kl_risk": 3.0, "horizon": 100})
    yield Call(
        "sample_complexity", theory.sample_complexity, {"num_hypotheses": 4, "alpha": 0.3, "epsilon": 1.0}
    )
    yield Call("randomized_response_rate", theory.randomized_response_rate, {**bounds, "num_labels": 4})
    yield Call("lower_bound", theory.lower_bound, bounds)
    yield Call("hadamard_gap", theory.hadamard_gap, bounds)
    yield Call("hadamard_horizon", theory.hadamard_horizon, {"num_hypotheses": 8, "epsilon": 1.0})
    yield Call(
        "offset", theory.offset, {"num_hypotheses": 8, "horizon": 100, "noise_scale": 1.0, "gamma": None}
    )
    yield Call("single_noise_scale", theory.single_noise_scale, bounds)
    yield Call("vector_noise_scale", theory.vector_noise_scale, {**bounds, "delta": 1e-5}, delta)
    yield Call("log_range", noise_scales.log_range, {"num_hypotheses": 8, "horizon": 100})
    yield Call("resolved_gamma", noise_scales.resolved_gamma, {"gamma": None, "horizon": 100})
    yield Call("information_limit", theory.information_limit, bounds)
    yield Call(
        "risk_floor", theory.risk_floor, {"num_hypotheses": 4, "horizon": 9, "epsilon": 1.0, "adaptive": True}
    )
    yield Call(
        "fixed_share_bound",
        theory.fixed_share_bound,
        {"num_hypotheses": 4, "horizon": 9, "switches": 1, "share": 0.1},
        {"share": [*MEASURES, 1.0]},
    )
    yield Call("soft_bayes_bound", theory.soft_bayes_bound, {**bounds, "rate": 0.1})
    yield Call(
        "information_rate",
        theory.information_rate,
        {"channel": CHANNEL, "candidates": TABLE, "weights": None, "samples": 100, "seed": 0},
    )
    yield Call(
        "MessageInformation",
        theory.MessageInformation,
        {"channel": CHANNEL, "candidates": np.array(TABLE)[None]},
    )
    audited = {"channel": CHANNEL, "candidates": TABLE, "posterior": None}
    yield Call("exact_epsilon", audit.exact_epsilon, audited)
    yield Call("certify", audit.certify, audited)
    yield Call("exact_delta", audit.exact_delta, {**audited, "epsilon": 1.0})
    yield Call(
        "estimate_epsilon",
        audit.estimate_epsilon,
        {**audited, "trials": 100, "confidence": 0.9, "delta": 0.0, "seed": 0},
        {
            "delta": [v for v in MEASURES if not _is_zero(v)],
            "confidence": [*MEASURES, 1.0],
            "trials": [*COUNTS, 10**12],
        },
    )
    yield Call(
        "reachable",
        audit.reachable,
        {**audited, "messages": None, "seed": 0},
        {"messages": [*COUNTS, 0, 10**12]},
    )
    yield Call("uniform_posterior", audit.uniform_posterior, {"channel": CHANNEL})
    scales = {"num_coordinates": 2, "epsilon": 1.0, "delta": 1e-5}
    yield Call(
        "composed_epsilon",
        accounting.composed_epsilon,
        {"epsilon": 0.5, "count": 8, "delta": 0.0},
        {"count": [*COUNTS, 10**12], "delta": SHARES},
    )
    yield Call("laplace_vector_scale", accounting.laplace_vector_scale, scales, delta)
    yield Call("gaussian_vector_scale", accounting.gaussian_vector_scale, scales, delta)
    yield Call(
        "gaussian_delta",
        accounting.gaussian_delta,
        {"shift": 1.0, "epsilon": 1.0},
        {"shift": [v for v in MEASURES if not _is_zero(v)]},
    )
    yield Call(
        "laplace_delta",
        accounting.laplace_delta,
        {"shifts": [0.5, 0.2], "epsilon": 3.0},
        {"shifts": [*no_arrays(2), [-1.0], [[1.0]]]},
    )
    yield Call("Clipping", clipping.Clipping, {"horizon": 10, "rule": "paper"}, words={"rule": ("clipping",)})
    yield Call(
        "design", extremal.design, {"candidates": TABLE, "epsilon": 1.0, "horizon": 100, "most_sets": 5}
    )


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def _play_calls() -> Iterator[Call]:
    truths = ["nobody", b"x", -1, 2, 99, 1.5, 1j, math.nan, True, [], {}, object(), 10**400, FINE]
    checkpoints = [*LISTS, [0], [99], np.array([[1]])]
    envs = [*THINGS, None, [], {"horizn": 3}, {1: 2}, gym.spaces.Discrete(2), FINE, gym.make("CartPole-v1")]
    yield Call(
        "evaluate",
        ldp_gym.evaluate,
        {
            "learner": "uniform",
            "env": RULES,
            "episodes": 2,
            "seed": 0,
            "truth": None,
            "checkpoints": None,
            "averages": False,
            "leaders": False,
            "progress": None,
            "jobs": 1,
        },
        {
            "truth": truths,
            "checkpoints": checkpoints,
            "env": envs,
            "episodes": [*COUNTS, 0, 10**12],
            "jobs": JOBS,
        },
    )
    yield Call(
        "estimates",
        batch.estimates,
        {"learner": "uniform", "env": RULES, "episodes": 2, "seed": 0, "truth": None},
        {"truth": truths, "env": envs, "episodes": [*COUNTS, 0, 10**12]},
    )
    yield Call("median_run", batch.median_run, {"runs": [[0.5, 0.5]] * 3}, {"runs": no_tables(3, 2)})
    yield Call(
        "nearest_hypothesis",
        batch.nearest_hypothesis,
        {"estimate": [0.5, 0.25, 0.25], "table": TABLE},
        {"estimate": no_rows(3), "table": no_tables(2, 3)},
    )
    searched = {"num_hypotheses": 2, "num_labels": 2, "context_dim": 1, "horizon": 3, "channel": "split"}
    yield Call(
        "hardest_contexts",
        search.hardest_contexts,
        {
            "rules": searched,
            "learner": "uniform",
            "length": 1,
            "sequences": 1,
            "episodes": 1,
            "generations": 0,
            "fresh": 2,
            "seed": 0,
            "progress": None,
        },
        {
            "rules": envs,
            "sequences": [*COUNTS, 0, 10**12],
            "fresh": [*COUNTS, 10**12],
            "length": [*COUNTS, 10**12],
            "episodes": [*COUNTS, 0, 10**12],
            "generations": [*COUNTS, 10**12],
        },
    )
    yield Call("step", _step, {"action": FINE}, {"action": no_rows(3)}, covers=ldp_gym.LDPDistEnv)
    yield Call(
        "vector step",
        _vector_step,
        {"actions": [FINE, FINE]},
        {"actions": no_tables(2, 3)},
        {"actions": ("action",)},
        covers=ldp_gym.LDPDistVectorEnv,
    )
    resets = [*OPTIONS, {"truth": "a"}, {"truth": 1.5}, {"truth": 9}, {"truth": True}, {"truth": -1}]
    yield Call(
        "reset",
        _reset,
        {"seed": None, "options": None},
        {"options": resets},
        {"options": ("options", "truth")},
    )
    masks = [[1, 0], np.array([1, 0]), "x", np.array([True]), np.zeros(2, bool), [True, False], 3]
    yield Call(
        "vector reset",
        _vector_reset,
        {"seed": None, "options": None},
        {
            "options": [*resets, *({"reset_mask": mask} for mask in masks)],
            "seed": [*(seed for seed in SEEDS if not isinstance(seed, tuple)), [1], [1, 2, 3], [1, "2"]],
        },
        {"options": ("options", "truth", "reset_mask")},
    )
    yield Call(
        "LDPDistVectorEnv",
        lambda **arguments: ldp_gym.LDPDistVectorEnv(**arguments, **RULES),
        {"num_envs": 2, "autoreset_mode": "NextStep", "render_mode": None},
        {"num_envs": [*COUNTS, 0, 10**12]},
        covers=ldp_gym.LDPDistVectorEnv,
    )
    yield Call(
        "Simplex",
        ldp_gym.Simplex,
        {"num_labels": 3, "batch_shape": (), "seed": None},
        {
            "batch_shape": [3, "ab", 1.5, [1.5], (-1,), ("a",), None, object(), (True,)],
            "num_labels": [*COUNTS, 0],
        },
    )
    yield Call(
        "Simplex.distribution", spaces.Simplex(3).distribution, {"action": FINE}, {"action": no_rows(3)}
    )
    yield Call(
        "privatize",
        _privatize,
        {"labels": 0, "candidates": TABLE, "rng": np.random.default_rng(0), "posterior": None},
        {
            "labels": LABELS,
            "rng": GENERATORS,
        },
    )
    yield Call("game_of", game_of, {"source": _game()}, {"source": GAMES}, {"source": ("Game",)})
    yield Call(
        "Game",
        ldp_gym.Game,
        {"hypotheses": ldp_gym.HYPOTHESES["dirichlet"](2, 3), "channel": CHANNEL, "horizon": 4},
        {
            "hypotheses": [*THINGS, TABLE],
        },
        optional=("hypotheses",),
    )


def _wrapper_calls() -> Iterator[Call]:
    envs = [*THINGS, None, [], RULES, gym.spaces.Discrete(2), gym.make("CartPole-v1")]
    several = gym.make_vec("LDPDist-v0", num_envs=2, **RULES)
    one = gym.make("LDPDist-v0", **RULES)
    for name in wrappers.__all__:
        wrapper = getattr(wrappers, name)
        vector = issubclass(wrapper, gym.vector.VectorWrapper)
        right: dict[str, Any] = {"env": several if vector else one}
        if "logit_range" in inspect.signature(wrapper).parameters:
            right["logit_range"] = 10.0
        words = {"env": ("LDPDist", "single", "vector", "environment")}
        yield Call(name, wrapper, right, {"env": [*envs, one if vector else several]}, words)
    for wrapper, width in ((wrappers.MixtureAction, 2), (wrappers.SoftmaxAction, 3)):
        wrong = [value for value in no_arrays(width) if not _is_zero(value)]
        yield Call(
            f"{wrapper.__name__}.step",
            _wrapped_step(wrapper, RULES),
            {"action": np.zeros(width)},
            {"action": wrong},
        )


def _learner_calls() -> Iterator[Call]:
    options = {
        "rate": [v for v in MEASURES if v is not None],
        "prior": no_rows(2),
        "share": [*MEASURES, 1.0],
        "members": [*MEASURES, 1.5],
    }
    rates = {"WMA": WORDS, "CentredEXP3": WORDS, "CentredWMA": WORDS}
    for name in ldp_agents.__all__:
        maker = getattr(ldp_agents, name)
        if not (isinstance(maker, type) and issubclass(maker, ldp_agents.Learner)) or inspect.isabstract(
            maker
        ):
            continue
        game = game_of(gym.make("LDPDist-v0", **{**RULES, "channel": "laplace-single"}))
        own = {p.name: p.default for p in inspect.signature(maker).parameters.values() if p.name != "game"}
        wrong = {p: rates.get(name, options[p]) if p == "rate" else options[p] for p in own}
        wrong = {p: [v for v in values if v is not None or own[p] is not None] for p, values in wrong.items()}
        yield Call(name, maker, {"game": game, **own}, wrong)
        if name not in ("EXP3", "WMA"):
            yield Call(
                f"{name}.update",
                _learn(maker),
                {"candidates": TABLE, "message": 0},
                {"message": MESSAGES},
                covers=maker,
            )
    env = gym.make("LDPDist-v0", **RULES)
    yield Call(
        "make",
        ldp_agents.make,
        {"name": "bayes", "env": env},
        {"name": LEARNERS, "env": GAMES},
        {"env": ("environment", "Game")},
    )
    contexts = ["a", 3, math.nan, [math.nan], ["a"], [1j], None, object(), np.zeros(5)]
    yield Call(
        "act",
        _act,
        {"message": 0, "context": np.zeros(1), "round": np.array([1])},
        {
            "message": MESSAGES,
            "context": contexts,
            "round": ["a", None, 1.5, object(), [1.5], ["a"], [-1], [True]],
        },
        {"message": ("message",), "context": ("context",), "round": ("round",)},
        covers=ldp_agents.Learner,
    )


def _check_calls() -> Iterator[Call]:
    made = {
        "hypotheses": ldp_gym.HYPOTHESES["dirichlet"](2, 3),
        "nature": ldp_gym.NATURES["iid"](2),
        "truth": ldp_gym.TRUTHS["uniform"](4),
    }
    for kind, thing in made.items():
        function = getattr(testing, f"check_{kind}")
        yield Call(
            f"check_{kind}", function, {kind: thing, "seed": 0}, {kind: [*THINGS, None, TABLE], "seed": SEEDS}
        )
    yield Call("check_channel", testing.check_channel, {"channel": CHANNEL, "samples": None, "seed": 0})
    yield Call("check_learner", testing.check_learner, {"learner": "uniform", "seed": 0})


def play_calls() -> Iterator[Call]:
    """All of them."""
    for part in (
        _source_calls,
        _function_calls,
        _play_calls,
        _rules_calls,
        _registered_calls,
        _wrapper_calls,
        _learner_calls,
        _check_calls,
    ):
        yield from part()
