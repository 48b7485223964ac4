"""What the instructions of a vector operation take beside registers: scalars, neutral values, pads, as text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from castsim.execution.dataflow.transfers import pad_code
from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.vector_operations.arithmetic import constant_codes
from castsim.execution.vector_operations.behaviour import Behaviour, compared_format
from castsim.execution.vector_operations.elements import numbers
from castsim.execution.vector_operations.reductions import neutral_code
from castsim.execution.vector_operations.shapes import vector_operand
from castsim.isa.formats import Format, IntFormat, format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, VectorOperation
from castsim.machines.vector_function.expansion.registers import Held, Registers
from castsim.machines.vector_function.expansion.texts import mask, vector


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


def code_text(held: Registers, code: int, fmt: Format) -> tuple[str, str]:
    """Return the name and type of a constant scalar by its code; unsigned integers are written as signless ones."""
    if isinstance(fmt, IntFormat):
        signed = code - (1 << fmt.bits) if code >> (fmt.bits - 1) & 1 else code
        kind = f"i{fmt.bits}"
        return held.out.constant(signed, kind), kind
    value = float(numbers(np.array([code], f"<u{fmt.storage_bits // 8}"), fmt)[0])
    exact = np.isfinite(value) and len(repr(value)) <= 8 and "e" not in repr(value)
    return held.out.number(repr(value) if exact else f"0x{code:0{fmt.storage_bits // 4}X}", fmt.name), fmt.name


def scalar_text(held: Registers, given: Given) -> tuple[str, str]:
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


def scalar_register(held: Registers, given: Given) -> str:
    """Return the key of a register whose lanes all hold the constant operand."""
    if given.scalar_name is None:
        return constant_register(held, "scalar", given.scalar, given.format)
    prelude = held.prelude
    assert prelude is not None
    key = f"scalar {given.scalar_name}"
    if key not in prelude.registers:
        value, kind = scalar_text(held, given)
        width = given.format.storage_bits
        text = f"pto.vdup {value}, {held.every(width)} : {kind}, {mask(width)} -> {vector(kind)}"
        prelude.registers[key] = Held(prelude.out.define("scalar", text), kind)
    held.registers[key] = prelude.registers[key]
    return key


def constant_register(held: Registers, name: str, code: int, fmt: Format) -> str:
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
        text = f"pto.vdup {value}, {held.every(width)} : {kind}, {mask(width)} -> {vector(element)}"
        prelude.registers[key] = Held(prelude.out.define(name, text), element)
    held.registers[key] = prelude.registers[key]
    return key
