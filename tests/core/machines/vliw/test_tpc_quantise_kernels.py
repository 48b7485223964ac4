"""Kernels around casts on boundary values; their texts of one instruction a line, scheduled, against those by hand."""

from __future__ import annotations

import numpy as np
import pytest
from kit import tpc_programs_oracle, tpc_quantise_oracle
from kit.paths import PROGRAMS, ROOT
from kit.schedule_programs import target_of

from castsim import run
from castsim.isa.tpc.parser import parse
from castsim.machines.vliw.assembled import assemble, execute
from castsim.machines.vliw.findings import StaleReadKind
from castsim.numerics.codec import codes_from_array
from castsim.tools.tpc_assembly.scheduling import executed_bundles, schedule
from castsim.tools.tpc_lint.lint_checking import lint

KINDS = tuple(tpc_quantise_oracle.KERNELS)
NAMES = sorted(
    each
    for each in tpc_programs_oracle.INPUTS
    if each.removeprefix("tpc_").rpartition("_")[0] in tpc_quantise_oracle.KERNELS
)
SPECIAL = (
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x3F800000,
    0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0x7FFFFFFF,
    0xC2AEAC08, 0xC2AEAC07, 0xC2AEAC09, 0x42B171AA, 0x42B171A9, 0x42B171AB, 0x3EB17218, 0xBEB17218, 0x3F317218,
    0x4F000000, 0xCF000000, 0x42FF0000, 0xC3000000, 0x43000000, 0x3F000000, 0x3FC00000, 0x33000000, 0x34000000,
)  # fmt: skip
"""f32: zeros, subnormals, limits of normals, infinities, NaN, limits of exp and their neighbours, halves of ln 2."""


def near_steps() -> np.ndarray:
    """f32 arguments that the quantisation brings to halves between integers, and their neighbours."""
    inverse, zero = (np.array(code, "u4").view("f4") for code in (0x3FA28F5C, 0xC0400000))
    halves = np.arange(-140, 140) + 0.5
    codes = ((halves - zero) / inverse).astype("f4").view("u4").astype(np.int64)
    return np.concatenate([codes - 1, codes, codes + 1]).astype("u4")


def boundary(kind: str) -> np.ndarray:
    """Codes of an input: boundary values, then random ones of all exponents."""
    fmt, shape, *_ = tpc_quantise_oracle.KERNELS[kind]
    rng, size = np.random.default_rng(18), shape[0] * shape[1]
    if fmt == "i8":
        return np.resize(np.arange(256, dtype="u1"), shape)
    some = np.concatenate([np.array(SPECIAL, "u4"), near_steps() if kind == "f32_i8_quantise" else []]).astype("u4")
    moderate = (rng.uniform(-90, 90, size // 4).astype("f4")).view("u4")
    found = np.concatenate([some, moderate, rng.integers(0, 1 << 32, size, "u4")])[:size]
    if fmt == "bf16":
        f8_steps = np.arange(0x3C00, 0x4400, 11)
        found = np.concatenate([np.array(SPECIAL, "u4") >> 16, f8_steps, f8_steps | 0x8000, found >> 16])[:size]
        return found.astype("u2").reshape(shape)
    return found.reshape(shape)


def values(codes: np.ndarray, fmt: str) -> np.ndarray:
    return codes.view({"f32": "f4", "i8": "i1", "bf16": "u2"}[fmt])


@pytest.mark.smoke
@pytest.mark.parametrize("name", NAMES)
def test_boundary_values(name: str) -> None:
    kind, _, generation = name.removeprefix("tpc_").rpartition("_")
    codes = boundary(kind)
    found = run(PROGRAMS / f"{name}.tpc", inputs={"x": values(codes, tpc_quantise_oracle.KERNELS[kind][0])})
    got = codes_from_array(found.outputs["y"], found.loaded.arguments["y"].format)
    np.testing.assert_array_equal(got, tpc_quantise_oracle.outputs(kind, generation, codes))


# --------------------------------------------------------------------------------------- one instruction a line


@pytest.mark.parametrize("kind", [*KINDS, "f32_i16_quantise"])
@pytest.mark.parametrize("longer", [False, True])
def test_scheduled_lines_against_the_bundles_by_hand(kind: str, longer: bool) -> None:
    """Values are the oracle's; no more bundles run than by hand; the text is longer by an eighth, or pipelined."""
    chip = target_of("gaudi2")
    source = PROGRAMS / "sequential" / f"{kind}_gaudi2.tpc"
    by_hand = parse((PROGRAMS / f"tpc_{kind}_gaudi2.tpc").read_text(), chip.dialect)
    found = schedule(source.read_text(), source.name, chip, longer=longer)
    assert lint(found.program, chip) == ()
    assembled = assemble(found.text, source.name, chip, {})
    given = tpc_programs_oracle.sources(f"tpc_{kind}_gaudi2", 7)
    if kind in KINDS:
        codes = boundary(kind)
        given = {"x": values(codes, tpc_quantise_oracle.KERNELS[kind][0])}
        wanted = tpc_quantise_oracle.outputs(kind, "gaudi2", codes)
    else:
        wanted = tpc_programs_oracle.outputs(f"tpc_{kind}_gaudi2", 7)["y"]
    ran = execute(assembled, given, values=True, checked=True, max_bundles=10**5)
    assert {each.kind for each in ran.stale_reads} <= {StaleReadKind.SAME_BUNDLE}
    np.testing.assert_array_equal(codes_from_array(ran.outputs["y"], assembled.arguments["y"].format), wanted)
    hand = executed_bundles(by_hand, "hand", chip)
    assert found.length.executed is not None and hand is not None
    assert found.length.executed <= hand
    assert longer or found.method == "pipelined" or found.length.static <= len(by_hand.bundles) * 9 // 8


def test_the_page_names_the_lengths() -> None:
    """The table beside the reference page, row by row."""
    chip = target_of("gaudi2")
    table = (ROOT / "docs" / "reference" / "tpc-schedules.csv").read_text().splitlines()
    for kind in (*KINDS, "f32_i16_quantise"):
        source = (PROGRAMS / "sequential" / f"{kind}_gaudi2.tpc").read_text()
        by_hand = parse((PROGRAMS / f"tpc_{kind}_gaudi2.tpc").read_text(), chip.dialect)
        usual, longer = (schedule(source, kind, chip, longer=each) for each in (False, True))
        cells = [
            (len(by_hand.bundles), executed_bundles(by_hand, kind, chip)),
            *((each.static, each.executed) for each in (usual.padding, usual.length, longer.length)),
        ]
        row = ",".join([kind, *(f"{static} / {executed}" for static, executed in cells)])
        assert row in table, row
