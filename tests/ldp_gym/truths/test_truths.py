"""Any truth: each is what it says, and single, vector and tape play agree on it."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import ALPHA, infos_of, record, total_kl
from scipy import stats

import ldp_gym
from ldp_gym.engine.rules import Rules
from ldp_gym.hypotheses import SoftmaxLinear, Table
from ldp_gym.testing import check_truth
from ldp_gym.truths import NO_MEMBER, Truth, TruthView, as_truth

CLASS = SoftmaxLinear(4, 5, 2)
ROWS, LABELS = 50, 5
CONTEXTS = np.random.default_rng(0).standard_normal((ROWS, 2))
LOGGED = np.random.default_rng(1).integers(LABELS, size=ROWS)


def tilted(x):
    scores = np.exp(x[0] * np.arange(LABELS))
    return scores / scores.sum()


class Alternating(Truth):
    """A custom truth: two hypotheses take turns, and a coin of each round puts noise in."""

    num_uniforms = 1

    def distributions(self, view: TruthView):
        rows = np.broadcast_to(view.candidates, (*view.rounds.shape, *view.candidates.shape[-2:]))
        odd = (view.rounds % 2 == 1)[..., None]
        mixed = np.where(odd, rows[..., 1, :], rows[..., 0, :])
        return np.where(view.uniforms < 0.5, mixed, 1.0 / mixed.shape[-1])


TRUTHS = {
    "drawn member": ("uniform", {}),
    "given member": (2, {}),
    "pair": ("mixture", {}),
    "all": ("mixture", {"num_members": 4}),
    "weighed pair": ("mixture", {"members": [3, 1], "weights": [0.25, 0.75]}),
    "contaminated": ("contaminated", {"rho": 0.3}),
    "contaminated by a row": (
        "contaminated",
        {"rho": 0.3, "other": [1.0, 0, 0, 0, 0], "member": 1},
    ),
    "one switch": ("switching", {}),
    "three switches": ("switching", {"num_switches": 3}),
    "switches given": ("switching", {"switches": [5, 9], "members": [0, 3, 0]}),
    "row": ([0.1, 0.2, 0.3, 0.4, 0.0], {}),
    "function": (tilted, {}),
    "own": (Alternating(), {}),
    "replay": ("replay", {"contexts": CONTEXTS, "labels": LOGGED}),
    "shuffled replay": (
        "replay",
        {"contexts": CONTEXTS, "labels": LOGGED.tolist(), "order": "shuffled"},
    ),
    "resampled replay": ("replay", {"contexts": CONTEXTS, "labels": LOGGED, "resample": True}),
}
GAMES = [
    {},
    {"hypotheses": "dirichlet"},
    {"channel": "adaptive-split"},
    {"hypotheses": "dirichlet", "channel": "adaptive-groups"},
    {
        "nature": "omniscient",
        "nature_kwargs": {"pool_size": 3},
    },  # but a replay brings its contexts along
    {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True},
]
CASES = [
    (name, more) for name in TRUTHS for more in GAMES if not ("replay" in name and "nature" in more)
]


def rules_of(name, **more):
    truth, options = TRUTHS[name]
    size = {"num_hypotheses": 4, "num_labels": LABELS, "context_dim": 2, "horizon": 20}
    return {
        **size,
        "channel": "split",
        "reveal": True,
        "truth": truth,
        "truth_kwargs": options,
        **more,
    }


def revealed(what, rules, rounds=20, seed=0):
    """What the infos of an episode reveal."""
    env = gym.make("LDPDist-v0", **rules)
    env.reset(seed=seed)
    return [env.step(env.action_space.sample())[-1][what] for _ in range(rounds)]


@pytest.mark.parametrize("name", TRUTHS)
def test_every_truth_keeps_the_contract(name):
    source, options = TRUTHS[name]
    check_truth(as_truth(source, CLASS, 20, options), CLASS)


@pytest.mark.parametrize(("name", "more"), CASES, ids=str)
def test_single_vector_and_tape_play_agree(name, more):
    rules = rules_of(name, **more)
    evaluated = ldp_gym.evaluate("bayes", rules, episodes=2, seed=7)
    for episode in range(2):
        infos = infos_of("bayes", gym.make("LDPDist-v0", **rules), seed=7 + episode)
        assert sum(info["kl"] for info in infos) == pytest.approx(
            evaluated.kl[episode, -1], rel=1e-9
        )
        comparator = sum(info["comparator"] for info in infos)
        np.testing.assert_allclose(comparator, evaluated.comparator[episode], rtol=1e-9, atol=1e-9)
    together = total_kl("bayes", gym.make_vec("LDPDist-v0", num_envs=2, **rules), seed=7)
    np.testing.assert_allclose(together, evaluated.kl[:, -1], rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("given member", lambda f: f[2]),
        ("weighed pair", lambda f: 0.25 * f[3] + 0.75 * f[1]),
        ("contaminated by a row", lambda f: 0.7 * f[1] + 0.3 * np.eye(5)[0]),
        ("row", lambda f: np.array([0.1, 0.2, 0.3, 0.4, 0.0])),
    ],
)
def test_labels_have_the_law_that_the_truth_s_formula_gives(name, law):
    """In rounds with contexts; and 20,000 labels of a constant class, chi-square at error rate 1e-6."""
    _, tape = record(rules_of(name), 20)
    expected = [law(f) for f in np.broadcast_to(tape.candidates, (1, 20, 4, LABELS))[0]]
    np.testing.assert_allclose(
        np.broadcast_to(tape.distributions, (1, 20, LABELS))[0], expected, rtol=1e-9
    )
    table = np.random.default_rng(2).dirichlet(np.ones(LABELS), size=4)
    _, tape = record(
        rules_of(name, hypotheses=table.tolist(), context_dim=1, horizon=20_000), 20_000
    )
    counts, chances = np.bincount(tape.labels[0], minlength=LABELS), law(table)
    possible = chances > 0.0
    assert counts[possible].sum() == 20_000
    assert stats.chisquare(counts[possible], 20_000 * chances[possible]).pvalue > ALPHA


def test_the_horizon_of_a_replay_is_the_number_of_its_rows():
    assert Rules(**rules_of("replay", horizon=None)).scenario().horizon == 50


def test_a_replay_plays_the_logged_labels_in_order():
    assert revealed("label", rules_of("replay", horizon=None), ROWS) == LOGGED.tolist()


def test_a_shuffled_replay_has_an_order_for_each_seed():
    rules = rules_of("shuffled replay", horizon=None)
    first = revealed("label", rules, ROWS, seed=3)
    again = revealed("label", rules, ROWS, seed=3)
    other = revealed("label", rules, ROWS, seed=4)
    assert first == again
    assert first != other


@pytest.mark.parametrize("seed", [3, 4])
def test_a_shuffled_replay_plays_every_label_once(seed):
    labels = revealed("label", rules_of("shuffled replay", horizon=None), ROWS, seed)
    assert sorted(labels) == sorted(LOGGED.tolist())


def test_a_shuffled_replay_shows_a_label_s_context_and_charges_the_log_loss():
    env = gym.make("LDPDist-v0", **rules_of("shuffled replay", horizon=None))
    observation, _ = env.reset(seed=0)
    action = np.array([0.1, 0.2, 0.3, 0.35, 0.05])
    for _ in range(ROWS):
        row = np.flatnonzero((observation["context"] == CONTEXTS).all(axis=1)).item()
        label = LOGGED[row]
        observation, reward, _, _, info = env.step(action)
        assert info["label"] == label
        assert info["truth"] == NO_MEMBER
        assert info["kl"] == pytest.approx(-np.log(action[label]))
        assert reward == -info["kl"]


def test_given_switches_come_in_their_rounds():
    """Switches [5, 9], members [0, 3, 0], 20 rounds."""
    assert revealed("truth", rules_of("switches given")) == [0] * 5 + [3] * 4 + [0] * 11


@pytest.mark.parametrize("seed", range(30))
def test_each_of_three_switches_is_to_another_member(seed):
    truths = revealed("truth", rules_of("three switches"), seed=seed)
    assert np.count_nonzero(np.diff(truths)) == 3


def draw_episodes(count, name, options):
    """Draw what a named truth draws once per episode, for ``count`` episodes of 20 rounds."""
    truth = as_truth(name, CLASS, 20, options)
    return truth.draw_episode(np.random.default_rng(0).random((count, truth.num_episode_uniforms)))


MOST_CHI_SQUARE = 80.0
"""A chi-square statistic of 19 rounds or fewer exceeds this with probability below 1e-8."""


@pytest.fixture(scope="module")
def two_switches():
    """Rounds of the two switches and numbers of the three members, of 20,000 episodes."""
    drawn = draw_episodes(20_000, "switching", {"num_switches": 2})
    rounds = drawn[:, :2]
    members = drawn[:, 2:]
    return rounds, members


def test_switches_come_in_increasing_rounds(two_switches):
    rounds, _ = two_switches
    assert (rounds[:, 0] < rounds[:, 1]).all()


def test_no_switch_comes_in_the_first_round(two_switches):
    rounds, _ = two_switches
    assert (rounds > 0).all()


def test_every_round_after_the_first_is_as_likely_to_have_a_switch(two_switches):
    rounds, _ = two_switches
    counts = np.bincount(rounds.ravel(), minlength=20)
    assert stats.chisquare(counts[1:]).statistic < MOST_CHI_SQUARE


def test_every_member_is_as_likely_to_be_the_first(two_switches):
    _, members = two_switches
    assert stats.chisquare(np.bincount(members[:, 0])).statistic < MOST_CHI_SQUARE


def test_a_switch_is_to_any_other_member_alike(two_switches):
    _, members = two_switches
    steps_around_the_four = np.diff(members).ravel() % 4
    counts = np.bincount(steps_around_the_four, minlength=4)
    assert counts[0] == 0, "each member differs from the one before"
    assert stats.chisquare(counts[1:]).statistic < MOST_CHI_SQUARE


@pytest.fixture(scope="module")
def weights_of_two_members():
    """Weights of the four hypotheses in 20,000 mixtures of hypotheses 0 and 1."""
    return draw_episodes(20_000, "mixture", {"members": [0, 1]})


def test_drawn_weights_sum_to_one(weights_of_two_members):
    np.testing.assert_allclose(weights_of_two_members.sum(axis=1), 1.0)


def test_only_members_of_a_mixture_have_weight(weights_of_two_members):
    assert (weights_of_two_members[:, 2:] == 0.0).all()


def test_drawn_weights_are_uniform_on_the_simplex(weights_of_two_members):
    """Of two weights the first is uniform on (0, 1): mean 1/2, below 0.1 in a tenth; 5 standard errors."""
    first = weights_of_two_members[:, 0]
    assert abs(first.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 20_000)
    assert abs((first < 0.1).mean() - 0.1) < 5 * np.sqrt(0.09 / 20_000)


def test_weights_of_a_member_that_is_given_twice_are_added():
    options = {"members": [2, 0, 2], "weights": [0.25, 0.5, 0.25]}
    weights = draw_episodes(3, "mixture", options)
    np.testing.assert_array_equal(weights, [[0.5, 0.0, 0.5, 0.0]] * 3)


MEMBERS_IN_DISGUISE = [
    ("mixture", {"members": [2]}, 2),
    ("mixture", {"members": [3, 3]}, 3),
    ("mixture", {"members": [1, 0], "weights": [1.0, 0.0]}, 1),
    ("contaminated", {"member": 2, "rho": 0.0}, 2),
]
"""Truths that equal a member, and the member's number."""


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        *MEMBERS_IN_DISGUISE,
        ("mixture", {"members": [1, 0]}, NO_MEMBER),
        ("contaminated", {"member": 2}, NO_MEMBER),
    ],
)
def test_a_truth_that_equals_a_member_is_reported_as_this_member(name, options, expected):
    env = ldp_gym.LDPDistEnv(truth=name, truth_kwargs=options, reveal=True, num_hypotheses=4)
    _, info_of_reset = env.reset(seed=0)
    _, _, _, _, info_of_step = env.step(np.full(16, 1 / 16))
    assert info_of_reset["truth"] == expected
    assert info_of_step["truth"] == expected


