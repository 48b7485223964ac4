"""Calls of intrinsics: arguments by the row of the operation, and the instruction of the call."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.tpc.forms import Feature
from castsim.languages.tpc_c.arithmetic import Arithmetic
from castsim.languages.tpc_c.code import VOID_VALUE, WORD, Value
from castsim.tools.tpc_compiler.c_language import (
    BOOL,
    INT,
    UNSIGNED,
    CType,
    Group,
    Index,
    IntrinsicCall,
    Mask,
    Scalar,
    TensorType,
    Vector,
    constants,
    group_of,
    vector_of,
    words,
    words_of,
)

_COMMUTATIVE = ("add", "and", "or", "xor", "max", "min", "mul", "mac", "madd", "cmp_eq", "cmp_neq")
_EXPONENTS = {32: "i32", 16: "i16", 8: "i8"}
_FREE = ("brev", "fclass", "find_first", "popcnt")
"""Instructions on bits: no source states the vector type of their results, so it is that of the income."""
_SPECIAL = ("recip", "rsqrt", "sqrt", "log", "exp", "tanh", "div", "pow")
_VARIANTS = ("none", "tanh", "sqrt_rsqrt", "sin_cos", "log")
_ENTRIES = ("BV32", "BV16", "BV8_0", "BV8_1")
_UNPACKED = ("", "UNPCK_8_TO_16", "UNPCK_8_TO_32", "UNPCK_4_TO_8")
_PACKED = ("", "PCK_16_TO_8", "PCK_32_TO_8", "PCK_8_TO_4")
_OLD_REGISTERS = {
    "LD_PARTIAL_REG": "S30", "ST_PARTIAL_REG": "S31", "ST_RMW_REG": "S29", "LD_TNSR_ID_REG": "S27",
    "ST_TNSR_ID_REG": "S28",
}  # fmt: skip
"""Registers of later generations, and their counterparts on gaudi and gaudib."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The common last arguments of calls: switches, income, predicate; `never` is whether it is known to be false."""

    switches: int = 0
    income: Value | None = None
    predicate: str = ""
    never: bool = False


def register_type(unit: str, element: str) -> CType:
    """Return the type of a value of an intrinsic: a vector, a scalar, a predicate."""
    if unit == "i":
        return Index()
    if element == "i1":
        return BOOL if unit == "s" else Mask(256)
    return Scalar(element) if unit == "s" else vector_of("i8" if element == "i4" else "u8" if element == "u4"
                                                         else element)  # fmt: skip


