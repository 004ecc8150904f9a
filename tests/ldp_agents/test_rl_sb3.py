"""stable-baselines3: our games equal a DummyVecEnv, and its policies, saved by one call, are learners."""

import json

import gymnasium as gym
import numpy as np
import pytest
import torch
from helpers import Stepwise, assert_same, record, small_rules, totals
from rl_helpers import EASY
from sb3_contrib import RecurrentPPO
from scipy.special import softmax
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

import ldp_agents
import ldp_gym
from ldp_agents.rl import SB3VecEnv, ScoreEvalCallback, load, make_sb3_env, save, score_policy
from ldp_agents.rl.policies import PolicyLearner
from ldp_agents.rl.storage import read_model
from ldp_gym import wrappers
from ldp_gym.core.errors import UntrustedCodeError
from ldp_gym.core.files import pack_arrays
from ldp_gym.core.seed_ranges import TRAINING
from ldp_gym.engine.learners import play_stepwise, plays_blocks
from ldp_gym.engine.rules import Rules
from ldp_gym.envs.ask import greedy_contrast
from ldp_gym.statistics import score_estimate
from ldp_gym.testing import check_learner

SHORT = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "gamma": 0.0, "device": "cpu", "seed": 0}
ADAPTIVE = small_rules("adaptive-split", horizon=12)

BOX, UNIT = "LDPDistBox-v0", np.float32([-1.0, 1.0])


@pytest.mark.parametrize("name", ["LDPDist-v0", "LDPDistBox-v0"])
@pytest.mark.parametrize("rules", [{}, {"channel": "randomized-response", "reveal": True}])
def test_games_in_lock_step_are_a_dummy_vec_env(name, rules):
    game, boxed = small_rules(**rules, horizon=7), name == "LDPDistBox-v0"
    games, single = (
        gym.make_vec(name, 3, autoreset_mode="SameStep", **game),
        lambda: gym.make(name, **game),
    )
    ours = SB3VecEnv(games if boxed else wrappers.VectorMixtureAction(games))
    theirs = DummyVecEnv([single if boxed else lambda: wrappers.MixtureAction(single())] * 3)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    rng = np.random.default_rng(0)
    for env in (ours, theirs):
        env.seed(4)
    for _ in range(2):  # the second time without a seed
        assert_same(ours.reset(), theirs.reset(), 1e-5)
        assert ours.reset_infos == theirs.reset_infos
        for _ in range(17):
            actions = rng.uniform(-1, 1, (3, 4)).astype(np.float32)
            (seen, rewards, over, infos), expected = ours.step(actions), theirs.step(actions)
            assert_same(seen, expected[0], 1e-5)
            assert_same(rewards, expected[1], 1e-5)
            assert_same(over, expected[2])
            for info, other in zip(infos, expected[3], strict=True):
                assert_same(info, other, 1e-5)
            assert ours.reset_infos == theirs.reset_infos
            rewards[:] = 0.0  # SB3 writes into what it gets


@pytest.fixture
def two_games():
    """Two games of 40 rounds as stable-baselines3 has them, whose actions are mixtures."""
    games = gym.make_vec("LDPDist-v0", num_envs=2, autoreset_mode="SameStep", **small_rules())
    env = SB3VecEnv(wrappers.VectorMixtureAction(games))
    yield env
    env.close()


def test_an_attribute_is_read_once_per_game(two_games):
    assert [game.horizon for game in two_games.get_attr("game")] == [40, 40]


def test_an_attribute_is_set_on_the_games_themselves(two_games):
    two_games.set_attr("note", "seen")
    assert two_games.envs.unwrapped.note == "seen"


def test_an_attribute_cannot_differ_between_games(two_games):
    with pytest.raises(ValueError, match="cannot differ between them"):
        two_games.set_attr("note", 1, indices=[0])


def test_each_game_knows_its_wrappers(two_games):
    statistics = gym.wrappers.vector.RecordEpisodeStatistics
    assert two_games.env_is_wrapped(wrappers.VectorMixtureAction) == [True, True]
    assert two_games.env_is_wrapped(statistics, indices=[0]) == [False]


def test_a_method_of_a_single_game_cannot_be_called(two_games):
    with pytest.raises(NotImplementedError, match="call it on SB3VecEnv.envs"):
        two_games.env_method("reset")


