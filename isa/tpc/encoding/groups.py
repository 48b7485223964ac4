"""Pairs and quads of registers in conversions: the encoding holds the first register only."""

from __future__ import annotations

from castsim.isa.formats import FORMATS
from castsim.isa.tpc.conversion_forms import NARROWED_BITS
from castsim.isa.tpc.program import GROUPED, VECTOR_GROUPS, File, Register, TpcInstruction


def grouped(instruction: TpcInstruction) -> TpcInstruction:
    """Name the registers of a conversion as pairs or quads where it reads or writes several.

    The encoding holds the first register only; a number that does not begin a group stays a V.
    """
    sizes = _sizes(instruction)
    if sizes == (1, 1):
        return instruction
    operands = list(instruction.operands)
    for position, size in enumerate(sizes):
        operand = operands[position]
        assert isinstance(operand, Register)
        if operand.file is File.V and operand.index % size == 0:
            operands[position] = Register(VECTOR_GROUPS[size], operand.index)
    return TpcInstruction(
        instruction.form, instruction.type, instruction.switches, tuple(operands), instruction.predicate
    )


def _sizes(instruction: TpcInstruction) -> tuple[int, int]:
    """Return the numbers of destination and source registers of a conversion."""
    if instruction.switch("cnvrt") == 1:
        return 2, 1
    if not _has_groups(instruction):
        return 1, 1
    if instruction.switch("x4") == 1:
        return 4, 4
    if instruction.switch("x2") == 1:
        return 2, 2
    source, dest = _widths(instruction)
    if instruction.switch("num_lanes") != "all_lanes" or source == dest:
        return 1, 1
    ratio = max(source, dest) // min(source, dest)
    if ratio not in VECTOR_GROUPS:
        return 1, 1
    return (1, ratio) if source > dest else (ratio, 1)


def _widths(instruction: TpcInstruction) -> tuple[int, int]:
    """Return the bits of source and destination elements of a conversion."""
    if instruction.type is not None:
        return FORMATS[instruction.type].bits, FORMATS[str(instruction.switch("target_type"))].bits
    source = int("".join(filter(str.isdecimal, instruction.mnemonic)))  # convert_int32
    width = instruction.switch("width")
    return source, source // 2 if width is None else NARROWED_BITS[str(width)]


def unspoken_group(instruction: TpcInstruction) -> bool:
    """Whether a conversion names pairs or quads though no bit of the encoding says so (all_lanes on one width)."""
    if not _has_groups(instruction):
        return False
    named = [GROUPED.get(o.file, (o.file, 1))[1] for o in instruction.operands[:2] if isinstance(o, Register)]
    return any(1 != found != said for found, said in zip(named, _sizes(instruction), strict=True))


def _has_groups(instruction: TpcInstruction) -> bool:
    """Whether destination and source may be single registers, pairs or quads."""
    accepts = [set(spec.accepts) for spec in instruction.form.operands[:2]]
    return len(accepts) > 1 and all({"V", "D", "A"} <= accepted for accepted in accepts)
