"""Networks of benchmarks/studies/planning.py: the order of contexts, hypotheses and labels."""

import gymnasium as gym
import numpy as np
import planning
import torch


def rows_of(env_id, **rules):
    """Observations of three games after a few random actions."""
    games = gym.make_vec(env_id, 3, horizon=20, **rules)
    rows, _ = games.reset(seed=2)
    games.action_space.seed(0)
    for _ in range(5):
        rows = games.step(games.action_space.sample())[0]
    return rows


def test_scores_of_contexts_move_with_the_contexts():
    rows = rows_of("LDPNature-v0", num_hypotheses=4, pool_size=6)
    network = planning.PerContext(4)
    order = np.array([3, 0, 5, 1, 2, 4])
    losses, information = rows[:, 9:15], rows[:, 15:]
    moved = np.concatenate([rows[:, :9], losses[:, order], information[:, order]], axis=1)
    with torch.no_grad():
        expected = network(torch.from_numpy(rows))[:, order]
        np.testing.assert_allclose(network(torch.from_numpy(moved)), expected, atol=1e-5)


def test_coefficients_move_with_the_hypotheses_and_not_with_the_labels():
    rows = rows_of("LDPAskMeta-v0", num_hypotheses=4, num_labels=6)
    network = planning.PerHypothesis(4)
    hypotheses = np.array([2, 0, 3, 1])
    labels = np.array([5, 1, 0, 3, 2, 4])
    tables = rows[:, 9:].reshape(3, 4, 6)[:, hypotheses][:, :, labels]
    moved = np.concatenate(
        [
            rows[:, :4][:, hypotheses],
            rows[:, 4:8][:, hypotheses],
            rows[:, 8:9],
            tables.reshape(3, -1),
        ],
        axis=1,
    )
    with torch.no_grad():
        expected = network(torch.from_numpy(rows))[:, hypotheses]
        np.testing.assert_allclose(network(torch.from_numpy(moved)), expected, atol=1e-5)


def test_a_policy_of_either_network_is_trained_a_little():
    settings = {"n_envs": 4, "n_steps": 8, "batch_size": 32}
    trainer = planning.Trainer("PPO", "LDPNature-v0", 64, settings, lambda: planning.PerContext(8))
    model = planning.train(trainer, seed=0)
    actions, _ = model.predict(rows_of("LDPNature-v0"), deterministic=True)
    assert actions.shape == (3,)
    assert isinstance(model.policy.network, planning.PerContext)
