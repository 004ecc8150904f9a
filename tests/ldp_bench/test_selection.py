"""ldp_bench.select: the best model of users like those of a log, and how many it takes to find it."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_in_line
from helpers import make_channel
from scipy import stats

import ldp_agents
from ldp_bench.selection import Plan, answer, models, search, select
from ldp_gym.core.errors import UntrustedCodeError

CAUTIOUS, SHARP, WRONG = [0.7, 0.15, 0.15], [0.95, 0.0499, 0.0001], [0.1, 0.3, 0.6]
QUICK = {
    "channels": ["randomized-response"],
    "epsilons": [2.0],
    "runs": 20,
    "quiet": True,
    "jobs": 1,
}


class Says:
    def __init__(self, probabilities, classes=(0, 1, 2)):
        self.probabilities, self.classes_ = np.array(probabilities), np.array(classes)

    def predict_proba(self, X):
        return np.tile(self.probabilities, (len(X), 1))


def draw(users, law=(0.9, 0.05, 0.05)):
    return np.random.default_rng(0).choice(len(law), size=users, p=law)


def ask(tables, labels, **settings):
    return select(dict(zip("abcd", tables, strict=False)), None, labels, **QUICK | settings)


def said(chosen):
    """The printed answer, its lines joined."""
    assert max(map(len, str(chosen).splitlines())) <= 84
    return " ".join(str(chosen).split())


# -- The statistics ---------------------------------------------------------------------------------------


def test_the_answer_begins_with_what_the_log_tells():
    """Losses, the paired gap with its error, and shares of the flat Dirichlet, all by hand."""
    labels = draw(100)
    chosen = ask([WRONG, CAUTIOUS, SHARP], labels)
    losses = -np.log((0.999 * np.array([WRONG, CAUTIOUS, SHARP]) + 0.001 / 3)[:, labels])
    np.testing.assert_allclose(list(chosen.losses.values()), losses.mean(axis=1))
    assert chosen.best == "b"
    gap = losses[2] - losses[1]
    assert chosen.gap == pytest.approx(gap.mean())
    assert chosen.gap_error == pytest.approx(gap.std(ddof=1) / 10.0)
    weights = np.random.default_rng(1).dirichlet(np.ones(100), size=4000)
    assert chosen.best_share["b"] == pytest.approx((weights @ gap > 0).mean(), abs=0.05)
    near = ask([CAUTIOUS, [0.5, 0.25, 0.25]], labels)
    assert 0.01 < (tolerance := 0.05 * np.ptp(list(near.losses.values()))) < 0.05
    assert f"within {tolerance:.2g} nats per user" in said(near)
    needed = 100 * (1.96 * chosen.gap_error / chosen.gap) ** 2
    for sentence in (
        f"is {gap.mean():.3f} ± {chosen.gap_error:.3f} worse",
        f"This log cannot tell 'b' from 'c'; a log of about {needed:,.0f} users could.",
        "within 0.05 nats per user of the best (the default: 5% of the spread between models",
    ):
        assert sentence in said(chosen)


def test_users_needed_are_interpolated_on_a_log_scale_between_binomial_ends():
    """Of 100 runs 50, 96 and 99 pick the good model 'a'; but 'b' gets the larger weight."""
    hits, rounds = np.array([50, 96, 99]), np.array([10, 100, 1000])
    for shares, users in {(0.99, 0.5, 0.95): 1000, (1, 0.96, 1): 10, (1, 1, 0.94): np.inf}.items():
        assert answer.users_from_on(rounds, np.array(shares)) == users
    picks = (np.arange(100)[:, None] >= hits).astype(int)
    log = SimpleNamespace(losses=np.array([[0.1, 0.5]]), names=["a", "b"])
    played = SimpleNamespace(leaders=picks, weights=[[0.3, 0.7]] * 100, rounds=rounds)
    good = np.tile([True, False], (100, 1))
    columns = search._Search._columns(
        SimpleNamespace(log=log, tolerance=0.1), "bayes", played, good
    )
    lows, highs = (
        [
            getattr(stats.binomtest(n, 100, alternative=side).proportion_ci(0.95), end)
            for n in hits.tolist()
        ]
        for side, end in (("greater", "low"), ("less", "high"))
    )
    assert (columns["found_low"], columns["found_high"]) == pytest.approx((lows[-1], highs[-1]))
    ends = {
        "users_needed": (10, 0.5, 0.96),
        "users_low": (10, *highs[:2]),
        "users_high": (100, *lows[1:]),
    }
    for name, (start, before, after) in ends.items():
        assert columns[name] == np.ceil(start * 10.0 ** ((0.95 - before) / (after - before)))
    assert (columns["found"], columns["misled"]) == (0.99, "b")


def test_found_is_that_of_a_direct_simulation():
    """RR read by Bayes on a table: populations, users, coins and weights drawn here, without the engine."""
    labels, runs, horizon = draw(120), 600, 480
    chosen = ask([CAUTIOUS, SHARP, WRONG], labels, tolerance=0.05, epsilons=[1.0], runs=400)
    row = chosen.frame[chosen.frame["learner"] == "bayes"].iloc[0]
    smooth = 0.999 * np.array([CAUTIOUS, SHARP, WRONG]) + 0.001 / 3
    keep = np.e / (np.e + 2.0)
    likelihood = np.log(smooth * keep + (1.0 - smooth) * (1.0 - keep) / 2.0)
    rng, successes = np.random.default_rng(9), 0
    for _ in range(runs):
        weights = rng.dirichlet(np.ones(120))
        told = rng.choice(labels, size=horizon, p=weights)
        told = np.where(
            rng.random(horizon) < keep, told, (told + rng.integers(1, 3, size=horizon)) % 3
        )
        losses = -np.log(smooth[:, labels]) @ weights
        pick = likelihood[:, told].sum(axis=1).argmax()
        successes += losses[pick] <= losses.min() + 0.05
    assert row["users"] == horizon
    hits = round(row["found"] * row["runs"])
    assert (
        stats.fisher_exact([[successes, runs - successes], [hits, row["runs"] - hits]]).pvalue
        > 1e-6
    )


def test_a_recommendation_holds_for_new_users_of_the_pool():
    """Two known populations of a coin: how many users Bayes takes is a binomial tail, worked out here."""
    table, keep = np.array([[0.8, 0.2], [0.6, 0.4]]), np.exp(2.0) / (1.0 + np.exp(2.0))
    ups = [keep * p + (1.0 - keep) * (1.0 - p) for p in table[:, 1]]
    ratio = [np.log((1 - ups[0]) / (1 - ups[1])), np.log(ups[0] / ups[1])]  # of a message 0 and 1

    def succeeds(users):  # the truth is the first one
        count = np.arange(users + 1)
        return stats.binom.pmf(count, users, ups[0])[
            count * ratio[1] + (users - count) * ratio[0] > 0
        ].sum()

    needed = next(n for n in range(5, 999) if all(succeeds(m) >= 0.95 for m in range(n, n + 20)))
    stated = []
    for seed in range(6):
        labels = np.random.default_rng(seed).choice(2, size=600, p=table[0])
        row = ask(table, labels, tolerance=0.01, seed=seed, learners=["bayes"], runs=50).recommended
        assert row["confirmed"]
        assert row["runs"] == 500
        stated.append(int(row["users_needed"]))
    assert np.mean([succeeds(users) >= 0.9 for users in stated]) >= 5 / 6
    assert 0.8 <= np.median(stated) / needed <= 1.5


def test_the_least_eps_goes_first_then_fewer_users_and_no_waiting_where_level():
    """Three rows of an eps at most; 100 / 80 is level with the fewest users, 101 / 80 is not."""
    users = {("split", 1): 100, ("split", 2): 10, ("adaptive-split", 1): 80, ("scheffe", 1): 101}
    users |= {("vote", 1): 90, ("vote", 0.5): np.inf}
    found = {
        answer.Row(*game, "bayes"): {"users_needed": n, "chance": 0.9} for game, n in users.items()
    }
    ranked = [("vote", 1), ("split", 1), ("adaptive-split", 1), ("split", 2)]
    assert [row[:2] for row in search._ranked(found)] == ranked
    wide = {"users_needed": 80, "users_low": 10, "users_high": 90, "users": 100, "runs": 20}
    rows = {answer.Row("split", eps, "bayes"): wide for eps in (1.0, 2.0)}
    one, other = (answer.advise(rows, row, None, 500)[-1] for row in rows)
    assert one.endswith("recommend a larger eps.")
    assert other.endswith("1, read by bayes; none.")


def test_where_no_model_is_right_unbiased_finds_it_and_other_learners_are_warned_of():
    """By enumeration the gaps are 6 and -13 standard deviations."""
    settings = {
        "epsilons": [4.0],
        "learners": ["bayes", "unbiased"],
        "users": 10_000,
        "smoothing": 1e-4,
    }
    chosen = ask([CAUTIOUS, SHARP], draw(10_000), tolerance=0.001, **settings)
    frame = chosen.frame.set_index("learner")
    assert frame["found"]["bayes"] < 0.1
    assert frame["found"]["unbiased"] > 0.9
    assert frame["misled"].to_dict() == {"bayes": "b", "unbiased": ""}
    assert "Warning: bayes comes to prefer 'b' (randomized-response at eps = 4)." in said(chosen)


def test_channels_of_the_same_law_are_one_row():
    settings = {"learners": ["bayes"]}
    settings["channels"] = ["randomized-response", "subset-selection", "split", "adaptive-split"]
    chosen = ask([[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]], draw(60, [0.7, 0.3]), **settings)
    assert set(chosen.frame["channel"]) == {"randomized-response"}, (
        "two labels: all are a flipped label"
    )
    assert "adaptive-split is the same as randomized-response at eps = 2." in said(chosen)
    wide = np.random.default_rng(0).dirichlet(np.ones(12), size=3)
    frame = ask(wide, draw(60, wide[0]), epsilons=[0.5, 4.0], **settings).frame
    kept = set(zip(frame["channel"], frame["epsilon"], strict=True))
    assert {("subset-selection", 0.5), ("split", 0.5), ("adaptive-split", 0.5)} < kept
    assert ("subset-selection", 4.0) not in kept


def test_ties_over_eight_seeds_and_the_cost_of_batches_are_said():
    settings = {"channels": ["adaptive-split"], "learners": ["bayes"]}
    text = said(
        ask([CAUTIOUS, WRONG, [0.2, 0.7, 0.1]], draw(100), **settings)
    )  # 15 users are needed
    waits = r"users wait for earlier answers. In batches of 2 users, [\d,]+ users are needed."
    assert re.search(f"{waits} Best choice without waiting: none works.", text)
    settings = {"learners": ["bayes", "centred-exp3"], "epsilons": [0.5, 2.0], "users": 120}
    answers = [ask([CAUTIOUS, WRONG], draw(80), seed=1000 * i, **settings) for i in range(8)]
    assert len({tuple(one.recommended[["epsilon", "learner"]]) for one in answers}) > 1
    assert all("It is a tie: another seed may recommend " in said(one) for one in answers)


def test_drift_is_warned_of_and_the_order_can_be_kept():
    labels, both = np.repeat([0, 1], 100), [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1]]
    warning = "Warning: the log drifts. 'a' is the best in its first half, 'b' in its second."
    assert warning in said(ask(both, labels))
    assert "drifts" not in said(ask(both, np.random.default_rng(0).permutation(labels)))
    uneven = np.repeat([0, 1], [60, 140])  # its best is 'b', which leads only after many users
    settings = {"learners": ["bayes"], "epsilons": [4.0], "users": 200}
    given, shuffled = (ask(both, uneven, order=o, **settings).frame for o in ("given", "shuffled"))
    assert given["users_needed"][0] > 1.5 * shuffled["users_needed"][0]


def test_rules_reach_the_game_and_the_plan():
    settings = {"channels": ["one-bit"], "learners": ["unbiased"], "epsilons": [8.0], "batch": 5}
    plan = ask([CAUTIOUS, WRONG], draw(60), channel_kwargs={"clipping": "paper"}, **settings).plan
    assert (plan.channel_kwargs, plan.batch) == ({"clipping": "paper"}, 5)
    built = make_channel("one-bit", 2, 3, plan.horizon, epsilon=8.0, clipping="paper")
    assert vars(plan.channel().clipping) == vars(built.clipping)


# -- Inputs -----------------------------------------------------------------------------------------------


def test_rows_functions_classifiers_arrays_and_columns_are_the_same_log():
    features, labels = np.zeros((80, 1)), draw(80)
    table = np.tile([CAUTIOUS, WRONG], (80, 1, 1))
    columns = pd.DataFrame(
        table.reshape(80, 6), columns=[f"{m}:{y}" for m in "ab" for y in range(3)]
    )
    given = [
        {"models": {"a": CAUTIOUS, "b": WRONG}},
        {
            "models": {"a": lambda x: CAUTIOUS, "b": lambda x: np.tile(WRONG, (len(x), 1))},
            "X": features,
        },
        {"models": {"a": Says(CAUTIOUS), "b": Says(WRONG)}, "X": features},
        {"models": ["a", "b"], "probabilities": table},
        {"probabilities": columns, "y": labels.astype(str)},
    ]
    answers = [select(**{"y": labels, **one}, **QUICK) for one in given]
    for other in answers[1:]:
        pd.testing.assert_frame_equal(answers[0].frame, other.frame)
        assert other.losses == pytest.approx(answers[0].losses)


def test_labels_may_be_text_and_a_model_need_not_know_every_class():
    class Named(Says):
        feature_names_in_ = np.array(["x", "z"])

        def predict_proba(self, X):
            assert list(X.columns) == ["x", "z"]
            return super().predict_proba(X)

    features = pd.DataFrame({"z": np.zeros(60), "unused": "text", "x": np.ones(60)})
    names = np.array(["01", "NA", "never"])
    labels = names[draw(60)]
    chosen = select(
        [Named([0.7, 0.3], names[[2, 0]]), Named(CAUTIOUS, names)], features, labels, **QUICK
    )
    assert chosen.best == "Named 1"
    assert "'Named 0' gave probability 0 to a label that came" in said(chosen)
    losses = -np.log(0.999 * np.array([0.3, 0.0, 0.7]) + 0.001 / 3)[draw(60)]
    assert chosen.losses["Named 0"] == pytest.approx(losses.mean())
    numbered = models.read_log(
        [Says(CAUTIOUS), Says(WRONG)], np.zeros((2, 1)), ["02", "1"], None, 0.1
    )
    assert numbered.labels.tolist() == [2, 1]


def test_duplicates_are_one_model_and_few_users_get_no_recommendation():
    chosen = ask([CAUTIOUS, WRONG, CAUTIOUS], draw(50))
    assert list(chosen.losses) == ["a", "b"]
    assert "'c' predicts exactly as 'a': they are one model." in said(chosen)
    vain = ask([CAUTIOUS, CAUTIOUS + 1e-12 * np.array([1, -1, 0])], draw(50), epsilons=[1.0, 2.0])
    assert (vain.plan, set(vain.frame["chance"])) == (None, {1.0})
    assert "No recommendation: a model picked at random succeeds in 100% of the runs" in said(vain)
    two, private = ask([CAUTIOUS, WRONG], [0, 0]), ask([CAUTIOUS, WRONG], draw(40), epsilons=[0.01])
    assert two.recommended is two.plan is private.recommended is private.plan is None
    assert "No recommendation: 2 users say too little about others" in said(two)
    assert "No recommendation: no choice is confirmed to succeed in 95% of surveys." in said(
        private
    )
    alike = ask([[0.5, 0.25, 0.25], [0.5, 0.26, 0.24]], [0] * 40, tolerance=0.0)
    assert re.search(
        r"tell 'a' from 'b'; nor could a larger one\..* All users .* have label 0;", said(alike)
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"models": [Says(CAUTIOUS)]}, "two or more models that differ, got only 'Says 0'"),
        ({"models": [Says(CAUTIOUS), 3]}, "'int 1' must be a function, or have predict_proba"),
        ({"models": [Says(CAUTIOUS), Says([0.7, 0.3])]}, "'Says 1' must predict 3 rows of 3"),
        ({"models": None}, "needs models, X and y"),
        ({"X": None}, "X is needed"),
        ({"y": [0, 1, 9]}, "label 9 in row 2 is not among the classes"),
        (
            {"models": None, "X": None, "probabilities": np.ones((3, 2))},
            r"shape \(n, K, M\), got \(3, 2\)",
        ),
        (
            {"models": ["a"] * 2, "X": None, "probabilities": [[CAUTIOUS, WRONG]] * 3},
            "as many names, got 1",
        ),
        ({"y": np.eye(3)}, r"labels must be one per row, of shape \(n,\), got shape \(3, 3\)"),
        (
            {"models": None, "X": None, "probabilities": np.ones((3, 2, 3))},
            "'model 0' in row 0 sums to 3",
        ),
        (
            {"models": None, "probabilities": pd.DataFrame({"p": [1.0] * 3})},
            "named model:label, got",
        ),
        (
            {"models": None, "probabilities": pd.DataFrame({"a:0": [1.0] * 3, "b:1": 1.0})},
            "'a:1' is missing",
        ),
        ({"channels": ["splt"]}, "split"),
        (
            {"channels": ["identity"]},
            "can read none of these channels. identity is left out: it has no priv",
        ),
        ({"learners": ["byes"]}, "bayes"),
        ({"learners": ["helpers:Stepwise"]}, "a learner without weights"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"runs": 1}, "runs must be at least 20"),
        ({"horizon": 9}, "takes no 'horizon'; of a game's rules, batch"),
        ({"channel_kwargs": {"clip": 1}}, "takes no option 'clip'"),
        ({"users": 3}, "users must be at least 10"),
        ({"order": "random"}, "order must be one of"),
    ],
)
def test_wrong_values_are_named(wrong, message):
    given = {
        "models": [Says(CAUTIOUS), Says(WRONG)],
        "X": np.zeros((3, 1)),
        "y": [0, 1, 2],
        **QUICK,
        **wrong,
    }
    with pytest.raises((TypeError, ValueError), match=message):
        select(**given)


def test_the_memory_limit_is_named_before_anything_is_stacked(monkeypatch):
    monkeypatch.setattr(models, "_MOST_BYTES", 8 * 2 * 3 * 70)
    with pytest.raises(
        ValueError, match="80 users, 2 models and 3 labels take .* at most 70 users"
    ):
        select([Says(CAUTIOUS), Says(WRONG)], np.zeros((80, 1)), draw(80), **QUICK)


# -- Playing, plans and the command -----------------------------------------------------------------------


def test_a_stopped_search_goes_on_from_its_directory_and_says_how_far_it_is(
    tmp_path, capsys, monkeypatch
):
    cells, play = [], search.play_cells
    monkeypatch.setattr(
        search, "play_cells", lambda todo, *more: cells.append(todo) or play(todo, *more)
    )
    first = ask([CAUTIOUS, WRONG], draw(60), out=tmp_path, quiet=False)
    ends = [(each[0].seed, each[-1].seed + each[-1].experiment.episodes) for each in cells[:2]]
    assert ends == [(0, 20), (20, 220)], "a confirmation has new runs"
    progress = capsys.readouterr().err
    assert "screening: 33% after " in progress
    assert "confirming randomized-response at eps = 2, read by " in progress
    monkeypatch.setattr(
        search, "play_cells", lambda todo, *_: iter(todo)
    )  # fails if a cell is left
    pd.testing.assert_frame_equal(ask([CAUTIOUS, WRONG], draw(60), out=tmp_path).frame, first.frame)
    assert not capsys.readouterr().err


def test_a_plan_makes_channel_and_learner_and_goes_through_json():
    chosen, both = (
        ask([CAUTIOUS, WRONG], draw(80), learners=["unbiased"]),
        np.array([CAUTIOUS, WRONG]),
    )
    plan = Plan.from_json(chosen.plan.to_json())
    assert plan == chosen.plan
    assert (plan.users, plan.labels) == (chosen.recommended["users_needed"], (0, 1, 2))
    assert (plan.channel().epsilon, plan.channel().horizon) == (2.0, plan.horizon)
    made = ldp_agents.make(plan.learner_name, plan.learner().game)
    assert type(plan.learner()) is type(made) is ldp_agents.Unbiased
    assert plan.learner().public_weights is None
    np.testing.assert_allclose(plan.smooth(both), 0.999 * both + 0.001 / 3)
    given = json.loads(plan.to_json())
    with pytest.raises(UntrustedCodeError, match="names code"):
        Plan.from_json(json.dumps(given | {"learner_name": "os:system"}))
    all_wrong = {"users": 0, "smoothing": 2, "tolerance": -1, "alpha": 0, "epsilon": -1, "plan": 1}
    for name, wrong in all_wrong.items():
        with pytest.raises(ValueError, match=name):
            Plan.from_json(json.dumps(given | {name: wrong}))


def test_an_adaptive_learner_tells_the_posterior_that_the_next_user_answers_under():
    """By hand, with batches of two: the posterior that is shown advances with every second message."""
    plan = Plan(
        tuple("ab"), (0, 1), (0.1, 0.2), "adaptive-split", {}, 1.0, 0.0, 9, 4, "bayes", 2, 0.1, 0.0
    )
    learner, table = plan.learner(), plan.smooth([[0.9, 0.1], [0.2, 0.8]])
    learner.reset()
    shown, keep = [], np.e / (1.0 + np.e)
    for _ in range(4):
        shown.append(learner.public_weights.tolist())
        learner.update(table, np.array([-1.0, 1.0]))  # the first one likes label 0 better
    up = keep * table[:, 0] + (1.0 - keep) * table[:, 1]
    assert shown[:2] == [[0.5, 0.5]] * 2
    assert shown[2] == shown[3] == pytest.approx((up**2 / (up**2).sum()).tolist())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": 0.0, "digit": draw(80)}).to_csv("users.csv", index=False)
    (tmp_path / "the_models.py").write_text(
        "def models(): return {'good': lambda x: [0.7, 0.15, 0.15], 'bad': lambda x: [0.1, 0.3, 0.6]}\n"
        "def broken(): return {'a': 1 / 0}\n"
    )
    return tmp_path


def test_the_command_answers_from_a_csv_file(folder):
    few = ["--label", "digit", "--channel", "split", "--epsilon", "2", "--runs", "20"]
    files = ["--models", "the_models:models", "--table", "found.csv", "--plan", "plan.json"]
    code, output = run("select", "users.csv", *few, *files)
    assert code == 0, output
    assert "The best of 2 models on this log of 80 users is 'good'" in output
    assert set(pd.read_csv("found.csv")["learner"]) == {"bayes", "centred-exp3"}
    assert Plan.from_json((folder / "plan.json").read_text()).channel_name == "split"
    columns, labels = (
        [f"{m}:{y}" for m in "ab" for y in ("01", "NA", "1")],
        np.array(["01", "NA", "1"]),
    )
    frame = pd.DataFrame(np.tile([*CAUTIOUS, *WRONG], (80, 1)), columns=columns)
    frame.assign(digit=labels[draw(80)]).to_csv("predictions.csv", index=False)
    code, output = run("select", "predictions.csv", *few)
    assert code == 0, output
    assert "is 'a': its log-loss" in output


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("x,digit\n0,é\n".encode("latin-1"), [], "is not a CSV file in UTF-8"),
        (b"", [], "is not a CSV file in UTF-8 with a header"),
        (b"x,digit\n", [], "has a header and no users"),
        (None, ["--label", "digt"], "has no column 'digt', only x, digit"),
        (None, ["--table", "none/x.csv"], "there is no directory none"),
        (None, ["--models", "the_models:broken"], "division by zero (the_models.py, line "),
        (None, ["--rule", "channel_kwargs.clip=1"], "takes no option 'clip'"),
    ],
)
def test_what_is_wrong_with_the_files_is_said_in_a_line_before_the_runs(
    folder, content, options, message
):
    if content is not None:
        (folder / "users.csv").write_bytes(content)
    given = [] if "--label" in options else ["--label", "digit"]
    given += [] if "--models" in options else ["--models", "the_models:models"]
    code, output = run_in_line("select", "users.csv", *given, *options)
    assert code == 2, output
    assert message in output
    assert "Traceback" not in output
