"""The user's side: an answer to a question, and what it spends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import Messages
from ldp_gym.core.errors import BrokenPromiseError, QuestionRefusedError
from ldp_gym.core.files import Closable
from ldp_gym.deploy.messages import Question, read_question, to_json, write_answer
from ldp_gym.deploy.terms import Terms
from ldp_gym.privacy.ledger import Entry, Ledger


class Client(Closable):
    """Answers questions with private messages, as long as its user's budget lasts.

    It trusts no server. What it promises holds for any candidates and any posterior, and what is not a
    question of its own game it does not answer. An answer is booked before it is returned. The same question
    gets the same answer, and spends nothing the second time.

    Args:
        rules: those of the game, as ``gym.make("LDPDist-v0", **rules)`` takes them. The channel must have
            finitely many messages.
        budget: how much eps the user allows, over all games of the ledger.
        ledger: the path of the user's ledger; it is made if there is none.
        delta: the delta that the user allows; with one, many answers spend less than the sum of their eps, if
            ``dp-accounting`` is installed.
        durable: whether bookings survive a loss of power too; several times slower.
        owner: whose ledger it must be.

    Example:
        >>> from ldp_gym.deploy import Server
        >>> rules = {"hypotheses": "dirichlet", "channel": "split"}
        >>> server, client = Server(rules), Client(rules, budget=4.0, ledger=":memory:")
        >>> answer = client.answer(server.question(), label=3)
        >>> server.receive(answer)
        True
        >>> round(client.spent, 6)
        1.0
    """

    def __init__(
        self,
        rules: Mapping[str, Any],
        *,
        budget: float,
        ledger: str | Path,
        delta: float = 0.0,
        durable: bool = False,
        owner: str | None = None,
    ) -> None:
        self._terms = Terms.from_rules(rules)
        self.budget = validation.positive("budget", budget)
        self.delta = validation.probability_below_one("delta", delta)
        self.ledger = Ledger(ledger, durable=durable, owner=owner)

    @property
    def spent(self) -> float:
        """The eps that the user has spent, rounded up."""
        return self.ledger.spent(self.delta)

    @property
    def left(self) -> float:
        """What is left of the budget."""
        return self.ledger.left(self.budget, self.delta)

    def answer(self, question: Mapping[str, Any], label: int) -> dict[str, Any]:
        """A private answer to a question, booked in the ledger.

        Args:
            question: what :meth:`ldp_gym.deploy.Server.question` returned, perhaps through JSON.
            label: the user's, in ``0..M-1``.

        Raises:
            QuestionRefusedError: if this is no question of the game, or of a round that is over.
            BrokenPromiseError: if the channel is not eps-private at the question's candidates.
            BudgetSpentError: if the answer would exceed the budget; it says what is left.
            TypeError, ValueError: if ``label`` is no label.
        """
        label = validation.index("label", label, self._terms.game.num_labels)
        asked = read_question(self._terms, question)
        game = f"{self._terms.fingerprint} {asked.survey}"
        digest = f"{game} {asked.digest}"
        booked, last = self.ledger.find(digest, game)
        if booked is None:
            if asked.round < last:
                raise QuestionRefusedError(
                    f"no answer to this question: it is of round {asked.round}, and this user has answered "
                    f"in round {last}. A server never goes back"
                )
            message, epsilon = self._randomize(asked, label)
            said = to_json(write_answer(self._terms, asked, message))
            entry = Entry(digest, game, asked.round, epsilon, said)
            booked = self.ledger.book(entry, self.budget, self.delta)
        return json.loads(booked)

    def _randomize(self, asked: Question, label: int) -> tuple[Messages, float]:
        """The message, and the eps that it spends."""
        try:
            with np.errstate(all="ignore"):  # whatever the candidates are, the table is checked in integers
                return self._terms.channel.answer(label, asked.candidates, asked.posterior)
        except BrokenPromiseError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise QuestionRefusedError(
                f"no answer to this question: {self._terms.game.channel!r} fails at its candidates: {error}"
            ) from error

    def close(self) -> None:
        """Let go of the ledger."""
        self.ledger.close()
