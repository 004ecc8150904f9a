"""The server of a survey: it reads private messages and says which models are left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ldp_agents.base import update_all
from ldp_agents.bayes import Bayes
from ldp_bench.planning.models import Models, rows_of_features
from ldp_bench.planning.record import Plan
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages

_SAME_POSTERIOR = 1e-9
"""Largest difference of two posteriors that are the same, but for the rounding of machines."""


class Survey:
    """A survey under way. Its whole state is its plan and its messages, in their order.

    Args:
        plan: the plan.
        models: the models, if they predict from features.

    Attributes:
        asked: number of messages read.

    Example:
        Ten users answer "yes" through randomized response, at eps = 4:

        >>> from ldp_bench import plan
        >>> coins = {"fair": [0.5, 0.5], "loaded": [0.05, 0.95]}
        >>> planned = plan(coins, epsilon=4.0, labels=["no", "yes"], runs=20, quiet=True)
        >>> survey = Survey(planned.plan)
        >>> survey.read([1] * 10)
        >>> survey.named
        'loaded'
    """

    def __init__(self, plan: Plan, models: Models | None = None) -> None:
        """Start a survey without messages; a ValueError if the models are not those of the plan."""
        self.plan = plan
        self.asked = 0
        self._models = models
        if plan.table is None and models is not None:
            plan.check_models(models)
        self._learner = Bayes(plan.game())

    def read(
        self, messages: Sequence[Any] | Messages, candidates: FloatArray | None = None
    ) -> None:
        """Read n messages.

        Args:
            messages: the messages, in the order of the users, ``(n, *message_shape)``.
            candidates: the models' predictions for these users, ``(n, K, M)``; not needed for a table.
        """
        if candidates is None:
            candidates = self.plan.candidates()[0]
        update_all(self._learner, candidates, np.asarray(messages))
        self.asked += len(messages)

    def read_line(self, line: str) -> None:
        """Read one answer: a line of JSON with a message and, if needed, a context and a posterior.

        Raises:
            ValueError: for a line that is not an answer, a message that the channel does not send, and an
                answer under another public posterior than that of this survey.
        """
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise ValueError(f"an answer is a JSON object: {error}") from None
        if not isinstance(answer, dict) or set(answer) - {"message", "context", "posterior"}:
            raise ValueError(
                f"an answer holds message, context and posterior, got {validation.describe(answer)}"
            )
        if "message" not in answer:
            raise ValueError("an answer without a message")
        self._check_posterior(answer.get("posterior"))
        candidates = candidates_at(self.plan, self._models, answer.get("context"))
        self._learner.update(candidates, np.asarray(answer["message"]))
        self.asked += 1

    def read_lines(self, lines: Iterable[str]) -> None:
        """Read the answers of many lines; an error names its line."""
        for number, line in enumerate(lines, start=1):
            try:
                self.read_line(line)
            except (TypeError, ValueError) as error:
                raise ValueError(f"line {number}: {error}") from error

    def _check_posterior(self, given: Any) -> None:
        """Raise a ValueError if an answer was given under another public posterior than this survey's."""
        if self.posterior is None:
            return
        if given is None:
            raise ValueError(
                "an answer on an adaptive channel states the posterior that it was asked under"
            )
        same = np.shape(given) == self.posterior.shape and np.allclose(
            given, self.posterior, rtol=0.0, atol=_SAME_POSTERIOR
        )
        if not same:
            raise ValueError(
                "this user answered under another public posterior: keep the order of messages"
            )

    @property
    def posterior(self) -> FloatArray | None:
        """Public posterior ``(K,)`` that the next user of an adaptive channel answers under, else None."""
        return self._learner.public_weights

    @property
    def weights(self) -> dict[str, float]:
        """Posterior weights of the models, by name."""
        return dict(zip(self.plan.models, self._learner.weights.tolist(), strict=True))

    @property
    def left(self) -> list[str]:
        """Models that are not ruled out."""
        return [name for name, kept in zip(self.plan.models, self._kept, strict=True) if kept]

    @property
    def _kept(self) -> BoolArray:
        return self._learner.confidence_set(self.plan.alpha)

    @property
    def finished(self) -> bool:
        """True if at most one model is left, or only models that are alike."""
        kept = np.flatnonzero(self._kept).tolist()
        alike = {frozenset(pair) for pair in self.plan.alike}
        return all(frozenset((j, k)) in alike for j in kept for k in kept if j < k)

    @property
    def named(self) -> str | None:
        """The likeliest model that is left, once the survey is finished; None if none is left."""
        if not self.finished or not self.left:
            return None
        return max(self.left, key=lambda name: self.weights[name])

    @property
    def verdict(self) -> str:
        """Conclusion from the messages so far, in a sentence."""
        sure = f"If a model is right, this is wrong with probability at most {self.plan.alpha:.3g}."
        if self.finished and not self.left:
            return f"Stop: no model fits the messages. {sure}"
        if self.finished and len(self.left) > 1:
            names = ", ".join(map(repr, self.left))
            return f"Stop: the models left, {names}, predict alike; {self.named!r} is likeliest. {sure}"
        if self.finished:
            return f"Stop: {self.named!r} is the only model left. {sure}"
        if self.asked >= self.plan.most_users:
            return f"Stop: {self.asked:,} users are all that were planned, and the survey is undecided."
        return f"Go on: {len(self.left)} models are left."


def candidates_at(plan: Plan, models: Models | None, context: Any) -> FloatArray:
    """Predictions ``(K, M)`` for one user: at a context, or of the plan's table."""
    if plan.table is not None:
        return plan.candidates()[0]
    if models is None:
        raise ValueError("the plan's models predict from features: the models are needed")
    if context is None:
        raise ValueError("the user's features are needed: the models predict from them")
    return models.predict(_as_rows(plan, context))[0]


def _as_rows(plan: Plan, context: Any) -> Any:
    """One user's features as a table of one row, which models take."""
    if plan.features is None:
        values = np.asarray(validation.list_of("context", context, "features"))
        if plan.probe and len(values) != len(plan.probe[0]):
            raise ValueError(f"the models take {len(plan.probe[0])} features, got {len(values)}")
        return values[None]
    if not isinstance(context, dict):
        raise ValueError(f"a context is an object with the features {', '.join(plan.features)}")
    missing = [name for name in plan.features if name not in context]
    if missing:
        raise ValueError(f"the feature {missing[0]!r} is missing from the context")
    return rows_of_features([[context[name] for name in plan.features]], plan.features)


def answer_line(message: Messages, context: Any = None, posterior: FloatArray | None = None) -> str:
    """Write one answer as a line of JSON: the message, and what else the server needs to read it."""
    answer: dict[str, Any] = {"message": np.asarray(message).tolist()}
    if context is not None:
        answer["context"] = context
    if posterior is not None:
        answer["posterior"] = np.asarray(posterior).tolist()
    return json.dumps(answer)
