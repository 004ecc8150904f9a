"""Choose among fitted classifiers from private labels: by which channel, at which eps, from how many users.

A log of users whose labels are known is replayed. The best model is the one of the least log-loss on these
labels; the answer says how often, and from how many users on, learners that see only messages find it.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import NormalDist
from typing import Any

import numpy as np

from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra
from ldp_gym.engine.learners import MakeLearner, as_make_learner
from ldp_gym.engine.scenario import Scenario
from ldp_gym.evaluation import Evaluation, Recording, evaluate
from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.processes import count_jobs, share_out
from ldp_gym.statistics import share_interval

DEFAULT_CHANNELS = ("randomized-response", "subset-selection", "one-bit", "split", "adaptive-split")
DEFAULT_EPSILONS = (0.5, 1.0, 2.0, 4.0)
DEFAULT_LEARNERS = ("bayes", "centred-exp3", "unbiased")

UNBIASED = "unbiased"
"""Name of ``centred-exp3`` on unbiased losses of labels."""

SUFFICIENT = 0.95
"""Share of runs that must find the best model."""

_TRIAL_USERS = (60, 240)
"""Users of the two trial runs from which the time is estimated."""


class Predictions(HypothesisClass):
    """Models by their probabilities ``(n, K, M)`` for the rows of a log; a context is a row's index."""

    default_nature = None

    def __init__(self, table: FloatArray, classes: Any) -> None:
        super().__init__(table.shape[1], table.shape[2], 1)
        self.table, self.classes = game_arrays.distributions(table), classes

    def __call__(self, contexts: FloatArray) -> FloatArray:
        return self.table[contexts[..., 0].astype(np.int64)]


