"""Every register and predicate instruction but conversions, loads and stores: one row each.

A row says what the instruction takes and yields, on which element formats, and the function that computes it. The
verifier and the running of programs read the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.machines.vector_function.lanes import arithmetic, predicates, rearranging, reductions
from castsim.machines.vector_function.lanes.operands import Operands, Value

_INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32")
_FLOATS = ("f16", "bf16", "f32")
_NUMBERS = (*_INTEGERS, *_FLOATS)
_SPECIAL = ("f16", "f32")
_EIGHT_BITS = ("e4m3fn", "e5m2", "hif8", "e1m2", "e2m1")
_PAYLOADS = (*_NUMBERS, *_EIGHT_BITS)
_EVERY = (*_PAYLOADS, "i64", "u64")
_WORDS_32 = ("i32", "u32")
_PREDICATES: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One instruction.

    `operands` are its forms, a letter per operand in the order of the text: `v` register, `m` mask, `s` scalar of the
    element format, `n` plain number (a count, a shift amount, a half), `w` word. A word may be left out where a form
    without it stands behind. `results`: `v`, `m`, and `n` for the count that `plt` leaves. `types` are the formats of
    the elements (none: masks only). `section` is that of
    docs/reference/micro.md.
    """

    name: str
    operands: tuple[str, ...]
    results: str
    types: tuple[str, ...]
    function: Callable[[Operands], tuple[Value, ...]]
    section: str
    result_types: Mapping[str, tuple[str, ...]] | None = None
    """Formats of the result by that of the element; None: the same."""


def _rows(names: str, operands: str, results: str, types: tuple[str, ...], section: str,
          function: Callable[[str], Callable[[Operands], tuple[Value, ...]]]) -> list[Operation]:  # fmt: skip
    """Return rows of instructions that differ in their function only: `vadd:add vsub:sub`."""
    pairs = (each.partition(":") for each in names.split())
    forms = tuple(operands.split())
    return [Operation(name, forms, results, types, function(what), section) for name, _, what in pairs]


_EXTENDED = {
    "i8": ("i16", "u16", "i8"), "u8": ("u16", "i16", "u8"),
    "i16": ("i32", "u32", "i16"), "u16": ("u32", "i32", "u16"),
}  # fmt: skip
_PACKED = {"i32": ("u16",), "u32": ("u16",), "i16": ("u8",), "u16": ("u8",)}
_SUMS = {
    **{name: (name,) for name in _NUMBERS},
    "i8": ("i16", "i8"), "u8": ("u16", "u8"), "i16": ("i32", "i16"), "u16": ("u32", "u16"),
}  # fmt: skip
_BITCAST = dict.fromkeys(_EVERY, _EVERY)
_EXPONENTIALS = {"f16": ("f32",), "f32": ("f32",)}

_elementwise = arithmetic.elementwise
_bitwise = arithmetic.bitwise