@pytest.mark.parametrize(("name", "options", "member"), MEMBERS_IN_DISGUISE)
def test_the_comparator_of_a_member_that_equals_the_truth_is_0(name, options, member):
    env = ldp_gym.LDPDistEnv(truth=name, truth_kwargs=options, reveal=True, num_hypotheses=4)
    env.reset(seed=0)
    _, _, _, _, info = env.step(np.full(16, 1 / 16))
    assert info["comparator"][member] == pytest.approx(0.0, abs=1e-12)


@pytest.fixture(scope="module")
def outside_the_class():
    """Two episodes of ten rounds with the truth [0.7, 0.3] between the hypotheses 0.5 and 0.9."""
    table = [[0.5, 0.5], [0.9, 0.1]]
    rules = {"hypotheses": table, "truth": [0.7, 0.3], "horizon": 10, "channel": "split"}
    return ldp_gym.evaluate("uniform", rules, episodes=2)


KL_FROM_0 = 10 * (0.7 * np.log(0.7 / 0.5) + 0.3 * np.log(0.3 / 0.5))
KL_FROM_1 = 10 * (0.7 * np.log(0.7 / 0.9) + 0.3 * np.log(0.3 / 0.1))


def test_the_comparator_by_hand(outside_the_class):
    expected = [[KL_FROM_0, KL_FROM_1], [KL_FROM_0, KL_FROM_1]]
    np.testing.assert_allclose(outside_the_class.comparator, expected)


