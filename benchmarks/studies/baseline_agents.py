"""Agents of benchmarks/studies/baselines.py: rules that do not learn, PPO, and memories that work.

An agent is a generator: called with the id of a game and a training seed it trains, and yields its
policy now and then, as :class:`Trained`. A policy is an algorithm of stable-baselines3, or any
object with its ``predict(observations, state, episode_start, deterministic)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from torch import nn

from ldp_agents.rl import make_sb3_env
from ldp_agents.rl.sb3 import make_algorithm
from ldp_agents.rl.settings import settings_of
from ldp_gym.core.seed_ranges import TRAINING
from ldp_gym.engine.scenario import Scenario, first_generator
from ldp_gym.engine.tape import Episodes

POINTS = 5
"""Number of times that a policy is scored in training."""


class Trained(NamedTuple):
    """A policy after some training: rounds that it has played, and the wrappers around its games."""

    rounds: int
    policy: Any
    wrapper: Callable[[VecEnv], VecEnv] | None = None


Agent = Callable[[str, int], Iterator[Trained]]
"""From the id of a game and a training seed to policies, the last of which is the trained one."""


# -- Rules that do not learn ----------------------------------------------------------------------


class Rule:
    """Policy that is a function of the observation and of the sum of all observations so far."""

    def __init__(self, logits: Callable[[Any, Any], Any]) -> None:
        self.logits = logits

    def predict(
        self,
        observations: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        total = observations
        if state is not None:
            goes_on = 1.0 - episode_start[:, None]
            total = observations + state * goes_on
        return self.logits(observations, total), total


def uniform(env_id: str, seed: int) -> Iterator[Trained]:
    """The uniform mixture."""
    num_hypotheses = gym.make(env_id).action_space.shape[0]
    yield Trained(0, Rule(lambda seen, total: np.zeros((len(seen), num_hypotheses))))


EVIDENCE_FACTORS = {"LDPDistBox-easy-v0": 12.0, "LDPDistBox-medium-v0": 4.0}
"""The one number of :func:`evidence_rule`, chosen for each game."""


def evidence_rule(env_id: str, seed: int) -> Iterator[Trained]:
    """Logits c * evidence, moved so that the largest is +5, and clipped at -5."""
    factor = EVIDENCE_FACTORS[env_id]

    def logits(seen: Any, total: Any) -> Any:
        evidence = seen[:, :-1]
        behind = evidence - evidence.max(axis=1, keepdims=True)
        return np.maximum(5.0 + factor * behind, -5.0)

    yield Trained(0, Rule(logits))


def sum_rule(env_id: str, seed: int) -> Iterator[Trained]:
    """Logits that are -0.3 times the sum of the messages of ``split``, which end a raw row."""
    num_hypotheses = gym.make(env_id).action_space.shape[0]
    yield Trained(0, Rule(lambda seen, total: -0.3 * total[:, -num_hypotheses:]))


# -- Algorithms of stable-baselines3 --------------------------------------------------------------


def learn(model: Any, rounds: int, wrapper: Any = None) -> Iterator[Trained]:
    """Train a model of stable-baselines3, and yield it at each point."""
    for point in range(POINTS):
        model.learn(rounds // POINTS, reset_num_timesteps=point == 0)
        yield Trained(model.num_timesteps, model, wrapper)


def ppo(env_id: str, seed: int) -> Iterator[Trained]:
    """PPO on the observations as they are."""
    settings = settings_of("ppo")
    env = make_sb3_env(env_id, settings["n_envs"])
    model = make_algorithm("ppo", env, settings, seed)
    yield from learn(model, settings["n_timesteps"])


class SumOfProducts(VecEnvWrapper):
    """Shows t / T and the sum of (1, context) x message over the rounds so far, over sqrt(T).

    A raw row has t / T, this round's context, the last context, and the message about it.
    """

    def __init__(self, venv: VecEnv) -> None:
        scenario: Scenario = venv.get_attr("scenario")[0]
        self._dim = scenario.hypotheses.context_dim
        num_messages = venv.observation_space.shape[0] - 1 - 2 * self._dim
        width = 1 + (1 + self._dim) * num_messages
        super().__init__(venv, gym.spaces.Box(-np.inf, np.inf, (width,), dtype=np.float32))
        self._scale = np.float32(1.0 / math.sqrt(scenario.horizon))
        self._sums = np.zeros((venv.num_envs, width - 1), dtype=np.float32)

    def _products(self, rows: Any) -> Any:
        """Products of the last context and the last message, ``(..., width - 1)``."""
        contexts = rows[..., 1 + self._dim : 1 + 2 * self._dim]
        messages = rows[..., 1 + 2 * self._dim :]
        numbers = np.concatenate([np.ones_like(contexts[..., :1]), contexts], axis=-1)
        products = numbers[..., :, None] * messages[..., None, :]
        return self._scale * products.reshape(*rows.shape[:-1], -1)

    def _show(self, rows: Any, sums: Any) -> Any:
        return np.concatenate([rows[..., :1], sums], axis=-1)

    def reset(self) -> Any:
        rows = self.venv.reset()
        self._sums = self._products(rows)
        return self._show(rows, self._sums)

    def step_wait(self) -> Any:
        rows, rewards, over, infos = self.venv.step_wait()
        for game in np.flatnonzero(over):
            last_row = infos[game]["terminal_observation"]
            last_sums = self._sums[game] + self._products(last_row)
            infos[game]["terminal_observation"] = self._show(last_row, last_sums)
        self._sums[over] = 0.0
        self._sums = self._sums + self._products(rows)
        return self._show(rows, self._sums), rewards, over, infos


def sum_of_products_ppo(env_id: str, seed: int) -> Iterator[Trained]:
    """PPO on the running sum of (1, context) x message, with the settings of PPO."""
    settings = settings_of("ppo")
    env = SumOfProducts(make_sb3_env(env_id, settings["n_envs"]))
    model = make_algorithm("ppo", env, settings, seed)
    yield from learn(model, settings["n_timesteps"], SumOfProducts)


def chrono_recurrent_ppo(env_id: str, seed: int) -> Iterator[Trained]:
    """RecurrentPPO, an LSTM of 32 units whose gates start at memories of 1 to T rounds.

    Actor and critic share the LSTM. Forget biases are log U(1, T - 1), and input biases their
    negatives (Tallec and Ollivier 2018).
    """
    size = 32
    settings = settings_of("recurrent-ppo")
    env = make_sb3_env(env_id, settings["n_envs"])
    memory = {"lstm_hidden_size": size, "shared_lstm": True, "enable_critic_lstm": False}
    model = make_algorithm("recurrent-ppo", env, settings, seed, policy_kwargs=memory)

    lstm = model.policy.lstm_actor
    horizon = env.get_attr("game")[0].horizon
    with torch.no_grad():
        forget_biases = torch.log(torch.empty(size).uniform_(1.0, horizon - 1.0))
        # PyTorch stacks the biases of the input gate, the forget gate, the cell and the output.
        lstm.bias_hh_l0[: 2 * size] = 0.0
        lstm.bias_ih_l0[:size] = -forget_biases
        lstm.bias_ih_l0[size : 2 * size] = forget_biases
    yield from learn(model, settings["n_timesteps"])


# -- Learned pooling ------------------------------------------------------------------------------


class Pooling(nn.Module):
    """Logits that are linear in a sum over rounds of a learned function of a context and its message.

    The function is a layer of rectified units on the products of the numbers of a message with
    those of (1, context), so that what a context means may change with the message. The sum is
    divided by sqrt(T).
    """

    def __init__(self, env_id: str, width: int = 128) -> None:
        super().__init__()
        env: Any = gym.make(env_id).unwrapped
        self.dim = env.scenario.hypotheses.context_dim
        self.message_dim = env.observation_space.shape[0] - 1 - 2 * self.dim
        self.scale = 1.0 / math.sqrt(env.game.horizon)
        self.units = nn.Linear((self.dim + 1) * self.message_dim, width)
        self.logits = nn.Linear(width, env.game.num_hypotheses)
        with torch.no_grad():  # start near the uniform mixture
            self.logits.weight *= 0.1

    def read(self, contexts: torch.Tensor, messages: torch.Tensor) -> torch.Tensor:
        """The summands of contexts ``(..., d)`` and the messages about them."""
        numbers = torch.cat([torch.ones_like(contexts[..., :1]), contexts], dim=-1)
        products = numbers[..., :, None] * messages[..., None, :]
        return self.scale * torch.relu(self.units(products.flatten(-2)))

    def read_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """The summands of raw rows; a row of round 0 has no message."""
        about_last_round = rows[..., 1 + self.dim :]
        contexts, messages = about_last_round.split([self.dim, self.message_dim], dim=-1)
        has_message = rows[..., :1] > 0.0
        return self.read(contexts, messages) * has_message

    def predict(
        self,
        observations: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """The logits of B games, and their sums, as stable-baselines3 does it."""
        with torch.no_grad():
            total = self.read_rows(torch.from_numpy(observations))
            if state is not None:
                goes_on = torch.from_numpy(~episode_start[:, None])
                total = total + state * goes_on
            return self.logits(total).numpy(), total


@dataclass(frozen=True)
class GradientSettings:
    """Settings of :func:`pooling_by_gradient`: Adam on the KL of the first rounds of fresh episodes."""

    episodes: int = 32
    rounds: int = 500
    updates: int = 1500
    learning_rate: float = 5e-3  # falls linearly to zero


class PoolingBatch(NamedTuple):
    """Rounds of several episodes, in single precision."""

    contexts: torch.Tensor  # (B, n, d)
    messages: torch.Tensor  # (B, n, ...), one-hot if they are names
    candidates: torch.Tensor  # (B, n, K, M)
    truth: torch.Tensor  # (B, n, M)


def pooling_by_gradient(env_id: str, seed: int) -> Iterator[Trained]:
    """Learned pooling, trained by the gradient of the KL, which only a simulator knows."""
    settings = GradientSettings()
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    model = Pooling(env_id)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    scenario: Scenario = gym.make(env_id).unwrapped.scenario  # type: ignore[attr-defined]

    for update in range(1, settings.updates + 1):
        remaining = 1.0 - update / settings.updates
        optimizer.param_groups[0]["lr"] = settings.learning_rate * remaining
        batch = _draw_batch(scenario, settings, rng)
        loss = _mean_kl(model, batch)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if update % (settings.updates // POINTS) == 0:
            yield Trained(update * settings.episodes * settings.rounds, model)


def _draw_batch(
    scenario: Scenario, settings: GradientSettings, rng: np.random.Generator
) -> PoolingBatch:
    """The first rounds of fresh episodes."""
    seeds = rng.integers(TRAINING.start, TRAINING.stop, settings.episodes).tolist()
    starts = scenario.start_episodes([first_generator(seed) for seed in seeds])
    tape = Episodes(scenario, starts).play(settings.rounds)
    messages = tape.messages
    if isinstance(scenario.channel.message_space, gym.spaces.Discrete):
        messages = np.eye(int(scenario.channel.message_space.n))[messages]
    arrays = (tape.contexts, messages, tape.candidates, tape.distributions)
    return PoolingBatch(*(torch.from_numpy(array.astype(np.float32)) for array in arrays))


def _mean_kl(model: Pooling, batch: PoolingBatch) -> torch.Tensor:
    """Mean KL of a round."""
    summands = model.read(batch.contexts, batch.messages)
    sums_before = torch.cumsum(summands, dim=1) - summands
    weights = torch.softmax(model.logits(sums_before), dim=-1)
    predictions = torch.einsum("bnk,bnkm->bnm", weights, batch.candidates)
    terms = torch.xlogy(batch.truth, batch.truth) - torch.xlogy(batch.truth, predictions)
    return terms.sum(dim=-1).mean()
