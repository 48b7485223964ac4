"""The documentation site in a browser, opened from disk: search finds, pages load, nothing is complained of."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.chromium import NEEDED
from project.built_site import built_site

THOROUGH = "CASTSIM_THOROUGH" in os.environ


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


def results_of(page: Any, words: str) -> list[str]:
    """Return the links of the results as they stand when a query is typed, first the best."""
    box = page.locator("input[name=query]")
    box.fill("")
    box.press_sequentially(words)
    page.wait_for_timeout(900)  # the list follows the letters
    hits = page.eval_on_selector_all(".md-search-result__link", "links => links.map(link => link.href)")
    return [hit.rpartition("/site/")[2].partition("?")[0] + "#" * ("#" in hit) + hit.partition("#")[2] for hit in hits]


QUESTIONS = {
    "why is my kernel slow?": "how-to/kernel-author.html#find-out-why-it-is-slow",
    "How do I find the best tile shape?": "how-to/kernel-author.html#choose-tile-shapes",
    "How do I compare two kernels?": "how-to/kernel-author.html#compare-two-kernels",
    "does the A5 saturate f32 fp8": "casts/a5.html#f32-e4m3fn",
    "Which rounding modes are there?": "how-to/numerics-researcher.html#choose-rounding-overflow-and-saturation",
    "how do I prove that a cast is correct": "tutorial/prove.html",
    "how accurate are the cycles?": "tools/accuracy.html",
    "How do I use castsim in Jupyter?": "tools/notebooks.html",
    "what is the launch overhead of a kernel": "launch-overhead.html",
    "How do I describe my own chip?": "tutorial/target.html",
}
"""Questions of kernel authors and compiler engineers, and the result that answers them."""


WORDS = {
    "flag wait": "glossary.html#flag-wait",
    "memory latency": "glossary.html#memory-latency",
    "stale read": "glossary.html#stale-read",
    "bottleneck": "glossary.html#bottleneck",
    "saturation": "how-to/numerics-researcher.html#choose-rounding-overflow-and-saturation",
    "uninstall": "uninstall.html",
    "--html": "how-to/kernel-author.html#see-a-run-as-a-page---html",
    "trowexpandmul": "reference/pto.html#operations",
    "hif8 range": "casts/a5.html#f32-hif8",
}
"""Words that readers look up, and the section that explains each."""


@pytest.mark.parametrize("answers", [QUESTIONS, WORDS], ids=["questions", "words"])
def test_the_first_result_of_the_search_answers(
    site: Path, page: Any, complaints: list[str], answers: dict[str, str]
) -> None:
    page.goto((site / "index.html").as_uri())
    page.wait_for_timeout(1500)  # the index is read first
    page.locator("input[name=query]").click()
    first = {}
    for words, answer in answers.items():
        hits = results_of(page, words)  # the best page, then the best section of it
        first[words] = hits[1] if "#" in answer and hits[0] == hits[1].partition("#")[0] else hits[0]
    assert first == answers
    assert not complaints


def test_a_result_of_the_search_opens_its_section(site: Path, page: Any, complaints: list[str]) -> None:
    page.goto((site / "index.html").as_uri())
    page.wait_for_timeout(1500)
    page.locator("input[name=query]").click()
    results_of(page, "flag wait")
    page.locator(".md-search-result__link").nth(1).click()
    page.wait_for_timeout(500)
    assert page.url.partition("?")[0].endswith("glossary.html") and "flag-wait" in page.url
    assert "set_flag" in page.inner_text("article")
    assert not complaints


def test_every_page_of_the_navigation_loads(site: Path, page: Any, complaints: list[str]) -> None:
    page.goto((site / "index.html").as_uri())
    links = page.eval_on_selector_all(".md-nav--primary a.md-nav__link", "links => links.map(link => link.href)")
    pages = sorted({link.partition("#")[0] for link in links})
    assert len(pages) > 30
    for link in pages if THOROUGH else pages[::5]:
        page.goto(link, wait_until="domcontentloaded" if not THOROUGH else "load")
        assert page.inner_text("article h1").strip()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{link} is too wide"
    assert not complaints


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


def test_the_playground_says_how_to_build_it_where_it_is_not_built(
    site: Path, page: Any, complaints: list[str]
) -> None:
    page.goto((site / "playground.html").as_uri())
    assert "python docs/playground/build.py" in page.inner_text("#playground-app")
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
    names = (
        "index",
        "casts",
        "casts/a5",
        "cli",
        "columns",
        "glossary",
        "reference/pto",
        "playground",
        "tools/accuracy",
    )
    for name in (f"{each}.html" for each in names):
        page.goto((site / name).as_uri())
        page.wait_for_timeout(500)  # the theme adds buttons and frames when a page is there
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        page.add_script_tag(path=str(rules))
        violations = page.evaluate("() => axe.run({ preload: false })")["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == [], name
    assert not complaints
