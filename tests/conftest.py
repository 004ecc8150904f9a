"""The profile of property tests, and fixtures that tests share."""

import os
import shutil
import warnings
from collections.abc import Iterator
from typing import Any

import hypothesis
import numpy as np
import pytest

import ldp_gym
from ldp_gym.core.errors import OutsideTrainingWarning

hypothesis.settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.load_profile("default")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Ignore warnings for users: tests play without privacy, and trained models on small games."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)
        warnings.simplefilter("ignore", OutsideTrainingWarning)
        yield


@pytest.fixture
def actions() -> np.ndarray:
    """Random predictions for 40 rounds of four small games."""
    return np.random.default_rng(5).dirichlet(np.ones(6), size=(40, 4))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, with its console and its network on record."""
    try:
        from selenium import webdriver
    except ImportError:
        webdriver = None
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    driver = shutil.which("chromedriver")
    if webdriver is None or chromium is None or driver is None:
        reason = "no browser to test with: it needs selenium, chromium and chromedriver"
        pytest.fail(reason) if os.environ.get("LDP_GYM_DEMAND_BROWSER") == "1" else pytest.skip(
            reason
        )
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Its path is given, so that selenium downloads no driver.
    window = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(executable_path=driver)
    )
    yield window
    window.quit()


@pytest.fixture
def show(browser: Any) -> Any:
    """A function that opens a page at a width, which may be narrower than a window can be."""
    from selenium.webdriver.support.ui import WebDriverWait

    def open_page(path: Any, width: int, ready: str) -> Any:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get_log("browser"), browser.get_log("performance")  # what was before is forgotten
        browser.get(path.as_uri())
        loaded = f"return document.readyState === 'complete' && ({ready})"
        WebDriverWait(browser, 120).until(lambda window: window.execute_script(loaded))
        return browser

    return open_page
