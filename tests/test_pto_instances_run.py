"""Published `tcvt` instances and specimen programs, run as programs on a2a3: bytes against the oracle, hand results."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import oracle
import oracle_a2a3
import pytest
from pto_text import VECTORS, compact, key_value
from strided_cases import hard_codes

from castsim.running import Result, run

SPELT = {"si8": "i8", "ui8": "u8", "si16": "i16", "si32": "i32", "si64": "i64"}
"""Element types as `.pto` texts spell them, and the format names of the oracle."""

SPELLINGS = {"key-value": key_value, "compact": compact}


def rows() -> list[dict[str, str]]:
    """The published instances that are legal on A2/A3, whichever architecture their file names."""
    with (VECTORS / "pto_tcvt_instances_dev.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    for row in found:
        row["src"], row["dst"] = (SPELT.get(row[key], row[key]) for key in ("src_dtype", "dst_dtype"))
    legal = set(oracle_a2a3.legal_pairs())
    return [row for row in found if (row["src"], row["dst"]) in legal]


ROWS = rows()


def program(row: dict[str, str], spelling: str) -> str:
    """Load, cast, store, each whole valid region at once."""
    tile = SPELLINGS[spelling]
    extent = [int(row[key]) for key in ("rows", "cols", "valid_rows", "valid_cols")]
    source, result = (tile(row[key], *extent) for key in ("src_dtype", "dst_dtype"))
    asked = []
    if row["round_mode"] != "default":
        asked.append(f"rmode = #pto<round_mode {row['round_mode']}>")
    if row["sat"] != "default":
        asked.append(f"sat_mode = #pto<saturation_mode {row['sat']}>")
    attributes = f" {{{', '.join(asked)}}}" if asked else ""
    tmp = tile("i32", extent[0], extent[1]) if row["line_form"] == "dps+tmp" else ""
    shape = f"{extent[2]}x{extent[3]}x"
    moves = {"x": row["src_dtype"], "y": row["dst_dtype"]}
    views = "\n".join(
        f"""%v{name} = pto.make_tensor_view %{name}, shape = [%r, %c], strides = [%c, %one] : !pto.tensor_view<{shape}{kind}>
%p{name} = pto.partition_view %v{name}, offsets = [%zero, %zero], sizes = [%r, %c] : !pto.tensor_view<{shape}{kind}> -> !pto.partition_tensor_view<{shape}{kind}>"""
        for name, kind in moves.items()
    )
    return f"""\
module attributes {{pto.target_arch = "a3"}} {{
func.func @cast(%x: !pto.ptr<{moves["x"]}>, %y: !pto.ptr<{moves["y"]}>) attributes {{pto.entry}} {{
%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%r = arith.constant {extent[2]} : index
%c = arith.constant {extent[3]} : index
{views}
%s = pto.alloc_tile : {source}
%d = pto.alloc_tile : {result}
{f"%t = pto.alloc_tile : {tmp}" if tmp else ""}
pto.tload ins(%px : !pto.partition_tensor_view<{shape}{moves["x"]}>) outs(%s : {source})
pto.tcvt ins(%s{", %t" if tmp else ""}{attributes} : {source}{f", {tmp}" if tmp else ""}) outs(%d : {result})
pto.tstore ins(%d : {result}) outs(%py : !pto.partition_tensor_view<{shape}{moves["y"]}>)
return
}}
}}
"""


def execute(path: Path, text: str, **inputs: np.ndarray) -> Result:
    path.write_text(text)
    return run(path, target="a2a3", inputs=inputs)


def codes_of(array: np.ndarray, name: str) -> np.ndarray:
    return np.ascontiguousarray(array).view(oracle.storage(name))


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("number", range(len(ROWS)))
def test_instance(number: int, spelling: str, tmp_path: Path) -> None:
    row = ROWS[number]
    rng = np.random.default_rng(number)
    codes = rng.choice(hard_codes(row["src"]), (int(row["valid_rows"]), int(row["valid_cols"])))
    source = codes.astype(oracle.storage(row["src"]))
    if row["src"] in oracle.INTS:
        source = source.view(row["src"].replace("i", "int").replace("u", "uint"))
    result = execute(tmp_path / "cast.pto", program(row, spelling), x=source)
    mode = "rint" if row["round_mode"] == "default" else row["round_mode"].lower()
    saturation = None if row["sat"] == "default" else row["sat"].lower()
    with_tmp = row["line_form"] == "dps+tmp"
    wanted = {
        code: oracle_a2a3.lane(row["src"], row["dst"], code, mode, saturation, with_tmp)
        for code in np.unique(codes).tolist()
    }
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
    trace = result.trace
    for execution in trace.executions:
        instruction = result.loaded.tree.instructions[execution.instruction]
        lines.setdefault(instruction.text, []).append(execution.start)
    counts = {text: len(starts) for text, starts in lines.items() if "flag" in text}
    assert counts == {
        f"{kind} {pipes} id 0": count
        for kind in ("set_flag", "wait_flag")
        for pipes, count in (("V -> MTE2", 9), ("MTE3 -> V", 9), ("MTE2 -> V", 8), ("V -> MTE3", 8))
    }
    assert len(lines["tcvt bf16 -> f32"]) == 8
