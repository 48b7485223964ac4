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