@dataclass(frozen=True)
class Selection:
    """Answer of :func:`select`; ``print`` shows it in words.

    Attributes:
        frame: a data frame with a row per ``channel``, ``epsilon`` and ``learner``: ``found``, the share of
            runs that found the best model; ``regret``, the learner's log-loss per user beyond the best
            model's; ``users_needed``, the users from which on 95% of runs find it (infinite if more users do
            not help, NaN if it is too noisy to say); ``estimated``, True if that is beyond the data;
            ``picked`` and ``picked_share``, the model that was found most often, and its share of the runs.
        losses: log-loss per user of every model, by name.
        users: number of users in the log.
        runs: number of runs.
        notes: sentences on the models, such as those that exclude a label.
    """

    frame: Any
    losses: Mapping[str, float]
    users: int
    runs: int
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """Name of the model of the least log-loss."""
        return min(self.losses, key=lambda name: self.losses[name])

    @property
    def recommended(self) -> Any:
        """Row of the least eps, then of the fewest users, among those that found the best model in 95%."""
        return _first(self.frame)

    @property
    def warnings(self) -> list[str]:
        """Sentences on channels where Bayes is misled, and on shares that fall as eps grows."""
        misled: dict[str, list[str]] = {}
        falls = []
        for row in self.frame.itertuples():
            clear = row.picked_share - row.found > 2.0 * math.sqrt((row.picked_share + row.found) / self.runs)
            same = self.frame[(self.frame["channel"] == row.channel) & (self.frame["epsilon"] == row.epsilon)]
            agrees = (same["picked"][same["learner"] == UNBIASED] == row.picked).any()
            if row.learner == "bayes" and clear and not agrees:
                misled.setdefault(f"{row.picked!r} on {row.channel}", []).append(f"{row.epsilon:g}")
        for (channel, learner), rows in self.frame.groupby(["channel", "learner"], sort=False):
            after = rows.loc[rows["found"].idxmax() :, "found"]
            p, q = float(after.max()), float(after.min())
            if p - q > 2.0 * math.sqrt((p * (1 - p) + q * (1 - q)) / self.runs):
                falls.append(f"{learner} on {channel}, from {p:.0%} to {q:.0%}")
        texts = {
            "bayes mostly takes another model": [f"{w} at eps = {', '.join(e)}" for w, e in misled.items()],
            "a larger eps finds the best model less often": falls,
        }
        because = "no model is right, and the one whose messages fit best need not have the least log-loss"
        return [f"{text} ({'; '.join(where)}): {because}." for text, where in texts.items() if where]

    def __str__(self) -> str:
        (first, least), (second, next_loss), *_ = sorted(self.losses.items(), key=lambda item: item[1])
        lines = [
            f"The best of {len(self.losses)} models for these {self.users:,} users is {first!r}, with "
            f"{least:.3f} nats of log-loss per user; the next is {second!r}, with {next_loss:.3f}.",
            *self.notes,
            _advice(self),
            *(f"Warning: {text}" for text in self.warnings),
            f"\nShare of {self.runs} runs that found it, and users needed for 95% of runs (~: estimate):",
            _table(self.frame),
        ]
        return "\n".join(lines)

    def save_figure(self, path: Any) -> None:
        """Draw ``found`` and ``users_needed`` against eps, a column per learner, into a file."""
        with extra("bench", "a figure"):
            from matplotlib.figure import Figure
        learners, epsilons = self.frame["learner"].unique(), sorted(self.frame["epsilon"].unique())
        figure = Figure(figsize=(2.8 * len(learners) + 2.0, 5.0), layout="constrained")
        axes = figure.subplots(2, len(learners), sharex=True, sharey="row", squeeze=False)
        for (above, below), learner in zip(axes.T, learners, strict=True):
            for i, channel in enumerate(self.frame["channel"].unique()):
                rows = self.frame[(self.frame["learner"] == learner) & (self.frame["channel"] == channel)]
                above.plot("epsilon", "found", f".-C{i}", data=rows, label=channel)
                rows = rows[np.isfinite(rows["users_needed"])]
                below.plot("epsilon", "users_needed", f"o-C{i}", data=rows, lw=1, ms=4)
                estimated = rows[rows["estimated"]]
                below.plot("epsilon", "users_needed", f"oC{i}", data=estimated, ms=4, mfc="white")
            above.axhline(SUFFICIENT, color="0.7", lw=0.8)
            below.axhline(self.users, color="0.7", lw=0.8)
            above.set(title=learner, xscale="log", ylim=(-0.03, 1.03))
            below.set(xlabel="eps", yscale="log")
            below.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
            below.minorticks_off()
        axes[0, 0].set_ylabel("share that found it")
        axes[1, 0].set_ylabel("users for 95%\n(open: estimate)")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper")
        figure.savefig(path, dpi=120)


