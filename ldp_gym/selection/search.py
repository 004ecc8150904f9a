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

from ldp_gym.bench.experiment import Experiment, make_scenario
from ldp_gym.bench.runner import play_cells
from ldp_gym.bench.store import Store, join_outcomes
from ldp_gym.bench.suites.base import channel_rules
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import validation
from ldp_gym.core.errors import IncompatibleChannelError, extra
from ldp_gym.core.registry import plain
from ldp_gym.core.sampling import open_uniforms
from ldp_gym.engine.learners import as_make_learner
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import first_generator
from ldp_gym.evaluation import Evaluation
from ldp_gym.processes import count_jobs
from ldp_gym.selection.answer import FEWEST_USERS, SUFFICIENT, Row, Selection, users_from_on, write_answer
from ldp_gym.selection.models import Log, read_log
from ldp_gym.selection.plan import Plan
from ldp_gym.statistics import largest_share, least_share

DEFAULT_CHANNELS = ("randomized-response", "subset-selection", "one-bit", "split", "adaptive-split")
DEFAULT_EPSILONS = (0.5, 1.0, 2.0, 4.0)
DEFAULT_LEARNERS = ("bayes", "centred-exp3", "unbiased")

_RULES = ("batch", "delta", "channel_kwargs")
"""Rules of a game that are left to the user; the log and the search decide the others."""

_TOLERANCE = (0.05, 0.01, 0.05)
"""Default tolerance: a share of the spread between the models' losses, and its least and largest value."""

_CONFIRMATION, _MOST_CONFIRMED = 4, 3
"""Runs of a confirmation in multiples of a screening's, and the most rows of an eps that are confirmed."""

_LEVEL = 1.25
"""Ratio of users up to which screened rows count as level: channels that do not wait for answers go first."""

_USERS_COMPARED = 6
"""Users whose messages' laws are compared, to find channels that are the same."""

_SHORT_WORK = 2e8
"""Largest number of probabilities read, over all rounds, for which one process is enough."""


