"""Moves, conversions and operators of C on values: constants are folded, the rest becomes instructions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from castsim.isa.tpc.forms import TARGET_SPELLINGS
from castsim.isa.tpc.program import COMPARISONS as SIGNS
from castsim.languages.tpc_c.code import WORD, Emitter, Value, base_of, member_text
from castsim.tools.tpc_compiler.c_language import (
    BOOL,
    FLOAT,
    INT,
    Array,
    CType,
    Group,
    Index,
    Mask,
    Pointer,
    Scalar,
    TensorType,
    Vector,
    common,
    promoted,
    vector_of,
)

COMPARISONS = {"<": "less", "<=": "leq", ">": "grt", ">=": "geq", "==": "eq", "!=": "neq"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
OPERATORS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_COMMUTATIVE = "+*&|^"


class Arithmetic(Emitter):
    """Values and operators."""

    # ------------------------------------------------------------------------------------------------------ moves

    def move(self, into: str, value: Value, predicate: str = "") -> None:
        """Copy a value of the same type into a register, given by its text."""
        kind = value.type
        if value.text == into and not value.known:
            return
        if isinstance(kind, Group):
            target = Value(kind, into)
            for index, member in enumerate(kind.members):
                word = "mov.i32" if isinstance(member, Scalar) else "mov"
                self.emit(f"{word} {member_text(target, index)}, {member_text(value, index)}", predicate)
        elif isinstance(kind, Vector | Mask):
            self.emit(f"mov {into}, {value.text}", predicate)
        elif isinstance(kind, Index):
            self.emit(f"mov b11111 {into}, {value.text}", predicate)
        elif isinstance(kind, Pointer) and kind.space == "global":
            if not self.since("greco"):
                message = f"a copy of a global pointer needs an instruction that {self.generation} lacks"
                raise self.refused(message, "gen_addr for each pointer")
            self.emit(f"mov {into}, {value.text}", predicate)
        elif isinstance(kind, Scalar) and kind.name == "bool":
            self.emit(f"mov {into}, {value.text if not value.known else hex(int(bool(value.const)))}", predicate)
        else:
            assert isinstance(kind, Scalar | Pointer)
            self.emit(f"mov.i32 {into}, {self.operand(value)}", predicate)

    def in_register(self, value: Value, into: str | None = None) -> Value:
        """Return a value in a register, in `into` if that is given."""
        if value.known or (into is not None and value.text != into):
            result = self.dest(value.type, into)
            self.move(result.text, value)
            return result
        return value

    def fresh(self, value: Value) -> Value:
        """Return a value in a register that holds nothing else."""
        if value.temp:
            return value
        copy = self.temp(value.type)
        self.move(copy.text, value)
        return copy

    def operand(self, value: Value) -> str:
        """Return a scalar as an operand: its register, or an immediate."""
        if not value.known:
            return value.text
        kind = value.type if isinstance(value.type, Scalar) else INT
        return self.immediate(value, kind)

    def result(self, kind: CType, into: str | None, income: Value | None, predicate: str, sources: list[str]) -> Value:
        """Return the register of a result; if a predicate may be false, it holds `income` first."""
        into = into if into is not None and self.dest(kind, into).text == into else None
        if income is None:
            return self.dest(kind, into)
        if income.temp and base_of(income.text) not in map(base_of, sources):
            return income
        if into is not None and (base_of(into) == base_of(income.text) or base_of(into) not in map(base_of, sources)):
            if income.text != into:
                self.move(into, income)
            return Value(kind, into)
        destination = self.temp(kind)
        self.move(destination.text, Value(kind, income.text, income.const))
        return destination

    def bits_as(self, value: Value, kind: CType) -> Value:
        """Return the same bits with another type."""
        if value.known and isinstance(kind, Scalar) and isinstance(value.type, Scalar):
            return self.from_bits(self.bits(value.const or 0, value.type), kind)
        return Value(kind, value.text, value.const, value.temp, parts=value.parts, target=value.target)

    # ------------------------------------------------------------------------------------------------- conversions

    def converted(self, value: Value, kind: CType, *, explicit: bool = False, into: str | None = None) -> Value:
        """Return a value in another type, by an assignment or, `explicit`, a cast.

        Raises:
            ReadError: C has no such conversion.
        """
        old = value.type
        if old == kind:
            return value
        if isinstance(kind, Scalar) and isinstance(old, Scalar):
            return self._scalar(value, old, kind, into)
        if isinstance(kind, Vector) and isinstance(old, Scalar):
            return self.broadcast(value, kind, into)
        if isinstance(kind, Vector) and isinstance(old, Vector) and (explicit or value.free or _alike(old, kind)):
            return self.bits_as(value, kind)
        if isinstance(kind, Mask) and isinstance(old, Scalar) and value.known:
            return self._mask(bool(value.const), kind, into)
        if isinstance(kind, Mask) and isinstance(old, Scalar):
            result = self.dest(kind, into)
            self.emit(f"mov {result.text}, {self.truth(value)[0].text}")
            return result
        if isinstance(kind, Mask) and isinstance(old, Mask) and explicit:
            return self.bits_as(value, kind)
        address = self._address(value, old, kind)
        if address is not None:
            return address
        raise self.wrong(f"expected {kind}, found a value of type {old}", *_ways(old, kind))

    def _address(self, value: Value, old: CType, kind: CType) -> Value | None:
        """Return an address, an aggregate or a tensor's number in another type, None if C has no such conversion."""
        if isinstance(kind, Pointer) and isinstance(old, Pointer) and old.space == "variable":
            return value if kind.space == "" and kind.to == old.to else None
        if isinstance(kind, Pointer) and isinstance(old, Pointer) and kind.space in ("", old.space):
            return self.bits_as(value, Pointer(kind.to, old.space))
        local = (isinstance(pointer, Pointer) and pointer.space == "local" for pointer in (kind, old))
        if any(local) and isinstance(kind, Scalar | Pointer) and isinstance(old, Scalar | Pointer):
            self.absolute |= isinstance(old, Scalar)
            return None if isinstance(kind, Pointer) and isinstance(old, Pointer) else self.bits_as(value, kind)
        if isinstance(kind, Group) and isinstance(old, Group) and _alike(old, kind):
            return self.bits_as(value, kind)
        number = isinstance(kind, Scalar) and isinstance(old, TensorType) and not kind.is_float
        if number or (isinstance(kind, TensorType) and isinstance(old, Scalar) and value.known):
            return Value(kind, const=value.const)
        return None

    def broadcast(self, value: Value, kind: Vector, into: str | None = None) -> Value:
        """Return a scalar in all lanes of a vector."""
        scalar = self.converted(value, kind.element)
        result = self.dest(kind, into)
        self.emit(f"mov.{kind.element.name} {result.text}, {self.operand(scalar)}")
        return result

    def _mask(self, truth: bool, kind: Mask, into: str | None) -> Value:
        result = self.dest(kind, into)
        self.emit(f"mov {result.text}, {'SP0' if truth else '0x0'}")
        return result

    def _scalar(self, value: Value, old: Scalar, kind: Scalar, into: str | None) -> Value:
        if value.known:
            return self._folded(value, kind)
        if kind.name == "bool":
            if into is None:
                return self.truth(value)[0]
            predicate = self._positive(value)
            return self.in_register(predicate, into) if into.startswith("%sp") else predicate
        if old.name == "bool":
            predicate = self.dest(kind, into)
            self.emit(f"mov.i32 {predicate.text}, 0x0")
            self.emit(f"mov.i32 {predicate.text}, {self.immediate(self.const(1, kind), kind)}", value.text)
            return predicate
        if not old.is_float and not kind.is_float and kind.bits <= old.bits:
            return self.bits_as(value, kind)  # what stands above the type's bits is cut off when it is computed with
        if not old.is_float and not kind.is_float:
            return self._widened(value, old, kind, into)
        if not old.is_float and old.bits < 32:
            return self._scalar(self._widened(value, old, INT, None), INT, kind, into)
        predicate = self.dest(kind, into)
        if kind.is_float or kind.bits == 32:
            return self._number(value, old, kind, predicate)
        wide = self._number(value, old, INT, self.temp(INT))
        return self.bits_as(wide, kind)

    def _number(self, value: Value, old: Scalar, kind: Scalar, result: Value) -> Value:
        """Convert between an integer and a float, or two floats; C cuts off towards zero."""
        newest = self.since("gaudi2")
        if not kind.is_float:
            if kind.name == "u32" and not newest:
                raise self.refused(f"{old} to unsigned int needs an instruction of gaudi2", "(int)")
            if old.name == "bf16" and not newest:
                value, old = self._number(value, old, FLOAT, self.temp(FLOAT)), FLOAT
            mode = "rz"
            self.emit(
                f"convert.{old.name} target_type={TARGET_SPELLINGS[kind.name]} {mode} {result.text}, {value.text}"
            )
            return result
        if old.name == "u32" and not newest:
            raise self.refused("unsigned int to a float needs an instruction of gaudi2", "(float)(int)")
        self.emit(f"convert.{old.name} target_type={TARGET_SPELLINGS[kind.name]} rhne {result.text}, {value.text}")
        return result

    def _widened(self, value: Value, old: Scalar, kind: Scalar, into: str | None) -> Value:
        result = self.dest(kind, into)
        if not old.signed:
            self.emit(f"and.i32 {result.text}, {value.text}, {hex((1 << old.bits) - 1)}")
            return result
        wide = self.temp(INT)
        self.emit(f"shl.i32 {wide.text}, {value.text}, {hex(32 - old.bits)}")
        self.emit(f"ash.i32 {result.text}, {wide.text}, {hex(old.bits - 32 & WORD)}")
        return result

    def _folded(self, value: Value, kind: Scalar) -> Value:
        number = value.const
        assert number is not None
        if not kind.is_float and isinstance(number, float):
            if math.isnan(number) or abs(number) >= 1 << 32:
                raise self.wrong(f"{number} cannot be converted to {kind}")
            number = int(number)
        return self.const(number, kind)

    def whole(self, value: Value) -> int:
        """Return a known number as C converts it to an integer.

        Raises:
            ReadError: it is a float outside the range of all integers, or NaN.
        """
        return int(self._folded(value, INT).const or 0) if isinstance(value.const, float) else value.const or 0

    # --------------------------------------------------------------------------------------------------- conditions

    def truth(self, value: Value) -> tuple[Value, bool]:
        """Return a scalar as a predicate in an SP register or as a known truth value, and whether it is inverted."""
        kind = value.type
        if not isinstance(kind, Scalar | Pointer):
            raise self.wrong(f"a condition must be a scalar, not {kind}")
        if value.known:
            return Value(BOOL, const=int(bool(value.const))), False
        if isinstance(kind, Scalar) and kind.name != "bool":
            predicate = self.temp(BOOL)
            self.emit(f"cmp_neq.{kind.name} {predicate.text}, {value.text}, 0x0")
            return predicate, False
        if value.text.startswith("!"):
            return Value(BOOL, value.text[1:], temp=value.temp), True
        return value, False

    def predicate_text(self, value: Value, *, inverted: bool = False) -> str:
        """Return a predicate in the form of an instruction operand."""
        text = value.text
        if text.startswith("!"):
            text, inverted = text[1:], not inverted
        return f"!{text}" if inverted else text

    def _positive(self, value: Value) -> Value:
        """Return a truth value in a register of its own, not inverted."""
        predicate, inverted = self.truth(value)
        if inverted:
            other = self.temp(BOOL)
            self.emit(f"not.b {other.text}, {predicate.text}")
            return other
        return predicate

    def compared(self, sign: str, left: Value, right: Value, into: str | None = None) -> Value:
        """Return the truth of a comparison of two scalars."""
        if isinstance(left.type, Pointer) or isinstance(right.type, Pointer):
            raise self.wrong("kernels cannot compare pointers")
        if not isinstance(left.type, Scalar) or not isinstance(right.type, Scalar):
            raise self.wrong(
                f"{sign} compares scalars, not {left.type} and {right.type}", "an intrinsic such as v_f32_cmp_grt_b"
            )
        kind = common(left.type, right.type)
        left, right = self.converted(left, kind), self.converted(right, kind)
        if left.known and right.known:
            assert left.const is not None and right.const is not None
            return Value(BOOL, const=int(SIGNS[sign](left.const, right.const)))
        if left.known:
            left, right, sign = right, left, _MIRRORED[sign]
        result = self.dest(BOOL, into)
        self.emit(f"cmp_{COMPARISONS[sign]}.{kind.name} {result.text}, {left.text}, {self.operand(right)}")
        return result

    def negated(self, value: Value) -> Value:
        """Return the logical negation of a scalar."""
        predicate, inverted = self.truth(value)
        if predicate.known:
            return Value(BOOL, const=int(not predicate.const))
        other = self.temp(BOOL)
        if inverted:
            self.move(other.text, predicate)
        else:
            self.emit(f"not.b {other.text}, {predicate.text}")
        return other

    def both(self, left: Value, right: Value, word: str) -> Value:
        """Return the conjunction (`and`) or disjunction (`or`) of two truth values."""
        first, second = self._positive(left), self._positive(right)
        for this, other in ((first, second), (second, first)):
            if this.known:
                return other if bool(this.const) == (word == "and") else Value(BOOL, const=int(word == "or"))
        result = self.temp(BOOL)
        self.emit(f"{word}.b {result.text}, {first.text}, {second.text}")
        return result

    # ---------------------------------------------------------------------------------------------------- operators

    def binary(self, sign: str, left: Value, right: Value, into: str | None = None) -> Value:
        """Return the result of an operator on two values."""
        kinds = left.type, right.type
        if any(isinstance(kind, Index) for kind in kinds):
            return self._on_index(sign, left, right, into)
        if any(isinstance(kind, Mask) for kind in kinds):
            return self._on_masks(sign, left, right, into)
        if any(isinstance(kind, Vector) for kind in kinds):
            return self._on_vectors(sign, left, right, into)
        if any(isinstance(kind, Pointer | Array) for kind in kinds):
            return self.on_pointer(sign, left, right)
        if not isinstance(left.type, Scalar) or not isinstance(right.type, Scalar):
            raise self.wrong(f"operator {sign} does not take {left.type} and {right.type}")
        if sign in COMPARISONS:
            return self.compared(sign, left, right, into)
        kind = promoted(left.type) if sign in ("<<", ">>") else common(left.type, right.type)
        if sign in ("<<", ">>"):
            if right.type.is_float:
                raise self.wrong(f"operator {sign} does not take {right.type}")
            return self._shifted(sign, self.converted(left, kind), self.converted(right, INT), kind, into)
        return self._on_scalars(sign, self.converted(left, kind), self.converted(right, kind), kind, into)

    def on_pointer(self, sign: str, left: Value, right: Value) -> Value:
        """Return the result of an operator on a pointer."""
        raise NotImplementedError

    def _on_scalars(self, sign: str, left: Value, right: Value, kind: Scalar, into: str | None) -> Value:
        if left.known and right.known:
            assert left.const is not None and right.const is not None
            return self.const(self._computed(sign, left.const, right.const, kind), kind)
        if sign in ("/", "%"):
            return self._divided(sign, left, right, kind, into)
        if sign not in OPERATORS or (kind.is_float and sign in "&|^"):
            raise self.wrong(f"operator {sign} does not take {kind}")
        if left.known and sign in _COMMUTATIVE:
            left, right = right, left
        neutral = {"+": 0, "-": 0, "|": 0, "^": 0, "*": 1}
        if right.known and not kind.is_float and neutral.get(sign) == right.const:
            return left
        first = self.in_register(left)
        result = self.dest(kind, into)
        self.emit(f"{OPERATORS[sign]}.{kind.name} {result.text}, {first.text}, {self.operand(right)}")
        return result

    def _computed(self, sign: str, left: float, right: float, kind: Scalar) -> float:
        if sign in ("/", "%") and not right and not kind.is_float:
            raise self.wrong("division by zero")
        if kind.is_float:
            with np.errstate(all="ignore"):
                a, b = np.float32(left), np.float32(right)
                values: dict[str, Callable[[], np.float32]] = {
                    "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b,
                }  # fmt: skip
                if sign not in values:
                    raise self.wrong(f"operator {sign} does not take {kind}")
                return float(values[sign]())
        x, y = int(left), int(right)
        if sign in ("/", "%"):
            quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            return quotient if sign == "/" else x - quotient * y
        whole: dict[str, Callable[[], int]] = {
            "+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "&": lambda: x & y, "|": lambda: x | y,
            "^": lambda: x ^ y,
        }  # fmt: skip
        return whole[sign]()

    def _shifted(self, sign: str, left: Value, right: Value, kind: Scalar, into: str | None) -> Value:
        if kind.is_float:
            raise self.wrong(f"operator {sign} does not take {kind}")
        if left.known and right.known:
            count, number = int(right.const or 0) & 31, int(left.const or 0)
            return self.const(number << count if sign == "<<" else number >> count, kind)
        result = self.dest(kind, into)
        word, count_text = self._shift(sign, right, kind)
        self.emit(f"{word}.{kind.name} {result.text}, {self.in_register(left).text}, {count_text}")
        return result

    def _shift(self, sign: str, count: Value, kind: Scalar) -> tuple[str, str]:
        """Return the instruction of a shift and its count: ASH shifts right by a negative one."""
        if sign == "<<":
            return "shl", self.operand(count)
        if not kind.signed:
            return "shr", self.operand(count)
        if count.known:
            return "ash", hex(-int(count.const or 0) & WORD)
        back = self.temp(INT)
        zero = self.in_register(self.const(0, INT))
        self.emit(f"sub.i32 {back.text}, {zero.text}, {count.text}")
        return "ash", back.text

    def _divided(self, sign: str, left: Value, right: Value, kind: Scalar, into: str | None) -> Value:
        if kind.is_float:
            message = f"division of floats is not supported by an instruction: {sign}"
            raise self.refused(message, "v_reciprocal_f32 and a product", "a factor that is computed on the host")
        power = int(right.const or 0)
        if right.known and not power:
            raise self.wrong("division by zero")
        if right.known and power > 0 and power & (power - 1) == 0:
            return self._by_power(sign, left, power, kind, into)
        if not kind.signed:
            return self._unsigned(sign, left, right, into)
        negative_one, negative_two = self.temp(BOOL), self.temp(BOOL)
        first, second = self.in_register(left), self.in_register(right)
        self.emit(f"cmp_less.i32 {negative_one.text}, {first.text}, 0x0")
        self.emit(f"cmp_less.i32 {negative_two.text}, {second.text}, 0x0")
        sizes = []
        for operand, negative in ((first, negative_one), (second, negative_two)):
            size = self.temp(INT)
            self.move(size.text, operand)
            zero = self.in_register(self.const(0, INT))
            self.emit(f"sub.i32 {size.text}, {zero.text}, {operand.text}", negative.text)
            sizes.append(size)
        quotient = self._unsigned(sign, sizes[0], sizes[1], None)
        flip = negative_one
        if sign == "/":
            flip = self.temp(BOOL)
            self.emit(f"xor.b {flip.text}, {negative_one.text}, {negative_two.text}")
        zero = self.in_register(self.const(0, INT))
        end = self.fresh(self.bits_as(quotient, INT))
        self.emit(f"sub.i32 {end.text}, {zero.text}, {end.text}", flip.text)
        return end

    def _unsigned(self, sign: str, left: Value, right: Value, into: str | None) -> Value:
        """Divide unsigned numbers: UDIV, or eight times four steps on a pair of remainder and quotient."""
        kind = Scalar("u32")
        name = self.name("q")
        first, second = self.in_register(left), self.in_register(right)
        if self.since("gaudi2"):
            self.emit(f"udiv.u32 %z.{name}, {first.text}, {second.text}")
        else:
            self.emit(f"mov.i32 %s.{name}.0, {first.text}")
            self.emit(f"mov.i32 %s.{name}.1, 0x0")
            steps, word = (8, "udiv_4step.u32") if self.since("gaudi") else (32, "udiv_step.u32")
            for step in range(steps):
                number = 31 - step * 32 // steps
                self.emit(f"{word} %z.{name}, {second.text}, {hex(number)}")
        result = self.temp(kind)
        self.emit(f"mov.i32 {result.text}, %s.{name}.{0 if sign == '/' else 1}")
        return result

    def _by_power(self, sign: str, left: Value, power: int, kind: Scalar, into: str | None) -> Value:
        """Divide by a power of two: shifts and masks; signed numbers are cut off towards zero."""
        shift = power.bit_length() - 1
        if not kind.signed:
            if sign == "%":
                return self._on_scalars("&", left, self.const(power - 1, kind), kind, into)
            return left if not shift else self._shifted(">>", left, self.const(shift, INT), kind, into)
        if not shift:
            return left if sign == "/" else self.const(0, kind)
        side = self._shifted(">>", left, self.const(31, INT), kind, None)
        bias = self.temp(kind)
        self.emit(f"shr.u32 {bias.text}, {side.text}, {hex(32 - shift)}")
        total = self._on_scalars("+", left, bias, kind, None)
        if sign == "/":
            return self._shifted(">>", total, self.const(shift, INT), kind, into)
        whole = self._on_scalars("&", total, self.const(-power, kind), kind, None)
        return self._on_scalars("-", left, whole, kind, into)

    # ------------------------------------------------------------------------------------------- vectors and others

    def _on_vectors(self, sign: str, left: Value, right: Value, into: str | None) -> Value:
        kind = next(value.type for value in (left, right) if isinstance(value.type, Vector))
        for value in (left, right):
            if (
                not isinstance(value.type, Scalar)
                and value.type != kind
                and not (
                    sign in ("<<", ">>")
                    and isinstance(value.type, Vector)
                    and value.type.element.bits == kind.element.bits
                )
            ):
                raise self.wrong(f"operator {sign} takes vectors of one type, not {left.type} and {right.type}")
        if sign in COMPARISONS:
            raise self.wrong(f"{sign} compares scalars", f"v_{kind.element.name}_cmp_{COMPARISONS[sign]}_b")
        if sign in ("/", "%"):
            raise self.refused(f"{sign} on vectors is not supported", "v_reciprocal_f32 and a product")
        element = kind.element
        if isinstance(left.type, Scalar) and sign in _COMMUTATIVE:
            left, right = right, left
        first = self.converted(left, kind)
        second = right if isinstance(right.type, Vector) else self.converted(right, element if sign not in ("<<", ">>")
                                                                         else INT)  # fmt: skip
        if sign in ("<<", ">>"):
            return self._vectors_shifted(sign, first, second, kind, into)
        if sign not in OPERATORS or (element.is_float and sign in "&|^"):
            raise self.wrong(f"operator {sign} does not take {kind}")
        if sign == "*" and not element.is_float:
            return self._vector_product(first, second, kind, into)
        result = self.dest(kind, into)
        text = second.text if isinstance(second.type, Vector) else self.operand(second)
        self.emit(f"{OPERATORS[sign]}.{element.name} {result.text}, {first.text}, {text}")
        return result

    def _vectors_shifted(self, sign: str, left: Value, right: Value, kind: Vector, into: str | None) -> Value:
        if kind.element.is_float:
            raise self.wrong(f"operator {sign} does not take {kind}")
        result = self.dest(kind, into)
        if isinstance(right.type, Scalar):
            word, count = self._shift(sign, right, kind.element)
        elif sign == ">>" and kind.element.signed:
            back, zero = self.temp(right.type), self.broadcast(self.const(0, INT), vector_of(kind.element.name))
            self.emit(f"sub.{kind.element.name} {back.text}, {zero.text}, {right.text}")
            word, count = "ash", back.text
        else:
            word, count = "shl" if sign == "<<" else "shr", right.text
        self.emit(f"{word}.{kind.element.name} {result.text}, {left.text}, {count}")
        return result

    def _vector_product(self, left: Value, right: Value, kind: Vector, into: str | None) -> Value:
        """Multiply vectors of integers; the low bits of the products are kept."""
        element = kind.element
        result = self.dest(kind, into)
        if element.bits == 32:
            return self._long_product(left, self.converted(right, kind), result)
        if element.bits != 16:
            raise self.refused(f"* on {kind} is not supported by an instruction", "v_convert_i8_to_i16_all_b")
        wide = self.name("p")
        text = right.text if isinstance(right.type, Vector) else self.operand(right)
        self.emit(f"mul.{element.name} %d.{wide}, {left.text}, {text}")
        parts = [self.temp(kind) for _ in range(2)]
        self.emit(f"and.i32 {parts[0].text}, %v.{wide}.0, 0xffff")
        self.emit(f"shl.i32 {parts[1].text}, %v.{wide}.1, 0x10")
        self.emit(f"or.i32 {result.text}, {parts[0].text}, {parts[1].text}")
        return result

    def _long_product(self, left: Value, right: Value, result: Value) -> Value:
        """Multiply 32-bit lanes by halves: MUL of 32 bits leaves low and high words of its products side by side."""
        low, cross, other = (self.name("p") for _ in range(3))
        high_left, high_right, middle, moved = (self.temp(result.type) for _ in range(4))
        self.emit(f"mul.u16 %d.{low}, {left.text}, {right.text}")
        self.emit(f"shr.u32 {high_right.text}, {right.text}, 0x10")
        self.emit(f"mul.u16 %d.{cross}, {left.text}, {high_right.text}")
        self.emit(f"shr.u32 {high_left.text}, {left.text}, 0x10")
        self.emit(f"mul.u16 %d.{other}, {high_left.text}, {right.text}")
        self.emit(f"add.i32 {middle.text}, %v.{cross}.0, %v.{other}.0")
        self.emit(f"shl.i32 {moved.text}, {middle.text}, 0x10")
        self.emit(f"add.i32 {result.text}, %v.{low}.0, {moved.text}")
        return result

    def _on_masks(self, sign: str, left: Value, right: Value, into: str | None) -> Value:
        if sign not in "&|^" or left.type != right.type:
            raise self.wrong(f"operator {sign} does not take {left.type} and {right.type}", "& | ^ ~ of equal types")
        result = self.dest(left.type, into)
        self.emit(f"{OPERATORS[sign]}.b {result.text}, {left.text}, {right.text}")
        return result

    def _on_index(self, sign: str, left: Value, right: Value, into: str | None) -> Value:
        if sign not in OPERATORS:
            raise self.wrong(f"operator {sign} does not take int5", "+ - * & | ^")
        result = self.temp(left.type if isinstance(left.type, Index) else right.type)
        result = self.dest(result.type, into)
        if isinstance(right.type, Scalar) and sign in _COMMUTATIVE:
            left, right = right, left
        texts = [
            value.text if isinstance(value.type, Index) else self.operand(self.converted(value, INT))
            for value in (left, right)
        ]
        self.emit(f"{OPERATORS[sign]}.i32 b11111 {result.text}, {texts[0]}, {texts[1]}")
        return result

    def unary(self, sign: str, value: Value, into: str | None = None) -> Value:
        """Return the result of + - ~ or ! on a value."""
        kind = value.type
        if sign == "!":
            return self.negated(value)
        if isinstance(kind, Scalar):
            return self._unary_scalar(sign, value, promoted(kind), into)
        if isinstance(kind, Mask) and sign == "~":
            result = self.dest(kind, into)
            self.emit(f"not.b {result.text}, {value.text}")
            return result
        if not isinstance(kind, Vector) or (sign == "~" and kind.element.is_float):
            raise self.wrong(f"operator {sign} does not take {kind}")
        if sign == "+":
            return value
        result = self.dest(kind, into)
        element = kind.element
        if sign == "~":
            self.emit(f"not.{element.name} {result.text}, {value.text}")
        elif element.is_float:
            self.emit(f"xor.{element.name} {result.text}, {value.text}, {hex(1 << (element.bits - 1))}")
        else:
            zero = self.broadcast(self.const(0, element), kind)
            self.emit(f"sub.{element.name} {result.text}, {zero.text}, {value.text}")
        return result

    def _unary_scalar(self, sign: str, value: Value, kind: Scalar, into: str | None) -> Value:
        operand = self.converted(value, kind)
        if sign == "+":
            return operand
        if sign == "~" and kind.is_float:
            raise self.wrong(f"operator ~ does not take {kind}")
        if operand.known:
            number = operand.const or 0
            return self.const(~int(number) if sign == "~" else -number, kind)
        result = self.dest(kind, into)
        if sign == "~":
            self.emit(f"not.{kind.name} {result.text}, {operand.text}")
        elif kind.is_float:
            self.emit(f"xor.{kind.name} {result.text}, {operand.text}, {hex(1 << (kind.bits - 1))}")
        else:
            zero = self.in_register(self.const(0, kind))
            self.emit(f"sub.{kind.name} {result.text}, {zero.text}, {operand.text}")
        return result


def _alike(left: CType, right: CType) -> bool:
    """Return whether two types differ in the signs of integers at most."""
    if isinstance(left, Vector) and isinstance(right, Vector):
        both = left.element, right.element
        return both[0].bits == both[1].bits and not any(element.is_float for element in both)
    if isinstance(left, Group) and isinstance(right, Group) and len(left.members) == len(right.members):
        return all(a == b or _alike(a, b) for a, b in zip(left.members, right.members, strict=True))
    return False


def _ways(old: CType, kind: CType) -> tuple[str, ...]:
    if isinstance(old, Vector) and isinstance(kind, Vector):
        return (f"({kind}) for the same bits", f"v_convert_{old.element.name}_to_{kind.element.name}_b for the values")
    return ()
