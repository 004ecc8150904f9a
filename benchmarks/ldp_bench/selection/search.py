"""The search: every channel, eps and learner is screened with few runs, the best is confirmed with many."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ldp_bench.experiment import Experiment, make_scenario
from ldp_bench.runner import play_cells
from ldp_bench.selection import answer
from ldp_bench.selection.answer import Found, Row, Selection
from ldp_bench.selection.models import Log, read_log
from ldp_bench.selection.plan import Plan
from ldp_bench.store import Store, join_outcomes
from ldp_bench.suites.base import channel_rules
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray
from ldp_gym.core.errors import IncompatibleChannelError, extra
from ldp_gym.core.registry import plain
from ldp_gym.core.sampling import open_uniforms
from ldp_gym.engine.learners import as_make_learner
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import first_generator
from ldp_gym.evaluation import Evaluation
from ldp_gym.processes import count_jobs
from ldp_gym.statistics import largest_share, least_share

_CHANNELS = ("randomized-response", "subset-selection", "one-bit", "split", "adaptive-split")

_CONFIRMATION, _MOST_CONFIRMED = 10, 3
"""Runs of a confirmation per run of a screening, and largest number of rows confirmed at one eps."""

_LEVEL = 1.25
"""Ratio of users up to which screened rows count as level; of these, non-adaptive channels go first."""


def select(
    models: Any = None,
    X: Any = None,  # noqa: N803
    y: Any = None,
    *,
    probabilities: Any = None,
    tolerance: float | None = None,
    channels: Sequence[str] = _CHANNELS,
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    learners: Sequence[str] = ("bayes", "centred-exp3", "unbiased"),
    users: int | None = None,
    runs: int = 100,
    order: str = "shuffled",
    smoothing: float = 1e-3,
    seed: int = 0,
    jobs: int = -1,
    out: str | Path | None = None,
    quiet: bool = False,
    **rules: Any,
) -> Selection:
    """Find out which channel and eps find a best model for users like these, and how many users it takes.

    Every run draws a population from the log (Bayesian bootstrap), users from it with replacement, and their
    coins. It succeeds if the model of the largest weight is within the tolerance of the population's best.

    Args:
        models: fitted classifiers with ``predict_proba``, functions from features to probabilities, or rows
            of M probabilities (a ``(K, M)`` table), in a list or by name.
        X: the users' features, an array or a data frame; not needed for rows.
        y: the users' labels: names in the models' ``classes_``, or indices.
        probabilities: predictions ``(n, K, M)`` in place of models and X, or a data frame with a column
            ``model:label`` for each; ``models`` may then be their names.
        tolerance: difference of log-loss that does not matter, in nats per user. By default 5% of the spread
            between the models, but at least 0.01 and at most 0.05.
        channels: names of channels.
        epsilons: privacy levels.
        learners: names of learners with weights.
        users: most users to ask; four times the log by default.
        runs: number of runs that screen a row; a confirmation has ten times as many, all new.
        order: "shuffled", or "given" if the users will come in the order of the log.
        smoothing: share of the uniform distribution that is mixed into every model, in (0, 1), so that no
            log-loss is infinite.
        seed: seed of the first run.
        jobs: number of processes, -1 for one per core; short work takes one.
        out: directory of results: a stopped search goes on from there. By default nothing is kept.
        quiet: True to say nothing before the answer.
        **rules: ``batch``, ``delta`` and ``channel_kwargs``, as in ``gym.make("LDPDist-v0", ...)``.
    """
    if wrong := set(rules).difference(["batch", "delta", "channel_kwargs"]):
        raise TypeError(
            f"select takes no {min(wrong)!r}; of a game's rules, batch, delta and channel_kwargs"
        )
    channels = list(dict.fromkeys(validation.list_of("channels", channels, "names of channels")))
    learners = list(dict.fromkeys(validation.list_of("learners", learners, "names of learners")))
    given = validation.list_of("epsilons", epsilons, "privacy levels")
    levels = sorted({validation.positive("epsilons", epsilon) for epsilon in given})
    if not (channels and learners and levels):
        raise ValueError("select needs at least one channel, one learner and one eps")
    for learner in learners:
        as_make_learner(learner)
    log = read_log(models, X, y, probabilities, validation.fraction("smoothing", smoothing))
    default = ""
    if tolerance is None:
        tolerance = min(0.05, max(0.01, 0.05 * float(np.ptp(log.losses.mean(axis=0)))))
        default = " (the default: 5% of the spread between models, but 0.01 to 0.05)"
    data = {
        "contexts": np.arange(len(log.labels)),
        "labels": log.labels,
        "order": order,
        "resample": True,
    }
    most = (
        max(50, 4 * len(log.labels))
        if users is None
        else validation.whole("users", users, least=10)
    )
    with TemporaryDirectory() as directory:
        search = _Search(
            log=log,
            rules={"hypotheses": log.hypotheses, "truth": "replay", "truth_kwargs": data}
            | plain(rules),
            tolerance=validation.nonnegative("tolerance", tolerance),
            users=most,
            runs=validation.whole("runs", runs, least=20),
            seed=validation.seed("seed", seed),
            store=Store(directory if out is None else out),
            processes=count_jobs(jobs),
            quiet=validation.flag("quiet", quiet),
        )
        return search.run(list(product(channels, levels)), learners, smoothing, default)


@dataclass(frozen=True)
class _Search:
    """Checked arguments of :func:`select`, and the steps of the search."""

    log: Log
    rules: Mapping[str, Any]
    tolerance: float
    users: int
    runs: int
    seed: int
    store: Store
    processes: int
    quiet: bool

    def run(
        self,
        games: Sequence[tuple[str, float]],
        learners: Sequence[str],
        smoothing: float,
        default: str,
    ) -> Selection:
        """Screen the rows, confirm the best, and put the answer together."""
        with extra("bench", "ldp_bench.select"):
            from pandas import DataFrame
        games, notes = self._distinct(games)
        rows = [Row(*game, learner) for game in games for learner in learners]
        found = self.play("screening", rows, self.users, self.runs, self.seed) if rows else {}
        if not found:
            raise ValueError(
                f"{', '.join(learners)} can read none of these channels. {' '.join(notes)}"
            )
        chosen, batches, plan = None, None, None
        again = _CONFIRMATION * self.runs, self.seed + self.runs
        for row in _ranked(found) if len(self.log.labels) >= answer.FEWEST_USERS else []:
            users = min(self.users, max(50, 4 * found[row]["users_needed"]))
            found[row] = self.play(f"confirming {row}", [row], users, *again)[row] | {
                "confirmed": True
            }
            if math.isfinite(found[row]["users_high"]):
                chosen = row
                break
        if chosen is not None:
            needed, horizon = (found[chosen][name] for name in ("users_needed", "users"))
            rules = self._rules(chosen, horizon)
            if CHANNELS.class_of(chosen.channel).adaptive:
                size = max(2 * rules.batch, math.ceil(needed / 20))
                larger = self.play(f"batches of {size}", [chosen], horizon, *again, batch=size)
                batches = size, larger[chosen]["users_needed"]
            plan = Plan(
                models=tuple(self.log.names),
                labels=tuple(self.log.classes),
                losses=tuple(self.log.losses.mean(axis=0).tolist()),
                channel_name=chosen.channel,
                channel_kwargs=dict(rules.channel_kwargs or {}),
                epsilon=chosen.epsilon,
                delta=rules.delta or 0.0,
                horizon=horizon,
                users=needed,
                learner_name=chosen.learner,
                batch=rules.batch,
                smoothing=smoothing,
                tolerance=self.tolerance,
            )
        facts, said = answer.describe_log(self.log, self.tolerance, default, self.seed)
        frame = DataFrame(list(found)).join(DataFrame(list(found.values())))
        return Selection(
            frame=frame,
            recommended=None if chosen is None else frame.iloc[list(found).index(chosen)],
            plan=plan,
            sentences=[*said, *notes, *answer.advise(found, chosen, batches, len(self.log.labels))],
            warnings=[
                *answer.warn_of_drift(self.log, self.tolerance),
                *answer.warn_of_learners(found),
            ],
            **facts,
        )

    def _distinct(
        self, games: Sequence[tuple[str, float]]
    ) -> tuple[list[tuple[str, float]], list[str]]:
        """Channels and levels without those that repeat another channel's law, and notes about these."""
        kept: dict[Any, tuple[str, float]] = {}
        notes: dict[str, list[str]] = {}
        for channel, epsilon in games:
            try:
                made = make_scenario(self._rules((channel, epsilon), self.users)).channel
                if made.epsilon == math.inf:
                    raise IncompatibleChannelError("it has no privacy")
                law = self._law(made)
            except IncompatibleChannelError as error:
                notes.setdefault(f"{channel} is left out: ", [str(error)])
                continue
            first, _ = kept.setdefault((epsilon, law or channel), (channel, epsilon))
            if first != channel:
                notes.setdefault(f"{channel} is the same as {first} at eps = ", []).append(
                    f"{epsilon:g}"
                )
        return list(kept.values()), [
            f"{note}{', '.join(levels)}." for note, levels in notes.items()
        ]

    def _law(self, channel: Channel) -> bytes:
        """Rounded law of the messages for a few users and posteriors; empty if they cannot be listed.

        Rows ``q(z | .) / sum_y q(z | y)`` with their total weights; messages that say the same are merged.
        """
        table, law, rng = self.log.table, b"", np.random.default_rng(0)
        for user in np.linspace(0, len(table) - 1, 6).astype(int):
            posterior = rng.dirichlet(np.ones(table.shape[1])) if channel.adaptive else None
            try:
                listed = channel.list_messages(table[user], posterior)
            except TypeError:
                return b""
            said = channel.log_density(listed.messages, table[user], posterior)
            said = np.exp(said + listed.log_weights[:, None])
            said = said[said.any(axis=-1)]
            total = said.sum(axis=-1)
            rows, which = np.unique((said / total[:, None]).round(7), axis=0, return_inverse=True)
            law += np.column_stack([rows, np.bincount(which.ravel(), total).round(7)]).tobytes()
        return law

    def _rules(self, row: Sequence[Any], users: int, **more: Any) -> Rules:
        return Rules(
            **channel_rules(row[0]) | {**self.rules, "epsilon": row[1], "horizon": users, **more}
        )

    def play(
        self, title: str, rows: Sequence[Row], users: int, runs: int, seed: int, **more: Any
    ) -> dict[Row, dict[str, Any]]:
        """Columns of the rows that can be played, each from ``runs`` runs of ``users`` users."""
        plays: dict[str, Any] = {"episodes": runs, "leaders": True, "block": self.runs}
        cells = {
            row: Experiment(self._rules(row, users, **more), row.learner, **plays).cells(seed)
            for row in rows
        }
        outcomes = self.store.outcomes([cell.key for some in cells.values() for cell in some])
        todo = [cell for some in cells.values() for cell in some if cell.key not in outcomes]
        total = sum(cell.rounds for cell in todo)
        jobs = (
            self.processes if total * self.log.table[0].size > 2e8 else 1
        )  # short work takes one process
        began, said, done = time.monotonic(), -math.inf, 0
        for cell, outcome in play_cells(todo, self.store, jobs):
            outcomes[cell.key] = outcome
            done += cell.rounds
            if not self.quiet and time.monotonic() - said > 10.0:
                said = time.monotonic()
                print(f"{title}: {done / total:.0%} after {said - began:.0f} s", file=sys.stderr)
        found = {}
        good = self._good(rows[0], runs, seed)
        for row, of_row in cells.items():
            outcome = join_outcomes([outcomes[cell.key] for cell in of_row])
            if outcome.status == "failed":
                reason = str(outcome.message).partition("\n")[0]
                raise ValueError(f"{row.learner} on {row.channel}: {reason}")
            if outcome.evaluation is not None:
                found[row] = self._columns(row.learner, outcome.evaluation, good)
        return found

    def _good(self, row: Row, runs: int, seed: int) -> BoolArray:
        """Mask ``(runs, K)`` of the models within the tolerance of the best of each run's population."""
        truth: Any = make_scenario(self._rules(row, self.users)).truth
        uniforms = [open_uniforms([first_generator(seed + i)], (1, 1))[0] for i in range(runs)]
        means = np.concatenate(
            [truth.population(uniform) @ self.log.losses for uniform in uniforms]
        )
        return np.asarray(means <= means.min(axis=-1, keepdims=True) + self.tolerance)

    def _columns(self, learner: str, played: Evaluation, good: BoolArray) -> dict[str, Any]:
        """Columns of a row of :attr:`Selection.frame`."""
        if played.leaders is None or played.weights is None:
            raise ValueError(
                f"a learner without weights cannot select a model: leave out {learner!r}"
            )
        picks, runs = played.leaders, len(played.leaders)
        hits = (np.take_along_axis(good, np.maximum(picks, 0), axis=-1) & (picks >= 0)).sum(axis=0)
        low, high = (
            end(hits, runs, 1.0 - answer.SUFFICIENT) for end in (least_share, largest_share)
        )
        # Does the weight of a model grow that is worse than the log's best by more than the tolerance?
        mean = self.log.losses.mean(axis=0)
        logs = np.log(np.maximum(played.weights, np.finfo(np.float64).tiny))
        leads = logs[:, [mean.argmin()]] - logs
        lead, error = leads.mean(axis=0), leads.std(axis=0, ddof=1) / math.sqrt(runs)
        behind = np.where((mean > mean.min() + self.tolerance) & (lead < -3.0 * error), lead, 0.0)
        return {
            "found": hits[-1] / runs,
            "found_low": float(low[-1]),
            "found_high": float(high[-1]),
            "chance": float(good.mean()),
            "users_needed": answer.users_from_on(played.rounds, hits / runs),
            "users_low": answer.users_from_on(played.rounds, high),
            "users_high": answer.users_from_on(played.rounds, low),
            "users": int(played.rounds[-1]),
            "runs": runs,
            "misled": self.log.names[behind.argmin()] if behind.min() < 0.0 else "",
            "confirmed": False,
        }


def _ranked(found: Found) -> list[Row]:
    """Rows to confirm: the smallest eps first, then the fewest users; of level ones, non-adaptive first."""
    # Where a model picked at random succeeds as often as a survey must, a success shows nothing.
    enough = {
        row: some["users_needed"]
        for row, some in found.items()
        if some["chance"] < answer.SUFFICIENT
    }
    enough = {row: users for row, users in enough.items() if math.isfinite(users)}
    fewest = {
        row.epsilon: min(n for r, n in enough.items() if r.epsilon == row.epsilon) for row in enough
    }

    def key(row: Row) -> tuple[float, bool, bool, float]:
        level = enough[row] <= _LEVEL * fewest[row.epsilon]
        return (
            row.epsilon,
            not level,
            level and CHANNELS.class_of(row.channel).adaptive,
            enough[row],
        )

    levels = groupby(sorted(enough, key=key), lambda row: row.epsilon)
    return [row for _, rows in levels for row in islice(rows, _MOST_CONFIRMED)]
