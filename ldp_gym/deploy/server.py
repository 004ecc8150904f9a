"""The other side: questions, answers that are kept, and a learner."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.errors import AnswerRefusedError, DamagedStoreError, QuestionRefusedError, WrongStoreError
from ldp_gym.core.files import Closable
from ldp_gym.deploy.messages import Question, as_message, read_answer, read_question, to_json, write_question
from ldp_gym.deploy.terms import Terms
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import Learner, build_learner
from ldp_gym.privacy.certificate import Certificate
from ldp_gym.privacy.database import MEMORY, Database, Kind
from ldp_gym.privacy.floats import reachable

_STORE = Kind(
    "server's store",
    0x4C445053,  # LDPS
    (
        "CREATE TABLE IF NOT EXISTS games (fingerprint TEXT NOT NULL, survey TEXT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS questions (number INTEGER PRIMARY KEY, question TEXT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS answers (round INTEGER PRIMARY KEY, "
        "number INTEGER NOT NULL UNIQUE, message TEXT NOT NULL)",
    ),
)

_COIN_DRAWS = 100
"""At how many draws of the public coins a certificate looks."""


class Server(Closable):
    """Asks questions, keeps the answers and learns from them.

    An answer is on disk before it is acknowledged. A server that is started again on its store learns from
    all answers in the order in which they came, and has the same weights, bit for bit.

    One question has one answer: the same one again is a duplicate and counts once, another is refused. An
    answer to an old question counts as long as the channel is not adaptive. If it is, a message means nothing
    without the posterior of its round: only the current round's first answer counts.

    Args:
        rules: those of the game, as ``gym.make("LDPDist-v0", **rules)`` takes them.
        learner: a learner's name, or what makes one from a game.
        store: the path of the file with questions and answers; in memory, and gone with the process, if None.
        durable: whether answers survive a loss of power too; several times slower.
        learner_kwargs: further options of a named learner.

    Raises:
        IncompatibleChannelError: for a channel that cannot be deployed, or that the learner cannot read.
        WrongStoreError: if the store is another game's, or in use.
        DamagedStoreError: if it cannot be read.
    """

    def __init__(
        self,
        rules: Mapping[str, Any],
        learner: str | Callable[[Game], Learner] = "bayes",
        *,
        store: str | Path | None = None,
        durable: bool = False,
        learner_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._terms, self._lock = Terms.from_rules(rules), RLock()
        durable = validation.flag("durable", durable)
        store = MEMORY if store is None else validation.path("store", store)
        self._learner = build_learner(learner, self._terms.game, learner_kwargs)
        self._learner.reset()
        self._public = self._terms.game.public_posterior() if self._terms.channel.adaptive else None
        self.round = 0
        self._database = Database(store, _STORE, durable=durable, exclusive=store != MEMORY)
        try:
            self._check_game()
            self._replay()
        except BaseException:
            self.close()
            raise

    def _check_game(self) -> None:
        fingerprint = self._terms.fingerprint
        with self._database.transaction():
            self._database.run(
                "INSERT INTO games SELECT ?, ? WHERE NOT EXISTS (SELECT * FROM games)",
                (fingerprint, secrets.token_hex(8)),
            )
        ((found, self._survey),) = self._database.run("SELECT fingerprint, survey FROM games")
        if found != fingerprint:
            raise WrongStoreError(
                f"the store {self._database.path} has the answers of another game, {found!r}; "
                f"these rules are {fingerprint!r}"
            )

    def _replay(self) -> None:
        rows = self._database.run("SELECT round, number, message FROM answers ORDER BY round")
        for round, number, message in rows:
            try:
                question = self._question(number)
                if question is None or round != self.round:
                    raise ValueError(f"answer {round} has no question, or others are missing")
                self._learn(question, as_message(self._terms, json.loads(message)))
            except (TypeError, ValueError) as error:
                raise DamagedStoreError(
                    f"the store {self._database.path} is damaged at answer {round}: {error}"
                ) from error

    # -- Asking ---------------------------------------------------------------------------------------

    def question(self, context: object = None) -> dict[str, Any]:
        """A question for one user, as plain data.

        Args:
            context: ``x_t``, ``(d,)``; not needed by a constant class. Where the class is redrawn, the
                candidates ``(K, M)`` themselves.

        Raises:
            ValueError: for what is no context, or when all rounds are over.
        """
        with self._lock:
            if self.round >= self._terms.game.horizon:
                raise ValueError(f"all {self.round} rounds are over: rules with a larger horizon have more")
            with self._database.transaction():
                ((last,),) = self._database.run("SELECT max(number) FROM questions")
                number = 0 if last is None else last + 1
                posterior = None if self._public is None else self._public.weights
                question = write_question(self._terms, self._survey, number, self.round, context, posterior)
                self._database.run("INSERT INTO questions VALUES (?, ?)", (number, to_json(question)))
        return question

    def _question(self, number: int) -> Question | None:
        rows = self._database.run("SELECT question FROM questions WHERE number = ?", (number,))
        return read_question(self._terms, json.loads(rows[0][0])) if rows else None

    # -- Learning -------------------------------------------------------------------------------------

    def receive(self, answer: Mapping[str, Any]) -> bool:
        """Keep an answer and learn from it.

        Returns:
            Whether it was counted; False for one that was counted before. Either way it need not come again.

        Raises:
            AnswerRefusedError: if it is no answer to a question of this server, or comes too late.
        """
        with self._lock:
            survey, number, round, message = read_answer(self._terms, answer)
            question = self._question(number)
            if question is None or (survey, round) != (self._survey, question.round):
                raise AnswerRefusedError(
                    f"this answer is not counted: there was no question {number} in round {round} of {survey}"
                )
            rows = self._database.run("SELECT message FROM answers WHERE number = ?", (number,))
            if rows:
                if np.array_equal(as_message(self._terms, json.loads(rows[0][0])), message):
                    return False
                raise AnswerRefusedError(f"this answer is not counted: question {number} has another answer")
            self._check_current(question)
            channel = self._terms.game.channel
            if not channel.is_possible(message, question.candidates, question.posterior):
                raise AnswerRefusedError(
                    f"this answer is not counted: {channel!r} never sends {message.tolist()}"
                )
            values = self.round, number, json.dumps(message.tolist())
            with self._database.transaction():
                self._database.run("INSERT INTO answers VALUES (?, ?, ?)", values)
            self._learn(question, message)
        return True

    def _check_current(self, question: Question) -> None:
        if self.round >= self._terms.game.horizon:
            raise AnswerRefusedError(f"this answer is not counted: all {self.round} rounds are over")
        if self._public is not None and question.round != self.round:
            raise AnswerRefusedError(
                f"this answer is not counted: it is of round {question.round}, and this is round "
                f"{self.round}. {self._terms.game.channel!r} is adaptive, and the posterior has moved on"
            )

    def _learn(self, question: Question, message: Messages) -> None:
        if self._public is not None:
            channel = self._terms.game.channel
            self._public.advance(channel.log_likelihood(message, question.candidates, self._public.weights))
        self._learner.predict(question.candidates)  # as in a game: some learners remember what they said
        self._learner.update(question.candidates, message)
        self.round += 1

    # -- What was learned -----------------------------------------------------------------------------

    def predict(self, context: object = None) -> FloatArray:
        """The learner's distribution over the labels at a context, ``(M,)``."""
        with self._lock:
            return np.array(self._learner.predict(self._terms.candidates(context)))

    @property
    def weights(self) -> FloatArray:
        """The learner's weights ``(K,)``.

        Raises:
            TypeError: if it has none.
        """
        weights = getattr(self._learner, "weights", None)
        if weights is None:
            raise TypeError(f"{type(self._learner).__name__} has no weights: ask it to predict")
        return np.array(weights)

    @property
    def certificate(self) -> Certificate:
        """What an answer to the last question spends, at the worst of some draws of the public coins.

        The eps is exact, and rounded up. It is at most the one of the rules at any question and any draw:
        every client checks its own table before it answers.
        """
        ((last,),) = self._database.run("SELECT max(number) FROM questions")
        question = None if last is None else self._question(last)
        if question is None:
            raise QuestionRefusedError("a certificate is about a question: ask one first")
        return _certify(self._terms, question)

    # -- Closing --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the store."""
        self._database.close()


def _certify(terms: Terms, question: Question) -> Certificate:
    """The certificate of a question, from tables of whole numbers."""
    channel = terms.channel
    coins = np.random.default_rng(0).random(
        (_COIN_DRAWS if channel.num_public_coins else 1, channel.num_public_coins)
    )
    tables = [channel.table(draw, question.candidates, question.posterior) for draw in coins]
    worst = max(tables, key=lambda table: table.ratio)
    ratios = worst.counts.max(axis=1) / np.maximum(worst.counts.min(axis=1), 1)
    place = int(ratios.argmax())
    labels = int(worst.counts[place].argmax()), int(worst.counts[place].argmin())
    return Certificate(
        worst.epsilon,
        0.0,
        channel.epsilon,
        0.0,
        f"fractions of whole numbers out of 2^64, at {len(coins)} draws of the public coins",
        labels,
        worst.messages[place],
        partial(reachable, channel, question.candidates, question.posterior),
    )
