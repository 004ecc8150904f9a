"""The learners against a few independent lines, and their contract."""

import math

import gymnasium as gym
import numpy as np
import pytest
from helpers import (
    ALPHA,
    CHANNELS,
    LOSSLESS,
    clipped_by_hand,
    record,
    small_rules,
    total_kl,
    totals,
)
from scipy import stats
from scipy.special import softmax

import ldp_agents
import ldp_gym
from ldp_gym import LEARNERS, Game
from ldp_gym.engine.learners import plays_blocks
from ldp_gym.engine.rules import Rules
from ldp_gym.testing import check_learner
from ldp_gym.wrappers import MixtureAction, VectorMixtureAction


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_keeps_the_contract(name, channel):
    for more in ({"horizon": 24}, {"hypotheses": "dirichlet", "horizon": 12}):
        game = small_rules(channel, **more)
        refused = {
            **dict.fromkeys(("wma", "exp3"), channel in LOSSLESS),
            "amortized": channel == "identity",
            "unbiased": ldp_gym.CHANNELS[channel].unbiased_losses
            is ldp_gym.Channel.unbiased_losses,
        }
        if refused.get(name):
            with pytest.raises(ldp_agents.IncompatibleChannelError, match="reads? every channel"):
                ldp_agents.make(name, Rules(**game).scenario().game)
        else:
            check_learner(lambda g: ldp_agents.make(name, g), **game)


@pytest.mark.parametrize("clipping", ["continuous", "paper"])
@pytest.mark.parametrize(
    ("name", "options", "channel", "rate"),
    [
        ("exp3", {}, "laplace-single", lambda k, t: math.sqrt(2 * k * math.log(k) / t)),
        ("wma", {}, "laplace-vector", lambda k, t: math.sqrt(2 * math.log(k) / t)),
        ("wma", {"rate": "box"}, "laplace-vector", lambda k, t: math.sqrt(2 * k * math.log(k) / t)),
    ],
)
def test_the_literal_learners_are_their_algorithm(name, options, channel, rate, clipping):
    """Algorithms 1 and 2 line by line, with weights in linear space, on a recorded tape; to 1e-12."""
    game, tape = record(small_rules(channel, channel_kwargs={"clipping": clipping}), 40)
    learner = ldp_agents.make(name, game, **options)
    learner.reset((1,))
    played = learner.play(tape.candidates, tape.messages)[0]
    w = np.ones(4)
    for t in range(40):
        f = tape.candidates[0, t]
        pbar, lengths = clipped_by_hand(f, 40, clipping)
        np.testing.assert_allclose(played[t], (w / w.sum()) @ pbar * lengths, rtol=1e-12)
        w = w * np.exp(-rate(4, 40) * tape.messages[0, t])
    np.testing.assert_allclose(learner.weights[0], w / w.sum(), rtol=1e-12)


PRIOR = (0.1, 0.2, 0.3, 0.4)


@pytest.mark.parametrize(("rate", "prior"), [(1.0, None), (1.0, PRIOR), (0.25, PRIOR)])
@pytest.mark.parametrize("channel", CHANNELS)
def test_bayes_is_the_explicit_posterior(channel, rate, prior):
    """Prior times the tempered product of sums over labels, one round at a time."""
    game, tape = record(small_rules(channel, epsilon=3.0), 40)
    learner = ldp_agents.Bayes(game, rate=rate, prior=prior)
    learner.reset((1,))
    played = learner.play(tape.candidates, tape.messages)[0]
    told = np.zeros(4)
    for t in range(40):
        f = tape.candidates[0, t]
        weights = softmax(np.log(prior or np.ones(4)) + rate * told)
        np.testing.assert_allclose(played[t], weights @ f, rtol=1e-9)
        public = softmax(told) if game.channel.adaptive else None
        density = np.exp(game.channel.log_density(tape.messages[0, t], f, public))
        told += np.log([sum(f[k, y] * density[y] for y in range(6)) for k in range(4)])


class Doubt:
    """A mixin that overrides a step."""

    def predict(self, candidates):
        return 0.5 * super().predict(candidates) + 0.5 / candidates.shape[-1]