def test_reset_options_are_the_same_for_all_games(two_games):
    two_games.set_options({"truth": 2})
    two_games.reset()
    two_games.set_options([{"truth": 1}, {"truth": 2}])
    with pytest.raises(ValueError, match="share their reset options"):
        two_games.reset()


def test_games_of_another_autoreset_mode_are_refused():
    message = 'make the environment with autoreset_mode="SameStep", got'
    with pytest.raises(ValueError, match=message):
        SB3VecEnv(gym.make_vec("LDPDist-v0", num_envs=2))


def test_a_single_environment_is_refused():
    with pytest.raises(TypeError, match="envs must be a vector environment"):
        SB3VecEnv(gym.make("LDPDist-v0"))


def test_a_picture_shows_the_pictures_of_all_games():
    filmed = lock_step(2, {"render_mode": "rgb_array"})
    filmed.seed(0)
    filmed.reset()
    sizes = [image.size for image in filmed.get_images()]
    assert filmed.render().size == sum(sizes)


def test_statistics_of_a_wrapper_reach_sb3():
    games = gym.make_vec(
        "LDPDistBox-v0", num_envs=2, autoreset_mode="SameStep", **small_rules(horizon=2)
    )
    env = SB3VecEnv(gym.wrappers.vector.RecordEpisodeStatistics(games))
    env.reset()
    rewards, infos = zip(*(env.step(np.eye(2, 4))[1::2] for _ in range(2)), strict=True)
    found = [info["episode"]["r"] for info in infos[-1]]
    np.testing.assert_allclose(found, np.sum(rewards, axis=0), rtol=1e-5)
    assert "episode" not in infos[0][0]


class Fixed:
    def __init__(self, logit):
        self.logit = logit

    def get_vec_normalize_env(self):
        return None

    def predict(self, observations, state, episode_start, deterministic):
        return np.tile([self.logit, 0.0, 0.0, 0.0], (len(observations), 1)), state


class First(Stepwise):
    def predict(self, candidates):
        return np.einsum("k,...km->...m", softmax([20.0, 0.0, 0.0, 0.0]), candidates)


TELLING = small_rules("split", truth=1, epsilon=8.0)
"""A game in which Bayes gains much in a few episodes."""


def test_the_uniform_mixture_scores_0():
    score = score_policy(Fixed(0.0), episodes=64, **TELLING)
    assert float(score) == pytest.approx(0.0, abs=1e-6)


def test_a_score_is_relative_to_uniform_and_bayes_on_the_same_episodes():
    uniform = totals("uniform", TELLING, 64, seed=3).mean()
    bayes = totals("bayes", TELLING, 64, seed=3).mean()
    ours = totals(First, TELLING, 64, seed=3).mean()
    score = score_policy(Fixed(20.0), episodes=64, seed=3, **TELLING)
    assert float(score) == pytest.approx((uniform - ours) / (uniform - bayes), rel=1e-4)


def test_a_score_has_the_totals_of_its_episodes_and_their_interval():
    score = score_policy(Fixed(20.0), episodes=64, seed=3, **TELLING)
    np.testing.assert_allclose(score.totals, totals(First, TELLING, 64, seed=3), rtol=1e-4)
    assert score.low < float(score) < score.high
    estimate = score_estimate(
        totals("uniform", TELLING, 64, seed=3), score.totals, totals("bayes", TELLING, 64, seed=3)
    )
    assert (score.low, score.high) == (pytest.approx(estimate.low), pytest.approx(estimate.high))


def test_scores_are_taken_far_from_the_seeds_that_people_train_with():
    by_default = score_policy(Fixed(20.0), **TELLING)
    assert by_default == score_policy(Fixed(20.0), seed=500_000, **TELLING)


def test_a_game_in_which_bayes_gains_nothing_has_no_score():
    equal = TELLING | {"hypotheses": [[0.5, 0.5]] * 4, "num_labels": 2}
    with pytest.raises(ValueError, match="no score: 2 episodes do not show that Bayes beats"):
        score_policy(Fixed(1.0), episodes=2, **equal)


def test_a_score_needs_a_seed():
    with pytest.raises(TypeError, match="seed must be a whole number, got None"):
        score_policy(Fixed(1.0), seed=None, **TELLING)


