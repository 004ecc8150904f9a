"""Agents of benchmarks/studies/baselines.py: rules that do not learn, PPO, and memories that work.

An agent is a generator: called with the id of a game and a training seed it trains, and yields its policy now
and then, as :class:`Trained`. A policy is an algorithm of stable-baselines3, or any object with its
``predict(observations, state, episode_start, deterministic)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from torch import nn

from ldp_agents.rl import make_sb3_env
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


# -- Rules that do not learn --------------------------------------------------------------------------------


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
        begins = np.ones(len(observations)) if state is None else episode_start
        total = observations + (0.0 if state is None else state * (1.0 - begins[:, None]))
        return self.logits(observations, total), total


def uniform(env_id: str, seed: int) -> Iterator[Trained]:
    """The uniform mixture."""
    num_hypotheses = gym.make(env_id).action_space.shape[0]
    yield Trained(0, Rule(lambda seen, total: np.zeros((len(seen), num_hypotheses))))


def evidence_rule(env_id: str, seed: int) -> Iterator[Trained]:
    """Logits that are twice the evidence, at most 5."""
    yield Trained(0, Rule(lambda seen, total: np.clip(2.0 * seen[:, :-1], -5.0, 5.0)))


def sum_rule(env_id: str, seed: int) -> Iterator[Trained]:
    """Logits that are -0.3 times the sum of the messages of ``split``, which end a raw row."""
    num_hypotheses = gym.make(env_id).action_space.shape[0]
    yield Trained(0, Rule(lambda seen, total: -0.3 * total[:, -num_hypotheses:]))


# -- Algorithms of stable-baselines3 ------------------------------------------------------------------------

SETTINGS = {"gamma": 0.0, "n_steps": 64, "batch_size": 1024, "n_epochs": 5, "learning_rate": 1e-3}
"""Settings of PPO and RecurrentPPO on 64 games at once; everything else is the library's default."""


