"""Training, for seconds, and the command."""

import json
import pickle
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from command_line import run_in_line as run
from helpers import assert_less, totals
from rl_helpers import EASY

import ldp_agents
import ldp_gym
from ldp_agents.rl import SB3VecEnv, amortized, load, score_policy, training
from ldp_agents.rl.settings import algorithms, settings_of
from ldp_agents.rl.storage import read_model
from ldp_agents.rl.training import Config, train_agent
from ldp_gym.core import seed_ranges
from ldp_gym.core.files import pack_arrays
from ldp_gym.engine.rules import Rules
from ldp_gym.statistics import score_totals
from ldp_gym.testing import check_learner

pytestmark = pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.OutsideTrainingWarning")

SHORT = {
    "ppo": (8_192, {"n_steps": 32, "batch_size": 256, "learning_rate": 3e-3}, 0.6),
    "a2c": (16_384, {"n_steps": 8}, 0.8),
    "sac": (3_000, {"n_envs": 16, "batch_size": 64}, 0.8),
    "amortized": (100_000, {"channels": ["split", "laplace-single"], "cells": 100_000}, 0.5),
}
"""Steps and settings of short runs, and the share of uniform's total KL that they end below."""

TINY = Config("amortized", EASY, 6_000, settings=SHORT["amortized"][1])


def tapped(function, tap):
    def call(*arguments):
        tap(*arguments)
        return function(*arguments)

    return call


