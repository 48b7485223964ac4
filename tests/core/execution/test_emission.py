"""Sequences to programs: registers, distances, bundle rules, loops over tiles, counts."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from kit.tpc_machine import END, nops, ran
from kit.tpc_text import GENERATIONS, target

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import Slot
from castsim.tools.tpc_compiler.builtin_calls import KernelResult, execute
from castsim.tools.tpc_compiler.code_generation import ScheduledKernel, Sequence, schedule
from castsim.tools.tpc_lint.lint_checking import lint


def quantiser(name: str) -> ScheduledKernel:
    """Two registers of f32, scaled, clamped and converted, each into lane 0 of a register of i16."""
    sequence = Sequence()
    sources = sequence.input("x", "f32", 2)
    scale = sequence.scalar("scale", "f32")
    results = []
    for source in sources:
        scaled, positive, narrow = sequence.vector(), sequence.vector(), sequence.zeroed()
        sequence.vpu("mul.f32", scaled, source, scale)
        sequence.vpu("max.f32", positive, scaled, 0)
        sequence.vpu("convert.f32 lane_sel=0 target_type=int16 rhne", narrow, positive)
        results.append(narrow)
    sequence.output("y", "i16", *results)
    return schedule(sequence, target(name))


def clean(found: KernelResult, name: str) -> None:
    assert found.stale_reads == ()
    assert found.warnings == ()
    assert lint(parse(found.text, target(name).dialect), target(name)) == ()


@pytest.mark.parametrize("name", GENERATIONS)
@pytest.mark.parametrize("tiles", [1, 2, 5])
def test_a_sequence_runs_over_tiles(name: str, tiles: int) -> None:
    x = np.random.default_rng(tiles).uniform(-40, 40, 128 * tiles).astype(np.float32)
    found = execute(quantiser(name), {"x": x}, {"scale": 1000.0})
    scaled = np.maximum(x * np.float32(1000), np.float32(0)).view(np.uint32)
    expected = np.zeros((tiles, 128, 2), np.uint16)
    expected[:, :, 0] = oracle.cast_array(scaled, "f32", "i16", "rint", "saturate").reshape(tiles, 128)
    np.testing.assert_array_equal(found.outputs["y"], expected.reshape(tiles, 256))
    assert (found.tiles, found.vector_operations) == (tiles, 6)
    clean(found, name)


@pytest.mark.parametrize("name", GENERATIONS)
def test_one_distance_less_would_be_early(name: str) -> None:
    """Take an empty bundle between producer and consumer away: the checked mode objects."""
    lines = quantiser(name).text(1, {"scale": 1.0}).splitlines()
    body = [n for n, line in enumerate(lines) if line == "nop; nop; nop; nop" and n < len(lines) - 4]
    for empty in body:
        shorter = "".join(f"{line}\n" for n, line in enumerate(lines) if n != empty)
        assert ran(shorter, name, {"x": np.ones((1, 128), np.float32)}).stale_reads


def test_too_many_registers() -> None:
    sequence = Sequence()
    values = [sequence.broadcast(number) for number in range(41)]
    for value in values:
        sequence.vpu("add.i32", values[0], values[0], value)
    with pytest.raises(IllegalError, match="more V registers"):
        schedule(sequence, target("gaudi"))


def test_a_setup_is_visible_to_what_follows() -> None:
    """RZ in the rounding register: a conversion in CSR mode cuts off."""
    sequence = Sequence()
    (x,) = sequence.input("x", "f32")
    y = sequence.vector()
    sequence.vpu("convert.f32 target_type=int32", y, x)
    sequence.output("y", "i32", y)
    writer = Sequence()
    writer.add(Slot.STORE, "st_l mmio", 0x8FC, sequence.scalar("mode", "u32"))
    kernel = schedule(sequence, target("gaudi"), writer.steps)
    values = np.array([1.5, -1.5, 2.5, 3.7], np.float32)
    for code, expected in ((1, [1, -1, 2, 3]), (0, [2, -2, 2, 4]), (2, [2, -1, 3, 4])):
        found = execute(kernel, {"x": values}, {"mode": code})
        assert found.outputs["y"][0, :4].view(np.int32).tolist() == expected
        clean(found, "gaudi")


@pytest.mark.parametrize("pause", [0, 1, 2, 3, 8, 40])
def test_a_rounding_register_stays_visible(pause: int) -> None:
    """However long nothing looks at it; from the third bundle on.

    Source: docs/reference/tpc.md section 6.1, stores to the register.
    """
    text = f"""// castsim: tensor 0 x in f32 [64]
// castsim: tensor 1 y out i32 [64]
// castsim: reg S1 = 1
ld_tnsr V0, 0x0, I0; nop; nop; nop
{nops(4)}nop; nop; convert.f32 target_type=int32 V2, V0; nop
nop; nop; nop; st_l mmio 0x8fc, S1
{nops(pause)}nop; nop; convert.f32 target_type=int32 V1, V0; nop
{nops(4)}nop; nop; nop; st_tnsr 0x1, I0, V1
{END}"""
    found = ran(text, "gaudi", {"x": np.full(64, 1.75, np.float32)})
    assert set(found.outputs["y"].tolist()) == {1 if pause >= 2 else 2}


def test_bad_arguments() -> None:
    kernel = quantiser("goya")
    x = np.ones(128, np.float32)
    for inputs, scalars, words in (
        ({}, {"scale": 1.0}, "no values for x"),
        ({"z": x}, {"scale": 1.0}, "no input 'z'"),
        ({"x": x}, {}, "no value for scale"),
        ({"x": x}, {"scale": 1.0, "shift": 1}, "no scalar 'shift'"),
        ({"x": x}, {"scale": 1e39}, "out of range"),
        ({"x": x[:0]}, {"scale": 1.0}, "empty"),
        ({"x": x.astype(np.float64)}, {"scale": 1.0}, "float64"),
    ):
        with pytest.raises(ReadError, match=words):
            execute(kernel, inputs, scalars)
