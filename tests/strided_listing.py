"""Casts lowered in the buffer of the strided model, and their operations as lines of text."""

from __future__ import annotations

from strided_cases import LOWERER, issued, tile_cast
from strided_model import Cast

from castsim.execution.tree import Operation
from castsim.machines.strided.operations import ControlWrite, PipeBarrier, StridedInstruction
from castsim.targets import load_target

A2A3 = load_target("a2a3")
FULL = (1 << 128) - 1
START = 1 << 48  # the Inf/NaN mode
OFF = 1 << 59
CTRL_ON, CTRL_OFF = "ctrl 0", "ctrl off"
TMP = 131_072


def text(operation: Operation) -> str:
    """One operation in the shorthand of this file: `NAME REPEATSxMASKLANES dst+STRIDE <- src+STRIDE`."""
    if isinstance(operation, ControlWrite):
        if operation.register == "ctrl":
            assert operation.value in (START, START | OFF)
            return CTRL_OFF if operation.value & OFF else CTRL_ON
        if operation.register == "mask":
            lanes = operation.value.bit_length()
            assert operation.value == (1 << lanes) - 1
            return f"mask {lanes}"
        return f"{operation.register} {operation.value:#x}"
    if isinstance(operation, PipeBarrier):
        return f"barrier {operation.pipe}"
    assert isinstance(operation, StridedInstruction)
    lanes = operation.mask.bit_length()
    assert operation.mask == (1 << lanes) - 1
    streams = (operation.destination, *operation.sources)
    assert all(stream.block_stride == 1 for stream in streams)
    dst, *sources = (f"{stream.address}+{stream.repeat_stride}" for stream in streams)
    return f"{operation.mnemonic} {operation.repeats}x{min(lanes, operation.lanes)} {dst} <- {', '.join(sources)}"


def lower(model: Cast, tmp_bytes: int = 0) -> list[Operation]:
    return issued(LOWERER.cast(tile_cast(model, tmp_bytes)))


def texts(model: Cast, tmp_bytes: int = 0) -> list[str]:
    return [text(operation) for operation in lower(model, tmp_bytes)]


def calls(operations: list[Operation]) -> list[StridedInstruction]:
    return [operation for operation in operations if isinstance(operation, StridedInstruction)]
