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


def test_a_replay_plays_every_row_once_with_its_context_and_charges_the_log_loss():
    rules, shuffled = (rules_of(name, horizon=None) for name in ("replay", "shuffled replay"))
    assert Rules(**rules).scenario().horizon == ROWS
    assert revealed("label", rules, ROWS) == LOGGED.tolist()
    orders = [revealed("label", shuffled, ROWS, seed) for seed in (3, 3, 4)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(LOGGED.tolist())
    env = gym.make("LDPDist-v0", **shuffled)
    observation, _ = env.reset(seed=0)
    action = np.array([0.1, 0.2, 0.3, 0.35, 0.05])
    for _ in range(ROWS):
        row = np.flatnonzero((observation["context"] == CONTEXTS).all(axis=1)).item()
        observation, reward, _, _, info = env.step(action)
        assert (info["label"], info["truth"]) == (LOGGED[row], NO_MEMBER)
        assert -reward == info["kl"] == pytest.approx(-np.log(action[LOGGED[row]]))


def test_a_switch_comes_when_it_is_said_and_to_another_member():
    assert revealed("truth", rules_of("switches given")) == [0] * 5 + [3] * 4 + [0] * 11
    for seed in range(30):
        assert (
            np.count_nonzero(np.diff(revealed("truth", rules_of("three switches"), seed=seed))) == 3
        )


def draw_episodes(count, *source):
    truth = as_truth(source[0], CLASS, 20, source[1])
    return truth.draw_episode(np.random.default_rng(0).random((count, truth.num_episode_uniforms)))


def test_every_round_after_the_first_is_as_likely_to_be_a_switch_to_any_other_member():
    """A chi-square statistic of 19 rounds; beyond 80 has probability below 1e-8 under uniform switches."""
    switches, members = np.split(
        draw_episodes(20_000, "switching", {"num_switches": 2}), [2], axis=1
    )
    counts = np.bincount(switches.ravel(), minlength=20)
    assert counts[0] == 0
    assert (switches[:, 0] < switches[:, 1]).all()
    assert stats.chisquare(counts[1:]).statistic < 80.0
    steps = np.bincount(np.diff(members).ravel() % 4, minlength=4)
    assert steps[0] == 0, "each member differs from the one before"
    assert (
        max(stats.chisquare(each).statistic for each in (steps[1:], np.bincount(members[:, 0])))
        < 80.0
    )


def test_drawn_weights_are_uniform_on_the_simplex():
    """Of two weights the first is uniform on (0, 1): its mean is within 5 standard errors of 1/2."""
    weights = draw_episodes(20_000, "mixture", {"members": [0, 1]})
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights[:, 2:] == 0.0).all()
    assert abs(weights[:, 0].mean() - 0.5) < 5 * np.sqrt(1 / 12 / 20_000)
    assert abs((weights[:, 0] < 0.1).mean() - 0.1) < 5 * np.sqrt(0.09 / 20_000)
    twice = draw_episodes(3, "mixture", {"members": [2, 0, 2], "weights": [0.25, 0.5, 0.25]})
    assert twice.tolist() == [[0.5, 0.0, 0.5, 0.0]] * 3


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("mixture", {"members": members}, truth)
        for members, truth in (([2], 2), ([3, 3], 3), ([1, 0], NO_MEMBER))
    ]
    + [("mixture", {"members": [1, 0], "weights": [1.0, 0.0]}, 1)]
    + [("contaminated", {"member": 2, "rho": 0.0}, 2), ("contaminated", {"member": 2}, NO_MEMBER)],
)
def test_a_truth_that_equals_a_member_is_reported_as_it(name, options, expected):
    env = ldp_gym.LDPDistEnv(truth=name, truth_kwargs=options, reveal=True, num_hypotheses=4)
    assert env.reset(seed=0)[1]["truth"] == expected
    info = env.step(np.full(16, 1 / 16))[4]
    assert info["truth"] == expected
    assert expected == NO_MEMBER or info["comparator"][expected] == pytest.approx(0.0, abs=1e-12)


