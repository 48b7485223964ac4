"""Results in notebooks: HTML that is well formed and stays text, and the tutorial."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from notebook_programs import PROGRAMS, TILES

import castsim
from castsim.reports.notebooks.markup import Mark, cause_colour, lanes
from castsim.timing import Cause


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda path: path.stem)
def result(request):
    return castsim.run(request.param, timing_only=True)


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
        element = parsed(each._repr_html_())
        assert not {"script", "style", "link", "img", "iframe", "a"} & {
            node.tag.split("}")[-1] for node in element.iter()
        }
        assert not [
            name for node in element.iter() for name in node.attrib if name in ("href", "src") or name[:2] == "on"
        ]
        assert len(repr(each)) < 200 and "\n" not in repr(each)


def test_what_html_tells_is_the_result(result):
    element = parsed(result._repr_html_())
    words = " ".join(element.itertext())
    assert f"{result.cycles:,} cycles" in words
    bars = [node for node in element.iter() if node.get("aria-label") == "cycles by cause"]
    assert len(bars) == len(result.pipes)
    for bar, pipe in zip(bars, result.pipes.values(), strict=True):
        parts = [node for node in bar.iter() if node.tag.endswith("rect")]
        assert [part.get("fill") for part in parts] == [
            cause_colour(cause) for cause in Cause if pipe.causes.get(cause)
        ]
        assert sum(float(part.get("width")) for part in parts) == pytest.approx(320, abs=0.1)


def test_a_hostile_program_stays_text(tmp_path):
    name = "<b>&'x.pto"
    path = tmp_path / name
    path.write_text(TILES.read_text())
    result = castsim.run(path, timing_only=True)
    html = result._repr_html_()
    assert "<b>" not in html
    assert f"{path} @" in " ".join(parsed(html).itertext())
    result.timeline()._repr_png_()


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
    """Whatever is joined, every cycle that was covered still is, to the pixel."""
    rng = np.random.default_rng(3)
    starts = np.sort(rng.integers(0, 100_000, 5_000)).tolist()
    marks = [Mark("V", start, start + int(rng.integers(1, 40)), "#000000", "m") for start in starts]
    drawn = [
        (float(node.get("x")), float(node.get("x")) + float(node.get("width")))
        for node in parsed(lanes(["V"], marks, 0, 100_100)).iter()
        if node.tag.endswith("rect")
    ]
    assert len(drawn) < 1_500
    scale = (640 - 64) / 100_100
    for mark in marks:
        left = 64 + mark.start * scale
        assert any(a - 1e-2 <= left <= b + 0.5 for a, b in drawn)


# ------------------------------------------------------------------------------------------------------------ tutorial


def test_the_notebook_of_the_tutorial_gives_what_it_shows():
    """Executed from its first cell in an empty folder; `python tests/notebook_page.py` writes it anew."""
    notebook_page = pytest.importorskip("notebook_page", reason="needs nbclient and nbformat", exc_type=ImportError)
    stored, found = notebook_page.read(), notebook_page.executed(notebook_page.read())
    for old, new in zip(stored.cells, found.cells, strict=True):
        for kept, made in zip(old.get("outputs", ()), new.get("outputs", ()), strict=True):
            assert kept.output_type == made.output_type
            assert kept.get("text") == made.get("text")
            for form, text in made.get("data", {}).items():
                assert form in kept.data, "run python tests/notebook_page.py"
                if form == "image/png":
                    assert len(text) > 5_000  # a picture; its bytes are those of a version of matplotlib
                elif form == "text/html":
                    assert notebook_page.words_of(text) == notebook_page.words_of(kept.data[form])
                else:
                    assert text == kept.data[form]
    assert sum("image/png" in each.get("data", {}) for cell in found.cells for each in cell.get("outputs", ())) == 5