def test_what_has_no_predict_is_not_scored():
    with pytest.raises(TypeError, match="model must .* got 3 of type int"):
        score_policy(3, **TELLING)


def test_what_is_no_model_is_not_stored():
    with pytest.raises(TypeError, match="model must .* got 3 of type int"):
        save(3, "nowhere")


ASK = {"hypotheses": "dirichlet", "num_hypotheses": 4, "num_labels": 6, "horizon": 30}
ASK |= {"epsilon": 3.0}


class Asking:
    """Policy of LDPAsk-v0: a function of the posterior weights."""

    def __init__(self, ask):
        self.ask = ask

    def predict(self, observations, state, episode_start, deterministic):
        return self.ask(observations[:, :4].astype(float)), state


def greedy_policy():
    table = gym.make("LDPAsk-v0", **ASK).unwrapped.game.hypotheses(np.zeros(1))
    return Asking(lambda weights: greedy_contrast(weights, table))


def test_greedy_questions_score_exactly_1():
    score = score_policy(greedy_policy(), "LDPAsk-v0", episodes=64, seed=5, **ASK)
    assert float(score) == pytest.approx(1.0, abs=1e-9)
    assert score.high - score.low < 1e-6


def test_a_total_of_questions_is_the_sum_of_expected_losses():
    """J(w) = sum_k w_k KL(f_k, f_w), written out, along one game at a time."""
    contrast = np.array([1.0, -1.0, 0.5, 0.0])
    policy = Asking(lambda weights: np.tile(contrast, (len(weights), 1)))
    score = score_policy(policy, "LDPAsk-v0", episodes=40, seed=5, **ASK)
    env = gym.make("LDPAsk-v0", **ASK)
    table = env.unwrapped.game.hypotheses(np.zeros(1))
    for i in range(2):
        observation, _ = env.reset(seed=5 + i)
        expected = 0.0
        for _ in range(30):
            weights = observation[:4].astype(float)
            mixed = weights @ table
            expected += weights @ (table * np.log(table / mixed)).sum(axis=1)
            observation, *_ = env.step(contrast)
        assert score.totals[i] == pytest.approx(expected, rel=1e-5)


def test_greedy_questions_score_1_where_every_episode_draws_its_class():
    class Greedy:
        """Reads the candidates that end a row."""

        def predict(self, observations, state, episode_start, deterministic):
            weights = observations[:, :4].astype(float)
            tables = observations[:, 9:].reshape(-1, 4, 6).astype(float)
            return greedy_contrast(weights, tables), state

    rules = {**ASK, "redraw_hypotheses": True}
    score = score_policy(Greedy(), "LDPAsk-v0", episodes=64, seed=5, **rules)
    assert float(score) == pytest.approx(1.0, abs=0.02)


def test_questions_are_scored_in_an_environment_as_by_its_id():
    envs = gym.make_vec("LDPAsk-v0", 64, autoreset_mode="SameStep", **ASK)
    constant = Asking(lambda weights: np.tile([1.0, -1.0, 0.5, 0.0], (len(weights), 1)))
    by_id = score_policy(constant, "LDPAsk-v0", episodes=64, seed=5, **ASK)
    assert by_id == score_policy(constant, SB3VecEnv(envs), seed=5)


def test_questions_about_a_truth_that_is_not_drawn_are_scored_by_their_kl():
    rules = {**ASK, "truth": 2}
    constant = Asking(lambda weights: np.tile([1.0, -1.0, 0.5, 0.0], (len(weights), 1)))
    score = score_policy(constant, "LDPAsk-v0", episodes=64, seed=5, **rules)
    env = gym.make("LDPAsk-v0", **rules)
    env.reset(seed=5)
    kl = [env.step(np.array([1.0, -1.0, 0.5, 0.0]))[-1]["kl"] for _ in range(30)]
    assert score.totals[0] == pytest.approx(sum(kl), rel=1e-5)


def lock_step(num_envs, rules):
    return SB3VecEnv(gym.make_vec("LDPDistBox-v0", num_envs, autoreset_mode="SameStep", **rules))


