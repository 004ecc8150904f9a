"""The learned baselines: SB3's view of the games, networks, models, short training runs, and the command."""

import json
import pickle
import re
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from helpers import ALPHA
from helpers import small_rules as settings
from scipy.stats import t as student
from stable_baselines3.common.vec_env import DummyVecEnv
from typer.testing import CliRunner

import ldp_agents
import ldp_gym
from ldp_agents.rl import Model, ModelLearner, SB3VecEnv, load, network
from ldp_agents.rl.amortized import Rounds, charged
from ldp_agents.rl.config import Config
from ldp_agents.rl.model import facts, features_of
from ldp_agents.rl.policies import StoredPolicy
from ldp_agents.rl.pretrained import WEIGHTS_DIRECTORY, models
from ldp_agents.rl.training import train
from ldp_gym import wrappers
from ldp_gym.bench.experiment import Entry, may_play_here
from ldp_gym.bench.runner import play
from ldp_gym.cli import app
from ldp_gym.engine.scenario import Scenario
from ldp_gym.features.sums import FEATURES
from ldp_gym.numerics.divergences import kl
from ldp_gym.testing import check_learner

KINDS = ("flat", "equivariant")
EASY = {"hypotheses": "disjoint", "num_hypotheses": 4, "epsilon": 6.0, "horizon": 40}
"""A game that a few seconds of training are enough for."""


def untrained(game, kind="equivariant", seed=0):
    features = FEATURES[features_of(kind)](game).shape
    outputs = 1 if kind == "equivariant" else game.num_hypotheses
    parameters = network.make(kind, features, outputs, (7, 5), np.random.default_rng(seed))
    parameters["skip"] += np.random.default_rng(seed + 1).standard_normal(parameters["skip"].shape)
    return Model(parameters, features_of(kind), facts(game))


# -- SB3VecEnv --------------------------------------------------------------------------------------------

VIEWS = {
    "raw": (lambda env: env, lambda env: env),
    "decoded": (wrappers.DecodedMessage, wrappers.VectorDecodedMessage),
    "evidence": (wrappers.Evidence, wrappers.VectorEvidence),
    "matched": (wrappers.HypothesisFeatures, wrappers.VectorHypothesisFeatures),
}


def same(ours, theirs):
    assert type(ours) is type(theirs) or isinstance(ours, dict) == isinstance(theirs, dict)
    if isinstance(ours, dict):
        assert set(ours) == set(theirs)
        for key in ours:
            same(ours[key], theirs[key])
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    "game", [settings(horizon=7), settings("randomized-response", horizon=7, reveal=True)]
)
def test_games_in_lock_step_are_a_dummy_vec_env(view, game):
    single, vector = VIEWS[view]
    games = gym.make_vec("LDPDist-v0", num_envs=3, autoreset_mode="SameStep", **game)
    ours = SB3VecEnv(vector(wrappers.VectorMixtureAction(games)))
    theirs = DummyVecEnv([lambda: single(wrappers.MixtureAction(gym.make("LDPDist-v0", **game)))] * 3)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    rng = np.random.default_rng(0)
    for seed in (4, None):
        for env in (ours, theirs):
            env.seed(seed) if seed is not None else None
        same(ours.reset(), theirs.reset())
        assert ours.reset_infos == theirs.reset_infos
        for _ in range(17):
            actions = rng.uniform(-1, 1, (3, 4)).astype(np.float32)
            (seen, rewards, over, infos), expected = ours.step(actions), theirs.step(actions)
            same(seen, expected[0])
            np.testing.assert_allclose(rewards, expected[1], rtol=1e-5)
            assert rewards.dtype == expected[1].dtype
            np.testing.assert_array_equal(over, expected[2])
            assert over.dtype == expected[2].dtype
            for info, other in zip(infos, expected[3], strict=True):
                same(info, other)
            assert ours.reset_infos == theirs.reset_infos
            rewards[:] = 0.0  # SB3 writes into what it gets


def test_what_sb3_asks_of_its_games():
    games = gym.make_vec("LDPDist-v0", num_envs=2, autoreset_mode="SameStep", **settings())
    env = SB3VecEnv(wrappers.VectorEvidence(wrappers.VectorMixtureAction(games)))
    assert [game.horizon for game in env.get_attr("game")] == [40, 40]
    assert env.env_is_wrapped(wrappers.VectorEvidence) == [True, True]
    assert env.env_is_wrapped(wrappers.VectorSoftmaxAction, indices=[0]) == [False]
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
    with pytest.raises(ValueError, match='make the environment with autoreset_mode="SameStep", got'):
        SB3VecEnv(gym.make_vec("LDPDist-v0", num_envs=2))


