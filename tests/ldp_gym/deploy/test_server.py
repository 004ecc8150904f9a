"""A server: which answers it counts, and that it loses none of them."""

import numpy as np
import pytest
from deployment import ADAPTIVE, RULES, change_file, make_pair, through_json

from ldp_gym.core.errors import DamagedStoreError, WrongStoreError
from ldp_gym.deploy import AnswerRefusedError, Client, QuestionRefusedError, Server


@pytest.mark.parametrize("rules", [RULES, ADAPTIVE])
@pytest.mark.parametrize("learner", ["bayes", "fixed-share", "soft-bayes", "mle"])
def test_a_restarted_server_has_the_same_weights_bit_for_bit(rules, learner, tmp_path):
    store = tmp_path / "server.sqlite"
    client = Client(rules, budget=100.0, ledger=":memory:")
    weights = prediction = None
    for start in range(4):
        with Server(rules, learner, store=store) as server:
            assert server.round == 5 * start
            if weights is not None:
                assert np.array_equal(server.weights, weights)
                assert np.array_equal(server.predict(), prediction)
            for t in range(5):
                server.receive(client.answer(server.question(), t))
            weights, prediction = server.weights, server.predict()


def test_a_duplicate_counts_once_and_another_answer_not_at_all(client, server):
    answer = client.answer(server.question(), 0)
    assert server.receive(answer)
    weights = server.weights
    assert not server.receive(through_json(answer))
    with pytest.raises(AnswerRefusedError, match="question 0 has another answer"):
        server.receive({**answer, "message": [-value for value in answer["message"]]})
    assert np.array_equal(server.weights, weights)
    assert server.round == 1


def test_an_answer_to_an_old_question_counts_unless_the_channel_is_adaptive(client, server):
    old = client.answer(server.question(), 0)
    server.receive(client.answer(server.question(), 0))
    assert server.receive(old)

    adaptive, user = make_pair(ADAPTIVE)
    old = user.answer(adaptive.question(), 0)
    adaptive.receive(user.answer(adaptive.question(), 0))
    with pytest.raises(AnswerRefusedError, match="the posterior has moved on"):
        adaptive.receive(old)
    assert adaptive.round == 1


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"game": "another"},
        {"survey": "another"},
        {"number": 1},
        {"number": -1},
        {"round": 1},
        {"message": None},
        {"message": "yes"},
        {"message": []},
        {"message": [1.0, 1.0, 1.0, 1.0]},
        {"message": [1.0, -1.0, 1.0]},
        {"message": [1.0, -1.0, 0.0, 0.0]},
        {"message": [1.0, -1.0, -1.0, 0.5]},
        {"message": [1.0, -1.0, -1.0, float("nan")]},
        {"message": [1e400, -1.0, -1.0, 1.0]},
        {"message": [10**400, -1.0, -1.0, 1.0]},
        {"label": 3},
    ],
)
def test_an_answer_that_is_none_is_refused_and_nothing_is_learned(change, client, server):
    answer = client.answer(server.question(), 0)
    with pytest.raises(AnswerRefusedError, match="not counted"):
        server.receive({**answer, **change})
    for nothing in (None, [], "answer", 3, {}):
        with pytest.raises(AnswerRefusedError):
            server.receive(nothing)
    assert server.round == 0
    assert server.receive(answer)


def test_a_message_must_be_one_that_the_channel_sends():
    rules = {**RULES, "channel": "subset-selection"}
    server, client = make_pair(rules)
    answer = client.answer(server.question(), 0)
    for message in ([1, 1, 1, 1, 1, 1], [0] * 6, [0.5] * 6, [2, 0, 0, 0, 0, 0]):
        with pytest.raises(AnswerRefusedError):
            server.receive({**answer, "message": message})
    assert server.receive(answer)


def test_the_game_is_over_after_its_last_round():
    rules = {**RULES, "horizon": 3}
    server, client = make_pair(rules)
    spare = client.answer(server.question(), 0)
    for _ in range(3):
        server.receive(client.answer(server.question(), 0))
    with pytest.raises(AnswerRefusedError, match="all 3 rounds are over"):
        server.receive(spare)
    with pytest.raises(ValueError, match="all 3 rounds are over"):
        server.question()


def test_stores_of_others_damaged_ones_and_those_in_use_are_refused(tmp_path, client, server):
    server.receive(client.answer(server.question(), 0))
    store = tmp_path / "server.sqlite"
    with pytest.raises(WrongStoreError, match="in use"):
        Server(RULES, store=store)
    server.close()
    client.close()
    with pytest.raises(WrongStoreError, match="another game"):
        Server({**RULES, "epsilon": 2.0}, store=store)
    with pytest.raises(WrongStoreError, match="another kind"):
        Server(RULES, store=tmp_path / "ledger.sqlite")
    change_file(store, "UPDATE answers SET message = '[1, 2'")
    with pytest.raises(DamagedStoreError, match="damaged at answer 0"):
        Server(RULES, store=store)


def test_a_certificate_is_about_a_question():
    with pytest.raises(QuestionRefusedError, match="ask one first"):
        Server(RULES).certificate  # noqa: B018
