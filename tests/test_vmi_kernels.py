"""Kernels of logical registers: values against models, cycles and bytes of the expanded program, what they cover."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from vmi_kernel import SECOND, THIRD, Kernel
from vmi_kernels import KERNELS
from vmi_text import Body, as_bytes, blank, run_body

from castsim.__main__ import main
from castsim.running import run

SIZE = 65536
COVERED = """
dequantise: create_mask vbrc vcvt vload vmul vstore, f16 f32
four-bits: create_mask vcvt vload vstore, f4E1M2x2 bf16x2
reduce-and-narrow: create_mask vcadd vcvt vload vstore, f32 f8E4M3FN
to-s32: vcvt vload vstore, f16 si32
to-s16: vcvt vload vstore, f32 si16
sums: create_mask vbrc vcadd vcvt vload vmul vstore, f32 f16
two-formats: create_mask vbrc vcadd vcvt vload vmul vstore, f16 f8E4M3FN f32
sums-narrowed: create_mask vbrc vcadd vcvt vload vstore, f32 f16
powers-bf16 powers-bf16-small powers-e5m2: vbrc vcvt vinterpret_cast vload vmul vshl vstore, ui8 bf16
powers-f32: vbrc vcvt vinterpret_cast vload vmul vshl vstore, ui8 f32
exponents-bf16: create_group_mask vabs vand vbrc vci vcmax vcmp vcvt vinterpret_cast vload vmul vsel vshl vshr vstore \
vsub, bf16 ui8
exponents-f16 exponents-e5m2: create_mask vabs vand vbrc vci vcmax vcmp vcvt vinterpret_cast vload vmul vsel vshl vshr \
vstore vsub, f16 ui8
exponents-f32: create_mask vabs vand vbrc vcmax vcvt vinterpret_cast vload vmul vshl vshr vstore vsub, f32 ui8
blocks-bf16: create_mask vabs vbrc vcmax vcvt vdiv vload vstore, bf16 f32
blocks-f16: create_mask vabs vbrc vcmax vcvt vdiv vload vstore, f16 f32
columns-bf16: create_mask vabs vadd vbrc vcmp vcvt vdiv vgather vinterpret_cast vmax vmin vsel vstore, bf16 f32 ui8
columns-gathered: create_mask vabs vadd vbrc vcmp vcvt vdiv vgather vinterpret_cast vload vmax vmin vsel vstore, f16 ui8
columns-f16: create_mask vabs vadd vbrc vcmp vcvt vdiv vinterpret_cast vload vmax vmin vsel vstore, f16 f32 ui8
rows-bf16: create_mask vabs vbrc vcmax vcvt vdiv vload vstore, bf16 f32
rows-smooth rows-smooth-small: create_mask vabs vbrc vcmax vcvt vdiv vload vmul vstore, f16 f32
cast-by-blocks: vbrc vcvt vload vmul vstore, f16 f32
gated-small: create_group_mask vabs vadd vand vbrc vcmax vcvt vdiv vexp vinterpret_cast vload vmul vshl vshr vstore \
vsub, bf16 ui8
gated gated-e5m2: create_mask vabs vadd vand vbrc vcmax vcvt vdiv vexp vinterpret_cast vload vmul vshl vshr vstore \
vsub, f16 ui8
asymmetric: create_mask vadd vbrc vci vcvt vgather vload vmul vshr vstore, f32 ui8
two-widths: create_mask vcvt vload vstore, f32 f16
pairs: vcvt vinterpret_cast vload vstore, bf16 f4E2M1x2
pairs-e1m2: vcvt vinterpret_cast vload vstore, bf16 f4E1M2x2
pairs-from-memory: vcvt vload vstore, bf16x2 f4E1M2x2
pairs-tail: create_mask vcvt vinterpret_cast vload vstore, bf16 f4E1M2x2
to-e4m3fn: vcvt vload vstore, f32 f8E4M3FN
to-e4m3fn-tail: create_mask vcvt vload vstore, f32 f8E4M3FN
loop: vadd vcvt vload vstore, f16 f32
low-bytes: vcvt vload vstore, si32 si8
low-bytes-tail: create_mask vcvt vload vstore, si32 si8
"""
"""What operations and elements the published conversion cases of this level use together, by kernel."""


def input_of(kernel: Kernel) -> NDArray[np.uint8]:
    given = np.zeros(SIZE, np.uint8)
    for place, codes in kernel.given.items():
        given[place : place + codes.nbytes] = as_bytes(codes)
    return given


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_leave_what_their_models_say(name: str) -> None:
    kernel = KERNELS[name]()
    got, want = run_body(kernel.body, input_of(kernel), SIZE), blank(SIZE).copy()
    for place, codes in kernel.wanted.items():
        want[place : place + codes.nbytes] = as_bytes(codes)
    if name.startswith("gated"):  # an exponential may be off by one unit in the last place
        assert np.count_nonzero(got != want) <= 2
    else:
        wrong = np.flatnonzero(got != want)
        assert not wrong.size, (wrong.size, wrong[:8], got[wrong[:8]], want[wrong[:8]])


@pytest.mark.parametrize("line", [line for line in COVERED.strip().splitlines() if line])
def test_published_combinations_are_covered(line: str) -> None:
    names, _, rest = line.partition(": ")
    operations, _, elements = rest.partition(", ")
    for name in names.split():
        text = KERNELS[name]().body.text(32, 32)
        used = set(re.findall(r"pto\.vmi\.(\w+) ", text))
        assert not set(operations.split()) - used - {"create_mask", "create_group_mask"}
        assert any(each in used for each in ("create_mask", "create_group_mask")) or "create" not in operations
        assert all(re.search(rf"x(!pto\.)?{element}>", text) for element in elements.split()), elements


@pytest.mark.parametrize("name", ["dequantise", "sums", "exponents-f16", "columns-gathered", "two-formats", "loop",
                                  "low-bytes-tail", "asymmetric"])  # fmt: skip
def test_the_expanded_program_has_the_same_bytes_and_cycles(name: str, tmp_path: Path) -> None:
    kernel = KERNELS[name]()
    program, other = tmp_path / "k.pto", tmp_path / "micro.pto"
    program.write_text(kernel.body.text(SIZE, SIZE))
    assert main(["expand", str(program), "-o", str(other), "--quiet"]) == 0
    assert "pto.vmi." not in other.read_text()
    inputs = {"x": input_of(kernel), "y": blank(SIZE)}
    found = [run(each, inputs=inputs, engine=engine) for each in (program, other) for engine in ("fast", "event")]
    assert len({each.outputs["y"].tobytes() for each in found}) == 1
    assert len({each.cycles for each in found}) == 1
    assert found[0].cycles
    assert not found[0].untimed


def test_kernels_of_vector_instructions_are_not_expanded_again(tmp_path: Path) -> None:
    body = Body()
    body.inside.append('%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>')
    program = tmp_path / "k.pto"
    program.write_text(body.text(32, 32))
    assert main(["expand", str(program)]) == 1


assert SECOND < THIRD < SIZE
