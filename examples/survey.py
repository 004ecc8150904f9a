"""From a plan to a survey: clients that answer privately, and a server that reads them and stops.

``ldp_bench.select`` plans the survey from a log. Each client draws one message with exact integer
probabilities and the operating system's coins. The server refuses messages that the channel cannot
send, updates the learner, keeps its state as JSON, and stops when one model is left, when all
models that are left are within the tolerance, or when all planned users have answered.

A deployment needs more than this file: see docs/survey.md.

    python examples/survey.py
"""

from __future__ import annotations

import json

import numpy as np

import ldp_bench
from ldp_bench.selection import Plan
from ldp_gym.privacy import ExactChannel, ExactTable

TABLE = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]])
"""Known populations: what each model says about the four labels."""


class Client:
    """A user's device: it knows the plan, the models and its own label."""

    def __init__(self, plan: Plan, label: int) -> None:
        self._channel, self._candidates, self._label = (
            ExactChannel(plan.channel()),
            plan.smooth(TABLE),
            label,
        )

    def answer(self, posterior: list[float] | None) -> str:
        """The one message that leaves the device, as JSON."""
        public = None if posterior is None else np.array(posterior)
        message, epsilon = self._channel.answer(self._label, self._candidates, public)
        assert epsilon <= self._channel.channel.epsilon
        return json.dumps(np.asarray(message).tolist())


class Server:
    """Reads messages; all that it knows is in its plan and its list of messages."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.messages = plan, []
        self._learner, self._candidates = plan.learner(), plan.smooth(TABLE)
        self._learner.reset()

    @property
    def posterior(self) -> list[float] | None:
        """The public posterior that the next user answers under, if the channel is adaptive."""
        return (
            None if self._learner.public_weights is None else self._learner.public_weights.tolist()
        )

    def read(self, text: str) -> None:
        """Learn from one message; a ValueError if the channel cannot send it."""
        message = np.array(json.loads(text))
        self._learner.update(self._candidates, message)
        self.messages.append(json.loads(text))

    @property
    def left(self) -> list[str]:
        """Models that are not ruled out; a learner without confidence sets rules out none."""
        sets = getattr(self._learner, "confidence_set", None)
        kept = np.ones(len(self.plan.models), bool) if sets is None else sets(self.plan.alpha)
        return [name for name, keep in zip(self.plan.models, kept, strict=True) if keep]

    @property
    def verdict(self) -> str | None:
        """The model and the reason to stop, or None to go on."""
        best = self.plan.models[int(np.argmax(self._learner.weights))]
        losses = [self.plan.losses[self.plan.models.index(name)] for name in self.left]
        if len(self.left) == 1:
            return f"{best}: it is the only model left, at an error of {self.plan.alpha:.0%}"
        if losses and max(losses) - min(losses) <= self.plan.tolerance:
            return (
                f"{best}: all models left are within {self.plan.tolerance:.2g} nats of each other"
            )
        if len(self.messages) >= self.plan.users:
            return f"{best}: it has the largest weight after the planned {self.plan.users} users"
        return None

    def to_json(self) -> str:
        """The whole state."""
        return json.dumps({"plan": json.loads(self.plan.to_json()), "messages": self.messages})

    @classmethod
    def from_json(cls, text: str) -> Server:
        """A server that goes on where another one stopped."""
        state = json.loads(text)
        server = cls(Plan.from_json(json.dumps(state["plan"])))
        for message in state["messages"]:
            server.read(json.dumps(message))
        return server


def main() -> None:
    rng = np.random.default_rng(0)
    log = rng.choice(4, size=400, p=TABLE[0])
    models = dict(zip(["mornings", "evenings", "any time"], TABLE, strict=True))
    few = {
        "channels": ["split", "adaptive-split"],
        "learners": ["bayes"],
        "runs": 50,
        "quiet": True,
    }
    selection = ldp_bench.select(models, None, log, **few)
    print(selection)
    plan = Plan.from_json(selection.plan.to_json())
    table = ExactChannel(plan.channel()).table(
        np.full(plan.channel().num_public_coins, 0.5), plan.smooth(TABLE), Server(plan).posterior
    )
    assert ExactTable.from_json(table.to_json()).epsilon <= plan.epsilon + 1e-12

    server = Server(plan)
    for user, label in enumerate(rng.choice(4, size=plan.users, p=TABLE[0])):
        server.read(Client(plan, int(label)).answer(server.posterior))
        if user == 20:
            server = Server.from_json(server.to_json())  # a restart
        if server.verdict:
            break
    try:
        server.read(json.dumps([7, 7, 7]))
    except ValueError as error:
        print(f"\nrefused: {error}")
    print(f"\nafter {len(server.messages)} users: {server.verdict}")


if __name__ == "__main__":
    main()
