"""What a target adds to the formula of a vector operation: its facts, and the options that this operation rests on."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from castsim.execution.tiles import ResolvedTileOp
from castsim.isa.formats import IntFormat
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.targets.dataflow import DataflowTarget, TileArithmetic


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The target's part in one operation.

    `saturates` says that results clamp and NaN becomes 0; `choices` are the options read, by name; `window` the
    bytes that the operation overwrites without being given them.
    """

    facts: TileArithmetic
    saturates: bool
    uses_tmp: bool
    choices: tuple[tuple[str, int | str], ...] = ()
    window: tuple[int, int] | None = None

    def choice(self, name: str) -> int | str:
        """Return the value of an option that `behaviour_of` has read; KeyError for any other."""
        return dict(self.choices)[name]


def behaviour_of(target: DataflowTarget, work: ResolvedTileOp) -> Behaviour:
    """Return the target's part in an operation; only options that bear on it are looked up."""
    facts = target.tile_arithmetic
    operation = VECTOR_OPERATIONS[work.mnemonic]
    rule = target.tile_operation(work.mnemonic)
    fmt = float_route(work, facts) or compared_format(work)
    return Behaviour(
        facts=facts,
        saturates=saturates(facts, {operation.function, *operation.parts}, fmt, target.option),
        uses_tmp=work.tmp is not None and rule is not None and rule.tmp == "used",
        choices=tuple((name, target.option(name)) for name in _relevant(work, facts)),
        window=_window(target, work),
    )


def saturates(
    facts: TileArithmetic, functions: Collection[str], fmt: str, value_of: Callable[[str], int | str]
) -> bool:
    """Return whether one of the functions clamps its results in a format; `value_of` gives the value of an option."""
    return any(
        fmt in rule.formats
        and not set(rule.functions).isdisjoint(functions)
        and all(value_of(name) == value for name, value in rule.holds_while)
        for rule in facts.saturation
    )


def compared_format(work: ResolvedTileOp) -> str:
    """Return the element format that an operation computes in: that of its sources where it has any."""
    return (work.sources[0] if work.sources else work.dst).format.name


def float_route(work: ResolvedTileOp, facts: TileArithmetic) -> str | None:
    """Return the float format through which a division by a scalar goes, None if it needs none."""
    if not VECTOR_OPERATIONS[work.mnemonic].divides_by_scalar:
        return None
    return dict(facts.divides_through).get(work.dst.format.name)


def _relevant(work: ResolvedTileOp, facts: TileArithmetic) -> tuple[str, ...]:
    """Return the options that decide something about an operation on these elements."""
    operation = VECTOR_OPERATIONS[work.mnemonic]
    if operation.kind in (Kind.COMPARE_GATHER, Kind.PACK, Kind.BOX):
        return ()
    if operation.kind is Kind.BLOCK_QUANTISE:
        return ("maximum_of_nan", "subnormals", "e4m3_nan", "nv_flat_fp4")
    if operation.kind is Kind.QUANTISE:
        return ("float_saturation_off_at_start",) if work.tmp is not None else ()
    if operation.kind is Kind.DEQUANTISE:
        return ("tdequant_tail",) if facts.dequantises_whole_registers else ()
    if operation.kind is Kind.COMPARE:
        if facts.compare_bytes is None:
            return ("spare_mask_bits",)
        inverts = facts.inverts_whole_mask and work.mode == "ne" and not isinstance(work.sources[0].format, IntFormat)
        return ("unequal_of_nan",) if inverts else ()
    if operation.kind.gives_places:  # a comparison has been dealt with
        return () if isinstance(work.sources[0].format, IntFormat) else ("maximum_of_nan",)
    read = _OF_FUNCTION.get(operation.function)
    if read is not None:
        needed = operation.function in ("shl", "shr", "axpy") or isinstance(work.dst.format, IntFormat)
        return (read,) if needed else ()
    if isinstance(work.dst.format, IntFormat):
        if operation.integers_exact:
            return ()
        routed = float_route(work, facts) is not None
        return ("integer_saturation_off_at_start", "nan_to_integer") if routed else ("integer_division_by_zero",)
    names = tuple(dict.fromkeys(_OF_NAN[part] for part in operation.parts if part in _OF_NAN))
    return (*names, "lane_order") if operation.kind is Kind.ROW_REDUCE else names


_OF_NAN = {"max": "maximum_of_nan", "min": "maximum_of_nan", "relu": "relu_of_nan"}
"""Options that say what functions make of NaN."""

_OF_FUNCTION = {
    "shl": "shift_beyond_width",
    "shr": "shift_beyond_width",
    "rem": "remainder_by_zero",
    "fmod": "remainder_by_zero",
    "axpy": "axpy_rounding",
}
"""Options that say what else no source states of a function; remainders read theirs for integers only."""


def _window(target: DataflowTarget, work: ResolvedTileOp) -> tuple[int, int] | None:
    window = target.unreserved_scratch
    if window is None or work.tmp is not None or VECTOR_OPERATIONS[work.mnemonic].kind is not Kind.ROW_BROADCAST:
        return None
    column = any(source.type.block_layout == "col_major" for source in work.sources)
    return (window.start, window.end) if column else None
