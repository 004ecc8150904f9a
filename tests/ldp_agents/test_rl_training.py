"""Training, for seconds, and the command."""

import json
import pickle
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import baseline_agents
import baselines
import gymnasium as gym
import numpy as np
import pytest
import torch
from command_line import run_in_line as run
from helpers import assert_less, totals
from rl_helpers import EASY

import ldp_agents
import ldp_gym
from ldp_agents.rl import SB3VecEnv, amortized, load, training
from ldp_agents.rl.training import Config, train_agent
from ldp_gym.core import seed_ranges
from ldp_gym.engine.rules import Rules
from ldp_gym.testing import check_learner

pytestmark = pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.OutsideTrainingWarning")

SHORT = {
    "ppo": (8_192, {"n_steps": 32, "batch_size": 256, "learning_rate": 3e-3}, 0.6),
    "amortized": (100_000, {"channels": ["split", "laplace-single"], "cells": 100_000}, 0.5),
}
"""Steps and settings of short runs, and the share of uniform's total KL that they end below."""

TINY = Config("amortized", EASY, 6_000, settings=SHORT["amortized"][1])

RISK = SimpleNamespace(risk=1.0)


def tapped(function, tap):
    def call(*arguments):
        tap(*arguments)
        return function(*arguments)

    return call


def scores_in(directory):
    return [json.loads(line) for line in (directory / "scores.jsonl").read_text().splitlines()]


def test_a_run_trains_on_seeds_for_training_and_is_scored_on_others(tmp_path, monkeypatch):
    """Every episode of either algorithm: where it begins, and where evaluate plays it."""
    begun, scored = [], []
    monkeypatch.setattr(
        SB3VecEnv, "reset", tapped(SB3VecEnv.reset, lambda env: begun.extend(env._seeds))
    )
    monkeypatch.setattr(
        amortized, "first_generator", tapped(amortized.first_generator, begun.append)
    )
    score = lambda *_, episodes, seed: scored.append(range(seed, seed + episodes)) or RISK  # noqa: E731
    monkeypatch.setattr(ldp_gym, "evaluate", score)
    for algorithm, (_, options, _) in SHORT.items():
        out = tmp_path / algorithm
        train_agent(Config(algorithm, EASY, 2_048, settings=options), out, scores=2, episodes=4)
    assert len(begun) > 64
    assert all(seed in seed_ranges.TRAINING for seed in begun)
    assert all(
        one[0] in seed_ranges.VALIDATION and one[-1] in seed_ranges.VALIDATION for one in scored
    )


@pytest.mark.parametrize("algorithm", SHORT)
def test_a_short_run_learns_and_is_stored(algorithm, tmp_path):
    steps, options, share = SHORT[algorithm]
    trained = train_agent(
        Config(algorithm, EASY, steps, settings=options), tmp_path, scores=2, episodes=4
    )
    uniform = totals("uniform", EASY, 200, seed=777)
    assert_less(totals(trained, EASY, 200, seed=777), share * uniform)
    stored = pickle.loads(pickle.dumps(load(tmp_path, trust=True)))
    theirs, ours = (ldp_gym.evaluate(one, EASY, episodes=3).kl for one in (stored, trained))
    np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-3)
    check_learner(stored, **EASY)
    other = {**EASY, "epsilon": 5.0}
    if algorithm == "amortized":  # one network for every game
        check_learner(stored, **{**other, "num_hypotheses": 3})
    else:
        with pytest.raises(ldp_agents.IncompatibleChannelError, match=r"epsilon 6.0 \(not 5.0\)"):
            stored(Rules(**other).scenario().game)
    card = json.loads((tmp_path / "config.json").read_text())
    assert set(card["versions"]) >= {"python", "ldp-gym", "numpy", "torch", "stable-baselines3"}
    _, last = scores_in(tmp_path)
    assert last["steps"] == steps
    assert last["bayes"] <= last["uniform"]


@pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.NoPrivacyWarning")
def test_a_game_that_the_model_cannot_play_leaves_it_without_a_score(tmp_path):
    train_agent(replace(TINY, rules=EASY | {"channel": "identity"}), tmp_path, scores=1, episodes=2)
    assert {score["kl"] for score in scores_in(tmp_path)} == {None}
    assert load(tmp_path)(Rules(**EASY).scenario().game)


def test_what_is_not_a_model_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model\.json in .*nowhere, which save"):
        load(tmp_path / "nowhere")
    (tmp_path / "model.json").write_text(json.dumps({"trained_on": {}}))
    (tmp_path / "weights.npz").write_bytes(pickle.dumps([1]))
    with pytest.raises(ValueError, match="does not hold a model's weights"):
        load(tmp_path)
    (tmp_path / "model.json").write_text("[1]")
    with pytest.raises(ValueError, match="not the card of a model"):
        load(tmp_path)


