"""Pages in a real Chromium: nothing is asked for, nothing fails, charts draw and zoom, lists are chosen from."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pytest
from core.reports.html_pages import GRAPHS, SAMPLES, blocks, data_of, graph_command, run_command, run_page
from kit.chromium import CHROMIUM, LANES, NEEDED, Opened
from kit.command_output import err_of, file_of
from makers.expected_files import PROGRAMS, ROOT

from castsim.__main__ import main

pytestmark = NEEDED

CONFORM = "conform --spec tosa --target a5 a2a3 --src i32 --dst f32"
PIXELS = """() => {
  const canvas = document.querySelector("#timeline-lanes canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let k = 0; k < data.length; k += 4) found.add(`${data[k]} ${data[k + 1]} ${data[k + 2]} ${data[k + 3] === 255}`);
  return found.size;
}"""


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_every_sample_opens_draws_and_zooms(path: Path, opened: Opened, tmp_path: Path) -> None:
    _, document, _, _ = run_page(run_command(path), tmp_path)
    page = tmp_path / "page.html"
    opened.go(page)
    assert opened.tab.locator("h1").text_content() == f"{document['program']} @{document['entry']}"
    if document["total_cycles"] is None:
        assert opened.tab.locator("#timeline").count() == 0
        opened.quiet(page)
        return
    assert opened.tab.locator(".answer").text_content().startswith(f"{document['total_cycles']:,} cycles, ")
    before = opened.lanes()
    assert (float(before["from"]), float(before["to"])) == (0, max(document["total_cycles"], 1))
    assert int(before["drawn"]) > 0
    assert opened.tab.evaluate(PIXELS) > 3
    opened.tab.locator(LANES).focus()
    opened.tab.keyboard.press("+")
    opened.settle()
    after = opened.state()
    width = float(after["to"]) - float(after["from"])
    assert width == pytest.approx(max(document["total_cycles"] / 2, min(4, document["total_cycles"])), rel=0.01)
    opened.quiet(page)


ON_THE_FIRST_SCREEN = """() => [".answer", ".line.strong", "#timeline-lanes"].map(
  (name) => (document.querySelector(name)?.getBoundingClientRect().top ?? 0) + 60 <= innerHeight)"""


@pytest.mark.parametrize("size", [(1280, 800), (400, 800)], ids=["desktop", "phone"])
@pytest.mark.parametrize(
    "name", ["f32_to_f16_pipelined.pto", "tpc_f32_i32_pipelined_stale_goya.tpc", "f32_to_i8_own_barriers.pto"]
)
def test_the_first_screen_has_the_answer(name: str, size: tuple[int, int], browser: Any, tmp_path: Path) -> None:
    """The sentence, the line that costs most, and the strip of the timeline with at least two of its rows.

    Where changes save cycles, they are there, too.
    """
    run_page(run_command(PROGRAMS / name), tmp_path, advised="own" in name)
    opened = Opened(browser)
    opened.tab.set_viewport_size({"width": size[0], "height": size[1]})
    opened.go(tmp_path / "page.html")
    assert all(opened.tab.evaluate(ON_THE_FIRST_SCREEN))
    assert opened.tab.locator("#summary .strong").count() == 1
    assert opened.tab.locator(".alarm").count() == int("stale" in name)
    assert (opened.tab.locator("#summary details").count() > 0) == ("own" in name)


def test_addresses_lead_to_lines(opened: Opened, tmp_path: Path) -> None:
    run_page(run_command(PROGRAMS / "f32_to_f16_pipelined.pto"), tmp_path)
    opened.go(tmp_path / "page.html")
    link = opened.tab.locator("#summary .strong a")
    line = link.text_content().removeprefix("Line ")
    link.click()
    assert opened.tab.url.endswith(f"#line-{line}")
    opened.tab.wait_for_selector(f"tr.found[data-line='{line}']")
    opened.tab.goto("about:blank")
    opened.tab.goto((tmp_path / "page.html").as_uri() + "#line-31")
    opened.tab.wait_for_selector("tr.found[data-line='31']")
    opened.tab.goto("about:blank")
    opened.tab.goto((tmp_path / "page.html").as_uri() + "#cycles-1000-4000&operation-44")
    opened.tab.wait_for_selector(f"{LANES}[data-selected='44']")
    assert [float(opened.state()[end]) for end in ("from", "to")] == [1000, 4000]
    opened.tab.locator(LANES).focus()
    opened.tab.keyboard.press("Escape")
    opened.tab.keyboard.press("+")
    opened.tab.wait_for_function("() => location.hash === '#cycles-1750-3250'")
    opened.tab.locator("tr[data-line='39'] button").click()
    opened.tab.wait_for_function("() => /^#line-39&cycles-\\d+-\\d+&operation-\\d+$/.test(location.hash)")
    assert "line 39, V, operation" in opened.tab.locator("#timeline .detail").inner_text()
    assert not opened.said


def test_what_is_typed_is_found_and_what_is_shown_is_copied(browser: Any, tmp_path: Path) -> None:
    run_page(run_command(PROGRAMS / "f32_to_f16_pipelined.pto"), tmp_path)
    opened = Opened(browser, permissions=["clipboard-read", "clipboard-write"])
    opened.go(tmp_path / "page.html")
    field = opened.tab.locator("#search")
    assert opened.tab.locator("tr[data-line='6']").is_hidden()  # a constant
    field.fill("%c1 = ARITH.constant")
    assert opened.tab.locator("output").inner_text() == "1 found"
    field.press("Enter")
    assert opened.tab.locator("tr.found").get_attribute("data-line") == "6"
    assert opened.tab.locator("tr[data-line='6']").is_visible()
    opened.tab.get_by_role("button", name="copy the program").click()
    opened.tab.get_by_text("Copied").wait_for()
    copied = opened.tab.evaluate("() => navigator.clipboard.readText()")
    assert copied == (PROGRAMS / "f32_to_f16_pipelined.pto").read_text()
    assert opened.tab.locator("tr[data-line='39'] code .name").first.inner_text() == "pto.tcvt"
    assert opened.tab.locator("tr[data-line='1'] code .comment").count() == 1


def colours(image: Path) -> dict[str, int]:
    """How many pixels of a picture have which colour, as the page writes it."""
    from PIL import Image  # noqa: PLC0415 - as the browser

    found = Image.open(image).convert("RGB").getcolors(1 << 24) or []
    return {"#{:02x}{:02x}{:02x}".format(*colour): count for count, colour in found}


@pytest.mark.skipif(shutil.which("pdftoppm") is None, reason="poppler-utils is not installed")
@pytest.mark.parametrize(
    ("name", "tones"),
    [
        ("f32_to_f16_pipelined.pto", ("busy", "flag_wait", "barrier", "memory_latency")),
        ("tpc_f32_i8_quantise_gaudi2.tpc", ("busy", "window", "chain")),
    ],
)
def test_paper_shows_every_chart(name: str, tones: tuple[str, ...], browser: Any, tmp_path: Path) -> None:
    """Printed by Chromium itself, which waits for nothing: the first page has as much of each cause as the screen."""
    run_page(run_command(PROGRAMS / name), tmp_path)
    opened = Opened(browser)
    opened.go(tmp_path / "page.html")
    opened.lanes()
    shown = {tone: opened.tab.evaluate("(tone) => page.colour(tone)", tone) for tone in tones}
    opened.tab.locator(f"{LANES} canvas").screenshot(path=tmp_path / "screen.png")
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", "--print-to-pdf=page.pdf"]
    assert CHROMIUM is not None
    subprocess.run([CHROMIUM, *words, (tmp_path / "page.html").as_uri()], cwd=tmp_path, check=True, capture_output=True)
    words = ["-r", "100", "-png", "-f", "1", "-l", "1", "-singlefile"]
    subprocess.run(["pdftoppm", *words, "page.pdf", "printed"], cwd=tmp_path, check=True)
    screen, printed = (colours(tmp_path / f"{each}.png") for each in ("screen", "printed"))
    for tone, colour in shown.items():
        parts = [found.get(colour, 0) / found[shown["busy"]] for found in (screen, printed)]
        assert parts[1] == pytest.approx(parts[0], rel=0.6), tone  # hatching blends on paper
        assert printed[colour] > 200, tone
    opened.tab.emulate_media(media="print")
    opened.tab.set_viewport_size({"width": 700, "height": 900})
    wide = "() => [...document.querySelectorAll('canvas, table')].filter((each) => each.clientWidth > 700).length"
    assert opened.tab.evaluate(wide) == 0


@pytest.mark.parametrize("name", ["f32_to_f16_pipelined.pto", "tpc_f32_i8_quantise_gaudi2.tpc"])
def test_a_page_without_scripts_has_answer_and_tables(name: str, browser: Any, tmp_path: Path) -> None:
    data, document, _, _ = run_page(run_command(PROGRAMS / name), tmp_path)
    opened = Opened(browser, java_script_enabled=False)
    opened.tab.goto((tmp_path / "page.html").as_uri())
    assert opened.tab.locator(".answer").inner_text().startswith(f"{document['total_cycles']:,} cycles, ")
    table = blocks(data, "table", "path")[0]
    found = opened.tab.locator("table", has=opened.tab.get_by_text(table["columns"][1], exact=True)).first
    assert found.locator("tbody tr").count() >= len(table["rows"])
    texts = opened.tab.locator("td code").all_text_contents()
    assert texts == (PROGRAMS / name).read_text().split("\n")
    assert opened.asked == [(tmp_path / "page.html").as_uri()]


def racy_program(folder: Path) -> Path:
    """Write a program whose load and cast are not ordered."""
    text = (PROGRAMS / "f32_to_i8_own_barriers.pto").read_text()
    lines = [line for line in text.splitlines() if "<PIPE_MTE2>, <PIPE_V>" not in line]
    return file_of(folder / "racy.pto", "\n".join(lines))


def test_a_racy_run_has_a_page_that_says_so(opened: Opened, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    racy, page = racy_program(tmp_path), tmp_path / "page.html"
    assert "race" in err_of(capsys, ["run", str(racy), "--in", "src=random:1", "--html", str(page)], 1)
    opened.go(page)
    assert opened.tab.locator("#summary .alarm").text_content().startswith("1 race, lines 16, 17: ")
    links = opened.tab.locator("#summary .alarm a")
    assert links.all_inner_texts() == ["16", "17"]
    links.last.click()
    opened.tab.wait_for_selector("tr.found[data-line='17']")
    opened.quiet(page)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_graph_opens_and_draws(name: str, opened: Opened, tmp_path: Path) -> None:
    _, document, _, _ = run_page(graph_command(name), tmp_path)
    page = tmp_path / "page.html"
    opened.go(page)
    assert opened.tab.locator(".answer").inner_text().startswith(f"{document['total_cycles']:,} cycles, ")
    for node in document["nodes"]:
        box = opened.tab.locator("#graph svg g", has=opened.tab.locator("title", has_text=node["name"])).first
        assert node["verdict"] in box.text_content()
    state = opened.lanes()
    assert (float(state["from"]), float(state["to"])) == (0, document["total_cycles"])
    opened.tab.locator("#nodes .chart").scroll_into_view_if_needed()
    opened.tab.wait_for_selector("#nodes .chart[data-drawn]", state="attached")
    opened.quiet(page)


@pytest.fixture
def pipelined(opened: Opened, tmp_path: Path) -> Opened:
    run_page(run_command(PROGRAMS / "f32_to_f16_pipelined.pto"), tmp_path)
    opened.go(tmp_path / "page.html")
    opened.lanes()
    return opened


def test_wheel_and_drag_zoom_and_move(pipelined: Opened) -> None:
    before = pipelined.state()
    box = pipelined.tab.locator(LANES).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    pipelined.tab.mouse.move(x, y)
    pipelined.tab.mouse.wheel(0, 40)
    pipelined.tab.wait_for_timeout(60)
    assert pipelined.state() == before  # the page scrolls
    pipelined.tab.wait_for_function("() => scrollY > 0")
    pipelined.tab.mouse.wheel(0, -40)
    pipelined.tab.keyboard.down("Control")
    for _ in range(5):
        pipelined.tab.mouse.wheel(0, -300)
        pipelined.tab.wait_for_timeout(60)
    pipelined.tab.keyboard.up("Control")
    zoomed = pipelined.state()
    assert float(zoomed["to"]) - float(zoomed["from"]) < (float(before["to"]) - float(before["from"])) / 1.5
    pipelined.tab.mouse.down()
    pipelined.tab.mouse.move(x - 150, y, steps=5)
    pipelined.tab.mouse.up()
    pipelined.settle()
    assert float(pipelined.state()["from"]) > float(zoomed["from"])


def test_pointing_tells_bytes_cause_and_line(pipelined: Opened) -> None:
    """Of the first load: 16 rows of 512 numbers of 4 bytes to the start of the buffer, as line 34 has it."""
    box = pipelined.tab.locator(LANES).bounding_box()
    for _ in range(4):
        pipelined.tab.locator(LANES).focus()
        pipelined.tab.keyboard.press("+")
        pipelined.tab.keyboard.press("Home")
        pipelined.settle()
    rows = pipelined.tab.locator(LANES).get_attribute("aria-label").split(": ")[1].split(". ")[0].split(", ")
    pipelined.tab.mouse.move(box["x"] + 300, box["y"] + 6 + 26 * (rows.index("MTE2") + 0.5))
    tip = pipelined.tab.locator(".tip").first
    tip.wait_for(timeout=5000)
    text = tip.inner_text()
    assert "load src" in text
    assert "writes ub bytes 0 .. 32,767" in text
    assert "line 32" in text
    assert "memory latency" in text


def press(tab: Any, key: str, most: int, done: Callable[[], bool]) -> None:
    for _ in range(most):
        tab.keyboard.press(key)
        if done():
            return


def test_selecting_tells_what_it_needs_and_leads_to_the_line(pipelined: Opened) -> None:
    tab = pipelined.tab
    tab.locator(LANES).focus()
    detail = tab.locator("#timeline .detail")
    press(tab, ".", 1, lambda: False)
    press(tab, "ArrowDown", 6, lambda: ", V, operation" in detail.inner_text())
    press(tab, ".", 40, lambda: "needs: load src (ub bytes" in detail.inner_text())
    assert "tcvt f32 -> f16 ODD" in detail.inner_text()
    assert "reads ub" in detail.inner_text()
    before = pipelined.state()["selected"]
    detail.get_by_role("button", name="load src").click()
    assert "is needed by: " in detail.inner_text()
    assert pipelined.state()["selected"] != before
    detail.get_by_role("button", name="vconv").first.click()
    tab.locator("#timeline .detail button", has_text="line ").first.click()
    assert tab.evaluate("() => document.activeElement.dataset.line") in ("39", "44")
    assert tab.evaluate("() => document.querySelectorAll('tr.found').length") == 1
    pipelined.tab.locator(LANES).focus()
    tab.keyboard.press("Escape")
    assert pipelined.state()["selected"] == ""


def test_everything_is_reached_by_the_tab_key(pipelined: Opened) -> None:
    tab = pipelined.tab
    tab.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    reached = set()
    for _ in range(60):
        tab.keyboard.press("Tab")
        reached.add(
            tab.evaluate(
                "() => document.activeElement.id || document.activeElement.className || "
                "document.activeElement.getAttribute('aria-label') || ''"
            )
        )
    assert {"theme", "timeline-lanes", "program", "zoom in", "move left"} <= reached


def test_light_dark_and_narrow(browser: Any, tmp_path: Path) -> None:
    run_page(run_command(PROGRAMS / "tpc_f32_i8_quantise_gaudi2.tpc"), tmp_path)
    backgrounds = {}
    for scheme in ("light", "dark"):
        opened = Opened(browser, color_scheme=scheme)
        opened.tab.set_viewport_size({"width": 400, "height": 800})
        opened.go(tmp_path / "page.html")
        opened.lanes()
        read = "() => getComputedStyle(document.body).backgroundColor"
        backgrounds[scheme] = opened.tab.evaluate(read)
        assert opened.tab.evaluate("() => document.documentElement.scrollWidth") <= 400
        opened.tab.locator("#theme").click()
        opened.tab.locator("#theme").click()
        assert opened.tab.locator("#theme").inner_text() == "Theme: light"
        assert opened.tab.evaluate(read) == "rgb(255, 255, 255)"
        opened.quiet(tmp_path / "page.html")
        opened.tab.close()
    assert backgrounds["light"] == "rgb(255, 255, 255)"
    assert backgrounds["dark"] != backgrounds["light"]


CPP_KERNELS = ["f32_to_f16_pipelined", "f32_to_i8_own_barriers", "f32_to_i32_barriers", "f16_to_i8_wrap"]
"""Kernels in C++ without arguments."""
PAGES = [
    *(run_command(path) for path in SAMPLES),
    *(graph_command(name) for name in GRAPHS),
    *(["run", f"programs/pto_cpp/{name}.cpp", "--in", "src=random:1"] for name in CPP_KERNELS),
    ["run", "RACY", "--in", "src=random:1"],
    ["lower", "f32", "i16", "--spec", "onnx", "--target", "gaudi"],
    ["tune", "programs/tuning/f32_to_bf16_tiles.pto"],
    CONFORM.split(),
    ["diff", "programs/f32_to_f16.pto", "--timing-only", "--target-b", "a5"],
    ["accuracy", "--target", "a2a3"],
    ["targets", "--diff", "a5", "a2a3"],
    ["targets", "gaudi2"],
    ["targets", "onnx"],
    ["targets", "a2a3", "f32", "i16"],
    ["check", "programs/f32_to_f16.pto", "nosuch.pto"],
    ["expand", "programs/a5_bf16_to_e2m1.pto"],
    ["scratch", "f32", "i16", "--rows", "4", "--cols", "200", "--row-stride", "256"],
    ["check", "programs/f32_to_f16.pto", "programs/bank_conflict.pto"],
    ["advise", "programs/f32_to_i8_own_barriers.pto"],
]
"""Commands that make a page, of every sample and of every kind."""
MODES = [("light", 1280, "screen"), ("light", 400, "screen"), ("dark", 1280, "screen"), ("dark", 400, "screen"),
         ("light", 700, "print")]  # fmt: skip
"""Theme, width of the window and medium in which pages are read."""


@pytest.mark.skipif(
    find_spec("axe_playwright_python") is None, reason="needs axe-playwright-python, of the extra `test`"
)
@pytest.mark.parametrize("words", PAGES, ids=lambda words: "-".join(Path(word).name for word in words[:2]))
def test_axe_finds_nothing(words: list[str], browser: Any, tmp_path: Path) -> None:
    """Nor does the page scroll sideways or write to the console; its charts are drawn, and what is folded is open."""
    if "RACY" in words:
        words = [words[0], str(racy_program(tmp_path)), *words[2:]]
    _, document, _, _ = run_page(words, tmp_path, advised="barriers" in words[1])
    rules = Path(str(find_spec("axe_playwright_python").submodule_search_locations[0])) / "axe.min.js"  # type: ignore
    for scheme, width, medium in MODES:
        opened = Opened(browser, color_scheme=scheme)
        opened.tab.set_viewport_size({"width": width, "height": 800})
        opened.tab.emulate_media(media=medium)
        opened.tab.add_init_script(path=rules)
        opened.go(tmp_path / "page.html")
        opened.tab.evaluate("() => { for (const each of document.querySelectorAll('details')) each.open = true; }")
        opened.tab.evaluate("() => dispatchEvent(new Event('beforeprint'))")  # draws all
        opened.settle()
        assert opened.tab.evaluate("() => document.documentElement.scrollWidth") <= width
        found = opened.tab.evaluate("() => axe.run()")
        assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == [], (scheme, width, medium)
        assert opened.tab.evaluate("() => page.plain(page.data.result).schema_version") == document["schema_version"]
        opened.quiet(tmp_path / "page.html")
        opened.tab.close()


def test_a_target_fits_three_screens_and_its_tables_are_sorted_and_searched(opened: Opened, tmp_path: Path) -> None:
    """By keys alone: the field of the casts, the heading that sorts, the button that shows the others."""
    _, document, _, _ = run_page(["targets", "a5"], tmp_path)
    opened.tab.set_viewport_size({"width": 1280, "height": 800})
    opened.go(tmp_path / "page.html")
    assert opened.tab.evaluate("() => document.documentElement.scrollHeight") <= 3 * 800
    rows = opened.tab.locator("#casts tbody tr:visible")
    assert rows.count() < document["casts"]
    field = opened.tab.get_by_label("search this table").first
    field.focus()
    opened.tab.keyboard.type("hif8")
    assert rows.count() == sum("hif8" in (pair["src"], pair["dst"]) for pair in document["pairs"])
    field.fill("")
    heading = opened.tab.locator("#casts th button", has_text="from")
    heading.focus()
    for order in ("ascending", "descending"):
        opened.tab.keyboard.press("Enter")
        assert opened.tab.locator("#casts th").first.get_attribute("aria-sort") == order
    opened.tab.locator("#casts").get_by_role("button", name="more rows").press("Enter")
    names = [row.split("\t")[0] for row in rows.all_inner_texts()]
    assert len(names) == document["casts"]
    assert names == sorted(names, key=natural, reverse=True)
    opened.tab.locator("#search").fill("timing.store_barrier")
    opened.tab.locator("#search").press("Enter")
    assert opened.tab.locator("tr.found").is_visible()
    opened.quiet(tmp_path / "page.html")


def natural(text: str) -> list[tuple[bool, int | str]]:
    """A text as it is sorted: by its letters and the sizes of its numbers."""
    return [(not part.isdigit(), int(part) if part.isdigit() else part) for part in re.findall(r"\d+|\D+", text)]


def test_a_hostile_program_stays_text(opened: Opened, tmp_path: Path) -> None:
    source = (PROGRAMS / "f32_to_f16.pto").read_text()
    evil = "</script><script>alert('x')</script><img src=x onerror=alert(1)>"
    path = file_of(tmp_path / "a\"b'<b onclick=alert(2)>\x1b[2J\u202e.pto", f"// {evil} \u202e \x1b]0;t\x07\n" + source)
    page = tmp_path / "page.html"
    assert main(["run", str(path), "--timing-only", "--html", str(page), "--quiet"]) == 0
    opened.go(page)
    opened.lanes()
    assert evil in opened.tab.locator('tr[data-line="1"] code').text_content()
    assert opened.tab.locator("main img, main b[onclick], h1 b").count() == 0
    shown = opened.tab.evaluate("() => document.body.innerText")
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert "\\x1b[2J\\u202e" in opened.tab.locator("h1").text_content()
    opened.quiet(page)


def test_the_data_of_the_page_are_json_in_the_page(opened: Opened, tmp_path: Path) -> None:
    _, document, text, _ = run_page(run_command(PROGRAMS / "f32_to_f16.pto"), tmp_path)
    opened.go(tmp_path / "page.html")
    found = json.loads(opened.tab.evaluate("() => JSON.stringify(page.data.result)"))
    assert found == data_of(text)["result"]
    assert found["total_cycles"] == document["total_cycles"]


EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'\x1b[2J\u202e"


def show(opened: Opened, words: list[str], folder: Path) -> tuple[Any, dict[str, Any]]:
    """Open the page of a command at its results; return the tab and the JSON."""
    data, document, _, code = run_page(words, folder)
    assert code in (0, 1)
    assert data["kind"] == words[0]
    opened.go(folder / "page.html")
    for view in opened.tab.locator(".view").all():
        view.scroll_into_view_if_needed()
    if opened.tab.locator(".view").count():
        opened.tab.wait_for_selector(".view[data-ready]", state="attached")
    return opened.tab, document


def figure(tab: Any, label: str) -> str:
    """The value of a figure and its note."""
    found = tab.locator(".figure", has=tab.get_by_text(label, exact=True)).first
    return str(found.inner_text()).replace("\n", " ").removeprefix(label).strip().replace(",", "")


def choose(tab: Any, name: str, value: str) -> None:
    tab.locator(f"select[name='{name}']").select_option(value)


def chart(opened: Opened) -> Any:
    """The chart whose points are selected; those that only count have nothing to select."""
    found = opened.tab.locator(".view .chart[role='application']").first
    found.scroll_into_view_if_needed()
    opened.tab.wait_for_function("(host) => host.dataset.drawn", arg=found.element_handle())
    opened.settle()
    return found


def quiet(opened: Opened, folder: Path) -> None:
    opened.quiet(folder / "page.html")
    assert opened.tab.evaluate("() => document.querySelectorAll('main img, main script').length") == 0


def test_measurements_are_chosen_and_counted(opened: Opened, tmp_path: Path) -> None:
    tab, document = show(opened, ["accuracy", "--target", "a2a3"], tmp_path)

    def check(rows: list[dict[str, Any]]) -> None:
        signed = [row["error_percent"] for row in rows]  # of a published range, from its nearer end
        errors = [abs(error) for error in signed]
        told = f"{fmean(errors):.2f} % median {median(errors):.2f} % maximum {max(errors):.2f} %"
        assert figure(tab, "simulation: mean absolute error") == told
        tab.locator("summary", has_text="as a table").first.click()
        tab.locator("details table tbody tr").first.wait_for()
        counted = (
            tab.locator("details table")
            .first.locator("tbody tr")
            .evaluate_all("(all) => all.map((row) => Number(row.cells[1].textContent))")
        )
        edges = [-np.inf, -50, -20, -10, -5, -2, -0.5, 0.5, 2, 5, 10, 20, 50, np.inf]
        assert counted == list(np.histogram(signed, edges)[0])
        public = sum(row["public_model_error_percent"] is not None for row in rows)
        assert chart(opened).get_attribute("data-points") == str(len(rows) + public)

    check(document["rows"])
    worst = tab.locator(".worst tbody tr").first.inner_text().split("\t")
    largest = max(document["rows"], key=lambda row: abs(row["error_percent"]))
    assert f"{largest['error_percent']:.2f}" in worst
    choose(tab, "operation", "tadd")
    check([row for row in document["rows"] if row["operation"] == "tadd"])
    quiet(opened, tmp_path)


def test_a_measurement_is_pointed_at_and_selected(opened: Opened, tmp_path: Path) -> None:
    tab, document = show(opened, ["accuracy", "--target", "a2a3"], tmp_path)
    choose(tab, "table", "a2a3_measured_casts.csv")
    host = chart(opened)
    host.focus()
    tab.keyboard.press("ArrowRight")
    detail = tab.locator(".view .detail").inner_text()
    casts = sorted(document["rows"][:2], key=lambda row: row["measured_cycles"])
    assert f"measured {casts[0]['measured_cycles']} cycles" in detail
    error = 100 * (casts[0]["simulated_cycles"] / casts[0]["measured_cycles"] - 1)
    assert f"simulated {casts[0]['simulated_cycles']}, {error:+.2f} %" in detail
    assert "public model " in detail
    tab.keyboard.press("Escape")
    assert host.get_attribute("data-selected") == ""
    x, y = (casts[1][name] for name in ("measured_cycles", "simulated_cycles"))
    at = host.evaluate("(host, at) => echarts.getInstanceByDom(host).convertToPixel({ gridIndex: 0 }, at)", [x, y])
    box = host.bounding_box()
    tab.mouse.move(box["x"] + at[0], box["y"] + at[1])
    tip = tab.locator(".tip").first
    tip.wait_for(timeout=5000)
    assert f"measured {x} cycles" in tip.inner_text()
    tab.mouse.click(box["x"] + at[0], box["y"] + at[1])
    assert f"measured {x} cycles" in tab.locator(".view .detail").inner_text()
    quiet(opened, tmp_path)


def test_a_cell_tells_its_way_and_where_it_fails(opened: Opened, tmp_path: Path) -> None:
    """Codes of the counterexample are decoded by numpy: u32 as it is read, and the nearest f32."""
    tab, document = show(opened, CONFORM.split(), tmp_path)
    for target in ("a5", "a2a3"):
        choose(tab, "target", target)
        for attributes in ("defaults", "input_unsigned=1"):
            choose(tab, "attributes", attributes)
            (cell,) = (
                each
                for each in document["cells"]
                if each["target"] == target and bool(each["attributes"]) == (attributes != "defaults")
            )
            shown = tab.locator(".matrix [data-cell]")
            assert shown.count() == 1
            assert shown.get_attribute("data-way") == cell["way"]
    (cell,) = (each for each in document["cells"] if each["target"] == "a5" and each["counterexample"])
    choose(tab, "target", "a5")
    tab.locator(".matrix [data-cell]").focus()
    tab.keyboard.press("Enter")
    detail = tab.locator(".view .detail")
    rows = [row.split("\t") for row in detail.locator("table").last.locator("tbody tr").all_inner_texts()]
    assert [row[2] for row in rows] == [each["bits"] for each in cell["counterexample"]["values"]]
    code = int(rows[0][2], 16)
    assert int(rows[0][3].replace(",", "")) == code
    assert int(rows[1][3].replace(",", "")) == int(np.uint32(code).astype(np.int32))
    right = detail.locator(".warning").inner_text().replace(",", "")
    ends = [(float(value), int(bits, 16)) for value, bits in re.findall(r"([\d.]+) \((0x\w+)\)", right)]
    assert [value for value, _ in ends] == [float(np.uint32(bits).view(np.float32)) for _, bits in ends]
    assert float(np.float32(code)) in [value for value, _ in ends]
    assert [step["instruction"] in detail.inner_text() for step in cell["instructions"]]
    quiet(opened, tmp_path)


def test_the_matrix_is_walked_by_keys_and_by_targets(opened: Opened, tmp_path: Path) -> None:
    tab, document = show(opened, CONFORM.split(), tmp_path)
    choose(tab, "target", "")
    cells = tab.locator(".matrix [data-cell]")
    assert cells.count() == len(document["cells"]) == 4
    cells.first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
        tab.keyboard.press(key)
    assert tab.evaluate("() => [document.activeElement.dataset.row, document.activeElement.dataset.column]") == [
        "1",
        "1",
    ]
    tab.keyboard.press(" ")
    assert tab.locator(".way[aria-selected]").count() == 1
    assert "i32 -> f32, input_unsigned=1 on a2a3" in tab.locator(".view .detail").inner_text()
    ways = [cell["way"] for cell in document["cells"]]
    choose(tab, "way", "none found")
    assert tab.locator(".view").get_attribute("data-cells") == str(ways.count("none found"))
    assert tab.locator(".way.faded").count() == len(ways) - ways.count("none found")
    quiet(opened, tmp_path)


def test_a_lowered_cast_shows_its_chain_and_its_program(opened: Opened, tmp_path: Path) -> None:
    tab, document = show(opened, ["lower", "f32", "i16", "--spec", "onnx", "--target", "gaudi"], tmp_path)
    assert figure(tab, "way") == document["way"]
    assert float(figure(tab, "cycles per element").split()[0]) == pytest.approx(
        document["cost"]["cycles_per_element"], rel=1e-5
    )
    assert tab.locator("#program code").inner_text() == document["program"].rstrip("\n")
    for refuted in document["refuted"]:
        for each in refuted["counterexample"]["values"]:
            assert each["bits"] in tab.locator("#summary").inner_text()
    quiet(opened, tmp_path)


def test_points_of_a_search_are_drawn_chosen_and_selected(opened: Opened, tmp_path: Path) -> None:
    tab, document = show(opened, ["tune", "programs/tuning/f32_to_bf16_tiles.pto"], tmp_path)
    assert figure(tab, "best").startswith(f"{document['best']['cycles']} cycles")
    rows = document["rows"]
    front = sum(row["pareto"] for row in rows)
    host = chart(opened)
    assert host.get_attribute("data-points") == str(len(rows) + front)  # the line through the front has its points too
    host.focus()
    tab.keyboard.press("ArrowRight")
    least = min(rows, key=lambda row: row["buffer_bytes"])
    detail = tab.locator(".view .detail").inner_text().replace(",", "")
    assert f"{least['cycles']} cycles" in detail
    assert f"{least['buffer_bytes']} bytes of the buffer" in detail
    assert "castsim run programs/tuning/f32_to_bf16_tiles.pto --tile R=4 --tile C=128 --timing-only" in detail
    choose(tab, "C", "256")
    kept = [row for row in rows if row["choices"]["C"] == 256]
    shown = tab.locator(".view table").last.locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[3].replace(",", "") for row in shown] == [str(row["cycles"]) for row in kept]
    opened.settle()
    assert host.get_attribute("data-points") == str(len(kept) + sum(row["pareto"] for row in kept))
    quiet(opened, tmp_path)


def test_timelines_of_a_difference_move_together(opened: Opened, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    path = str(PROGRAMS / "f32_to_f16_pipelined.pto")
    assert main(["run", path, "--timing-only", "--json", str(before), "--quiet"]) == 0
    words = ["diff", str(before), path, "--timing-only", "--option-b", "vector_head=always"]
    tab, document = show(opened, words, tmp_path)
    assert figure(tab, "A") == f"{document['cycles_a']} cycles"
    assert figure(tab, "B").startswith(f"{document['cycles_b']} cycles")
    assert tab.locator(".view").get_attribute("data-lines") == str(len(document["lines"]))
    first, second = tab.locator("#timelines-lanes"), tab.locator("#timelines-lanes-2")
    for each in (first, second):
        each.scroll_into_view_if_needed()
        tab.wait_for_function("(host) => host.dataset.drawn", arg=each.element_handle())
    first.focus()
    for _ in range(3):
        tab.keyboard.press("+")
        opened.settle()
    axes = [[float(str(each.get_attribute(f"data-{end}"))) for end in ("from", "to")] for each in (first, second)]
    assert axes[0] == pytest.approx(axes[1])
    assert axes[0][1] - axes[0][0] == pytest.approx(max(document["cycles_a"], document["cycles_b"]) / 8, rel=0.01)
    line = next(each for each in document["lines"] if each["line_a"] and each["line_b"])
    buttons = tab.locator(f"tr[data-change='{line['change']}'] td:nth-child(2) button")
    buttons.first.click()
    opened.settle()
    assert f"line {line['line_b']}, " in tab.locator("#timelines .detail").nth(1).inner_text()
    tab.locator("#lines td:nth-child(1) button").first.click()
    assert f"line {line['line_a']}" in tab.locator("#timelines .detail").first.inner_text()
    quiet(opened, tmp_path)


def test_hostile_names_stay_text(opened: Opened, tmp_path: Path) -> None:
    """In a kernel that is tuned and compared, and in a table of measurements."""
    kernel = tmp_path / f"{EVIL.replace('/', '')}.pto"
    text = (PROGRAMS / "tuning" / "f32_to_bf16_tiles.pto").read_text()
    kernel.write_text(text)
    plain = (PROGRAMS / "f32_to_f16.pto").read_text()
    first, other = tmp_path / f"a{kernel.name}", tmp_path / "other.pto"
    first.write_text(plain)
    other.write_text(plain.replace("RINT", "TRUNC").replace("pto.tload", f"// {EVIL}\n    pto.tload"))
    table = tmp_path / "mine.csv"
    table.write_text(f"src,dst,rows,cols,measured_cycles,case\nf32,f16,4,64,33,{EVIL.replace(',', '')}\n")
    for words in (
        ["tune", str(kernel), "--tile", "R in 8,16", "--tile", "C in 128"],
        ["diff", str(first), str(other), "--timing-only"],
        ["accuracy", "--target", "a2a3", "--data", str(table)],
    ):
        tab, _ = show(opened, words, tmp_path)
        if words[0] == "diff":
            assert tab.locator(".change .minus").count() == tab.locator(".change .plus").count() == 1
        if words[0] == "accuracy":
            chart(opened).focus()
            tab.keyboard.press("ArrowRight")
        shown = tab.evaluate("() => document.body.innerText")
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        if words[0] != "accuracy":
            assert "<img src=x onerror=alert(1)>" in tab.locator("h1").text_content()
        quiet(opened, tmp_path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_narrow_screens_in_both_themes(scheme: str, browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, color_scheme=scheme)
    opened.tab.set_viewport_size({"width": 400, "height": 800})
    for words in (
        ["accuracy", "--target", "a2a3"],
        ["diff", "programs/f32_to_f16.pto", "--timing-only", "--target-b", "a5"],
    ):
        tab, _ = show(opened, words, tmp_path)
        assert tab.evaluate("() => document.documentElement.scrollWidth") <= 400
        quiet(opened, tmp_path)
    opened.tab.close()
