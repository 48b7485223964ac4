"""Instructions of vector operations other than casts, by a rule for each mnemonic of the kernels.

Registers have the names of the kernel; an additional operand of the micro instruction, beyond those of the kernel,
is the constant of the operation. Source: docs/reference/micro.md sections 3.6 to 3.10, 7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from castsim.execution.pipe_operations import pad_code
from castsim.execution.tree import ResolvedTileOp
from castsim.execution.vector_operations.arithmetic import constant_codes, neutral_code
from castsim.execution.vector_operations.shapes import numbers, vector_operand
from castsim.execution.vector_operations.target_rules import Behaviour, compared_format
from castsim.isa.dataclass import dataclass
from castsim.isa.formats import Format, IntFormat, format_named
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import MaskType, MicroOperation, ScalarType, vector
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, VectorOperation
from castsim.machines.vector_function.function_operations import LONG_DIVISION, width_of
from castsim.tools.expand.registers import NamedRegisters, unwritten
from castsim.tools.micro_builder import INDEX, Pred, Reg, Use

# What the instructions of a vector operation take beside registers: scalars, neutral values, pads, as text.


@dataclass(slots=True)
class Given:
    """A vector operation being written, with its known properties in addition to its loop nests.

    `waiting` is a source of the instruction after the next one, if three are added.
    """

    work: ResolvedTileOp
    behaviour: Behaviour
    structure: str
    waiting: str | None = None
    scalar_name: str | None = None
    """The run-time value of the scalar operand; None if its code is known."""

    @property
    def operation(self) -> VectorOperation:
        """The operation."""
        return VECTOR_OPERATIONS[self.work.mnemonic]

    @property
    def format(self) -> Format:
        """The format of its computation."""
        return format_named(compared_format(self.work))

    @property
    def vector_first(self) -> bool:
        """Whether the operand that is spread over rows precedes the tile."""
        return self.operation.kind is Kind.ROW_BROADCAST and vector_operand(self.work) == 0

    @property
    def scalar(self) -> int:
        """The code of the constant operand: the scalar, or the function's own constant.

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
        """Whether the constant operand precedes the tile."""
        return self.work.scalar_first if self.work.scalars else self.operation.function != "neg"

    @property
    def pad(self) -> int:
        """The code of the padding."""
        return pad_code(self.work.dst.format, self.work.dst.type.pad)

    def neutral(self, fmt: Format) -> int | None:
        """Return the code with which an accumulation starts; None if it must start from its first element.

        Rows start so in the model too. Columns start from their first row: a neutral value gives the same except for
        NaN, infinity and a single row, which is returned unchanged.
        """
        function = self.operation.function
        if self.operation.kind is Kind.ROW_REDUCE or isinstance(fmt, IntFormat):
            return neutral_code(function, fmt)
        settled = function in ("add", "mul") or self.behaviour.choice("maximum_of_nan") == "nan"
        if self.behaviour.saturates or not settled or self.work.sources[0].valid_rows == 1:
            return None
        return fmt.sign_bit if function == "add" else neutral_code(function, fmt)


def constant_use(registers: NamedRegisters, code: int, fmt: Format) -> Use:
    """Return a constant scalar by its code; unsigned integers are written as signless ones."""
    if isinstance(fmt, IntFormat):
        signed = code - (1 << fmt.bits) if code >> (fmt.bits - 1) & 1 else code
        return registers.integer(signed, f"i{fmt.bits}")
    value = float(numbers(np.array([code], f"<u{fmt.storage_bits // 8}"), fmt)[0])
    exact = np.isfinite(value) and len(repr(value)) <= 8 and "e" not in repr(value)
    return registers.out.scalar(value if exact else code, ScalarType(fmt.name))


def scalar_use(registers: NamedRegisters, given: Given) -> Use:
    """Return the constant operand."""
    fmt, name = given.format, given.scalar_name
    if name is None:
        return constant_use(registers, given.scalar, fmt)
    kind = ScalarType(f"i{fmt.bits}" if isinstance(fmt, IntFormat) else fmt.name)
    if given.operation.function == "sub":
        operands = (registers.out.constant(0, kind), name) if isinstance(fmt, IntFormat) else (name,)
        name = registers.out.arith("subi" if len(operands) > 1 else "negf", operands, kind, "minus")
    return name, kind