def test_opt_is_the_comparator_of_the_best_hypothesis(outside_the_class):
    assert KL_FROM_0 < KL_FROM_1
    np.testing.assert_allclose(outside_the_class.opt, KL_FROM_0)


def test_the_regret_is_the_total_kl_above_opt(outside_the_class):
    expected = outside_the_class.kl[:, -1] - KL_FROM_0
    np.testing.assert_allclose(outside_the_class.regret, expected)


def test_an_evaluation_outside_the_class_prints_its_regret(outside_the_class):
    assert "regret" in str(outside_the_class)


def test_opt_is_0_if_the_truth_is_a_member():
    result = ldp_gym.evaluate("bayes", rules_of("drawn member"), episodes=3)
    np.testing.assert_allclose(result.opt, 0.0, atol=1e-12)


def test_the_regret_is_the_total_kl_if_the_truth_is_a_member():
    result = ldp_gym.evaluate("bayes", rules_of("drawn member"), episodes=3)
    np.testing.assert_allclose(result.regret, result.kl[:, -1], rtol=1e-12)


RESAMPLED = {"contexts": CONTEXTS, "labels": LOGGED, "resample": True, "order": "shuffled"}
"""Options of a replay that draws rows of the log again, in random order."""


def resampled_rows(horizon, order="shuffled"):
    """Rows of the log that are played in the first of the episodes below."""
    truth = as_truth("replay", CLASS, horizon, {**RESAMPLED, "order": order})
    uniforms = np.random.default_rng(0).random((4000, 1))
    (rows,) = truth.draw_episode(uniforms[:1])
    return rows


