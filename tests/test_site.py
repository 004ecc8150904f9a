"""The site in a real browser: tables are tables, and nothing is cut off, on wide and narrow screens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(page.stem for page in (ROOT / "docs").glob("*.md"))

FAULTS = """
const faults = [];
const article = document.querySelector("article");
const plain = article.cloneNode(true);
plain.querySelectorAll("code, pre, math, script, style").forEach(part => part.remove());
for (const line of plain.textContent.split("\\n"))
  if (line.includes("|")) faults.push("a table that is not rendered: " + line.trim().slice(0, 80));

const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) faults.push("the page itself scrolls sideways");
for (const table of article.querySelectorAll("table")) {
  const box = table.closest(".table-wrapper");
  const head = table.textContent.trim().slice(0, 40);
  if (box === null) { faults.push("a table without a scroll bar: " + head); continue; }
  const place = box.getBoundingClientRect();
  if (place.left < -20 || place.right > width + 20) faults.push("a table that is cut: " + head);
}
return faults;
"""
"""JavaScript that lists what is wrong with the page that is open."""


@pytest.fixture(scope="module")
def site(browser, tmp_path_factory):
    """The hand-written pages, built; `make docs` builds the reference too, and links into it."""
    pytest.importorskip("sphinx", reason="needs the extra: pip install 'ldp-gym[docs]'")
    folder = tmp_path_factory.mktemp("site")
    without_reference = "extensions=myst_nb,sphinx_copybutton,formulas"
    command = ["-m", "sphinx", "-Q", "-D", without_reference, ROOT / "docs", folder]
    subprocess.run([sys.executable, *command], check=True)
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_files_so_that_no_server_is_needed(site, name):
    page = site / f"{name}.html"
    links = re.findall(r'(?:href|src)="([^"#:?]+)["#?]', page.read_text(encoding="utf-8"))
    assert len(links) > 10
    missing = [link for link in links if not (page.parent / link).is_file()]
    assert [link for link in missing if not link.startswith("reference/")] == []


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_rendered_and_nothing_is_cut_on_a_wide_screen(show, site, name):
    page = show(site / f"{name}.html", 1280, "true")
    assert page.execute_script(FAULTS) == []


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_rendered_and_nothing_is_cut_on_a_phone(show, site, name):
    page = show(site / f"{name}.html", 400, "true")
    assert page.execute_script(FAULTS) == []


def test_the_search_finds_a_page_without_a_server(show, site):
    results = "document.querySelectorAll('#search-results li').length > 0"
    page = site / "search.html"
    browser = show(page, 1280, "true")
    browser.get(f"{page.as_uri()}?q=randomized")
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 120).until(lambda window: window.execute_script(f"return {results}"))
    titles = browser.execute_script(
        "return [...document.querySelectorAll('#search-results li a')].map(a => a.textContent)"
    )
    assert "Channels, measured" in titles
