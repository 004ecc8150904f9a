"""The single environment: rewards, truths, errors, extremes, and what must not leak."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import CHANNELS, NATURES, play, record, small_rules

import ldp_gym
from ldp_gym.core.divergences import kl, tv


def test_the_reward_is_the_capped_negative_kl(actions):
    env = gym.make("LDPDist-v0", **small_rules(reveal=True, max_loss=1.0))
    observation, info = env.reset(seed=0, options={"truth": 2})
    assert info == {"truth": 2}
    for action in actions[:, 0]:
        truth = env.unwrapped.game.hypotheses(observation["context"])[2]
        observation, reward, over, _, info = env.step(action)
        assert info["kl"] == pytest.approx(kl(truth, action), rel=1e-10)
        assert info["tv"] == pytest.approx(tv(truth, action), rel=1e-10)
        assert reward == -min(info["kl"], 1.0)
        assert info["truth"] == 2
        assert info["label"] in range(6)
    assert over


def test_what_is_returned_is_the_user_s_to_change(actions):
    envs, twins = (
        gym.make_vec("LDPDist-v0", num_envs=4, **small_rules(horizon=10)) for _ in range(2)
    )
    mask = np.array([True, False, False, False])
    for env in (envs, twins):
        env.reset(seed=0)
    for t in range(8):
        step, twin = envs.step(actions[t]), twins.step(actions[t])
        np.testing.assert_array_equal(step[1], twin[1])
        for array in (*step[0].values(), *step[1:4], *step[4].values()):
            array[...] = 1
        if t == 4:
            shown, twin_shown = (
                env.reset(options={"reset_mask": mask})[0] for env in (envs, twins)
            )
            np.testing.assert_array_equal(shown["message"], twin_shown["message"])


def test_a_seed_gives_the_same_episodes_whatever_is_drawn_between_them(actions):
    env, games = gym.make("LDPDist-v0", **small_rules()), []
    for draws in (0, 1000):
        games.append([])
        for seed in (5, None, None):
            games[-1].append([shown["message"] for shown in play(env, actions[:, 0], seed)[0]])
            env.unwrapped.np_random.random(draws)
    np.testing.assert_array_equal(*games)
    assert len({np.array(messages).tobytes() for messages in games[0]}) == 3


SUMS = {
    "adaptive-groups": -3.95088, "adaptive-split": 3.62585, "challenge": 5.66692,
    "gaussian-vector": 3.61158, "hadamard-response": 18.4914, "half-space": 0.131377, "hybrid": 51.4392,
    "identity": 2.23625, "laplace-single": -1.70478, "laplace-vector": 3.20113, "local-hashing": 1505.74,
    "one-bit": -13.3629, "randomized-response": 28.0957, "scheffe": -8.83699, "split": -3.39591,
    "subset-selection": -1.25753, "unary-encoding": -11.8125, "vote": 16.0947, "wheel": 3.55068,
}  # fmt: skip


@pytest.mark.parametrize("channel", SUMS)
def test_a_seed_keeps_its_game_under_an_id(channel):
    """A weighted sum of three episodes' messages, recorded: another game needs the id LDPDist-v1."""
    tape = record(small_rules(channel, "cycle"), 40, episodes=3, seed=7)[1]
    messages = np.reshape(tape.messages, (3, 40, -1)).astype(np.float64)
    weights = np.cos(np.arange(40.0)), np.sin(1.0 + np.arange(messages.shape[-1]))
    assert np.einsum("btk,t,k->", messages, *weights) == pytest.approx(SUMS[channel], rel=1e-5)


@pytest.mark.parametrize(
    ("channel", "nature"),
    [(channel, "iid") for channel in CHANNELS]
    + [("adaptive-split", "adversary")]
    + [("split", nature) for nature in NATURES if nature not in ("iid", "omniscient")],
)
def test_observations_depend_on_the_truth_only_through_the_message(channel, nature):
    """Two truths with the same coins: while their messages are the same, so is all that is shown.

    The hypotheses are close, so that runs of equal messages occur; each game is followed until they differ.
    """
    near = [[0.34, 0.33, 0.33], [0.33, 0.34, 0.33], [0.33, 0.33, 0.34]]
    pool = [[1.0, 0.0, 2.0], [0.5, 0.1, 0.3]]
    kwargs = {
        "sequence": {"contexts": pool * 6},
        "cycle": {"contexts": pool},
        "adversary": {"pool": pool},
    }
    rules = small_rules(
        channel, nature, hypotheses=near, num_hypotheses=3, num_labels=3, horizon=12
    )
    games = [
        gym.make("LDPDist-v0", **{**rules, "nature_kwargs": kwargs.get(nature)}) for _ in range(2)
    ]
    agreed = 0
    for seed in range(10):
        shown = [env.reset(seed=seed, options={"truth": j}) for j, env in enumerate(games)]
        assert shown[0][1] == shown[1][1] == {}
        for _ in range(12):
            np.testing.assert_array_equal(shown[0][0]["context"], shown[1][0]["context"])
            steps = [env.step(np.full(3, 1 / 3)) for env in games]
            assert all(set(step[4]) == {"kl", "tv"} for step in steps)
            if not np.array_equal(steps[0][0]["message"], steps[1][0]["message"]):
                break
            agreed += 1
            shown = [(step[0], {}) for step in steps]
    assert agreed > 20


def test_stepping_out_of_turn_and_wrong_resets_are_errors(actions):
    env = ldp_gym.LDPDistEnv(**small_rules(horizon=2))
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        env.step(actions[0, 0])
    env.reset(seed=0)
    env.step(actions[0, 0])
    env.step(actions[0, 0])
    with pytest.raises(gym.error.ResetNeeded, match="the game is over"):
        env.step(actions[0, 0])
    with pytest.raises(ValueError, match=r"unknown reset options \['truht'\]"):
        env.reset(options={"truht": 1})
    envs = ldp_gym.LDPDistVectorEnv(2, autoreset_mode="Disabled", **small_rules(horizon=2))
    with pytest.raises(gym.error.ResetNeeded, match=r"games \[0, 1\]"):
        envs.step(actions[0, :2])
    with pytest.raises(ValueError, match="seed must be a list of 2"):
        envs.reset(seed=[1, 2, 3])
    with pytest.raises(TypeError, match="reset_mask"):
        envs.reset(options={"reset_mask": [True, False]})
