"""Training, for seconds, and the command."""

import json
import pickle
import re
import warnings
import zipfile

import numpy as np
import pytest
from command_line import run_in_line as run
from helpers import ALPHA
from rl_helpers import EASY
from scipy.stats import t as student

import ldp_agents
import ldp_gym
from ldp_agents.rl import Config, load
from ldp_agents.rl.ppo import Settings, make_games
from ldp_agents.rl.training import train
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.runner import play
from ldp_gym.core.errors import UntrustedCodeError
from ldp_gym.engine.scenario import Scenario
from ldp_gym.testing import check_learner

pytestmark = pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.OutsideTrainingWarning")


def improves(model, rules, share, episodes=200):
    """That the model's risk is below a share of the uniform mixture's; error rate 1e-6."""
    ours, uniform = (
        ldp_gym.evaluate(learner, rules, episodes=episodes, seed=777).kl[:, -1]
        for learner in (model, "uniform")
    )
    gap = share * uniform - ours
    statistic = gap.mean() / (gap.std(ddof=1) / np.sqrt(episodes))
    assert statistic > student.isf(ALPHA, episodes - 1), (ours.mean(), uniform.mean())


SHORT = {
    "ppo": (10_000, {"num_envs": 4, "n_steps": 32, "batch_size": 256, "channels": ["split"]}, 0.8),
    "amortized": (200_000, {"channels": ["split", "laplace-single"], "cells": 100_000}, 0.5),
    "sac": (8_000, {"num_envs": 32, "batch_size": 128}, 0.8),
    "recurrent": (512, {"num_envs": 8, "n_steps": 16, "batch_size": 128, "memory": 8, "n_epochs": 1}, None),
}
GENERAL = ("ppo", "amortized")
"""They train on games of their own, and play any."""


