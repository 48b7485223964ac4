"""Pages in Debian's Chromium: whether it is there, and a page that tells what it said and asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDED = [
    pytest.mark.skipif(find_spec("playwright") is None, reason="needs playwright, of the extra `test`"),
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed"),
]
"""Marks of tests that open pages."""
LANES = "#timeline-lanes"
"""Where a page draws the timeline."""


def launched() -> Iterator[Any]:
    """Start the browser without a window, and close it in the end."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - where it is not installed, tests are skipped

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Opened:
    """A page with all that it said and asked for."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.tab = browser.new_page(viewport={"width": 1000, "height": 800}, **options)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.tab.on("request", lambda request: self.asked.append(request.url))

    def go(self, page: Path) -> None:
        self.said.clear()
        self.asked.clear()
        self.tab.goto(page.as_uri())
        self.tab.wait_for_selector("html[data-ready]", state="attached", timeout=30_000)

    def lanes(self) -> dict[str, str]:
        """Scroll to the timeline, wait until it is drawn, and return what it says of itself."""
        self.tab.locator(LANES).scroll_into_view_if_needed()
        self.tab.wait_for_selector(f"{LANES}[data-drawn]", state="attached", timeout=30_000)
        return self.state()

    def state(self) -> dict[str, str]:
        found: dict[str, str] = self.tab.evaluate(f"() => ({{...document.querySelector('{LANES}').dataset}})")
        return found

    def settle(self) -> None:
        self.tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def quiet(self, page: Path) -> None:
        assert not self.said
        assert self.asked == [page.as_uri()]