def scalar_register(registers: NamedRegisters, given: Given) -> str:
    """Return the key of a register with the constant operand in all lanes."""
    if given.scalar_name is None:
        return constant_register(registers, "scalar", given.scalar, given.format)
    return _at_head(registers, f"scalar {given.scalar_name}", 0, given.format, lambda: scalar_use(registers, given))


def constant_register(registers: NamedRegisters, name: str, code: int, fmt: Format) -> str:
    """Return the key of a register with a code in all lanes; it is created on first use."""
    if fmt.storage_bits == 8 and not isinstance(fmt, IntFormat):
        fmt = format_named("u8")  # there are no scalars of such floats
    return _at_head(registers, f"{name} {fmt.name}", code, fmt, lambda: constant_use(registers, code, fmt))


def _at_head(registers: NamedRegisters, name: str, code: int, fmt: Format, scalar: Callable[[], Use]) -> str:
    """Return the key of a register that holds a scalar in all lanes, made ahead of the loops."""
    out, bits = registers.out, fmt.storage_bits

    def emit() -> Reg:
        value = scalar()
        assert isinstance(value[1], ScalarType)
        return out.register("vdup", [value, out.whole(bits).use], value[1].name)

    key = f"{name} {code}"
    registers.registers[key] = out.register_once((name, bits, code), emit)
    return key


SETTLED = "only --arg makes a constant"

_UNSUPPORTED: Mapping[str, str] = {
    "row_argument": "an extreme with its column, which no micro-level vector instruction computes",
    "column_argument": "row numbers in registers twice as wide as those of the elements, or NaN that counts",
    "gather": "a gather whose numbers are turned into addresses on the way",
    "pattern_gather": "a pattern of elements in a predicate, which the listing of its kernel leaves out",
    "compare_gather": "counts of chosen elements, which the listing of its kernel leaves out",
    "sort": "the sort unit, which has no vector instruction",
    "merge": "the sort unit, which has no vector instruction",
    "transposition": "scattered or gathered addresses, whose constants the listing of its kernel leaves out",
    "concatenation": "scattered addresses, whose constants the listing of its kernel leaves out",
    "counted_concatenation": "scattered addresses, whose constants the listing of its kernel leaves out",
    "quantisation": "conversions in several steps, whose constants the listing of its kernel leaves out",
    "dequantisation": "widening loads of a quarter, which are timed only",
    "packing": "a store of parts of lanes without a conversion",
    "combination": "parts of several operands or results, which the listing of its kernel leaves out",
    "block_quantisation": "passes over exponents, whose constants the listing of its kernel leaves out",
    "matrix": "no vector instructions",
}
"""Structures of kernels that cannot be written, with the reason."""


def check_structure(given: Given) -> None:
    """Reject an operation whose kernel the instruction does not support.

    Raises:
        IllegalError: the instruction does not support its kernel.
    """
    reason = _UNSUPPORTED.get(given.structure)
    function, fmt = given.operation.function, given.format
    if function == "pow":
        reason = "steps for negative and special operands that the listing of its kernel leaves out"
    elif function in ("rem", "fmod"):
        reason = "conversions and a correction that the listing of its kernel leaves out"
    elif given.structure == "row_reduction" and fmt.storage_bits == 8:
        reason = "8-bit lanes that are widened on the way"
    elif given.structure == "row_product" and not isinstance(fmt, IntFormat):
        source = given.work.sources[0]
        if source.valid_cols > 2048 // fmt.storage_bits or given.behaviour.choice("lane_order") == "sequential":
            reason = "products in another order than the operation's, which rounds after each"
    if reason is not None:
        raise unwritten(reason)