@pytest.mark.parametrize("algorithm", SHORT)
def test_a_short_run_learns_and_is_stored(algorithm, tmp_path):
    """Below the stated share of uniform's risk; the recurrent one takes minutes for that, and only plays."""
    steps, options, share = SHORT[algorithm]
    trained = train(Config(algorithm, EASY, steps, settings=options), tmp_path, scores=2, episodes=4)
    if share is not None:
        improves(trained, EASY, share)
    stored = pickle.loads(pickle.dumps(load(tmp_path, trust=True)))
    theirs, ours = (ldp_gym.evaluate(one, EASY, episodes=3).kl for one in (stored, trained))
    np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-3)
    check_learner(stored, **EASY)
    if algorithm in GENERAL:
        check_learner(stored, **{**EASY, "epsilon": 5.0, "num_hypotheses": 3})
    else:
        with pytest.raises(ldp_agents.IncompatibleChannelError, match=r"epsilon 6.0 \(not 5.0\)"):
            stored(Scenario(**{**EASY, "epsilon": 5.0}).game)
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
    if algorithm in ("sac", "recurrent"):  # which have kept a checkpoint of code by now
        with pytest.raises(UntrustedCodeError, match="resume with --trust"):
            train(longer, tmp_path, resume=True)
    with (tmp_path / "scores.jsonl").open("a") as file:
        file.write('{"steps": 99, "cpu_sec')  # torn
    train(longer, tmp_path, resume=True, trust=True, scores=2, episodes=2)
    steps = [json.loads(line)["steps"] for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert steps[-1] == then
    assert steps == sorted(steps)


def test_a_stored_policy_is_read_only_with_trust(tmp_path):
    """Reading SB3's file runs the code that is pickled in it."""
    _, options, _ = SHORT["sac"]
    train(Config("sac", EASY, 1_024, settings=options), tmp_path / "sac", scores=1, episodes=2)
    with pytest.raises(UntrustedCodeError, match="runs whatever code it holds"):
        ldp_gym.evaluate(str(tmp_path / "sac"), EASY, episodes=2)
    expected = ldp_gym.evaluate(load(tmp_path / "sac", trust=True), EASY, episodes=2).kl
    cell = Experiment(EASY, str(tmp_path / "sac"), episodes=2).cells(0)[0]
    assert "UntrustedCodeError" in play(cell).message
    np.testing.assert_allclose(play(cell, trust=True).evaluation.kl, expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.NoPrivacyWarning")
def test_a_game_that_the_model_cannot_play_leaves_it_without_a_score(tmp_path):
    rules = {"hypotheses": "disjoint", "num_hypotheses": 4, "channel": "identity", "horizon": 40}
    train(Config("amortized", rules, 6_000, settings=SHORT["amortized"][1]), tmp_path, scores=2, episodes=2)
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [score["kl"] for score in scores] == [None] * len(scores)
    assert scores[-1]["bayes"] >= 0.0
    assert load(tmp_path)(Scenario(**EASY).game)


def test_what_cannot_be_trained_leaves_its_directory_for_another_try(tmp_path):
    with pytest.raises(ValueError, match="depends on the public posterior"):
        train(Config("sac", {**EASY, "channel": "adaptive-split"}, steps=10), tmp_path)
    train(Config("amortized", EASY, steps=1), tmp_path, scores=1, episodes=2)
    assert load(tmp_path)


def test_a_damaged_checkpoint_does_not_stop_a_run(tmp_path):
    config = Config("amortized", EASY, 6_000, settings=SHORT["amortized"][1])
    train(config, tmp_path, scores=2, episodes=2)
    content = (tmp_path / "checkpoint.zip").read_bytes()
    (tmp_path / "checkpoint.zip").write_bytes(content[: len(content) // 2])
    train(config, tmp_path, resume=True, scores=2, episodes=2)
    assert (tmp_path / "checkpoint.damaged").read_bytes() == content[: len(content) // 2]
    assert not list(tmp_path.glob(".part-*"))
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        train(config, tmp_path, resume=True)


def test_what_is_no_model_is_refused_before_it_is_unpacked(tmp_path):
    card = {"evidence": "weights", "trained_on": {}}
    (tmp_path / "model.json").write_text(json.dumps(card))
    with (
        zipfile.ZipFile(tmp_path / "weights.npz", "w", zipfile.ZIP_DEFLATED) as packed,
        packed.open("w0.npy", "w", force_zip64=True) as member,
    ):
        for _ in range(300):
            member.write(bytes(2**20))
    with pytest.raises(ValueError, match="unpacks to 314,572,800 bytes"):
        load(tmp_path)
    (tmp_path / "weights.npz").write_bytes(pickle.dumps([1]))
    with pytest.raises(ValueError, match="no zip file"):
        load(tmp_path)
    (tmp_path / "model.json").write_text("[1]")
    with pytest.raises(ValueError, match="no model's card"):
        load(tmp_path)


def test_the_same_seed_trains_the_same_model(tmp_path):
    config = Config("amortized", EASY, 5_000, settings=SHORT["amortized"][1])
    one, other = (train(config, tmp_path / name, scores=1, episodes=2) for name in ("a", "b"))
    for name, array in one.parameters.items():
        np.testing.assert_allclose(array, other.parameters[name], rtol=1e-5, atol=1e-7)


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
        (["train", "pop"], "unknown algorithm 'pop'; known: ppo, amortized, any-truth, recurrent, sac"),
        (["train", "ppo", "--channel", "laplace-singel"], "did you mean 'laplace-single'"),
        (["train", "ppo", "--channel", "adaptive-splits"], "did you mean 'adaptive-split'"),
        (["train", "ppo", "--steps", "0"], "Invalid value for '--steps'"),
        (
            ["train", "ppo", "--setting", "channels=[1]"],
            'channels must be a list of names, such as ["laplace-single","split"], got [1]',
        ),
        (
            ["train", "ppo", "--setting", "nets=3"],
            "ppo has no setting 'nets'; it has num_envs=32, n_steps=4",
        ),
        (["train", "ppo", "--setting", "hidden=abc"], "hidden must be a list of whole numbers"),
        (["train", "ppo", "--setting", "n_steps=0"], "n_steps must be at least 1, got 0"),
        (["train", "ppo", "--setting", "log_std=x"], "log_std must be a number, got 'x'"),
        (
            ["train", "ppo", "--setting", "copies=1"],
            "copies must be at least 2, because what the others earn",
        ),
        (["train", "ppo", "--setting", "num_envs=6"], "a multiple of them; got copies=4, num_envs=6"),
        (["train", "amortized", "--setting", "split=tran"], "unknown split 'tran'; known: train, familiar"),
        (["train", "sb3"], "'sb3' goes on with what ldp_agents.rl.save() has left: name its directory"),
    ],
)
def test_bad_arguments_say_what_is_allowed(arguments, message, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code, output = run(*arguments, "--out", str(tmp_path / "run"))
    assert code == 2
    assert message in output
    assert not (tmp_path / "run").exists(), "the next try starts from nothing"


def test_the_baseline_of_a_copy_is_what_the_others_earn():
    """Six eps, two episodes of each in three copies; each game has a unit of its own."""
    env = make_games(Settings(num_envs=6, copies=3, channels=("split",)))
    env.seed(0)
    seen = env.reset().reshape(6, 2, 3, -1)
    np.testing.assert_array_equal(seen, seen[:, :, :1].repeat(3, axis=2))
    _, advantages, _, _ = env.step(np.zeros((36, 8)))
    np.testing.assert_allclose(advantages, 0.0, atol=1e-6)  # all did the same
    _, advantages, _, infos = env.step(np.random.default_rng(0).uniform(-1.0, 1.0, (36, 8)))
    costs = np.array([info["kl"] for info in infos]).reshape(6, 2, 3)
    first, second, third = np.moveaxis(costs, 2, 0)
    gains = np.stack(
        [(second + third) / 2 - first, (first + third) / 2 - second, (first + second) / 2 - third], axis=2
    )
    units = (advantages.reshape(6, 2, 3) / gains).reshape(6, 6)
    np.testing.assert_allclose(units, units[:, :1].repeat(6, axis=1), rtol=1e-3)
    assert (units > 0.0).all()


def test_a_split_alone_is_what_it_was_trained_on(tmp_path):
    trained = train(
        Config("amortized", EASY, 20_000, settings={"split": "train", "cells": 300_000}),
        tmp_path,
        scores=1,
        episodes=2,
    )
    assert trained.trained_on == {
        "classes": ["dirichlet", "softmax-linear"],
        "channels": ["laplace-single", "randomized-response", "split"],
        "epsilon": [1.0, 4.0],
        "K": [4, 16],
        "M": [8, 32],
        "T": [300, 1000],
    }


def test_the_table_is_printed_and_kept(tmp_path, capsys, monkeypatch):
    """One row at the least size: a cell for every eps and seed, and nothing is trained twice."""
    import learned

    monkeypatch.setattr(learned, "FOR_SIZES", ("split",))
    monkeypatch.setattr(learned, "SIZES", ((2, 2, 100),))
    given = ["--tables", "sizes", "--agents", "amortized", "--steps", "1", "--seeds", "2"]
    given += ["--episodes", "2", "--out", str(tmp_path)]
    learned.main(given)
    first = capsys.readouterr().out
    assert re.search(r"split, K = 2, M = 2, T = 100 \| amortized \|( [\d.]+, [\d.]+ ± [\d.]+ \|){4}", first)
    assert re.search(r"sizes, amortized: worst [\d.]+, mean [\d.]+", first)
    learned.main(given)
    assert capsys.readouterr().out == first
