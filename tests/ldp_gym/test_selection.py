"""ldp_gym.select: the best model of users like those of a log, and how many it takes to find it."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_in_line
from helpers import make_channel
from scipy import stats

import ldp_agents
from ldp_gym.core.errors import UntrustedCodeError
from ldp_gym.selection import Plan, answer, models, search, select

TRUTH = np.array([0.9, 0.05, 0.05])
CAUTIOUS, SHARP, WRONG = [0.7, 0.15, 0.15], [0.95, 0.0499, 0.0001], [0.1, 0.3, 0.6]
QUICK = {"channels": ["randomized-response"], "epsilons": [2.0], "runs": 20, "quiet": True, "jobs": 1}


class Says:
    def __init__(self, probabilities, classes=(0, 1, 2)):
        self.probabilities, self.classes_ = np.array(probabilities), np.array(classes)

    def predict_proba(self, X):
        return np.tile(self.probabilities, (len(X), 1))


def log(users, law=TRUTH, seed=0):
    rng = np.random.default_rng(seed)
    return np.zeros((users, 1)), rng.choice(len(law), size=users, p=law)


def rows(*tables):
    return dict(zip("abcd", tables, strict=False))


# -- The statistics ---------------------------------------------------------------------------------------


def test_the_answer_begins_with_what_the_log_tells():
    """Losses, the paired gap with its error, and shares of the flat Dirichlet, all by hand."""
    features, labels = log(100)
    chosen = select({n: Says(p) for n, p in rows(WRONG, CAUTIOUS, SHARP).items()}, features, labels, **QUICK)
    losses = -np.log((0.999 * np.array([WRONG, CAUTIOUS, SHARP]) + 0.001 / 3)[:, labels])
    np.testing.assert_allclose(list(chosen.losses.values()), losses.mean(axis=1))
    assert chosen.best == "b"
    gap = losses[2] - losses[1]
    assert chosen.gap == pytest.approx(gap.mean())
    assert chosen.gap_error == pytest.approx(gap.std(ddof=1) / 10.0)
    weights = np.random.default_rng(1).dirichlet(np.ones(100), size=4000)
    assert chosen.best_share["b"] == pytest.approx((weights @ gap > 0).mean(), abs=0.05)
    assert f"has {gap.mean():.3f} ± {chosen.gap_error:.3f} more" in str(chosen)
    needed = np.ceil(100 * (1.96 * chosen.gap_error / chosen.gap) ** 2)
    assert f"This log cannot tell 'b' from 'c'; with about {needed:,.0f} users it would" in str(chosen)


def test_users_needed_are_interpolated_on_a_log_scale():
    """From the last number of users at which fewer than 95% of the runs have found it."""
    cases = {
        (0.5, 0.9, 1): 317,
        (0.99, 0.5, 0.95): 1000,
        (1, 0.96, 1): 10,
        (0.9, 1, 0.97): 32,
        (1, 1, 0.94): np.inf,
    }
    for shares, expected in cases.items():
        assert answer.users_from_on(np.array([10, 100, 1000]), np.array(shares)) == expected


def test_found_and_users_needed_are_those_of_a_direct_simulation():
    """RR read by Bayes on a table: populations, users, coins and weights drawn here, without the engine."""
    _, labels = log(120)
    table, tolerance, epsilon, horizon, runs = np.array([CAUTIOUS, SHARP, WRONG]), 0.05, 1.0, 480, 600
    chosen = select(table, None, labels, tolerance=tolerance, **QUICK | {"epsilons": [epsilon], "runs": 400})
    row = chosen.frame[chosen.frame["learner"] == "bayes"].iloc[0]
    smooth = 0.999 * table + 0.001 / 3
    keep = np.e / (np.e + 2.0)
    likelihood = np.log(smooth * keep + (1.0 - smooth) * (1.0 - keep) / 2.0)
    rng, successes = np.random.default_rng(9), 0
    for _ in range(runs):
        weights = rng.dirichlet(np.ones(120))
        told = rng.choice(labels, size=horizon, p=weights)
        told = np.where(rng.random(horizon) < keep, told, (told + rng.integers(1, 3, size=horizon)) % 3)
        losses = -np.log(smooth[:, labels]) @ weights
        pick = likelihood[:, told].sum(axis=1).argmax()
        successes += losses[pick] <= losses.min() + tolerance
    assert row["users"] == horizon
    hits = round(row["found"] * row["runs"])
    test = stats.fisher_exact([[successes, runs - successes], [hits, row["runs"] - hits]])
    assert test.pvalue > 1e-6
    for side, end in (("greater", row["found_low"]), ("less", row["found_high"])):
        interval = stats.binomtest(hits, row["runs"], alternative=side).proportion_ci(0.95)
        assert end == pytest.approx(interval.low if side == "greater" else interval.high)
    assert row["users_low"] <= row["users_estimated"] <= row["users_needed"]


def test_a_recommendation_holds_for_new_users_of_the_pool():
    """Two known populations of a coin: how many users Bayes takes is a binomial tail, worked out here."""
    table, epsilon = np.array([[0.8, 0.2], [0.6, 0.4]]), 2.0
    keep = np.exp(epsilon) / (1.0 + np.exp(epsilon))
    ups = [keep * p + (1.0 - keep) * (1.0 - p) for p in table[:, 1]]
    ratio = [np.log((1 - ups[0]) / (1 - ups[1])), np.log(ups[0] / ups[1])]  # of a message 0 and 1

    def succeeds(users):  # the truth is the first one
        count = np.arange(users + 1)
        return stats.binom.pmf(count, users, ups[0])[count * ratio[1] + (users - count) * ratio[0] > 0].sum()

    needed = next(n for n in range(5, 999) if all(succeeds(m) >= 0.95 for m in range(n, n + 20)))
    stated = []
    for seed in range(6):
        labels = np.random.default_rng(seed).choice(2, size=600, p=table[0])
        settings = QUICK | {"epsilons": [epsilon], "learners": ["bayes"], "runs": 100}
        chosen = select(table, None, labels, tolerance=0.01, seed=seed, **settings)
        assert chosen.recommended["confirmed"]
        assert chosen.recommended["runs"] == 400
        stated.append(chosen.recommended["users_needed"])
    assert np.mean([succeeds(int(users)) >= 0.9 for users in stated]) >= 5 / 6
    assert 0.8 <= np.median(stated) / needed <= 1.5


def test_the_least_eps_goes_first_then_fewer_users_and_no_waiting_where_level():
    """Three rows of an eps at most; 100 / 80 is level with the fewest users, 101 / 80 is not."""
    users = {("split", 1): 100, ("split", 2): 10, ("adaptive-split", 1): 80, ("scheffe", 1): 101}
    users |= {("vote", 1): 90, ("vote", 0.5): np.inf}
    found = {(*game, "bayes"): {"users_estimated": many} for game, many in users.items()}
    ranked = [("vote", 1), ("split", 1), ("adaptive-split", 1), ("split", 2)]
    assert [row[:2] for row in search._ranked(found)] == ranked


def test_where_no_model_is_right_unbiased_finds_it_and_other_learners_are_warned_of():
    """By enumeration the gaps are 6 and -13 standard deviations."""
    settings = QUICK | {"epsilons": [4.0], "learners": ["bayes", "unbiased"], "users": 10_000}
    chosen = select(rows(CAUTIOUS, SHARP), None, log(10_000)[1], smoothing=1e-4, tolerance=0.001, **settings)
    found = chosen.frame.set_index("learner")["found"]
    assert found["bayes"] < 0.1
    assert found["unbiased"] > 0.9
    assert chosen.frame.set_index("learner")["misled"].to_dict() == {"bayes": "b", "unbiased": ""}
    assert "Warning: bayes comes to prefer 'b' (randomized-response at eps = 4)" in str(chosen)


def test_channels_of_the_same_law_are_one_row():
    several = ["randomized-response", "subset-selection", "split", "adaptive-split"]
    coins = rows([0.8, 0.2], [0.6, 0.4], [0.1, 0.9])
    settings = QUICK | {"channels": several, "learners": ["bayes"]}
    chosen = select(coins, None, log(60, [0.7, 0.3])[1], **settings)
    assert set(chosen.frame["channel"]) == {"randomized-response"}, "two labels: all are a flipped label"
    assert "adaptive-split is randomized-response at eps = 2: they are one row" in str(chosen)
    wide = np.random.default_rng(0).dirichlet(np.ones(12), size=3)
    chosen = select(wide, None, log(60, wide[0])[1], **settings | {"epsilons": [0.5, 4.0]})
    kept = set(zip(chosen.frame["channel"], chosen.frame["epsilon"], strict=True))
    assert ("subset-selection", 0.5) in kept
    assert ("subset-selection", 4.0) not in kept
    assert {("split", 0.5), ("adaptive-split", 0.5)} < kept
    settings["channels"] = ["designed", "split"]
    chosen = select(probabilities=np.tile(wide, (99, 1, 1)), y=log(99, wide[0])[1], **settings)
    assert "designed is left out: " in str(chosen)


def test_the_adaptive_row_says_what_batches_cost_and_levels_are_a_tie():
    settings = QUICK | {"channels": ["adaptive-split"], "learners": ["bayes"]}
    said = str(select(rows(CAUTIOUS, WRONG, [0.2, 0.7, 0.1]), None, log(100)[1], **settings))
    assert "There users wait for earlier answers; in batches of " in said
    assert "Without waiting: nothing else did" in said
    settings = QUICK | {"learners": ["bayes", "centred-exp3"]}
    assert "It is a tie: with another seed it may be " in str(
        select(rows(CAUTIOUS, WRONG), None, log(80)[1], **settings)
    )


def test_drift_is_warned_of_and_the_order_can_be_kept():
    labels = np.repeat([0, 1], 100)
    both = rows([0.7, 0.2, 0.1], [0.2, 0.7, 0.1])
    chosen = select(both, None, labels, **QUICK)
    assert "Warning: the log drifts: 'a' is the best of its first half, 'b' of its second" in str(chosen)
    mixed = np.random.default_rng(0).permutation(labels)
    assert not [text for text in select(both, None, mixed, **QUICK).warnings if "drifts" in text]
    uneven = np.repeat([0, 1], [60, 140])  # its best is 'b', which leads only after many users
    settings = QUICK | {"learners": ["bayes"], "epsilons": [4.0], "users": 200}
    given, shuffled = (select(both, None, uneven, order=o, **settings).frame for o in ("given", "shuffled"))
    assert given["users_estimated"][0] > 1.5 * shuffled["users_estimated"][0]


def test_rules_reach_the_game_and_the_plan():
    settings = QUICK | {"channels": ["adaptive-split"], "learners": ["bayes"], "epsilons": [0.5], "users": 60}
    several = rows(CAUTIOUS, WRONG, SHARP, [0.3, 0.3, 0.4])
    frames = [select(several, None, log(60)[1], batch=n, **settings).frame for n in (1, 60, 100)]
    assert not frames[0].equals(frames[1])
    assert frames[1].equals(frames[2])
    settings = QUICK | {"channels": ["one-bit"], "learners": ["unbiased"], "epsilons": [8.0]}
    chosen = select(rows(CAUTIOUS, WRONG), None, log(60)[1], channel_kwargs={"clipping": "paper"}, **settings)
    assert chosen.plan.channel_kwargs == {"clipping": "paper"}
    built = make_channel("one-bit", 2, 3, chosen.plan.horizon, epsilon=8.0, clipping="paper")
    assert vars(chosen.plan.channel().clipping) == vars(built.clipping)


# -- Inputs -----------------------------------------------------------------------------------------------


def test_rows_functions_classifiers_arrays_and_columns_are_the_same_log():
    features, labels = log(80)
    both, names = np.array([CAUTIOUS, WRONG]), ["a", "b"]
    table = np.tile(both, (80, 1, 1))
    columns = pd.DataFrame(table.reshape(80, 6), columns=[f"{m}:{y}" for m in names for y in range(3)])
    given = [
        {"models": rows(*both)},
        {"models": {"a": lambda x: CAUTIOUS, "b": lambda x: np.tile(WRONG, (len(x), 1))}, "X": features},
        {"models": {"a": Says(CAUTIOUS), "b": Says(WRONG)}, "X": features},
        {"models": names, "probabilities": table},
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
    labels = names[log(60)[1]]
    assert (labels == "NA").any()
    chosen = select([Named(CAUTIOUS, names), Named([0.3, 0.7], names[[0, 2]])], features, labels, **QUICK)
    assert chosen.best == "Named 0"
    assert "as 'Named 1' gave probability 0 to a label that came" in str(chosen)
    assert chosen.losses["Named 1"] == pytest.approx(
        -np.log(0.999 * np.array([0.3, 0.0, 0.7]) + 0.001 / 3)[log(60)[1]].mean()
    )
    numbered = models.read_log([Says(CAUTIOUS), Says(WRONG)], np.zeros((2, 1)), ["02", "1"], None, 0.1)
    assert numbered.labels.tolist() == [2, 1]


def test_duplicates_are_one_model_and_few_users_get_no_recommendation():
    chosen = select(rows(CAUTIOUS, WRONG, CAUTIOUS), None, log(50)[1], **QUICK)
    assert list(chosen.losses) == ["a", "b"]
    assert "'c' predicts exactly as 'a': they are one model." in str(chosen)
    two = select(rows(CAUTIOUS, WRONG), None, [0, 0], **QUICK | {"users": 40})
    assert two.recommended is two.plan is None
    assert "No recommendation: 2 users say too little of others" in str(two)
    alike = select(rows([0.5, 0.25, 0.25], [0.5, 0.26, 0.24]), None, [0] * 40, tolerance=0.0, **QUICK)
    assert "This log cannot tell 'a' from 'b'; no log would." in str(alike)
    private = select(rows(CAUTIOUS, WRONG), None, log(40)[1], **QUICK | {"epsilons": [0.01]})
    assert private.recommended is private.plan is None
    assert "No recommendation: no choice is confirmed to find it in 95% of surveys of 160" in str(private)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"models": [Says(CAUTIOUS)]}, "two or more models that differ, got only 'Says 0'"),
        ({"models": [Says(CAUTIOUS), 3]}, "'int 1' must be a classifier or a function"),
        ({"models": [Says(CAUTIOUS), Says([0.7, 0.3])]}, "'Says 1' must predict 3 rows of 3"),
        ({"models": None}, "needs models, X and y"),
        ({"X": None}, "X is needed"),
        ({"y": [0, 1, 9]}, "label 9 in row 2 is not among the classes"),
        ({"models": None, "X": None, "probabilities": np.ones((3, 2))}, r"shape \(n, K, M\), got \(3, 2\)"),
        ({"models": ["a"], "X": None, "probabilities": [[CAUTIOUS, WRONG]] * 3}, "as many names, got 1"),
        ({"models": None, "probabilities": pd.DataFrame({"p": [1.0] * 3})}, "named model:label, got"),
        ({"models": None, "probabilities": pd.DataFrame({"a:0": [1.0] * 3, "b:1": 1.0})}, "'a:1' is missing"),
        ({"channels": ["splt"]}, "split"),
        ({"learners": ["byes"]}, "bayes"),
        ({"learners": ["helpers:Stepwise"]}, "a learner without weights"),
        ({"epsilons": [-1.0]}, "epsilons must be"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"runs": 1}, "runs must be at least 20"),
        ({"batch": 0}, "batch"),
        ({"horizon": 9}, "takes no 'horizon'; of the rules of a game it takes batch, delta, channel_kwargs"),
        ({"channel_kwargs": {"clip": 1}}, "takes no option 'clip'"),
        ({"users": 3}, "users must be at least 10"),
        ({"order": "random"}, "order must be one of"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_wrong_values_are_named(wrong, message):
    given = {"models": [Says(CAUTIOUS), Says(WRONG)], "X": np.zeros((3, 1)), "y": [0, 1, 2], **QUICK, **wrong}
    with pytest.raises((TypeError, ValueError), match=message):
        select(**given)


def test_the_memory_limit_is_named_before_anything_is_stacked(monkeypatch):
    monkeypatch.setattr(models, "_MOST_BYTES", 8 * 2 * 3 * 70)
    with pytest.raises(ValueError, match="80 users, 2 models and 3 labels take .* at most 70 users"):
        select([Says(CAUTIOUS), Says(WRONG)], *log(80), **QUICK)


# -- Playing, plans and the command -----------------------------------------------------------------------


def test_a_stopped_search_goes_on_from_its_directory_and_says_how_far_it_is(tmp_path, capsys, monkeypatch):
    given = (rows(CAUTIOUS, WRONG), None, log(60)[1])
    first = select(*given, out=tmp_path, **QUICK | {"quiet": False})
    said = capsys.readouterr().err
    assert "screening: 33% after " in said
    assert "confirming randomized-response at eps = 2, read by " in said
    monkeypatch.setattr(search, "play_cells", lambda todo, *_: iter(todo))  # fails if a cell is left
    pd.testing.assert_frame_equal(select(*given, out=tmp_path, **QUICK).frame, first.frame)
    assert not capsys.readouterr().err


def test_a_plan_makes_channel_and_learner_and_goes_through_json():
    chosen = select(rows(CAUTIOUS, WRONG), None, log(80)[1], **QUICK | {"learners": ["unbiased"]})
    plan = Plan.from_json(chosen.plan.to_json())
    assert plan == chosen.plan
    assert (plan.users, plan.labels) == (chosen.recommended["users_needed"], (0, 1, 2))
    assert (plan.channel().epsilon, plan.channel().horizon) == (2.0, plan.horizon)
    assert (
        type(plan.learner()) is type(ldp_agents.make("unbiased", plan.learner().game)) is ldp_agents.Unbiased
    )
    np.testing.assert_allclose(
        plan.smooth([CAUTIOUS, WRONG]), 0.999 * np.array([CAUTIOUS, WRONG]) + 0.001 / 3
    )
    given = json.loads(plan.to_json())
    with pytest.raises(UntrustedCodeError, match="names code"):
        Plan.from_json(json.dumps(given | {"learner_name": "os:system"}))
    for name, wrong in {
        "users": 0,
        "smoothing": 2,
        "tolerance": -1,
        "alpha": 0,
        "epsilon": -1,
        "plan": 1,
    }.items():
        with pytest.raises(ValueError, match=name):
            Plan.from_json(json.dumps(given | {name: wrong}))


def test_an_adaptive_learner_tells_the_posterior_that_the_next_user_answers_under():
    """By hand, with batches of two: the posterior that is shown advances with every second message."""
    plan = Plan(tuple("ab"), (0, 1), (0.1, 0.2), "adaptive-split", {}, 1.0, 0.0, 9, 4, "bayes", 2, 0.1, 0.0)
    learner, table = plan.learner(), plan.smooth([[0.9, 0.1], [0.2, 0.8]])
    learner.reset()
    shown, keep = [], np.e / (1.0 + np.e)
    for _ in range(4):
        shown.append(learner.public_weights.tolist())
        learner.update(table, np.array([-1.0, 1.0]))  # the first one likes label 0 better
    up = keep * table[:, 0] + (1.0 - keep) * table[:, 1]
    after = (up**2 / (up**2).sum()).tolist()
    assert shown[:2] == [[0.5, 0.5]] * 2
    assert shown[2] == shown[3] == pytest.approx(after)
    assert select(rows(CAUTIOUS, WRONG), None, log(40)[1], **QUICK).plan.learner().public_weights is None


MODULE = """
import numpy as np
class Says:
    def __init__(self, row): self.row = row; self.classes_ = np.arange(3)
    def predict_proba(self, X): return np.tile(self.row, (len(X), 1))
