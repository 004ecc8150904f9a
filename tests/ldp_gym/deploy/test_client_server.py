"""Questions, answers, budgets and stores: what is counted, what is refused, what survives."""

import json
import multiprocessing
import os
import signal
import sqlite3
import time
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from helpers import small_rules

import ldp_gym
from ldp_gym.deploy import AnswerRefusedError, BudgetSpentError, Client, Ledger, QuestionRefusedError, Server
from ldp_gym.deploy.exact import NEAREST
from ldp_gym.errors import DamagedStoreError, IncompatibleChannelError, WrongStoreError

FINITE = [name for name in ldp_gym.CHANNELS if name not in NEAREST]
RULES = {"hypotheses": "dirichlet", "num_hypotheses": 4, "num_labels": 6, "channel": "split", "horizon": 50}
ADAPTIVE = {**RULES, "channel": "adaptive-split"}


def through_json(data):
    return json.loads(json.dumps(data))


@pytest.fixture
def client(tmp_path):
    with Client(RULES, budget=100.0, ledger=tmp_path / "ledger.sqlite") as made:
        yield made


@pytest.fixture
def server(tmp_path):
    with Server(RULES, store=tmp_path / "server.sqlite") as made:
        yield made


# -- The same game ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", FINITE)
def test_every_finite_channel_goes_through_json_and_is_learned_from(channel, tmp_path):
    rules = small_rules(channel)
    server = Server(rules)
    client = Client(rules, budget=100.0, ledger=":memory:")
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((2, 3))
    for t in range(6):
        question = through_json(server.question(contexts[t % 2]))
        answer = through_json(client.answer(question, int(rng.integers(6))))
        assert server.receive(answer)
    assert server.round == 6
    assert server.weights.sum() == pytest.approx(1.0)
    assert server.predict(contexts[0]).sum() == pytest.approx(1.0)
    certificate = server.certificate
    assert certificate.holds
    assert certificate.epsilon <= certificate.claimed_epsilon == 1.0
    assert client.spent <= 6.0


def test_a_server_learns_what_the_learner_learns_from_the_same_messages():
    """On an adaptive channel: the question's posterior, the server's and the learner's are the same."""
    server, client = Server(ADAPTIVE), Client(ADAPTIVE, budget=100.0, ledger=":memory:")
    game = ldp_gym.LDPDistEnv(**ADAPTIVE).game
    learner = ldp_gym.learners.build_learner("bayes", game)
    learner.reset()
    public, table = game.public_posterior(), game.hypotheses(np.zeros(1))
    for t in range(20):
        question = server.question()
        assert question["posterior"] == public.weights.tolist()
        answer = client.answer(question, t % 6)
        message = np.array(answer["message"])
        server.receive(answer)
        public.advance(game.channel.log_likelihood(message, table, public.weights))
        learner.update(table, message)
    assert np.array_equal(server.weights, learner.weights)


def test_many_clients_teach_the_truth():
    """With 400 answers at eps = 4 the truth has nearly all of the weight; it fails once in 10^6 at most."""
    rules = {**RULES, "channel": "vote", "epsilon": 4.0, "horizon": 400}
    server, rng = Server(rules), np.random.default_rng(0)
    table = ldp_gym.LDPDistEnv(**rules).game.hypotheses(np.zeros(1))
    client = Client(rules, budget=1e6, ledger=":memory:")
    for _ in range(400):
        server.receive(client.answer(server.question(), int(rng.choice(6, p=table[2]))))
    assert server.weights[2] > 0.99


def test_classes_that_are_redrawn_come_with_the_question():
    rules = {**RULES, "redraw_hypotheses": True, "observe_candidates": True}
    server, client = Server(rules), Client(rules, budget=10.0, ledger=":memory:")
    table = np.random.default_rng(0).dirichlet(np.ones(6), size=4)
    question = through_json(server.question(table))
    assert np.shape(question["candidates"]) == (4, 6)
    assert server.receive(client.answer(question, 1))
    for wrong in (None, table[:3], table * 2.0, -table):
        with pytest.raises(ValueError, match=r"candidates|probab|sums"):
            server.question(wrong)


def test_learners_and_channels_that_do_not_fit_are_refused():
    with pytest.raises(IncompatibleChannelError, match="'one-bit'"):
        Client({}, budget=1.0, ledger=":memory:")
    with pytest.raises(IncompatibleChannelError, match="'one-bit'"):
        Server({"channel": "hybrid"})
    with pytest.raises(IncompatibleChannelError):
        Server(RULES, learner="wma")
    with pytest.raises(ValueError, match="did you mean 'bayes'"):
        Server(RULES, learner="bays")
    with pytest.raises(TypeError, match="has no weights"):
        Server({**RULES, "channel": "randomized-response"}, learner=WithoutWeights).weights  # noqa: B018
    with pytest.raises(ValueError, match="say for how many rounds"):
        Server({**RULES, "horizon": None, "truth": "replay"})
    with pytest.raises(TypeError, match="rules must be a dict"):
        Server([])


