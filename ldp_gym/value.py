"""The value of a game: bounds on its minimax risk, and a least favourable prior.

A learner's risk at truth k is its expected total KL if hypothesis k is the truth. The minimax risk
is the least, over learners, of the risk at the worst truth. For each prior over the truths Bayes
has the least mean risk, so that mean is a lower bound; its risk at the worst truth is an upper
bound. At a least favourable prior the two agree.

**How it is computed.** Messages do not depend on the learner, so a transcript is simulated once and
read with every prior. A transcript of truth j also counts for truth k: with likelihoods L,

    E_k[loss] = (1/K) sum_j E_j[K L_k / (sum_i L_i) loss]

for every loss that is a function of the transcript. All transcripts count for every truth, and
those that are unlikely under a truth have small weights: the estimates vary much less than means
over a truth's own episodes. With a prior pi, and ``p_hat = sum_k w_k f_k`` with ``w_k`` proportional
to ``pi_k L_k``, the estimate of the mean risk, ``sum_k pi_k R_k``, is concave in pi, and its
gradient is the vector of estimated risks R.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from ldp_gym import statistics
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray, expectations, mixture, relative_weights
from ldp_gym.core.divergences import negentropy
from ldp_gym.engine.posterior import finite
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import Scenario, first_generator
from ldp_gym.engine.tape import Episodes
from ldp_gym.evaluation import as_scenario
from ldp_gym.processes import count_jobs, one_thread, share_out_all
from ldp_gym.statistics import Estimate
from ldp_gym.truths.base import Member

_EPISODES_AT_A_TIME = 400
"""Largest number of episodes of a truth that are simulated together."""

_BLOCK_FLOATS = 600_000
"""Target size of a block of tape, in floats."""

_SEARCH_FLOATS = 2**25
"""Target size of the transcripts that the search keeps, in floats: 256 MB."""

_FEWEST_EPISODES = 16
"""Least number of episodes per truth in the search, whatever their size."""

_DENSE_ROUNDS = 16
"""The search reads so many first rounds one by one, and then one in each 1/16 of the rounds before it."""

_MOST_STEPS = 100
"""Largest number of steps of the search."""

_CLOSE = 1e-3
"""Gap between the worst truth's risk and the mean risk at which the search ends, as a share of the mean."""

_SMALLEST_SHARE = 1e-3
"""K times the least weight of a prior: without a floor a truth of weight 0 could have an infinite risk."""

_SMALLEST_PROBABILITY = 1e-300
"""Floor of a probability under a logarithm; a smaller one belongs to hypotheses of weight 0 in floats."""


@dataclass(frozen=True)
class Minimax:
    """Bounds on the minimax risk of a game over the truths of its class, in nats.

    With 95% confidence the minimax risk lies between ``lower.low`` and ``upper.high``.

    Attributes:
        prior: the least favourable prior that was found, ``(K,)``.
        lower: risk of Bayes with this prior, under a truth drawn from it. No learner on this channel has a
            smaller risk at every truth.
        upper: risk of Bayes with this prior at its worst truth: the largest of K estimates, biased upwards.
            Its interval is that of the largest of K expectations.
        risks: risk of Bayes with this prior at each truth, ``(K,)``.
        episodes: number of episodes per truth behind these estimates.
    """

    prior: FloatArray
    lower: Estimate
    upper: Estimate
    risks: FloatArray
    episodes: int

    @property
    def worst_truth(self) -> int:
        """Truth of the largest estimated risk."""
        return int(self.risks.argmax())

    def __str__(self) -> str:
        smallest = self.prior.min()
        largest = self.prior.max()
        worst = f"{self.worst_truth} of {len(self.risks)}"
        return (
            f"lower  {self.lower} nats: Bayes' risk under the least favourable prior\n"
            f"upper  {self.upper} nats: its risk at the worst truth, {worst}\n"
            f"{self.episodes} episodes per truth; prior from {smallest:.3g} to {largest:.3g}"
        )


