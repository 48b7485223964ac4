"""A path in the scalar unit: one element in S registers, brought to a vector at the end so that it can be stored."""

from __future__ import annotations

from collections.abc import Callable

from castsim.isa.errors import IllegalError
from castsim.isa.tpc import Slot
from castsim.isa.tpc.forms import TARGET_SPELLINGS
from castsim.targets.vliw import IntegerConvertRow
from castsim.tpc_compiler.code_generation import Sequence, Value
from castsim.tpc_compiler.compiled_casts.building import RESULT, SOURCE
from castsim.tpc_compiler.compiled_casts.hops import largest, rounded
from castsim.tpc_compiler.compiled_casts.paths import HopMethod, Path, PathHop
from castsim.tpc_compiler.compiled_casts.vector_types import bits_of

_WIDTH = 32


def build_scalar(path: Path, mode: Callable[[PathHop], str]) -> Sequence:
    """Return the instructions of a scalar cast; `mode` gives the rounding word of a hop.

    Raises:
        IllegalError: a step that only vectors have.
    """
    sequence = Sequence()
    value = sequence.scalar(SOURCE, f"u{_WIDTH}")
    for hop in path.hops:
        value = _hop(sequence, hop, value, mode(hop))
    result = sequence.vector()
    sequence.add(Slot.LOAD, f"mov.i{bits_of(path.dst)}", result, value)
    sequence.output(RESULT, path.dst, result)
    return sequence


def _hop(sequence: Sequence, hop: PathHop, source: Value, mode: str) -> Value:
    if hop.means is HopMethod.KEEP:
        return source
    result = sequence.register()
    if hop.means is HopMethod.CONVERT:
        sequence.spu(f"convert.{hop.src} target_type={TARGET_SPELLINGS[hop.dst]}{rounded(mode)}", result, source)
    elif hop.means is HopMethod.NARROW:
        assert isinstance(hop.row, IntegerConvertRow)
        width = f" to_{bits_of(hop.dst)}" if bits_of(hop.src) == _WIDTH else ""
        sequence.spu(f"{hop.row.mnemonic} {hop.integer_rounding}{width}", result, source, hop.shift)
    elif hop.means is HopMethod.EXTEND:
        sequence.spu("and.i32", result, source, (1 << bits_of(hop.src)) - 1)
    elif hop.means is HopMethod.AND:
        sequence.spu("and.i32", result, source, hop.mask)
    elif hop.means is HopMethod.CLAMP:
        sequence.spu(f"min.{hop.src}", result, source, largest(hop.dst))
    else:
        raise IllegalError(f"{hop} has no scalar form in any source", legal=("a vector order",))
    return result
