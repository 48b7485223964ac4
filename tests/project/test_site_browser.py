"""The documentation site in a browser, opened from disk: search finds, pages load, nothing is complained of."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.chromium import NEEDED
from project.built_site import built_site

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs the extra `docs`"),
    *NEEDED,
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complains of: it must stay empty."""
    return []


def failed(request: Any) -> bool:
    """Whether a request went wrong, and did not only end because the browser went on to the next page."""
    return "ERR_ABORTED" not in (request.failure or "")


@pytest.fixture
def page(browser: Any, complaints: list[str]) -> Iterator[Any]:
    found = browser.new_page()
    found.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.on(
        "requestfailed", lambda request: complaints.append(f"not loaded: {request.url}") if failed(request) else None
    )
    found.on("request", lambda request: complaints.append(request.url) if request.url[:4] == "http" else None)
    yield found
    found.close()


def test_casts_at_a_glance_answers_a_choice_and_keeps_it_in_the_address(
    site: Path, page: Any, complaints: list[str]
) -> None:
    page.goto((site / "casts.html").as_uri())
    assert page.inner_text("#glance h2") == "f32 -> e4m3fn on a5 (Ascend A5 vector core)"
    page.select_option("#glance-chip", "gaudi2")
    page.select_option("#glance-to", "bf16")
    assert page.inner_text("#glance h2").startswith("f32 -> bf16 on gaudi2")
    assert page.url.endswith("#gaudi2:f32:bf16")
    page.goto((site / "index.html").as_uri())
    page.goto((site / "casts.html").as_uri() + "#a2a3:f32:f16")
    rows = page.eval_on_selector_all("#glance table:first-of-type tr", "rows => rows.map(row => row.innerText)")
    assert any(row.split()[:1] == ["inf"] and "inf" in row.split()[2:] for row in rows)
    assert not complaints


@pytest.mark.skipif(
    importlib.util.find_spec("axe_playwright_python") is None, reason="needs axe-playwright-python, of the extra `test`"
)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_axe_finds_nothing_on_the_site(site: Path, page: Any, complaints: list[str], scheme: str, width: int) -> None:
    found = importlib.util.find_spec("axe_playwright_python")
    rules = Path(str(found.submodule_search_locations[0])) / "axe.min.js"  # type: ignore[union-attr,index]
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    names = ("index", "casts", "casts/a5", "cli", "columns", "glossary", "reference/pto", "playground", "accuracy")
    for name in (f"{each}.html" for each in names):
        page.goto((site / name).as_uri())
        page.wait_for_timeout(500)  # the theme adds buttons and frames when a page is there
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        page.add_script_tag(path=str(rules))
        violations = page.evaluate("() => axe.run({ preload: false })")["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == [], name
    assert not complaints