def minimax(
    rules: Mapping[str, Any] | Rules | gym.Env[Any, Any],
    *,
    episodes: int = 400,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Minimax:
    """Bracket the least risk that a learner can have at every truth of the class, on the game's channel.

    The prior is found on some episodes, and the bounds are estimated on others. The learner
    ``ldp_agents.Bayes(game, prior=result.prior)`` has the upper bound as its risk at the worst truth.

    Args:
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``, or such an environment. The truth must be
            a uniformly drawn member, the default; the class must not be redrawn; and contexts may depend on
            the truth only through the messages.
        episodes: number of episodes per truth behind the estimates; the search uses at most as many others.
        seed: seed of the first episode.
        jobs: number of processes, -1 for one per core; the numbers are the same for any.
        progress: callback with the number of rounds played since the last call.

    Example:
        >>> rules = {"hypotheses": [[0.9, 0.1], [0.5, 0.5]], "channel": "half-space", "horizon": 50}
        >>> result = minimax(rules, episodes=200)
        >>> result.lower.value <= result.upper.value <= 1.1 * result.lower.value
        True
    """
    scenario = as_scenario(rules)
    _check_game(scenario)
    episodes = validation.whole("episodes", episodes, least=2)
    seed = validation.seed("seed", seed)
    jobs = count_jobs(jobs)
    validation.function("progress", progress, "of the number of rounds played")

    search_seeds = range(seed, seed + _search_episodes(scenario, episodes))
    prior = _search(scenario, search_seeds, jobs, progress)
    fresh_seeds = range(seed + episodes, seed + 2 * episodes)
    totals = _estimate_risks(scenario, prior, fresh_seeds, jobs, progress)
    return Minimax(
        prior=prior,
        lower=statistics.mean(prior @ totals, least=0.0),
        upper=statistics.largest_mean(totals, least=0.0),
        risks=totals.mean(axis=-1),
        episodes=episodes,
    )


def least_favourable_prior(
    rules: Mapping[str, Any] | Rules | gym.Env[Any, Any], *, episodes: int = 400, seed: int = 0
) -> FloatArray:
    """Search for a prior ``(K,)`` with which Bayes' risk at the worst truth is nearly the least.

    Args:
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``, or such an environment.
        episodes: largest number of episodes per truth in the search.
        seed: seed of the first episode.
    """
    scenario = as_scenario(rules)
    _check_game(scenario)
    episodes = validation.whole("episodes", episodes, least=2)
    seed = validation.seed("seed", seed)
    seeds = range(seed, seed + _search_episodes(scenario, episodes))
    return _search(scenario, seeds, jobs=1, progress=None)


def _check_game(scenario: Scenario) -> None:
    """Refuse games whose minimax risk the bounds do not cover."""
    if type(scenario.truth) is not Member or scenario.truth.member is not None:
        raise ValueError(
            f"minimax is about the worst of all truths in the class, and these rules have another truth, "
            f"{scenario.truth!r}: leave out 'truth'"
        )
    if scenario.redraws:
        raise ValueError(
            "minimax needs one class: a prior is about its hypotheses, and redraw_hypotheses=True draws "
            "others in every episode"
        )
    if scenario.nature.leaks_truth:
        raise ValueError(
            f"minimax needs contexts that depend on the truth only through the messages, and "
            f"{scenario.nature!r} looks at the truth: there a learner can learn from the contexts, "
            f"which Bayes does not read, so that its risk is no lower bound"
        )


# -- Simulation ---------------------------------------------------------------------------------------------


class Rounds(NamedTuple):
    """Some rounds of B episodes, and the log-likelihoods of the messages before them."""

    log_likelihoods: FloatArray  # of all messages before each round, (B, n, K)
    candidates: FloatArray  # (B, n or 1, K, M) or (K, M)
    negentropies: FloatArray  # of the candidates, (B, n or 1, K) or (K,)
    lengths: FloatArray  # number of rounds that each stands for, (n,)

    def losses(self, prior: FloatArray) -> FloatArray:
        """Contribution of these episodes to the total loss of Bayes at each truth k, ``(B, K)``.

        Round by round it is ``(L_k / sum_i L_i) KL(f_k, p_hat)``: L_k is the likelihood of the messages so
        far if k is the truth, f_k the k-th candidate, and p_hat the posterior mean.
        """
        likelihoods = relative_weights(self.log_likelihoods)
        shares = likelihoods / likelihoods.sum(axis=-1, keepdims=True)

        posterior = likelihoods * prior
        posterior /= posterior.sum(axis=-1, keepdims=True)
        predictions = mixture(posterior, self.candidates)
        # Where a hypothesis has no share, a prediction may exclude its labels: the loss must stay finite.
        log_predictions = np.log(np.maximum(predictions, _SMALLEST_PROBABILITY))
        divergences = self.negentropies - expectations(self.candidates, log_predictions)
        divergences = np.maximum(divergences, 0.0)  # rounding may go below 0
        return np.einsum("bnk,bnk,n->bk", shares, divergences, self.lengths)


class Piece(NamedTuple):
    """Episodes of a truth that are simulated together."""

    truth: int
    seeds: Sequence[int]


def _pieces(scenario: Scenario, seeds: Sequence[int]) -> list[Piece]:
    """Cut the episodes of all truths into pieces, one truth after the other."""
    pieces = []
    for truth in range(scenario.hypotheses.num_hypotheses):
        for start in range(0, len(seeds), _EPISODES_AT_A_TIME):
            pieces.append(Piece(truth, seeds[start : start + _EPISODES_AT_A_TIME]))
    return pieces


def _simulate(scenario: Scenario, piece: Piece, sample: RoundSample) -> Iterator[Rounds]:
    """Yield the sampled rounds of some episodes, block by block."""
    generators = [first_generator(seed) for seed in piece.seeds]
    starts = scenario.start_episodes(generators, piece.truth)
    episodes = Episodes(scenario, starts, show_contexts=False)
    block_length = scenario.rounds_at_a_time(len(piece.seeds), _BLOCK_FLOATS)

    total = np.zeros((len(piece.seeds), 1, scenario.hypotheses.num_hypotheses))
    for start in range(0, scenario.horizon, block_length):
        num_rounds = min(block_length, scenario.horizon - start)
        tape = episodes.play(num_rounds)

        # sums[:, i]: log-likelihoods of all messages before the block's i-th round.
        log_likelihoods = finite(tape.read_by(scenario.channel))
        sums = np.concatenate([total, log_likelihoods], axis=1)
        np.cumsum(sums, axis=1, out=sums)
        total = sums[:, -1:].copy()

        first, last = np.searchsorted(sample.rounds, [start, start + num_rounds])
        sampled = sample.rounds[first:last] - start
        candidates = tape.candidates
        differ_by_round = candidates.ndim > 2 and candidates.shape[1] > 1
        if differ_by_round:
            candidates = candidates[:, sampled]
        yield Rounds(
            log_likelihoods=sums[:, sampled],
            candidates=candidates,
            negentropies=negentropy(candidates),
            lengths=sample.lengths[first:last],
        )


class RoundSample(NamedTuple):
    """Rounds at which losses are computed, and the number of rounds that each stands for."""

    rounds: IntArray
    lengths: FloatArray


def all_rounds(horizon: int) -> RoundSample:
    """Every round, which stands for itself."""
    return RoundSample(np.arange(horizon), np.ones(horizon))


def sample_rounds(horizon: int) -> RoundSample:
    """Middle rounds of intervals that grow with the round, as expected losses change ever more slowly.

    The first 16 intervals have one round; later ones have 1/16 of the rounds before them.

    Example:
        >>> sample = sample_rounds(1000)
        >>> len(sample.rounds), sample.lengths.sum(), sample.rounds[:3], sample.lengths[-5:]
        (93, np.float64(1000.0), array([0, 1, 2]), array([47., 50., 53., 56., 33.]))
    """
    starts = []
    start = 0
    while start < horizon:
        starts.append(start)
        start += max(1, start // _DENSE_ROUNDS)
    lengths = np.diff(starts, append=horizon)
    middles = np.array(starts) + (lengths - 1) // 2
    return RoundSample(middles, lengths.astype(np.float64))


# -- The search ---------------------------------------------------------------------------------------------


def _search_episodes(scenario: Scenario, episodes: int) -> int:
    """Number of episodes per truth in the search: at most ``episodes``, and few enough for the memory."""
    hypotheses = scenario.hypotheses
    floats_per_round = hypotheses.num_hypotheses  # log-likelihoods
    if not hypotheses.constant:  # candidates, and the negative entropy of each
        floats_per_round += hypotheses.num_hypotheses * (hypotheses.num_labels + 1)
    num_rounds = len(sample_rounds(scenario.horizon).rounds)
    floats_per_episode = num_rounds * floats_per_round
    affordable = _SEARCH_FLOATS // (hypotheses.num_hypotheses * floats_per_episode)
    return min(episodes, max(_FEWEST_EPISODES, affordable))


@dataclass(frozen=True)
class _Recorder:
    """Record the sampled rounds of some episodes; it can be sent to a process."""

    scenario: Scenario

    def __call__(self, piece: Piece) -> list[Rounds]:
        """Sampled rounds of a piece's episodes, in blocks."""
        with one_thread():
            sample = sample_rounds(self.scenario.horizon)
            return list(_simulate(self.scenario, piece, sample))


def _search(
    scenario: Scenario, seeds: Sequence[int], jobs: int, progress: Callable[[int], None] | None
) -> FloatArray:
    """Find a prior whose Bayes risk is nearly the same at every truth that it gives weight to.

    Multiplicative weights: the weight of truth k is multiplied by ``exp(step (R_k / B - 1))``, where R_k is
    Bayes' risk at truth k, and B the mean risk.
    With the step log K this is the iteration of Arimoto and Blahut for a capacity, if a nat of
    information about the truth is worth B / log K. The step is halved whenever the gap between the
    largest risk and B does not shrink. The search ends when the gap is within its standard error:
    more steps would fit the prior to the noise of the simulation.
    """
    num_hypotheses = scenario.hypotheses.num_hypotheses
    pieces = _pieces(scenario, seeds)
    recorded = share_out_all(_Recorder(scenario), pieces, jobs, _count_rounds(scenario, progress))

    def risks_with(prior: FloatArray) -> Risks:
        """Risks of Bayes with a prior, estimated from the recorded episodes."""
        parts = []
        for blocks in recorded:
            losses = [rounds.losses(prior) for rounds in blocks]
            parts.append(np.sum(losses, axis=0))
        return Risks.of(_join(pieces, parts, seeds), prior)

    prior = np.full(num_hypotheses, 1.0 / num_hypotheses)
    step = np.log(num_hypotheses)
    with one_thread():
        risks = risks_with(prior)
        for _ in range(_MOST_STEPS):
            if risks.gap <= max(_CLOSE * risks.mean, risks.gap_error):
                break
            growth = np.exp(step * (risks.at_truths / risks.mean - 1.0))
            next_prior = _with_floor(prior * growth)
            next_risks = risks_with(next_prior)
            if next_risks.gap < risks.gap:
                prior = next_prior
                risks = next_risks
            else:
                step /= 2.0
    return prior


class Risks(NamedTuple):
    """Estimated risks of Bayes with a prior."""

    at_truths: FloatArray  # (K,)
    mean: float  # under a truth drawn from the prior
    gap: float  # how much larger the largest risk is than the mean
    gap_error: float  # standard error of the gap

    @classmethod
    def of(cls, totals: FloatArray, prior: FloatArray) -> Risks:
        """Risks from n independent estimates ``(K, n)`` of the total loss at each truth.

        Args:
            totals: the estimates, ``(K, n)``.
            prior: probabilities of the truths, ``(K,)``.
        """
        at_truths = totals.mean(axis=-1)
        mean = float(prior @ at_truths)
        worst = int(at_truths.argmax())
        gaps = totals[worst] - prior @ totals
        standard_error = gaps.std(ddof=1) / np.sqrt(len(gaps))
        return cls(
            at_truths=at_truths,
            mean=mean,
            gap=float(at_truths[worst]) - mean,
            gap_error=float(standard_error),
        )


def _with_floor(weights: FloatArray) -> FloatArray:
    """Weights that sum to one, each of at least :data:`_SMALLEST_SHARE` over K."""
    normalised = weights / weights.sum()
    return (1.0 - _SMALLEST_SHARE) * normalised + _SMALLEST_SHARE / len(weights)


# -- The estimates ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Estimator:
    """Total losses of Bayes in some episodes; it can be sent to a process."""

    scenario: Scenario
    prior: FloatArray

    def __call__(self, piece: Piece) -> FloatArray:
        """Contribution ``(B, K)`` of the episodes to the loss at each truth."""
        sample = all_rounds(self.scenario.horizon)
        totals = np.zeros((len(piece.seeds), len(self.prior)))
        with one_thread():
            for rounds in _simulate(self.scenario, piece, sample):
                totals += rounds.losses(self.prior)
        return totals


def _estimate_risks(
    scenario: Scenario,
    prior: FloatArray,
    seeds: Sequence[int],
    jobs: int,
    progress: Callable[[int], None] | None,
) -> FloatArray:
    """Estimate the risk of Bayes at each truth from each seed, ``(K, len(seeds))``.

    The columns are independent of each other; an entry's expectation is the risk.
    """
    pieces = _pieces(scenario, seeds)
    parts = share_out_all(
        _Estimator(scenario, prior), pieces, jobs, _count_rounds(scenario, progress)
    )
    return _join(pieces, parts, seeds)


def _join(pieces: Sequence[Piece], parts: Sequence[FloatArray], seeds: Sequence[int]) -> FloatArray:
    """Sum up the contributions of all truths' episodes, seed by seed: ``(K, len(seeds))``.

    Args:
        pieces: episodes of each truth that were simulated together.
        parts: contribution ``(B, K)`` of each piece's episodes to the loss at each truth.
        seeds: seeds of the episodes, which are the same for all truths.
    """
    totals = np.zeros((parts[0].shape[-1], len(seeds)))
    for piece, part in zip(pieces, parts, strict=True):
        first = seeds.index(piece.seeds[0])
        totals[:, first : first + len(piece.seeds)] += part.T
    return totals


def _count_rounds(
    scenario: Scenario, progress: Callable[[int], None] | None
) -> Callable[[Piece], None] | None:
    """Callback for a finished piece, from one for the number of rounds; None from none."""
    if progress is None:
        return None

    def report(piece: Piece) -> None:
        """Report the rounds of a piece."""
        progress(len(piece.seeds) * scenario.horizon)

    return report
