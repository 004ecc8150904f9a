"""The baselines of docs/train.md: their protocol, their files, and their agents."""

import json
from types import SimpleNamespace

import baseline_agents
import baselines
import gymnasium as gym
import numpy as np
import pytest
import torch
from baselines import EPISODES, AgentFile, References, Run

from ldp_agents.rl import SB3VecEnv, score_policy
from ldp_gym.statistics import score_of_runs

RNG = np.random.default_rng(0)
BAYES = RNG.gamma(4.0, 5.0, size=EPISODES)
UNIFORM = BAYES + RNG.gamma(9.0, 10.0, size=EPISODES)
REFERENCES = References(UNIFORM, BAYES)


def run_scoring(score, seed=0, rounds=100):
    """A run on *easy* whose total has this score in every episode."""
    totals = (UNIFORM - score * (UNIFORM - BAYES)).tolist()
    return Run("easy", seed, rounds, 1.5, totals, [])


def test_a_cell_is_the_interquartile_mean_with_its_interval():
    runs = [run_scoring(score) for score in (0.5, 0.1, 0.9, 0.3, 9.0)]
    totals = np.array([run.totals for run in runs])
    estimate = score_of_runs(UNIFORM, totals, BAYES)
    assert baselines.cell(runs, REFERENCES).startswith("0.57 [")
    assert baselines.cell(runs, REFERENCES).endswith(f", {estimate.high:.2f}]")


def test_a_score_without_an_interval_stands_alone():
    assert baselines.cell([run_scoring(0.25)], REFERENCES) == "0.25"


def test_a_game_without_runs_has_an_empty_cell():
    assert baselines.cell([], REFERENCES) == "-"


def test_a_row_has_the_largest_cost_of_the_games():
    file = AgentFile("mine", "reward", {}, [run_scoring(0.5), run_scoring(0.7, 1, 2_000)])
    made = baselines.row(file, dict.fromkeys(baselines.GAMES, REFERENCES))
    assert made["easy"].startswith("0.60 [")
    assert made["hard"] == "-"
    assert (made["seeds"], made["rounds"], made["CPU s"]) == ("2", "2,000", "2")


def test_rules_that_do_not_learn_cost_nothing():
    file = AgentFile("rule", "-", {}, [run_scoring(0.5, rounds=0)])
    made = baselines.row(file, dict.fromkeys(baselines.GAMES, REFERENCES))
    assert (made["seeds"], made["rounds"], made["CPU s"]) == ("-", "-", "-")


def test_a_file_is_read_as_it_was_written(tmp_path):
    file = AgentFile("mine", "reward", {"ldp-gym": "0.1"}, [run_scoring(0.5)])
    file.write(tmp_path / "mine.json")
    assert AgentFile.read(tmp_path / "mine.json") == file


@pytest.mark.parametrize(
    "change",
    [{"game": "chess"}, {"totals": [1.0]}, {"totals": [float("nan")] * 128}, {"speed": 1}],
)
def test_a_file_with_another_content_is_refused(change, tmp_path):
    path = tmp_path / "mine.json"
    AgentFile("mine", "reward", {}, [run_scoring(0.5)]).write(path)
    content = json.loads(path.read_text())
    content["runs"][0] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"mine\.json is not a file of this program"):
        AgentFile.read(path)


def test_the_files_of_others_follow_ours(tmp_path):
    for name in ("zebra", "PPO", "ant", "uniform mixture"):
        AgentFile(name, "-", {}, []).write(tmp_path / baselines.file_name(name))
    (tmp_path / "references.json").write_text("{}")
    names = [file.agent for file in baselines.read_files(tmp_path)]
    assert names == ["uniform mixture", "PPO", "ant", "zebra"]


@pytest.fixture
def scores(monkeypatch):
    """Scores that are handed out in turn, and what was asked for."""
    given = []
    asked = []

    class Score(float):
        totals = np.zeros(EPISODES)

    def score_by_turns(policy, env, wrapper, **options):
        asked.append(options)
        return Score(given.pop(0))

    monkeypatch.setattr(baselines, "score_policy", score_by_turns)
    return SimpleNamespace(given=given, asked=asked)


def test_an_agent_is_scored_twice_on_the_test_episodes(scores):
    scores.given += [0.1, 0.7, 0.7]
    run = baselines.train_and_score("mine", baseline_agents.evidence_rule, "easy", 3)
    assert [point.score for point in run.curve] == [0.1]
    assert scores.asked == [{"episodes": 32, "seed": 1_000_000}, *[{"episodes": 128}] * 2]


