"""Kernels as assembly of the vector unit: a hardware loop over tiles of whole registers.

All values lie in lane 0 of slots as wide as the widest format of the kernel; `spread` brings elements there, `gather`
brings them back, both in linear order. A kernel that is one chain is written by the planner, which also has the 4-bit
formats.
"""

from __future__ import annotations

from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import FORMATS, Format, IntFormat
from castsim.isa.tpc import parse
from castsim.lowering.graphs.graph_kernels import Combined, KeptValue, KernelValue, NodeKernel, NodeText
from castsim.lowering.steps import RereadForm
from castsim.lowering.vector_steps import issue_step, vector_assembly
from castsim.machines.vliw.semantics import prepare
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.builtin_sequences import gather, spread
from castsim.tpc_compiler.code_generation import Sequence, schedule
from castsim.tpc_compiler.code_generation import SequenceRegister as Register

_BYTE = 8


NIBBLES_AS_BYTES = True
"""A vector unit has no arithmetic on integers of 4 bits."""


def has(target: VliwTarget, function: str, fmt: Format, *, constant: bool) -> bool:
    """Whether there is an instruction for a function; constants are operands as any other."""
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
    """Whether one of the functions clamps its results in a format: never."""
    del target, functions, fmt
    return False


def program(kernel: NodeKernel, target: VliwTarget, elements: int) -> NodeText:
    """Return the program of a kernel for at least `elements` elements.

    A chain's program calls its arguments `src` and `dst`, as its kernel must.

    Raises:
        IllegalError: formats of 4 bits beside arithmetic, or more registers than there are.
    """
    title = "".join(f"// {line}\n" for line in kernel.title.splitlines())
    chain = kernel.chain
    if chain is not None:
        source, destination = kernel.inputs[0], kernel.outputs[0]
        found = vector_assembly(chain, source.format, destination.format, target, elements)
        return NodeText(
            target, title + found.text, found.suffix, {source.name: source.format},
            {destination.name: destination.format}, found.elements, 1,
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
        raise IllegalError(f"{target.name}: arithmetic beside formats of less than {_BYTE} bits has no program")
    slot = max(widths)
    count = max(slot // port.format.bits for port in ports)
    sequence = Sequence()
    held: list[dict[int, Register]] = [{} for _ in range(count)]
    for port in kernel.inputs:
        ratio = slot // port.format.bits
        packed = sequence.input(port.name, port.format.name, count // ratio)
        wide = [part for value in packed for part in spread(sequence, value, port.format.bits, ratio, target)]
        for place, register in enumerate(wide):
            held[place][port.value.number] = register
    for values in held:
        _issue(sequence, kernel, values, target)
    for port in kernel.outputs:
        ratio = slot // port.format.bits
        results = [values[port.value.number] for values in held]
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
            raise IllegalError(f"{target.name}: selections have no program; bounds that come first keep NaN")
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