@pytest.fixture(scope="module")
def populations():
    """Probabilities of the 50 rows in 4,000 episodes."""
    truth = as_truth("replay", CLASS, 40_000, RESAMPLED)
    return truth.population(np.random.default_rng(0).random((4000, 1)))


def test_a_population_of_a_resampled_replay_sums_to_one(populations):
    np.testing.assert_allclose(populations.sum(axis=1), 1.0)


def test_populations_have_the_moments_of_a_flat_dirichlet(populations):
    """Of n = 50 rows: means 1/n and variances (n - 1) / (n^2 (n + 1))."""
    np.testing.assert_allclose(populations.mean(axis=0), 1 / 50, rtol=0.1)
    assert populations.var() == pytest.approx(49 / (50**2 * 51), rel=0.03)


def test_resampled_rows_have_the_probabilities_of_their_population(populations):
    counts = np.bincount(resampled_rows(40_000), minlength=ROWS)
    assert stats.chisquare(counts, 40_000 * populations[0]).pvalue > ALPHA


def test_a_longer_resampled_episode_begins_as_a_shorter_one():
    np.testing.assert_array_equal(resampled_rows(20_000), resampled_rows(40_000)[:20_000])


def test_resampled_rows_in_the_given_order_are_the_shuffled_ones_sorted():
    in_order = resampled_rows(40_000, order="given")
    np.testing.assert_array_equal(in_order, np.sort(resampled_rows(40_000)))