class Sleeper(ldp_agents.EXP3):
    """Learns from every second message, by whatever weights it has."""

    def reset(self, batch_shape=()):
        super().reset(batch_shape)
        self.awake = False

    def update(self, candidates, message):
        self.awake = not self.awake
        if self.awake:
            super().update(candidates, message)


class Cautious(ldp_agents.Bayes):
    def losses(self, messages, candidates):
        return 0.3 * super().losses(messages, candidates)


class Sharp(ldp_agents.Bayes):
    def _weigh(self, totals, axis):
        return super()._weigh(2.0 * totals, axis)


class Shifted(ldp_agents.Bayes):
    @property
    def weights(self):
        return np.roll(super().weights, 1, axis=-1)


DOUBTERS = [
    type("Doubter", (Doubt, base), {}) for base in (ldp_agents.Bayes, ldp_agents.FixedShare)
]


@pytest.mark.parametrize("channel", ["laplace-single", "adaptive-split"])
@pytest.mark.parametrize("learner", [*DOUBTERS, Sleeper, Cautious, Sharp, Shifted])
def test_a_subclass_is_evaluated_as_it_predicts_and_learns(learner, channel):
    if learner is Sleeper and channel in LOSSLESS:
        return
    game = {"hypotheses": "dirichlet", "horizon": 60, "channel": channel}
    assert plays_blocks(learner(Rules(**game).scenario().game)) == (learner in (Cautious, Sharp))
    evaluated = ldp_gym.evaluate(learner, game, episodes=1, seed=5)
    total = total_kl(learner, gym.make("LDPDist-v0", **game), seed=5)
    assert evaluated.kl[0, -1] == pytest.approx(total, rel=1e-9)
    assert total != pytest.approx(
        ldp_gym.evaluate(learner.__bases__[-1], game, episodes=1, seed=5).kl[0, -1]
    )
    check_learner(learner, channel=channel)


def test_weights_survive_ten_million_rounds():
    """Losses of 10^7 rounds at once, then one more: no overflow, no NaN, and the better one leads."""
    game = Game(
        None, Rules(num_hypotheses=2, num_labels=2, horizon=10**7).scenario().channel, 10**7
    )
    table = np.array([[0.5, 0.5], [0.9, 0.1]])
    learner = ldp_agents.EXP3(game)
    learner.reset((1,))
    messages = np.broadcast_to([0.5, 0.51], (1, 10**5, 2))
    for _ in range(100):
        predictions = learner.play(table, messages)
    assert np.isfinite(predictions).all()
    expected = math.exp(-learner.rate * 10**7 * 0.01)
    assert math.isclose(learner.weights[0, 1], expected / (1 + expected), rel_tol=1e-6)
    learner.update(table, np.array([[1e9, 0.0]]))
    assert learner.weights[0].tolist() == [0.0, 1.0]
    assert np.isfinite(learner.predict(table)).all()


@pytest.mark.parametrize(
    ("name", "channel"),
    [("exp3", "laplace-single"), ("centred-exp3", "laplace-single"), ("mle", "randomized-response")]
    + [("bayes", channel) for channel in CHANNELS],
)
def test_acting_starts_over_by_itself(name, channel):
    """Games that begin at different times, and nobody calls reset: as a new learner for each episode."""
    game = small_rules(channel, horizon=6)
    envs = gym.make_vec("LDPDist-v0", num_envs=3, autoreset_mode="Disabled", **game)
    together = ldp_agents.make(name, envs.unwrapped.game)
    observations, _ = envs.reset(seed=0)
    alone = [ldp_agents.make(name, envs.unwrapped.game) for _ in range(3)]
    for t in range(20):
        predictions = together.act(observations)
        for i in range(3):
            one = alone[i].act({key: value[i] for key, value in observations.items()})
            np.testing.assert_allclose(predictions[i], one, rtol=1e-9)
        observations, _, over, _, _ = envs.step(predictions)
        anew = over | (np.arange(3) == t % 7)  # game 0, 1 or 2 before its time, too
        if anew.any():
            observations, _ = envs.reset(options={"reset_mask": anew})
            for i in np.flatnonzero(anew):
                alone[i] = ldp_agents.make(name, envs.unwrapped.game)