class Intrinsics(Arithmetic):
    """Calls by name and values; `into` is the preferred register of the result."""

    def intrinsic(self, name: str, call: IntrinsicCall, arguments: Sequence[Value], into: str | None) -> Value:
        """Return the result of a call."""
        if not self.since(call.row.generation):
            raise self.refused(f"{name} is not available on {self.generation}; from {call.row.generation} on")
        for element in {call.element, call.result} - {"i1"}:
            self.check_type(Scalar(element))
        shape = getattr(self, f"_{call.row.shape}")
        result: Value = shape(name, call, list(arguments), into)
        return result

    # --------------------------------------------------------------------------------------------------- arguments

    def _need(self, name: str, arguments: list[Value], count: int, most: int) -> None:
        if not count <= len(arguments) <= most:
            wanted = str(count) if count == most else f"{count} to {most}"
            raise self.wrong(f"{name} takes {wanted} arguments, not {len(arguments)}")

    def number(self, name: str, value: Value, what: str) -> int:
        """Return an argument that has to be known."""
        if not value.known or not isinstance(value.type, Scalar | TensorType):
            raise self.wrong(f"{what} of {name} must be a constant")
        return self.whole(value)

    def switches(self, name: str, value: Value, names: str, element: str = "") -> int:
        """Return the switches of a call; `names` are the constants that it accepts, `int:SAT` for integers only.

        Raises:
            ReadError: they are not compile-time constants, or have a bit that the call does not accept.
        """
        number = self.number(name, value, "the switches") & WORD
        legal = {}
        for kind, _, word in (entry.rpartition(":") for entry in names.split()):
            if kind in ("", element) or (kind == "int" and "f" not in element):
                legal[f"SW_{word}"] = constants()[f"SW_{word}"]
        unknown = number
        for bits in legal.values():
            unknown &= ~bits
        if unknown:
            of = [
                switch_name
                for switch_name, bits in constants().items()
                if switch_name.startswith("SW_") and bits and bits & unknown == bits
            ]
            what = f"{unknown:#x}" + (f" ({' or '.join(of[:3])})" if of else "")
            raise self.wrong(f"{name} does not take the switch {what}", *[*legal, "0"][:5])
        return number

    def tail(
        self,
        name: str,
        call: IntrinsicCall,
        arguments: list[Value],
        first: int,
        result: CType | None,
        *,
        income: bool = True,
        known: str | None = None,
    ) -> Tail:
        """Read switches, income, predicate and polarity from the argument `first` on; `known` are other switches."""
        places = 4 if income else 3
        least = first + (places - 1 if call.lanewise else 0)
        self._need(name, arguments, least, first + places)
        rest = arguments[first:]
        names = call.row.switches if known is None else known
        switches = self.switches(name, rest[0], names, call.element) if rest else 0
        rest = rest[1:]
        merged: Value | None = None
        if income and rest:
            assert result is not None
            same = isinstance(result, Vector) and isinstance(rest[0].type, Vector)
            merged = self.bits_as(rest[0], result) if same else self.converted(rest[0], result)
            rest = rest[1:]
        if not rest:
            return Tail(switches, merged)
        polarity = bool(self.number(name, rest[1], "the polarity")) if len(rest) > 1 else False
        return self._predicated(name, call, rest[0], polarity, switches, merged)

    def _predicated(
        self, name: str, call: IntrinsicCall, value: Value, polarity: bool, switches: int, income: Value | None
    ) -> Tail:
        if isinstance(value.type, Mask):
            if not call.lanewise and call.row.mnemonic != "st_tnsr_sqz":
                raise self.wrong(f"the predicate of {name} must be a single bool, not {value.type}", f"{name[:-1]}vb")
            return Tail(switches, income, f"{'!' if polarity else ''}{value.text}")
        if call.lanewise and not value.known:
            raise self.wrong(f"the predicate of {name} must be a vector of bool, not {value.type}", f"{name[:-2]}b")
        predicate, inverted = self.truth(value)
        if predicate.known:
            return Tail(switches, income, "", bool(predicate.const) == polarity)
        return Tail(switches, income, self.predicate_text(predicate, inverted=inverted != polarity))

    def _vector(self, value: Value, kind: CType) -> Value:
        """Return an argument as a vector, or as a scalar where it is one."""
        if isinstance(kind, Vector) and isinstance(value.type, Scalar):
            return self.converted(value, kind.element)
        if isinstance(kind, Vector) and isinstance(value.type, Vector):
            return self.bits_as(value, kind)
        return self.converted(value, kind)

    def _text(self, value: Value) -> str:
        return self.operand(value) if isinstance(value.type, Scalar) and value.type != BOOL else value.text

    def _wide(self, value: Value, kind: CType) -> Value:
        """Return an argument that only a register will do for."""
        if isinstance(kind, Vector) and isinstance(value.type, Scalar):
            return self.broadcast(value, kind)
        return self.in_register(value)

    def _emit(
        self, call: IntrinsicCall, extra: Sequence[str], tail: Tail, result: CType, texts: Sequence[str],
        into: str | None,
        *, partly: bool = False,
    ) -> Value:  # fmt: skip
        """Write the instruction of a call, its destination first."""
        element = "b" if call.element == "i1" else call.element
        suffix = "" if call.row.shape in ("groups", "lookup") else f".{element}"
        head = " ".join([f"{call.row.mnemonic}{suffix}", *extra])
        return self._emit_text(head, tail, result, texts, into, partly=partly)

    def _emit_text(
        self, head: str, tail: Tail, kind: CType, texts: Sequence[str], into: str | None, *, partly: bool = False
    ) -> Value:
        """Write an instruction, its destination first; `partly` is whether it keeps part of its income."""
        if tail.never:
            return self._kept(tail, kind)
        income = tail.income if tail.predicate or partly else None
        result = self.result(kind, into, income, tail.predicate, list(texts))
        self.emit(f"{head} {', '.join((result.text, *texts))}", tail.predicate)
        return result

    def _kept(self, tail: Tail, result: CType) -> Value:
        """Return the income of a call that is never executed."""
        return self.temp(result) if tail.income is None else tail.income

    # ----------------------------------------------------------------------------------------------------- arithmetic

    def _kind(self, call: IntrinsicCall) -> CType:
        return register_type(call.unit, call.element)

    def _binary(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        kind = self._kind(call)
        if call.unit == "i":
            return self._on_coordinates(name, call, arguments, into)
        tail = self.tail(name, call, arguments, 2, kind)
        left, right = self._pair(call, arguments, kind)
        extra = [*call.row.words.split(), *words_of(call.row.mnemonic, call.element, tail.switches)]
        return self._emit(call, list(dict.fromkeys(extra)), tail, kind, [left.text, self._text(right)], into)

    def _pair(self, call: IntrinsicCall, arguments: list[Value], kind: CType) -> tuple[Value, Value]:
        """Return two operands; the second may be a scalar or an immediate."""
        second = kind
        if isinstance(kind, Vector) and call.row.mnemonic in ("shl", "shr", "ash", "shuffle"):
            given = arguments[1].type
            second = given if isinstance(given, Vector) else vector_of(_EXPONENTS[kind.element.bits])
        elif isinstance(kind, Scalar) and call.row.mnemonic in ("shl", "shr", "ash"):
            second = INT
        left, right = self._vector(arguments[0], kind), self._vector(arguments[1], second)
        scalar = isinstance(left.type, Scalar) and (call.unit == "v" or left.known)
        if scalar and call.row.mnemonic in _COMMUTATIVE and (isinstance(right.type, Vector) or not right.known):
            left, right = right, left
        if call.row.mnemonic == "shuffle" or isinstance(kind, Mask) or kind == BOOL:
            right = self._wide(right, second)
        return self._wide(left, kind), right

    def _on_coordinates(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        """`i_i32_add(a, b, mask, switches, income, ..)`: dimensions outside the mask keep the income."""
        compares = call.row.shape == "compare"
        unary = call.row.shape in ("unary", "move")
        count = 1 if unary else 2
        kind = BOOL if compares else Index()
        tail = self.tail(name, call, arguments, count + 1, kind, known="")
        mask, word = self._mask_of(name, arguments[count])
        texts = []
        for value in arguments[:count]:
            if not isinstance(value.type, Index | Scalar):
                raise self.wrong(f"{name} takes int5 or int, not {value.type}")
            texts.append(value.text if isinstance(value.type, Index) else self.operand(self.converted(value, INT)))
        if not unary and isinstance(arguments[1].type, Scalar) and call.row.mnemonic in _COMMUTATIVE and not compares:
            texts.reverse()
        operation = "mov" if call.row.shape == "move" else f"{call.row.mnemonic}.i32"
        return self._emit_text(f"{operation} {word}", tail, kind, texts, into, partly=mask != 31)

    def _mask_of(self, name: str, value: Value) -> tuple[int | None, str]:
        """Return the dimensions that an operation on coordinates changes, if known, and their text."""
        if value.known or not self.since("greco"):
            mask = self.number(name, value, "the mask") & 31
            return mask, f"b{mask:05b}"
        return None, self.special_register("M0", self.converted(value, INT))

    def _unary(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        if call.unit == "i":
            return self._on_coordinates(name, call, arguments, into)
        kind = self._kind(call)
        result = self._unary_result(call, kind)
        free = isinstance(result, Vector) and call.row.mnemonic in _FREE
        if free and len(arguments) > 2 and isinstance(arguments[2].type, Vector):
            result = arguments[2].type
        tail = self.tail(name, call, arguments, 1, result)
        value = self._vector(arguments[0], kind)
        counted = isinstance(value.type, Scalar) and call.unit == "v" and call.row.mnemonic in ("popcnt", "find_first")
        if counted or call.row.mnemonic in ("abs", "not", "nearbyint") or isinstance(kind, Mask):
            value = self._wide(value, kind)
        if call.row.mnemonic == "abs" and isinstance(kind, Scalar | Vector) and "f8" in call.element:
            return self._emit_text(f"and.{call.element}", tail, kind, [value.text, "0x7f"], into)
        extra = words_of(call.row.mnemonic, call.element, tail.switches)
        bits = Scalar(call.element).bits if call.element != "i1" else 1
        if call.row.words == "cnvrt":
            extra = ["cnvrt", f"target_type=int{bits}", *extra]
        elif call.row.mnemonic == "nearbyint" and isinstance(kind, Vector) and bits > 8 and self.since("greco"):
            extra = [f"target_type=int{bits}", *extra]
        elif call.row.mnemonic == "extract_exp" and not self.since("gaudi"):
            extra = ["subtract_bias" for word in extra if word == "biased"]
        return replace(self._emit(call, extra, tail, result, [self._text(value)], into), free=free)

    @staticmethod
    def _unary_result(call: IntrinsicCall, kind: CType) -> CType:
        if isinstance(kind, Mask) or kind == BOOL:
            return kind
        bits = Scalar(call.element).bits
        number = register_type(call.unit, _EXPONENTS[bits])
        if call.row.words == "cnvrt":
            assert isinstance(kind, Vector) and isinstance(number, Vector)
            return Group((kind, number))
        results = {"extract_exp": number, "brev": register_type(call.unit, f"u{bits}")}
        count = register_type(call.unit, "u8")
        return (results | {"popcnt": count, "find_first": count}).get(call.row.mnemonic, kind)

    def _move(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        if call.unit == "i":
            return self._on_coordinates(name, call, arguments, into)
        kind = self._kind(call)
        if call.row.words == "x2":
            pair = group_of(call.element, 2)
            tail = self.tail(name, call, arguments, 1, pair)
            return self._emit_text("mov x2", tail, pair, [arguments[0].text], into)
        flavor = "_flavor" in name
        tail = self.tail(name, call, arguments, 1 + flavor, kind)
        value = arguments[0]
        if flavor:  # eight bits of a number, repeated in a part of the predicate
            part = self.number(name, arguments[1], "the part of the predicate")
            text = self.operand(self.converted(value, INT))
            return self._emit_text(f"mov {part:#x}", tail, kind, [text], into, partly=True)
        if isinstance(kind, Vector) and isinstance(value.type, Vector | Mask):
            return self._emit_text("mov", tail, kind, [value.text], into)
        if isinstance(kind, Mask) or kind == BOOL:
            return self._move_truth(tail, kind, value, into)
        assert isinstance(kind, Vector | Scalar)
        source = self.converted(value, kind.element if isinstance(kind, Vector) else kind)
        return self._emit_text(f"mov.{call.element}", tail, kind, [self.operand(source)], into)

    def _move_truth(self, tail: Tail, kind: CType, value: Value, into: str | None) -> Value:
        truth = value.type == BOOL and not value.known
        text = self._positive(value).text if truth else self.operand(value)
        return self._emit_text("mov", tail, kind, [text], into)

    def _compare(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        if call.unit == "i":
            return self._on_coordinates(name, call, arguments, into)
        kind = self._kind(call)
        result: CType = Mask(min(kind.lanes, 256)) if isinstance(kind, Vector) else BOOL
        tail = self.tail(name, call, arguments, 2, result)
        left, right = self._pair(call, arguments, kind)
        extra = words_of(call.row.mnemonic, call.element, tail.switches)
        return self._emit(call, extra, tail, result, [left.text, self._text(right)], into)

    def _select(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        compared, chosen = self._kind(call), vector_of(call.result)
        result: CType = chosen
        if call.row.operation.startswith("sel2"):
            assert isinstance(compared, Vector)
            result = Group((chosen, compared))
        tail = self.tail(name, call, arguments, 4, result)
        left, right = self._wide(self._vector(arguments[0], compared), compared), self._vector(arguments[1], compared)
        three = self._wide(self._vector(arguments[2], chosen), chosen)
        four = self._vector(arguments[3], chosen)
        if isinstance(right.type, Scalar):
            four = self._wide(four, chosen)
        extra = words_of(call.row.mnemonic, call.element, tail.switches)
        texts = [left.text, self._text(right), three.text, self._text(four)]
        return self._emit(call, extra, tail, result, texts, into)

    def _four(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        """`msac(a, b, n1, n2, ..)`: the accumulator is the income."""
        kind = self._kind(call)
        tail = self.tail(name, call, arguments, 4, kind)
        values = [self._vector(argument, kind) for argument in arguments[:4]]
        texts = [self._wide(values[0], kind).text, self._text(values[1]), self._wide(values[2], kind).text]
        texts.append(self._wide(values[3], kind).text if isinstance(values[1].type, Scalar) else self._text(values[3]))
        extra = words_of("msac", call.element, tail.switches)
        if tail.income is None:
            tail = replace(tail, income=self.converted(self.const(0, INT), kind))
        return self._emit(call, extra, tail, kind, texts, into, partly=True)

    def _ternary(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        kind = self._kind(call)
        tail = self.tail(name, call, arguments, 3, kind)
        texts = self._wide_texts(arguments[:3], kind)
        return self._emit(call, words_of(call.row.mnemonic, call.element, tail.switches), tail, kind, texts, into)

    def _wide_texts(self, values: Sequence[Value], kind: CType) -> list[str]:
        """Return vectors of any type, and scalars in all lanes."""
        return [value.text if isinstance(value.type, Vector) else self._wide(self._vector(value, kind), kind).text
                for value in values]  # fmt: skip

    def _special(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        """`calc_fp_special(classes, classes, function, income, ..)`: other lanes keep the income."""
        kind = self._kind(call)
        tail = self.tail(name, call, arguments, 2, kind)
        texts = self._wide_texts(arguments[:2], kind)
        if not 0 <= tail.switches < len(_SPECIAL):
            raise self.wrong(f"{name} has no function {tail.switches}", *_SPECIAL)
        return self._emit(call, [f"func={_SPECIAL[tail.switches]}"], tail, kind, texts, into, partly=True)

    # ------------------------------------------------------------------------------------------------------- products

    def wide_type(self, call: IntrinsicCall) -> CType:
        """Return the type of a product or a sum of products."""
        element, row = call.element, call.row
        if "acc_i16" in row.words:
            wide, count = "i16", 2
        elif "acc_32" in row.words or "acc_fp32" in row.words or "f8" in element:
            wide, count = ("f32" if "f" in element else "i32"), 32 // Scalar(element).bits
        elif row.mnemonic == "mul" and element in ("i32", "u32") and not row.words:
            wide, count = element, 2
        elif element in ("i16", "u16", "i8", "u8"):
            wide, count = f"{element[0]}32", 32 // Scalar(element).bits
        else:
            wide, count = element, 1
        if "f8" in element and row.mnemonic == "mul" and not row.words:
            wide, count = element, 1
        return Scalar(wide) if call.unit == "s" else group_of(wide, count)

    def _words(self, call: IntrinsicCall, switches: int) -> list[str]:
        """Return the words of a product in the order of the text."""
        own = words_of(call.row.mnemonic, call.element, switches)
        fixed = call.row.words.split()
        result = [word for word in own if word != "neg_zp"]
        if "acc_32" in fixed or (call.row.mnemonic in ("mac", "madd") and "f8" in call.element):
            result.append("acc_fp32" if "f" in call.element else "acc_i32")
        result += [word for word in fixed if word != "acc_32" and word not in result]
        return result + [word for word in own if word == "neg_zp"]

    def _product(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        if call.unit == "i":
            return self._on_coordinates(name, call, arguments, into)
        kind, result = self._kind(call), self.wide_type(call)
        tail = self.tail(name, call, arguments, 2, result)
        if call.unit == "s" and tail.switches & 4:
            result = kind
        left, right = self._pair(call, arguments, kind)
        return self._emit(call, self._words(call, tail.switches), tail, result, [left.text, self._text(right)], into)

    def _accumulate(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        """`mac(a, b, [c, d,] [zero points,] accumulator, switches, predicate, polarity)`."""
        fixed = call.row.words.split()
        if "x2" in fixed and call.element == "f32":
            return self._pairs(name, call, arguments, into)
        kind, result = self._kind(call), self.wide_type(call)
        count = 4 if "x2" in fixed else 2
        offset = count + ("zp" in fixed)
        self._need(name, arguments, offset + 1, offset + 4)
        accumulator = self.converted(arguments[offset], result)
        tail = self.tail(name, call, arguments, offset + 1, result, income=False)
        left, right = self._pair(call, arguments, kind)
        texts = [left.text, self._text(right)]
        texts += [self._wide(self._vector(argument, kind), kind).text for argument in arguments[2:count]]
        extra = [*self._words(call, tail.switches), *self._zero_points(fixed, arguments[count], kind)]
        tail = replace(tail, income=self.in_register(accumulator))
        return self._emit(call, extra, tail, result, texts, into, partly=True)

    def _zero_points(self, fixed: Sequence[str], value: Value, kind: CType) -> list[str]:
        """Put zero points in the operands of the form, and return their names."""
        if "zp" not in fixed:
            return []
        self.emit(f"mov ZP_REG, {self._wide(self._vector(value, kind), kind).text}")
        return ["ZP_REG"]

    def _add_product(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        """`madd(a, b, c, [zero points,] switches, income, ..)`."""
        kind, result = self._kind(call), self.wide_type(call)
        fixed = call.row.words.split()
        # Switches stand before the income of a sum in the older spelling: a, b, c, switches, income.
        count = 3 + ("zp" in fixed)
        tail = self.tail(name, call, arguments, count, result)
        left, right = self._pair(call, arguments, kind)
        third = self.in_register(self.converted(arguments[2], result))
        extra = [*self._words(call, tail.switches), *self._zero_points(fixed, arguments[count - 1], kind)]
        return self._emit(call, extra, tail, result, [left.text, self._text(right), third.text], into)

    def _pairs(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        """The f32 forms on pairs: operands are a pair or a scalar, then vectors or scalars."""
        pair = group_of("f32", 2)
        mac, madd = call.row.mnemonic == "mac", call.row.mnemonic == "madd"
        count = 4 if madd else 3
        offset = count + mac
        tail = self.tail(name, call, arguments, offset, pair, income=not mac)
        texts = []
        for number, value in enumerate(arguments[:count]):
            whole = pair if number == 0 or (madd and number == 2) else vector_of("f32")
            texts.append(self._text(self.converted(value, Scalar("f32")) if isinstance(value.type, Scalar)
                                    else self.converted(value, whole)))  # fmt: skip
        if mac:
            tail = replace(tail, income=self.converted(arguments[count], pair))
        extra = [word for word in words_of(call.row.mnemonic, "f32", tail.switches) if word != "fp16_ftz_in"]
        return self._emit(call, [*extra, "x2"], tail, pair, texts, into, partly=mac)

    # -------------------------------------------------------------------------------------------------- rearrangement

    def _rearrange(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        kind = self._kind(call)
        tail = self.tail(name, call, arguments, 1, kind)
        extra = words_of(call.row.mnemonic, call.element, tail.switches)
        lane = tail.switches >> 11 & 3
        if call.row.mnemonic == "unpack" and self.target.features.has[Feature.UNPACK_LANE]:
            extra.append(f"unpack_lane={lane}")
        elif lane:
            raise self.refused(f"{self.generation} unpacks to lane 0 alone", "SW_UNPACK_LANE_0")
        element = {"f8_143": "i8", "f8_152": "i8"}.get(call.element, call.element)
        texts = [self._wide(self._vector(arguments[0], kind), kind).text]
        head = " ".join([f"{call.row.mnemonic}.{element}", *extra])
        return self._emit_text(head, tail, kind, texts, into, partly=True)

    def _groups(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        kind, operation = self._kind(call), call.row.operation
        numbers = {"mov_dual_group": 3, "mov_dual_group_all": 5, "mov_dual_group_unpack": 5, "mov_group": 1}
        count = numbers.get(operation, 0)
        tail = self.tail(name, call, arguments, 1 + count, kind)
        given = [
            self.number(name, argument, f"argument {index + 2}")
            for index, argument in enumerate(arguments[1 : 1 + count])
        ]
        bits = tail.switches
        if operation == "mov_dual_group":
            extra = [f"src={given[1] & 3}", f"dst={given[2] & 3}", f"wr_lg={bits >> 12 & 1}", f"wr_ug={bits >> 13 & 1}"]
        elif operation == "mov_dual_group_pack":
            extra = [f"pack_type={bits >> 2 & 1}"]
        elif operation == "mov_group":
            extra = [f"g_en={bits & 3}", f"dg_en={bits >> 2 & 15}"]
        else:
            extra = [f"sdg{d}={given[1 + d] & 3}" for d in range(4)]
            extra += [f"weg{d}={bits >> (16 + 2 * d) & 3}" for d in range(4)]
            extra = ["unpack_type=0", *extra] if operation.endswith("unpack") else extra
        texts = [self._wide(self._vector(arguments[0], kind), kind).text]
        texts += [hex(given[0] & 0xFFFFFFFF)] if given else []
        return self._emit(call, extra, tail, kind, texts, into, partly=True)

    def _interval(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        whole = {"f32": "u32", "bf16": "u16", "f16": "u16"}[call.element]
        pair = Group((vector_of(whole), vector_of(call.element)))
        tail = self.tail(name, call, arguments, 2, pair)
        shift = self.number(name, arguments[1], "the shift")
        variant = tail.switches >> 13 & 7
        if variant >= len(_VARIANTS):
            raise self.wrong(f"{name} has no variant {variant}", *_VARIANTS)
        texts = [self._wide(self._vector(arguments[0], self._kind(call)), self._kind(call)).text, hex(shift)]
        return self._emit(call, [f"entry_variant={_VARIANTS[variant]}"], tail, pair, texts, into)

    def _lookup(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        count = 2 if call.row.mnemonic in ("lookup_2c", "lookup_c1c2") else 1
        result = group_of(call.element, count)
        tail = self.tail(name, call, arguments, 2, result)
        bits = tail.switches
        extra = [_ENTRIES[bits & 3]] if self.since("gaudi") else [f"BV{32 if not bits & 7 else 16}"]
        extra += words((bits & 4, "upper_half"), (bits & 8, "lut_ptr"), (bits & 16, "x2"), (bits & 32, "sbcd"))
        index = arguments[0]
        if not isinstance(index.type, Vector):
            raise self.wrong(f"{name} takes a vector of indices, not {index.type}")
        table = self.converted(arguments[1], INT)
        if not table.known and not self.since("greco"):
            raise self.refused(f"the table of {name} must be a constant on {self.generation}")
        text = self.in_register(table).text if bits & 8 else self.operand(table)
        return self._emit(call, extra, tail, result, [index.text, text], into)

    # --------------------------------------------------------------------------------------------------------- memory

    def special_register(self, name: str, value: Value) -> str:
        """Write a word to a register of the machine, and return its name in the instruction."""
        if self.since("greco"):
            self.emit(f"mov {name}, {self.in_register(value).text}")
            return name
        if name not in _OLD_REGISTERS or not self.since("gaudi"):
            raise self.refused(f"{name} is not available on {self.generation}")
        self.emit(f"mov.i32 {_OLD_REGISTERS[name]}, {self.operand(value)}")
        return _OLD_REGISTERS[name]

    def tensor(self, name: str, value: Value, word: str) -> str:
        """Return a tensor as an operand: its number, or the register that holds its number."""
        if value.known:
            return hex(self.whole(value))
        return self.special_register(word, self.converted(value, INT))

    def range_word(self, size: Value, offset: Value) -> Value:
        """Return the word with the range of elements of a partial access."""
        parts = [self.converted(size, INT), self.converted(offset, INT)]
        if parts[0].known and parts[1].known:
            return self.const((int(parts[0].const or 0) & 255) | (int(parts[1].const or 0) & 255) << 8, INT)
        return self.binary("|", parts[0], self.binary("<<", parts[1], self.const(8, INT)))

    def _place(self, name: str, call: IntrinsicCall, arguments: list[Value], word: str) -> tuple[str, str]:
        """Return the tensor and the coordinates of an access."""
        if "direct" in call.extras:
            return tuple(self.in_register(self.converted(argument, INT)).text for argument in arguments[:2])  # type: ignore[return-value]
        if not isinstance(arguments[0].type, Index):
            raise self.wrong(f"the coordinates of {name} must be int5, not {arguments[0].type}")
        return self.tensor(name, arguments[1], word), arguments[0].text

    def _load_tensor(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        kind = self._kind(call)
        partial = "partial" in call.extras
        self._need(name, arguments, 2 + 2 * partial, 8)
        tail = self.tail(name, call, arguments, 2 + 2 * partial, kind)
        if tail.never:
            return self._kept(tail, kind)
        number, location = self._place(name, call, arguments, "LD_TNSR_ID_REG")
        bits = tail.switches
        extra = words(
            (partial, "partial"), (bits & 16, _UNPACKED[bits >> 1 & 3]), (bits & 16, "unpack"), (bits & 32, "l0cs"),
            ("direct" in call.extras, "direct"),
        )  # fmt: skip
        if not bits & 16 and bits >> 1 & 3:
            extra.insert(0, _UNPACKED[bits >> 1 & 3])
        texts = [number, location]
        if partial:
            texts.append(self.special_register("LD_PARTIAL_REG", self.range_word(*arguments[2:4])))
        keeps = partial or call.row.mnemonic != "ld_tnsr"
        return self._emit_text(" ".join([call.row.mnemonic, *extra]), tail, kind, texts, into, partly=keeps)

    def _store_tensor(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        kind = register_type("s" if call.row.mnemonic == "st_tnsr_s" else "v", call.element)
        squeezed = call.row.mnemonic == "st_tnsr_sqz"
        count = 3 + squeezed + 2 * ("partial" in call.extras) + ("rmw" in call.extras)
        self._need(name, arguments, count, count + 3)
        tail = self.tail(name, call, arguments, count, None, income=False)
        if tail.never:
            return VOID_VALUE
        number, location = self._place(name, call, arguments, "ST_TNSR_ID_REG")
        value = self._vector(arguments[2 + squeezed], kind)
        text = self._text(value) if isinstance(kind, Scalar) else self._wide(value, kind).text
        rest = arguments[3 + squeezed : count]
        ends = []
        if "rmw" in call.extras:
            ends.append(self.special_register("ST_RMW_REG", self.converted(rest.pop(0), INT)))
        if "partial" in call.extras:
            ends.append(self.special_register("ST_PARTIAL_REG", self.range_word(*rest)))
        bits = tail.switches
        extra = words(
            ("partial" in call.extras, "partial"), ("rmw" in call.extras, "rmw_sel"),
            (bits >> 4 & 3, _PACKED[bits >> 4 & 3]), (bits & 4, "pack"), ("direct" in call.extras, "direct"),
        )  # fmt: skip
        middle = [hex(self.number(name, arguments[2], "the counter"))] if squeezed else []
        texts = [number, *middle, location, text, *ends]
        self.emit(f"{' '.join([call.row.mnemonic, *extra])} {', '.join(texts)}", tail.predicate)
        return VOID_VALUE

    def _load_global(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        kind = self._kind(call)
        self._need(name, arguments, 1, 5)
        tail = self.tail(name, call, arguments, 1, kind)
        return self._emit_text("ld_g", tail, kind, [self.address(arguments[0])], into)

    def _store_global(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        self._need(name, arguments, 2, 5)
        tail = self.tail(name, call, arguments, 2, None, income=False)
        if not tail.never:
            value = self.in_register(self.converted(arguments[1], self._kind(call)))
            self.emit(f"st_g {self.address(arguments[0])}, {value.text}", tail.predicate)
        return VOID_VALUE

    def address(self, value: Value) -> str:
        """Return the register of a global address."""
        if getattr(value.type, "space", "") != "global":
            raise self.wrong(f"expected an address in global memory, not {value.type}", "gen_addr(coordinates, tensor)")
        return value.text

    def local_address(self, value: Value) -> str:
        """Return an address of local memory as an operand."""
        address = self.converted(value, UNSIGNED) if isinstance(value.type, Scalar) else value
        text = self.operand(address)
        return (
            f"{text if not address.known else self.in_register(address).text}, 0x0" if not self.since("gaudi") else text
        )

    def _load_local(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        kind = self._kind(call)
        tail = self.tail(name, call, arguments, 1, kind)
        if call.unit == "s":
            address_value = self.converted(arguments[0], UNSIGNED)
            address = self.operand(address_value)
            head = " ".join(["ld_l", *words((tail.switches & 1, "mmio"), (tail.switches & 2, "lock"))])
            return self._emit_text(head, tail, kind, [address], into)
        return self._emit_text(call.row.mnemonic, tail, kind, [self.local_address(arguments[0])], into)

    def _store_local(self, name: str, call: IntrinsicCall, arguments: list[Value], into: str | None) -> Value:
        kind = self._kind(call)
        tail = self.tail(name, call, arguments, 2, None, income=False)
        if tail.never:
            return VOID_VALUE
        value = self._wide(self._vector(arguments[1], kind), kind)
        if call.unit == "s":
            address = self.converted(arguments[0], UNSIGNED)
            head = " ".join(["st_l", *words((tail.switches & 1, "mmio"), (tail.switches & 2, "unlock"))])
            self.emit(f"{head} {self.operand(address)}, {value.text}", tail.predicate)
        else:
            self.emit(f"{call.row.mnemonic} {self.local_address(arguments[0])}, {value.text}", tail.predicate)
        return VOID_VALUE
