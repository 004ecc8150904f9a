"""The report: its contents, escaped text, and how a browser shows it."""

import json
import re
import shutil
import sys
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from markupsafe import escape

import ldp_bench
from ldp_bench import SUITES, Results, Store, judge, report
from ldp_bench.report import Report
from ldp_bench.runner import play
from ldp_bench.store import Outcome
from ldp_gym.core.errors import DamagedStoreError
from ldp_gym.statistics import Verdict

EVIL = "<script>window.hacked = 1"  # the name of a trained model's directory
TRACEBACK = 'Traceback\nValueError: </code></pre><img src=x onerror="window.hacked = 2">'
SETTINGS = {"size": "small", "episodes": 5}
RUN = {"learners": [], "channels": [], "episodes": 5, "seed": 0, "size": "small", "parameters": {}}


@pytest.fixture(scope="module")
def directory(played, tmp_path_factory):
    """Two suites' results, and a learner of hostile name: played, failed, and not finished."""
    where = shutil.copytree(played[0], tmp_path_factory.mktemp("report"), dirs_exist_ok=True)
    model = where / EVIL
    model.mkdir()
    store = Store(where)
    hostile = [e for e in quick(learners=[str(model)]) if e.learner == str(model)]
    for experiment in hostile[:2]:
        key = replace(experiment, learner="uniform").cells(0)[0].key
        store.save(experiment.cells(0)[0], store.outcomes([key])[key])
    store.save(hostile[2].cells(0)[0], Outcome("failed", None, TRACEBACK, 0.1))
    keys = [experiment.cells(0)[0].key for experiment in hostile]
    store.end_run(store.begin_run("quick", RUN | {"learners": [str(model)]}, keys))
    Report(where).write()
    return where


def quick(learners=()):
    return SUITES["quick"]().experiments(**SETTINGS, learners=learners)


def tables_of(page):
    found = {}
    for name, body in re.findall(r'<table[^>]* id="([^"]+)"[^>]*>(.*?)</table>', page, re.DOTALL):
        rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("</tr>")[:-1]]
        titles, *texts = ([unescape(re.sub("<[^>]*>", "", cell)) for cell in row] for row in rows)
        found[name] = [dict(zip(titles, text, strict=True)) for text in texts]
    return found


@pytest.fixture(scope="module")
def page(directory):
    return (directory / "report.html").read_text("utf-8")


@pytest.fixture(scope="module")
def tables(page):
    return tables_of(page)


def test_every_experiment_has_its_row(directory, tables):
    results = Results(Store(directory), quick(), 0)
    rows = [row for row in tables["quick-experiments"] if row["Learner"] != EVIL]
    assert sorted(row["Risk"] for row in rows) == sorted(str(p.risk) for p in results.successes)
    shown = {
        (row["Channel"], name): text
        for row in tables["quick-grid"]
        for name, text in row.items()
        if name not in ("Channel", EVIL) and text != "-"
    }
    assert shown == {(r.channel, r.learner): r.risk.short for r in results.successes}


def test_findings_are_those_of_the_suite_with_their_marks(directory, page):
    suite = SUITES["theorems"]()
    results = Results(Store(directory), suite.experiments("small", episodes=2), 0)
    section = page[page.index('<section id="theorems">') : page.index("</main>")]
    found = judge(suite.findings(results))
    assert found
    for finding, _ in found:
        assert escape(finding.text) in section
    for verdict in Verdict:
        assert section.count(f"[{verdict.value}]") == sum(other is verdict for _, other in found)


def test_it_says_on_what_it_was_made_and_how_to_repeat_it(directory, page):
    assert Store(directory).runs()[-1]["machine"] in page
    assert f"numpy {np.__version__}" in page
    runs = re.findall(r"<li>(\w+): <code>(.*)</code>, .* Settings: <code>(.*)</code></li>", page)
    assert [suite for suite, *_ in runs] == ["theorems", "quick", "quick"]
    assert runs[0][1] == "&lt;b&gt;ldp-gym&lt;/b&gt; bench"
    assert json.loads(runs[0][2])["episodes"] == 2


def test_failures_and_what_is_missing_are_shown_and_text_is_escaped(page):
    for text in (
        "Failed: 1",
        "Not finished: 6",
        "1 failed, 6 not finished",
        "ValueError: &lt;/code&gt;",
    ):
        assert text in page
    assert '<a href="#quick-failures">' in page
    assert 'id="quick-failures"' in page
    assert page.count("<script>") == 1, "the page's own"
    assert "window.hacked" in page
    assert not re.search("<img|<b>ldp-gym", page)


