"""A survey from its plan on: the record, the client, the server, and the commands."""

import json

import numpy as np
import pytest
from command_line import run, run_in_line

import ldp_agents
import ldp_bench
from ldp_bench import Models, Plan, Survey
from ldp_bench.planning.reading import answer_line
from ldp_gym.core.errors import UntrustedCodeError
from ldp_gym.privacy import ExactChannel

TABLE = {"mild": [0.7, 0.2, 0.1], "even": [1 / 3, 1 / 3, 1 / 3], "wild": [0.1, 0.2, 0.7]}
LABELS = ["a", "b", "c"]
MODULE = """
import numpy as np

def _tilted(slope):
    def predict(X):
        up = 1.0 / (1.0 + np.exp(-slope * np.asarray(X, dtype=float)[:, 0]))
        return np.stack([up, 1.0 - up], axis=1)
    return predict

models = {"flat": _tilted(0.0), "rising": _tilted(2.0)}
others = {"flat": _tilted(0.1), "rising": _tilted(2.0)}
"""


@pytest.fixture(scope="module")
def plan():
    settings = {"channels": ["randomized-response"], "runs": 20, "quiet": True, "jobs": 1}
    return ldp_bench.plan(TABLE, labels=LABELS, epsilon=1.0, **settings).plan


@pytest.fixture(scope="module")
def adaptive():
    settings = {"channels": ["adaptive-split"], "runs": 20, "quiet": True, "jobs": 1}
    return ldp_bench.plan(TABLE, labels=LABELS, epsilon=1.0, **settings).plan


def changed(plan, **entries):
    return json.dumps(json.loads(plan.to_json()) | entries)


# -- The record ---------------------------------------------------------------------------------------------


def test_a_plan_survives_json(plan):
    assert Plan.from_json(plan.to_json()) == plan


def test_a_plan_states_what_clients_and_server_must_agree_on(plan):
    written = json.loads(plan.to_json())
    assert written["version"] == 1
    assert written["models"] == ["mild", "even", "wild"]
    assert written["labels"] == ["a", "b", "c"]
    assert written["channel_name"] == "randomized-response"
    assert written["epsilon"] == 1.0
    assert written["alpha"] == 0.05
    assert written["tolerance"] == 0.0
    assert len(written["fingerprint"]) == 64


REFUSED = [
    ({"version": 2}, "version 2"),
    ({"callback": "x"}, "unknown entries .'callback'."),
    ({"epsilon": -1.0}, "epsilon must"),
    ({"epsilon": "1"}, "epsilon must"),
    ({"alpha": 0.0}, "alpha must"),
    ({"channel_name": "splt"}, "splt"),
    ({"models": ["a"]}, "two or more different"),
    ({"models": ["mild", "even", "mild"]}, "two or more different"),
    ({"labels": ["a", "b"]}, "2 labels, and a table of shape"),
    ({"labels": [["a"], "b", "c"]}, "labels must"),
    ({"table": [[0.5, 0.3, 0.2]] * 3}, "does not match its fingerprint"),
    ({"table": [[0.5, 0.6, 0.2]] * 3}, "sums to 1.3"),
    ({"alike": [[0, 7]]}, "alike"),
    ({"alike": [[0]]}, "alike must be pairs"),
    ({"users": 0}, "users must"),
    ({"batch": 1.5}, "batch must"),
    ({"features": "age"}, "features must"),
]


@pytest.mark.parametrize(("entries", "message"), REFUSED)
def test_a_plan_with_a_wrong_value_is_refused(plan, entries, message):
    with pytest.raises(ValueError, match=message):
        Plan.from_json(changed(plan, **entries))


def test_a_plan_that_lacks_an_entry_is_refused(plan):
    written = json.loads(plan.to_json())
    del written["alpha"]
    with pytest.raises(ValueError, match="missing entries .'alpha'."):
        Plan.from_json(json.dumps(written))


@pytest.mark.parametrize("text", ["", "[1]", "{", "null"])
def test_text_that_is_no_plan_is_refused(text):
    with pytest.raises(ValueError, match="a plan is"):
        Plan.from_json(text)


def test_a_plan_names_no_code(plan):
    with pytest.raises(UntrustedCodeError, match="names code"):
        Plan.from_json(changed(plan, channel_name="os:system"))


