"""The site in a real browser: tables are tables, and nothing is cut off, on wide and on narrow screens."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NARROW, WIDE = 400, 1280
CONFIG = f"""
INHERIT: {ROOT / "mkdocs.yml"}
docs_dir: {ROOT / "docs"}
strict: false
use_directory_urls: false
plugins: []
hooks: []
"""
"""The hand-written pages: the reference takes most of the time, and has few tables."""

READY = """
const tables = [...document.querySelectorAll("article table:not(.highlighttable)")];
return document.readyState === "complete" && tables.every(one => one.closest(".md-typeset__scrollwrap"));
"""
"""The theme's script puts every table into a box that scrolls."""

FAULTS = """
const faults = [];
for (const folded of document.querySelectorAll("details")) folded.open = true;
window.dispatchEvent(new Event("resize"));
const article = document.querySelector("article");
const plain = article.cloneNode(true);
plain.querySelectorAll("code, pre, script, style").forEach(part => part.remove());
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


def leave_out(reason):
    """Skip the tests for want of a browser; fail where one is demanded."""
    if os.environ.get("LDP_GYM_DEMAND_BROWSER") == "1":
        pytest.fail(f"the site was not tested in a browser: {reason}")
    pytest.skip(f"the site was not tested in a browser: {reason}")


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium."""
    try:
        from selenium import webdriver
    except ImportError:
        leave_out("selenium is not installed: pip install 'ldp-gym[dev]'")
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        leave_out("it needs chromium and chromedriver; on Debian: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield window
    window.quit()


@pytest.fixture(scope="module")
def site(browser, tmp_path_factory):
    """The hand-written pages, built."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    where = tmp_path_factory.mktemp("site")
    (where / "mkdocs.yml").write_text(CONFIG)
    build(load_config(str(where / "mkdocs.yml"), site_dir=str(where / "site")))
    return where / "site"


def resize(browser, width):
    """Set the width of the page, which may be narrower than a window can be."""
    settings = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", settings)


@pytest.mark.parametrize("name", sorted(page.stem for page in (ROOT / "docs").glob("*.md")))
def test_tables_are_rendered_and_nothing_is_cut(browser, site, name):
    from selenium.webdriver.support.ui import WebDriverWait

    for width in (WIDE, NARROW):
        resize(browser, width)
        browser.get((site / f"{name}.html").as_uri())
        WebDriverWait(browser, 120).until(lambda window: window.execute_script(READY))
        assert browser.execute_script(FAULTS) == [], f"at {width} pixels"