def named(truth, **options):
    return {"truth": truth, "truth_kwargs": options or None}


def replay(**options):
    return named("replay", **{"contexts": CONTEXTS, "labels": LOGGED, **options})


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (named([0.5, 0.5, 0.5, 0, 0]), "truth sums to 1.5"),
        (named([0, 1, 2, 1] * 3), 'to replay logged labels: truth="replay"'),
        (named(lambda x: [1.0]), "the truth must map a context"),
        (named(None), "truth must be an index, a name"),
        (named(1, rho=1), "go with a named truth"),
        (named("mixture", num_members=5), "at most K = 4, got 5"),
        (named("switching", switches=[9, 3]), "switches must increase"),
        (named("switching", num_switches=20), "below the horizon 20"),
        (replay(labels=LOGGED[:-1]), "49 labels and 50 contexts"),
        (
            replay(labels=np.where(np.arange(ROWS) == 7, 9, LOGGED)),
            "must lie in 0..4, got 9 in row 7",
        ),
        (
            replay(labels=np.where(np.arange(ROWS) == 7, 0.5, LOGGED)),
            "must be indices in 0..4, got ",
        ),
        (replay(labels=["cat"] * ROWS), "names of labels go with a class of fitted classifiers"),
        (replay(contexts=CONTEXTS[:, :1]), r"shape \(n, d\) with d = 2, got \(50, 1\)"),
        ({**replay(), "horizon": 51}, "horizon=51 is more than the 50 rounds"),
        ({**replay(), "nature": "iid"}, "brings its contexts along"),
    ],
)
def test_bad_truths_and_logs_are_named(rules, message):
    kind = (
        TypeError if message.endswith(("an index, a name", "go with a named truth")) else ValueError
    )
    with pytest.raises(kind, match=message):
        Rules(**rules_of("drawn member", **rules)).scenario()


@pytest.mark.parametrize("name", ["pair", "contaminated"])
def test_an_evaluation_over_all_members_needs_a_truth_that_is_a_member(name):
    with pytest.raises(ValueError, match="another truth"):
        ldp_gym.evaluate("bayes", rules_of(name), episodes=1, truth="all")


@pytest.mark.parametrize("name", ["pair", "contaminated"])
def test_a_reset_to_a_member_needs_a_truth_that_is_a_member(name):
    env = gym.make("LDPDist-v0", **rules_of(name))
    with pytest.raises(ValueError, match="another truth"):
        env.reset(options={"truth": 1})