def test_a_reader_refuses_an_eps_above_what_it_allows(plan):
    loud = changed(plan, epsilon=40.0)
    assert Plan.from_json(loud).epsilon == 40.0
    with pytest.raises(ValueError, match="eps = 40, more than the 1 allowed"):
        Plan.from_json(loud, most=1.0)


# -- The client ---------------------------------------------------------------------------------------------


def test_a_client_states_the_eps_that_it_allows(plan):
    with pytest.raises(TypeError, match="state the largest that you allow"):
        ExactChannel(plan)


def test_a_client_refuses_a_plan_with_a_larger_eps(plan):
    with pytest.raises(ValueError, match="spends eps = 1, more than the 0.5 allowed"):
        ExactChannel(plan, most=0.5)


def test_a_channel_itself_may_be_limited_too(plan):
    with pytest.raises(ValueError, match="more than the 0.5 allowed"):
        ExactChannel(plan.channel(), most=0.5)


def test_a_message_of_the_client_spends_at_most_the_plan_s_eps(plan):
    channel = ExactChannel(plan, most=1.0)
    message, spent = channel.answer(plan.label("b"), plan.candidates()[0])
    assert int(message) in (0, 1, 2)
    assert spent <= 1.0


def test_labels_have_the_names_of_the_plan(plan):
    assert plan.label("c") == 2
    with pytest.raises(ValueError, match="no label 'd' in this survey; its labels: a, b, c"):
        plan.label("d")


# -- The server ---------------------------------------------------------------------------------------------


def test_many_messages_at_once_are_those_one_by_one(plan):
    messages = [0, 0, 1, 2, 0, 0, 0, 1]
    at_once, one_by_one = Survey(plan), Survey(plan)
    at_once.read(messages)
    for message in messages:
        one_by_one.read([message])
    assert at_once.weights == one_by_one.weights
    assert at_once.asked == one_by_one.asked == 8


def test_five_messages_in_one_update_are_not_five_surveys(plan):
    learner = ldp_agents.Bayes(plan.game())
    with pytest.raises(ValueError, match="update_all reads many messages of one game"):
        learner.update(plan.candidates()[0], np.array([0, 1, 2, 0, 1]))


def test_update_all_needs_candidates_for_every_message(plan):
    learner = ldp_agents.Bayes(plan.game())
    with pytest.raises(ValueError, match="2 messages need candidates of 2 rounds, got 3"):
        ldp_agents.update_all(learner, np.tile(plan.candidates()[0], (3, 1, 1)), [0, 1])


def test_a_survey_ends_with_the_model_that_is_left(plan):
    survey = Survey(plan)
    assert survey.verdict == "Go on: 3 models are left."
    assert survey.named is None
    survey.read([2] * 60)
    assert survey.left == ["wild"]
    assert survey.named == "wild"
    assert survey.verdict.startswith("Stop: 'wild' is the only model left.")


def test_a_survey_whose_messages_fit_no_model_names_none(plan):
    """Label 0 until the others are dropped, then label 2 until the first is dropped too."""
    survey = Survey(plan)
    survey.read([0] * 60)
    assert survey.left == ["mild"]
    survey.read([2] * 120)
    assert survey.left == []
    assert survey.named is None
    assert survey.verdict.startswith("Stop: no model fits the messages.")


def test_models_that_are_alike_end_a_survey_together():
    given = {"a": TABLE["mild"], "b": TABLE["mild"], "c": TABLE["wild"]}
    settings = {"channels": ["randomized-response"], "runs": 20, "quiet": True, "jobs": 1}
    survey = Survey(ldp_bench.plan(given, epsilon=1.0, **settings).plan)
    survey.read([0] * 60)
    assert survey.left == ["a", "b"]
    assert survey.finished
    assert survey.verdict.startswith("Stop: the models left, 'a', 'b', predict alike")


def test_the_server_refuses_a_message_that_the_channel_cannot_send(plan):
    with pytest.raises(ValueError, match="must be a point of"):
        Survey(plan).read_line(answer_line(7))


def test_an_error_names_its_line(plan):
    with pytest.raises(ValueError, match="line 2: an answer without a message"):
        Survey(plan).read_lines([answer_line(1), "{}"])


@pytest.mark.parametrize("line", ["", "3", "[]", '{"label": 1, "message": 1}'])
def test_a_line_that_is_no_answer_is_refused(plan, line):
    with pytest.raises(ValueError, match="an answer"):
        Survey(plan).read_line(line)