@pytest.mark.parametrize("name", ["bayes", "robust"])
def test_a_message_is_learned_from_once_however_often_it_is_shown(name):
    envs = gym.make_vec("LDPDist-v0", num_envs=3, **small_rules())
    once, often = ldp_agents.make(name, envs), ldp_agents.make(name, envs)
    observation, _ = envs.reset(seed=0)
    for _ in range(8):
        often.act(observation)
        action = once.act(observation)
        np.testing.assert_array_equal(often.act(observation), action)
        observation, *_ = envs.step(action)
    action = once.act(observation)
    observation, _ = envs.reset(options={"reset_mask": np.array([True, False, False])})
    np.testing.assert_array_equal(once.act(observation)[1:], action[1:])


def test_observations_in_one_buffer_are_read_in_time():
    rules, totals = small_rules(observe_candidates=True), []
    for copy in (True, False):
        env = gym.vector.SyncVectorEnv([lambda: gym.make("LDPDist-v0", **rules)] * 2, copy=copy)
        learner, total = ldp_agents.Bayes(env.envs[0].unwrapped.game), 0.0
        observation, _ = env.reset(seed=0)
        for _ in range(8):
            observation, rewards, *_ = env.step(learner.act(observation))
            total += rewards
        totals.append(total)
    np.testing.assert_array_equal(*totals)


def test_candidates_come_from_the_observation_when_it_has_them():
    game = small_rules(hypotheses="dirichlet", observe_candidates=True, redraw_hypotheses=True)
    env = gym.make("LDPDist-v0", **game)
    learner = ldp_agents.make("uniform", env.unwrapped.game)
    observation, _ = env.reset(seed=0)
    np.testing.assert_allclose(learner.act(observation), observation["candidates"].mean(axis=0))
    with pytest.raises(ValueError, match="observe_candidates=True"):
        learner.act({key: value for key, value in observation.items() if key != "candidates"})


@pytest.mark.parametrize("channel", ["laplace-single", "one-bit", "hybrid", "laplace-vector"])
def test_centred_losses_are_unbiased(channel):
    """A hypothesis' mean estimate is minus its expected clipped log-likelihood, at error rate 1e-6."""
    scenario = Rules(**small_rules(channel, hypotheses="dirichlet", epsilon=4.0)).scenario()
    table, samples = scenario.hypotheses.table, 100_000
    rng = np.random.default_rng(0)
    labels = rng.choice(6, size=samples, p=table[1])
    messages = scenario.channel.privatize(labels, table, rng)
    estimates = scenario.channel.loss_estimates(messages, table)
    clipping = scenario.channel.clipping
    cells = clipping.cells(table)
    law = (1 - clipping.mixing) * table[1] + clipping.mixing * cells.shares
    expected = -np.log(clipping.density(table, cells.lengths, cells.total)) @ law
    deviations = (estimates.mean(axis=0) - expected) / (estimates.std(axis=0) / math.sqrt(samples))
    assert np.abs(deviations).max() < stats.norm.isf(ALPHA / 8)


@pytest.mark.parametrize("channel", ["laplace-single", "split", "adaptive-split"])
def test_the_centred_learner_line_by_line(channel):
    """``eta_t = sqrt(2 log K / V_t)``, where V_t sums the estimates' spread."""
    game, tape = record(small_rules(channel, hypotheses="dirichlet"), 30)
    player = ldp_agents.make("centred-exp3", game)
    player.reset((1,))
    sums, told, spread = np.zeros(4), np.zeros(4), 0.0
    for t in range(30):
        player.update(tape.candidates, tape.messages[:, t])
        transcript = (
            tape.messages[0, t],
            tape.candidates,
            softmax(told) if game.channel.adaptive else None,
        )
        told += game.channel.log_likelihood(*transcript)
        estimates = game.channel.loss_estimates(*transcript)
        sums += estimates
        spread += estimates.var()
        expected = softmax(-math.sqrt(2 * math.log(4) / spread) * sums)
        np.testing.assert_allclose(player.weights[0], expected, rtol=1e-9)


