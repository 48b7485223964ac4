"""The comparison of A2/A3 and A5 against the table of the published `pto.tcvt` page, cell by cell."""

from __future__ import annotations

import json

import pytest

from castsim.__main__ import main
from castsim.isa.formats import FORMATS, format_named

# Source, A2A3 destinations, A5 destinations, difference: as published.
PUBLISHED = """
FP32 | FP16, FP32 (round-only), BF16, I16, I32, I64 | FP32, FP16, BF16, I16, I32, I64, FP8_E4M3, FP8_E5M2, H8 | A5 adds FP8/H8 targets
FP16 | FP32, I32, I16, I8, U8, S4 (int4b_t) | FP32, I32, I16, I8, U8, H8 | A2A3 has S4 path; A5 has H8 path
BF16 | FP32, I32 | FP32, I32, FP16, FP4_E1M2X2, FP4_E2M1X2 | A5 adds FP16/FP4 targets
I16 | FP16, FP32 | U8, FP16, FP32, U32, I32 | A5 adds U8/U32/I32 targets
I32 | FP32, I16, I64, FP16 (deq path) | FP32, I16, U16, I64, U8 | A2A3 supports I32 -> FP16 (half, deq); A5 does not
I64 | FP32, I32 | FP32, I32 | Same
U8 | FP16 | FP16, U16 | A5 adds U16 target
I8 | FP16 | FP16, I16, I32 | A5 adds I16/I32 targets
S4 (int4b_t) | FP16 | N/A | A2A3-only
U32 | N/A | U8, U16, I16 | A5-only source type
FP8_E4M3 | N/A | FP32 | A5-only source type
FP8_E5M2 | N/A | FP32 | A5-only source type
H8 | N/A | FP32 | A5-only source type
FP4_E1M2X2 | N/A | BF16 | A5-only source type
FP4_E2M1X2 | N/A | BF16 | A5-only source type
"""  # noqa: E501 - the page's own rows

# What the words of the last column claim: types that only A2/A3 has, types that only A5 has.
CLAIMS = {
    "A5 adds FP8/H8 targets": (set(), {"e4m3fn", "e5m2", "hif8"}),
    "A2A3 has S4 path; A5 has H8 path": ({"i4"}, {"hif8"}),
    "A5 adds FP16/FP4 targets": (set(), {"f16", "e1m2", "e2m1"}),
    "A5 adds U8/U32/I32 targets": (set(), {"u8", "u32", "i32"}),
    # The page leaves out that A5 also adds U16 and U8 here; its own columns say so.
    "A2A3 supports I32 -> FP16 (half, deq); A5 does not": ({"f16"}, {"u16", "u8"}),
    "Same": (set(), set()),
    "A5 adds U16 target": (set(), {"u16"}),
    "A5 adds I16/I32 targets": (set(), {"i16", "i32"}),
}


def names(cell):
    return set() if cell == "N/A" else {format_named(part.split(" (")[0].strip()).name for part in cell.split(",")}


@pytest.fixture(scope="module")
def rows():
    return [[cell.strip() for cell in line.split(" | ")] for line in PUBLISHED.strip().splitlines()]


@pytest.fixture
def generated(capsys):
    assert main(["targets", "--diff", "a2a3", "a5", "--json", "-"]) == 0
    return {row["src"]: row for row in json.loads(capsys.readouterr().out)["rows"]}


def test_every_cell_is_the_published_one(rows, generated):
    assert len(generated) == len(rows) == 15
    for src, a2a3, a5, difference in rows:
        row = generated[names(src).pop()]
        assert set(row["first"]) == names(a2a3)
        assert set(row["second"]) == names(a5)
        if difference == "A2A3-only":
            assert row["difference"] == "a2a3 only"
        elif difference == "A5-only source type":
            assert row["difference"] == "a5 only"
        else:
            assert claimed(row["difference"]) == CLAIMS[difference]


def claimed(words):
    """Take "a2a3 adds x; a5 adds y, z" apart."""
    found = {"a2a3": set(), "a5": set()}
    for part in words.split("; ") if words != "same" else ():
        name, types = part.split(" adds ")
        found[name] = set(types.split(", "))
    return found["a2a3"], found["a5"]


def test_text_lists_every_source_once(capsys):
    assert main(["targets", "--diff", "a2a3", "a5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.split() and line.split()[0] in FORMATS].count("f32") >= 1


@pytest.mark.parametrize(
    ("line", "words"),
    [("targets --diff a2a3 a6", "unknown target"), ("targets a5 --diff a2a3 a5", "takes nothing else")],
)
def test_wrong_input(line, words, capsys):
    assert main(line.split()) == 2
    assert words in capsys.readouterr().err


def test_changed_facts_are_shown(tmp_path, capsys):
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'base = "a5"\nname = "mine"\n[timing.store_barrier]\ncycles = 99\nsource = "a guess"\nstatus = "assumed"\n'
    )
    assert main(["targets", "--diff", "a5", str(mine), "--json", "-"]) == 0
    (fact,) = json.loads(capsys.readouterr().out)["facts"]
    assert (fact["name"], fact["second"]["cycles"]) == ("timing.store_barrier", 99)
    assert fact["first"]["cycles"] != 99
    assert main(["targets", "--diff", "a5", str(mine)]) == 0
    assert "timing.store_barrier" in capsys.readouterr().out
    assert main(["targets", "--diff", "a5", "a5"]) == 0
    assert "facts: the same" in capsys.readouterr().out