# -- Networks and models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_plays_what_pytorch_trains(kind):
    game = Scenario(**settings()).game
    parameters = untrained(game, kind).parameters
    features = np.random.default_rng(0).standard_normal((9, *FEATURES[features_of(kind)](game).shape))
    tensors = {name: torch.tensor(array) for name, array in parameters.items()}
    np.testing.assert_allclose(
        network.logits(parameters, features),
        network.logits(tensors, torch.tensor(features)).numpy(),
        rtol=1e-9,
    )


@pytest.mark.parametrize("size", [4, 9])
def test_an_equivariant_network_renames_and_takes_any_number(size):
    parameters = untrained(Scenario(**settings()).game).parameters
    features = np.random.default_rng(0).standard_normal((3, size, 6))
    order = np.random.default_rng(1).permutation(size)
    logits = network.logits(parameters, features)
    assert logits.shape == (3, size)
    np.testing.assert_allclose(network.logits(parameters, features[:, order]), logits[:, order], rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channel", ["laplace-single", "laplace-vector", "split", "randomized-response"])
@pytest.mark.parametrize("more", [{}, {"hypotheses": "dirichlet", "horizon": 12}], ids=["contexts", "table"])
def test_a_model_keeps_the_learner_s_contract(kind, channel, more):
    game = settings(channel, **more)
    check_learner(untrained(Scenario(**game).game, kind), **game)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_plays_in_evaluate_as_its_network_does_through_the_wrappers(kind):
    """The features of training and of play are the same: equal losses on the same seed."""
    game = settings(horizon=30)
    env = gym.make("LDPDist-v0", **game)
    model = untrained(env.unwrapped.game, kind)
    view = wrappers.Evidence if kind == "flat" else wrappers.HypothesisFeatures
    seen, _ = (env := view(wrappers.MixtureAction(env, logit_range=50.0))).reset(seed=6)
    total = 0.0
    for _ in range(30):
        logits = network.logits(model.parameters, seen.astype(np.float64))
        logits -= logits.mean()
        seen, _, _, _, info = env.step(logits / 50.0)
        total += info["kl"]
    played = ldp_gym.evaluate(model, game, episodes=1, seed=6).kl[0, -1]
    np.testing.assert_allclose(played, total, rtol=1e-4)


def test_the_differentiable_loss_is_the_environment_s():
    rng = np.random.default_rng(0)
    candidates = rng.dirichlet(np.full(6, 0.2), size=(10, 4))
    candidates[:, :, 0] = 0.0  # a label that nobody allows
    candidates /= candidates.sum(axis=-1, keepdims=True)
    logits, truth = rng.standard_normal((10, 4)), candidates[:, 2]
    ours = charged(torch.tensor(logits), Rounds(*map(torch.tensor, (logits, candidates, truth))), 40)
    env = wrappers.MixtureAction(gym.make("LDPDist-v0", **settings()))
    weights = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    expected = kl(truth, env._view.clipping.smooth(weights, candidates))
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-6, atol=1e-9)


def test_a_stored_model_is_the_model(tmp_path):
    game = settings()
    model = untrained(Scenario(**game).game)
    model.save(tmp_path)
    for stored in (load(tmp_path), pickle.loads(pickle.dumps(load(str(tmp_path))))):
        assert isinstance(stored(Scenario(**game).game), ModelLearner)
        theirs, ours = (ldp_gym.evaluate(player, game, episodes=2).kl for player in (stored, model))
        np.testing.assert_allclose(theirs, ours, rtol=1e-4)  # stored in single precision
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 100_000
    with pytest.raises(FileNotFoundError, match=r"it has no model\.json"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("flat", {"num_hypotheses": 5}, r"trained for K 4 \(not 5\), class \w+ \(not"),
        ("flat", {"horizon": 41}, r"T 40 \(not 41\)"),
        ("flat", {"class_seed": 1}, r"trained for class \w+ \(not \w+\): train one"),
        ("equivariant", {"epsilon": 2.0}, r"trained for epsilon 1.0 \(not 2.0\): train one"),
        ("equivariant", {"channel": "split"}, r"channel LaplaceSingle \(not Split\)"),
        ("equivariant", {"channel_kwargs": {"calibration": "tight"}}, r"calibration paper \(not tight\)"),
    ],
)
def test_a_model_says_what_does_not_fit(kind, more, message):
    model = untrained(Scenario(**settings()).game, kind)
    with pytest.raises(ldp_agents.IncompatibleChannelError, match=message):
        model(Scenario(**settings(**more)).game)


