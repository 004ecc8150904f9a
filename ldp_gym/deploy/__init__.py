"""The same game with people: a client on each user's device, a server with the learner.

====================== ====================================================================
:class:`Server`        asks questions, keeps the answers, learns, predicts
:class:`Client`        answers with a private message, and books what that spends
:class:`Ledger`        a user's own account of privacy
:class:`ExactChannel`  a channel in whole numbers, whose eps is computed in fractions
====================== ====================================================================

Between them go a question and an answer, plain data that fit into JSON. docs/deploy.md says what this does,
and first of all what it does not do: a deployment needs a review.
"""

from ldp_gym.core.errors import AnswerRefusedError, BudgetSpentError, QuestionRefusedError, WrongStoreError
from ldp_gym.deploy.client import Client
from ldp_gym.deploy.exact import ExactChannel, ExactTable
from ldp_gym.deploy.server import Server
from ldp_gym.privacy.ledger import Entry, Ledger

__all__ = [
    "AnswerRefusedError",
    "BudgetSpentError",
    "Client",
    "Entry",
    "ExactChannel",
    "ExactTable",
    "Ledger",
    "QuestionRefusedError",
    "Server",
    "WrongStoreError",
]
