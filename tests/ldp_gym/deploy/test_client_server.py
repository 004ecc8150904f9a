"""Client and server play the game of the simulator, and know each other by its rules."""

import numpy as np
import pytest
from deployment import ADAPTIVE, RULES, make_pair, through_json
from helpers import FINITE, small_rules

import ldp_gym
from ldp_gym.core.errors import IncompatibleChannelError, WrongStoreError
from ldp_gym.deploy import Client, Server


@pytest.mark.parametrize("channel", FINITE)
def test_every_finite_channel_goes_through_json_and_is_learned_from(channel):
    server, client = make_pair(small_rules(channel))
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
    server, client = make_pair(ADAPTIVE)
    game = ldp_gym.LDPDistEnv(**ADAPTIVE).game
    learner = ldp_gym.engine.learners.build_learner("bayes", game)
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
    server, client = make_pair(rules, budget=1e6)
    table, rng = ldp_gym.LDPDistEnv(**rules).game.hypotheses(np.zeros(1)), np.random.default_rng(0)
    for _ in range(400):
        server.receive(client.answer(server.question(), int(rng.choice(6, p=table[2]))))
    assert server.weights[2] > 0.99


def test_classes_that_are_redrawn_come_with_the_question():
    rules = {**RULES, "redraw_hypotheses": True, "observe_candidates": True}
    server, client = make_pair(rules)
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


def test_what_is_closed_says_so(client, server):
    question = server.question()
    client.close()
    server.close()
    with pytest.raises(WrongStoreError, match="is closed: open it again"):
        client.answer(question, 0)
    with pytest.raises(WrongStoreError, match="is closed: open it again"):
        server.question()