def select(
    models: Sequence[Any] | Mapping[str, Any],
    X: Any,  # noqa: N803
    y: Any,
    *,
    channels: Sequence[str] = DEFAULT_CHANNELS,
    epsilons: Sequence[float] = DEFAULT_EPSILONS,
    learners: Sequence[str] = DEFAULT_LEARNERS,
    runs: int = 100,
    batch: int = 1,
    smoothing: float = 1e-3,
    seed: int = 0,
    jobs: int = -1,
    quiet: bool = False,
) -> Selection:
    """Find out which channel and eps find the best of some models, and how many users it takes.

    Args:
        models: fitted classifiers with ``predict_proba``, in a list or by name, over the same classes.
        X: the users' features, an array or a data frame.
        y: their labels, names in the models' ``classes_`` or indices.
        channels: names of channels.
        epsilons: privacy levels.
        learners: names of learners with weights; ``"unbiased"`` is ``centred-exp3`` on unbiased losses of
            labels, and plays the channels that have a formula for them.
        runs: number of runs, each in a new order of the users and with new private coins.
        batch: number of users who answer under one public posterior, on adaptive channels.
        smoothing: share of the uniform distribution that is mixed into every model, in (0, 1), so that no
            log-loss is infinite.
        seed: seed of the first run.
        jobs: number of processes, -1 for one per core; short work takes one.
        quiet: True to say nothing before the answer.
    """
    with extra("bench", "ldp_gym.select"):
        import pandas as pd
        from rich.console import Console
        from rich.progress import track
    channels = list(dict.fromkeys(validation.list_of("channels", channels, "names of channels")))
    makers = {name: _maker(name) for name in validation.list_of("learners", learners, "names of learners")}
    given = validation.list_of("epsilons", epsilons, "privacy levels")
    levels = sorted({validation.positive("epsilons", epsilon) for epsilon in given})
    if not (channels and makers and levels):
        raise ValueError("select needs at least one channel, one learner and one eps")
    smoothing = validation.fraction("smoothing", smoothing)
    named = _named(models)
    raw, classes = _probabilities(named, X)
    hypotheses = Predictions((1.0 - smoothing) * raw + smoothing / raw.shape[-1], classes)
    data = {"contexts": np.arange(len(raw)), "labels": y, "order": "shuffled"}
    rules = {"hypotheses": hypotheses, "truth": "replay", "truth_kwargs": data, "batch": batch}
    play = _Play(rules, makers, validation.whole("runs", runs, least=2), validation.seed("seed", seed))
    labels = Scenario(**rules).truth.labels  # type: ignore[arg-type, attr-defined]
    seconds = sum(play.seconds(channel, levels[0]) for channel in channels) * len(levels)
    processes = count_jobs(jobs) if seconds > 8.0 else 1  # to start processes takes seconds too
    pieces = [(channel, epsilon) for channel in channels for epsilon in levels]
    if not quiet:
        where = f"{', '.join(channels)} at eps = {', '.join(f'{epsilon:g}' for epsilon in levels)}"
        users = f"{runs} runs of {len(labels):,} users each, about {math.ceil(seconds / processes)} s"
        print(f"playing {', '.join(makers)} on {where}: {users}", file=sys.stderr)
    results: dict[int, dict[str, Evaluation]] = {}
    console, played = Console(stderr=True), share_out(play, pieces, processes)
    hidden = quiet or not console.is_terminal
    for index, part in track(played, "playing", len(pieces), console=console, transient=True, disable=hidden):
        if isinstance(part, BaseException):
            raise RuntimeError(f"a process that played {pieces[index]} was killed twice") from part
        results[index] = part
    chosen = raw[np.arange(len(labels)), :, labels]
    losses = -np.log((1.0 - smoothing) * chosen + smoothing / raw.shape[-1])
    rows = [
        {"channel": channel, "epsilon": epsilon, "learner": name, **_measures(result, losses, list(named))}
        for index, (channel, epsilon) in enumerate(pieces)
        for name, result in results[index].items()
    ]
    mean = dict(zip(named, losses.mean(axis=0).tolist(), strict=True))
    excluded = [name for name, lowest in zip(named, chosen.min(axis=0), strict=True) if lowest <= 0.0]
    return Selection(pd.DataFrame(rows), mean, len(labels), runs, _notes(mean, excluded, smoothing))


# -- The data and the runs ------------------------------------------------------------------------------


def _named(models: object) -> dict[str, Any]:
    if not isinstance(models, Mapping):
        listed = validation.list_of("models", models, "fitted classifiers")
        models = {f"{type(model).__name__} {j}": model for j, model in enumerate(listed)}
    if len(models) < 2 or not all(hasattr(model, "predict_proba") for model in models.values()):
        raise TypeError(f"models must be two or more fitted classifiers with predict_proba, got {models!r}")
    return {str(name): model for name, model in models.items()}


def _probabilities(models: Mapping[str, Any], features: Any) -> tuple[FloatArray, Any]:
    """Probabilities ``(n, K, M)`` by the models, and the classes that they share."""
    tables: list[Any] = []
    every: list[Any] = [getattr(model, "classes_", None) for model in models.values()]
    for (name, model), classes in zip(models.items(), every, strict=True):
        given, columns = features, getattr(model, "feature_names_in_", None)
        if hasattr(features, "columns"):  # a model that was fitted without names takes an array
            given = features.to_numpy() if columns is None else features[list(columns)]
        tables.append(validation.numbers(f"what {name!r} predicts", model.predict_proba(given)))
        if not np.array_equal(classes, every[0]) or tables[-1].shape != tables[0].shape:
            raise ValueError(
                f"the models must share their classes: {name!r} has {classes}, the first has {every[0]}"
            )
    return np.stack(tables, axis=1), None if every[0] is None else np.asarray(every[0])


