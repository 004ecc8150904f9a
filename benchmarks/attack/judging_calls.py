"""Calls that judge: bounds and limits, noise scales, audits, and checks of parts of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attack.call import Call
from attack.wrong_values import CHANNEL, COUNTS, MEASURES, SEEDS, SHARES, TABLE, THINGS, is_zero, no_arrays

import ldp_gym
from ldp_gym import audit, testing, theory
from ldp_gym.channels import accounting, clipping, extremal, noise_scales

BOUNDS = {"num_hypotheses": 8, "horizon": 1000, "epsilon": 1.0}
SCALES = {"num_coordinates": 2, "epsilon": 1.0, "delta": 1e-5}
AUDITED = {"channel": CHANNEL, "candidates": TABLE, "posterior": None}

RIGHT: dict[Callable[..., Any], dict[str, Any]] = {
    theory.capacity: {"epsilon": 1.0},
    theory.best_share: {"epsilon": 1.0},
    theory.nonprivate_bound: {"num_hypotheses": 8},
    theory.wma_bound: {**BOUNDS, "delta": 1e-5, "gamma": None},
    theory.exp3_bound: {**BOUNDS, "gamma": None},
    theory.wma_regret_bound: {**BOUNDS, "delta": 1e-5, "gamma": None},
    theory.exp3_regret_bound: {**BOUNDS, "gamma": None},
    theory.tv_bound: {"kl_risk": 3.0, "horizon": 100},
    theory.sample_complexity: {"num_hypotheses": 4, "alpha": 0.3, "epsilon": 1.0},
    theory.randomized_response_rate: {**BOUNDS, "num_labels": 4},
    theory.lower_bound: BOUNDS,
    theory.hadamard_gap: BOUNDS,
    theory.hadamard_horizon: {"num_hypotheses": 8, "epsilon": 1.0},
    theory.offset: {"num_hypotheses": 8, "horizon": 100, "noise_scale": 1.0, "gamma": None},
    theory.single_noise_scale: BOUNDS,
    theory.vector_noise_scale: {**BOUNDS, "delta": 1e-5},
    noise_scales.advanced_composition: SCALES,
    noise_scales.log_range: {"num_hypotheses": 8, "horizon": 100},
    noise_scales.resolved_gamma: {"gamma": None, "horizon": 100},
    theory.information_limit: BOUNDS,
    theory.risk_floor: {"num_hypotheses": 4, "horizon": 9, "epsilon": 1.0, "adaptive": True},
    theory.soft_bayes_bound: {**BOUNDS, "rate": 0.1},
    theory.information_rate: {
        "channel": CHANNEL,
        "candidates": TABLE,
        "weights": None,
        "samples": 100,
        "seed": 0,
    },
    theory.MessageInformation: {"channel": CHANNEL, "candidates": np.array(TABLE)[None]},
    audit.exact_epsilon: AUDITED,
    audit.certify: AUDITED,
    audit.exact_delta: {**AUDITED, "epsilon": 1.0},
    audit.uniform_posterior: {"channel": CHANNEL},
    accounting.laplace_vector_scale: SCALES,
    accounting.gaussian_vector_scale: SCALES,
    extremal.design: {"candidates": TABLE, "epsilon": 1.0, "horizon": 100, "most_sets": 5},
}
"""Functions whose arguments are wrong as their names say, or as a delta that must be positive is."""


def _function_calls() -> Iterator[Call]:
    for function, right in RIGHT.items():
        wrong = {"delta": [*MEASURES, 1.0, 2]} if "delta" in right else {}
        yield Call(function.__name__, function, right, wrong)
    yield Call(
        "fixed_share_bound",
        theory.fixed_share_bound,
        {"num_hypotheses": 4, "horizon": 9, "switches": 1, "share": 0.1},
        {"share": [*MEASURES, 1.0]},
    )
    nonnegative = [value for value in MEASURES if not is_zero(value)]
    yield Call(
        "estimate_epsilon",
        audit.estimate_epsilon,
        {**AUDITED, "trials": 100, "confidence": 0.9, "delta": 0.0, "seed": 0},
        {"delta": nonnegative, "confidence": [*MEASURES, 1.0], "trials": [*COUNTS, 10**12]},
    )
    yield Call(
        "reachable",
        audit.reachable,
        {**AUDITED, "messages": None, "seed": 0},
        {"messages": [*COUNTS, 0, 10**12]},
    )
    yield Call(
        "composed_epsilon",
        accounting.composed_epsilon,
        {"epsilon": 0.5, "count": 8, "delta": 0.0},
        {"count": [*COUNTS, 10**12], "delta": SHARES},
    )
    yield Call(
        "gaussian_delta", accounting.gaussian_delta, {"shift": 1.0, "epsilon": 1.0}, {"shift": nonnegative}
    )
    yield Call(
        "laplace_delta",
        accounting.laplace_delta,
        {"shifts": [0.5, 0.2], "epsilon": 3.0},
        {"shifts": [*no_arrays(2), [-1.0], [[1.0]]]},
    )
    yield Call("Clipping", clipping.Clipping, {"horizon": 10, "rule": "paper"}, words={"rule": ("clipping",)})


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


def judging_calls() -> Iterator[Call]:
    """All of them."""
    yield from _function_calls()
    yield from _check_calls()
