"""What holds for all tests."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import long_run
import pytest
from kit.chromium import Opened, launched

VARIABLES = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CASTSIM_DEBUG")
"""Variables that say how wide reports are, whether they are coloured, and what is told of internal errors."""


@pytest.fixture(scope="session", autouse=True)
def nobody_says_what_reports_look_like() -> Iterator[None]:
    """Take away what a shell or a CI service may export; workers of pytest-xdist are given COLUMNS."""
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts_are_heard() -> None:
    """Commands that tests start must hear SIGINT: a shell that runs the tests in the background has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium."""
    yield from launched()


@pytest.fixture(scope="module")
def opened(browser: Any) -> Opened:
    """A tab of it, for page after page."""
    return Opened(browser)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Under `-m smoke` leave alone all modules that have no such test: importing them takes longer than the rest."""
    if config.option.markexpr != "smoke" or collection_path.suffix != ".py":
        return None
    return True if "pytest.mark.smoke" not in collection_path.read_text(encoding="utf-8") else None


OBJECTS_BETWEEN_COLLECTIONS = 150_000
"""As of the command line (simulator/__main__.py)."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among tests and modules: they are some millions of objects, and stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("castsim's tests")
    group.addoption("--long", action="store_true", help="every case of every test, also those of long_run.csv")
    group.addoption("--long-record", action="store_true", help="the same, and write what passed to long_run.json")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.long or config.option.long_record or long_run.in_full(config.args):
        return
    without = long_run.left_out([item.nodeid for item in items])
    config.hook.pytest_deselected(items=[item for place, item in enumerate(items) if place in without])
    items[:] = [item for place, item in enumerate(items) if place not in without]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.option.long_record:
        stats = terminalreporter.stats
        nodes = [[each.nodeid for each in stats.get(name, ())] for name in ("passed", "failed", "error")]
        long_run.record(nodes[0], [*nodes[1], *nodes[2]])