def test_figures_are_in_the_page_and_in_files(directory, page):
    for name in ("quick", "theorems"):
        assert (directory / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (
            (directory / "figures" / f"{name}.svg").read_text("utf-8").lstrip().startswith("<?xml")
        )
    assert page.count("<svg ") == 2
    ids = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert len(ids) == len(set(ids)), "no id stands twice"


@pytest.mark.parametrize(
    "name", ["a $\\frac{ b $ c", "50$ and _{", "\x1b[2J\x07beep", "two\nlines"]
)
def test_any_name_of_a_model_can_be_drawn(tmp_path, name):
    """Matplotlib would read formulas between dollars; no escape sequence reaches the SVG or the page."""
    model = tmp_path / name
    model.mkdir()
    store = Store(tmp_path)
    experiments = SUITES["limit"]().experiments("small", episodes=1, learners=[str(model)])
    for experiment in experiments[:1] + [e for e in experiments if e.learner == str(model)][:2]:
        outcome = play(replace(experiment, learner="uniform").cells(0)[0])
        store.save(experiment.cells(0)[0], outcome)
    settings = RUN | {"learners": [str(model)], "episodes": 1}
    store.begin_run("limit", settings, [])

    page = Report(tmp_path).write().read_text("utf-8")
    figure = (tmp_path / "figures" / "limit.svg").read_text("utf-8")
    assert "\x1b" not in page + figure
    assert "\x07" not in page + figure
    assert "<svg" in figure


def test_the_same_store_gives_the_same_page(tmp_path):
    ldp_bench.run("limit", size="small", episodes=1, jobs=1, out=tmp_path)
    first = Report(tmp_path).write().read_bytes()
    assert Report(tmp_path).write().read_bytes() == first
    row = tables_of(first.decode())["limit-experiments"][0]
    assert "[" not in row["Risk"], "one episode has no interval"


def test_a_directory_without_results_is_said_and_left_as_it_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="run ldp-gym bench"):
        Report(tmp_path / "typo")
    assert not (tmp_path / "typo").exists()
    Store(tmp_path)
    with pytest.raises(FileNotFoundError, match="no runs yet"):
        Report(tmp_path)


def test_runs_of_unknown_suites_other_versions_and_lost_learners_are_noted(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.begin_run("mine", RUN, [])
    store.begin_run("limit", RUN | {"learners": ["/lost/model"]}, [])
    monkeypatch.setattr(report, "own_code", lambda: "another code")
    page = Report(tmp_path).write().read_text("utf-8")
    assert "Its experiments are not known here: unknown suite &#39;mine&#39;" in page
    assert "It was run with other code, whose results do not count" in page
    assert "/lost/model is not here any more." in page
    assert "Nothing of it has been played to the end yet." in page


OWN_SUITE = """
from pathlib import Path
from ldp_bench import Experiment, Finding, Suite
from ldp_gym.statistics import certain
Path(__file__).with_name("imported").touch()

class Mine(Suite):
    name, title, claim = "../mine", "My own title", "My own claim."

    def own_experiments(self, small):
        return [Experiment({"hypotheses": "dirichlet", "horizon": 20}, "uniform", episodes=2)]

    def findings(self, results):
        return [Finding(f"{len(results.successes)} experiment was played", certain(True))]
"""


def test_a_custom_suite_is_imported_only_with_trust(tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "suites.py").write_text(OWN_SUITE)
    monkeypatch.syspath_prepend(str(tmp_path))
    ldp_bench.run(SUITES["own.suites:Mine"](), jobs=1, out=tmp_path)
    sys.modules.pop("own.suites")
    (tmp_path / "own" / "imported").unlink()

    page = Report(tmp_path).write().read_text("utf-8")
    assert not (tmp_path / "own" / "imported").exists(), "what a file says is data"
    assert "My own title" not in page
    assert "they name code (own.suites:Mine), which ldp-gym report --trust imports" in page
    page = Report(tmp_path, trust=True).write().read_text("utf-8")
    for text in ("My own title", "My own claim.", "1 experiment was played"):
        assert text in page
    assert (tmp_path / "figures" / "---mine.svg").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"learners": ["this:é"]},  # looked up, and not imported
        {"channels": ["this:é"]},
        {"parameters": {"rules": {"hypotheses": "this:é"}}},
        {"parameters": {"rules": {"truth_kwargs": {"labels": ["this:é"]}}}},
        {"parameters": {"rules": {"nature_kwargs": {"this:é": 1}}}},
    ],
)
@pytest.mark.parametrize("suite", ["your-game", "this:é"])
def test_a_store_that_names_a_module_does_not_import_it(tmp_path, suite, settings):
    """`import this` prints a poem; its escaped form in JSON is no word and a colon."""
    sys.modules.pop("this", None)
    Store(tmp_path).begin_run(suite, RUN | settings, [])
    Report(tmp_path).write()
    assert "this" not in sys.modules