def test_a_policy_that_remembers_outside_of_its_state_is_refused(scores):
    scores.given += [0.1, 0.2, 0.3]
    with pytest.raises(ValueError, match=r"scores 0.2 and then 0.3 on the same episodes"):
        baselines.train_and_score("mine", baseline_agents.evidence_rule, "easy", 3)


def test_an_agent_must_yield_its_policy():
    with pytest.raises(ValueError, match="must yield its trained policy"):
        baselines.train_and_score("mine", lambda env_id, seed: [], "easy", 0)


def test_the_command_writes_the_file_of_a_users_agent(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "from baseline_agents import evidence_rule as train  # no training at all\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(baselines, "GAMES", {"easy": "LDPDistBox-easy-v0"})
    baselines.main(
        ["--agent", "mine:train", "--games", "easy", "--seeds", "1", "--out", str(tmp_path)]
    )
    file = AgentFile.read(tmp_path / "mine-train.json")
    assert (file.agent, len(file.runs)) == ("mine:train", 1)
    assert "1.00 [1.00, 1.00]" in capsys.readouterr().out


@pytest.mark.parametrize("game", ["easy", "medium"])
def test_the_games_of_evidence_are_one_scalar(game):
    """No training: the evidence times one number."""
    env_id = baselines.GAMES[game]
    (trained,) = baseline_agents.evidence_rule(env_id, 0)
    score = score_policy(trained.policy, env_id, episodes=EPISODES)
    assert 0.995 < score.low < score.high < 1.005


# -- Agents ---------------------------------------------------------------------------------------


def raw_rows(env_id, rounds):
    """Rows of two games in which nobody predicts anything."""
    games = gym.make_vec(env_id, 2)
    rows = [games.reset(seed=4)[0]]
    for _ in range(rounds - 1):
        rows.append(games.step(np.zeros(games.action_space.shape))[0])
    return np.stack(rows)


@pytest.mark.parametrize("env_id", ["LDPDistBox-memory-v0", "LDPDistBox-hard-v0"])
def test_pooling_plays_as_it_is_trained(env_id):
    """Step by step, with its sums as the state, and along a tape."""
    model = baseline_agents.Pooling(env_id)
    rows = raw_rows(env_id, 5)
    with torch.no_grad():
        summands = model.read_rows(torch.from_numpy(rows))
        along = model.logits(torch.cumsum(summands, dim=0)).numpy()
    state = None
    for t in range(5):
        logits, state = model.predict(rows[t], state, np.zeros(2, dtype=bool))
        np.testing.assert_allclose(logits, along[t], atol=1e-6)


def test_pooling_begins_with_its_bias_and_forgets_an_episode():
    model = baseline_agents.Pooling("LDPDistBox-hard-v0")
    rows = raw_rows("LDPDistBox-hard-v0", 3)
    first, state = model.predict(rows[0])
    np.testing.assert_allclose(first, model.logits.bias.detach().expand(2, -1).numpy())
    _, state = model.predict(rows[1], state, np.zeros(2, dtype=bool))
    again, _ = model.predict(rows[0], state, np.ones(2, dtype=bool))
    np.testing.assert_allclose(again, first)


def test_a_sum_of_products_is_the_sum_of_outer_products():
    """By hand: context s and message s stand in row s + 1; it starts anew with an episode."""
    env_id = "LDPDistBox-hard-v0"
    plain = SB3VecEnv(gym.make_vec(env_id, 2, autoreset_mode="SameStep", horizon=4))
    shown = SB3VecEnv(gym.make_vec(env_id, 2, autoreset_mode="SameStep", horizon=4))
    summed = baseline_agents.SumOfProducts(shown)
    for env in (plain, summed):
        env.seed(3)
    rows = plain.reset()
    sums = summed.reset()
    expected = np.zeros((2, 5, 16))
    for t in range(1, 7):
        np.testing.assert_allclose(sums[:, 0], rows[:, 0])
        np.testing.assert_allclose(sums[:, 1:], expected.reshape(2, -1) / 2.0, atol=1e-6)
        actions = np.zeros((2, 8), dtype=np.float32)
        rows, _, over, plain_infos = plain.step(actions)
        sums, _, _, infos = summed.step(actions)
        last = (
            rows if not over.all() else np.stack([i["terminal_observation"] for i in plain_infos])
        )
        numbers = np.concatenate([np.ones((2, 1)), last[:, 5:9]], axis=1)
        expected = expected + numbers[:, :, None] * last[:, 9:][:, None, :]
        if over.all():
            final = np.stack([info["terminal_observation"] for info in infos])
            np.testing.assert_allclose(final[:, 1:], expected.reshape(2, -1) / 2.0, atol=1e-6)
            expected = np.zeros((2, 5, 16))
        assert over.all() == (t == 4)
