"""Two seats at once: Nature picks a context, the designer the question there (a PettingZoo ParallelEnv)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.errors import extra
from ldp_gym.engine.playback import Playback
from ldp_gym.engine.referee import Referee, member_option
from ldp_gym.engine.role import Actions, Observation, Role
from ldp_gym.engine.rules import CLASS_RULES, TRUTH_RULES, rule, takes
from ldp_gym.engine.scenario import EpisodeStart, episode_generator
from ldp_gym.engine.seats import Moves, Seat
from ldp_gym.envs.ask import LEAST_LOG_WEIGHT, observe_posterior
from ldp_gym.envs.features import Contrasts, FloatRow
from ldp_gym.envs.nature import LEAST_LOG_VALUE
from ldp_gym.envs.pool import Choices, Pool, PoolRules

with extra("multi", "ldp_gym.parallel_env"):
    from pettingzoo import ParallelEnv

NATURE = Seat.NATURE.value
"""Name of the agent that picks the context."""

DESIGNER = Seat.DESIGNER.value
"""Name of the agent that picks the question."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairArguments(PoolRules):
    """Arguments of ldp_gym.parallel_env: Nature against the designer, and Bayes predicts."""

    env_id = "ldp_gym.parallel_env"
    takes = (
        *CLASS_RULES,
        "epsilon",
        "horizon",
        *TRUTH_RULES,
        "redraw_hypotheses",
        "losses",
        "reveal",
    )

    channel: str = rule("ldp_gym.channels.asked_bit:AskedBit", "the channel that asks.")
    horizon: int = rule(200, "T, the number of contexts and of questions.")
    pool_size: int = rule(8, "P.")


class PairActions(NamedTuple):
    """Actions of both agents in B games."""

    choices: IntArray
    """Indices of Nature's contexts, ``(B,)``."""

    contrasts: FloatArray
    """The designer's contrasts for each context of the pool, ``(B, P, K)``."""


class PairView(Observation):
    """Observations of both agents, by name.

    Nature sees the posterior, t / T and the logarithms of the expected losses at each context of the pool;
    the designer the posterior, t / T and the candidates at each context.
    """

    space: gym.spaces.Dict

    def __init__(self, role: PairRole) -> None:
        self._role = role
        game = role.playback.scenario.game
        size = role.pool.size
        ones = np.ones(game.num_hypotheses)
        belief_low = np.concatenate([0.0 * ones, LEAST_LOG_WEIGHT * ones, [0.0]])
        belief_high = np.concatenate([ones, 0.0 * ones, [1.0]])
        largest_log = max(0.0, math.log(math.log(game.num_hypotheses))) + 1e-6
        masses = size * game.num_hypotheses * game.num_labels
        self.space = gym.spaces.Dict(
            {
                NATURE: _row_space(
                    np.append(belief_low, np.full(size, LEAST_LOG_VALUE)),
                    np.append(belief_high, np.full(size, largest_log)),
                ),
                DESIGNER: _row_space(
                    np.append(belief_low, np.zeros(masses)),
                    np.append(belief_high, np.ones(masses)),
                ),
            }
        )

    def observe(self, game: int | EllipsisType = ...) -> dict[str, FloatRow]:
        playback, pool = self._role.playback, self._role.pool
        assert playback.weights is not None, "Bayes predicts"
        progress = playback.rounds[:, 0] / playback.scenario.horizon
        belief = observe_posterior(playback.weights, progress)
        log_losses = np.log(np.maximum(pool.losses, math.exp(LEAST_LOG_VALUE)))
        shape = (playback.num_games, *pool.candidates.shape[1:])
        candidates = np.broadcast_to(pool.candidates, shape).reshape(playback.num_games, -1)
        return {
            NATURE: _join(belief, log_losses)[game],
            DESIGNER: _join(belief, candidates)[game],
        }


def _row_space(low: FloatArray, high: FloatArray) -> gym.spaces.Box:
    return gym.spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)


def _join(belief: FloatRow, values: FloatArray) -> FloatRow:
    return np.concatenate([belief, values], axis=-1, dtype=np.float32)


class PairRole(Role):
    """The seats of Nature and of the designer: one is paid the expected loss, the other its negative."""

    seats = frozenset({Seat.NATURE, Seat.DESIGNER})

    def __init__(self, playback: Playback, rules: PairArguments) -> None:
        super().__init__(playback, rules)
        self.pool = Pool(playback.scenario, playback.num_games, rules)
        self.view = PairView(self)
        self.observation = self.view
        self._picked = np.zeros(playback.num_games, dtype=np.int64)

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        self.pool.begin(games, starts)

    def ready(self) -> None:
        """Work out the expected losses at the contexts of the pool."""
        assert self.playback.weights is not None, "from Nature's seat the posterior is always kept"
        self.pool.update(self.playback.weights)

    def actions(self, batch_shape: tuple[int, ...]) -> Actions:
        raise NotImplementedError("each of the two agents has its own")

    def moves(self, actions: PairActions) -> Moves:  # type: ignore[override]
        """Nature's context, and the designer's question there."""
        self._picked = actions.choices
        questions = actions.contrasts[np.arange(len(self._picked)), self._picked]
        return self.pool.pick(self._picked)._replace(questions=questions)

    def rewards(self, losses: FloatArray) -> FloatArray:
        """Nature's rewards: the expected loss ``J_x(w)`` of the round."""
        return self.pool.losses_at(self._picked)


