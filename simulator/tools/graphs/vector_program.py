"""Kernels as assembly of the vector unit: a hardware loop over tiles of whole registers.

All values are in lane 0 of slots as wide as the widest format of the kernel; `spread` moves elements there, `gather`
moves them back, both in linear order. A kernel that is one chain is written by the planner, which also has the 4-bit
formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import FORMATS, Codes, Format, IntFormat
from castsim.isa.tpc.forms import Feature
from castsim.isa.tpc.parser import parse
from castsim.machines.vliw import tpc_target
from castsim.machines.vliw.semantics import prepare
from castsim.numerics.blocks import code_dtype
from castsim.running.program_loading import load_text
from castsim.running.program_runs import run_loaded
from castsim.targets.loader import Target
from castsim.targets.vliw import VliwTarget
from castsim.tools.graphs.graph_kernels import Combined, KeptValue, KernelValue, NodeKernel, NodeText
from castsim.tools.lowering.steps import RereadForm
from castsim.tools.lowering.vector_steps import WideInstruction, issue_step, vector_assembly
from castsim.tools.tpc_compiler.builtin_sequences import gather, spread
from castsim.tools.tpc_compiler.code_generation import Sequence, schedule
from castsim.tools.tpc_compiler.code_generation import SequenceRegister as Register

_BYTE = 8
_NO_SELECTIONS = "{}: cannot write selections; put bounds first to keep NaN"


NIBBLES_AS_BYTES = True
"""True: a vector unit has no arithmetic on 4-bit integers."""


def has(target: VliwTarget, function: str, fmt: Format, *, constant: bool) -> bool:
    """Return whether there is an instruction for a function; constants are ordinary operands."""
    del constant
    if function == "mul" and isinstance(fmt, IntFormat):
        return False
    text = f"nop; nop; {function}.{fmt.name} V1, V0, V2; nop\n"
    try:
        instruction = parse(text, target.dialect, "<graph>").bundles[0].vpu
        assert instruction is not None
        prepare(instruction, target)
    except CastsimError:
        return False
    return True


def clamps(target: VliwTarget, functions: tuple[str, ...], fmt: Format) -> bool:
    """Return whether one of the functions clamps its results in a format: never."""
    del target, functions, fmt
    return False


def program(kernel: NodeKernel, target: VliwTarget, elements: int) -> NodeText:
    """Return the program of a kernel for at least `elements` elements.

    A chain's program names its arguments `src` and `dst`, as its kernel must.

    Raises:
        IllegalError: the kernel has 4-bit formats and arithmetic, or needs too many registers.
    """
    title = "".join(f"// {line}\n" for line in kernel.title.splitlines())
    chain = kernel.chain
    if chain is not None:
        source, destination = kernel.inputs[0], kernel.outputs[0]
        assembly = vector_assembly(chain, source.format, destination.format, target, elements)
        return NodeText(
            target, title + assembly.text, assembly.suffix, {source.name: source.format},
            {destination.name: destination.format}, assembly.elements, 1,
        )  # fmt: skip
    scheduled = schedule(_sequence(kernel, target), target)
    size = scheduled.ports[0].elements
    tiles = -(-elements // size)
    return NodeText(
        target=target,
        text=title + scheduled.text(tiles),
        suffix=".tpc",
        inputs={port.name: port.format for port in kernel.inputs},
        outputs={port.name: port.format for port in kernel.outputs},
        elements=size * tiles,
        tiles=tiles,
    )


def _sequence(kernel: NodeKernel, target: VliwTarget) -> Sequence:
    ports = [*kernel.inputs, *kernel.outputs]
    widths = [fmt.bits for fmt in kernel.formats()]
    if min(widths) < _BYTE:
        raise IllegalError(f"{target.name}: cannot write programs that mix arithmetic and less than {_BYTE} bits")
    slot = max(widths)
    count = max(slot // port.format.bits for port in ports)
    sequence = Sequence()
    registers: list[dict[int, Register]] = [{} for _ in range(count)]
    for port in kernel.inputs:
        ratio = slot // port.format.bits
        packed = sequence.input(port.name, port.format.name, count // ratio)
        wide = [part for value in packed for part in spread(sequence, value, port.format.bits, ratio, target)]
        for index, register in enumerate(wide):
            registers[index][port.value.number] = register
    for values in registers:
        _issue(sequence, kernel, values, target)
    for port in kernel.outputs:
        ratio = slot // port.format.bits
        results = [values[port.value.number] for values in registers]
        groups = [results[at : at + ratio] for at in range(0, count, ratio)]
        sequence.output(
            port.name, port.format.name, *(gather(sequence, group, port.format.bits, target) for group in groups)
        )
    return sequence


def _issue(sequence: Sequence, kernel: NodeKernel, values: dict[int, Register], target: VliwTarget) -> None:
    """Append the instructions for one register of slots."""
    for instruction in kernel.instructions:
        if isinstance(instruction, Combined):
            result = _combined(sequence, instruction, values)
        elif isinstance(instruction, KeptValue):
            raise IllegalError(_NO_SELECTIONS.format(target.name))
        elif isinstance(instruction.step.forms[0], RereadForm):
            result = values[instruction.source.number]
        else:
            result = issue_step(sequence, instruction.step, values[instruction.source.number], target)
        values[instruction.result.number] = result


def _combined(sequence: Sequence, instruction: Combined, values: dict[int, Register]) -> Register:
    first, second, fmt = values[instruction.first.number], instruction.second, instruction.first.format
    other: Register | int = values[second.number] if isinstance(second, KernelValue) else second
    if instruction.backwards and isinstance(other, int):
        first, other = sequence.broadcast(other & 0xFFFFFFFF, FORMATS[fmt.name].name), first
    result = sequence.vector()
    sequence.vpu(f"{instruction.function}.{fmt.name}", result, first, other)
    return result


def outputs(kernel: NodeKernel, target: VliwTarget, inputs: Mapping[str, Codes]) -> dict[str, Codes]:
    """Return the outputs of a kernel by its instructions, each run once on a register as wide as the inputs.

    Raises:
        IllegalError: the target lacks an instruction.
    """
    values = {port.value.number: inputs[port.name].astype(code_dtype(port.format)) for port in kernel.inputs}
    for instruction in kernel.instructions:
        if isinstance(instruction, Combined):
            values[instruction.result.number] = _wide(instruction, target, values)
        elif isinstance(instruction, KeptValue):
            raise IllegalError(_NO_SELECTIONS.format(target.name))
        else:
            values[instruction.result.number] = instruction.step.run(values[instruction.source.number])
    return {port.name: values[port.value.number] for port in kernel.outputs}


def _wide(instruction: Combined, target: VliwTarget, values: Mapping[int, Codes]) -> Codes:
    first, second, fmt = values[instruction.first.number], instruction.second, instruction.first.format
    head = f"{instruction.function}.{fmt.name} V1, "
    if isinstance(second, KernelValue):
        return WideInstruction(target, f"{head}V0, V2", fmt)(first, values[second.number])
    if instruction.backwards:
        return WideInstruction(target, f"{head}V2, V0", fmt, (second & ((1 << fmt.bits) - 1),))(first)
    return WideInstruction(target, f"{head}V0, {second & 0xFFFFFFFF:#x}", fmt)(first)


# TOSA's TABLE on vector processors: programs that look integers up in tables of their own.
#
# Bytes are one look-up of 256 entries. 513 entries of 16 bits become two tables of 256 pairs, an entry times 128 and
# the step to the next one, for negative values and others: both are looked up, and one is taken. All of it is below
# 2^24, so multiplication and addition in f32 are exact. Source: docs/reference/semantics.md section 2,
# docs/reference/tpc.md section 5.5.

_LANES, _HALF = 64, 256
_APART = 12
"""Number of bundles between instructions: more than any latency."""


@dataclass(frozen=True, slots=True)
class TableRun:
    """Results of a program of look-ups, its cycles, and its text."""

    results: NDArray[np.int32]
    cycles: int
    program: str


def table_on(values: NDArray[np.integer], entries: NDArray[np.integer], target: Target) -> TableRun:
    """Return TABLE of integers as a vector processor computes it; its input and output are tensors of i32.

    Args:
        values: i8 or i16, any shape.
        entries: 256 of i8, or 513 of i16, as checked by `tosa_operators.table`.
        target: the processor.

    Raises:
        IllegalError: the target is a chip with tiles.
    """
    processor = tpc_target(target, f"{target.name} has no look-ups")
    count = -(-values.size // _LANES)
    given = np.zeros(count * _LANES, np.int32)
    given[: values.size] = values.reshape(-1)
    typed = Feature.TYPED_LOOKUP in processor.dialect.features
    program = table_program(entries, target.name, count, typed=typed)
    result = run_loaded(load_text(program, "table.tpc", target), {"x": given.reshape(count, _LANES)})
    results = np.asarray(result.outputs["y"]).reshape(-1).view(np.int32)[: values.size]
    return TableRun(results.reshape(values.shape), result.cycles, program)


def table_program(entries: NDArray[np.integer], target: str, vectors: int, *, typed: bool) -> str:
    """Return the program for a number of vectors of 64 values; `typed`: look-ups state their number of values."""
    if entries.size == _HALF:
        tables = [_declared("bytes", 1, "i32", entries.tolist(), _HALF)]
        body = [
            _vector("add.i32 V1, V0, 0x80"),
            f"{'lookup_1c' if typed else 'lookup'} BV32 V12, V1, 0x1; nop; nop; nop",
        ]
    else:
        wide = entries.astype(np.int64)
        pairs = np.stack((wide[:-1] * 128, np.diff(wide)), axis=1)
        tables = [
            _declared(name, number, "f32", [float(entry) for entry in half.reshape(-1)], _HALF, 2)
            for name, number, half in (("below", 1, pairs[:_HALF]), ("above", 2, pairs[_HALF:]))
        ]
        both = "lookup_2c" if typed else "lookup_c1c2"
        body = [
            _vector("add.i32 V1, V0, 0x8000"),
            _vector("shr.i32 V2, V1, 0x7"),
            _vector("and.i32 V3, V2, 0xff"),
            _vector("and.i32 V4, V1, 0x7f"),
            _vector("convert.i32 target_type=fp32 rhne V5, V4"),
            f"{both} BV32 D6, V3, 0x1; nop; nop; nop",
            f"{both} BV32 D8, V3, 0x2; nop; nop; nop",
            _vector("sel_less.i32 V10, V0, 0x0, V6, V8"),
            _vector("sel_less.i32 V11, V0, 0x0, V7, V9"),
            _vector("mac.f32 V10, V11, V5"),
            _vector("convert.f32 target_type=int32 rhne V12, V10"),
        ]
    head = [
        f"// castsim: target {target}",
        f"// castsim: tensor 0 x in i32 [{_LANES}, {vectors}]",
        f"// castsim: tensor 1 y out i32 [{_LANES}, {vectors}]",
        *tables,
        "// castsim: reg I0 = [0, 0, 0, 0, 0]",
        "// castsim: reg I1 = [0, 0, 0, 0, 0]",
    ]
    inner = ("ld_tnsr V0, 0x0, I0; nop; nop; nop", "nop; add.i32 b00010 I0, 0x1, I0; nop; nop", *body,
             "nop; nop; nop; st_tnsr 0x1, I1, V12", "nop; add.i32 b00010 I1, 0x1, I1; nop; nop")  # fmt: skip
    lines = [f"nop; loop 0, {vectors}, 1, <, End; nop; nop", _NOTHING, *_spread(inner)]
    return "\n".join((*head, *lines, "End:", "nop; halt; halt; nop", ""))


_NOTHING = "nop; nop; nop; nop"


def _vector(instruction: str) -> str:
    return f"nop; nop; {instruction}; nop"


def _spread(bundles: Iterable[str]) -> list[str]:
    return [line for bundle in bundles for line in (bundle, *[_NOTHING] * _APART)]


def _declared(
    name: str, number: int, element: str, values: list[int] | list[float], entries: int, per_entry: int = 1
) -> str:
    shape = f"{per_entry}, {entries}" if per_entry > 1 else f"{entries}"
    return f"// castsim: table {name} {number} {element} [{shape}] = {', '.join(map(str, values))}"