_TABLE: tuple[Operation, ...] = (
    *_rows("vadd:add vsub:sub vmul:mul vmax:max vmin:min", "vvm", "v", _NUMBERS, "3.6", _elementwise),
    *_rows("vadds:add vmuls:mul vmaxs:max vmins:min", "vsm", "v", _NUMBERS, "3.6", _elementwise),
    *_rows("vshl:shl vshr:shr", "vvm", "v", _INTEGERS, "3.6", _elementwise),
    *_rows("vshls:shl vshrs:shr", "vnm", "v", _INTEGERS, "3.6", _elementwise),
    *_rows("vdiv:div vprelu:prelu", "vvm", "v", _SPECIAL, "3.6", _elementwise),
    *_rows("vlrelu:prelu", "vsm", "v", _SPECIAL, "3.6", _elementwise),
    *_rows("vabs:abs vrelu:relu", "vm", "v", _NUMBERS, "3.6", _elementwise),
    *_rows("vexp:exp vln:log vsqrt:sqrt vrsqrt:rsqrt", "vm", "v", _SPECIAL, "3.6", _elementwise),
    *_rows("vaddrelu:add vsubrelu:sub", "vvm", "v", _NUMBERS, "3.6", arithmetic.then_positive),
    *_rows("vand:and vor:or vxor:xor", "vvm", "v", _PAYLOADS, "3.6", _bitwise),
    *_rows("vnot:not", "vm", "v", _PAYLOADS, "3.6", _bitwise),
    Operation("vneg", ("vm",), "v", _NUMBERS, arithmetic.negated, "3.6"),
    Operation("vrec", ("vm",), "v", _SPECIAL, arithmetic.reciprocal, "3.6"),
    Operation("vmula", ("vvvm",), "v", _NUMBERS, arithmetic.accumulated, "3.7"),
    Operation("vaxpy", ("vvsm",), "v", _SPECIAL, arithmetic.accumulated, "3.7"),
    Operation("vexpdif", ("vvmw",), "v", _SPECIAL, arithmetic.exponential_difference, "3.7", _EXPONENTIALS),
    *(Operation(name, ("vvm",), "vm", _WORDS_32, arithmetic.with_carry, "3.7") for name in ("vaddc", "vsubc")),
    *(Operation(name, ("vvmm",), "vm", _WORDS_32, arithmetic.with_carry, "3.7") for name in ("vaddcs", "vsubcs")),
    Operation("vmull", ("vvm",), "vv", _WORDS_32, arithmetic.multiplied_long, "3.7"),
    Operation("vcmp", ("vvmw",), "m", _NUMBERS, arithmetic.compared, "3.8"),
    Operation("vcmps", ("vsmw",), "m", _NUMBERS, arithmetic.compared, "3.8"),
    Operation("vsel", ("vvm",), "v", _PAYLOADS, arithmetic.selected, "3.8"),
    Operation("vselr", ("vv",), "v", _PAYLOADS, rearranging.gathered_lanes, "3.9"),
    Operation("vintlv", ("vv",), "vv", _PAYLOADS, rearranging.interleaved, "3.9"),
    Operation("vdintlv", ("vv",), "vv", _PAYLOADS, rearranging.deinterleaved, "3.9"),
    Operation("vbr", ("s",), "v", _PAYLOADS, rearranging.broadcast, "3.9"),
    Operation("vdup", ("smw", "sm", "vmw", "vm"), "v", _PAYLOADS, rearranging.duplicated, "3.9"),
    Operation("vci", ("sw", "s"), "v", ("i8", "i16", "i32", "f16", "f32"), rearranging.counted_up, "3.9"),
    Operation("vpack", ("vw",), "v", tuple(_PACKED), rearranging.packed, "3.9", _PACKED),
    *(
        Operation(name, ("vn", "vw"), "v", tuple(_EXTENDED), rearranging.unpacked, "3.9", _EXTENDED)
        for name in ("vsunpack", "vzunpack")
    ),
    Operation("vsqz", ("vm",), "v", _PAYLOADS, rearranging.squeezed, "3.9"),
    Operation("vusqz", ("vm",), "v", ("i8", "i16", "i32"), rearranging.active_below, "3.9"),
    Operation("vbitcast", ("v",), "v", _EVERY, rearranging.same_bytes, "3.9", _BITCAST),
    Operation("vcadd", ("vm",), "v", _NUMBERS, reductions.reduced("add", 1), "3.10", _SUMS),
    *_rows("vcmax:max vcmin:min", "vm", "v", _NUMBERS, "3.10", lambda what: reductions.reduced(what, 1)),
    *_rows("vcgadd:add vcgmax:max vcgmin:min", "vm", "v", _NUMBERS, "3.10",
           lambda what: reductions.reduced(what, reductions.BLOCKS)),
    Operation("vcpadd", ("vm",), "v", _SPECIAL, reductions.reduced("add", None), "3.10"),
    Operation("plt", ("n",), "mn", _PREDICATES, predicates.counted, "5.1"),
    Operation("pltm", ("nn",), "m", _PREDICATES, predicates.counted_piece, "5.1"),
    Operation("pset", ("w",), "m", _PREDICATES, predicates.pattern, "5.1"),
    Operation("pge", ("w",), "m", _PREDICATES, predicates.pattern, "5.1"),
    *(Operation(name, ("mmm",), "m", _PREDICATES, predicates.logic, "5.2") for name in ("pand", "por", "pxor")),
    Operation("pnot", ("mm",), "m", _PREDICATES, predicates.inverted, "5.2"),
    Operation("psel", ("mmm",), "m", _PREDICATES, predicates.chosen, "5.2"),
    Operation("ppack", ("mw",), "m", _PREDICATES, predicates.packed, "5.3"),
    Operation("punpack", ("mw",), "m", _PREDICATES, predicates.unpacked, "5.3"),
    Operation("pintlv", ("mm",), "mm", _PREDICATES, predicates.interleaved, "5.3"),
    Operation("pdintlv", ("mm",), "mm", _PREDICATES, predicates.deinterleaved, "5.3"),
    Operation("pbitcast", ("m",), "m", _PREDICATES, predicates.same_bits, "5.3"),
)  # fmt: skip

OPERATIONS: Mapping[str, Operation] = {row.name: row for row in _TABLE}
"""Rows by name; predicate instructions without the `_b8`, `_b16`, `_b32` that their text has."""


def execute(operands: Operands) -> tuple[Value, ...]:
    """Run the instruction that the operands name; return its results in the order of the text.

    Raises:
        IllegalError: no such instruction, a format that it does not take, or as the instruction's function says.
    """
    row = OPERATIONS.get(operands.name)
    if row is None:
        raise IllegalError(f"no instruction {operands.name}", legal=OPERATIONS)
    if row.types and operands.element.name not in row.types:
        raise IllegalError(f"{operands.name} does not take {operands.element.name}", legal=row.types)
    return row.function(operands)