def learn(model: Any, rounds: int, seed: int, wrapper: Any = None) -> Iterator[Trained]:
    """Train a model of stable-baselines3, and yield it at each point."""
    for i in range(POINTS):
        model.learn(rounds // POINTS, reset_num_timesteps=i == 0)
        yield Trained(model.num_timesteps, model, wrapper)


def ppo(env_id: str, seed: int) -> Iterator[Trained]:
    """PPO on the observations as they are."""
    model = PPO("MlpPolicy", make_sb3_env(env_id, 64), **SETTINGS, device="cpu", seed=seed)
    yield from learn(model, 150_000, seed)


class RunningSum(VecEnvWrapper):
    """Appends the sum of all observations of the episode, divided by sqrt(T), to each observation."""

    def __init__(self, venv: VecEnv) -> None:
        width = venv.observation_space.shape[0]
        super().__init__(venv, gym.spaces.Box(-np.inf, np.inf, (2 * width,), dtype=np.float32))
        self._scale = np.float32(1.0 / math.sqrt(venv.get_attr("game")[0].horizon))
        self._total = np.zeros((venv.num_envs, width), dtype=np.float32)

    def _append(self, observations: Any) -> Any:
        self._total += observations * self._scale
        return np.concatenate([observations, self._total], axis=-1)

    def reset(self) -> Any:
        self._total[:] = 0.0
        return self._append(self.venv.reset())

    def step_wait(self) -> Any:
        observations, rewards, over, infos = self.venv.step_wait()
        for i in np.flatnonzero(over):
            last = infos[i]["terminal_observation"]
            infos[i]["terminal_observation"] = np.append(last, self._total[i] + last * self._scale)
        self._total[over] = 0.0
        return self._append(observations), rewards, over, infos


def running_sum_ppo(env_id: str, seed: int) -> Iterator[Trained]:
    """PPO with the running sum of the observations."""
    env = RunningSum(make_sb3_env(env_id, 64))
    yield from learn(
        PPO("MlpPolicy", env, **SETTINGS, device="cpu", seed=seed), 160_000, seed, RunningSum
    )


def chrono_recurrent_ppo(env_id: str, seed: int) -> Iterator[Trained]:
    """RecurrentPPO, an LSTM of 32 shared with the critic, whose gates start at memories of 1 to T rounds.

    Forget biases are log U(1, T - 1), and input biases their negatives (Tallec and Ollivier 2018).
    """
    env = make_sb3_env(env_id, 64)
    memory = {"lstm_hidden_size": 32, "shared_lstm": True, "enable_critic_lstm": False}
    model = RecurrentPPO(
        "MlpLstmPolicy", env, **SETTINGS, policy_kwargs=memory, device="cpu", seed=seed
    )
    lstm = model.policy.lstm_actor
    with torch.no_grad():
        forget = torch.log(torch.empty(32).uniform_(1.0, env.get_attr("game")[0].horizon - 1.0))
        lstm.bias_hh_l0[:64] = 0.0
        lstm.bias_ih_l0[:64] = torch.cat([-forget, forget])  # input gate, forget gate
    yield from learn(model, 213_000, seed)


# -- Learned pooling ----------------------------------------------------------------------------------------


class Pooling(nn.Module):
    """Logits that are linear in a sum over rounds of a learned function of a context and its message.

    The function is a layer of rectified units on the products of the numbers of a message with those of
    (1, context), so that what a context means may change with the message. The sum is divided by sqrt(T).
    """

    def __init__(self, env_id: str, width: int = 128) -> None:
        super().__init__()
        env: Any = gym.make(env_id).unwrapped
        self.dim, horizon = env.scenario.hypotheses.context_dim, env.game.horizon
        self.message_dim = env.observation_space.shape[0] - 1 - 2 * self.dim
        self.scale = 1.0 / math.sqrt(horizon)
        self.units = nn.Linear((self.dim + 1) * self.message_dim, width)
        self.logits = nn.Linear(width, env.game.num_hypotheses)
        with torch.no_grad():  # start near the uniform mixture
            self.logits.weight *= 0.1

    def read(self, contexts: torch.Tensor, messages: torch.Tensor) -> torch.Tensor:
        """The summands of contexts ``(..., d)`` and the messages about them."""
        numbers = torch.cat([torch.ones_like(contexts[..., :1]), contexts], dim=-1)
        return self.scale * torch.relu(
            self.units((numbers[..., :, None] * messages[..., None, :]).flatten(-2))
        )

    def read_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """The summands of raw rows; a row of round 0 has no message."""
        contexts, messages = rows[..., 1 + self.dim :].split([self.dim, self.message_dim], dim=-1)
        return self.read(contexts, messages) * (rows[..., :1] > 0.0)

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
                total = total + state * torch.from_numpy(~episode_start[:, None])
            return self.logits(total).numpy(), total


@dataclass(frozen=True)
class GradientSettings:
    """Settings of :func:`pooling_by_gradient`: Adam on the KL of the first rounds of fresh episodes."""

    episodes: int = 32
    rounds: int = 500
    updates: int = 1500
    learning_rate: float = 5e-3  # falls linearly to zero


def pooling_by_gradient(env_id: str, seed: int) -> Iterator[Trained]:
    """Learned pooling, trained by the gradient of the KL, which only a simulator knows."""
    settings, rng = GradientSettings(), np.random.default_rng(seed)
    torch.manual_seed(seed)
    model = Pooling(env_id)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    scenario: Scenario = gym.make(env_id).unwrapped.scenario  # type: ignore[attr-defined]
    for update in range(1, settings.updates + 1):
        seeds = rng.integers(TRAINING.start, TRAINING.stop, settings.episodes).tolist()
        starts = scenario.start_episodes([first_generator(one) for one in seeds])
        tape = Episodes(scenario, starts).play(settings.rounds)
        messages = tape.messages
        if isinstance(scenario.channel.message_space, gym.spaces.Discrete):
            messages = np.eye(model.message_dim)[messages]
        contexts, messages, candidates, truth = (
            torch.from_numpy(part.astype(np.float32))
            for part in (tape.contexts, messages, tape.candidates, tape.distributions)
        )
        told = model.read(contexts, messages)
        weights = torch.softmax(model.logits(torch.cumsum(told, dim=1) - told), dim=-1)
        predictions = torch.einsum("bnk,bnkm->bnm", weights, candidates)
        loss = (torch.xlogy(truth, truth) - torch.xlogy(truth, predictions)).sum(dim=-1).mean()
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (1.0 - update / settings.updates)
        _descend(loss, model, optimizer)
        if update % (settings.updates // POINTS) == 0:
            yield Trained(update * settings.episodes * settings.rounds, model)


@dataclass(frozen=True)
class RewardSettings:
    """Settings of :func:`pooling_by_reward`: Adam on the gain of the first rounds of fresh episodes."""

    pairs: int = 32
    rounds: int = 500
    updates: int = 240
    std: float = 0.3  # of the actions
    learning_rate: float = 5e-3  # falls linearly to zero


def pooling_by_reward(env_id: str, seed: int) -> Iterator[Trained]:
    """Learned pooling, trained by reward: REINFORCE on pairs of games with opposite noise on their actions.

    Both games of a pair have the same seed, so the same messages, as no action changes one. The difference
    of their rewards is free of all that the action did not cause, which takes the place of a critic.
    """
    settings, rng = RewardSettings(), np.random.default_rng(seed)
    torch.manual_seed(seed)
    model = Pooling(env_id)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    envs: Any = gym.make_vec(env_id, 2 * settings.pairs)
    for update in range(1, settings.updates + 1):
        seeds = rng.integers(TRAINING.start, TRAINING.stop, settings.pairs).tolist()
        shown, state, rows, gradients = envs.reset(seed=seeds * 2)[0], None, [], []
        for _ in range(settings.rounds):
            seen = shown[: settings.pairs]
            action, state = model.predict(seen, state, np.zeros(settings.pairs, dtype=np.bool_))
            noise = rng.standard_normal(action.shape, dtype=np.float32)
            steps = settings.std * np.concatenate([noise, -noise])
            shown, reward, *_ = envs.step(np.concatenate([action, action]) + steps)
            slope = (reward[: settings.pairs] - reward[settings.pairs :]) / (2.0 * settings.std)
            rows.append(seen)
            gradients.append(slope[:, None].astype(np.float32) * noise)  # of the reward, estimated
        sums = torch.cumsum(model.read_rows(torch.from_numpy(np.stack(rows))), dim=0)
        ascent = model.logits(sums) * torch.from_numpy(np.stack(gradients))
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (1.0 - update / settings.updates)
        _descend(-ascent.sum(dim=-1).mean(), model, optimizer)
        if update % (settings.updates // POINTS) == 0:
            yield Trained(2 * update * settings.pairs * settings.rounds, model)


def _descend(loss: torch.Tensor, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