def seeds_of_run(seed, num_envs=64):
    """Seeds of the games that PPO of this seed begins to train on."""
    env = make_sb3_env("LDPDistBox-easy-v0", num_envs=num_envs)
    PPO("MlpPolicy", env, **SHORT | {"seed": seed})
    env.reset()
    return env.get_attr("np_random_seed")[0]


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_runs_train_on_seeds_for_training(seed):
    assert all(one in TRAINING for one in seeds_of_run(seed))


def test_the_games_of_a_run_have_neighbouring_seeds():
    assert seeds_of_run(2, 3) == (5_097_152, 5_097_153, 5_097_154)


def test_runs_of_different_seeds_share_no_game():
    first, second, third = (set(seeds_of_run(seed)) for seed in range(3))
    assert first.isdisjoint(second)
    assert first.isdisjoint(third)
    assert second.isdisjoint(third)


def test_the_games_of_two_runs_differ():
    """Game i + 1 of run 0 once was game i of run 1, bit for bit."""
    actions = np.zeros((4, 4), dtype=np.float32)
    rows = []
    for seed in range(2):
        env = make_sb3_env("LDPDistBox-easy-v0", num_envs=4, seed=seed)
        env.reset()
        rows.append(env.step(actions)[0])
    assert not np.array_equal(rows[0][1:], rows[1][:-1])


def test_environments_take_the_seed_of_a_run():
    env = make_sb3_env(num_envs=2, seed=3, **small_rules())
    env.reset()
    assert env.get_attr("np_random_seed")[0] == (6_145_728, 6_145_729)


def test_a_run_has_at_most_a_million_games():
    with pytest.raises(ValueError, match="num_envs must be at most 1048576"):
        make_sb3_env(num_envs=2**20 + 1)


def test_a_score_refuses_seeds_for_training():
    message = "from 3,000,000 on are for training, got 3,000,001 for the last"
    with pytest.raises(ValueError, match=message):
        score_policy(Fixed(0.0), seed=TRAINING.start - 2, episodes=4, **small_rules())


