"""The network of benchmarks/studies/planning.py, for which contexts have no order."""

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


def test_a_policy_of_the_network_is_trained_a_little():
    settings = {"n_envs": 4, "n_steps": 8, "batch_size": 32}
    trainer = planning.Trainer("PPO", "LDPNature-v0", 64, settings, lambda: planning.PerContext(8))
    model = planning.train(trainer, seed=0)
    actions, _ = model.predict(rows_of("LDPNature-v0"), deterministic=True)
    assert actions.shape == (3,)
    assert isinstance(model.policy.network, planning.PerContext)
