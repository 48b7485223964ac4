"""Programs with products into accumulators: values by an independent model, stale reads, lint, binaries, cycles."""

from __future__ import annotations

import numpy as np
import pytest
from oracle_tpc import fused
from tpc_machine import END, assembled, early, nops, ran, timed
from tpc_text import dialect, target

from castsim.isa.errors import ReadError
from castsim.isa.tpc import parse
from castsim.isa.tpc.assembler import assemble, disassemble
from castsim.machines.vliw.lint_checking import lint
from castsim.targets.tpc_encoding import encoding_of

WITH_PAIRS = ("gaudi", "gaudib", "greco", "gaudi2")
STEPS = 5


def dot(distance: int) -> str:
    """An f32 sum of products of bf16 over the rows of two tensors; accumulation steps stand so many bundles apart."""
    loads = "".join(f"set_indx I{1 + row}, b00010, {row}; nop; nop; nop\n" for row in range(STEPS))
    fetched = "".join(
        f"ld_tnsr V{8 + row}, 0x0, I{1 + row}; nop; nop; nop\nld_tnsr V{20 + row}, 0x1, I{1 + row}; nop; nop; nop\n"
        for row in range(STEPS)
    )
    steps = "".join(
        f"nop; nop; mac.bf16 acc_fp32 D4, V{8 + row}, V{20 + row}; nop\n{nops(distance - 1)}" for row in range(STEPS)
    )
    return (
        "// castsim: tensor 0 a in bf16 [128, 5]\n// castsim: tensor 1 b in bf16 [128, 5]\n"
        "// castsim: tensor 2 y out f32 [64, 2]\n"
        f"{loads}{nops(6)}{fetched}nop; nop; mov.f32 V4, 0x0; nop\nnop; nop; mov.f32 V5, 0x0; nop\n{nops(6)}{steps}"
        f"{nops(6)}nop; nop; nop; st_tnsr 0x2, I1, V4\nnop; nop; nop; st_tnsr 0x2, I2, V5\n{END}"
    )


def factors() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    a, b = (rng.normal(size=(STEPS, 128)).astype(np.float32).view(np.uint32) >> 16 for _ in range(2))
    return a.astype(np.uint16), b.astype(np.uint16)


def summed(a: np.ndarray, b: np.ndarray, rows: range) -> np.ndarray:
    """The accumulators after some rows: even elements in the first register, odd ones in the second."""
    total = np.zeros(128, np.int64)
    for row in rows:
        total = np.array(
            [
                fused(int(x), int(y), int(z), "bf16", "f32", "RHNE")
                for x, y, z in zip(a[row], b[row], total, strict=True)
            ]
        )
    return total.reshape(64, 2).T.astype(np.uint32)


@pytest.mark.parametrize("generation", WITH_PAIRS)
def test_a_dot_product_at_the_distance_of_its_accumulator(generation: str) -> None:
    a, b = factors()
    found = ran(dot(4), generation, {"a": a, "b": b})
    assert early(found) == []
    (y,) = found.outputs.values()
    assert np.array_equal(y.reshape(2, 64).view(np.uint32), summed(a, b, range(STEPS)))


@pytest.mark.parametrize("generation", WITH_PAIRS)
def test_a_step_too_early_adds_to_an_old_accumulator(generation: str) -> None:
    """At distance 3 a step sees the sum of two steps before: those of even and of odd rows go past each other."""
    a, b = factors()
    found = ran(dot(3), generation, {"a": a, "b": b})
    steps = [reader - writer for writer, reader in early(found)]
    assert steps
    assert set(steps) == {3}
    (y,) = found.outputs.values()
    old = summed(a[::2], b[::2], range((STEPS + 1) // 2))
    assert np.array_equal(y.reshape(2, 64).view(np.uint32), old)
    rules = [finding.rule for finding in lint(assembled(dot(3), generation).program, target(generation))]
    assert rules.count("stale read") == len(set(early(found))) * 2
    close = [finding.rule for finding in lint(assembled(dot(1), generation).program, target(generation))]
    assert close.count("product write") >= STEPS - 1
    assert "stale read" not in [f.rule for f in lint(assembled(dot(4), generation).program, target(generation))]


@pytest.mark.parametrize("generation", WITH_PAIRS)
def test_cycles_and_binaries_of_the_same_program(generation: str) -> None:
    text, chip = dot(4), target(generation)
    a, b = factors()
    bundles = len(parse(text, dialect(generation)).bundles)
    values = ran(text, generation, {"a": a, "b": b})
    assert timed(text, chip).total >= bundles - 3
    code = assemble(parse(text, dialect(generation)), encoding_of(chip)).code
    listing = disassemble(code, encoding_of(chip))
    assert all(line.known and line.remark is None for line in listing.lines)
    declarations = "".join(line + "\n" for line in text.splitlines() if line.startswith("//"))
    again = ran(declarations + listing.text(), generation, {"a": a, "b": b})
    for one, other in zip(values.outputs.values(), again.outputs.values(), strict=True):
        assert np.array_equal(one, other)


def test_lookups_without_a_table_are_refused_where_they_stand() -> None:
    text = f"nop; nop; nop; nop\nlookup BV32 V1, V2, 0x100; nop; nop; nop\n{END}"
    with pytest.raises(ReadError, match="no table is declared for function id 256") as refusal:
        ran(text, "gaudi2")
    assert refusal.value.span is not None
    assert refusal.value.span.line == 2
    assert timed(text, target("gaudi2")).total > 4
    division = f"nop; udiv.u32 Z2, S4, S5; nop; nop\n{END}"
    assert timed(division, target("gaudi2")).total > 4


def test_events_change_nothing() -> None:
    text = f"event vpu 0xff; nop; nop; nop\nnop; nop; nop; event spu S1\n{END}"
    assert ran(text, "gaudi2", S1=3).outputs == {}