def _maker(name: str) -> MakeLearner:
    return as_make_learner("centred-exp3", {"losses": "label"}) if name == UNBIASED else as_make_learner(name)


@dataclass(frozen=True)
class _Play:
    """Play all learners on a channel at an eps; it can be sent to a process."""

    rules: Mapping[str, Any]
    makers: Mapping[str, MakeLearner]
    runs: int
    seed: int

    def __call__(self, piece: tuple[str, float], **more: Any) -> dict[str, Evaluation]:
        rules: Any = {**self.rules, "channel": piece[0], "epsilon": piece[1], **more}
        recording = Recording(Scenario(**rules))
        users, channel = recording.scenario.horizon, type(recording.scenario.channel)
        prefixes = np.unique(np.geomspace(min(10, users), users, 24).astype(int)).tolist()
        # Without a formula, a channel matrix would be inverted for every user: that takes too long.
        unbiased = channel.unbiased_losses is not Channel.unbiased_losses
        return {
            name: evaluate(
                make, recording, episodes=self.runs, seed=self.seed, checkpoints=prefixes, leaders=True
            )
            for name, make in self.makers.items()
            if name != UNBIASED or unbiased
        }

    def seconds(self, channel: str, epsilon: float) -> float:
        """Estimated time of a call, from two trial runs with few users."""
        users, times = len(self.rules["truth_kwargs"]["contexts"]), []
        for few in _TRIAL_USERS:
            began = time.perf_counter()
            tried = self((channel, epsilon), horizon=min(few, users))
            times.append(time.perf_counter() - began)
        if without := [name for name, result in tried.items() if result.leaders is None]:
            raise ValueError(f"a learner without weights cannot select a model: leave out {without[0]!r}")
        slope = max(0.0, times[1] - times[0]) / (_TRIAL_USERS[1] - _TRIAL_USERS[0])
        return times[1] + slope * max(0, users - _TRIAL_USERS[1])


# -- The answer -----------------------------------------------------------------------------------------


def _measures(result: Evaluation, losses: FloatArray, names: Sequence[str]) -> dict[str, Any]:
    """Columns of a row of :attr:`Selection.frame`, from the losses ``(n, K)`` of the models."""
    assert result.leaders is not None, "the trial run had them"
    picks = result.leaders[:, -1]
    counts = np.bincount(picks[picks >= 0], minlength=len(names))
    users_needed, estimated = _users_needed(result, losses)
    return {
        "found": result.found,
        "regret": float(result.regret.mean()) / len(losses),
        "users_needed": users_needed,
        "estimated": estimated,
        "picked": names[int(counts.argmax())],
        "picked_share": counts.max() / len(picks),
    }