def models(): return {"good": Says([0.7, 0.15, 0.15]), "bad": Says([0.1, 0.3, 0.6])}
def broken():
    return {"a": 1 / 0}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features, labels = log(80)
    pd.DataFrame({"x": features[:, 0], "digit": labels}).to_csv("users.csv", index=False)
    (tmp_path / "the_models.py").write_text(MODULE)
    return tmp_path


FEW = ["--channel", "split", "--epsilon", "2", "--runs", "20"]


def test_the_command_answers_from_a_csv_file(folder):
    files = ["--figure", "found.png", "--table", "found.csv", "--plan", "plan.json"]
    code, output = run(
        "select", "users.csv", "--label", "digit", "--models", "the_models:models", *FEW, *files
    )
    assert code == 0, output
    assert "The best of 2 models on this log of 80 users is 'good'" in output
    assert (folder / "found.png").stat().st_size > 0
    assert set(pd.read_csv("found.csv")["learner"]) == {"bayes", "centred-exp3"}
    assert Plan.from_json((folder / "plan.json").read_text()).channel_name == "split"
    columns = [f"{m}:0{y}" for m in "ab" for y in range(3)]
    frame = pd.DataFrame(np.tile([*CAUTIOUS, *WRONG], (80, 1)), columns=columns)
    frame.assign(digit=[f"0{y}" for y in log(80)[1]]).to_csv("predictions.csv", index=False)
    code, output = run("select", "predictions.csv", "--label", "digit", *FEW)
    assert code == 0, output
    assert "is 'a', with" in output


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("x,digit\n0,é\n".encode("latin-1"), [], "is not a CSV file in UTF-8"),
        (bytes(range(256)) * 8, [], "users.csv"),
        (b"", [], "is not a CSV file in UTF-8 with a header"),
        (b"x,digit\n", [], "has a header and no users"),
        (None, ["--label", "digt"], "has no column 'digt', only x, digit"),
        (None, ["--figure", "x.nope"], "a figure ends in one of"),
        (None, ["--table", "none/x.csv"], "there is no directory none"),
        (None, ["--models", "the_models:broken"], "division by zero (the_models.py, line "),
        (None, ["--models", "no_such_module:x"], "No module named 'no_such_module'"),
        (None, ["--rule", "channel_kwargs.clip=1"], "takes no option 'clip'"),
    ],
)
def test_what_is_wrong_with_the_files_is_said_in_a_line_before_the_runs(folder, content, options, message):
    if content is not None:
        (folder / "users.csv").write_bytes(content)
    given = [] if "--label" in options else ["--label", "digit"]
    given += [] if "--models" in options else ["--models", "the_models:models"]
    code, output = run_in_line("select", "users.csv", *given, *options)
    assert code == 2, output
    assert message in output
    assert "Traceback" not in output
