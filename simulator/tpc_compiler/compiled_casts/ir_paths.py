"""The way of a cast of LLVM IR as the compiler prints it: the types between, and the rounding word of every CONVERT.

A scalar takes its mode from the register wherever it rounds, an integer step rounds to nearest even; a vector takes the
register's between integers of different widths and rounds to nearest even elsewhere. `targets/tpc_ir_casts.csv` has the
casts that go otherwise. Source: docs/reference/tpc.md section 4.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.isa.errors import IllegalError, TargetDataError
from castsim.targets.tpc_compiler import ChainReading, IrCastRow, IrStep, ir_casts
from castsim.targets.vliw import ConvertRow, VliwTarget
from castsim.tpc_compiler.compiled_casts.paths import HopMethod, Path, PathHop, path_of
from castsim.tpc_compiler.compiled_casts.vector_types import VectorType, bits_of, is_float

_SCALAR, _VECTOR = "scalar", "vector"
_UNITS = {_SCALAR: "spu", _VECTOR: "vpu"}
_NEAREST, _FROM_REGISTER = "rhne", "csr"


def ir_path(src: VectorType, dst: VectorType, target: VliwTarget) -> Path:
    """Return the path of a cast of LLVM IR between scalars (one element) or vectors.

    Raises:
        IllegalError: a type that the generation lacks, or a pair that nothing leads to.
    """
    unit = _SCALAR if src.elements == 1 else _VECTOR
    row = _row(unit, src, dst, target)
    if row is None:
        reading = ChainReading.SCALAR if unit == _SCALAR else ChainReading.COMPILER
        found = path_of(src.element, dst.element, target, reading)
        return replace(found, hops=tuple(replace(hop, word=_word(hop, unit)) for hop in found.hops))
    types = (src.element, *(step.dst for step in row.steps))
    missing = next((each for each in types if each not in target.elements.formats), None)
    if missing is not None:
        raise _text_only(row, missing, target)
    hops = tuple(_hop(before, step, unit, target) for before, step in zip(types, row.steps, strict=False))
    return Path(src.element, dst.element, hops, row.status, (row.source,))


def _text_only(row: IrCastRow, missing: str, target: VliwTarget) -> IllegalError:
    steps = ", ".join(f"AND {step.mask:#x}" if step.mask else f"CONVERT to {step.dst}" for step in row.steps)
    return IllegalError(
        f"{target.name} has no elements of {missing}; the vendor's compiler prints {row.src} -> {row.dst} for it all "
        f"the same ({steps}; {row.source}), and nothing executes it",
        legal=target.elements.formats,
    )


def _row(unit: str, src: VectorType, dst: VectorType, target: VliwTarget) -> IrCastRow | None:
    pair = unit, src.element, dst.element
    for row in ir_casts():
        sizes = row.elements or (src.elements,)
        if (row.unit, row.src, row.dst) == pair and target.name in row.generations and src.elements in sizes:
            return row
    return None


def _hop(src: str, step: IrStep, unit: str, target: VliwTarget) -> PathHop:
    if step.mask:
        return PathHop(HopMethod.AND, src, step.dst, mask=step.mask)
    row = convert_row(src, step.dst, _UNITS[unit], target)
    if row is None:
        raise TargetDataError(f"tpc_ir_casts.csv: {target.name} has no {unit} CONVERT {src} -> {step.dst}")
    return PathHop(HopMethod.CONVERT, src, step.dst, row, word=step.word)


def convert_row(src: str, dst: str, unit: str, target: VliwTarget) -> ConvertRow | None:
    """Return the CONVERT of a pair: the instruction set's, else one that only the compiler prints; None: neither."""
    shown = (row for row in target.compiler_converts if (row.unit, row.src, row.dst) == (unit, src, dst))
    return target.convert(src, dst, unit) or next(shown, None)


def _word(hop: PathHop, unit: str) -> str:
    integers = not is_float(hop.src) and not is_float(hop.dst)
    if unit == _SCALAR:
        return _NEAREST if integers else _FROM_REGISTER
    return _FROM_REGISTER if integers and bits_of(hop.src) != bits_of(hop.dst) else _NEAREST