def test_the_comparator_by_hand():
    table = [[0.5, 0.5], [0.9, 0.1]]
    rules = {"hypotheses": table, "truth": [0.7, 0.3], "horizon": 10, "channel": "split"}
    result = ldp_gym.evaluate("uniform", rules, episodes=2)
    by_hand = [10 * stats.entropy([0.7, 0.3], row) for row in table]
    np.testing.assert_allclose(result.comparator, [by_hand, by_hand])
    np.testing.assert_allclose(result.opt, min(by_hand))
    np.testing.assert_allclose(result.regret, result.kl[:, -1] - min(by_hand))
    assert "regret" in str(result)
    member = ldp_gym.evaluate("bayes", rules_of("drawn member"), episodes=3)
    np.testing.assert_allclose(member.opt, 0.0, atol=1e-12)
    np.testing.assert_allclose(member.regret, member.kl[:, -1], rtol=1e-12)


def test_a_resampled_replay_draws_populations_from_the_posterior_of_the_log():
    """Flat Dirichlet: means 1/n, variances (n - 1) / (n^2 (n + 1)); rows come with these probabilities."""
    options = {"contexts": CONTEXTS, "labels": LOGGED, "resample": True, "order": "shuffled"}
    truth = as_truth("replay", CLASS, 40_000, options)
    uniforms = np.random.default_rng(0).random((4000, 1))
    weights = truth.population(uniforms)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(weights.mean(axis=0), 1.0 / ROWS, rtol=0.1)
    assert weights.var() == pytest.approx((ROWS - 1) / (ROWS**2 * (ROWS + 1)), rel=0.03)
    (rows,) = truth.draw_episode(uniforms[:1])
    assert stats.chisquare(np.bincount(rows, minlength=ROWS), 40_000 * weights[0]).pvalue > ALPHA
    half = as_truth("replay", CLASS, 20_000, options).draw_episode(uniforms[:1])
    np.testing.assert_array_equal(
        half[0], rows[:20_000], "a longer episode begins as a shorter one"
    )
    in_order = as_truth("replay", CLASS, 40_000, {**options, "order": "given"}).draw_episode(
        uniforms[:1]
    )
    np.testing.assert_array_equal(in_order[0], np.sort(rows))


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
    for name in ("pair", "contaminated"):
        with pytest.raises(ValueError, match="another truth"):
            ldp_gym.evaluate("bayes", rules_of(name), episodes=1, truth="all")
        with pytest.raises(ValueError, match="another truth"):
            gym.make("LDPDist-v0", **rules_of(name)).reset(options={"truth": 1})


class Model:
    n_features_in_ = 2
    classes_ = np.array(["ant", "bee", "cow"])

    def __init__(self, seed):
        self.weights = np.random.default_rng(seed).standard_normal((2, 3))

    def predict_proba(self, rows):
        scores = np.exp(np.asarray(rows) @ self.weights)
        return scores / scores.sum(axis=1, keepdims=True)


def test_classifiers_ask_for_contexts_name_the_labels_and_may_be_the_truth():
    models = {"hypotheses": [Model(0), Model(1)], "channel": "split"}
    with pytest.raises(
        ValueError, match=r'truth="replay".*nature="sequence".*nature="iid" asks for'
    ):
        Rules(**models).scenario()
    for nature in ({"nature": "iid"}, {"nature": "cycle", "nature_kwargs": {"contexts": CONTEXTS}}):
        assert Rules(**models, **nature).scenario().horizon == 1000
    names = np.array(["ant", "bee", "cow"])[LOGGED % 3]
    logs = {"contexts": CONTEXTS, "labels": names}
    rules = {**models, "truth": "replay", "truth_kwargs": logs, "reveal": True}
    assert revealed("label", rules, ROWS) == (LOGGED % 3).tolist()
    with pytest.raises(
        ValueError, match="'dog' in row 0 is not among the classes: 'ant', 'bee', 'cow'"
    ):
        Rules(**{**rules, "truth_kwargs": {**logs, "labels": ["dog", *names[1:]]}}).scenario()
    models |= {"truth": Model(1), "nature": "iid", "horizon": 300}
    result = ldp_gym.evaluate("bayes", models, episodes=4)
    np.testing.assert_allclose(result.comparator[:, 1], 0.0, atol=1e-12)
    assert result.identification_rate == 1.0


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
