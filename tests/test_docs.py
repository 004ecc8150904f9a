"""The documentation: its code runs as it is printed, what it names exists, and every part has its page."""

import doctest
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import ldp_agents
import ldp_bench
import ldp_gym
from ldp_bench import SUITES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAPER = (ROOT / "docs" / "paper.md").read_text()
REGISTRIES = {
    "classes": ldp_gym.HYPOTHESES,
    "natures": ldp_gym.NATURES,
    "truths": ldp_gym.TRUTHS,
    "channels": ldp_gym.CHANNELS,
    "learners": ldp_gym.LEARNERS,
}

NUMBERED = {"Definition {}": 1, "Algorithm {}": 2, "Theorem {}": 6, "Lemma {}": 8, "eq. ({})": 34}
"""What the paper numbers, and its last numbers."""


def blocks(page):
    """The code of a page and what it shows as printed, in order: the language and the text."""
    return re.findall(
        r"^```(python|pycon|text)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )


NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def assert_printed(shown, printed):
    """The words are the same, and numbers within a tenth: those of fitted models depend on the machine."""
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", printed).split()
    expected, found = (
        [float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in (shown, printed)
    )
    assert found == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name
)
def test_the_code_runs_and_prints_what_it_says(page, monkeypatch, tmp_path, capsys):
    if page.name == "audit.md":
        pytest.importorskip("sklearn", reason="needs the extra: pip install 'ldp-gym[privacy]'")
    monkeypatch.chdir(tmp_path)  # where code may leave files
    names = {"__name__": page.stem}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for number, (language, code) in enumerate(blocks(page)):
        if language == "python":
            capsys.readouterr()
            exec(compile(code, f"{page.name}, block {number}", "exec"), names)
        elif language == "text":
            if printed := capsys.readouterr().out:  # else it shows what no code on the page prints
                assert_printed(code, printed)
        else:
            example = doctest.DocTestParser().get_doctest(
                code, names, f"{page.name}:{number}", page.name, 0
            )
            failures = []
            assert runner.run(example, out=failures.append, clear_globs=False).failed == 0, "".join(
                failures
            )
            names.update(example.globs)


@pytest.fixture
def tables(monkeypatch):
    """The program that writes the generated blocks of the pages."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    yield importlib.import_module("tables")
    sys.modules.pop("tables")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_findings_and_names_are_those_of_the_data(page, tables):
    text = page.read_text()
    assert tables.written(text) == text, f"{page.name} is not that of its data: run `make tables`"


def test_the_page_on_speed_has_measured_numbers_in_its_tables_only():
    page = (ROOT / "docs" / "speed.md").read_text()
    prose = re.sub(r"<!-- table.*?<!-- end -->|```.*?```", "", page, flags=re.DOTALL)
    assert not re.findall(r"\d+(?:\.\d+|%| seconds| times)", prose)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_exists(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for path in re.findall(r"`((?:ldp_gym|ldp_agents)(?:\.\w+)+)`", text):
        pkgutil.resolve_name(path)
    for path in re.findall(r"`((?:tests|examples|docs)/[\w/]+\.\w+)`", text):
        assert (ROOT / path).exists(), path


def test_the_paper_s_map_is_complete():
    rows = [line for line in PAPER.splitlines() if line.startswith("|") and "`" in line]
    listed = " ".join(row.split("|")[1] for row in rows)
    for name in (
        kind.format(number + 1) for kind, last in NUMBERED.items() for number in range(last)
    ):
        assert re.search(rf"{re.escape(name)}(?!\d)", listed), name
    for row in rows:
        code, measured = row.split("|")[2:4]
        assert re.search(r"`ldp_(gym|agents)\.", code), f"no code: {row}"
        assert re.search(r"`(tests/|examples/|ldp_gym\.testing|ldp-gym bench)", measured), (
            f"no test: {row}"
        )
        for suite in re.findall(r"`ldp-gym bench ([\w-]+)`", measured):
            assert suite in SUITES


@pytest.fixture
def reference(monkeypatch):
    """The generated pages of the reference, by name."""
    pytest.importorskip("sphinx", reason="needs the extra: pip install 'ldp-gym[docs]'")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    yield importlib.import_module("reference").pages()
    sys.modules.pop("reference")


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_registered_name_has_a_section_in_the_reference(reference, kind):
    headings = re.findall(r"^## `(.+)`$", reference[kind], flags=re.MULTILINE)
    assert sorted(headings) == sorted(REGISTRIES[kind])


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_registered_name_is_on_the_page_of_the_game(kind):
    page = (ROOT / "docs" / "game.md").read_text()
    links = re.findall(rf"\[`(.+?)`\]\(reference/{kind}\.md#", page)
    missing = set(REGISTRIES[kind]) - set(links)
    assert not missing, f"docs/game.md lists no {sorted(missing)}: run `make tables`"
    assert set(links) == set(REGISTRIES[kind]), "docs/game.md lists parts that are gone"


@pytest.mark.parametrize("package", [ldp_gym, ldp_agents, ldp_bench], ids=lambda p: p.__name__)
def test_every_public_name_is_listed_in_the_reference(reference, package):
    listed = re.findall(rf"^\| `{package.__name__}\.(\w+)` \|", reference["index"], re.MULTILINE)
    assert listed == list(package.__all__)


@pytest.mark.parametrize("package", [ldp_gym, ldp_agents, ldp_bench], ids=lambda p: p.__name__)
def test_every_public_name_has_documentation(package):
    undocumented = [name for name in package.__all__ if not getattr(package, name).__doc__]
    assert undocumented == []


def test_links_from_outside_the_site_resolve_and_every_example_is_listed():
    """The strict build checks the links within the site."""
    for page in ("README.md", "CONTRIBUTING.md"):
        assert (links := re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()))
        assert [link for link in links if not (ROOT / link).exists()] == []
    listed = (ROOT / "docs" / "start.md").read_text()
    assert [
        one.name for one in (ROOT / "examples").glob("*.py") if f"`{one.name}`" not in listed
    ] == []