def select(
    models: Any = None,
    X: Any = None,  # noqa: N803
    y: Any = None,
    *,
    probabilities: Any = None,
    tolerance: float | None = None,
    channels: Sequence[str] = DEFAULT_CHANNELS,
    epsilons: Sequence[float] = DEFAULT_EPSILONS,
    learners: Sequence[str] = DEFAULT_LEARNERS,
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
        runs: number of runs that screen a row; a confirmation has four times as many, all new.
        order: "shuffled", or "given" if the users will come in the order of the log.
        smoothing: share of the uniform distribution that is mixed into every model, in (0, 1), so that no
            log-loss is infinite.
        seed: seed of the first run.
        jobs: number of processes, -1 for one per core; short work takes one.
        out: directory of results: a stopped search goes on from there. By default nothing is kept.
        quiet: True to say nothing before the answer.
        **rules: ``batch``, ``delta`` and ``channel_kwargs``, as in ``gym.make("LDPDist-v0", ...)``.
    """
    with extra("bench", "ldp_gym.select"):
        import pandas  # noqa: F401 - the answer has a data frame
    for name in rules:
        if name not in _RULES:
            raise TypeError(f"select takes no {name!r}; of the rules of a game it takes {', '.join(_RULES)}")
    channels = list(dict.fromkeys(validation.list_of("channels", channels, "names of channels")))
    learners = list(dict.fromkeys(validation.list_of("learners", learners, "names of learners")))
    given = validation.list_of("epsilons", epsilons, "privacy levels")
    levels = sorted({validation.positive("epsilons", epsilon) for epsilon in given})
    if not (channels and learners and levels):
        raise ValueError("select needs at least one channel, one learner and one eps")
    for learner in learners:
        as_make_learner(learner)
    processes = count_jobs(jobs)
    log = read_log(models, X, y, probabilities, validation.fraction("smoothing", smoothing))
    if tolerance is None:
        share, least, most = _TOLERANCE
        tolerance = min(most, max(least, share * float(np.ptp(log.losses.mean(axis=0)))))
    data = {"contexts": np.arange(len(log.labels)), "labels": log.labels, "order": order, "resample": True}
    with TemporaryDirectory() as directory:
        search = _Search(
            log=log,
            rules={"hypotheses": log.hypotheses, "truth": "replay", "truth_kwargs": data} | plain(rules),
            tolerance=validation.nonnegative("tolerance", tolerance),
            users=validation.whole("users", 4 * len(log.labels) if users is None else users, least=10),
            runs=validation.whole("runs", runs, least=20),
            seed=validation.seed("seed", seed),
            store=Store(directory if out is None else out),
            processes=processes,
            quiet=validation.flag("quiet", quiet),
        )
        return search.answer(list(product(channels, levels)), learners, smoothing)


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

    def answer(
        self, games: Sequence[tuple[str, float]], learners: Sequence[str], smoothing: float
    ) -> Selection:
        """Screen the rows, confirm the best, and put the answer together."""
        games, notes = self._distinct(games)
        rows = [(*game, learner) for game in games for learner in learners]
        found = self.play("screening", rows, self.users, self.runs, self.seed)
        if not found:
            raise ValueError(
                " ".join([f"none of {', '.join(learners)} can read one of these channels.", *notes])
            )
        chosen, batches, plan = None, None, None
        again = _CONFIRMATION * self.runs, self.seed + self.runs
        for row in _ranked(found) if len(self.log.labels) >= FEWEST_USERS else []:
            users = min(self.users, max(50, 4 * found[row]["users_estimated"]))
            what = f"confirming {row[0]} at eps = {row[1]:g}, read by {row[2]}"
            found[row] = self.play(what, [row], users, *again)[row] | {"confirmed": True}
            if math.isfinite(found[row]["users_needed"]):
                chosen = row
                break
        if chosen is not None:
            needed, horizon = (found[chosen][name] for name in ("users_needed", "users"))
            rules = self._rules(*chosen[:2], horizon)
            if CHANNELS.class_of(chosen[0]).adaptive:
                size = max(2 * rules.batch, math.ceil(needed / 20))
                larger = self.play(f"batches of {size}", [chosen], horizon, *again, batch=size)
                batches = size, larger[chosen]["users_estimated"]
            plan = Plan(
                models=tuple(self.log.names),
                labels=tuple(self.log.classes),
                losses=tuple(self.log.losses.mean(axis=0).tolist()),
                channel_name=chosen[0],
                channel_kwargs=dict(rules.channel_kwargs or {}),
                epsilon=chosen[1],
                delta=rules.delta or 0.0,
                horizon=horizon,
                users=needed,
                learner_name=chosen[2],
                batch=rules.batch,
                smoothing=smoothing,
                tolerance=self.tolerance,
            )
        return write_answer(self.log, self.tolerance, self.seed, found, chosen, plan, notes, batches)

    def _distinct(self, games: Sequence[tuple[str, float]]) -> tuple[list[tuple[str, float]], list[str]]:
        """Channels and levels without those that repeat another channel's law, and notes about these."""
        kept: dict[Any, tuple[str, float]] = {}
        same: dict[tuple[str, str], list[str]] = {}
        unfit: dict[str, str] = {}
        for channel, epsilon in games:
            try:
                law = self._law(make_scenario(self._rules(channel, epsilon, self.users)).channel)
            except IncompatibleChannelError as error:
                unfit[channel] = f"{channel} is left out: {error}."
                continue
            first, _ = kept.setdefault((epsilon, law or channel), (channel, epsilon))
            if first != channel:
                same.setdefault((channel, first), []).append(f"{epsilon:g}")
        notes = [
            f"{one} is {other} at eps = {', '.join(eps)}: they are one row."
            for (one, other), eps in same.items()
        ]
        return list(kept.values()), [*unfit.values(), *notes]

    def _law(self, channel: Channel) -> bytes:
        """Law of the messages for a few users and posteriors; empty if messages cannot be listed.

        Rows ``q(z | .) / sum_y q(z | y)`` and their total weight, rounded; messages that say the same are
        merged.
        """
        table, law, rng = self.log.table, b"", np.random.default_rng(0)
        for user in np.linspace(0, len(table) - 1, _USERS_COMPARED).astype(int):
            posterior = rng.dirichlet(np.ones(table.shape[1])) if channel.adaptive else None
            try:
                listed = channel.list_messages(table[user], posterior)
            except TypeError:
                return b""
            said = np.exp(channel.log_density(listed.messages, table[user], posterior))
            said *= np.exp(listed.log_weights)[:, None]
            total = np.maximum(said.sum(axis=-1), np.finfo(np.float64).tiny)
            rows, which = np.unique((said / total[:, None]).round(7), axis=0, return_inverse=True)
            weights = np.bincount(which.ravel(), weights=total).round(7)
            law += np.column_stack([rows, weights]).tobytes()
        return law

    def _rules(self, channel: str, epsilon: float, users: int, **more: Any) -> Rules:
        game = {"epsilon": epsilon, "horizon": users, **more}
        return Rules(**channel_rules(channel) | dict(self.rules) | game)

    def play(
        self, title: str, rows: Sequence[Row], users: int, runs: int, seed: int, **more: Any
    ) -> dict[Row, dict[str, Any]]:
        """Columns of the rows that can be played, each from ``runs`` runs of ``users`` users."""
        plays: dict[str, Any] = {"episodes": runs, "leaders": True, "block": self.runs}
        cells = {
            row: Experiment(self._rules(*row[:2], users, **more), row[2], **plays).cells(seed) for row in rows
        }
        outcomes = self.store.outcomes([cell.key for some in cells.values() for cell in some])
        todo = [cell for some in cells.values() for cell in some if cell.key not in outcomes]
        total = sum(cell.rounds for cell in todo)
        jobs = self.processes if total * self.log.table[0].size > _SHORT_WORK else 1
        began, said, done = time.monotonic(), -math.inf, 0
        for cell, outcome in play_cells(todo, self.store, jobs):
            outcomes[cell.key] = outcome
            done += cell.rounds
            if not self.quiet and time.monotonic() - said > 10.0:
                said = time.monotonic()
                print(f"{title}: {done / total:.0%} after {said - began:.0f} s", file=sys.stderr)
        found = {}
        for row, of_row in cells.items():
            outcome = join_outcomes([outcomes[cell.key] for cell in of_row])
            if outcome.status == "failed":
                raise ValueError(f"{row[2]} on {row[0]}: {str(outcome.message).partition(chr(10))[0]}")
            if outcome.evaluation is not None:
                found[row] = self._columns(row, outcome.evaluation, seed)
        return found

    def _columns(self, row: Row, played: Evaluation, seed: int) -> dict[str, Any]:
        """Columns of a row of :attr:`Selection.frame`."""
        if played.leaders is None or played.weights is None:
            raise ValueError(f"a learner without weights cannot select a model: leave out {row[2]!r}")
        losses, picks, runs = self.log.losses, played.leaders, len(played.leaders)
        truth: Any = make_scenario(self._rules(*row[:2], self.users)).truth
        uniforms = [open_uniforms([first_generator(seed + i)], (1, 1))[0] for i in range(runs)]
        means = np.concatenate([truth.population(uniform) @ losses for uniform in uniforms])
        good = means <= means.min(axis=-1, keepdims=True) + self.tolerance
        hits = (np.take_along_axis(good, np.maximum(picks, 0), axis=-1) & (picks >= 0)).sum(axis=0)
        low, high = (end(hits, runs, 1.0 - SUFFICIENT) for end in (least_share, largest_share))
        # Does the weight of a model grow that is worse than the log's best by more than the tolerance?
        mean, logs = losses.mean(axis=0), np.log(np.maximum(played.weights, np.finfo(np.float64).tiny))
        leads = logs[:, [mean.argmin()]] - logs
        lead, error = leads.mean(axis=0), leads.std(axis=0, ddof=1) / math.sqrt(runs)
        behind = np.where((mean > mean.min() + self.tolerance) & (lead < -3.0 * error), lead, 0.0)
        return {
            "found": hits[-1] / runs,
            "found_low": float(low[-1]),
            "found_high": float(high[-1]),
            "users_needed": users_from_on(played.rounds, low),
            "users_estimated": users_from_on(played.rounds, hits / runs),
            "users_low": users_from_on(played.rounds, high),
            "users": int(played.rounds[-1]),
            "runs": runs,
            "misled": self.log.names[behind.argmin()] if behind.min() < 0.0 else "",
            "confirmed": False,
        }


def _ranked(found: Mapping[Row, Mapping[str, Any]]) -> list[Row]:
    """Rows to confirm: the least eps first, then the fewest users; of level ones those without waiting."""
    enough = {row: columns["users_estimated"] for row, columns in found.items()}
    enough = {row: users for row, users in enough.items() if math.isfinite(users)}
    fewest = {eps: min(n for row, n in enough.items() if row[1] == eps) for _, eps, _ in enough}

    def key(row: Row) -> tuple[float, bool, bool, float]:
        level = enough[row] <= _LEVEL * fewest[row[1]]
        return row[1], not level, level and CHANNELS.class_of(row[0]).adaptive, enough[row]

    levels = groupby(sorted(enough, key=key), lambda row: row[1])
    return [row for _, rows in levels for row in islice(rows, _MOST_CONFIRMED)]