def scores_in(directory):
    return [json.loads(line) for line in (directory / "scores.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def episodes_of_runs(tmp_path_factory):
    """Seeds of the episodes that short runs train on, and ranges of those that they are scored on."""
    begun = []
    scored = []

    def score(*_, episodes, seed):
        scored.append(range(seed, seed + episodes))
        return SimpleNamespace(kl=np.ones((episodes, 1)))

    reset = tapped(SB3VecEnv.reset, lambda env: begun.extend(env._seeds))
    first_generator = tapped(amortized.first_generator, begun.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SB3VecEnv, "reset", reset)
        patch.setattr(amortized, "first_generator", first_generator)
        patch.setattr(ldp_gym, "evaluate", score)
        for algorithm in ("ppo", "amortized"):
            config = Config(algorithm, EASY, 2_048, settings=SHORT[algorithm][1])
            train_agent(config, tmp_path_factory.mktemp(algorithm), scores=2, episodes=4)
    return SimpleNamespace(begun=begun, scored=scored)


def test_a_run_trains_on_seeds_for_training(episodes_of_runs):
    assert len(episodes_of_runs.begun) > 64
    assert all(seed in seed_ranges.TRAINING for seed in episodes_of_runs.begun)


def test_a_run_is_scored_on_other_seeds_on_the_way_and_at_the_end(episodes_of_runs):
    on_the_way = [seeds for seeds in episodes_of_runs.scored if len(seeds) == 4]
    at_the_end = [seeds for seeds in episodes_of_runs.scored if len(seeds) == 128]
    assert len(on_the_way) + len(at_the_end) == len(episodes_of_runs.scored)
    for seeds in on_the_way:
        assert seeds[0] in seed_ranges.VALIDATION
        assert seeds[-1] in seed_ranges.VALIDATION
    for seeds in at_the_end:
        assert seeds[0] in seed_ranges.TEST
        assert seeds[-1] in seed_ranges.TEST


@pytest.fixture(scope="module", params=SHORT)
def short_run(request, tmp_path_factory):
    """Algorithm of a short run, its directory, what it returned, and the share to end below."""
    steps, options, share = SHORT[request.param]
    directory = tmp_path_factory.mktemp(request.param)
    config = Config(request.param, EASY, steps, settings=options)
    trained = train_agent(config, directory, scores=2, episodes=4)
    return SimpleNamespace(
        algorithm=request.param, steps=steps, directory=directory, trained=trained, share=share
    )


def test_a_short_run_learns(short_run):
    ours = totals(short_run.trained.learner, EASY, 200, seed=777)
    uniform = totals("uniform", EASY, 200, seed=777)
    assert_less(ours, short_run.share * uniform)


def test_a_run_ends_with_the_score_of_its_model(short_run):
    score = short_run.trained.score
    ours = totals(short_run.trained.learner, EASY, 128, seed=500_000)
    uniform = totals("uniform", EASY, 128, seed=500_000)
    bayes = totals("bayes", EASY, 128, seed=500_000)
    np.testing.assert_allclose(score.totals, ours)
    assert float(score) == pytest.approx(score_totals(uniform, ours, bayes))


def test_a_stored_run_plays_as_the_model(short_run):
    stored = pickle.loads(pickle.dumps(load(short_run.directory, trust=True)))
    theirs = ldp_gym.evaluate(stored, EASY, episodes=3).kl
    ours = ldp_gym.evaluate(short_run.trained.learner, EASY, episodes=3).kl
    np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-3)


def test_a_stored_run_keeps_the_contract_of_learners(short_run):
    check_learner(load(short_run.directory, trust=True), **EASY)


def test_a_network_plays_other_games_and_a_policy_refuses_them(short_run):
    stored = load(short_run.directory, trust=True)
    other = {**EASY, "epsilon": 5.0}
    if short_run.algorithm == "amortized":
        check_learner(stored, **{**other, "num_hypotheses": 3})
        return
    with pytest.raises(ldp_agents.IncompatibleChannelError, match=r"epsilon 6.0 \(not 5.0\)"):
        stored(Rules.of(other).scenario().game)


def test_a_run_stores_all_its_settings_and_the_versions_of_packages(short_run):
    config = json.loads((short_run.directory / "config.json").read_text())
    versions = {"python", "ldp-gym", "numpy", "torch", "stable-baselines3"}
    assert set(config["versions"]) >= versions
    settings = config["config"]["settings"]
    assert settings.keys() == settings_of(short_run.algorithm).keys()
    assert settings["n_timesteps"] == short_run.steps


def test_the_last_score_of_a_run_is_of_its_last_round(short_run):
    _, last = scores_in(short_run.directory)
    assert last["steps"] == short_run.steps
    assert last["bayes"] <= last["uniform"]


RAW = {"n_steps": 16, "batch_size": 64}


@pytest.fixture(scope="module")
def raw_run(tmp_path_factory):
    """Directory of a short run of PPO on raw messages, and what it returned."""
    directory = tmp_path_factory.mktemp("raw")
    config = Config("ppo", EASY, 2_048, settings=RAW, observation="message")
    trained = train_agent(config, directory, scores=2, episodes=16)
    return SimpleNamespace(directory=directory, trained=trained)


def test_a_policy_of_raw_messages_is_trained_and_scored(raw_run):
    assert raw_run.trained.learner is None
    assert len(raw_run.trained.score.totals) == 128
    _, last = scores_in(raw_run.directory)
    assert last["kl"] > 0.0


def test_a_policy_of_raw_messages_can_be_scored_again(raw_run):
    model = load(raw_run.directory, trust=True).algorithm
    score = score_policy(model, episodes=128, observation="message", **EASY)
    assert float(score) == pytest.approx(float(raw_run.trained.score), abs=1e-4)


def test_a_policy_of_raw_messages_is_no_learner(raw_run):
    make_learner = load(raw_run.directory, trust=True)
    with pytest.raises(ldp_agents.IncompatibleChannelError, match="reads raw messages"):
        make_learner(Rules.of(EASY).scenario().game)


def test_amortized_takes_no_observation():
    with pytest.raises(ValueError, match="amortized is a learner"):
        Config("amortized", EASY, 100, observation="message")


def test_every_algorithm_of_the_file_can_be_trained():
    assert set(training.trainers()) == set(algorithms())


@pytest.mark.parametrize(
    ("setting", "value"),
    [("batch_size", 1), ("gamma", 7.0), ("gamma", -0.1), ("learning_rate", 0.0)],
)
def test_settings_that_cannot_train_are_refused(setting, value):
    with pytest.raises(ValueError, match=setting):
        Config("ppo", EASY, 100, settings={setting: value})


@pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.NoPrivacyWarning")
def test_a_game_that_the_model_cannot_play_leaves_it_without_a_score(tmp_path):
    train_agent(replace(TINY, rules=EASY | {"channel": "identity"}), tmp_path, scores=1, episodes=2)
    assert {score["kl"] for score in scores_in(tmp_path)} == {None}
    assert load(tmp_path)(Rules(**EASY).scenario().game)


def test_a_directory_without_a_model_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model\.ldp in .*nowhere, which save"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps([1]), "it does not hold arrays"),
        (pack_arrays({}, {"trained_on": {}})[:-1], "its checksum is wrong"),
        (pack_arrays({}, {"trained_on": [1]}), "trained_on must be a dict"),
        (pack_arrays({}, {}), "trained_on must be a dict"),
    ],
)
def test_what_is_not_a_model_is_refused(tmp_path, content, message):
    (tmp_path / "model.ldp").write_bytes(content)
    with pytest.raises(ValueError, match=f"model.ldp is not a model: {message}"):
        load(tmp_path)