def _users_needed(result: Evaluation, losses: FloatArray) -> tuple[float, bool]:
    """Users from which on 95% of runs find the best model, and True if that is an estimate.

    Interpolated between prefixes of the data. Beyond the data: the lead over model j, a difference of log
    weights, has a mean that grows with the users and a standard deviation that grows with their root. So 95%
    need ``z^2 (T sd_j^2 / mean_j^2 + var_j / gap_j^2)`` users, where the first part is the noise of messages,
    over the runs, and the second that of other users, from the differences of the models' losses.
    """
    best = int(losses.sum(axis=0).argmin())
    shares = np.mean(result.leaders == best, axis=0)
    short = np.flatnonzero(shares < SUFFICIENT)
    if not short.size:
        return float(result.rounds[0]), False
    if (last := short[-1]) < len(shares) - 1:
        ends = slice(last, last + 2)
        return float(np.exp(np.interp(SUFFICIENT, shares[ends], np.log(result.rounds[ends])))), False
    assert result.weights is not None, "leaders come from weights"
    others = np.arange(losses.shape[1]) != best
    logs = np.log(np.maximum(result.weights, np.finfo(np.float64).tiny))
    leads = (logs[:, [best]] - logs)[:, others]
    mean, spread = leads.mean(axis=0), leads.std(axis=0, ddof=1)
    error = 2.0 * spread / math.sqrt(len(leads))
    if (mean < -error).any():
        return math.inf, True
    if (mean <= error).any():
        return math.nan, True
    further = (losses - losses[:, [best]])[:, others]
    z = NormalDist().inv_cdf(SUFFICIENT)
    with np.errstate(divide="ignore"):  # models of the same loss are never told apart
        noise, other_users = np.square(spread / mean), further.var(axis=0) / np.square(further.mean(axis=0))
    return float(max(len(losses), z**2 * (len(losses) * noise + other_users).max())), True


def _notes(mean: Mapping[str, float], excluded: Sequence[str], smoothing: float) -> tuple[str, ...]:
    notes = []
    if excluded:
        notes.append(
            f"Every model is mixed with {smoothing:.2%} of the uniform distribution, as "
            f"{', '.join(map(repr, excluded))} gave probability 0 to a label that came: an infinite log-loss."
        )
    first, second, *_ = sorted(mean.values())
    if second - first < 0.01:
        notes.append(f"The first two differ by {second - first:.4f} nats per user: it matters little which.")
    return tuple(notes)


def _first(frame: Any) -> Any:
    enough = frame[frame["found"] >= SUFFICIENT].sort_values(["epsilon", "users_needed"], kind="stable")
    return None if enough.empty else enough.iloc[0]


def _advice(selection: Selection) -> str:
    """The recommended channel and eps in words."""
    frame, row = selection.frame, selection.recommended
    if row is None:
        needed = frame[np.isfinite(frame["users_needed"])].sort_values("users_needed", kind="stable")
        if needed.empty:
            return "No choice found it in 95% of the runs, nor is shown to with more users."
        row = needed.iloc[0]
        return (
            f"These users are too few to find it in 95% of the runs. By estimate {_name(row)} takes the "
            f"fewest, about {row['users_needed']:,.0f}; here it found it in {row['found']:.0%}."
        )
    low, _ = share_interval(round(row["found"] * selection.runs), selection.runs, SUFFICIENT)
    text = (
        f"Least eps to find it in 95% of the runs: {_name(row)}. It found it in {row['found']:.0%} (at least "
        f"{low:.0%}, with 95% confidence), from about {row['users_needed']:,.0f} users on."
    )
    adaptive = {name: CHANNELS.class_of(name).adaptive for name in frame["channel"].unique()}
    if adaptive[row["channel"]]:
        other = _first(frame[~frame["channel"].map(adaptive)])
        text += " There users wait for each other's answers; if yours cannot, "
        text += "no channel did." if other is None else f"{_name(other)}."
    return text


def _name(row: Any) -> str:
    return f"{row['channel']} at eps = {row['epsilon']:g}, read by {row['learner']}"


def _table(frame: Any) -> str:
    """Learners and channels against eps, as text."""

    def show(row: Any) -> str:
        users, sign = row["users_needed"], "~" if row["estimated"] else ""
        needed = "?" if np.isnan(users) else f"{sign}{users:,.0f}" if np.isfinite(users) else "never"
        return f"{row['found']:.0%} {needed:>6}"

    shown = frame.assign(shown=frame.apply(show, axis=1))
    wide = shown.pivot(index=["learner", "channel"], columns="epsilon", values="shown")
    order = dict.fromkeys(zip(shown["learner"], shown["channel"], strict=True))
    wide = wide.loc[sorted(order, key=itemgetter(0))].reset_index()
    names = {epsilon: f"eps = {epsilon:g}" for epsilon in frame["epsilon"]}
    return wide.fillna("").rename(columns=names).to_string(index=False)