class NatureAgainstDesigner(ParallelEnv[str, FloatRow, Any]):
    """Nature against the designer of private questions, as a PettingZoo ``ParallelEnv``.

    ## Description

    K functions from contexts to distributions are public; the truth is one of them. In each of T rounds
    ``"nature"`` picks a context x from a pool of P, the posterior mean predicts, and ``"designer"`` asks a
    user the private question "is your label in ``{y : sum_k a_k f_k(x)[y] > 0}``?" with a contrast a of its
    choice. Nature moves first: the designer's action has one contrast for each context of the pool, and the
    contrast of the context that Nature picked is played.

    ## Observations and actions

    Both see the posterior weights, their logarithms (-10 or more) and t / T. Nature also sees the logarithms
    (-20 or more) of the expected loss at each context, and picks an index, ``Discrete(P)``. The designer also
    sees the candidates at each context, ``P K M`` numbers, and picks ``Box(-1, 1, (P, K))``.

    ## Rewards

    Nature is paid the expected loss of the round in nats, ``J_x(w) = sum_k w_k KL(f_k(x), f_w(x))``, and the
    designer its negative. Both are public, and without coins. ``infos`` hold the losses of the round.

    ## Arguments

    The class, epsilon, horizon, truth and pool: see :class:`PairArguments`, or ``help()``. By default the
    class and the pool are redrawn in every episode.

    Example:
        >>> import ldp_gym
        >>> env = ldp_gym.parallel_env(horizon=5)
        >>> observations, infos = env.reset(seed=0)
        >>> actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        >>> observations, rewards, terminations, truncations, infos = env.step(actions)
        >>> rewards["nature"] == -rewards["designer"] > 0.0
        True
    """

    metadata: dict[str, Any] = {"name": "ldp_nature_against_designer_v0", "render_modes": []}

    @takes(PairArguments)
    def __init__(self, arguments: PairArguments) -> None:
        self.arguments = arguments
        self.render_mode = None
        self.scenario = arguments.scenario()
        self.game = self.scenario.game
        self._referee = Referee(self.scenario, 1, PairRole, arguments)
        role = self._referee.role
        assert isinstance(role, PairRole), "made of it"
        self._role = role
        self._choices = Choices(role.pool.size, ())
        self._contrasts = Contrasts(self.game.num_hypotheses, (role.pool.size,))
        self._root: np.random.Generator | None = None
        self.possible_agents = [NATURE, DESIGNER]
        self.agents: list[str] = []
        self.observation_spaces = dict(role.view.space.spaces)
        contrasts = gym.spaces.Box(-1.0, 1.0, self._contrasts.shape, dtype=np.float32)
        self.action_spaces = {NATURE: self._choices.space, DESIGNER: contrasts}

    def observation_space(self, agent: str) -> gym.Space[Any]:
        """The space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        """The space of an agent's actions."""
        return self.action_spaces[agent]

    @property
    def pool(self) -> FloatArray:
        """The contexts of this episode to pick from, ``(P, d)``."""
        return self._role.pool.contexts.reshape(-1, self.scenario.hypotheses.context_dim).copy()

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, FloatRow], dict[str, dict[str, Any]]]:
        """Begin an episode.

        Args:
            seed: the same seed gives the same game. Without one, the next episode of the last seed begins.
            options: ``{"truth": j}`` chooses the truth.
        """
        # Others are ignored, as PettingZoo's own tests demand.
        known = {name: value for name, value in (options or {}).items() if name == "truth"}
        member = member_option(self.scenario, known)
        if seed is not None or self._root is None:
            checked = None if seed is None else validation.seed("seed", seed)
            self._root, _ = seeding.np_random(checked)
        only_game = np.zeros(1, dtype=np.int64)
        self._referee.begin(only_game, [episode_generator(self._root)], member)
        self.agents = list(self.possible_agents)
        return self._role.observation.observe(0), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, npt.ArrayLike]
    ) -> tuple[
        dict[str, FloatRow],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Play both turns of this round, and the round to its end."""
        if not self.agents:
            raise ResetNeeded("the game is over, or has not begun: call reset() before step()")
        choice = self._choices.read(actions[NATURE])
        contrasts = self._contrasts.read(actions[DESIGNER])
        rewards, info = self._referee.judge(PairActions(choice[None], contrasts[None]))  # type: ignore[arg-type]

        expected_loss = rewards.item()
        over = bool(self._referee.over.item())
        agents = self.agents
        if over:
            self.agents = []
        shown = {key: value[0].tolist() for key, value in info.items()}
        return (
            self._role.observation.observe(0),
            {NATURE: expected_loss, DESIGNER: -expected_loss},
            dict.fromkeys(agents, over),
            dict.fromkeys(agents, False),
            {agent: dict(shown) for agent in agents},
        )


def parallel_env(**rules: Any) -> NatureAgainstDesigner:
    """Make Nature against the designer; the arguments are those of :class:`NatureAgainstDesigner`."""
    return NatureAgainstDesigner(**rules)
