"""What the tests share: small games, and how to play and to record them."""

import pickle
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from scipy import stats

import ldp_gym
from ldp_gym.channels.base import Channel
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import build_learner
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import first_generator
from ldp_gym.engine.tape import Episodes, Tape

ALPHA = 1e-6
"""The probability with which a statistical test of correct code fails."""

CHANNELS = list(ldp_gym.CHANNELS)
PURE = [name for name in CHANNELS if ldp_gym.CHANNELS[name].pure and name != "identity"]
READABLE = [name for name in CHANNELS if not ldp_gym.CHANNELS[name].adaptive]
FINITE = [name for name in PURE if name not in ("laplace-single", "hybrid", "wheel")]
LOSSLESS = {name for name in CHANNELS if not ldp_gym.CHANNELS[name].reveals_losses}
FREE_OF_NUM_LABELS = [name for name in CHANNELS if ldp_gym.CHANNELS[name].free_of_num_labels]

TABLE = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.8, 0.0], [0.0, 0.9, 0.1, 0.0]])
"""Three hypotheses; the last label is one that none allows."""

BLIND = np.array([[0.2, 0, 0.8], [0, 0.2, 0.8], [0.5, 0.5, 0]])
"""The third hypothesis dominates the labels in which the first two differ."""

PLAIN = np.random.default_rng(5).dirichlet(np.full(6, 0.5), size=4)
DEGENERATE = {
    "plain": PLAIN,
    "blind": BLIND,
    "two labels": np.random.default_rng(6).dirichlet(np.ones(2), size=9),
    "duplicates": PLAIN[[0, 0, 1, 1, 2]],
    "zero column": np.insert(PLAIN, 2, 0.0, axis=1),
    "equal column": np.concatenate([0.5 * PLAIN, np.full((4, 1), 0.5)], axis=1),
    "all equal": np.full((3, 4), 0.25),
    "a mixture of the others": np.concatenate([PLAIN, PLAIN.mean(axis=0, keepdims=True)]),
    "disjoint": np.eye(4),
}
"""Tables in which hypotheses or labels coincide or depend on each other, and one in which none do."""

HARD = np.concatenate(
    [BLIND, [[0.04 - 0.005 * i, 0.04 - 0.005 * i, 0.92 + 0.01 * i] for i in range(5)]]
)
"""Eight hypotheses, of which the paper's comparisons tell two apart never, and others hardly."""

NATURES = {
    "iid": {},
    "drift": {"rate": 0.3},
    "cycle": {"pool_size": 5},
    "sequence": {"contexts": np.random.default_rng(7).standard_normal((40, 3)).tolist()},
    "adversary": {"pool_size": 6},
    "omniscient": {"pool_size": 6},
}
"""Options of every nature, for the small game."""

HYPOTHESES: dict[str, dict[str, Any]] = {"softmax-linear": {}, "dirichlet": {}, "disjoint": {}}
HYPOTHESES |= {"refined": {"hypotheses_kwargs": {"parts": 2}}}
"""Rules of every class that comes in any size."""


class Stepwise:
    """The uniform mixture with nothing but the three methods of the protocol."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        self.batch_shape = batch_shape

    def predict(self, candidates: np.ndarray) -> np.ndarray:
        mixed = candidates.mean(axis=-2)
        return np.broadcast_to(mixed, (*self.batch_shape, mixed.shape[-1])).copy()

    def update(self, candidates: np.ndarray, message: np.ndarray) -> None:
        pass


def delta_of(channel: str) -> float:
    return 1e-5 if channel.endswith("-vector") else 0.0


def small_rules(
    channel: str = "laplace-single", nature: str = "iid", **more: object
) -> dict[str, Any]:
    """The rules of a small game with contexts that matter: K = 4, M = 6, d = 3, T = 40."""
    rules = {
        "channel": channel,
        "delta": delta_of(channel),
        "nature": nature,
        "nature_kwargs": NATURES[nature],
        "num_hypotheses": 4,
        "num_labels": 6,
        "context_dim": 3,
        "horizon": 40,
    }
    return {**rules, **more}


def make_channel(
    name: str, num_hypotheses: int, num_labels: int, horizon: int, **options: object
) -> Channel:
    maker = ldp_gym.CHANNELS[name]
    return maker(num_hypotheses, num_labels, horizon, **{"delta": delta_of(name), **options})


def play(
    env: gym.Env, actions: np.ndarray, seed: int | None = None
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """One episode of a single environment: the observations and the rewards."""
    observations, rewards, over = [env.reset(seed=seed)[0]], [], False
    while not over:
        observation, reward, over, truncated, _ = env.step(actions[len(rewards)])
        assert not truncated
        observations.append(observation)
        rewards.append(reward)
    return observations, np.array(rewards)


def assert_same(ours: Any, theirs: Any, rtol: float = 1e-12) -> None:
    """Check that two values or dicts of values agree, in their types too."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key in theirs:
            assert_same(ours[key], theirs[key], rtol)
    else:
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=min(rtol, 1e-6))


