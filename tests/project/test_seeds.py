"""The page that goes through the documents castsim started from, and the functions of TOSA that it names."""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from kit.command_output import err_of
from kit.paths import ROOT
from oracle_tosa import apply_scale

from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError
from castsim.tools.graphs import tosa_operators as tosa

PAGE = (ROOT / "docs" / "seeds.csv").read_text(encoding="utf-8")
ROWS = list(csv.DictReader(PAGE.splitlines()))
COMMANDS = list(dict.fromkeys(re.findall(r"`castsim ([^`]+)`", PAGE)))
TESTS = list(dict.fromkeys(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", PAGE)))


def test_every_statement_is_shown() -> None:
    assert len(ROWS) > 70
    for row in ROWS:
        assert row["statement"] and re.search(r"`castsim |`tests/", row["shown by"]), row
    assert len({row["document"] for row in ROWS}) == 5


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_the_page(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(line)) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", TESTS)
def test_tests_of_the_page(name: str) -> None:
    path, _, test = name.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert f"def {test or 'test_'}" in text


def test_the_size_that_serves_all_casts(tmp_path: Path) -> None:
    """The formulas of the tcvt page, written out."""
    for rows, cols, stride in ((4, 200, 256), (300, 100, 128), (1, 64, 64), (7, 40, 64), (2, 0, 64)):
        path = tmp_path / "r.json"
        line = f"scratch all --rows {rows} --cols {cols} --row-stride {stride} --quiet --json {path}"
        assert main(line.split()) == 0
        held = json.loads(path.read_text())
        head = 4 * 64 * min(cols // 64, 255)
        tail = 32 * ((min(rows, 255) - 1) * stride // 8 + math.ceil(cols % 64 / 8)) if cols % 64 else 0
        half = min(cols, 64)
        sixteen = 32 * math.ceil(half / 8)
        eight = max(sixteen, 128 + 32 * math.ceil(half / 16)) if cols else 0
        by_pair = {(each["src"], each["dst"]): each["formula_bytes"] for each in held["casts"]}
        assert by_pair == {("f32", "i16"): max(head, tail), ("f16", "i16"): sixteen, ("f16", "i8"): eight}
        assert held["formula_bytes"] == max(head, tail, eight)


def test_scales_are_those_of_the_reference_model() -> None:
    """Doubling the rounding moves thresholds: the model's answers at -12, -4, 3, 11 (docs/reference/semantics.md)."""
    values = range(-16, 17)
    single = [tosa.apply_scale_32(value, 1 << 30, 33) for value in values]
    double = [tosa.apply_scale_32(value, 1 << 30, 33, double_round=True) for value in values]
    assert [value for value, one, two in zip(values, single, double, strict=True) if one != two] == [-12, -4, 3, 11]
    assert [double[16 + value] for value in (-12, -4, 3, 11)] == [-2, -1, 1, 2]
    generator = np.random.default_rng(0)
    for _ in range(2000):
        shift = int(generator.integers(2, 63))
        value = int(generator.integers(-(1 << min(shift - 1, 31)), 1 << min(shift - 1, 31)))
        multiplier = int(generator.integers(0, 1 << 31))
        exact = math.floor(Fraction(value * multiplier, 1 << shift) + Fraction(1, 2))
        assert tosa.apply_scale_32(value, multiplier, shift) == exact
    assert tosa.apply_scale_16(-(1 << 47), 1, 40) == -128


@pytest.mark.parametrize(
    "call",
    [
        lambda: tosa.apply_scale_32(1, -1, 30),
        lambda: tosa.apply_scale_32(1, 1, 63),
        lambda: tosa.apply_scale_32(1, 1, 1),
        lambda: tosa.apply_scale_32(-(1 << 31), 1 << 30, 31),
        lambda: tosa.apply_scale_16(1 << 47, 1, 30),
        lambda: tosa.apply_scale_16(1 << 46, 1 << 14, 14),
        lambda: tosa.apply_scale_16(1, 1 << 15, 14),
        lambda: tosa.reciprocal_scale(0),
        lambda: tosa.reciprocal_scale(1 << 32),
        lambda: tosa.reciprocal_scale((1 << 31) + 1),
        lambda: tosa.reciprocal_scale((1 << 30) + 1),
        lambda: tosa.apply_lookup_s(np.resize(np.array([-32768, 32767], np.int16), 513), 0),
    ],
)
def test_what_is_unpredictable_is_refused(call) -> None:
    with pytest.raises(IllegalError, match="unpredictable"):
        call()


def test_reciprocals_round_as_quotients() -> None:
    """The multiplier is normalised and the scale within 2**-29 of the quotient, never below it by more."""
    for value in (1, 2, 3, 5, 7, 10, 255, 1 << 16, 1 << 31, (1 << 32) - 1):
        scale = tosa.reciprocal_scale(value)
        assert 1 << 30 <= scale.multiplier < 1 << 31
        error = Fraction(scale.multiplier, 1 << scale.shift) * value - 1
        assert abs(error) < Fraction(1, 1 << 29)
    assert tosa.reciprocal_scale(1) == ((1 << 30) + 1, 30)
    assert [tosa.apply_scale_32(number, *tosa.reciprocal_scale(3)) for number in (-3, 0, 1, 2, 3, 300)] == [
        -1, 0, 0, 1, 1, 100,
    ]  # fmt: skip


def test_lookups_interpolate() -> None:
    table = tosa.generate_lookup_table(lambda number: number * 128)
    assert (table[0], table[256], table[512]) == (-32768, 0, 32767)
    values = np.arange(-40000, 40000, 17)
    clipped = np.clip(values, -32768, 32767)
    expected = [
        int(table[(each + 32768) >> 7]) * 128
        + (int(table[((each + 32768) >> 7) + 1]) - int(table[(each + 32768) >> 7])) * (each & 127)
        for each in clipped.tolist()
    ]
    assert tosa.apply_lookup_s(table, values).tolist() == expected
    assert tosa.apply_lookup_s(table, 100).tolist() == 12800  # the identity, with seven bits more


def test_tables_of_functions() -> None:
    half = tosa.generate_lookup_table(lambda number: 64 * number)
    assert (half == 64 * np.arange(-256, 257)).all()
    clipped = tosa.generate_lookup_table(lambda number: 1000 * number)
    assert (clipped.min(), clipped.max()) == (-32768, 32767)
    by_bytes = (tosa.apply_lookup_s(half, np.arange(-128, 128) << 8) >> 15).astype(np.int8)
    assert tosa.table(np.arange(-128, 128, dtype=np.int8), by_bytes).tolist() == (np.arange(-128, 128) >> 1).tolist()


def test_the_operator_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = np.random.default_rng(2).integers(-128, 128, 256).astype(np.int8)
    values = np.random.default_rng(3).integers(-128, 128, (4, 5)).astype(np.int8)
    assert tosa.table(values, entries).tolist() == [
        [int(entries[each + 128]) for each in row] for row in values.tolist()
    ]
    wide = tosa.generate_lookup_table(lambda number: number * number // 4)
    found = tosa.table(np.array([-32768, 0, 127, 32767], np.int16), wide)
    assert found.dtype == np.int32
    assert found.tolist() == tosa.apply_lookup_s(wide, np.array([-32768, 0, 127, 32767])).tolist()
    for given, table in ((values.astype(np.int32), entries), (values, wide), (values, entries[:-1])):
        with pytest.raises(ReadError):
            tosa.table(given, table)
    np.save(tmp_path / "t.npy", entries)
    assert main(["tosa", "TABLE", "-128", "5", "--table", str(tmp_path / "t.npy")]) == 0
    assert capsys.readouterr().out.split("= ")[1:] == [f"{entries[0]}\nTABLE(5) ", f"{entries[133]}\n"]


@pytest.mark.parametrize("line", ["string f32 0x10", "string i8 2.718", "string i8 300", "string f32 Hello"])
def test_undefined_text_is_refused(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "error" in err_of(capsys, ["cast", *line.split()])


def test_text_and_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    assert main(["cast", "string", "f32", "1e-5", "+INF", "--quiet", "--json", str(path)]) == 0
    results = json.loads(path.read_text())["results"]
    assert [each["output_bits"] for each in results] == [f"0x{np.float32(1e-5).view(np.uint32):08x}", "0x7f800000"]
    assert main(["cast", "f32", "string", "314.15926"]) == 0
    assert "314.15927" in capsys.readouterr().out  # the fewest digits that lead back to the f32
    assert main(["cast", "string", "f32", "1", "--target", "a5"]) == 2
    assert "--target does not apply to casts from or to text" in capsys.readouterr().err
    assert apply_scale(3, 1 << 30, 33, double=False) == tosa.apply_scale_32(3, 1 << 30, 33)
