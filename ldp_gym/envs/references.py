"""References of scores: estimated once for the rules of a game, and shipped for the named games."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import Scenario

R = TypeVar("R", bound=Rules)
T = TypeVar("T")


def kept_by_rules(
    shipped: Mapping[str, T],
) -> Callable[[Callable[[Scenario, Any], T]], Callable[[Scenario, Any], T]]:
    """Decorate an estimate about a game: it is made once, if the rules can be written as JSON.

    Args:
        shipped: estimates that come with the package, by :meth:`Rules.to_json`.
    """
    kept = dict(shipped)

    def decorate(estimate: Callable[[Scenario, Any], T]) -> Callable[[Scenario, Any], T]:
        @functools.wraps(estimate)
        def look_up(scenario: Scenario, rules: Rules) -> T:
            try:
                key = rules.to_json()
            except TypeError:  # a custom class, channel, nature or truth
                return estimate(scenario, rules)
            if key not in kept:
                kept[key] = estimate(scenario, rules)
            return kept[key]

        return look_up

    return decorate