def assert_same_infos(ours: dict[str, Any], theirs: dict[str, Any], rtol: float) -> None:
    """Check that the infos of two vector environments have the same values under the same masks."""
    assert all(key in theirs or not np.any(ours[f"_{key}"]) for key in ours if f"_{key}" in ours)
    for key in (key for key in theirs if f"_{key}" in theirs):
        mask = theirs[f"_{key}"]
        np.testing.assert_array_equal(ours[f"_{key}"], mask)
        if key == "final_obs":
            for one, other in zip(ours[key][mask], theirs[key][mask], strict=True):
                assert_same(one, other, rtol)
        elif isinstance(theirs[key], dict):
            assert_same_infos(ours[key], theirs[key], rtol)
        else:
            values = np.asarray(ours[key])[mask], theirs[key][mask]
            np.testing.assert_allclose(*values, rtol=min(rtol, 1e-9), atol=1e-12)


def assert_same_games(native: Any, sync: Any, actions: np.ndarray, rtol: float = 1e-12) -> None:
    """Check that a vector environment plays as a SyncVectorEnv does, through the ends of games.

    It is pickled on the way, and some games start over before their end. Observations agree to ``rtol``,
    rewards and infos also to 1e-9.
    """

    def both(method: str, *arguments: Any, **options: Any) -> Any:
        results = [getattr(envs, method)(*arguments, **deepcopy(options)) for envs in games]
        assert_same(results[0][0], results[1][0], rtol)
        for ours, theirs in zip(results[0][1:-1], results[1][1:-1], strict=True):
            assert_same(ours, theirs, min(rtol, 1e-9))
        assert_same_infos(results[0][-1], results[1][-1], rtol)
        return results[0]

    games = [native, sync]
    assert native.single_observation_space == sync.single_observation_space
    assert native.single_action_space == sync.single_action_space
    both("reset", seed=[11 + 7 * game for game in range(native.num_envs)])
    both("reset", seed=11)
    assert (
        native.unwrapped.np_random_seed
        == sync.np_random_seed
        == tuple(range(11, 11 + native.num_envs))
    )
    for t, action in enumerate(actions):
        if t == 2:
            games[0] = pickle.loads(pickle.dumps(native))
        if t == 3:
            both("reset", seed=50, options={"reset_mask": np.arange(native.num_envs) % 2 == 0})
        over = both("step", action)[2]
        if over.any() and native.metadata["autoreset_mode"] is AutoresetMode.DISABLED:
            both("reset", options={"reset_mask": over})


def infos_of(learner: Any, env: Any, seed: int) -> list[dict[str, Any]]:
    """The infos of an episode in which a learner acts on the observations, in games single or vector."""
    player, infos = build_learner(learner, env.unwrapped.game), []
    observation, _ = env.reset(seed=seed)
    for _ in range(player.game.horizon):
        observation, _, _, _, info = env.step(player.act(observation))
        infos.append(info)
    return infos


def total_kl(learner: Any, env: Any, seed: int) -> Any:
    """The total KL of a learner in an episode, or in each game of a vector environment."""
    return sum(info["kl"] for info in infos_of(learner, env, seed))


def make_episodes(rules: dict[str, Any], episodes: int = 1, seed: int = 0) -> Episodes:
    """The first episodes of environments that are reset with seed, seed + 1, ..."""
    scenario = Rules(**rules).scenario()
    generators = [first_generator(seed + i) for i in range(episodes)]
    return Episodes(scenario, scenario.start_episodes(generators))


def record(
    rules: dict[str, Any], rounds: int | None = None, episodes: int = 1, seed: int = 0
) -> tuple[Game, Tape]:
    """A game, and a tape of its first rounds, or of all."""
    made = make_episodes(rules, episodes, seed)
    return made.scenario.game, made.play(made.scenario.horizon if rounds is None else rounds)


def listed_law(
    channel: Channel, table: np.ndarray, public: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The listed messages of a channel, and their probabilities given each label, ``(N, M)``."""
    listed = channel.list_messages(table, public)
    log_density = channel.log_density(listed.messages, table, public)
    return listed.messages, np.exp(log_density + listed.log_weights[:, None])


def clipped_by_hand(
    table: np.ndarray, horizon: int, rule: str = "continuous"
) -> tuple[np.ndarray, np.ndarray]:
    """Section 4 written out: ``pbar_k(y)``, ``(K, M)``, and the lengths of the cells, ``(M,)``."""
    lengths = table.shape[1] * table.max(axis=0)
    if rule == "paper":
        lengths = np.ceil(lengths - 1e-9)
    with np.errstate(invalid="ignore"):
        return (1 - 1 / horizon) * table / lengths + 1 / (horizon * lengths.sum()), lengths


def totals(learner: Any, rules: dict[str, Any], episodes: int, seed: int = 0) -> np.ndarray:
    """The total KL of a learner in each of its first episodes, ``(episodes,)``."""
    return ldp_gym.evaluate(learner, rules, episodes=episodes, seed=seed).kl[:, -1]


def with_each_bit_flipped(content: bytes) -> Iterator[bytes]:
    """Yield the bytes with their first bit flipped, then with the second one, and so on."""
    for place in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        yield bytes(damaged)


def is_running(process: int) -> bool:
    """Tell if a process of this number runs: one that is gone or only waits to be buried does not."""
    try:
        return (
            "(Z)"
            not in Path(f"/proc/{process}/status").read_text().split("State:")[1].splitlines()[0]
        )
    except OSError:
        return False


def assert_less(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Check that paired samples show a smaller mean, by Student's test at error rate ALPHA."""
    assert stats.ttest_rel(ours, theirs, alternative="less").pvalue < ALPHA, (
        ours.mean(),
        theirs.mean(),
    )