def write_compute(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write an instruction that computes.

    Raises:
        IllegalError: the micro level has no equivalent instruction.
    """
    if operation.mnemonic == LONG_DIVISION:
        raise unwritten("the long body of the high-precision division")
    rule = _RULES.get(operation.mnemonic)
    if rule is None:
        raise unwritten(f"an instruction {operation.mnemonic}")
    rule(registers, given, operation)


def _governing(registers: NamedRegisters, width: int, operation: MicroOperation) -> Use:
    """Return the mask of an instruction: that of the trip, all lanes where registers are accumulated."""
    accumulates = not set(operation.results).isdisjoint(operation.operands)
    governing = None if accumulates else registers.predicates.get(registers.governing)
    return (governing if governing is not None and governing.bits == width else registers.out.whole(width)).use


def _apply(
    registers: NamedRegisters, operation: MicroOperation, names: Sequence[str], *extra: Use, result: str = ""
) -> None:
    """Write an instruction on registers of one element, then on scalars, under the mask of the trip."""
    element = registers.register(names[0]).element
    uses = [*(registers.use(name, element) for name in names), *extra]
    uses.append(_governing(registers, min(32, lane_bits(element)), operation))
    registers.define(operation.results[0], result or element, operation.mnemonic, uses)


_ELEMENTS = dict.fromkeys(("vdiv", "vprelu", "vlrelu", "vaxpy"), ("f16", "f32"))
"""Element types of instructions that support few."""


def _check_element(registers: NamedRegisters, operation: MicroOperation) -> None:
    element, legal = registers.register(operation.operands[0]).element, _ELEMENTS.get(operation.mnemonic)
    if legal is not None and element not in legal:
        raise unwritten(f"an instruction {operation.mnemonic} on {element}, which takes {' and '.join(legal)},")


def _pair(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """An instruction of two registers. One that is missing is the constant; a third waits for the next instruction."""
    names = list(operation.operands)
    if len(names) == 1:
        if given.waiting is not None:
            names.append(given.waiting)
        else:
            constant = scalar_register(registers, given)
            names = [constant, *names] if given.constant_first else [*names, constant]
    elif len(names) > 2:
        *names, given.waiting = names
    elif given.vector_first and operation.results == ("r0",):
        names.reverse()
    _check_element(registers, operation)
    if given.structure == "row_product" and operation.results[0] == operation.operands[0]:
        names[1] = _filled(registers, given, names[1])
    _apply(registers, operation, names)


def _filled(registers: NamedRegisters, given: Given, name: str) -> str:
    """Return a register whose lanes beyond the row are ones."""
    ones = constant_register(registers, "ones", given.neutral(given.format) or 0, given.format)
    element, governing = registers.register(name).element, registers.mask(registers.governing).use
    registers.define("filled", element, "vsel", [registers.use(name, element), registers.use(ones, element), governing])
    return "filled"


def _with_scalar(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """An instruction of a register and the constant."""
    _check_element(registers, operation)
    _apply(registers, operation, operation.operands, scalar_use(registers, given))


def _by_amount(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write a shift by the constant, which fits an i16 for every element type; all larger amounts are equivalent."""
    if given.scalar_name is not None:
        raise unwritten(f"a shift by %{given.scalar_name}, of which {SETTLED}")
    bits = given.format.bits
    code = given.scalar
    signed = isinstance(given.format, IntFormat) and given.format.signed
    amount = code - (1 << bits) if signed and code >> (bits - 1) & 1 else code
    if not -(1 << 15) <= amount < 1 << 15:
        amount = amount % bits if given.behaviour.choice("shift_beyond_width") == "modulo" else bits
    _apply(registers, operation, operation.operands, registers.integer(amount, "i16"))


def _alone(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write an instruction with one register."""
    del given
    _apply(registers, operation, operation.operands)


def _duplicate(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """The constant in all lanes, or the first lane of a register."""
    (result,) = operation.results
    if given.structure == "row_broadcast":
        element = registers.register(operation.operands[0]).element
        uses = [registers.use(operation.operands[0], element), registers.out.whole(min(32, lane_bits(element))).use]
        registers.define(result, element, "vdup", uses, position="LOWEST")
        return
    value, kind = scalar_use(registers, given)
    assert isinstance(kind, ScalarType)
    registers.define(
        result, kind.name, "vdup", [(value, kind), registers.out.whole(given.work.dst.format.storage_bits).use]
    )


def _accumulated_product(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write the sum of the destination and a tile times the constant."""
    (source,) = operation.operands
    if registers.register(source).element != given.work.dst.format.name:
        raise unwritten("f16 elements that are widened on the way")
    _check_element(registers, operation)
    _apply(registers, operation, (source, "before"), scalar_use(registers, given))


def _reduce(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """A reduction to the first lane; sums of 16-bit integers have 32 bits."""
    del given
    element = registers.register(operation.operands[0]).element
    wide = operation.mnemonic == "vcadd" and isinstance(format_named(element), IntFormat) and lane_bits(element) == 16
    _apply(registers, operation, operation.operands, result=f"{element[0]}32" if wide else "")


def _narrow(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """The low halves of 32-bit sums."""
    (source,), (result,) = operation.operands, operation.results
    uses = [registers.use(source, registers.register(source).element), registers.out.whole(32).use]
    registers.define(result, given.work.dst.format.name, "vcvt", uses, sat="NOSAT", part="EVEN")


def _halves(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write neighbouring lanes to two registers, of which the first replaces the source."""
    del given
    (source,), (odd,) = operation.operands, operation.results
    element = registers.register(source).element
    results = [(half, vector(element)) for half in ("even", odd)]
    names, home = registers.out.micro("vdintlv", [registers.use(source, element)] * 2, results)
    registers.registers[source], registers.registers[odd] = (Reg(name, element, home) for name in names)


def _compare(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """A comparison: a predicate."""
    names, element = operation.operands, registers.register(operation.operands[0]).element
    width, uses = min(32, lane_bits(element)), [registers.use(name, element) for name in names]
    if len(names) == 1:
        uses.append(scalar_use(registers, given))
    uses.append(_governing(registers, width, operation))
    mnemonic = "vcmp" if len(names) > 1 else "vcmps"
    registers.define_mask(operation.results[0], width, mnemonic, uses, cmp=given.work.mode or "eq")


def _select(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write a selection by a predicate, which the last source names."""
    *names, chosen = operation.operands
    if len(names) == 1:
        names.append(scalar_register(registers, given))
    element = registers.register(names[0]).element
    mask = registers.mask(chosen).use
    registers.define(
        operation.results[0], element, "vsel", [*(registers.use(operand, element) for operand in names), mask]
    )


def _spread(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write the conversion of a bit per 16-bit lane to one per 32-bit lane."""
    del given
    registers.spread(operation)


def _spread_both(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write the spread of both halves of a predicate: interleaved with itself, it holds every bit twice."""
    del given
    (mask,) = (registers.mask(operand) for operand in operation.operands)
    results = [(result_name, MaskType(mask.bits)) for result_name in operation.results]
    names, home = registers.out.micro(f"pintlv_b{mask.bits}", [mask.use] * 2, results)
    for result, name in zip(operation.results, names, strict=True):
        registers.predicates[result] = registers.out.as_bits(Pred(name, mask.bits, home), 2 * mask.bits)


def _join(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write the predicates of two registers of 32-bit lanes as one of 16-bit lanes."""
    del given
    narrow = [registers.out.as_bits(registers.mask(operand), 8).use for operand in operation.operands]
    results = [(result, MaskType(8)) for result in (*operation.results, "rest")]
    (name, _), home = registers.out.micro("pdintlv_b8", narrow, results)
    registers.predicates[operation.results[0]] = registers.out.as_bits(Pred(name, 8, home), 16)


def _pack(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write the predicate of 32-bit lanes as one of 16-bit lanes with a clear upper half."""
    del given
    registers.define_mask(operation.results[0], 16, "ppack", [registers.mask(operation.operands[0]).use], half="LOWER")


def _choose(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Write the bits of one predicate where a third is set, otherwise of another."""
    del given
    masks = [registers.mask(operand).use for operand in operation.operands]
    registers.define_mask(operation.results[0], width_of(operation), "psel", masks)


def _ascend(registers: NamedRegisters, given: Given, operation: MicroOperation) -> None:
    """Numbers that ascend or descend from the constant, further on in every trip."""
    kind = ScalarType(f"i{given.work.dst.format.bits}")
    start, _ = scalar_use(registers, given)
    moved = registers.out.converted("index_cast", registers.position, INDEX, kind)
    step, order = ("subi", "DESC") if given.work.descending else ("addi", "ASC")
    base = registers.out.arith(step, (start, moved), kind, "base")
    registers.define(operation.results[0], kind.name, "vci", [(base, kind)], order=order)


_Rule = Callable[[NamedRegisters, Given, MicroOperation], None]
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
"""The writers of the kernels' mnemonics."""


def accumulated(registers: NamedRegisters, given: Given, name: str, width: int) -> str | None:
    """Return the key of the register with which an accumulation starts; None if that is its first element."""
    fmt = given.format
    if width != fmt.storage_bits:
        fmt = format_named(f"{fmt.name[0]}{width}")
    code = given.neutral(fmt)
    if code is None:
        return None
    key = constant_register(registers, "neutral", code, fmt)
    if registers.registers[key].element != fmt.name:
        registers.registers[name] = registers.out.as_element(registers.registers[key], fmt.name)
        return name
    return key
