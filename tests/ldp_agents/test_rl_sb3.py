"""stable-baselines3: our games equal a DummyVecEnv, and its policies, saved by one call, are learners."""

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
from ldp_agents.rl.ppo import PPOSettings
from ldp_gym import wrappers
from ldp_gym.core.errors import UntrustedCodeError
from ldp_gym.core.seed_ranges import TRAINING
from ldp_gym.engine.rules import Rules
from ldp_gym.envs.ask import LDPAskVectorEnv
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


def test_what_sb3_asks_of_its_games():
    games = gym.make_vec("LDPDist-v0", num_envs=2, autoreset_mode="SameStep", **small_rules())
    env = SB3VecEnv(wrappers.VectorMixtureAction(games))
    assert [game.horizon for game in env.get_attr("game")] == [40, 40]
    assert env.env_is_wrapped(wrappers.VectorMixtureAction) == [True, True]
    assert env.env_is_wrapped(gym.wrappers.vector.RecordEpisodeStatistics, indices=[0]) == [False]
    env.set_options({"truth": 2})
    env.reset()
    env.set_attr("note", "seen")
    assert games.note == "seen"
    with pytest.raises(ValueError, match="cannot differ between them"):
        env.set_attr("note", 1, indices=[0])
    with pytest.raises(NotImplementedError, match="call it on SB3VecEnv.envs"):
        env.env_method("reset")
    env.set_options([{"truth": 1}, {"truth": 2}])
    with pytest.raises(ValueError, match="share their reset options"):
        env.reset()
    env.close()
    with pytest.raises(
        ValueError, match='make the environment with autoreset_mode="SameStep", got'
    ):
        SB3VecEnv(gym.make_vec("LDPDist-v0", num_envs=2))
    with pytest.raises(TypeError, match="envs must be a vector environment"):
        SB3VecEnv(gym.make("LDPDist-v0"))
    filmed = lock_step(2, {"render_mode": "rgb_array"})
    filmed.seed(0), filmed.reset()
    assert filmed.render().size == sum(image.size for image in filmed.get_images())


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


def test_scores_are_relative_to_uniform_and_bayes_on_the_same_episodes():
    rules = small_rules("split", truth=1, epsilon=8.0)
    assert score_policy(Fixed(0.0), episodes=64, **rules) == pytest.approx(0.0, abs=1e-6)
    uniform, bayes, ours = (
        totals(name, rules, 64, seed=3).mean() for name in ("uniform", "bayes", First)
    )
    expected = (uniform - ours) / (uniform - bayes)
    assert score_policy(Fixed(20.0), episodes=64, seed=3, **rules) == pytest.approx(
        expected, rel=1e-4
    )
    ours, same = (score_policy(Fixed(20.0), **seed, **rules) for seed in ({}, {"seed": 500_000}))
    assert ours == same, "far from the seeds that people train with"
    with pytest.raises(
        ValueError, match="no score: 2 episodes do not show that Bayes beats the uniform"
    ):
        score_policy(
            Fixed(1.0), episodes=2, **rules | {"hypotheses": [[0.5, 0.5]] * 4, "num_labels": 2}
        )
    with pytest.raises(TypeError, match="seed must be a whole number, got None"):
        score_policy(Fixed(1.0), seed=None, **rules)
    for call in (lambda: score_policy(3, **rules), lambda: save(3, "nowhere")):
        with pytest.raises(TypeError, match="model must .* got 3 of type int"):
            call()
    for wrong in ({"batch_size": 1}, {"gamma": 7.0}, {"gamma": -0.1}, {"learning_rate": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            PPOSettings(**wrong)


def test_questions_are_scored_by_their_game():
    """By its own score, on the seeds of the episodes."""
    rules, bound = (
        {"num_hypotheses": 4, "num_labels": 6, "horizon": 12},
        np.eye(4, dtype=np.float32)[0],
    )
    envs = gym.make_vec("LDPAsk-v0", 32, **rules)
    envs.reset(seed=5)
    infos = [envs.step(np.tile(bound, (32, 1)))[-1] for _ in range(12)]
    score = score_policy(Fixed(1.0), "LDPAsk-v0", episodes=32, seed=5, **rules)
    assert score == pytest.approx(infos[-1]["score"].mean(), rel=1e-6)
    made = SB3VecEnv(
        LDPAskVectorEnv(num_envs=32, autoreset_mode="SameStep", **rules)
    )  # without an id
    assert score_policy(Fixed(1.0), made, seed=5) == pytest.approx(score, rel=1e-6)


def lock_step(num_envs, rules):
    return SB3VecEnv(gym.make_vec("LDPDistBox-v0", num_envs, autoreset_mode="SameStep", **rules))


@pytest.mark.parametrize("seed", [0, 7, None])
def test_no_policy_is_scored_on_episodes_that_it_was_trained_on(seed):
    """Not those of PPO's own seeds on our games; and a score refuses every seed that is for training."""
    env = make_sb3_env(num_envs=3, **small_rules())
    PPO("MlpPolicy", env, **SHORT | {"seed": 0}).set_random_seed(seed)
    env.seed(seed)
    env.reset()
    trained = env.get_attr("np_random_seed")[0]
    assert all(one in TRAINING for one in trained)
    assert seed is None or trained == tuple(3_000_000 + seed + i for i in range(3))
    with pytest.raises(
        ValueError, match="from 3,000,000 on are for training, got 3,000,001 for the last"
    ):
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
        assert score == pytest.approx(expected, abs=1e-3)
    assert score_policy(stacking, stacked, seed=5) == pytest.approx(score, abs=1e-6), (
        "as many episodes"
    )
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
        (lambda: make_sb3_env(num_envs=2, observation="message", **EASY), 'observation="evidence"'),
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


def test_a_card_names_no_code(tmp_path):
    save(PPO("MlpPolicy", make_sb3_env(num_envs=2, **EASY), **SHORT), tmp_path)
    card = (tmp_path / "model.json").read_text()
    for name, message in (
        ("split", "json names code, 'os:system'"),
        ("PPO", "unknown algorithm 'os:sys"),
    ):
        (tmp_path / "model.json").write_text(card.replace(f'"{name}"', '"os:system"'))
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