def test_follow_the_leader_by_hand():
    """Leaders that tie share; the paper's smoothing is all that the others get."""
    table = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]
    game, tape = record({"hypotheses": table, "channel": "randomized-response", "horizon": 10}, 5)
    player = ldp_agents.make("mle", game)
    player.reset((1,))
    player.update(tape.candidates, np.array([0]))  # the first label was reported
    np.testing.assert_allclose(player.weights, [[0.5, 0.5, 0.0]])
    lengths = 3 * np.array([0.7, 0.2, 0.7])
    expected = 0.9 * np.array([0.7, 0.2, 0.1]) + 0.1 * lengths / lengths.sum()
    np.testing.assert_allclose(player.predict(tape.candidates)[0], expected)


@pytest.mark.parametrize("channel", CHANNELS)
def test_bayes_has_the_least_risk_on_every_channel(channel):
    """200 paired episodes; another learner that were better would show at error rate 1e-6."""
    game = small_rules(
        channel, hypotheses="dirichlet", num_hypotheses=8, num_labels=16, horizon=200
    )
    bayes = totals("bayes", game, 200)
    others = [
        "uniform",
        "centred-exp3",
        "mle",
        "thompson",
        *(["exp3"] if channel not in LOSSLESS else []),
    ]
    for learner in others:
        assert (
            stats.ttest_rel(bayes, totals(learner, game, 200), alternative="greater").pvalue > ALPHA
        )


def test_a_learner_is_made_for_an_environment_or_its_game():
    single = gym.make("LDPDist-v0", **small_rules())
    vector = gym.make_vec("LDPDist-v0", num_envs=2, **small_rules())
    for env in (
        single,
        single.unwrapped,
        vector,
        MixtureAction(single),
        VectorMixtureAction(vector),
    ):
        game = env.unwrapped.game
        assert ldp_agents.make("bayes", env).game is ldp_agents.make("exp3", game).game is game
    for other in (gym.make("CartPole-v1"), None, "split", Game):
        with pytest.raises(TypeError, match="expected an environment of LDPDist-v0 or a Game, got"):
            ldp_agents.make("bayes", other)


@pytest.mark.parametrize(
    ("rate", "prior"), [(1.0, None), (1.0, PRIOR), (0.25, PRIOR), (0.5, (0.0, 0.2, 0.4, 0.4))]
)
@pytest.mark.parametrize("learner", [ldp_agents.Bayes, ldp_agents.MLE])
def test_a_dropped_hypothesis_stays_dropped(learner, rate, prior):
    """Posterior at rate 1, whatever the learner's rate: alone, in a batch, along a tape, and anew."""
    game, tape = record(small_rules("split", epsilon=3.0), 30)
    row = tape.messages[0]
    messages, tables = np.stack([row, -row, row[::-1]]), np.repeat(tape.candidates, 3, axis=0)
    start = np.array(prior or np.full(4, 0.25))
    told = np.cumsum(game.channel.log_likelihood(messages, tables), axis=1)
    weights = start * np.exp(np.insert(told, 0, 0.0, axis=1))
    weights /= weights.sum(axis=-1, keepdims=True)
    along, stepped, alone, at_once = (learner(game, rate=rate, prior=prior) for _ in range(4))
    along.reset((3,)), stepped.reset((3,)), at_once.reset((3,))
    returned = False
    for t in range(31):
        if t:
            along.play(tables[:, t - 1 : t], messages[:, t - 1 : t])
            stepped.update(tables[:, t - 1], messages[:, t - 1])
            alone.update(tables[0, t - 1], messages[0, t - 1])
        for alpha in (0.5, 0.02):
            expected = weights[:, : t + 1].min(axis=1) > alpha * start
            returned |= (expected != (weights[:, t] > alpha * start)).any()
            for player, right in ((along, expected), (stepped, expected), (alone, expected[0])):
                np.testing.assert_array_equal(player.confidence_set(alpha), right)
    assert returned  # some came back above the threshold, and stay dropped
    at_once.play(tables, messages)
    expected = weights.min(axis=1) > 0.5 * start
    np.testing.assert_array_equal(at_once.confidence_set(0.5), expected)
    at_once.restart(np.array([True, False, True]))
    expected[::2] = start > 0.0
    np.testing.assert_array_equal(at_once.confidence_set(0.5), expected)


