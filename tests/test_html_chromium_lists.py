"""Pages of lowered casts, conformance, accuracy, tuning and differences in a real Chromium."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pytest
from chromium import NEEDED, Opened
from expected_files import PROGRAMS, ROOT
from html_pages import run_page

from castsim.__main__ import main

pytestmark = NEEDED
CONFORM = "conform --spec tosa --target a5 a2a3 --src i32 --dst f32"
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'\x1b[2J\u202e"


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


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
        errors = [100 * abs(row["simulated_cycles"] / row["measured_cycles"] - 1) for row in rows]
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
        signed = [100 * (row["simulated_cycles"] - row["measured_cycles"]) / row["measured_cycles"] for row in rows]
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
