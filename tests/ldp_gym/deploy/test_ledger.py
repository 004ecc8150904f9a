"""What a client spends: budgets, ledgers that are refused, and what survives a kill."""

import json
import multiprocessing
import os
import signal
import time
from fractions import Fraction

import numpy as np
import pytest
from deployment import RULES, change_file

import ldp_gym
from ldp_gym.core.errors import DamagedStoreError, WrongStoreError
from ldp_gym.deploy import BudgetSpentError, Client, Ledger, Server

FORK = multiprocessing.get_context("fork")


def test_a_budget_of_four_pays_for_four_answers_of_one_each(tmp_path):
    rules = {**RULES, "hypotheses": np.eye(4, 6).tolist(), "num_hypotheses": None, "num_labels": None}
    for epsilon, budget, count in ((1.0, 4.0, 4), (0.1, 4.0, 40), (0.3, 1.0, 3)):
        mine = {**rules, "channel": "randomized-response", "epsilon": epsilon}
        path = tmp_path / f"{epsilon}.sqlite"
        server, client = Server(mine), Client(mine, budget=budget, ledger=path)
        for _ in range(count):
            client.answer(server.question(), 0)
        with pytest.raises(BudgetSpentError, match=r"exceeds the budget of .* is left") as error:
            client.answer(server.question(), 0)
        assert error.value.left == client.left == pytest.approx(budget - count * epsilon, abs=1e-9)
        assert len(client.ledger.entries()) == count
        client.close()
        # Another client of the same user goes on from there.
        with Client(mine, budget=budget, ledger=path) as again, pytest.raises(BudgetSpentError):
            again.answer(server.question(), 0)


def test_with_a_delta_many_answers_spend_less_than_their_sum():
    pytest.importorskip("dp_accounting")
    rules = {**RULES, "channel": "randomized-response", "epsilon": 0.1, "horizon": 1000}
    server = Server(rules)
    client = Client(rules, budget=2.0, ledger=":memory:", delta=1e-6)
    questions = [server.question() for _ in range(1000)]
    with pytest.raises(BudgetSpentError, match="at delta = 1e-06"):
        [client.answer(question, 0) for question in questions]
    count = len(client.ledger.entries())
    assert count > 20
    spent, largest = client.spent, max(entry.epsilon for entry in client.ledger.entries())
    assert spent <= 2.0 < ldp_gym.channels.accounting.composed_epsilon(largest, count + 1, 1e-6)


def test_a_ledger_adds_up_to_the_last_bit(client, server):
    for _ in range(30):
        client.answer(server.question(), 0)
    total = sum(Fraction(entry.epsilon) for entry in client.ledger.entries())
    assert total <= Fraction(client.spent)
    assert client.spent - float(total) <= 1e-14
    assert client.left + client.spent == pytest.approx(100.0, rel=1e-14)


def test_ledgers_of_others_and_damaged_ones_are_left_as_they_are(tmp_path, client, server):
    client.answer(server.question(), 0)
    path = tmp_path / "ledger.sqlite"
    client.close()
    server.close()
    Ledger(path, owner="ann").close()
    with pytest.raises(WrongStoreError, match="belongs to 'ann', not to 'bob'"):
        Client(RULES, budget=1.0, ledger=path, owner="bob")

    other = tmp_path / "other.sqlite"
    change_file(other, "CREATE TABLE entries (epsilon REAL)")
    text = tmp_path / "text.sqlite"
    text.write_text("not a database at all, and longer than a header of SQLite's is: " * 20)
    half = tmp_path / "half.sqlite"
    half.write_bytes(path.read_bytes()[:-5000] + b"\0" * 5000)
    for file, error in (
        (other, WrongStoreError),
        (tmp_path / "server.sqlite", WrongStoreError),
        (text, DamagedStoreError),
        (half, DamagedStoreError),
        (tmp_path, DamagedStoreError),
        (tmp_path / "no" / "such" / "folder.sqlite", DamagedStoreError),
    ):
        before = file.read_bytes() if file.is_file() else None
        with pytest.raises(error):
            Client(RULES, budget=1.0, ledger=file)
        assert (file.read_bytes() if file.is_file() else None) == before

    for statement in (
        "UPDATE sums SET spent = '0'",
        "UPDATE sums SET spent = 'x'",
        "DELETE FROM sums",
        "DELETE FROM entries",
    ):
        copy = tmp_path / "copy.sqlite"
        copy.write_bytes(path.read_bytes())
        change_file(copy, statement)
        with pytest.raises(DamagedStoreError, match="does not add up"):
            Client(RULES, budget=1.0, ledger=copy)
    with pytest.raises(TypeError, match="path"):
        Client(RULES, budget=1.0, ledger=None)
    for budget in (0.0, -1.0, float("nan"), float("inf"), "4"):
        with pytest.raises((TypeError, ValueError), match="budget"):
            Client(RULES, budget=budget, ledger=":memory:")


def test_a_ledger_without_a_name_would_be_forgotten_and_is_refused():
    with pytest.raises(WrongStoreError, match='needs a path, got ""'):
        Client(RULES, budget=1.0, ledger="")


def answer_for_ever(rules, ledger, questions, sent):
    """Answers, one after the other, each written where the test sees it, until the process is killed."""
    client = Client(rules, budget=1e6, ledger=ledger)
    with sent.open("a") as file:
        for line in questions.read_text().splitlines():
            file.write(json.dumps(client.answer(json.loads(line), 0)) + "\n")
            file.flush()


def test_nothing_is_answered_and_not_booked_when_the_process_is_killed(tmp_path):
    rules = {**RULES, "horizon": 10_000}
    server = Server(rules)
    questions, sent, ledger = tmp_path / "questions", tmp_path / "sent", tmp_path / "ledger.sqlite"
    questions.write_text("".join(json.dumps(server.question()) + "\n" for _ in range(2000)))
    for _ in range(3):
        sent.write_text("")
        process = FORK.Process(target=answer_for_ever, args=(rules, ledger, questions, sent))
        process.start()
        while sent.stat().st_size < 2000 and process.is_alive():
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        booked = [entry.answer for entry in Ledger(ledger).entries()]
        answered = sent.read_text().splitlines(keepends=True)
        answered = [line.strip() for line in answered if line.endswith("\n")]
        assert answered
        assert set(answered) <= set(booked)
    # What was booked before is answered as before, and spends nothing again.
    client = Client(rules, budget=1e6, ledger=ledger)
    spent = client.spent
    first = client.answer(json.loads(questions.read_text().splitlines()[0]), 3)
    assert json.dumps(first) == answered[0]
    assert client.spent == spent


def test_two_processes_share_a_ledger(tmp_path):
    rules = {**RULES, "channel": "randomized-response"}
    ledger, server = tmp_path / "ledger.sqlite", Server(rules)
    questions = [server.question() for _ in range(20)]
    processes = [
        FORK.Process(target=answer_all, args=(rules, ledger, questions[part::2])) for part in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(Ledger(ledger).entries()) == 10  # of both together, as the budget has it


def answer_all(rules, ledger, questions):
    with Client(rules, budget=10.0, ledger=ledger) as client:
        for question in questions:
            try:
                client.answer(question, 0)
            except BudgetSpentError:
                return
