"""What a user has spent: every answer is booked before it leaves.

Answers that are eps-private on their own are, together, as private as composition says: their eps add up.
If the user allows a delta, so many answers of at most so much eps each spend less than their sum
(:func:`~ldp_gym.channels.accounting.composed_epsilon`). A user's ledger is one file for all games: what
was said in one game counts in the next.

An answer is booked together with its message. Whoever asks the same question again gets the same answer, and
nothing more is spent. So a client that was killed between the booking and the sending loses nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from ldp_gym.channels.accounting import composed_epsilon
from ldp_gym.core import validation
from ldp_gym.core.errors import BudgetSpentError, DamagedStoreError, WrongStoreError
from ldp_gym.core.files import Closable
from ldp_gym.privacy.database import Database, Kind

_LEDGER = Kind(
    "ledger",
    0x4C44504C,  # LDPL
    (
        "CREATE TABLE IF NOT EXISTS owners (name TEXT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS entries (question TEXT PRIMARY KEY, game TEXT NOT NULL, "
        "round INTEGER NOT NULL, epsilon REAL NOT NULL, answer TEXT NOT NULL) WITHOUT ROWID",
        "CREATE INDEX IF NOT EXISTS by_round ON entries (game, round)",
        "CREATE TABLE IF NOT EXISTS sums "
        "(spent TEXT NOT NULL, largest REAL NOT NULL, count INTEGER NOT NULL)",
        "INSERT INTO sums SELECT '0', 0.0, 0 WHERE NOT EXISTS (SELECT * FROM sums)",
    ),
)


class Entry(NamedTuple):
    """One answer in a ledger.

    Attributes:
        question: the question's digest.
        game: the game's fingerprint.
        round: of the question.
        epsilon: what it spent.
        answer: what was answered, as JSON.
    """

    question: str
    game: str
    round: int
    epsilon: float
    answer: str


class Ledger(Closable):
    """A user's own account of privacy, in an SQLite file.

    What is booked survives a kill of the process at any moment. Several processes may share a ledger.

    Args:
        path: the file; it is made if there is none. ``":memory:"`` keeps nothing.
        durable: whether bookings survive a loss of power too; several times slower.
        owner: whose ledger it is; one that was made for somebody else is refused.

    Raises:
        WrongStoreError: if the file is no ledger, or another owner's.
        DamagedStoreError: if it cannot be read, or does not add up.

    Example:
        >>> ledger = Ledger(":memory:")
        >>> for t in range(3):
        ...     _ = ledger.book(Entry(f"question {t}", "a game", t, 0.5, "yes"), budget=4.0)
        >>> ledger.spent(), ledger.left(budget=4.0)
        (1.5, 2.5)
    """

    def __init__(self, path: str | Path, *, durable: bool = False, owner: str | None = None) -> None:
        path = str(validation.instance("path", path, (str, Path), "a ledger's file"))
        owner = None if owner is None else validation.text("owner", owner)
        self._database = Database(path, _LEDGER, durable=validation.flag("durable", durable))
        try:
            self._check_owner(owner)
            self._check_sums()
        except BaseException:
            self.close()
            raise

    def _check_owner(self, owner: str | None) -> None:
        if owner is None:
            return
        with self._database.transaction():
            self._database.run(
                "INSERT INTO owners SELECT ? WHERE NOT EXISTS (SELECT * FROM owners)", (owner,)
            )
        ((whose,),) = self._database.run("SELECT name FROM owners")
        if whose != owner:
            raise WrongStoreError(f"the ledger {self._database.path} belongs to {whose!r}, not to {owner!r}")

    def _check_sums(self) -> None:
        with self._database.transaction():
            spent = [epsilon for (epsilon,) in self._database.run("SELECT epsilon FROM entries")]
            says = self._database.run("SELECT spent, largest, count FROM sums")
        adds_up = (str(sum(map(Fraction, spent), Fraction())), max(spent, default=0.0), len(spent))
        if says != [adds_up]:
            raise DamagedStoreError(
                f"the ledger {self._database.path} does not add up: it says {says}, and its {len(spent)} "
                f"entries have eps = {math.fsum(spent):.9g}"
            )

    # -- Looking at it --------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """All answers, by game and round."""
        rows = self._database.run(
            "SELECT question, game, round, epsilon, answer FROM entries ORDER BY game, round, question"
        )
        return [Entry(*row) for row in rows]

    def spent(self, delta: float = 0.0) -> float:
        """The eps that all answers together have spent, rounded up; with a delta it may be less."""
        ((spent, largest, count),) = self._database.run("SELECT spent, largest, count FROM sums")
        total = _float_above(Fraction(spent))
        return min(total, composed_epsilon(largest, count, delta)) if delta > 0.0 and largest > 0.0 else total

    def left(self, budget: float, delta: float = 0.0) -> float:
        """What is left of a budget; never below 0."""
        return max(0.0, -_float_above(Fraction(self.spent(delta)) - Fraction(budget)))

    def find(self, question: str, game: str) -> tuple[str | None, int]:
        """What was answered to a question, if it was, and the last round in which its game got an answer.

        That is -1 if it got none.
        """
        ((answer, last),) = self._database.run(
            "SELECT (SELECT answer FROM entries WHERE question = ?), "
            "(SELECT max(round) FROM entries WHERE game = ?)",
            (question, game),
        )
        return answer, -1 if last is None else last

    # -- Spending -------------------------------------------------------------------------------------

    def book(self, entry: Entry, budget: float, delta: float = 0.0) -> str:
        """Book an answer, if the budget allows it.

        Returns:
            What may leave the device: the answer, or the one that was booked for this question before.

        Raises:
            BudgetSpentError: if it would exceed the budget. Nothing is booked.
        """
        epsilon = validation.real("epsilon", entry.epsilon)
        if not 0.0 <= epsilon < math.inf:
            raise ValueError(f"an answer spends a finite eps of at least 0, got {epsilon}")
        run = self._database.run
        with self._database.transaction():
            ((before, spent, largest, count),) = run(
                "SELECT (SELECT answer FROM entries WHERE question = ?), spent, largest, count FROM sums",
                (entry.question,),
            )
            if before is not None:
                return str(before)
            total, largest = Fraction(spent) + Fraction(epsilon), max(largest, epsilon)
            within = total <= Fraction(budget)
            if not within and not (delta > 0.0 and composed_epsilon(largest, count + 1, delta) <= budget):
                raise self._exceeded(epsilon, budget, delta)
            run("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", entry)
            run("UPDATE sums SET spent = ?, largest = ?, count = ?", (str(total), largest, count + 1))
        return entry.answer

    def _exceeded(self, epsilon: float, budget: float, delta: float) -> BudgetSpentError:
        left = self.left(budget, delta)
        return BudgetSpentError(
            f"an answer of eps = {epsilon:.6g} exceeds the budget of {budget:g}"
            + (f" at delta = {delta:g}" if delta else "")
            + f": {left:.6g} is left. Nothing was answered; a larger budget is the user's decision",
            left,
        )

    # -- Closing --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()


def _float_above(number: Fraction) -> float:
    """The least float that is not below a rational number."""
    nearest = float(number)
    return nearest if nearest >= number else math.nextafter(nearest, math.inf)