def test_an_answer_under_another_posterior_is_refused(adaptive):
    survey = Survey(adaptive)
    channel = ExactChannel(adaptive, most=1.0)
    candidates = adaptive.candidates()[0]
    stale = survey.posterior
    for _ in range(2):
        message, _ = channel.answer(0, candidates, survey.posterior)
        survey.read_line(answer_line(message, posterior=survey.posterior))
    with pytest.raises(ValueError, match="another public posterior"):
        survey.read_line(answer_line(message, posterior=stale))
    with pytest.raises(ValueError, match="states the posterior"):
        survey.read_line(answer_line(message))


def test_users_of_a_batch_answer_under_one_posterior():
    settings = {"channels": ["adaptive-split"], "runs": 20, "quiet": True, "jobs": 1}
    agreed = ldp_bench.plan(TABLE, epsilon=1.0, batch=3, **settings).plan
    survey = Survey(agreed)
    channel = ExactChannel(agreed, most=1.0)
    shown = []
    for _ in range(4):
        shown.append(survey.posterior.tolist())
        message, _ = channel.answer(0, agreed.candidates()[0], survey.posterior)
        survey.read([message])
    assert shown[0] == shown[1] == shown[2]
    assert shown[2] != shown[3]


# -- The commands -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "survey_models.py").write_text(MODULE)
    rows = "\n".join(str(x) for x in np.linspace(-1.0, 1.0, 50))
    (tmp_path / "users.csv").write_text(f"height\n{rows}\n")
    return tmp_path


def test_a_survey_by_commands_names_the_model(folder):
    table = json.dumps(TABLE)
    options = ("--epsilon", 2, "--channel", "randomized-response", "--runs", 20, "--jobs", 1)
    code, output = run(
        "plan", "--models", table, "--labels", "a,b,c", *options, "--plan", "plan.json"
    )
    assert code == 0
    assert "Recommended at eps = 2" in output

    code, output = run("answer", "plan.json", "--label", "a", "--most", 2)
    assert code == 0
    assert json.loads(output)["message"] in (0, 1, 2)

    lines = folder / "messages.jsonl"
    lines.write_text(answer_line(0) + "\n")
    code, output = run("read", "plan.json", lines)
    assert code == 3
    assert "Go on: 3 models are left." in output

    lines.write_text((answer_line(0) + "\n") * 40)
    code, output = run("read", "plan.json", lines)
    assert code == 0
    assert "40 messages read" in output
    assert "mild: left" in output
    assert "Stop: 'mild' is the only model left." in output


def test_models_with_features_are_planned_answered_and_read(folder):
    options = ("--models", "survey_models:models")
    planned = ("--epsilon", 1, "--channel", "split", "--runs", 20, "--jobs", 1)
    code, _ = run("plan", "users.csv", *options, *planned, "--plan", "plan.json")
    assert code == 0
    agreed = Plan.from_json((folder / "plan.json").read_text())
    assert agreed.features == ("height",)

    code, output = run(
        "answer", "plan.json", "--label", 0, "--context", '{"height": 0.5}', *options
    )
    assert code == 0
    assert json.loads(output)["context"] == {"height": 0.5}

    (folder / "messages.jsonl").write_text(output)
    code, output = run("read", "plan.json", "messages.jsonl", *options)
    assert code == 3
    assert "1 messages read" in output


def test_other_models_than_the_plan_s_are_refused(folder):
    planned = ("--epsilon", 1, "--channel", "split", "--runs", 20, "--jobs", 1)
    run("plan", "users.csv", "--models", "survey_models:models", *planned, "--plan", "plan.json")
    options = ("--label", 0, "--context", '{"height": 0.5}', "--models", "survey_models:others")
    code, output = run_in_line("answer", "plan.json", *options)
    assert code == 2
    assert "predict otherwise than those of the plan" in output


def test_features_are_needed_where_models_read_them(folder):
    planned = ("--epsilon", 1, "--channel", "split", "--runs", 20, "--jobs", 1)
    run("plan", "users.csv", "--models", "survey_models:models", *planned, "--plan", "plan.json")
    options = ("--label", 0, "--models", "survey_models:models")
    code, output = run_in_line("answer", "plan.json", *options)
    assert code == 2
    assert "the user's features are needed" in output
    code, output = run_in_line("answer", "plan.json", *options, "--context", '{"width": 1}')
    assert code == 2
    assert "the feature 'height' is missing" in output