class Model:
    n_features_in_ = 2
    classes_ = np.array(["ant", "bee", "cow"])

    def __init__(self, seed):
        self.weights = np.random.default_rng(seed).standard_normal((2, 3))

    def predict_proba(self, rows):
        scores = np.exp(np.asarray(rows) @ self.weights)
        return scores / scores.sum(axis=1, keepdims=True)


CLASSIFIERS = {"hypotheses": [Model(0), Model(1)], "channel": "split"}
"""Rules whose hypotheses are two fitted classifiers."""
NAMES = np.array(["ant", "bee", "cow"])[LOGGED % 3]
"""Logged labels by name."""
NAMED_LOGS = {"contexts": CONTEXTS, "labels": NAMES}


def test_classifiers_ask_for_contexts():
    with pytest.raises(
        ValueError, match=r'truth="replay".*nature="sequence".*nature="iid" asks for'
    ):
        Rules(**CLASSIFIERS).scenario()


@pytest.mark.parametrize(
    "nature", [{"nature": "iid"}, {"nature": "cycle", "nature_kwargs": {"contexts": CONTEXTS}}]
)
def test_classifiers_play_with_a_nature_that_is_named(nature):
    assert Rules(**CLASSIFIERS, **nature).scenario().horizon == 1000


def test_a_log_may_name_the_labels_as_the_classifiers_do():
    rules = {**CLASSIFIERS, "truth": "replay", "truth_kwargs": NAMED_LOGS, "reveal": True}
    assert revealed("label", rules, ROWS) == (LOGGED % 3).tolist()


def test_a_name_that_the_classifiers_do_not_know_is_refused():
    logs = {"contexts": CONTEXTS, "labels": ["dog", *NAMES[1:]]}
    message = "'dog' in row 0 is not among the classes: 'ant', 'bee', 'cow'"
    with pytest.raises(ValueError, match=message):
        Rules(**CLASSIFIERS, truth="replay", truth_kwargs=logs).scenario()


@pytest.fixture(scope="module")
def classifier_as_truth():
    """Four episodes in which the truth is a classifier equal to hypothesis 1."""
    rules = {**CLASSIFIERS, "truth": Model(1), "nature": "iid", "horizon": 300}
    return ldp_gym.evaluate("bayes", rules, episodes=4)


def test_a_classifier_may_be_the_truth(classifier_as_truth):
    np.testing.assert_allclose(classifier_as_truth.comparator[:, 1], 0.0, atol=1e-12)


def test_a_classifier_that_is_the_truth_is_identified(classifier_as_truth):
    assert classifier_as_truth.identification_rate == 1.0


class ByContext(Truth):
    def distributions(self, view: TruthView):
        return np.where(view.contexts[..., :1] > 0.0, [0.9, 0.1], [0.1, 0.9])


@pytest.mark.parametrize("truth", [Alternating, ByContext])
def test_a_custom_truth_is_asked_in_every_round_and_held_to_its_word(truth):
    table = Table([[0.6, 0.4], [0.2, 0.8]])
    rules = {"hypotheses": table, "truth": truth(), "horizon": 12, "channel": "split"}
    total = total_kl("uniform", gym.make("LDPDist-v0", **rules), seed=3)
    assert ldp_gym.evaluate("uniform", rules, episodes=1, seed=3).kl[0, -1] == pytest.approx(
        total, rel=1e-9
    )
    check_truth(truth(), table)
    for change, found, said in (
        ({"constant": True}, "constant = False", "constant = False"),
        (
            {"distributions": lambda *of: 1.5 * truth.distributions(*of)},
            "sum to one",
            "sums to 1.5",
        ),
    ):
        wrong = type("Wrong", (truth,), change)()
        with pytest.raises(AssertionError, match=found):
            check_truth(wrong, table)
        with pytest.raises(ValueError, match=said):
            ldp_gym.evaluate("bayes", {**rules, "truth": wrong}, episodes=1)
