"""The public posterior: Bayes' rule, tempered, shared or in batches; and rounds that are worked out ahead."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import CHANNELS, make_channel, make_episodes, record, small_rules, total_kl

import ldp_gym
from ldp_gym.engine.posterior import PublicPosterior, send_adaptively

ADAPTIVE = [name for name in CHANNELS if ldp_gym.CHANNELS[name].adaptive]
BATCHES = (1, 3, 7)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([[-1000.0, -1000.001]] * 10_000, [0.0, -10.0]),  # no number of messages is too many
        (
            [[-np.inf, -1.0, -2.0], [0.0, -1.0, -1.0]],
            [-np.inf, 0.0, -1.0],
        ),  # what is ruled out stays out
        (
            [[-np.inf, -1.0], [-1.0, -np.inf], [-np.inf, -np.inf]],
            [0.0, 0.0],
        ),  # by all: it tells nothing
    ],
)
def test_log_weights_after_many_messages_and_after_impossible_ones(told, expected):
    posterior = PublicPosterior(len(expected))
    for log_likelihoods in told:
        posterior.advance(np.array(log_likelihoods))
    weights = np.exp(expected)
    np.testing.assert_allclose(posterior.weights, weights / weights.sum(), rtol=1e-3)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("rate", "share"), [(1.0, 0.0), (0.3, 0.0), (1.0, 0.1), (0.5, 0.02)])
def test_weights_are_tempered_and_shared_and_advance_after_every_batch(rate, share, batch):
    """In linear space, held back; along a tape too, in blocks of any length."""
    likelihoods = np.random.default_rng(0).random((3, 20, 4))
    stepped, along = (
        PublicPosterior(4, (3,), rate=rate, share=share, batch=batch) for _ in range(2)
    )
    blocks = np.split(np.log(likelihoods), [2, 3, 11], axis=1)
    path, weights = (
        np.concatenate([along.along(block) for block in blocks], axis=1),
        np.full((3, 4), 0.25),
    )
    for t in range(20):
        if t % batch == 0:
            expected = weights
        np.testing.assert_allclose(stepped.weights, expected, rtol=1e-12)
        np.testing.assert_allclose(path[:, t], expected, rtol=1e-12)
        stepped.advance(np.log(likelihoods[:, t]))
        weights = weights * likelihoods[:, t] ** rate
        weights = (1 - share) * weights / weights.sum(axis=-1, keepdims=True) + share / 4
    np.testing.assert_allclose(along.weights, stepped.weights, rtol=1e-12)


def in_turn(channel, posterior, labels, candidates, uniforms):
    """Round by round, as the channel's contract has it."""
    messages, log_likelihoods = [], []
    for t in range(labels.shape[1]):
        now = slice(t, t + 1)
        here = candidates if candidates.ndim == 2 else candidates[:, now]
        public = posterior.weights[:, None]
        messages.append(channel.encode(labels[:, now], here, uniforms[:, now], public))
        log_likelihoods.append(channel.log_likelihood(messages[-1], here, public))
        posterior.advance(log_likelihoods[-1][:, 0])
    return np.concatenate(messages, axis=1), np.concatenate(log_likelihoods, axis=1)


@pytest.mark.parametrize("share", [0.0, 0.05])
@pytest.mark.parametrize("contexts", [False, True])
@pytest.mark.parametrize("games", [1, 3])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_guesses_change_nothing(name, games, contexts, share):
    rng, rounds = np.random.default_rng(4), 70
    channel = make_channel(name, 9, 7, 100, posterior_share=share)
    shape = (games, rounds) if contexts else ()
    candidates = rng.dirichlet(np.full(7, 0.3), (*shape, 9))
    labels = rng.integers(7, size=(games, rounds))
    uniforms = rng.random((games, rounds, channel.num_uniforms))
    results = []
    for play in (send_adaptively, in_turn):
        posterior = PublicPosterior(9, (games,), rate=channel.posterior_rate, share=share)
        results.append((*play(channel, posterior, labels, candidates, uniforms), posterior.weights))
    for ahead, turn in zip(*results, strict=True):
        np.testing.assert_array_equal(ahead, turn)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(
    "some", [np.array([False, True, False]), np.array([1])], ids=["mask", "index"]
)
def test_games_that_start_over_or_go_on_alone_leave_the_others_as_they_were(some, batch):
    log_likelihoods = np.log(np.random.default_rng(0).random((8, 3, 4)))
    posterior, undisturbed, fresh = (PublicPosterior(4, (3,), batch=batch) for _ in range(3))
    for t in range(6):
        if t == 2:
            posterior.restart(some)
            assert (posterior.weights[1] == 0.25).all()
        posterior.advance(log_likelihoods[t])
        undisturbed.advance(log_likelihoods[t])
        if t >= 2:
            fresh.advance(log_likelihoods[t])
    for game, other in enumerate((undisturbed, fresh, undisturbed)):
        np.testing.assert_array_equal(posterior.weights[game], other.weights[game])
    posterior.keep(np.array([2, 0]))
    for t in range(6, 8):
        posterior.advance(log_likelihoods[t, [2, 0]])
        undisturbed.advance(log_likelihoods[t])
    np.testing.assert_array_equal(posterior.weights, undisturbed.weights[[2, 0]])