@pytest.mark.parametrize("parameters", [{"rules": 3}, {"rules": {"horizon": []}}, {"other": 1}])
@pytest.mark.parametrize("suite", ["your-game", "limit"])
def test_a_record_of_an_unknown_game_is_noted(tmp_path, suite, parameters):
    settings = RUN | {"channels": ["no such channel"], "parameters": parameters}
    Store(tmp_path).begin_run(suite, settings, [])
    assert "Its experiments are not known here" in Report(tmp_path).write().read_text("utf-8")


@pytest.mark.parametrize(
    "nonsense", [{"parameters": 3}, {"learners": [3]}, {"episodes": "x"}, {"seed": None}]
)
def test_a_record_of_nonsense_is_no_run(tmp_path, nonsense):
    Store(tmp_path).begin_run("limit", RUN | nonsense, [])
    with pytest.raises(DamagedStoreError, match="has no run that can be read: .*its settings has"):
        Report(tmp_path)


@pytest.fixture
def opened(show, directory):
    return show(directory / "report.html", 1400, "document.querySelector('tbody tr') !== null")


def test_a_browser_shows_it_without_errors_and_asks_nobody_for_anything(opened, directory, show):
    sizes = opened.execute_script(
        "return [...document.querySelectorAll('figure svg')].map(svg => svg.getBoundingClientRect().width)"
    )
    assert len(sizes) == 2
    assert min(sizes) > 200
    assert "|" not in opened.execute_script("return document.body.innerText"), "no raw markup"
    # Narrow and wide, the page itself never scrolls sideways; its tables and figures do.
    for width in (390, 1400):
        show(directory / "report.html", width, "true")
        assert opened.execute_script(
            "return document.body.scrollWidth <= document.documentElement.clientWidth"
        )
    assert opened.execute_script("return window.hacked === undefined")
    assert opened.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = [
        e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"
    ]
    assert asked == [(directory / "report.html").as_uri()]


def test_a_click_or_a_key_sorts_by_number_or_text(opened):
    from selenium.webdriver.common.keys import Keys

    def sort(column, key=None):
        """Press the button of a column, by a key or a click; its new order, and the texts of its cells."""
        header = opened.find_element("css selector", f"#quick-grid th:nth-child({column})")
        button = header.find_element("tag name", "button")
        button.send_keys(key) if key else button.click()
        return header.get_attribute("aria-sort"), opened.execute_script(
            f"return ({texts})({column})"
        )

    texts = "i => [...document.querySelectorAll(`#quick-grid td:nth-child(${i})`)].map(td => td.textContent)"
    order, channels = sort(1)
    assert (order, channels) == ("ascending", sorted(channels))
    numbers = [
        "10.0",
        "9.25",
        "9.5",
        "1,000",
        "999.0",
        "",
        "-3.0",
        "-20.0",
        "1e-5",
    ]  # not in the order of texts
    opened.execute_script(
        "document.querySelectorAll('#quick-grid td:nth-child(2)').forEach((td, i) => {"
        "td.textContent = arguments[0][i]; td.previousElementSibling.textContent = arguments[0][i]; });",
        numbers,
    )
    up = sorted(filter(None, numbers), key=lambda text: float(text.replace(",", "")))
    for key, expected, rows in (
        (Keys.ENTER, "ascending", up),
        (Keys.SPACE, "descending", up[::-1]),
    ):
        assert sort(2, key) == (expected, [*rows, ""]), "empty cells stay at the end"
        assert opened.execute_script(f"return ({texts})(1)") == [*rows, ""], "rows stay whole"
    assert opened.get_log("browser") == []