class WithoutWeights:
    def __init__(self, game):
        self.game = game

    def reset(self, batch_shape=()):
        pass

    def predict(self, candidates):
        return candidates[0]

    def update(self, candidates, message):
        pass


# -- Whatever is asked --------------------------------------------------------------------------------------


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
    server, client = Server(ADAPTIVE), Client(ADAPTIVE, budget=10.0, ledger=":memory:")
    with pytest.raises(QuestionRefusedError):
        client.answer({**server.question(), "posterior": posterior}, 0)
    assert client.spent == 0.0


@pytest.mark.parametrize("channel", FINITE)
def test_eps_holds_for_any_candidates_and_any_posterior(channel):
    """Tables of a hostile server: one-hot, tiny, equal and denormal probabilities, and certain posteriors."""
    rules = small_rules(channel, redraw_hypotheses=True, observe_candidates=True)
    if ldp_gym.CHANNELS[channel].most_tables is not None:
        rules = small_rules(channel)
    client = Client(rules, budget=1e3, ledger=":memory:")
    survey = Server(rules).question(np.eye(6)[:4] if "redraw_hypotheses" in rules else np.ones(3))
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


# -- The ledger ---------------------------------------------------------------------------------------------


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
    assert spent <= 2.0 < ldp_gym.calibration.accounting.composed_epsilon(largest, count + 1, 1e-6)


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
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE entries (epsilon REAL)")
    connection.close()
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
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute(statement)
        connection.close()
        with pytest.raises(DamagedStoreError, match="does not add up"):
            Client(RULES, budget=1.0, ledger=copy)
    with pytest.raises(TypeError, match="path"):
        Client(RULES, budget=1.0, ledger=None)
    for budget in (0.0, -1.0, float("nan"), float("inf"), "4"):
        with pytest.raises((TypeError, ValueError), match="budget"):
            Client(RULES, budget=budget, ledger=":memory:")


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
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        sent.write_text("")
        process = context.Process(target=answer_for_ever, args=(rules, ledger, questions, sent))
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
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=answer_all, args=(rules, ledger, questions[part::2])) for part in range(2)
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


# -- The server ---------------------------------------------------------------------------------------------


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

    adaptive, user = Server(ADAPTIVE), Client(ADAPTIVE, budget=10.0, ledger=":memory:")
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
    server, client = Server(rules), Client(rules, budget=10.0, ledger=":memory:")
    answer = client.answer(server.question(), 0)
    for message in ([1, 1, 1, 1, 1, 1], [0] * 6, [0.5] * 6, [2, 0, 0, 0, 0, 0]):
        with pytest.raises(AnswerRefusedError):
            server.receive({**answer, "message": message})
    assert server.receive(answer)


def test_the_game_is_over_after_its_last_round():
    rules = {**RULES, "horizon": 3}
    server, client = Server(rules), Client(rules, budget=10.0, ledger=":memory:")
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
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE answers SET message = '[1, 2'")
    connection.close()
    with pytest.raises(DamagedStoreError, match="damaged at answer 0"):
        Server(RULES, store=store)


def test_rules_are_told_apart_by_all_that_matters_and_nothing_else():
    def fingerprint(**changes):
        return Server({**RULES, **changes}).question(np.zeros(1))["game"]

    same = fingerprint()
    assert same == fingerprint(truth=2, reveal=True, max_loss=3.0)
    changes = [
        {"epsilon": 0.5},
        {"horizon": 51},
        {"channel": "scheffe"},
        {"class_seed": 1},
        {"channel": "adaptive-split"},
        {"channel": "adaptive-split", "channel_kwargs": {"posterior_share": 0.1}},
        {"channel": "one-bit"},
        {"channel": "one-bit", "channel_kwargs": {"clipping": "paper"}},
    ]
    found = [fingerprint(**change) for change in changes]
    assert len({same, *found}) == len(changes) + 1


def test_a_certificate_is_about_a_question():
    with pytest.raises(QuestionRefusedError, match="ask one first"):
        Server(RULES).certificate  # noqa: B018


def test_a_ledger_without_a_name_would_be_forgotten_and_is_refused():
    with pytest.raises(WrongStoreError, match='needs a path, got ""'):
        Client(RULES, budget=1.0, ledger="")


def test_what_is_closed_says_so(client, server):
    question = server.question()
    client.close()
    server.close()
    with pytest.raises(WrongStoreError, match="is closed: open it again"):
        client.answer(question, 0)
    with pytest.raises(WrongStoreError, match="is closed: open it again"):
        server.question()