def test_an_equivariant_model_plays_other_classes():
    model = untrained(Scenario(**settings()).game)
    for more in ({"num_hypotheses": 9}, {"num_labels": 3}, {"horizon": 90}, {"class_seed": 7}):
        check_learner(model, **settings(**more))


# -- Training, for seconds --------------------------------------------------------------------------------


def improves(player, game, share, episodes=200):
    """That the player's risk is below a share of the uniform mixture's; error rate 1e-6."""
    ours, uniform = (
        ldp_gym.evaluate(learner, game, episodes=episodes, seed=777).kl[:, -1]
        for learner in (player, "uniform")
    )
    gap = share * uniform - ours
    statistic = gap.mean() / (gap.std(ddof=1) / np.sqrt(episodes))
    assert statistic > student.isf(ALPHA, episodes - 1), (ours.mean(), uniform.mean())


SHORT = {
    "ppo": (16_384, {"num_envs": 32, "n_steps": 32, "batch_size": 512}, 0.8),
    "amortized": (100_000, {}, 0.5),
    "sac": (8_000, {"num_envs": 32, "batch_size": 128}, 0.8),
    "recurrent": (512, {"num_envs": 8, "n_steps": 16, "batch_size": 128, "memory": 8, "n_epochs": 1}, None),
}


@pytest.mark.parametrize("algorithm", SHORT)
def test_a_short_run_learns_and_is_stored(algorithm, tmp_path):
    """Below the stated share of uniform's risk; the recurrent one takes minutes for that, and only plays."""
    steps, options, share = SHORT[algorithm]
    trained = train(Config(algorithm, EASY, steps, settings=options), tmp_path, scores=2, episodes=4)
    if share is not None:
        improves(trained, EASY, share)
    player = pickle.loads(pickle.dumps(load(tmp_path)))
    theirs, ours = (ldp_gym.evaluate(one, EASY, episodes=3).kl for one in (player, trained))
    np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-3)
    check_learner(player, **EASY)
    with pytest.raises(ldp_agents.IncompatibleChannelError, match=r"epsilon 6.0 \(not 5.0\)"):
        player(Scenario(**{**EASY, "epsilon": 5.0}).game)
    card = json.loads((tmp_path / "config.json").read_text())
    assert card["config"]["algorithm"] == algorithm
    assert set(card["versions"]) >= {"python", "ldp-gym", "numpy", "torch", "stable-baselines3"}
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert scores[-1]["steps"] == steps
    assert scores[-1]["bayes"] <= scores[-1]["uniform"]
    assert list((tmp_path / "tensorboard").rglob("events*"))