def test_the_same_seed_trains_the_same_model_at_a_rate_that_falls_to_zero(tmp_path, monkeypatch):
    rates, steps, adam, recorder = [], [0], torch.optim.Adam, training._Progress
    monkeypatch.setattr(
        adam, "step", tapped(adam.step, lambda own: rates.append(own.param_groups[0]["lr"]))
    )
    tap = tapped(recorder.__call__, lambda *given: steps.append(given[1]))
    monkeypatch.setattr(recorder, "__call__", tap)
    one = train_agent(TINY, tmp_path / "a", scores=1, episodes=2).learner
    assert len(rates) > 1
    assert rates == pytest.approx([4e-3 * (1.0 - played / TINY.steps) for played in steps[:-1]])
    other = train_agent(TINY, tmp_path / "b", scores=1, episodes=2).learner
    for name, array in one.parameters.items():
        np.testing.assert_allclose(array, other.parameters[name], rtol=1e-5, atol=1e-7)


def test_scores_do_not_change_the_training(tmp_path):
    ppo = Config("ppo", EASY, 4_096, settings={"n_steps": 32})
    once = train_agent(ppo, tmp_path / "once", scores=1, episodes=2)
    twice = train_agent(ppo, tmp_path / "twice", scores=2, episodes=2)
    np.testing.assert_array_equal(once.score.totals, twice.score.totals)


@pytest.mark.parametrize(
    ("algorithm", "setting"), [("ppo", "n_steps=32"), ("amortized", "cells=100000")]
)
def test_a_stopped_run_leaves_the_model_of_its_last_score(
    algorithm, setting, tmp_path, monkeypatch
):
    monkeypatch.setattr(training._Progress, "score", Mock(side_effect=KeyboardInterrupt))
    given = [
        "--hypotheses",
        "disjoint",
        "--channel",
        "split",
        "--horizon",
        "40",
        "--setting",
        setting,
    ]
    code, output = run("train", algorithm, *given, "--steps", "6000", "--out", tmp_path)
    assert code == 130
    assert f"Stopped. {tmp_path} holds the model of the last score" in output
    load(tmp_path, trust=True)(
        Rules(hypotheses="disjoint", channel="split", horizon=40).scenario().game
    )
    assert 0 < read_model(tmp_path).card["config"]["steps"] < 6_000


def test_the_command_trains(tmp_path):
    rules = "--hypotheses dirichlet --rule num_hypotheses=4 --horizon 20 --channel split"
    given = [
        "train",
        "amortized",
        *rules.split(),
        "--setting",
        "hidden=[8]",
        "--out",
        str(tmp_path),
    ]
    code, output = run(*given, "--steps", "5000")
    assert code == 0, output
    assert f"model: {tmp_path}" in output
    assert "on 128 test episodes: 0 is the uniform mixture, 1 is Bayes" in output
    learner = load(tmp_path)(Rules(hypotheses="dirichlet", channel="split").scenario().game)
    assert learner.model.parameters["b0"].shape == (8,)
    code, output = run(*given)
    assert code == 2
    assert "holds a model already" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train", "pop"],
            "unknown algorithm 'pop'; known: ppo, a2c, sac, recurrent-ppo, amortized",
        ),
        (["train", "ppo", "--channel", "laplace-singel"], "did you mean 'laplace-single'"),
        (["train", "ppo", "--channel", "ldp_gym.channels:Split"], "may only name registered parts"),
        (["train", "ppo", "--steps", "0"], "Invalid value for '--steps'"),
        (
            ["train", "ppo", "--setting", "nets=3"],
            "ppo has no setting 'nets'; it has policy=MlpPolicy, n_envs=64",
        ),
        (
            ["train", "amortized", "--setting", "channels=[1]"],
            "must be a list such as ['laplace-single'",
        ),
        (["train", "amortized", "--setting", 'channels=["splt"]'], "did you mean 'split'"),
        (
            ["train", "amortized", "--setting", "hidden=[8, 0]"],
            "width in hidden must be at least 1, got 0",
        ),
    ],
)
def test_bad_arguments_say_what_is_allowed(arguments, message, tmp_path):
    code, output = run(*arguments, "--out", str(tmp_path / "run"))
    assert code == 2
    assert message in output
    assert not (tmp_path / "run").exists(), "the next try starts from nothing"