def test_the_command_answers_up_to_eps_1_unless_more_is_allowed(folder, plan):
    (folder / "plan.json").write_text(changed(plan, epsilon=4.0))
    code, output = run_in_line("answer", "plan.json", "--label", "a")
    assert code == 2
    assert "eps = 4, more than the 1 allowed" in output


def test_a_half_written_last_line_is_left_out(folder, plan):
    (folder / "plan.json").write_text(plan.to_json())
    (folder / "messages.jsonl").write_text(answer_line(1) + "\n" + '{"mess')
    code, output = run("read", "plan.json", "messages.jsonl")
    assert code == 3
    assert "1 messages read" in output


def test_an_adaptive_survey_hands_the_posterior_from_read_to_answer(folder, adaptive):
    (folder / "plan.json").write_text(adaptive.to_json())
    lines = folder / "messages.jsonl"
    lines.write_text("")
    for _ in range(3):
        _, output = run("read", "plan.json", lines)
        posterior = output.split("posterior for the next user: ")[1].strip()
        code, line = run("answer", "plan.json", "--label", "a", "--posterior", posterior)
        assert code == 0
        with lines.open("a") as file:
            file.write(line)
    _, output = run("read", "plan.json", lines)
    assert "3 messages read" in output


def test_an_adaptive_survey_needs_the_posterior(folder, adaptive):
    (folder / "plan.json").write_text(adaptive.to_json())
    code, output = run_in_line("answer", "plan.json", "--label", "a")
    assert code == 2
    assert "--posterior, from `ldp-gym read`" in output


def test_a_survey_that_needs_too_many_users_exits_with_status_1(folder):
    near = json.dumps({"a": [0.5, 0.5], "b": [0.5001, 0.4999]})
    options = ("--epsilon", 1, "--most-users", 1000, "--jobs", 1)
    code, output = run("plan", "--models", near, *options, "--plan", "plan.json")
    assert code == 1
    assert "There is no plan to write" in output
    assert not (folder / "plan.json").exists()


def test_predictions_in_columns_are_planned_without_models(folder):
    (folder / "predicted.csv").write_text(
        "a:x,a:y,b:x,b:y,age\n0.9,0.1,0.2,0.8,3\n0.8,0.2,0.3,0.7,4\n"
    )
    options = ("--epsilon", 2, "--runs", 20, "--jobs", 1)
    code, output = run("plan", "predicted.csv", *options, "--table", "numbers.csv")
    assert code == 0
    assert "ignored: 'age'" in output
    assert (folder / "numbers.csv").read_text().startswith("epsilon,channel,truth,users_median")


WRONG = [
    ((), "state the privacy level"),
    (("--epsilon", 1), "plan needs models"),
    (("--epsilon", 1, "--models", "[[1, 2"), "is not JSON"),
    (("--epsilon", 1, "--models", "nowhere:models"), "nowhere"),
    (("users.csv", "--epsilon", 1), "columns named model:label, got height"),
    (
        ("--epsilon", 1, "--models", "[[0.5, 0.5], [0.9, 0.1]]", "--plan", "no/plan.json"),
        "no directory",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_a_wrong_call_is_one_line_with_status_2(folder, arguments, message):
    code, output = run_in_line("plan", *arguments)
    assert code == 2
    assert message in output


def test_models_of_a_plan_are_checked_by_their_fingerprint():
    def flat(X):
        return np.tile([0.5, 0.5], (len(X), 1))

    def up(X):
        return np.stack([X[:, 0], 1.0 - X[:, 0]], axis=1)

    X = np.linspace(0.1, 0.9, 20)[:, None]
    settings = {"channels": ["split"], "runs": 20, "quiet": True, "jobs": 1}
    agreed = ldp_bench.plan({"flat": flat, "up": up}, X, epsilon=1.0, **settings).plan
    agreed.check_models(Models({"flat": flat, "up": up}))
    with pytest.raises(ValueError, match="predict otherwise"):
        agreed.check_models(Models({"flat": up, "up": flat}))
    with pytest.raises(ValueError, match="is about the models"):
        agreed.check_models(Models({"flat": flat, "down": up}))