def test_a_score_is_of_what_the_policy_saw_in_training(tmp_path):
    """Observations that VecNormalize has scaled, stacked frames, and a memory; else there is no score."""
    rules = small_rules("split", epsilon=4.0)
    scaled = VecNormalize(lock_step(16, rules), norm_reward=False)
    scaled.seed(0)
    model = PPO("MlpPolicy", scaled, **SHORT).learn(128)
    scaled.training = False
    plain, stacked = lock_step(16, rules), VecFrameStack(make_sb3_env(num_envs=16, **rules), 2)
    memory = RecurrentPPO("MlpLstmPolicy", plain, **SHORT).learn(128)
    stacking = PPO("MlpPolicy", stacked, **SHORT).learn(128)
    model.save(tmp_path / "model")
    scaled.save(str(tmp_path / "statistics"))
    loaded = PPO.load(tmp_path / "model", device="cpu")
    repeated = VecFrameStack(lock_step(16, rules), 2)

    def load_statistics(env):
        return VecNormalize.load(str(tmp_path / "statistics"), env)

    uniform, bayes = (totals(learner, rules, 16, seed=5).mean() for learner in ("uniform", "bayes"))
    for policy, env, wrapper in (
        (model, scaled, None),
        (loaded, scaled, load_statistics),
        (memory, plain, None),
        (stacking, repeated, lambda env: VecFrameStack(env, 2)),
    ):
        expected = (uniform - played(policy, env, 5, rules["horizon"]).mean()) / (uniform - bayes)
        score = score_policy(policy, BOX, wrapper, episodes=16, seed=5, **rules)
        assert float(score) == pytest.approx(expected, abs=1e-3)
    by_env = score_policy(stacking, stacked, seed=5)
    assert float(by_env) == pytest.approx(float(score), abs=1e-6), "as many episodes"
    for policy, message in (
        (loaded, r"VecNormalize.load\("),
        (stacking, r"shape \(10,\), not \(5,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            score_policy(policy, **rules)
    with pytest.raises(TypeError, match="has its rules already, got horizon"):
        score_policy(memory, plain, horizon=3)


def test_the_best_model_is_kept(tmp_path, monkeypatch):
    """By its score on fixed episodes: the second of three, with the statistics of VecNormalize."""
    env = VecNormalize(make_sb3_env(num_envs=4, **EASY))
    callback = ScoreEvalCallback(BOX, 100, tmp_path / "best", episodes=8, **EASY)
    model = PPO("MlpPolicy", env, **SHORT, tensorboard_log=str(tmp_path / "logs"))
    given, scores = iter([0.1, 0.3, 0.2]), []
    monkeypatch.setattr(
        callback,
        "_scoring",
        lambda model: scores.append(model.policy.state_dict()["log_std"].clone()) or next(given),
    )
    model.learn(256, callback=callback)
    assert callback.scores == [(100, 0.1), (200, 0.3), (256, 0.2)]
    best = PPO.load(tmp_path / "best" / "best_model.zip", device="cpu")
    assert torch.equal(best.policy.state_dict()["log_std"], scores[1])
    assert VecNormalize.load(
        str(tmp_path / "best" / "vecnormalize.pkl"), make_sb3_env(num_envs=1, **EASY)
    )
    assert list((tmp_path / "logs").rglob("events.out.tfevents.*")), (
        "tensorboard comes with the extra"
    )
    assert model.logger.name_to_value["eval/score"] == 0.2
    assert len(model.ep_info_buffer) == 4, "returns are in SB3's logs"
    given = iter([0.0, 0.0])
    model.learn(128, callback=callback)
    assert [steps for steps, _ in callback.scores[3:]] == [100, 128], (
        "a second training counts anew"
    )
    monkeypatch.undo()
    assert callback._scoring(model) == score_policy(model, BOX, episodes=8, seed=1_000_000, **EASY)


def test_a_policy_without_a_memory_is_called_once_for_a_block(monkeypatch):
    model = PPO("MlpPolicy", make_sb3_env(num_envs=2, **EASY), **SHORT)
    calls = []
    predict = model.predict
    monkeypatch.setattr(
        model, "predict", lambda *a, **k: calls.append(len(a[0])) or predict(*a, **k)
    )
    ldp_gym.evaluate(lambda game: PolicyLearner(game, model, {}), EASY, episodes=5)
    assert calls[-1] == 5 * 40
    assert len(calls) < 5


@pytest.mark.parametrize("rules", [EASY, ADAPTIVE])
def test_a_policy_plays_blocks_as_it_plays_rounds(rules):
    model = PPO("MlpPolicy", make_sb3_env(num_envs=2, **rules), **SHORT)
    game, tape = record(rules, 12, episodes=3)
    along = PolicyLearner(game, model, {})
    stepped = PolicyLearner(game, model, {})
    along.reset((3,))
    stepped.reset((3,))
    parts = []
    for block in (slice(0, 5), slice(5, 12)):
        candidates = tape.candidates if tape.candidates.ndim == 2 else tape.candidates[:, block]
        logs = None if tape.log_likelihoods is None else tape.log_likelihoods[:, block]
        parts.append(along.play(candidates, tape.messages[:, block], logs))
    expected = play_stepwise(stepped, tape.candidates, tape.messages)
    np.testing.assert_allclose(np.concatenate(parts, axis=1), expected, rtol=1e-5)


def test_a_policy_with_a_memory_is_stepped():
    model = RecurrentPPO("MlpLstmPolicy", make_sb3_env(num_envs=2, **EASY), **SHORT)
    learner = PolicyLearner(Rules(**EASY).scenario().game, model, {})
    assert not plays_blocks(learner)


def played(model, venv, seed, rounds):
    """The total KL of a policy in its own SB3 environment."""
    venv.seed(seed)
    observation = venv.reset()
    state, begins, total = None, np.ones(venv.num_envs, dtype=bool), 0.0
    for _ in range(rounds):
        action, state = model.predict(
            observation, state=state, episode_start=begins, deterministic=True
        )
        observation, _, begins, infos = venv.step(action)
        total = total + np.array([info["kl"] for info in infos])
    return total


@pytest.mark.parametrize(
    ("kind", "policy", "rules", "logit_range"),
    [
        (PPO, "MlpPolicy", EASY, 0.01),  # all of its actions are clipped
        (PPO, "MlpPolicy", ADAPTIVE, None),
        (RecurrentPPO, "MlpLstmPolicy", EASY, None),
    ],
)
def test_it_plays_as_in_its_own_environment(kind, policy, rules, logit_range, tmp_path):
    """Through evaluate, on the same seeds, to float32; and it keeps the contract, on its own game."""
    made = rules | ({} if logit_range is None else {"logit_range": logit_range})
    env = lock_step(4, made) if rules is EASY else gym.make("LDPDistBox-v0", **made)
    model = kind(policy, env, **SHORT).learn(64)
    save(model, tmp_path)
    with pytest.raises(UntrustedCodeError, match="trust=True, or --trust"):
        load(tmp_path)
    learner = load(tmp_path, trust=True)
    venv = model.get_env()
    ours = ldp_gym.evaluate(learner, rules, episodes=venv.num_envs, seed=3).kl[:, -1]
    np.testing.assert_allclose(ours, played(model, venv, 3, rules["horizon"]), rtol=1e-3)
    check_learner(learner)
    with pytest.raises(ldp_agents.IncompatibleChannelError, match=r"T \d+ \(not 50\)"):
        learner(Rules(**{**rules, "horizon": 50}).scenario().game)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: VecNormalize(make_sb3_env(num_envs=2, **EASY)), "cannot repeat VecNormalize"),
        (lambda: gym.make("Pendulum-v1"), "trained on LDPDistBox-v0, got Pendulum-v1"),
        (
            lambda: VecFrameStack(make_sb3_env(num_envs=2, **EASY), 2),
            "cannot repeat wrappers that change",
        ),
        (
            lambda: gym.wrappers.RescaleAction(gym.make(BOX, **EASY), *UNIT),
            "cannot repeat wrappers that",
        ),
        (
            lambda: gym.wrappers.NormalizeObservation(gym.make(BOX, **EASY)),
            "cannot repeat wrappers that",
        ),
    ],
)
def test_what_a_learner_cannot_repeat_is_refused(env, message, tmp_path):
    model = PPO("MlpPolicy", env(), **SHORT)
    with pytest.raises(TypeError, match=message):
        save(model, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("trained", "played_on", "message"),
    [
        ({"channel_kwargs": {"gamma": 3.0}}, {}, "messages"),
        ({"channel": "adaptive-split", "batch": 5}, {"channel": "adaptive-split"}, "batch 5 "),
        ({"hypotheses": "dirichlet", "redraw_hypotheses": True}, {}, "class redrawn"),
    ],
)
def test_a_policy_plays_only_the_game_that_it_was_trained_on(trained, played_on, message, tmp_path):
    save(PPO("MlpPolicy", make_sb3_env(num_envs=2, **small_rules() | trained), **SHORT), tmp_path)
    learner = load(tmp_path, trust=True)
    assert learner(Rules(**learner.example_rules).scenario().game)
    with pytest.raises(ldp_agents.IncompatibleChannelError, match=f"trained for .*{message}"):
        learner(Rules(**small_rules() | played_on).scenario().game)


