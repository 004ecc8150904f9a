"""The site in a real browser: tables are tables, and nothing is cut off, on wide and on narrow screens."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READY = """[...document.querySelectorAll("article table:not(.highlighttable)")].every(
    table => table.closest(".md-typeset__scrollwrap"))"""
"""The theme's script puts every table into a box that scrolls."""

FAULTS = """
const faults = [];
for (const folded of document.querySelectorAll("details")) folded.open = true;
window.dispatchEvent(new Event("resize"));
const article = document.querySelector("article");
const plain = article.cloneNode(true);
plain.querySelectorAll("code, pre, math, script, style").forEach(part => part.remove());
for (const line of plain.textContent.split("\\n"))
  if (line.includes("|")) faults.push("a table that is not rendered: " + line.trim().slice(0, 80));
const screen = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > screen) faults.push("the page itself scrolls sideways");
for (const table of article.querySelectorAll("table:not(.highlighttable)")) {
  const wrap = table.closest(".md-typeset__scrollwrap"), head = table.textContent.trim().slice(0, 40);
  if (wrap === null) { faults.push("a table without a scroll bar: " + head); continue; }
  const place = wrap.getBoundingClientRect();
  if (place.left < -20 || place.right > screen + 20) faults.push("a table that is cut: " + head);
  if (wrap.scrollWidth > wrap.clientWidth + 1 && !wrap.classList.contains("wide"))
    faults.push("a wide table without a hint: " + head);
}
return faults;
"""


@pytest.fixture(scope="module")
def site(browser, tmp_path_factory):
    """The hand-written pages, built: the reference takes most of the time, and has few tables."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    where = tmp_path_factory.mktemp("site")
    hooks = [str(ROOT / "docs/hooks" / name) for name in ("formulas.py", "notebook.py")]
    plain = {"strict": False, "plugins": [], "hooks": hooks}
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(where), **plain))
    return where


def test_links_lead_to_files_so_that_no_server_is_needed(site):
    for page in site.glob("[!4]*.html"):  # a server's page 404 has absolute links
        links = re.findall(r'(?:href|src)="([^"#:]+)["#]', page.read_text(encoding="utf-8"))
        assert len(links) > 20
        wanted = [link for link in links if not link.startswith("reference/")]  # not built here
        assert [link for link in wanted if not (page.parent / link).is_file()] == [], page.name


@pytest.mark.parametrize("name", sorted(page.stem for page in (ROOT / "docs").glob("*.md")))
def test_tables_are_rendered_and_nothing_is_cut(show, site, name):
    for width in (1280, 400):
        assert show(site / f"{name}.html", width, READY).execute_script(FAULTS) == [], (
            f"at {width} pixels"
        )
