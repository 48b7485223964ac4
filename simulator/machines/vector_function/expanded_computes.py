"""Instructions of vector operations other than casts: a rule for each mnemonic of the kernels.

Registers have the names of the kernel; where the micro instruction takes an operand more than the kernel has named, it
is the constant of the operation. Source: docs/reference/micro.md sections 3.6 to 3.10, 7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from castsim.execution.dataflow.pipe_operations import pad_code
from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.vector_operations.arithmetic import constant_codes, neutral_code
from castsim.execution.vector_operations.behaviour import Behaviour, compared_format
from castsim.execution.vector_operations.shapes import numbers, vector_operand
from castsim.isa.formats import Format, IntFormat, format_named
from castsim.isa.pto.tile_types import lane_bits
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, VectorOperation
from castsim.machines.vector_function.function_operations import LONG_DIVISION, Compute
from castsim.machines.vector_function.register_operations import Held, NamedRegisters, mask_type, unwritten, vector

# What the instructions of a vector operation take beside registers: scalars, neutral values, pads, as text.


@dataclass(slots=True)
class Given:
    """A vector operation whose instructions are written: what is known of it beside its loop nests.

    `waiting` is a source that the instruction behind the next is to take: of three that are added up.
    """

    work: ResolvedTileOp
    behaviour: Behaviour
    structure: str
    waiting: str | None = None
    scalar_name: str | None = None
    """The value of the scalar operand where only the running program knows it; its code then stands for nothing."""

    @property
    def operation(self) -> VectorOperation:
        """What the operation is."""
        return VECTOR_OPERATIONS[self.work.mnemonic]

    @property
    def format(self) -> Format:
        """The format that it computes in."""
        return format_named(compared_format(self.work))

    @property
    def vector_first(self) -> bool:
        """Whether the operand that is spread over rows stands before the tile."""
        return self.operation.kind is Kind.ROW_BROADCAST and vector_operand(self.work) == 0

    @property
    def scalar(self) -> int:
        """The code of the constant operand: the scalar, or what the function has for one.

        A difference is the sum with the negated scalar.
        """
        fmt = self.format
        if not self.work.scalars:
            return int(constant_codes(-1 if self.operation.function == "neg" else 1, fmt)[0])
        code = self.work.scalars[0][0]
        if self.operation.function != "sub":
            return code
        return -code % (1 << fmt.bits) if isinstance(fmt, IntFormat) else code ^ fmt.sign_bit

    @property
    def constant_first(self) -> bool:
        """Whether the constant operand stands before the tile."""
        return self.work.scalar_first if self.work.scalars else self.operation.function != "neg"

    @property
    def pad(self) -> int:
        """The code that fills up."""
        return pad_code(self.work.dst.format, self.work.dst.type.pad)

    def neutral(self, fmt: Format) -> int | None:
        """Return the code from which an accumulation starts; None if it has to start from its first element.

        Rows start so in the model too. Columns start from their first row: a neutral value gives the same but for NaN,
        infinity and a single row, where that is returned as it is.
        """
        function = self.operation.function
        if self.operation.kind is Kind.ROW_REDUCE or isinstance(fmt, IntFormat):
            return neutral_code(function, fmt)
        settled = function in ("add", "mul") or self.behaviour.choice("maximum_of_nan") == "nan"
        if self.behaviour.saturates or not settled or self.work.sources[0].valid_rows == 1:
            return None
        return fmt.sign_bit if function == "add" else neutral_code(function, fmt)


def code_text(held: NamedRegisters, code: int, fmt: Format) -> tuple[str, str]:
    """Return the name and type of a constant scalar by its code; unsigned integers are written as signless ones."""
    if isinstance(fmt, IntFormat):
        signed = code - (1 << fmt.bits) if code >> (fmt.bits - 1) & 1 else code
        kind = f"i{fmt.bits}"
        return held.out.constant(signed, kind), kind
    value = float(numbers(np.array([code], f"<u{fmt.storage_bits // 8}"), fmt)[0])
    exact = np.isfinite(value) and len(repr(value)) <= 8 and "e" not in repr(value)
    return held.out.number(repr(value) if exact else f"0x{code:0{fmt.storage_bits // 4}X}", fmt.name), fmt.name


def scalar_text(held: NamedRegisters, given: Given) -> tuple[str, str]:
    """Return the name and type of the constant operand."""
    fmt, name = given.format, given.scalar_name
    if name is None:
        return code_text(held, given.scalar, fmt)
    kind = f"i{fmt.bits}" if isinstance(fmt, IntFormat) else fmt.name
    if given.operation.function != "sub":
        return name, kind
    if isinstance(fmt, IntFormat):
        return held.out.define("minus", f"arith.subi {held.out.constant(0, kind)}, {name} : {kind}"), kind
    return held.out.define("minus", f"arith.negf {name} : {kind}"), kind


def scalar_register(held: NamedRegisters, given: Given) -> str:
    """Return the key of a register whose lanes all hold the constant operand."""
    if given.scalar_name is None:
        return constant_register(held, "scalar", given.scalar, given.format)
    prelude = held.prelude
    assert prelude is not None
    key = f"scalar {given.scalar_name}"
    if key not in prelude.registers:
        value, kind = scalar_text(held, given)
        width = given.format.storage_bits
        text = f"pto.vdup {value}, {held.every(width)} : {kind}, {mask_type(width)} -> {vector(kind)}"
        prelude.registers[key] = Held(prelude.out.define("scalar", text), kind)
    held.registers[key] = prelude.registers[key]
    return key


def constant_register(held: NamedRegisters, name: str, code: int, fmt: Format) -> str:
    """Return the key of a register whose lanes all hold a code; it is made once, where it is first wanted."""
    key = f"{name} {fmt.name} {code}"
    prelude = held.prelude
    assert prelude is not None  # of every function that is no cast
    if key not in prelude.registers:
        width = fmt.storage_bits
        if width == 8 and not isinstance(fmt, IntFormat):
            fmt = format_named("u8")  # there are no scalars of such floats
        value, kind = code_text(held, code, fmt)
        element = kind if isinstance(fmt, IntFormat) else fmt.name
        text = f"pto.vdup {value}, {held.every(width)} : {kind}, {mask_type(width)} -> {vector(element)}"
        prelude.registers[key] = Held(prelude.out.define(name, text), element)
    held.registers[key] = prelude.registers[key]
    return key


SETTLED = "only --arg makes a constant"

_UNSUPPORTED: Mapping[str, str] = {
    "row_argument": "an extreme with its column, which no vector instruction of the micro level gives",
    "column_argument": "row numbers in registers twice as wide as those of the elements, or NaN that counts",
    "gather": "a gather whose numbers are turned into addresses on the way",
    "pattern_gather": "a pattern of elements in a predicate, which no text of its kernel states",
    "compare_gather": "counts of chosen elements, which no text of its kernel states",
    "sort": "the sort unit, which has no vector instruction",
    "merge": "the sort unit, which has no vector instruction",
    "transposition": "scattered or gathered addresses, whose constants no text of its kernel states",
    "concatenation": "scattered addresses, whose constants no text of its kernel states",
    "counted_concatenation": "scattered addresses, whose constants no text of its kernel states",
    "quantisation": "conversions in several steps, whose constants its kernel leaves out",
    "dequantisation": "widening loads of a quarter, which are timed only",
    "packing": "a store of parts of lanes without a conversion",
    "block_quantisation": "passes over exponents, whose constants its kernel leaves out",
    "matrix": "no vector instructions",
}
"""Structures of kernels that are not written, and what it is that they have."""


def check_structure(given: Given) -> None:
    """Refuse an operation whose kernel is not known to the instruction.

    Raises:
        IllegalError: it is one of those.
    """
    found = _UNSUPPORTED.get(given.structure)
    function, fmt = given.operation.function, given.format
    if function in ("rem", "fmod"):
        found = "conversions and a correction that its kernel leaves out"
    elif given.structure == "row_reduction" and fmt.storage_bits == 8:
        found = "8-bit lanes that are widened on the way"
    elif given.structure == "row_product" and not isinstance(fmt, IntFormat):
        source = given.work.sources[0]
        if source.valid_cols > 2048 // fmt.storage_bits or given.behaviour.choice("lane_order") == "sequential":
            found = "products in another order than the operation's, which rounds after each"
    if found is not None:
        raise unwritten(found)


def write_compute(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """Write an instruction that computes.

    Raises:
        IllegalError: the micro level has none that does the same.
    """
    if operation.mnemonic == LONG_DIVISION:
        raise unwritten("the long body of the high-precision division")
    rule = _RULES.get(operation.mnemonic)
    if rule is None:
        raise unwritten(f"an instruction {operation.mnemonic}")
    rule(held, given, operation)


def _governing(held: NamedRegisters, width: int, operation: Compute) -> str:
    """Return the mask of an instruction: that of the trip, all lanes where registers are accumulated."""
    accumulates = not set(operation.results).isdisjoint(operation.sources)
    if accumulates or held.governing not in held.predicates:
        return held.every(width)
    name, bits = held.mask(held.governing)
    return name if bits == width else held.every(width)


def _apply(held: NamedRegisters, operation: Compute, names: Sequence[str], extra: Sequence[tuple[str, str]] = (),
           *, mnemonic: str | None = None, result: str | None = None, words: str = "") -> None:  # fmt: skip
    """Write an instruction on registers of one element, then on scalars, under the mask of the trip."""
    element = held.register(names[0]).element
    width = min(32, lane_bits(element))
    values = [*(held.as_element(name, element) for name in names), *(value for value, _ in extra)]
    kinds = [*[vector(element)] * len(names), *(kind for _, kind in extra), mask_type(width)]
    text = f"pto.{mnemonic or operation.mnemonic} {', '.join(values)}, {_governing(held, width, operation)}{words}"
    held.define(operation.results[0], result or element, text, f"{', '.join(kinds)} -> {vector(result or element)}")


def _check_element(held: NamedRegisters, name: str, legal: Sequence[str], operation: Compute) -> None:
    element = held.register(name).element
    if element not in legal:
        raise unwritten(f"an instruction {operation.mnemonic} on {element}, which takes {' and '.join(legal)},")


def _pair(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """An instruction of two registers. One that is missing is the constant; a third waits for the next instruction."""
    names = list(operation.sources)
    if len(names) == 1:
        if given.waiting is not None:
            names.append(given.waiting)
        else:
            constant = scalar_register(held, given)
            names = [constant, *names] if given.constant_first else [*names, constant]
    elif len(names) > 2:
        *names, given.waiting = names
    elif given.vector_first and operation.results == ("r0",):
        names.reverse()
    if operation.mnemonic in ("vdiv", "vprelu"):
        _check_element(held, operation.sources[0], ("f16", "f32"), operation)
    if given.structure == "row_product" and operation.results[0] == operation.sources[0]:
        names[1] = _filled(held, given, names[1])
    _apply(held, operation, names)


def _filled(held: NamedRegisters, given: Given, name: str) -> str:
    """Return a register whose lanes beyond the row are ones."""
    ones = constant_register(held, "ones", given.neutral(given.format) or 0, given.format)
    element = held.register(name).element
    kind, (governing, width) = vector(element), held.mask(held.governing)
    text = f"pto.vsel {held.as_element(name, element)}, {held.as_element(ones, element)}, {governing}"
    held.define("filled", element, text, f"{kind}, {kind}, {mask_type(width)} -> {kind}")
    return "filled"


def _with_scalar(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """An instruction of a register and the constant."""
    if operation.mnemonic == "vlrelu":
        _check_element(held, operation.sources[0], ("f16", "f32"), operation)
    _apply(held, operation, operation.sources, [scalar_text(held, given)])


def _by_amount(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """A shift by the constant, which an i16 holds whatever the element; all amounts beyond that are alike."""
    if given.scalar_name is not None:
        raise unwritten(f"a shift by {given.scalar_name}, of which {SETTLED}")
    bits = given.format.bits
    code = given.scalar
    signed = isinstance(given.format, IntFormat) and given.format.signed
    amount = code - (1 << bits) if signed and code >> (bits - 1) & 1 else code
    if not -(1 << 15) <= amount < 1 << 15:
        if given.behaviour.choice("shift_beyond_width") == "modulo":
            amount %= bits
        else:
            amount = bits
    _apply(held, operation, operation.sources, [(held.out.constant(amount, "i16"), "i16")])


def _alone(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """An instruction of one register."""
    del given
    _apply(held, operation, operation.sources)


def _duplicate(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """The constant in all lanes, or the first lane of a register."""
    if given.structure == "row_broadcast":
        element = held.register(operation.sources[0]).element
        width = min(32, lane_bits(element))
        value = held.as_element(operation.sources[0], element)
        text = f'pto.vdup {value}, {held.every(width)} {{position = "LOWEST"}}'
        held.define(operation.results[0], element, text, f"{vector(element)}, {mask_type(width)} -> {vector(element)}")
        return
    fmt = given.work.dst.format
    value, kind = scalar_text(held, given)
    text = f"pto.vdup {value}, {held.every(fmt.storage_bits)}"
    element = kind if isinstance(fmt, IntFormat) else fmt.name
    held.define(operation.results[0], element, text, f"{kind}, {mask_type(fmt.storage_bits)} -> {vector(element)}")


def _accumulated_product(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """A tile times the constant, and what the destination holds."""
    (source,) = operation.sources
    if held.register(source).element != given.work.dst.format.name:
        raise unwritten("f16 elements that are widened on the way")
    _check_element(held, source, ("f16", "f32"), operation)
    _apply(held, operation, (source, "before"), [scalar_text(held, given)])


def _reduce(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """A reduction to the first lane; sums of 16-bit integers have 32 bits."""
    del given
    element = held.register(operation.sources[0]).element
    wide = operation.mnemonic == "vcadd" and isinstance(format_named(element), IntFormat) and lane_bits(element) == 16
    _apply(held, operation, operation.sources, result=f"{element[0]}32" if wide else None)


def _narrow(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """The low halves of 32-bit sums."""
    (source,), (result,) = operation.sources, operation.results
    element = held.register(source).element
    narrow = given.work.dst.format.name
    value, every = held.as_element(source, element), held.every(32)
    text = f'pto.vcvt {value}, {every} {{sat = "NOSAT", part = "EVEN"}}'
    held.define(result, narrow, text, f"{vector(element)}, {mask_type(32)} -> {vector(narrow)}")


def _halves(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """Neighbouring lanes in two registers, of which the first replaces the source."""
    del given
    (source,), (odd,) = operation.sources, operation.results
    element = held.register(source).element
    value, kind = held.as_element(source, element), vector(element)
    names = held.out.fresh("even"), held.out.fresh(odd)
    held.out.line(f"{', '.join(names)} = pto.vdintlv {value}, {value} : {kind}, {kind} -> {kind}, {kind}")
    held.registers[source], held.registers[odd] = (Held(name, element) for name in names)


def _compare(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """A comparison: a predicate."""
    word = given.work.mode or "eq"
    names, element = operation.sources, held.register(operation.sources[0]).element
    width = min(32, lane_bits(element))
    values, kinds = [held.as_element(name, element) for name in names], [vector(element)] * len(names)
    mnemonic = "vcmp"
    if len(names) == 1:
        value, kind = scalar_text(held, given)
        mnemonic, values, kinds = "vcmps", [*values, value], [*kinds, kind]
    governing = _governing(held, width, operation)
    text = f'pto.{mnemonic} {", ".join(values)}, {governing}, "{word}" : {", ".join(kinds)}, {mask_type(width)}'
    result = operation.results[0]
    held.predicates[result] = held.out.define(result, f"{text} -> {mask_type(width)}"), width


def _select(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """A choice by a predicate, of which the last source is the name."""
    *names, chosen = operation.sources
    if len(names) == 1:
        names.append(scalar_register(held, given))
    element = held.register(names[0]).element
    name, width = held.mask(chosen)
    kind, values = vector(element), [held.as_element(each, element) for each in names]
    text = f"pto.vsel {values[0]}, {values[1]}, {name}"
    held.define(operation.results[0], element, text, f"{kind}, {kind}, {mask_type(width)} -> {kind}")


def _spread(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """A bit for every lane of 16 bits becomes one for every lane of 32."""
    del given
    (source,), (result,) = operation.sources, operation.results
    name, width = held.mask(source)
    text = f'pto.punpack {name}, "LOWER" : {mask_type(width)} -> {mask_type(2 * width)}'
    held.predicates[result] = held.out.define(result, text), 2 * width


def _spread_both(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """The same of both halves of a predicate: interleaved with itself, it holds every bit twice."""
    del given
    (source,) = operation.sources
    name, width = held.mask(source)
    kind = mask_type(width)
    found = [held.out.fresh(each) for each in operation.results]
    text = f"pto.pintlv_b{width} {name}, {name} : {kind}, {kind} -> {kind}, {kind}"
    held.out.line(f"{', '.join(found)} = {text}")
    for result, value in zip(operation.results, found, strict=True):
        wide = f"pto.pbitcast {value} : {kind} -> {mask_type(2 * width)}"
        held.predicates[result] = held.out.define(result, wide), 2 * width


def _join(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """The predicates of two registers of 32-bit lanes as one of 16-bit lanes."""
    del given
    (one, other), (result,) = operation.sources, operation.results
    names = [held.mask(each)[0] for each in (one, other)]
    narrow = [
        held.out.define("half", f"pto.pbitcast {name} : {mask_type(32)} -> {mask_type(8)}") for name in names
    ]  # fmt: skip
    kind = mask_type(8)
    both = held.out.fresh(result), held.out.fresh("rest")
    held.out.line(f"{', '.join(both)} = pto.pdintlv_b8 {', '.join(narrow)} : {kind}, {kind} -> {kind}, {kind}")
    cast = held.out.define(result, f"pto.pbitcast {both[0]} : {kind} -> {mask_type(16)}")
    held.predicates[result] = cast, 16


def _pack(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """The predicate of 32-bit lanes as one of 16-bit lanes, of which the upper half is clear."""
    del given
    (source,), (result,) = operation.sources, operation.results
    text = f'pto.ppack {held.mask(source)[0]}, "LOWER" : {mask_type(32)} -> {mask_type(16)}'
    held.predicates[result] = held.out.define(result, text), 16


def _choose(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """Bits of one predicate where a third is set, of another elsewhere."""
    del given
    names = ", ".join(held.mask(each)[0] for each in operation.sources)
    kind, result = mask_type(operation.width), operation.results[0]
    text = f"pto.psel {names} : {kind}, {kind}, {kind} -> {kind}"
    held.predicates[result] = held.out.define(result, text), operation.width


def _ascend(held: NamedRegisters, given: Given, operation: Compute) -> None:
    """Numbers that ascend or descend from the constant, further on in every trip."""
    fmt = given.work.dst.format
    kind = f"i{fmt.bits}"
    start, _ = scalar_text(held, given)
    moved = held.out.define("moved", f"arith.index_cast {held.position} : index to {kind}")
    step, order = ("arith.subi", "DESC") if given.work.descending else ("arith.addi", "ASC")
    base = held.out.define("base", f"{step} {start}, {moved} : {kind}")
    text = f'pto.vci {base} {{order = "{order}"}}'
    held.define(operation.results[0], kind, text, f"{kind} -> {vector(kind)}")


_Rule = Callable[[NamedRegisters, Given, Compute], None]
_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(("vadd", "vsub", "vmul", "vdiv", "vmax", "vmin", "vand", "vor", "vxor"), _pair),
    **dict.fromkeys(("vshl", "vshr", "vprelu"), _pair),
    **dict.fromkeys(("vadds", "vmuls", "vmaxs", "vmins", "vlrelu"), _with_scalar),
    **dict.fromkeys(("vshls", "vshrs"), _by_amount),
    **dict.fromkeys(("vexp", "vln", "vsqrt", "vabs", "vrelu", "vnot"), _alone),
    **dict.fromkeys(("vcadd", "vcmax", "vcmin"), _reduce),
    "vdup": _duplicate,
    "vaxpy": _accumulated_product,
    "vcvt": _narrow,
    "vintlv_lanes": _halves,
    "vcmp": _compare,
    "vsel": _select,
    "punpack": _spread,
    "pintlv": _spread_both,
    "pdintlv": _join,
    "ppack": _pack,
    "psel": _choose,
    "vci": _ascend,
}
"""What writes a mnemonic of the kernels."""


def accumulated(held: NamedRegisters, given: Given, name: str, width: int) -> str | None:
    """Return the key of the register from which an accumulation starts; None if that is its first element."""
    fmt = given.format
    if width != fmt.storage_bits:
        fmt = format_named(f"{fmt.name[0]}{width}")
    code = given.neutral(fmt)
    if code is None:
        return None
    key = constant_register(held, "neutral", code, fmt)
    if held.registers[key].element != fmt.name:
        held.registers[name] = replace(held.registers[key], name=held.as_element(key, fmt.name), element=fmt.name)
        return name
    return key