@pytest.mark.parametrize("algorithm", ["ppo", "amortized", "recurrent", "sac"])
def test_a_stopped_run_goes_on(algorithm, tmp_path):
    _, options, _ = SHORT[algorithm]
    first, then = (6_000, 9_000) if algorithm == "amortized" else (1_024, 2_048)
    config = Config(algorithm, EASY, first, settings=options)
    train(config, tmp_path, scores=2, episodes=2)
    with pytest.raises(FileExistsError, match="holds a run already"):
        train(config, tmp_path)
    with pytest.raises(ValueError, match=r"has seed 0 \(not 1\)"):
        train(Config(algorithm, EASY, first, 1, options), tmp_path, resume=True)
    longer = Config(algorithm, EASY, then, settings=options)
    train(longer, tmp_path, resume=True, scores=2, episodes=2)
    steps = [json.loads(line)["steps"] for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert steps[-1] == then
    assert steps == sorted(steps)


def test_a_stored_policy_runs_no_code_beside_the_referee(tmp_path, monkeypatch):
    """Reading SB3's file unpickles what is in it: the benchmark leaves that to another process."""
    _, options, _ = SHORT["sac"]
    train(Config("sac", EASY, 1_024, settings=options), tmp_path / "sac", scores=1, episodes=2)
    cell = Entry(EASY, str(tmp_path / "sac"), episodes=2).cells(0)[0]
    expected = ldp_gym.evaluate(str(tmp_path / "sac"), EASY, episodes=2).kl

    def caught(*_):
        raise AssertionError("the policy was read in the referee's process")

    monkeypatch.setattr(StoredPolicy, "__call__", caught)
    outcome = play(cell)
    assert outcome.status == "done", outcome.message
    np.testing.assert_allclose(outcome.arrays["kl"], expected, rtol=1e-6)
    assert may_play_here(str(WEIGHTS_DIRECTORY / "ppo" / "laplace-single")), "numbers alone run no code"


def test_the_same_seed_trains_the_same_model(tmp_path):
    config = Config("amortized", EASY, 5_000)
    one, other = (train(config, tmp_path / name, scores=1, episodes=2) for name in ("a", "b"))
    for name, array in one.parameters.items():
        np.testing.assert_allclose(array, other.parameters[name], rtol=1e-5, atol=1e-7)


# -- What ships -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ppo", "amortized"])
def test_the_shipped_models_learn_the_default_game(algorithm):
    """At most 1.45 times Bayes where it learns at all; paired, error rate 1e-6."""
    assert "laplace-single" in models(algorithm)
    for channel, model in models(algorithm).items():
        game = {"channel": channel, "delta": 1e-5 if channel.endswith("-vector") else 0.0}
        assert model.card["config"]["algorithm"] == algorithm
        assert model.trained_on == facts(Scenario(**game).game)
        ours, bayes = (
            ldp_gym.evaluate(name, game, episodes=60, seed=50).kl[:, -1] for name in (algorithm, "bayes")
        )
        gap = ours - 1.45 * bayes
        assert gap.mean() < student.isf(ALPHA, 59) * gap.std(ddof=1) / np.sqrt(60)
        assert ours.mean() < 1.6 * bayes.mean()


def test_the_shipped_models_play_without_torch():
    code = """
import sys
sys.modules["torch"] = None
sys.modules["stable_baselines3"] = None
import ldp_agents, ldp_gym
for name in ("ppo", "amortized"):
    print(ldp_gym.evaluate(name, {"horizon": 20}, episodes=2).risk > 0)
assert not any(name.startswith(("torch.", "stable_baselines3.")) for name in sys.modules)
from typer.testing import CliRunner
from ldp_gym.cli import app
result = CliRunner().invoke(app, ["train", "ppo"], env={"COLUMNS": "200"})
print(result.exit_code, "pip install 'ldp-gym[rl]'" in result.output)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "2", "True"]


# -- The command ------------------------------------------------------------------------------------------


def run(*arguments):
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    return result.exit_code, re.sub(r"[\s│]+", " ", result.output)


def test_the_command_trains_and_resumes(tmp_path):
    given = ["train", "amortized", "--hypotheses", "dirichlet", "--num-hypotheses", "4", "--horizon", "20"]
    given += ["--channel", "split", "--steps", "5000", "--setting", "hidden=[8]", "--out", str(tmp_path)]
    code, output = run(*given)
    assert code == 0, output
    assert f"model: {tmp_path}" in output
    assert "uniform" in output
    assert "bayes" in output
    assert load(tmp_path)(Scenario(hypotheses="dirichlet", channel="split").game).model.parameters[
        "b0"
    ].shape == (8,)
    assert run(*given)[0] == 2
    assert run(*given, "--resume")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "pop"], "unknown algorithm 'pop'; known: ppo, amortized, recurrent, sac"),
        (["train", "ppo", "--channel", "laplace-singel"], "did you mean 'laplace-single'"),
        (["train", "ppo", "--channel", "adaptive-split"], "depends on the public posterior"),
        (["train", "ppo", "--steps", "0"], "greater than or equal to 1"),
        (
            ["train", "ppo", "--setting", "network=falt"],
            "network must be one of flat, equivariant, got 'falt'",
        ),
        (
            ["train", "ppo", "--setting", "nets=3"],
            "ppo has no setting 'nets'; it has network=equivariant, hidden",
        ),
        (["train", "ppo", "--setting", "hidden=abc"], "hidden must be a list of whole numbers"),
        (["train", "ppo", "--setting", "n_steps=0"], "n_steps must be at least 1, got 0"),
        (["train", "ppo", "--setting", "log_std=x"], "log_std must be a number, got 'x'"),
    ],
)
def test_bad_arguments_say_what_is_allowed(arguments, message, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code, output = run(*arguments, "--out", str(tmp_path / "run"))
    assert code == 2
    assert message in output
    assert not (tmp_path / "run").exists(), "the next try begins afresh"


def test_the_table_is_printed_and_kept(tmp_path, capsys):
    """One row at the least size: a line for every reference and learner, and nothing is trained twice."""
    from learned import main

    given = ["--rows", "4", "--steps", "1", "--episodes", "2", "--out", str(tmp_path)]
    main(given)
    first = capsys.readouterr().out
    names = [line.split("|")[2].strip() for line in first.splitlines()[2:]]
    assert [name.split(",")[0] for name in names] == [
        "uniform", "exp3", "centred-exp3", "centred-exp3", "bayes", "amortized", "ppo",
    ]  # fmt: skip
    main(given)
    assert capsys.readouterr().out == first
