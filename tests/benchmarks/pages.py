"""What `castsim run --html` costs, and how fast the page is; writes `docs/measured/pages.json`.

python tests/benchmarks/pages.py

A hand-pipelined cast of more and more rows, timed only. The cost of the page is the processor time of the command with
`--html` less that without, best of three. In the browser: until the page has its text, until the timeline is drawn once
it is scrolled to, and for one step of the wheel.
"""

from __future__ import annotations

import platform
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from core.reports.html_pages import blocks, data_of, long_program, unpacked
from kit.measured_record import MEASURED, table, write

from benchmarks.timing import ROOT, ended

RECORD = MEASURED / "pages.json"
SAMPLE = ROOT / "programs" / "f32_to_f16_pipelined.pto"
ROWS = (512, 5632, 56320)
ROUNDS = 3
HEAD = """\
# Reports as pages

Written by `python tests/benchmarks/pages.py`: what `castsim run --html` costs for a hand-pipelined cast of more
and more rows, and for one of 3,000 lines, timed only, and how fast Chromium shows the page. Cost: processor
seconds of the command with `--html` less those without it. Text and timeline: seconds from opening the file
until they are there; wheel: milliseconds from a step until it is drawn, median. All are the best of three.
Limits: 1 s of cost for 10,000 operations, 2 s until the page of 100,000 can be used, 3 MB; 10 s and 2 MB for
3,000 lines.
"""
COLUMNS = "operations | lines | run s | page s | MB | text s | timeline s | wheel ms"


def seconds(argv: list[str]) -> float:
    """Return the processor time of a command."""
    done = ended([sys.executable, "-m", "castsim", *argv])
    assert done.code == 0, done.err
    return done.seconds


def opened(browser: Any, page: Path) -> tuple[float, float, float]:
    """Return the seconds until text, until the timeline, and of a step of the wheel."""
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    start = time.perf_counter()
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready]", state="attached")
    text = time.perf_counter() - start
    lanes = tab.locator("#timeline-lanes")
    lanes.scroll_into_view_if_needed()
    tab.wait_for_selector("#timeline-lanes[data-drawn]", state="attached")
    drawn = time.perf_counter() - start
    box = lanes.bounding_box()
    assert box, "the timeline is not on the page"
    tab.mouse.move(box["x"] + 600, box["y"] + 50)
    steps = []
    for step in range(12):
        before = time.perf_counter()
        tab.mouse.wheel(0, -200 if step < 8 else 200)
        tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        steps.append(time.perf_counter() - before)
    tab.close()
    return text, drawn, sorted(steps)[len(steps) // 2]


def rows(folder: Path, browser: Any) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table."""
    for count in (*ROWS, None):
        program, page = folder / f"{count}.pto", folder / f"{count}.html"
        if count is None:
            program = long_program(folder)
        else:
            text = SAMPLE.read_text().replace("%rows = arith.constant 512 ", f"%rows = arith.constant {count} ")
            program.write_text(text)
        run = ["run", str(program), "--timing-only"]
        without = min(seconds(run) for _ in range(ROUNDS))
        cost = min(seconds([*run, "--html", str(page)]) for _ in range(ROUNDS)) - without
        html = page.read_text()
        (lanes,) = blocks(data_of(html), "lanes", "timeline")
        operations = len(unpacked(lanes)["operations"]["places"])
        times = [opened(browser, page) for _ in range(ROUNDS)]
        best = [min(each) for each in zip(*times, strict=True)]
        lines = program.read_text().count("\n")
        shown = (f"{operations:,}", f"{lines:,}", f"{without:.2f}", f"{cost:.2f}", f"{len(html) / 1e6:.2f}")
        yield (*shown, f"{best[0]:.2f}", f"{best[1]:.2f}", f"{1000 * best[2]:.0f}")


def main() -> None:
    with TemporaryDirectory() as name, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shown = table(COLUMNS, rows(Path(name), browser))
        version = browser.version
        browser.close()
    machine = f"python {platform.python_version()}, Chromium {version} without a graphics card, two shared cores"
    text = f"{HEAD}\n{machine}\n\n{shown}"
    write(RECORD, text)
    print(text)


if __name__ == "__main__":
    main()
