"""What the page for contributors says of a TPC instruction is all that it takes: one is added to a copy of the tree.

`nabs` gives minus the absolute value; no chip has it. Expected values are NumPy's, the opcode is the one of its row.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from test_new_tile_operation import copied

ADDED = {
    "isa/tpc/instructions.py": (
        '    "abs=7": ("SPU dest:S a:S .data", "VPU dest:V a:V .data"),\n',
        '    "nabs=56": ("SPU dest:S a:S .data", "VPU dest:V a:V .data"),\n',
    ),
    "machines/vliw/semantics/elementwise.py": (
        '    "abs": ElementwiseKind(_absolute, _nothing),\n',
        '    "nabs": ElementwiseKind(lambda a, b, fmt, context: a | 1 << fmt.bits - 1, _nothing),\n',
    ),
}
"""The files that are touched: what is put behind which of their lines."""
OPCODE_BIT = 45
"""Where the opcode of the VPU stands, in six bits. Source: TPCInstrLayout.cpp of the vendor's compiler."""
PROGRAM = """\
// castsim: target gaudi2
// castsim: tensor 0 x in f32 [64]
// castsim: tensor 1 y out f32 [64]
// castsim: reg I0 = [0, 0, 0, 0, 0]
ld_tnsr %v.a, 0x0, I0
nabs.f32 %v.b, %v.a
st_tnsr 0x1, I0, %v.b
halt
"""


def castsim(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the package in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "castsim", *words]
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)


def test_two_rows_make_an_instruction(tmp_path: Path) -> None:
    """It is scheduled, linted, run from text and from its binary, and disassembled to text of the same bytes."""
    copied(tmp_path)
    (tmp_path / "sequential.tpc").write_text(PROGRAM, encoding="utf-8")
    unknown = castsim(tmp_path, "schedule", "sequential.tpc")
    assert unknown.returncode
    assert "nabs" in unknown.stderr
    for name, (line, addition) in ADDED.items():
        path = tmp_path / "castsim" / name
        text = path.read_text(encoding="utf-8")
        assert text.count(line) == 1, line
        path.write_text(text.replace(line, line + addition), encoding="utf-8")
    given = np.linspace(-4, 4, 64, dtype=np.float32)
    np.save(tmp_path / "x.npy", given)
    on, inputs = ("--target", "gaudi2"), ("--in", "x=x.npy", "--quiet")
    for words in (
        ("schedule", "sequential.tpc", "--out", "k.tpc"),
        ("lint", "k.tpc"),
        ("run", "k.tpc", *inputs, "--out", "text"),
        ("asm", "k.tpc", "--out", "k.bin"),
        ("run", "k.bin", *on, "--declare", "k.tpc", *inputs, "--out", "binary"),
        ("disasm", "k.bin", *on, "--text", "--out", "again.tpc"),
        ("asm", "again.tpc", *on, "--out", "again.bin"),
    ):
        done = castsim(tmp_path, *words)
        assert not done.returncode, (words, done.stderr)
    for out in ("text", "binary"):
        np.testing.assert_array_equal(np.load(tmp_path / out / "y.npy"), -np.abs(given))
    assert (tmp_path / "k.bin").read_bytes() == (tmp_path / "again.bin").read_bytes()
    listing = castsim(tmp_path, "disasm", "k.bin", *on).stdout
    assert listing.count("nabs.f32 V1, V0") == 1
    code = (tmp_path / "k.bin").read_bytes()
    bundles = [int.from_bytes(code[start : start + 32], "little") for start in range(0, len(code), 32)]
    assert [bundle >> OPCODE_BIT & 0x3F for bundle in bundles].count(56) == 1
