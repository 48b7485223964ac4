"""Published `tcvt` instances and specimen programs, run as programs on a2a3: bytes against the oracle, hand results."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import oracle
import oracle_a2a3
import pytest
from kit.pto_text import VECTORS, asked, cast_program, compact, key_value
from kit.strided_cases import hard_codes

from castsim.running.program_runs import Result, run

SPELT = {"si8": "i8", "ui8": "u8", "si16": "i16", "si32": "i32", "si64": "i64"}
"""Element types as `.pto` texts spell them, and the format names of the oracle."""


def rows() -> list[dict[str, str]]:
    """The published instances that are legal on A2/A3, whichever architecture their file names."""
    with (VECTORS / "pto_tcvt_instances_dev.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    for row in found:
        row["src"], row["dst"] = (SPELT.get(row[key], row[key]) for key in ("src_dtype", "dst_dtype"))
    legal = set(oracle_a2a3.legal_pairs())
    return [row for row in found if (row["src"], row["dst"]) in legal]


ROWS = rows()


def execute(path: Path, text: str, **inputs: np.ndarray) -> Result:
    path.write_text(text)
    return run(path, target="a2a3", inputs=inputs)


def codes_of(array: np.ndarray, name: str) -> np.ndarray:
    return np.ascontiguousarray(array).view(oracle.storage(name))


@pytest.mark.parametrize("spelling", [key_value, compact])
@pytest.mark.parametrize("number", range(len(ROWS)))
def test_instance(number: int, spelling: Callable[..., str], tmp_path: Path) -> None:
    """Load, cast, store, each whole valid region at once."""
    row = ROWS[number]
    extent = [int(row[key]) for key in ("rows", "cols", "valid_rows", "valid_cols")]
    types, valid, with_tmp = [row["src_dtype"], row["dst_dtype"]], (extent[2], extent[3]), row["line_form"] == "dps+tmp"
    codes = np.random.default_rng(number).choice(hard_codes(row["src"]), valid)
    source = codes.astype(oracle.storage(row["src"]))
    if row["src"] in oracle.INTS:
        source = source.view(row["src"].replace("i", "int").replace("u", "uint"))
    tiles, words = [spelling(kind, *extent) for kind in types], asked(row["round_mode"], row["sat"])
    tmp = spelling("i32", extent[0], extent[1]) if with_tmp else ""
    result = execute(tmp_path / "cast.pto", cast_program("a3", types, tiles, valid, [words], tmp=tmp), x=source)
    mode = "rint" if row["round_mode"] == "default" else row["round_mode"].lower()
    saturation = None if row["sat"] == "default" else row["sat"].lower()
    lane = partial(oracle_a2a3.lane, row["src"], row["dst"], mode=mode, saturation=saturation, tmp=with_tmp)
    wanted = {code: lane(code) for code in np.unique(codes).tolist()}
    assert set(result.outputs) == {"y"}
    got = codes_of(result.outputs["y"], row["dst"])
    assert got.shape == codes.shape
    assert got.tolist() == [[wanted[code] for code in line] for line in codes.tolist()]
    assert result.cycles > 0


def test_instances_are_there() -> None:
    assert len(ROWS) > 60
    assert {row["line_form"] for row in ROWS} == {"dps", "dps+tmp"}
    assert len({(row["src"], row["dst"]) for row in ROWS}) >= 15


# ------------------------------------------------------------------------------------------------------------ specimens
def test_specimen_a(tmp_path: Path) -> None:
    """f32 -> f16 with ROUND, 32 x 128; docs/reference/pto.md section 8."""
    codes = np.random.default_rng(11).choice(hard_codes("f32"), (32, 128)).astype(np.uint32)
    text = (VECTORS / "pto_specimens" / "narrow_block.pto").read_text()
    result = execute(tmp_path / "a.pto", text, **{"in": codes})
    lanes = {code: oracle_a2a3.lane("f32", "f16", code, "round", None, False) for code in np.unique(codes).tolist()}
    assert codes_of(result.outputs["out"], "f16").tolist() == [
        [lanes[code] for code in line] for line in codes.tolist()
    ]


def test_specimen_b(tmp_path: Path) -> None:
    """bf16 -> f32 in eight trips with flags: every row with 16 zero bits appended; docs/reference/pto.md section 8."""
    codes = np.arange(512 * 256, dtype=np.uint32).astype(np.uint16).reshape(512, 256)  # every bf16 code, twice
    text = (VECTORS / "pto_specimens" / "widen_rows.pto").read_text()
    result = execute(tmp_path / "b.pto", text, **{"in": codes})
    got = codes_of(result.outputs["out"], "f32")
    nan = (codes & 0x7FFF) > 0x7F80
    assert np.array_equal(got[~nan], codes[~nan].astype(np.uint32) << 16)
    assert ((got[nan] & 0x7FFFFFFF) > 0x7F800000).all()  # no source says what becomes of a NaN's payload
    # 8 trips; the outer two flags are set and waited for 9 times, the inner two 8 times.
    lines: dict[str, list[int]] = {}
    for execution in result.trace.executions:
        lines.setdefault(result.loaded.tree.instructions[execution.instruction].text, []).append(execution.start)
    counts = {text: len(starts) for text, starts in lines.items() if "flag" in text}
    assert counts == {
        f"{kind} {pipes} id 0": count
        for kind in ("set_flag", "wait_flag")
        for pipes, count in (("V -> MTE2", 9), ("MTE3 -> V", 9), ("MTE2 -> V", 8), ("V -> MTE3", 8))
    }
    assert len(lines["tcvt bf16 -> f32"]) == 8
