"""LDPDistBox-v0: the game of LDPDist-v0, features by their formula, gains as rewards, scores."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers import CHANNELS, assert_same_games, record, small_rules, totals

import ldp_agents
from ldp_gym.core.divergences import kl
from ldp_gym.engine import playback
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import Scenario
from ldp_gym.envs import box
from ldp_gym.envs.box import estimate_bayes_gain
from ldp_gym.envs.features import RunningEvidence
from ldp_gym.envs.named_games import NAMED_GAMES
from ldp_gym.wrappers import MixtureAction

pytestmark = pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.NoPrivacyWarning")

REDRAWN = {"hypotheses": "dirichlet", "redraw_hypotheses": True, "horizon": 9, "channel": "split"}
RAW = {"observation": "message"}


class Transcript:
    """What LDPDistBox-v0 shows, by loops over the rounds of LDPDist-v0, from the formulas."""

    def __init__(self, env, observation):
        self.game, self.raw = env.unwrapped.game, observation == "message"
        self.posterior = self.game.public_posterior() if self.game.channel.adaptive else None
        self.total, self.spread, self.last = np.zeros(4), 0.0, np.zeros(3)

    def learn(self, candidates, message):
        weights = None if self.posterior is None else self.posterior.weights
        told = self.game.channel.log_likelihood(np.asarray(message), candidates, weights)
        if self.posterior is not None:
            self.posterior.advance(told)
        centred = np.maximum(told - told.max(), -30.0)
        centred -= sum(centred) / 4
        self.total, self.spread = self.total + centred, self.spread + sum(centred**2) / 4

    def show(self, seen):
        played, message = int(seen["round"][0]), seen["message"]
        if self.raw:
            space = self.game.channel.message_space
            row = np.ravel(message)
            if isinstance(space, gym.spaces.Discrete):
                row = np.eye(space.n)[message] * (played > 0)
            last, self.last = self.last, seen["context"]
            return [played / 40, *seen["context"], *last, *row]
        unit = math.sqrt(40 * self.spread / played) if self.spread else 1.0
        return [*self.total / unit, played / 40]


@pytest.mark.parametrize("observation", ["evidence", "message"])
@pytest.mark.parametrize("channel", CHANNELS)
def test_it_is_the_game_of_ldpdist(channel, observation, monkeypatch):
    """The same seed gives the same features, KL and TV; the reward is the gain over the uniform mixture."""
    monkeypatch.setattr(playback, "_LONGEST_BLOCK", 7)
    rules = small_rules(channel)
    env = gym.make("LDPDistBox-v0", observation=observation, **rules)
    plain = MixtureAction(gym.make("LDPDist-v0", reveal=True, **rules))
    rng = np.random.default_rng(0)
    for seed in (3, None):
        transcript = Transcript(plain, observation)
        shown, expected = env.reset(seed=seed)[0], transcript.show(plain.reset(seed=seed)[0])
        over = False
        while not over:
            assert shown.dtype == np.float32
            assert shown in env.observation_space
            np.testing.assert_allclose(shown, expected, rtol=1e-5, atol=1e-5)
            action = rng.uniform(-5, 5, 4).astype(np.float32)
            candidates = plain.unwrapped.candidates
            shown, reward, over, _, info = env.step(action)
            seen, loss, *_, other = plain.step(action)
            transcript.learn(candidates, seen["message"])
            expected = transcript.show(seen)
            uniform = kl(candidates[other["truth"]], candidates.mean(axis=0))
            np.testing.assert_allclose(reward, uniform + loss, rtol=1e-9, atol=1e-12)
            assert info["kl"] == pytest.approx(other["kl"], rel=1e-9)
            assert info["tv"] == pytest.approx(other["tv"], rel=1e-9)
        np.testing.assert_allclose(shown, expected, rtol=1e-5, atol=1e-5)


def test_features_are_multiples_of_the_log_posterior_and_stay_in_their_space():
    game, tape = record(small_rules("adaptive-groups", epsilon=4.0), 40, episodes=3)
    features = RunningEvidence(game, (3,)).along(tape.log_likelihoods)
    log_posterior = np.cumsum(
        tape.log_likelihoods - tape.log_likelihoods.mean(-1, keepdims=True), axis=1
    )
    ratios = log_posterior / features[..., :-1]
    np.testing.assert_allclose(ratios, ratios[..., :1].repeat(4, axis=-1), rtol=1e-4)
    space = RunningEvidence.space(game)
    assert all(row in space for row in features.reshape(-1, 5))
    same = RunningEvidence(game, (1,)).along(np.tile([0.0, -1.0, -1.0, -1.0], (1, 40, 1)))
    assert same[0, -1] in space, "the largest features that there are"
    np.testing.assert_allclose(space.high, [1.001 * math.sqrt(4 * 40)] * 4 + [1.0], rtol=1e-6)
    np.testing.assert_allclose(space.low, [-1.001 * math.sqrt(4 * 40)] * 4 + [0.0], rtol=1e-6)


def test_a_hypothesis_that_is_ruled_out_does_not_hide_the_others():
    game, _ = record(small_rules(), 2)
    features = RunningEvidence(game, (1,)).along(np.array([[[-np.inf, 0.0, -1.0, -2.0]]]))[0, 0]
    # Cut at -30 below the largest: -30, 0, -1, -2, less their mean -8.25; mean square 158.1875.
    expected = np.array([-21.75, 8.25, 7.25, 6.25]) / math.sqrt(40 * 158.1875)
    np.testing.assert_allclose(features, [*expected, 1 / 40], rtol=1e-6)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(
    "rules",
    [small_rules(horizon=9), small_rules("adaptive-split", horizon=9), REDRAWN, REDRAWN | RAW],
)
def test_single_and_vector_environments_agree(rules, mode, monkeypatch):
    """With the scores at the ends of episodes, however the next begins; features of two games at a time."""
    monkeypatch.setattr(playback, "_LONGEST_BLOCK", 4)
    monkeypatch.setattr(box, "_ROUNDS_AT_ONCE", 2 * 4)
    native = gym.make_vec("LDPDistBox-v0", num_envs=3, autoreset_mode=mode, **rules)
    sync = SyncVectorEnv([lambda: gym.make("LDPDistBox-v0", **rules)] * 3, autoreset_mode=mode)
    size = native.single_action_space.shape
    actions = np.random.default_rng(0).uniform(-5, 5, (24, 3, *size)).astype(np.float32)
    assert_same_games(native, sync, actions, rtol=1e-5)


def test_the_score_is_the_return_over_that_of_bayes(monkeypatch):
    """The reference against `evaluate` on the same episodes, in blocks of 7 rounds; uniform has 0."""
    rules = small_rules("split", hypotheses="dirichlet", context_dim=1, epsilon=2.0)
    monkeypatch.setattr(Scenario, "rounds_at_a_time", lambda *_: 7)
    monkeypatch.setattr(box, "_REFERENCE_SEED", 10)
    gain = estimate_bayes_gain(Rules(**rules).scenario())
    uniform, bayes = (
        totals(learner, rules, 512, seed=10).mean() for learner in ("uniform", "bayes")
    )
    assert gain == pytest.approx(uniform - bayes, rel=1e-9)
    env = gym.make("LDPDistBox-v0", **rules)
    env.reset(seed=0)
    total, over = 0.0, False
    while not over:
        _, reward, over, _, info = env.step(np.array([3.0, 0.0, 0.0, 0.0]))
        total += reward
    assert info["score"] == pytest.approx(total / gain, rel=1e-9)
    env.reset(seed=0)
    steps = [env.step(np.zeros(4)) for _ in range(40)]
    np.testing.assert_allclose([step[1] for step in steps], 0.0, atol=1e-12)
    assert steps[-1][4]["score"] == pytest.approx(0.0, abs=1e-9), "of this episode"


def test_losses_are_capped_in_rewards_and_in_the_gain_of_bayes(monkeypatch):
    """Against Bayes and the uniform mixture, stepped in LDPDist-v0 with the same cap."""
    rules = small_rules("split", hypotheses="dirichlet", context_dim=1, epsilon=4.0, max_loss=0.3)
    monkeypatch.setattr(box, "_FEWEST_REFERENCES", 12)
    monkeypatch.setattr(box, "_MOST_REFERENCES", 12)
    monkeypatch.setattr(box, "_REFERENCE_SEED", 0)
    env, totals = gym.make("LDPDist-v0", **rules), {}
    for name in ("uniform", "bayes"):
        learner, totals[name] = ldp_agents.make(name, env), np.zeros(12)
        for seed in range(12):
            seen, over = env.reset(seed=seed)[0], False
            while not over:
                seen, reward, over, _, info = env.step(learner.act(seen))
                assert reward == -min(info["kl"], 0.3)
                totals[name][seed] += reward
    gains = totals["bayes"] - totals["uniform"]
    assert estimate_bayes_gain(Rules(**rules).scenario()) == pytest.approx(gains.mean(), rel=1e-9)
    boxed = gym.make("LDPDistBox-v0", **rules)
    boxed.reset(seed=3)
    np.testing.assert_allclose([boxed.step(np.zeros(4))[1] for _ in range(40)], 0.0, atol=1e-12)


@pytest.mark.parametrize("channel", ["laplace-single", "identity"])
def test_a_label_that_no_hypothesis_allows_costs_max_loss_and_tells_nothing(channel):
    """Then there is no gain, and no score without a gain of Bayes."""
    rules = {
        "hypotheses": [[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]],
        "truth": [0.0, 0.0, 1.0],
        "horizon": 4,
    }
    env = gym.make("LDPDistBox-v0", **rules, channel=channel, max_loss=7.0)
    env.reset(seed=0)
    for _ in range(4):
        shown, reward, *_, info = env.step(np.array([1.0, -1.0]))
        assert np.isfinite(shown).all()
        assert channel != "identity" or (shown[:-1] == 0.0).all()
        assert reward == 0.0
        assert info["kl"] == math.inf
    assert "score" not in info


def test_the_gain_of_bayes_is_estimated_once_for_the_same_rules(monkeypatch):
    estimates = []
    monkeypatch.setattr(
        box, "estimate_bayes_gain", lambda scenario: estimates.append(scenario) or 1.0
    )
    envs = [gym.make("LDPDistBox-v0", **small_rules(horizon=2, class_seed=77)) for _ in range(3)]
    for env in envs:
        env.reset(seed=0)
        assert ["score" in env.step(np.zeros(4))[-1] for _ in range(2)] == [False, True]
    assert estimates == [envs[0].unwrapped.scenario], "and the game is not made again"


def test_named_games_are_fixed():
    size = {"num_hypotheses": 4, "num_labels": 8, "horizon": 200}
    easy = {"hypotheses": "dirichlet", "channel": "split", "epsilon": 4.0, **size}
    memory, hard = (
        {"channel": name, "observation": "message"} for name in ("split", "randomized-response")
    )
    assert {"easy": easy, "medium": {}, "memory": memory, "hard": hard} == NAMED_GAMES
    spaces = {name: gym.make(f"LDPDistBox-{name}-v0").observation_space for name in NAMED_GAMES}
    sizes = {name: space.shape[0] for name, space in spaces.items()}
    assert sizes == {"easy": 5, "medium": 9, "memory": 17, "hard": 25}
    assert spaces["memory"].low.tolist() == [0.0] + [-np.inf] * 8 + [-1.0] * 8
    assert spaces["hard"].high.tolist() == [1.0] + [np.inf] * 8 + [1.0] * 16


def test_the_meta_game_shows_the_class_of_the_episode():
    """A row: t / T, the context and the candidates, both again of the round before, and the label sent."""
    env = gym.make("LDPDistBox-meta-v0")
    first, _ = env.reset(seed=0)
    table = env.unwrapped.candidates
    second, *_ = env.step(np.zeros(4))
    env.reset(seed=1)

    assert env.unwrapped.game.horizon == 200
    assert env.observation_space.shape == (1 + 2 * (1 + 4 * 8) + 8,)
    np.testing.assert_array_equal(first[2:34], table.ravel().astype(np.float32))
    np.testing.assert_array_equal(second[35:67], table.ravel().astype(np.float32))
    assert second[67:].sum() == 1.0
    assert not np.allclose(env.unwrapped.candidates, table)


def test_wrong_arguments_and_actions_say_what_is_wrong():
    for name, value in (("observation", "label"), ("logit_range", 0.0)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            gym.make("LDPDistBox-v0", **{name: value})
    env = gym.make("LDPDistBox-v0", **small_rules())
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        env.step(np.zeros(4))
    env.reset(seed=0)
    for action in (np.zeros(3), np.full(4, np.nan)):
        with pytest.raises(ValueError, match=r"finite logits of shape \(4,\), got"):
            env.step(action)