def test_the_same_seed_trains_the_same_model_at_a_rate_that_falls_to_zero(tmp_path, monkeypatch):
    rates, steps, adam, recorder = [], [0], torch.optim.Adam, training._Recorder
    monkeypatch.setattr(
        adam, "step", tapped(adam.step, lambda own: rates.append(own.param_groups[0]["lr"]))
    )
    tap = tapped(recorder.__call__, lambda *given: steps.append(given[1]))
    monkeypatch.setattr(recorder, "__call__", tap)
    one = train_agent(TINY, tmp_path / "a", scores=1, episodes=2)
    assert len(rates) > 1
    assert rates == pytest.approx([4e-3 * (1.0 - played / TINY.steps) for played in steps[:-1]])
    other = train_agent(TINY, tmp_path / "b", scores=1, episodes=2)
    for name, array in one.parameters.items():
        np.testing.assert_allclose(array, other.parameters[name], rtol=1e-5, atol=1e-7)


def test_scores_do_not_change_the_training(tmp_path):
    ppo = Config("ppo", EASY, 4_096, settings={"n_steps": 32})
    made = [
        train_agent(ppo, tmp_path / str(scores), scores=scores, episodes=2) for scores in (1, 2)
    ]
    one, other = (ldp_gym.evaluate(each, EASY, episodes=3).kl for each in made)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("algorithm", "setting"), [("ppo", "n_steps=32"), ("amortized", "cells=100000")]
)
def test_a_stopped_run_leaves_the_model_of_its_last_score(
    algorithm, setting, tmp_path, monkeypatch
):
    monkeypatch.setattr(training._Recorder, "score", Mock(side_effect=KeyboardInterrupt))
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
    assert 0 < json.loads((tmp_path / "model.json").read_text())["config"]["steps"] < 6_000


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
    learner = load(tmp_path)(Rules(hypotheses="dirichlet", channel="split").scenario().game)
    assert learner.model.parameters["b0"].shape == (8,)
    code, output = run(*given)
    assert code == 2
    assert "holds a model already" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "pop"], "unknown algorithm 'pop'; known: ppo, amortized"),
        (["train", "ppo", "--channel", "laplace-singel"], "did you mean 'laplace-single'"),
        (["train", "ppo", "--channel", "ldp_gym.channels:Split"], "may only name registered parts"),
        (["train", "ppo", "--steps", "0"], "Invalid value for '--steps'"),
        (["train", "ppo", "--setting", "nets=3"], "ppo has no setting 'nets'; it has num_envs=64"),
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


def test_baselines_follow_their_protocol(monkeypatch):
    """Interquartile means over seeds; scores on the episodes for tests; memory only in the policy's state."""
    assert baselines.cell(np.array([0.5, 0.1, 0.9, 0.3, 9.0])).startswith("0.57 [")
    assert [baselines.cell(np.array(scores)) for scores in ([], [0.25])] == ["-", "0.25"]
    given, asked = iter([0.1, 0.7, 0.7, 0.1, 0.2, 0.3]), []
    monkeypatch.setattr(
        baselines,
        "score_policy",
        lambda policy, env, wrapper, **more: asked.append(more) or next(given),
    )
    agent = baselines.ENTRIES["clip(2 evidence, ±5)"].agent
    assert baselines.run("mine", agent, "easy", 3)["score"].tolist() == [0.7]
    assert asked == [{"episodes": 32, "seed": 1_000_000}, {"episodes": 128}, {"episodes": 128}]
    with pytest.raises(ValueError, match=r"scores 0.2 and then 0.3 on the same episodes"):
        baselines.run("mine", agent, "easy", 3)
    with pytest.raises(ValueError, match="must yield its trained policy"):
        baselines.run("mine", lambda env_id, seed: [], "easy", 0)


@pytest.mark.parametrize("env_id", ["LDPDistBox-memory-v0", "LDPDistBox-hard-v0"])
def test_pooling_plays_as_it_is_trained(env_id):
    """Step by step, with its sums as the state, and along a tape; the first round has the bias only."""
    model, rows = baseline_agents.Pooling(env_id), []
    games, state = gym.make_vec(env_id, 2), None
    seen, played = games.reset(seed=4)[0], []
    for _ in range(5):
        logits, state = model.predict(seen, state, np.zeros(2, dtype=bool))
        rows.append(seen)
        played.append(logits)
        seen = games.step(logits)[0]
    with torch.no_grad():
        along = model.logits(
            torch.cumsum(model.read_rows(torch.from_numpy(np.stack(rows))), dim=0)
        ).numpy()
    np.testing.assert_allclose(played, along, atol=1e-6)
    np.testing.assert_allclose(played[0], model.logits.bias.detach().expand(2, -1).numpy())
    again, _ = model.predict(rows[0], state, np.ones(2, dtype=bool))
    np.testing.assert_allclose(again, played[0])
