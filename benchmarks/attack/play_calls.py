"""Calls that play a game: evaluations, environments, wrappers and learners."""

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
    OPTIONS,
    RULES,
    SEEDS,
    TABLE,
    THINGS,
    WORDS,
    is_zero,
    no_arrays,
    no_rows,
    no_tables,
)

import ldp_agents
import ldp_gym
from ldp_gym import batch, search, spaces, wrappers
from ldp_gym.engine.game import game_of


def _environment() -> Any:
    return gym.make("LDPDist-v0", **RULES)


def _vector_environment() -> Any:
    return gym.make_vec("LDPDist-v0", num_envs=2, **RULES)


def _step(make: Callable[[], Any], argument: str = "action") -> Callable[..., Any]:
    """The first step of an environment, with the argument by its name."""

    def step(**arguments: Any) -> Any:
        env = make()
        env.reset(seed=0)
        return env.step(arguments[argument])

    return step


def _reset(seed: Any = 0, options: Any = None) -> Any:
    return _environment().unwrapped.reset(seed=seed, options=options)


def _vector_reset(seed: Any = 0, options: Any = None) -> Any:
    return _vector_environment().reset(seed=seed, options=options)


def _game() -> ldp_gym.Game:
    return game_of(_environment())


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
    yield Call(
        "step", _step(_environment), {"action": FINE}, {"action": no_rows(3)}, covers=ldp_gym.LDPDistEnv
    )
    yield Call(
        "vector step",
        _step(_vector_environment, "actions"),
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
        {"labels": LABELS, "rng": GENERATORS},
    )
    yield Call("game_of", game_of, {"source": _game()}, {"source": GAMES}, {"source": ("Game",)})
    yield Call(
        "Game",
        ldp_gym.Game,
        {"hypotheses": ldp_gym.HYPOTHESES["dirichlet"](2, 3), "channel": CHANNEL, "horizon": 4},
        {"hypotheses": [*THINGS, TABLE]},
        optional=("hypotheses",),
    )


def _wrapper_calls() -> Iterator[Call]:
    envs = [*THINGS, None, [], RULES, gym.spaces.Discrete(2), gym.make("CartPole-v1")]
    one, several = _environment(), _vector_environment()
    for name in wrappers.__all__:
        wrapper = getattr(wrappers, name)
        vector = issubclass(wrapper, gym.vector.VectorWrapper)
        right: dict[str, Any] = {"env": several if vector else one}
        if "logit_range" in inspect.signature(wrapper).parameters:
            right["logit_range"] = 10.0
        words = {"env": ("LDPDist", "single", "vector", "environment")}
        yield Call(name, wrapper, right, {"env": [*envs, one if vector else several]}, words)
    for wrapper, width in ((wrappers.MixtureAction, 2), (wrappers.SoftmaxAction, 3)):
        wrong = [value for value in no_arrays(width) if not is_zero(value)]
        yield Call(
            f"{wrapper.__name__}.step",
            _step(lambda wrapper=wrapper: wrapper(_environment())),
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
    rates = {"WMA": WORDS, "CentredEXP3": WORDS}
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
    yield Call(
        "make",
        ldp_agents.make,
        {"name": "bayes", "env": _environment()},
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


def play_calls() -> Iterator[Call]:
    """All of them."""
    for part in (_play_calls, _wrapper_calls, _learner_calls):
        yield from part()
