"""Results in notebooks: frames against hand counts and the other engine, figures bar by bar."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from traceback import extract_tb
from xml.etree import ElementTree

import numpy as np
import pandas
import polars
import pytest
from IPython.core.interactiveshell import InteractiveShell
from kit.paths import ROOT
from matplotlib.colors import to_hex

import castsim
from castsim.__main__ import main
from castsim.execution.timing import Cause
from castsim.isa.errors import EngineError, LimitError, ReadError
from castsim.reports.pages.blocks import Lanes, Packed, Tone, notebook_html
from castsim.reports.pages.run_timeline import interval_columns
from castsim.targets.csv_tables import SHIPPED
from castsim.tools.notebooks import presentation, runs
from castsim.tools.notebooks.presentation import cause_colour
from castsim.tools.notebooks.runs import shown_window

TILES = ROOT / "programs/f32_to_f16.pto"
LOOPED = ROOT / "programs/f32_to_f16_pipelined.pto"
PROGRAMS = (
    TILES, LOOPED, ROOT / "programs/a5_f32_to_e4m3fn_padded.pto", ROOT / "programs/tpc_f32_i16_quantise_gaudi2.tpc",
)  # fmt: skip
LIBRARIES = ("pandas", "polars")
CAUSES = {cause.replace(" ", "_") for cause in Cause}
WORDS = {
    "text", "pipe", "name", "source", "cause", "reason", "bound_by", "instruction", "src", "dst", "options", "target",
    "file", "operation", "path", "convention", "attributes", "way", "verdict", "instructions", "method", "answer",
}  # fmt: skip


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda path: path.stem)
def result(request):
    return castsim.run(request.param, timing_only=True)


def columns(frame):
    return {name: frame[name].to_list() for name in frame.columns}


# ------------------------------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_causes_of_every_pipe_add_up_to_the_run(result, library):
    frame = columns(result.to_frame("causes", library=library))
    totals, shares = {}, {}
    for pipe, cycles, share in zip(frame["pipe"], frame["cycles"], frame["share"], strict=True):
        totals[pipe] = totals.get(pipe, 0) + cycles
        shares[pipe] = shares.get(pipe, 0) + share
    assert totals == dict.fromkeys(result.pipes, result.cycles)
    assert all(share == pytest.approx(1) for share in shares.values())
    assert min(frame["cycles"]) > 0
    told = {
        (pipe, cause.replace(" ", "_")): n for pipe, each in result.pipes.items() for cause, n in each.causes.items()
    }
    assert {(p, c): n for p, c, n in zip(frame["pipe"], frame["cause"], frame["cycles"], strict=True)} == {
        key: cycles for key, cycles in told.items() if cycles
    }


def test_operations_are_those_of_the_event_engine(result):
    frame = columns(result.to_frame("operations", library="polars"))
    lines = len(Path(result.loaded.file).read_text().splitlines())
    other = castsim.run(result.loaded.file, timing_only=True, engine="event", skip=False)
    assert len(frame["start"]) == len(other.timing.operations) == sum(1 for _ in result.timing.operations)
    for row, each in enumerate(other.timing.operations):
        found = {name: values[row] for name, values in frame.items()}
        assert (found["operation"], found["pipe"], found["name"]) == (row, each.pipe, each.name)
        assert (found["start"], found["end"]) == (each.start, each.end)
        causes = {cause.replace(" ", "_"): cycles for cause, cycles in each.causes.items() if cycles}
        assert {name: found[name] for name in found if name in CAUSES and found[name]} == causes
        assert found["pipe_cycles"] == sum(causes.values())
        assert 0 <= found["line"] <= lines
        source = result.loaded.source
        assert 1 <= found["line"] <= source.count("\n") + 1 or found["line"] == 0 or not source


def test_rows_are_counted_by_hand():
    """The loop of the program runs 16 times over two loads, two casts and two stores."""
    result = castsim.run(LOOPED, timing_only=True)
    frame = result.to_frame("lines", library="pandas")
    text = LOOPED.read_text().splitlines()
    moved = frame[frame["text"].str.startswith(("tload", "tcvt", "tstore"))]
    assert moved["executions"].to_list() == [16] * 6
    named = [text[line - 1].split()[0] for line in moved["line"]]
    assert named == ["pto.tload"] * 2 + ["pto.tcvt"] * 2 + ["pto.tstore"] * 2
    assert [source.split()[0] for source in moved["source"]] == named
    flags = frame[frame["text"].str.contains("_flag")]
    inside = flags[(flags["line"] > 25) & (flags["executions"] == 16)]
    outside = 8  # 4 before, 4 behind
    assert len(inside) == sum("pto.set_flag" in line or "pto.wait_flag" in line for line in text) - outside
    operations = result.to_frame(library="pandas")
    loads = operations[operations["text"].str.startswith("tload")]
    assert len(loads) == 32
    assert loads["pipe_cycles"].sum() == moved[moved["text"].str.startswith("tload")]["pipe_cycles"].sum()
    assert loads["end"].max() == moved[moved["pipe"] == "MTE2"]["last_end"].max()


@pytest.mark.parametrize("library", LIBRARIES)
def test_numbers_are_numbers_and_words_are_words(library):
    kinds = [
        (castsim.run(TILES, timing_only=True), ("operations", "causes", "lines")),
        (castsim.estimate("f32", "f16", 4, 64, target="a2a3"), ("causes",)),
        (castsim.estimate("f32", "f16", 16, [64, 128], target="a2a3"), ("shapes",)),
        (castsim.estimate("f32", "f16", 16, [64, 1 << 20], target="a2a3"), ("shapes",)),
        (castsim.lower("f32", "i8", target="a2a3", spec="tosa"), ("steps",)),
        (castsim.lower("f32", "e4m3fn", target="a2a3"), ("steps",)),
        (castsim.conform("tosa", ["a2a3"], src="f16", dst="i8"), ("cells",)),
        (castsim.accuracy("a2a3"), ("rows", "curves")),
    ]
    for each, tables in kinds:
        for name in tables:
            frame = each.to_frame(name, library=library)
            types = frame.dtypes if library == "pandas" else frame.schema.values()
            for column, found in zip(frame.columns, types, strict=True):
                word = column in WORDS and not (column == "operation" and name == "operations")
                number = ("int64", "float64", "bool") if library == "pandas" else ("Int64", "Float64", "Boolean")
                assert str(found) in (("string", "String") if word else number), (name, column, found)
        assert each.to_frame(library=library).equals(each.to_frame(tables[0], library=library))


def test_estimates_are_those_of_single_calls():
    cols = np.array([[64, 96], [1 << 20, 128]])
    frame = castsim.estimate("f32", "f16", 8, cols, target="a2a3").to_frame(library="polars")
    assert frame["shape"].to_list() == [0, 1, 2, 3]
    for row, each in zip(frame.iter_rows(named=True), cols.ravel().tolist(), strict=True):
        if each == 1 << 20:
            with pytest.raises(castsim.TileError) as caught:
                castsim.estimate("f32", "f16", 8, each, target="a2a3")
            assert (row["cycles"], row["bound_by"]) == (None, None)
            assert row["reason"] in str(caught.value)
            continue
        single = castsim.estimate("f32", "f16", 8, each, target="a2a3")
        bound = single.bound_by.replace(" ", "_")
        assert (row["cycles"], row["bound_by"], row["reason"]) == (single.cycles, bound, None)
        known = single.to_frame(library="polars")
        assert known["cycles"].sum() == single.cycles
        assert all(row[cause] == cycles for cause, cycles in zip(known["cause"], known["cycles"], strict=True))


def test_accuracy_is_that_of_the_command_and_of_the_file(capsys):
    found = castsim.accuracy("a2a3")
    rows, curves = (found.to_frame(name, library="pandas") for name in ("rows", "curves"))
    assert main(["accuracy", "--target", "a2a3", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(rows) == len(told["rows"]) == curves["rows"].sum()
    assert rows["simulated_cycles"].to_list() == [row["simulated_cycles"] for row in told["rows"]]
    for row in rows.itertuples():
        cells = (SHIPPED / row.file).read_text(encoding="utf-8-sig").splitlines()[row.line - 1].split(",")
        assert str(row.measured_cycles) in [cell.strip() for cell in cells]
        end = row.measured_cycles if pandas.isna(row.measured_high) else row.measured_high
        nearest = min(max(row.simulated_cycles, row.measured_cycles), end)
        assert row.error_percent == pytest.approx(100 * (row.simulated_cycles / nearest - 1))
    assert (
        rows["error_percent"].abs().mean()
        == pytest.approx(found.simulation.mean)
        == pytest.approx(told["mean"], abs=1e-4)
    )
    keys = ["operation", "src", "dst", "path"]
    grouped = rows.assign(error=rows["error_percent"].abs()).groupby(keys)["error"].agg(["mean", "median", "max"])
    for curve in curves.itertuples():
        mean, median, most = grouped.loc[(curve.operation, curve.src, curve.dst, curve.path)]
        if (curves[keys] == [curve.operation, curve.src, curve.dst, curve.path]).all(axis=1).sum() == 1:
            assert (curve.mean_percent, curve.median_percent, curve.max_percent) == pytest.approx((mean, median, most))


def test_accuracy_of_ones_own_table(tmp_path):
    own = tmp_path / "mine.csv"
    own.write_text("src,dst,rows,cols,measured_cycles\nf32,f16,4,64,50\n")
    found = castsim.accuracy("a2a3", data=own)
    simulated = castsim.estimate("f32", "f16", 4, 64, target="a2a3").cycles
    row = found.to_frame(library="polars").row(0, named=True)
    assert (row["simulated_cycles"], row["measured_cycles"], row["line"]) == (simulated, 50, 2)
    assert row["public_model_cycles"] is None
    with pytest.raises(ReadError, match="no measurements ship with"):
        castsim.accuracy("goya")


def test_a_matrix_has_a_row_per_cell():
    found = castsim.conform("tosa", ["a2a3", "a5"], src="f16", dst="i8")
    frame = found.to_frame(library="pandas")
    assert len(frame) == len(found.casts) * 2
    assert frame["target"].to_list() == ["a2a3", "a5"] * len(found.casts)
    for row in frame.itertuples():
        answer = castsim.lower(row.src, row.dst, target=row.target, spec="tosa")
        assert (row.way, row.verdict) == (answer.kind.value, answer.plan.verdict.value)
        assert row.instructions == ", ".join(answer.to_frame(library="polars")["instruction"])
        assert row.cycles_per_element == pytest.approx(answer.plan.cost.cycles_per_element)


# ------------------------------------------------------------------------------------------------------------ refusals


def test_wrong_tables_and_libraries_are_refused():
    found = castsim.estimate("f32", "f16", 4, 64, target="a2a3")
    with pytest.raises(ReadError, match="no table 'lines'") as caught:
        found.to_frame("lines")
    assert tuple(caught.value.legal) == ("causes",)
    with pytest.raises(ReadError, match="unknown data-frame library 'arrow'") as caught:
        found.to_frame(library="arrow")
    assert tuple(caught.value.legal) == LIBRARIES


@pytest.mark.parametrize(
    ("missing", "asked", "expected"),
    [
        (("pandas", "polars"), None, "a frame needs the package pandas or polars"),
        (("pandas",), "pandas", "a frame needs the package pandas"), (("polars",), "polars", "pip install polars"),
        (("pandas",), None, polars), (("polars",), None, pandas), ((), None, pandas),
    ],
)  # fmt: skip
def test_the_library_that_is_installed_is_taken(monkeypatch, missing, asked, expected):
    monkeypatch.setattr(presentation, "installed", lambda name: name not in missing)
    found = castsim.estimate("f32", "f16", 4, 64, target="a2a3")
    if isinstance(expected, str):
        with pytest.raises(ReadError) as caught:
            found.to_frame(library=asked)
        assert expected in str(caught.value)
        assert "pip install" in str(caught.value)
    else:
        assert type(found.to_frame(library=asked)) is expected.DataFrame


def test_without_matplotlib_the_extra_is_named():
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import castsim\n"
        "found = castsim.estimate('f32', 'f16', 4, 64, target='a2a3')\n"
        "found._repr_html_()\n"
        "try: found.plot()\n"
        "except castsim.ReadError as error: print(error)\n"
        "print(sorted({'pandas', 'polars', 'matplotlib.figure', 'IPython'} & {*sys.modules}))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "a drawing needs the package matplotlib" in shown
    assert "[notebook]" in shown
    assert shown.splitlines()[-1] == "[]"  # nor is anything else loaded for HTML


def test_too_many_operations_for_a_frame(monkeypatch):
    monkeypatch.setattr(runs, "MOST_ROWS", 10)
    with pytest.raises(LimitError, match="operations exceed the limit of a data frame, 10"):
        castsim.run(LOOPED, timing_only=True).to_frame()


def test_runs_without_cycles():
    result = untimed()
    for ask in (result.to_frame, result.plot, result.timeline, lambda: result.to_frame("lines")):
        with pytest.raises(EngineError):
            ask()
    assert "no cycles" in result._repr_html_()
    assert "no cycles" in repr(result)


def untimed():
    """A result whose cycles are not modelled, as `Result` says of one."""
    result = castsim.run(TILES, timing_only=True)
    return replace(result, loaded=replace(result.loaded, untimed="its cycles are not modelled"))


# ------------------------------------------------------------------------------------------------------------- figures


def test_bars_are_the_causes(result):
    figure = result.plot()
    (axes,) = figure.axes
    found = {}
    for bar in axes.patches:
        if bar.get_width():
            pipe = [*result.pipes][round(bar.get_y() + bar.get_height() / 2)]
            found[pipe, to_hex(bar.get_facecolor())] = bar.get_width()
    expected = {
        (pipe, cause_colour(cause)): cycles
        for pipe, each in result.pipes.items()
        for cause, cycles in each.causes.items()
        if cycles
    }
    assert found == expected
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [*result.pipes]
    assert figure._repr_png_().startswith(b"\x89PNG")


def drawn(figure):
    """The spans of a timeline as (row, start, end)."""
    (axes,) = figure.axes
    boxes = [path.get_extents() for each in axes.collections for path in each.get_paths()]
    return sorted((round((box.y0 + box.y1) / 2), box.x0, box.x1) for box in boxes)


def test_a_timeline_has_a_bar_per_operation_that_works(result):
    figure = result.timeline()
    rows = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    frame = result.to_frame("operations", library="polars")
    waits = [name for name in ("flag_wait", "barrier") if name in frame.columns]
    own = [
        c for c in frame.columns if c in {str(x).replace(" ", "_") for x in Cause} - {"empty", "operand_wait", *waits}
    ]
    expected = [
        (rows.index(row["pipe"]), row["start"], row["end"])
        for row in frame.iter_rows(named=True)
        if row["end"] > row["start"] and any(row[name] for name in own) and not any(row[name] for name in waits)
    ]
    found = drawn(figure)
    assert [span for span in found if span in set(expected)] == sorted(expected)
    assert all(end <= result.cycles for _, _, end in found)


def test_a_window_shows_what_reaches_into_it():
    result = castsim.run(LOOPED, timing_only=True)
    start, end = 500, 900
    whole = shown_window(result, 0, None, 10**6)
    part = shown_window(result, start, end, 10**6)
    assert set(part.operations) == {each for each in whole.operations if each.start < end and each.end > start}
    assert result.timeline(start, end).axes[0].get_xlim() == (start, end)
    few = shown_window(result, 0, None, 7)
    assert few.operations == whole.operations[:7]
    assert few.cut == f"the first 7 operations drawn, of {len(result.timing.operations):,} in all"
    assert few.end == max(each.end for each in few.operations)
    assert shown_window(result, 0, 600, 7).end == 600
    assert whole.cut == ""


@pytest.mark.parametrize("window", [(-1, 5), (5, 5), (6, 5), (0, 10**9), (10**9, None)])
def test_windows_outside_the_run_are_refused(window):
    result = castsim.run(TILES, timing_only=True)
    with pytest.raises(ReadError, match="the run takes") as caught:
        result.timeline(*window)
    assert tuple(caught.value.legal) == (f"0 to {result.cycles}",)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('castsim.cast([1.0], "f32", "f17")', "ReadError: unknown format 'f17'\n  legal: f16"),
        ('castsim.estimate("f32", "f16", 4, 64, target="a22")', "ReadError: unknown target 'a22'\n  legal: a2a3"),
        (f"castsim.run({str(TILES)!r}, timing_only=True, max_cycles=9)", "cycle limit of 9 reached"),
    ],
)
def test_notebooks_show_errors_without_frames_of_castsim(call, message):
    shell = InteractiveShell()
    shell.history_manager.enabled = False
    shown = StringIO()
    with redirect_stdout(shown):
        error = shell.run_cell(f"import castsim\ndef mine():\n    return {call}\nmine()").error_in_exec
    assert isinstance(error, ReadError | EngineError)
    assert message in shown.getvalue()
    assert [line for line in shown.getvalue().split("\n") if ".py" in line] == []
    assert shown.getvalue().count("  File ") == 2  # the cell, and its function
    assert any(
        "castsim" in frame.filename or "simulator" in frame.filename for frame in extract_tb(error.__traceback__)
    )


def test_curves_are_the_estimates():
    found = castsim.estimate("f32", "f16", [[4], [16]], [64, 128, 1 << 20], target="a2a3")
    lines = found.plot().axes[0].lines
    assert len(lines) == 2
    for line, cycles in zip(lines, found.cycles, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), cycles)
    axes = found.plot().axes[0]
    assert axes.get_xlabel() == "cols, elements"
    assert [line.get_label() for line in axes.lines] == ["rows 4", "rows 16"]
    assert {tuple(line.get_xdata()) for line in axes.lines} == {(64, 128, 1 << 20)}
    together = castsim.estimate("f32", "f16", [4, 8], [64, 128], target="a2a3")
    assert together.plot().axes[0].get_xlabel() == "index of the shape (rows, cols)"
    one = castsim.estimate("f32", "f16", 4, 64, target="a2a3")
    assert sum(bar.get_width() for bar in one.plot().axes[0].patches) == one.cycles


def test_points_are_the_measurements():
    found = castsim.accuracy("a2a3")
    points, errors = found.plot().axes
    own = next(line for line in points.lines if line.get_label() == "simulation")
    rows = found.to_frame(library="pandas")
    assert [*own.get_xdata()] == rows["measured_cycles"].to_list()
    assert [*own.get_ydata()] == rows["simulated_cycles"].to_list()
    peers = int(rows["public_model_cycles"].notna().sum())
    assert sum(bar.get_height() for bar in errors.patches) == len(rows) + peers


def test_squares_are_the_verdicts():
    found = castsim.conform("tosa", ["a2a3", "a5"], src="f16", dst="e5m2")
    (axes,) = found.plot().axes
    grid = np.asarray(axes.images[0].get_array())
    order = ["exact", "conforms", "differs"]
    assert [order[number] for number in grid.ravel()] == [each.verdict.value for each in found.entries]


# ---------------------------------------------------------------------------------------------------------------- HTML

HOSTILE = "x\"'><script>alert(1)</script>&amp;\x1b[2J\u202eevil $\\frac$"


def parsed(html):
    """The element that HTML is; raises if it is not well formed."""
    return ElementTree.fromstring(html)


def test_html_is_one_well_formed_element():
    results = [
        *(castsim.run(path, timing_only=True) for path in PROGRAMS),
        castsim.run(TILES, inputs={"src": "zeros"}),
        castsim.estimate("f32", "f16", 4, 64, target="a2a3"),
        castsim.estimate("f32", "f16", 16, [64, 1 << 20, 128], target="a2a3"),
        castsim.lower("f32", "i8", target="a2a3", spec="tosa"),
        castsim.lower("f32", "e4m3fn", target="a2a3"),
        castsim.lower("f32", "i8", target="a2a3", spec="tosa", via=["f16:RINT"]),
        castsim.conform("tosa", ["a2a3"], src="f16", dst="i8"),
        castsim.accuracy("a2a3"),
    ]
    for each in results:
        nodes = [*parsed(each._repr_html_()).iter()]
        assert not {"script", "style", "link", "img", "iframe", "a"} & {node.tag.split("}")[-1] for node in nodes}
        assert not [name for node in nodes for name in node.attrib if name in ("href", "src") or name[:2] == "on"]
        assert len(repr(each)) < 200 and "\n" not in repr(each)


def test_what_html_tells_is_the_result(result):
    element = parsed(result._repr_html_())
    words = " ".join(element.itertext())
    assert f"{result.cycles:,} cycles" in words
    bars = [node for node in element.iter() if node.get("aria-label") == "Cycles of each pipe by cause"]
    assert len(bars) == len(result.pipes)
    for bar, pipe in zip(bars, result.pipes.values(), strict=True):
        parts = [node for node in bar.iter() if node.tag.endswith("rect")]
        assert [part.get("fill") for part in parts] == [
            cause_colour(cause) for cause in Cause if pipe.causes.get(cause)
        ]
        assert sum(float(part.get("width")) for part in parts) == pytest.approx(320, abs=0.1)


def test_hostile_words_stay_text():
    result = castsim.run(TILES, inputs={"src": "zeros"})
    executed = result.loaded.executed
    instructions = tuple(replace(each, text=HOSTILE, mnemonic=HOSTILE) for each in executed.tree.instructions)
    tree = replace(executed.tree, instructions=instructions)
    loaded = replace(result.loaded, file=HOSTILE, entry=HOSTILE, executed=replace(executed, tree=tree))
    hostile = replace(result, loaded=loaded, outputs={HOSTILE: result.outputs["dst"]})
    html = hostile._repr_html_()
    element = parsed(html)
    assert "script" not in {node.tag for node in element.iter()}
    assert "\x1b" not in html and "\u202e" not in html
    shown = HOSTILE.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert sum(shown in text for text in element.itertext()) > 5
    hostile.timeline()._repr_png_()  # nothing in it is taken for a formula
    hostile.plot()._repr_png_()


def test_marks_join_where_nobody_sees_a_gap():
    rng = np.random.default_rng(3)
    starts = np.sort(rng.integers(0, 100_000, 5_000)).tolist()
    marks = [(start, start + int(rng.integers(1, 40)), 0, 0) for start in starts]
    lanes = Lanes("", "cycles", 0, 100_100, ("V",), (Tone("m", "#000000"),), Packed(interval_columns([marks], 0)))
    drawn = [
        (float(node.get("x")), float(node.get("x")) + float(node.get("width")))
        for node in parsed(notebook_html([lanes], "")).iter()
        if node.tag.endswith("rect")
    ]
    assert len(drawn) < 1_500
    scale = (640 - 64) / 100_100
    for start, *_ in marks:
        left = 64 + start * scale
        assert any(a - 1e-2 <= left <= b + 0.5 for a, b in drawn)


# ------------------------------------------------------------------------------------------------------------ tutorial


def test_the_notebook_of_the_tutorial_gives_what_it_shows():
    """Executed from its first cell in an empty folder; `python tests notebook_page` writes it anew."""
    notebook_page = pytest.importorskip("notebook_page", reason="needs nbclient and nbformat", exc_type=ImportError)
    stored, found = notebook_page.read(), notebook_page.executed(notebook_page.read())
    for old, new in zip(stored.cells, found.cells, strict=True):
        for kept, made in zip(old.get("outputs", ()), new.get("outputs", ()), strict=True):
            assert kept.output_type == made.output_type
            assert kept.get("text") == made.get("text")
            for form, text in made.get("data", {}).items():
                assert form in kept.data, "run python tests notebook_page"
                if form == "image/png":
                    assert len(text) > 5_000  # a picture; its bytes are those of a version of matplotlib
                elif form == "text/html":
                    assert notebook_page.words_of(text) == notebook_page.words_of(kept.data[form])
                else:
                    assert text == kept.data[form]
    assert sum("image/png" in each.get("data", {}) for cell in found.cells for each in cell.get("outputs", ())) == 5
