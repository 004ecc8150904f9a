"""``ldp_bench.plan``: how many users a private survey needs, on which channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ldp_bench.planning.answer import SURE, Planned, Row, least_users, quantile, share
from ldp_bench.planning.contest import Contest, choose, fewest_users
from ldp_bench.planning.laws import message_law
from ldp_bench.planning.models import Prediction, predict_users
from ldp_bench.planning.progress import Bar
from ldp_bench.planning.record import Plan
from ldp_bench.planning.surveys import Surveys, next_block, runs_together
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray
from ldp_gym.core.divergences import kl
from ldp_gym.core.errors import IncompatibleChannelError, extra
from ldp_gym.privacy import ExactChannel
from ldp_gym.processes import count_jobs, share_out

DEFAULT_CHANNELS = (
    "randomized-response",
    "subset-selection",
    "split",
    "scheffe",
    "adaptive-split",
)
"""Channels that are compared unless others are given."""

TABLE_CHANNELS = (*DEFAULT_CHANNELS, "half-space", "challenge")
"""Channels that are compared for models without features: with features the last two take long."""

_DOMINATED = 1.5
"""Multiple of the best channel's users after which all channels stop."""

_FIRST_LOOK = 512
"""Number of users from which the information of a message is estimated."""

_ADAPTIVE_LOOK = 8192
"""The same for adaptive channels, which ask about near rivals only when the others are ruled out."""

_SAME = 1e-12
"""KL divergence, in nats, below which predictions differ by rounding only."""

_CONFIRMATION = 3
"""Runs that confirm the recommended channel, per run of the comparison."""

_NOISE = 0.02
"""Share of made-up answers in the first stress."""

_LONG_WORK = 4e8
"""Numbers to work on in a block from which several processes are worth their start."""


def plan(
    models: Any,
    X: Any = None,  # noqa: N803
    *,
    epsilon: float | Sequence[float],
    channels: Sequence[str] | None = None,
    alpha: float = 0.05,
    tolerance: float = 0.0,
    most_users: int = 100_000,
    batch: int = 1,
    runs: int = 100,
    seed: int = 0,
    jobs: int = -1,
    probabilities: Any = None,
    labels: Sequence[Any] | None = None,
    quiet: bool = False,
) -> Planned:
    """Plan a private survey that tells which of K models is right; no label is needed.

    Each model is the truth in turn: users with contexts from X draw their labels from it and answer through
    a channel, until the confidence set of the models (level ``1 - alpha``) leaves one, or only models that
    predict alike. Recommended is the channel whose slowest truth needs the fewest users.

    Args:
        models: two or more fitted classifiers with ``predict_proba``, functions from features to
            probabilities, or rows of M probabilities, by name.
        X: features of users like those to come, ``(n, d)``, an array or a data frame, without labels. Not
            needed for rows.
        epsilon: privacy level, or a list of levels.
        channels: names of the channels to compare; by default :data:`DEFAULT_CHANNELS`, and for a table
            :data:`TABLE_CHANNELS`.
        alpha: largest probability that a survey drops a model that is right.
        tolerance: KL divergence, in nats per user, on average over X, up to which two models need not be told
            apart.
        most_users: largest number of users in a survey.
        batch: number of users who answer an adaptive channel at the same time.
        runs: number of simulated surveys of each truth; the recommended channel is played in three times as
            many new ones.
        seed: seed of the simulation.
        jobs: number of processes, -1 for one per core; short work takes one.
        probabilities: predictions ``(n, K, M)`` in place of models and X, or a data frame with columns
            ``model:label``; ``models`` may then be their names.
        labels: names of the labels; those of classifiers are their ``classes_``.
        quiet: True for no progress bar.

    Example:
        >>> flavours = {"mild": [0.7, 0.2, 0.1], "even": [1 / 3, 1 / 3, 1 / 3]}
        >>> planned = plan(flavours, epsilon=2.0, runs=50, quiet=True)
        >>> bool(planned.frame["named_wrongly"].max() <= 0.05)
        True
    """
    levels: list[Any] = [epsilon]
    if isinstance(epsilon, Sequence | np.ndarray):
        levels = list(epsilon)
    epsilons = sorted({validation.positive("epsilon", level) for level in levels})
    if not epsilons or (channels is not None and not len(channels)):
        raise ValueError("plan needs at least one epsilon and one channel")
    settings = Settings(
        alpha=validation.fraction("alpha", alpha),
        tolerance=validation.nonnegative("tolerance", tolerance),
        most_users=validation.whole("most_users", most_users, least=2, most=10**7),
        batch=validation.whole("batch", batch, least=1),
        runs=validation.whole("runs", runs, least=20, most=10**5),
        seed=validation.seed("seed", seed),
        jobs=count_jobs(jobs),
        quiet=validation.flag("quiet", quiet),
    )
    if settings.seed >= 2**63:  # a seed of a run is several numbers, each below this
        raise ValueError(f"seed must be below 2^63, got {settings.seed}")
    if models is None and probabilities is None:
        raise TypeError("plan needs models, or probabilities= in their place")
    with extra("bench", "ldp_bench.plan"):
        import pandas  # noqa: F401
    prediction = predict_users(models, X, probabilities, labels, settings.seed)
    if channels is None:
        channels = DEFAULT_CHANNELS
        if prediction.constant:
            channels = TABLE_CHANNELS
    names = list(dict.fromkeys(validation.texts("channels", channels, "names of channels")))
    return _Search(prediction, settings).run(names, epsilons)


