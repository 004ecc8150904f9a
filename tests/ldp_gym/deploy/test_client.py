"""A client, whatever it is asked: what it answers, what it refuses, and that nothing is spent then."""

import numpy as np
import pytest
from deployment import ADAPTIVE, RULES, make_pair, through_json
from helpers import FINITE, small_rules

import ldp_gym
from ldp_gym.deploy import QuestionRefusedError, Server


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": None},
        {"game": "another"},
        {"game": None},
        {"survey": ""},
        {"survey": 7},
        {"survey": "x" * 100},
        {"number": -1},
        {"number": 1.5},
        {"number": True},
        {"number": 2**60},
        {"round": -1},
        {"round": 50},
        {"round": "0"},
        {"context": []},
        {"context": [1.0, 2.0]},
        {"context": [float("nan")]},
        {"context": [float("inf")]},
        {"context": [10**400]},
        {"context": "0"},
        {"context": None, "posterior": [0.25] * 4},
        {"candidates": [[0.5, 0.5]]},
        {"label": 3},
    ],
)
def test_a_question_that_is_none_is_refused_and_nothing_is_booked(change, client, server):
    question = {**server.question(), **change}
    with pytest.raises(QuestionRefusedError, match="no answer to this question"):
        client.answer(question, 0)
    for nothing in (None, [], "question", 3, {}):
        with pytest.raises(QuestionRefusedError):
            client.answer(nothing, 0)
    assert client.spent == 0.0
    assert client.ledger.entries() == []


@pytest.mark.parametrize(
    "posterior",
    [
        None,
        [],
        [0.25] * 3,
        [0.5] * 4,
        [1.0, 0.0, 0.0, float("nan")],
        [-0.5, 0.5, 0.5, 0.5],
        [["a"]],
        [[0.25] * 4],
    ],
)
def test_a_posterior_that_is_none_is_refused(posterior):
    server, client = make_pair(ADAPTIVE)
    with pytest.raises(QuestionRefusedError):
        client.answer({**server.question(), "posterior": posterior}, 0)
    assert client.spent == 0.0


@pytest.mark.parametrize("channel", FINITE)
def test_eps_holds_for_any_candidates_and_any_posterior(channel):
    """Tables of a hostile server: one-hot, tiny, equal and denormal probabilities, and certain posteriors."""
    rules = small_rules(channel, redraw_hypotheses=True, observe_candidates=True)
    if ldp_gym.CHANNELS[channel].most_tables is not None:
        rules = small_rules(channel)
    server, client = make_pair(rules)
    survey = server.question(np.eye(6)[:4] if "redraw_hypotheses" in rules else np.ones(3))
    tiny = np.full((4, 6), 1e-300)
    tiny[:, 0] = 1.0
    tables = [np.eye(6)[:4], np.full((4, 6), 1 / 6), tiny, np.eye(6)[[0, 0, 0, 0]], np.eye(6)[[0, 0, 0, 5]]]
    tiny[2, 1] = 5e-324
    posteriors = [[1.0, 0.0, 0.0, 0.0], [0.25] * 4, [1.0, 1e-300, 0.0, 5e-324], [0.5, 0.5, 0.0, 0.0]]
    number = 0
    for table in tables:
        for posterior in posteriors:
            question = {**survey, "number": number}
            if "candidates" in question:
                question["candidates"] = table.tolist()
            if "posterior" in question:
                question["posterior"] = posterior
            client.answer(question, number % 6)
            number += 1
    assert len(client.ledger.entries()) == number
    assert all(entry.epsilon <= 1.0 for entry in client.ledger.entries())


@pytest.mark.parametrize("label", [-1, 6, 1.0, "1", None, True, np.array([1]), float("nan")])
def test_a_label_that_is_none_is_refused_and_nothing_is_booked(label, client, server):
    with pytest.raises((TypeError, ValueError), match="label"):
        client.answer(server.question(), label)
    assert client.spent == 0.0


def test_what_a_channel_cannot_be_made_for_is_refused(monkeypatch, client, server):
    """A hostile server may find what a channel has no answer to; that is no answer either."""

    def fail(*_):
        raise FloatingPointError("no such candidates")

    monkeypatch.setattr(ldp_gym.channels.Split, "messages_given_coins", fail)
    with pytest.raises(QuestionRefusedError, match="no such candidates"):
        client.answer(server.question(), 0)
    assert client.spent == 0.0


def test_a_client_does_not_go_back_to_an_earlier_round(client, server):
    old, other = server.question(), server.question()
    server.receive(client.answer(server.question(), 0))
    answer = client.answer(server.question(), 0)
    assert answer["round"] == 1
    for question in (old, other):
        with pytest.raises(QuestionRefusedError, match="A server never goes back"):
            client.answer(question, 0)
    # Another survey of the same rules starts with its own first round.
    client.answer(Server(RULES).question(), 0)


def test_the_same_question_has_the_same_answer_and_spends_once(client, server):
    question = server.question()
    answers = [client.answer(through_json(question), label) for label in (0, 1, 2, 3, 4, 5) * 4]
    assert all(answer == answers[0] for answer in answers)
    assert len(client.ledger.entries()) == 1