@pytest.mark.parametrize("channel", ["randomized-response", "adaptive-split"])
def test_the_truth_is_rarely_dropped(channel):
    """2,000 episodes on two hypotheses out of three that are hard to tell apart; Ville's bound is 0.2."""
    table = [[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8]]
    rules = {"hypotheses": table, "horizon": 150, "channel": channel, "epsilon": 2.0}
    result = ldp_gym.evaluate("bayes", rules, episodes=2000, alpha=0.2, checkpoints=[40, 100])
    dropped = int(2000 - result.confidence_set[np.arange(2000), result.best].sum())
    assert stats.binomtest(dropped, 2000, 0.2, alternative="greater").pvalue > ALPHA
    assert dropped > 20  # the set is not vacuous
    assert (np.diff(result.left, axis=-1) <= 0).all()
    np.testing.assert_array_equal(result.left[:, -1], result.confidence_set.sum(axis=-1))
    assert ((result.left[result.decided == 100.0, :2] > 1) == [True, False]).all()
    assert set(result.decided) == {40.0, 100.0, 150.0, math.inf}


def test_confidence_sets_are_kept_on_request_by_learners_that_have_them():
    with pytest.raises(ValueError, match=r"evaluate\(..., alpha="):
        _ = ldp_gym.evaluate("bayes", {"horizon": 4}, episodes=1).decided
    with pytest.raises(ValueError, match="alpha asks for confidence sets.*'bayes' does"):
        ldp_gym.evaluate("uniform", {"horizon": 4}, episodes=1, alpha=0.1)


RULED_OUT = (0.0, 0.5, 0.25, 0.25)
"""A prior under which the first of four hypotheses is impossible."""


@pytest.mark.parametrize("rate", [1.0, 0.25])
@pytest.mark.parametrize("channel", ["laplace-single", "adaptive-split"])
def test_a_hypothesis_of_prior_weight_zero_never_gets_any(channel, rate):
    game, tape = record(small_rules(channel), 40)
    learner = ldp_agents.Bayes(game, rate=rate, prior=RULED_OUT)
    learner.reset((1,))
    for t in range(40):
        learner.update(tape.candidates[:, t], tape.messages[:, t])
        assert learner.weights[0, 0] == 0.0
        assert learner.weights.sum() == pytest.approx(1.0)


def test_a_prior_weight_of_zero_is_bayes_on_the_other_hypotheses():
    """By hand: the posterior of three hypotheses, in linear space."""
    game, tape = record(small_rules("split"), 40)
    learner = ldp_agents.Bayes(game, prior=RULED_OUT)
    learner.reset((1,))
    expected = np.array(RULED_OUT)
    for t in range(40):
        np.testing.assert_allclose(learner.weights[0], expected, rtol=1e-9)
        candidates, message = tape.candidates[:, t], tape.messages[:, t]
        expected = expected * np.exp(game.channel.log_likelihood(message, candidates)[0])
        expected /= expected.sum()
        learner.update(candidates, message)


def test_a_prior_weight_of_zero_outlasts_messages_that_rule_out_every_other_hypothesis():
    """Without privacy label 1 is impossible under the second hypothesis, the only possible one."""
    rules = {"hypotheses": [[0.5, 0.5], [1.0, 0.0]], "channel": "identity", "epsilon": np.inf}
    game = Rules(**rules).scenario().game
    learner = ldp_agents.Bayes(game, prior=[0.0, 1.0])
    learner.update(np.array(rules["hypotheses"]), np.array(1))
    np.testing.assert_array_equal(learner.weights, [0.0, 1.0])


def test_a_confidence_set_leaves_out_what_the_prior_rules_out():
    game, _ = record(small_rules("split"), 1)
    learner = ldp_agents.Bayes(game, prior=RULED_OUT)
    assert learner.confidence_set(0.05).tolist() == [False, True, True, True]


@pytest.mark.parametrize("learner", [ldp_agents.Bayes, ldp_agents.MLE, ldp_agents.Thompson])
def test_learners_with_a_prior_of_zeros_keep_the_contract(learner):
    check_learner(lambda game: learner(game, prior=RULED_OUT), **small_rules("split"))