INTERACTIVE = [("adaptive-split", "iid"), ("adaptive-groups", "iid"), ("split", "adversary")]


def messages_of(rules, blocks=(40,)):
    episodes = make_episodes(rules, 3)
    return np.concatenate([episodes.play(rounds).messages for rounds in blocks], axis=1)


SIZED = [
    {
        "channel": name,
        "hypotheses": rows,
        "num_hypotheses": size,
        "num_labels": labels,
        "horizon": 40,
    }
    for name in ADAPTIVE
    for rows in ("dirichlet", "softmax-linear")
    for size, labels in ((2, 2), (5, 3), (33, 20))
]
SHARED = [
    {**rules, "channel_kwargs": {"posterior_share": 0.2}}
    for rules in SIZED
    if rules["num_labels"] == 3
]


@pytest.mark.parametrize(
    "rules",
    SIZED + SHARED + [small_rules(*pair, batch=batch) for pair in INTERACTIVE for batch in BATCHES],
    ids=str,
)
def test_single_vector_and_tape_send_the_same_messages(rules):
    """To the last bit: alone, three together, and 40 or 8 on a tape, in blocks of any length."""
    tape = make_episodes(rules, 8 if rules["num_hypotheses"] > 30 else 40).play(40).messages
    np.testing.assert_array_equal(messages_of(rules, (1, 12, 2, 25)), tape[:3])
    if rules.get("channel_kwargs"):
        assert (messages_of(rules | {"channel_kwargs": {}}) != tape[:3]).any()
    envs, env = gym.make_vec("LDPDist-v0", num_envs=3, **rules), gym.make("LDPDist-v0", **rules)
    envs.reset(seed=0)
    env.reset(seed=2)
    uniform = np.full((3, rules["num_labels"]), 1 / rules["num_labels"])
    for t in range(40):
        np.testing.assert_array_equal(envs.step(uniform)[0]["message"], tape[:3, t])
        np.testing.assert_array_equal(env.step(uniform[0])[0]["message"], tape[2, t])


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", ["bayes", "soft-bayes", "centred-exp3"])
def test_learners_read_the_messages_of_a_batch_with_its_posterior(name, batch):
    """``evaluate`` plays a tape with its likelihoods; stepped, a learner works them out by itself."""
    rules = small_rules("adaptive-split", batch=batch)
    evaluation = ldp_gym.evaluate(name, rules, episodes=3)
    total = total_kl(name, gym.make_vec("LDPDist-v0", num_envs=3, **rules), seed=0)
    np.testing.assert_allclose(evaluation.kl[:, -1], total, rtol=1e-9)


@pytest.mark.parametrize(("channel", "nature"), INTERACTIVE)
def test_a_batch_of_all_users_never_advances(channel, nature):
    never = messages_of(small_rules(channel, nature, batch=40))
    np.testing.assert_array_equal(messages_of(small_rules(channel, nature, batch=10**6)), never)
    assert (messages_of(small_rules(channel, nature)) != never).any()
    if nature == "iid":
        game, tape = record(small_rules(channel, batch=40), 40, episodes=3)
        told = game.channel.log_likelihood(
            tape.messages, tape.candidates, np.full((3, 40, 4), 0.25)
        )
        np.testing.assert_allclose(tape.log_likelihoods, told, rtol=1e-12)
    rules = small_rules("split", "drift")  # a channel that does not adapt knows no batches
    np.testing.assert_array_equal(messages_of(rules | {"batch": 7}), messages_of(rules))