@pytest.mark.parametrize(
    ("name", "message"),
    [("split", "model.ldp names code, 'os:system'"), ("PPO", "unknown algorithm 'os:sys")],
)
def test_a_card_names_no_code(tmp_path, name, message):
    save(PPO("MlpPolicy", make_sb3_env(num_envs=2, **EASY), **SHORT), tmp_path)
    card, arrays = read_model(tmp_path)
    edited = json.loads(json.dumps(card).replace(f'"{name}"', '"os:system"'))
    (tmp_path / "model.ldp").write_bytes(pack_arrays(arrays, edited))

    with pytest.raises(ValueError, match=message):
        load(tmp_path, trust=True)(Rules(**EASY).scenario().game)


def test_a_policy_with_a_memory_remembers_a_round_once():
    model = RecurrentPPO("MlpLstmPolicy", make_sb3_env(num_envs=2, **EASY), **SHORT)
    game, tape = record(EASY, 6)
    once, often = (PolicyLearner(game, model, {}) for _ in range(2))
    once.reset((1,)), often.reset((1,))
    for t in range(6):
        often.predict(tape.candidates), often.predict(tape.candidates)
        np.testing.assert_array_equal(often.predict(tape.candidates), once.predict(tape.candidates))
        (
            once.update(tape.candidates, tape.messages[:, t]),
            often.update(tape.candidates, tape.messages[:, t]),
        )