class Settings(NamedTuple):
    """Checked arguments of :func:`plan`, which describes them."""

    alpha: float
    tolerance: float
    most_users: int
    batch: int
    runs: int
    seed: int
    jobs: int
    quiet: bool


def mean_divergences(table: FloatArray) -> FloatArray:
    """KL divergences ``KL(f_j, f_k)``, ``(K, K)``, averaged over the rows of a table ``(n, K, M)``."""
    columns = [kl(table, table[:, [k]]).mean(axis=0) for k in range(table.shape[1])]
    return np.stack(columns, axis=1)


def pairs_alike(divergence: FloatArray, tolerance: float) -> BoolArray:
    """Pairs of models ``(K, K)`` whose KL divergences, in both directions, are within the tolerance."""
    largest = np.maximum(divergence, divergence.T)
    return largest <= max(tolerance, _SAME)


class _Level(NamedTuple):
    """Comparison of the channels at one eps.

    Attributes:
        rows: rows of all channels.
        recommended: rows of the recommended channel, one per truth; empty if there is none.
        notes: sentences about the channels.
    """

    rows: list[Row]
    recommended: list[Row]
    notes: list[str]


@dataclass(frozen=True)
class _Search:
    """Steps of a plan, with the models' predictions and the arguments of :func:`plan`."""

    prediction: Prediction
    settings: Settings

    def run(self, names: Sequence[str], epsilons: Sequence[float]) -> Planned:
        """Compare the channels at each eps, confirm the best, and put the answer together."""
        divergence = mean_divergences(self.prediction.table)
        alike = pairs_alike(divergence, self.settings.tolerance)
        notes = [*self.prediction.notes, *self._notes_on_alike(alike)]
        rows: list[Row] = []
        best: dict[float, list[Row]] = {}
        stress: list[dict[str, Any]] = []
        plans: dict[float, Plan] = {}
        if not alike.all():
            with TemporaryDirectory() as folder, Bar(self.settings.quiet) as bar:
                file = Path(folder) / "table.npy"
                np.save(file, self.prediction.table)
                for level in epsilons:
                    played = self._at_level(level, names, divergence, alike, file, bar)
                    notes += [note for note in played.notes if note not in notes]
                    rows += played.rows
                    if played.recommended:
                        best[level] = played.recommended
                        plans[level] = self._plan(level, played.recommended, alike)
                if best:
                    smallest = min(best)
                    channel = plans[smallest].channel_name
                    stress = self._stress(channel, smallest, divergence, alike, file, bar)
        return Planned.of(self.prediction, self.settings, rows, best, plans, stress, notes, alike)

    def _notes_on_alike(self, alike: BoolArray) -> list[str]:
        """A sentence for each pair of models that are one within the tolerance."""
        names = self.prediction.names
        within = "exactly"
        if self.settings.tolerance > 0.0:
            within = f"within {self.settings.tolerance:g} nats per user"
        return [
            f"{names[j]!r} and {names[k]!r} predict {within} the same: they count as one model."
            for j, k in np.argwhere(np.triu(alike, 1))
        ]

    # -- One eps ----------------------------------------------------------------------------------------

    def _at_level(
        self,
        epsilon: float,
        names: Sequence[str],
        divergence: FloatArray,
        alike: BoolArray,
        file: Path,
        bar: Bar,
    ) -> _Level:
        """Compare channels at one eps, and confirm the best.

        Args:
            epsilon: privacy level.
            names: names of the channels.
            divergence: ``KL(f_j, f_k)`` on average over the contexts, ``(K, K)``.
            alike: pairs of models that need not be told apart, ``(K, K)``.
            file: file of the predictions.
            bar: progress bar.
        """
        channels, notes = self._channels(names, epsilon)
        hopeless = (
            least_users(divergence, alike, epsilon, self.settings.alpha) > self.settings.most_users
        )
        truths = np.eye(
            len(alike), len(alike) + 1
        )  # each model; the last column is the uniform law
        run_numbers = np.arange(self.settings.runs)
        contests = []
        for name, channel in channels.items():
            surveys = self._surveys(channel, truths, run_numbers, alike, file)
            contest = Contest(name, channel, surveys, hopeless.copy())
            contest.give_up(hopeless)
            contests.append(contest)
        if hopeless.any():
            far = [repr(self.prediction.names[k]) for k in np.flatnonzero(hopeless)]
            notes.append(
                f"No private channel at eps = {epsilon:g} can tell {', '.join(far)} from its nearest rival "
                f"within {self.settings.most_users:,} users: too little of their difference survives."
            )
        notes += self._play(contests, f"comparing channels at eps = {epsilon:g}", bar, alike)
        rows: list[Row] = []
        for contest in contests:
            rows += self._rows(contest, epsilon, alike)
        winner = choose(contests)
        if winner is None:
            return _Level(rows, [], notes)

        # New runs: the best of several channels has been lucky in the runs that chose it.
        run_numbers = self.settings.runs + np.arange(_CONFIRMATION * self.settings.runs)
        surveys = self._surveys(winner.channel, truths, run_numbers, alike, file)
        again = winner._replace(surveys=surveys)
        self._play([again], f"confirming {winner.name} at eps = {epsilon:g}", bar, alike=None)
        confirmed = self._rows(again, epsilon, alike, confirmed=True)
        if math.isinf(max(row.users_95 for row in confirmed)):
            return _Level(rows, [], notes)
        others = [row for row in rows if row.channel != winner.name]
        return _Level([*confirmed, *others], confirmed, notes)

    def _channels(
        self, names: Sequence[str], epsilon: float
    ) -> tuple[dict[str, Channel], list[str]]:
        """Make the channels that can be played at this eps; return them by name, and notes on the others.

        Of channels whose messages have the same law only the first is kept.
        """
        _, num_models, num_labels = self.prediction.table.shape
        size = {
            "num_hypotheses": num_models,
            "num_labels": num_labels,
            "horizon": self.settings.most_users,
            "epsilon": epsilon,
            "delta": 0.0,
        }
        channels: dict[str, Channel] = {}
        laws: dict[bytes, str] = {}
        copies: dict[str, list[str]] = {}
        notes = []
        for name in names:
            try:
                channel = CHANNELS.build(name, size, {})
                ExactChannel(channel)
            except IncompatibleChannelError as error:
                notes.append(f"{name} is left out: {error}.")
                continue
            # A channel whose law is not known is compared with none: its name stands for the law.
            law = message_law(channel, self.prediction.table) or name.encode()
            first = laws.setdefault(law, name)
            if first != name:
                copies.setdefault(first, []).append(name)
            else:
                channels[name] = channel
        for first, others in copies.items():
            same = "are the same channel"
            if len(others) == 1:
                same = "is the same channel"
            notes.append(f"At eps = {epsilon:g}, {', '.join(others)} {same} as {first} here.")
        if not channels:
            raise ValueError(f"none of the channels can be used. {' '.join(notes)}")
        return channels, notes

    def _surveys(
        self,
        channel: Channel,
        truths: FloatArray,
        numbers: np.ndarray[Any, np.dtype[np.int64]],
        alike: BoolArray,
        file: Path,
    ) -> list[Surveys]:
        """Start surveys of all truths, in groups of runs that are played together.

        Args:
            channel: the channel.
            truths: laws of the labels, as weights ``(truths, K + 1)`` of the models and the uniform law.
            numbers: numbers of the runs, which decide their random numbers.
            alike: pairs of models that need not be told apart, ``(K, K)``.
            file: file of the predictions.
        """
        table = self.prediction.table
        size = 1  # numbers per user: constant candidates are shared
        if len(table) > 1:
            size = table[0].size
        together = runs_together(channel, len(truths), size, len(numbers))
        groups = np.array_split(numbers, math.ceil(len(numbers) / together))
        return [
            Surveys(
                channel=channel,
                table=file,
                truths=truths,
                runs=group,
                alpha=self.settings.alpha,
                alike=alike,
                batch=self.settings.batch,
                seed=self.settings.seed,
            )
            for group in groups
        ]

    def _play(
        self, contests: Sequence[Contest], title: str, bar: Bar, alike: BoolArray | None
    ) -> list[str]:
        """Play the surveys of all channels block by block, until all end or the best is far ahead.

        With ``alike``, the pairs of models that count as one, truths that turn out to be beyond reach are
        given up; returned are notes on these.
        """
        everything = [(contest, i) for contest in contests for i in range(len(contest.surveys))]
        under_way = sum(contest.surveys[i].under_way for contest, i in everything)
        bar.begin(title, under_way)
        total = under_way
        notes: list[str] = []
        asked = 0
        while under_way and asked < self.settings.most_users:
            asked = next_block(asked, self.settings.most_users)
            self._play_block(everything, asked)
            if alike is not None:
                notes += self._give_up(contests, asked, alike)
            fewest = fewest_users(contests)
            if asked >= _DOMINATED * fewest:
                break
            if math.isfinite(fewest):
                for contest in contests:
                    if contest.behind:
                        contest.give_up(np.ones_like(contest.hopeless))
            under_way = sum(contest.surveys[i].under_way for contest, i in everything)
            bar.show(total - under_way, asked)
        bar.end()
        return notes

    def _give_up(self, contests: Sequence[Contest], asked: int, alike: BoolArray) -> list[str]:
        """Give up truths that are beyond reach; return notes on them."""
        notes = []
        for contest in contests:
            first = _FIRST_LOOK
            if contest.channel.adaptive:
                first = _ADAPTIVE_LOOK
            if asked < first or not any(surveys.under_way for surveys in contest.surveys):
                continue
            beyond = contest.beyond_reach(alike, self.settings.alpha, self.settings.most_users)
            beyond &= ~contest.hopeless
            if beyond.any():
                contest.give_up(beyond)
                contest.hopeless[beyond] = True
                names = ", ".join(repr(self.prediction.names[k]) for k in np.flatnonzero(beyond))
                notes.append(
                    f"{contest.name} tells {names} from a rival so slowly, if at all, that "
                    f"{self.settings.most_users:,} users are too few (judged from the first {asked:,})."
                )
        return notes

    def _play_block(self, places: Sequence[tuple[Contest, int]], stop: int) -> None:
        """Play all surveys to the next stop, in several processes if there is much to do."""
        pieces = [contest.surveys[i] for contest, i in places]
        messages = sum(piece.under_way * (stop - piece.asked) for piece in pieces)
        jobs = 1
        if messages * self.prediction.table[0].size > _LONG_WORK:
            jobs = self.settings.jobs
        for index, piece in share_out(partial(_advance, stop), pieces, jobs):
            if isinstance(piece, BaseException):
                raise RuntimeError(
                    "a process that played some of the surveys was killed twice"
                ) from piece
            contest, i = places[index]
            contest.surveys[i] = piece

    def _rows(
        self, contest: Contest, epsilon: float, alike: BoolArray, confirmed: bool = False
    ) -> list[Row]:
        """Rows of the answer for one channel, one per truth."""
        outcomes = contest.outcomes
        rows = []
        for k, name in enumerate(self.prediction.names):
            users = outcomes.users[k]
            ended = np.isfinite(users)
            left = outcomes.left[k]
            # A model that predicts like the truth is not a wrong name.
            wrong = ended & left.any(axis=-1) & (left & ~alike[k]).any(axis=-1)
            nothing = ended & ~left.any(axis=-1)
            complete = outcomes.asked >= self.settings.most_users or contest.hopeless[k]
            asked = outcomes.asked
            if complete:
                asked = self.settings.most_users
            median = quantile(users, 0.5)
            high = quantile(users, SURE)
            wrongly = share(int(wrong.sum()), len(users))
            rows.append(
                Row(
                    epsilon=epsilon,
                    channel=contest.name,
                    truth=name,
                    users_median=_known(median.value, complete),
                    users_95=_known(high.value, complete),
                    named_wrongly=wrongly.value,
                    users_median_low=min(median.low, asked),
                    users_median_high=median.high,
                    users_95_low=min(high.low, asked),
                    users_95_high=high.high,
                    named_wrongly_low=wrongly.low,
                    named_wrongly_high=wrongly.high,
                    none_left=float(nothing.mean()),
                    runs=len(users),
                    confirmed=confirmed,
                )
            )
        return rows

    def _plan(self, epsilon: float, rows: Sequence[Row], alike: BoolArray) -> Plan:
        """Record of the survey on a channel, from its rows of the answer, one per truth."""
        prediction = self.prediction
        features = None
        if prediction.features is not None:
            features = tuple(prediction.features)
        table = None
        if prediction.constant:
            table = _as_tuples(prediction.table[0])
        pairs_of_alike = np.argwhere(np.triu(alike, 1))
        return Plan(
            models=tuple(prediction.names),
            labels=tuple(prediction.labels),
            features=features,
            probe=tuple(tuple(row) for row in prediction.probe),
            fingerprint=prediction.fingerprint,
            table=table,
            channel_name=rows[0].channel,
            epsilon=epsilon,
            alpha=self.settings.alpha,
            tolerance=self.settings.tolerance,
            alike=tuple((int(j), int(k)) for j, k in pairs_of_alike),
            users=int(max(row.users_95 for row in rows)),
            most_users=self.settings.most_users,
            batch=self.settings.batch,
        )

    # -- Stress -----------------------------------------------------------------------------------------

    def _stress(
        self,
        name: str,
        epsilon: float,
        divergence: FloatArray,
        alike: BoolArray,
        file: Path,
        bar: Bar,
    ) -> list[dict[str, Any]]:
        """Play surveys whose truth is not a model; return a row for each truth.

        Args:
            name: name of the channel.
            epsilon: privacy level.
            divergence: ``KL(f_j, f_k)`` on average over the contexts, ``(K, K)``.
            alike: pairs of models that need not be told apart, ``(K, K)``.
            file: file of the predictions.
            bar: progress bar.
        """
        cases = self._stress_cases(divergence, alike)
        channels, _ = self._channels([name], epsilon)
        channel = channels[name]
        truths = np.stack([case.law for case in cases])
        run_numbers = np.arange(self.settings.runs // 2)
        surveys = self._surveys(channel, truths, run_numbers, alike, file)
        contest = Contest(name, channel, surveys, np.zeros(len(cases), dtype=np.bool_))
        self._play([contest], "stress", bar, alike=None)

        outcomes = contest.outcomes
        rows = []
        for i, case in enumerate(cases):
            users = outcomes.users[i]
            left = outcomes.left[i]
            ended = np.isfinite(users)
            named = ended & left.any(axis=-1)
            good = named & ~(left & ~case.right).any(axis=-1)
            rows.append(
                {
                    "stress": case.kind,
                    "truth": case.truth,
                    "named_it": float(good.mean()),
                    "named_another": float((named & ~good).mean()),
                    "none_left": float((ended & ~named).mean()),
                    "undecided": float((~ended).mean()),
                    "users_median": quantile(users, 0.5).value,
                    "asked": outcomes.asked,
                }
            )
        return rows

    def _stress_cases(self, divergence: FloatArray, alike: BoolArray) -> list[_StressCase]:
        """Truths that are not models: each model with some uniform labels, and mixtures of two models."""
        names = self.prediction.names
        num_models = len(names)
        cases = []
        for k, name in enumerate(names):
            law = np.zeros(num_models + 1)
            law[k] = 1.0 - _NOISE
            law[-1] = _NOISE
            cases.append(_StressCase(f"{_NOISE:.0%} noise", name, law, right=alike[k]))
        for j, k in _nearest_pairs(divergence, alike):
            law = np.zeros(num_models + 1)
            law[[j, k]] = 0.5
            truth = f"{names[j]} / {names[k]}"
            cases.append(_StressCase("half and half", truth, law, right=alike[j] | alike[k]))
        return cases


class _StressCase(NamedTuple):
    """A truth that is not a model.

    Attributes:
        kind: kind of the truth.
        truth: its name.
        law: its weights ``(K + 1,)`` of the K models and, last, of the uniform distribution.
        right: models ``(K,)`` that it is right to name.
    """

    kind: str
    truth: str
    law: FloatArray
    right: BoolArray


def _advance(stop: int, surveys: Surveys) -> Surveys:
    """Play surveys up to a number of users: the unit of work of a process."""
    return surveys.play(stop)


def _known(users: float, complete: bool) -> float:
    """Users, or NaN where play stopped before they were known."""
    if math.isinf(users) and not complete:
        return math.nan
    return users


def _nearest_pairs(divergence: FloatArray, alike: BoolArray) -> list[tuple[int, int]]:
    """Pairs ``(j, k)``, j < k, of each model and the nearest one that is not alike; each pair once."""
    distance = np.where(alike, np.inf, divergence + divergence.T)
    pairs = []
    for k in np.flatnonzero(~alike.all(axis=1)):
        candidates = np.flatnonzero(~alike[k])
        nearest = candidates[distance[k][candidates].argmin()]
        pairs.append((int(min(k, nearest)), int(max(k, nearest))))
    return list(dict.fromkeys(pairs))


def _as_tuples(table: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Rows of a table as tuples of Python's floats."""
    return tuple(tuple(row) for row in table.tolist())
