"""Tests that cannot run here are skipped with a reason: a missing extra, or what Windows lacks."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from doctest import UnexpectedException
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

_MODULES = {
    "scikit-learn": "sklearn",
    "import-linter": "importlinter",
    "pygame-ce": "pygame",
    "pyyaml": "yaml",
}
"""Packages whose module has another name, hyphens aside."""

_COME_WITH = {"docutils": "sphinx", "markupsafe": "jinja2", "nbformat": "nbclient"}
"""Modules of packages that no extra names, and the package that brings each."""


@cache
def _extras() -> dict[str, str]:
    """The extra of every module that is not installed."""
    project = tomllib.loads((Path(__file__).parent / "pyproject.toml").read_text())["project"]
    missing: dict[str, str] = {}
    for extra, packages in project["optional-dependencies"].items():
        for package in packages:
            name = package.split(">")[0].split("[")[0]
            module = _MODULES.get(name, name.replace("-", "_"))
            if name != project["name"] and find_spec(module) is None:
                missing.setdefault(module, extra)
    return missing


def _missing_extra(error: BaseException | None) -> str | None:
    """The extra that an error is about, or None."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name is not None:
            module = error.name.split(".")[0]
            return _extras().get(_COME_WITH.get(module, module))
        (error,) = getattr(error, "failures", [error])[:1]  # a doctest's
        if isinstance(error, UnexpectedException):
            error = error.exc_info[1]
        else:
            error = error.__cause__ or error.__context__
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests with the marker ``posix_only`` on Windows."""
    for item in items:
        if os.name == "nt" and (marker := item.get_closest_marker("posix_only")):
            item.add_marker(pytest.mark.skip(reason=f"Windows has no {marker.args[0]}"))


def _skip(report: pytest.CollectReport | pytest.TestReport, path: Path, extra: str) -> None:
    report.outcome = "skipped"
    report.longrepr = (str(path), 0, f"Skipped: needs the extra: pip install 'ldp-gym[{extra}]'")


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Skip a module that cannot be imported without an extra."""
    errors: list[BaseException] = []
    collect = collector.collect

    def remembering():
        try:
            return list(collect())
        except BaseException as error:
            errors.append(error)
            raise

    collector.collect = remembering  # type: ignore[method-assign]
    outcome = yield
    collector.collect = collect  # type: ignore[method-assign]
    report = outcome.get_result()
    if report.failed and errors and (extra := _missing_extra(errors[0])):
        _skip(report, collector.path, extra)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Skip a test that fails because an extra is missing."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and call.excinfo is not None and (extra := _missing_extra(call.excinfo.value)):
        _skip(report, item.path, extra)
