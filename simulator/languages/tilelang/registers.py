"""Register operations of the dialect, as vector instructions: calls `tl.simd.NAME` of lowered TIR.

Most take the operands of the instruction with their name in its order, so its own form (`micro_forms`) describes
each of them. Their arguments, and the device's templates for them, are in tilelang 0.1.15,
`ascend/language/simd.py` and `src/tl_templates/ascend/simd_inst.h`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from math import log
from typing import Any

from castsim.isa.errors import IllegalError
from castsim.isa.pto.micro_words import conversion, forms_of, plain_word
from castsim.languages.tilelang.scalars import (
    INDEX,
    ScalarTranslator,
    TextValue,
    bits_of,
    element_of,
    kinds,
    mask,
    name_of,
    names,
    refused,
    register,
)

_BY_FORM = frozenset((
    "vadd", "vsub", "vmul", "vmax", "vmin", "vand", "vor", "vxor", "vprelu", "vshl", "vshr", "vabs", "vneg", "vrelu",
    "vnot", "vcpadd", "vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vadds", "vmuls", "vmaxs", "vmins",
    "vshls", "vshrs", "vlrelu", "vcmp", "vcmps", "vdup", "vci", "vsel", "vintlv", "vdintlv", "vmull", "vsqz",
    "vscatter", "vgather2", "pand", "por", "pxor", "pnot", "psel",
))  # fmt: skip
_INDEXED = frozenset(("vselr", "vgather2", "vgatherb", "vscatter"))
"""Operations whose second kind of register holds indices, which have no sign."""
_FORMATS = {"f8E4M3FN": "e4m3fn", "f8E5M2": "e5m2", "!pto.f4E2M1x2": "e2m1"}
_WORDS = {"INC_ORDER": "ASC", "DEC_ORDER": "DESC", "POS_LOWEST": "LOWEST", "POS_HIGHEST": "HIGHEST"}
_SUBNORMAL = 2.0**-126 - 2.0**-149
"""The largest subnormal number of f32."""
_PRECISE = 1
"""The code of exact division among a call's annotations; 0 is the hardware's."""
MERGING = "MODE_MERGING"


def _format(element: str) -> str:
    return _FORMATS.get(element, element.replace("ui", "u"))


def _word(e: Any) -> str:
    return str(getattr(e, "value", e))


def _dist(e: Any) -> str:
    """Return a distribution; the plain one is that of the elements' own width."""
    return {"BLK": "BRC_BLK"}.get(_word(e), "" if _word(e).startswith("NORM") else _word(e))


class VectorTranslator(ScalarTranslator):
    """Vector operations."""

    fast_math: bool = False
    globals: dict[Any, TextValue]

    # ------------------------------------------------------------------------------------------------- operands

    def value(self, e: Any) -> Any:
        """Return the value of an expression: a register, a mask, a pair of them, or a scalar."""
        if isinstance(e, TextValue | int | float):
            return e
        dtype, kind = str(e.dtype), type(e).__name__
        if kind == "Call":
            name = name_of(e)
            if name.startswith("tl.simd."):
                return self.operation(e)
            if name == "tirx.tvm_access_ptr":
                return self.moved(e)
            if name == "tirx.reinterpret" and "x" in dtype:
                return self.seen_as(self.value(e.args[0]), element_of(dtype))
        if kind == "Var" and e in self.variables:
            return self.variables[e]
        if kind == "Broadcast":
            raise refused("an unnamed operation on registers", self.text.where)
        if "x" in dtype and kind not in ("BufferLoad", "Var"):
            raise refused(f"{kind} of registers", self.text.where)
        return self.number(e)

    def seen_as(self, value: TextValue, element: str) -> TextValue:
        """Return a register's bits with other elements."""
        kind = register(element)
        if value.kind == kind:
            return value
        return self.text.once(f"pto.vbitcast {value.name} : {value.kind} -> {kind}", kind)

    def masked(self, e: Any, bits: int) -> TextValue:
        """Return a mask, reinterpreted for a width."""
        value: TextValue = self.value(e)
        kind = mask(bits)
        if value.kind == kind:
            return value
        return self.text.once(f"pto.pbitcast {value.name} : {value.kind} -> {kind}", kind)

    def address(self, e: Any, element: str | None = None) -> tuple[TextValue, TextValue]:
        """Return pointer and offset of `tvm_access_ptr`, or those of another element type."""
        if name_of(e) != "tirx.tvm_access_ptr":
            raise refused(f"a pointer by {name_of(e)}", self.text.where)
        own = element_of(e.args[0].dtype)
        offset = self.number(e.args[2])
        wanted = element or own
        if bits_of(wanted) != bits_of(own):
            whole = self.binary("Mul", offset, bits_of(own) // 8, "int64")
            offset = self.binary("FloorDiv", whole, bits_of(wanted) // 8, "int64")
        space = "gm" if e.args[1] in self.globals else "ub"
        return self.pointed(self.base(e.args[1]), wanted, space), self.text.named(offset)

    def moved(self, e: Any, element: str | None = None) -> TextValue:
        """Return the pointer that `tvm_access_ptr` gives."""
        at, offset = self.address(e, element)
        if offset == self.text.constants.get(("0", INDEX)):
            return at
        return self.text.once(f"pto.addptr {at.name}, {offset.name} : {at.kind} -> {at.kind}", at.kind)

    def _moving(self, e: Any, element: str) -> TextValue:
        """Return the current value of a mutable pointer (`make_ubuf_ptr`)."""
        return self.pointed(self.value(e), element, "ub")

    def base(self, data: Any) -> TextValue:
        """Return the pointer to a buffer's beginning."""
        raise NotImplementedError

    def read(self, key: tuple[Any, int]) -> Any:
        """Return a mutable scalar or register."""
        raise NotImplementedError

    def place_of(self, index: Any) -> int:
        """Return the number of a register in an array of them."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------- operations by form

    def operation(self, e: Any) -> Any:
        """Emit the operation of a call and return its result, None if it has none.

        Raises:
            IllegalError: castsim does not know it, or not in this form.
        """
        location = e.annotations.get("castsim.place") if e.annotations else None
        self.text.at(location if location is not None else self.text.place)
        name, args = name_of(e).removeprefix("tl.simd."), list(e.args)
        handler = getattr(self, f"_{name}", None)
        if handler is None and name not in _BY_FORM:
            raise refused(f"T.simd.{name}", self.text.where, "has no vector instruction in castsim")
        merges = bool(args) and getattr(args[-1], "value", None) == MERGING and name not in _SUMS
        key = (args[0].args[1], self.place_of(args[0].args[2])) if merges else None
        old = self.read(key) if key else None
        args = args[1:] if merges else args  # what merges names the register that it changes first
        element = "" if str(e.dtype) in ("void", "handle", "") else element_of(e.dtype)
        result = handler(e, args) if handler else self.put(name, args, element)
        if key is None:
            return result
        self.cells[key] = self.put("vsel", [result, old, args[-2]])
        return None

    def put(self, name: str, given: Sequence[Any], element: str = "", form: int = 0, *, optional: bool = False) -> Any:
        """Emit an operation and return its result, a pair if it has two, None if it has none.

        Args:
            name: of the instruction.
            given: expressions, values, numbers and words, in the order of its form; extra ones are ignored.
            element: element type of the result, if it is not the first register's.
            form: which of the instruction's forms.
            optional: whether optional results are included: a pointer that it moves.
        """
        row, left = forms_of(name)[form], iter(given)
        operands: list[TextValue] = []
        shown: list[str] = []
        for item in row.items:
            if len(item) > 1:
                shown.append(f'"{_word(next(left))}"')
                continue
            operands.append(self._operand(name, item, next(left), operands, element))
            if len(operands) - 1 == row.offset:
                shown[-1] += f"[{operands[-1].name}]"
            else:
                shown.append(operands[-1].name)
        word = _word(next(left)) if row.keys else ""
        words = f' {{{row.keys[0]} = "{_WORDS.get(word, word)}"}}' if word else ""
        typed = [operand for at, operand in enumerate(operands) if at != row.offset or row.offset_typed]
        whole = operands[row.operands.index("V")] if "V" in row.operands else None
        first = whole or operands[0]
        results = []
        for letter in row.results[: len(row.results) - (0 if optional else row.optional)]:
            if (letter == "V" and whole is not None) or (letter == "m" and first.kind.startswith("!pto.mask")):
                results.append(first.kind)
            elif letter == "P":
                results.append(next(operand.kind for operand in operands if operand.kind.startswith("!pto.ptr")))
            elif letter == "M":
                results.append(mask(first.bits))
            else:
                results.append(element if letter in "mk" else register(element))
        arrow = f" -> {', '.join(results)}" if results else ""
        text = f"pto.{name} {', '.join(shown)}{words} : {kinds(typed)}{arrow}"
        if not results:
            self.text.line(text)
            return None
        values = self.text.put(text, *results)
        return values if len(values) > 1 else values[0]

    def _operand(self, name: str, letter: str, e: Any, before: Sequence[TextValue], element: str) -> TextValue:
        first = next((value for value in before if value.kind.startswith("!pto.")), None)
        lanes = None if first is None or first.kind.startswith("!pto.ptr") else first
        if letter == "T":
            return self.as_scalar(self.value(e), lanes.element if lanes else element)
        if letter == "N":
            return self.as_scalar(self.value(e), "i16")
        if letter in "MmP" and isinstance(e, TextValue):
            return e
        if letter in "Mm" and before:
            return self.masked(e, lanes.bits if lanes else bits_of(element))
        if letter == "P":
            return self.moved(e)
        if letter == "I":
            return self.text.named(e)
        operand: TextValue = self.value(e)
        if letter == "V" and lanes:
            return self.seen_as(operand, lanes.element)
        return self.seen_as(operand, f"ui{operand.bits}") if letter == "U" and name in _INDEXED else operand

    # ---------------------------------------------------------------------------------------------------- memory

    def _pair_get(self, e: Any, args: list[Any]) -> TextValue:
        value: TextValue = self.value(args[0])[int(args[1].value)]
        return value

    def _vld(self, e: Any, args: list[Any]) -> Any:
        element, dist = element_of(e.dtype), _dist(args[1])
        if len(args) == 2:
            return self.put(
                "vlds", [*self.address(args[0], element if bits_of(element) != 64 else None), dist], element
            )
        at, step = self._moving(args[0], element), self.text.named(self.number(args[2]))
        return self.put("vlds", [at, step, dist], element, optional=True)

    def _vld2(self, e: Any, args: list[Any]) -> Any:
        if len(args) > 2:
            raise refused("T.simd.vld2 with an offset", self.text.where)
        return self.put("vldsx2", [*self.address(args[0], element_of(e.dtype)), args[1]], element_of(e.dtype))

    def _vsts(self, e: Any, args: list[Any]) -> None:
        value, dist = self.value(args[1]), _dist(args[3]).replace("ONEPT_", "1PT_")
        packs, width = dist.startswith("PK"), int(dist.rpartition("_B")[2] or 0)
        own = element_of(args[0].args[0].dtype)
        if dist.startswith("1PT") and value.bits != width:
            value = self.seen_as(value, own if bits_of(own) == width else f"ui{width}")
        at, offset = self.address(args[0], own if packs else value.element)
        if packs and bits_of(own) not in (value.bits, 8, 16):
            at, offset = self.address(args[0], value.element)
        chosen = self.masked(args[2], width if packs else value.bits)
        self.put("vsts", [value, at, offset, chosen, dist or ("NORM_B32" if value.bits == 64 else "")])

    def _vsstb(self, e: Any, args: list[Any]) -> TextValue | None:
        """Emit a store of blocks; the high half of the stride is between blocks, the low one between repeats."""
        value, stride = self.value(args[0]), self.number(args[2])
        parts = [self.binary("shift_right", stride, 16, "int32"), self.binary("bitwise_and", stride, 65535, "int32")]
        far, near = (self.as_scalar(part, "i16") for part in parts)
        updates = len(args) > 4
        at = self._moving(args[1], value.element) if updates else self.moved(args[1], value.element)
        stored: TextValue | None = self.put("vsstb", [value, at, far, near, args[3]], optional=updates)
        return stored

    def _mem_bar(self, e: Any, args: list[Any]) -> None:
        self.text.line(f'pto.mem_bar "{_word(args[0])}"')

    def _vgatherb(self, e: Any, args: list[Any]) -> Any:
        chosen = args[2] if len(args) > 2 else self.every(32)
        base = self.moved(args[0], element_of(e.dtype))
        index = self.seen_as(self.value(args[1]), "ui32")
        return self.put("vgatherb", [base, index, self.masked(chosen, 32)], element_of(e.dtype))

    def _pld(self, e: Any, args: list[Any]) -> Any:
        return self.put("plds", [*self.address(args[0]), args[1]], mask(8))

    def _pst(self, e: Any, args: list[Any]) -> None:
        address = self.address(args[0])
        self.put("psts", [self.value(args[1]), *address, args[2]])

    # --------------------------------------------------------------------------------------------------- numbers

    def _sum(self, e: Any, args: list[Any], name: str) -> None:
        """Put an operation that changes its first operand d: d + a b, d a + b (`vmadd`), a b + d with a number b."""
        key = args[0].args[1], self.place_of(args[0].args[2])
        old = self.read(key)
        a, chosen = self.value(args[1]), self.masked(args[3], old.bits)
        b = args[2] if name == "vaxpy" else self.seen_as(self.value(args[2]), old.element)
        operands = {"vmula": [old, a, b], "vmadd": [b, old, a], "vaxpy": [a, old, b]}[name]
        new = self.put(name.replace("vmadd", "vmula"), [*operands, chosen])
        self.cells[key] = self.put("vsel", [new, old, chosen]) if _word(args[-1]) == MERGING else new

    _vmula = partialmethod(_sum, name="vmula")
    _vmadd = partialmethod(_sum, name="vmadd")
    _vaxpy = partialmethod(_sum, name="vaxpy")

    @staticmethod
    def _precision(e: Any) -> int | None:
        precision = e.annotations.get("precision") if e.annotations else None
        return None if precision is None else int(getattr(precision, "value", precision))

    def _vdiv(self, e: Any, args: list[Any]) -> TextValue:
        a, b = self.value(args[0]), self.value(args[1])
        chosen = self.masked(args[2], a.bits)
        z: TextValue = self.put("vdiv", [a, b, chosen])
        precision = self._precision(e)
        exact = not self.fast_math if precision is None else precision == _PRECISE
        return self._exact_quotient(a, b, z, chosen) if exact and a.element == "f32" else z

    def _exact_quotient(self, a: TextValue, b: TextValue, z: TextValue, chosen: TextValue) -> TextValue:
        """Choose among a quotient and its two neighbours by their remainders; zero and special quotients stay."""

        def do(name: str, *given: Any) -> Any:
            at = 1 if name == "vdup" else len(given) - (name in ("vcmp", "vcmps"))
            return self.put(name, [*given[:at], chosen, *given[at:]], "ui32")

        for number in (1, -1):
            self.text.constant(number, "i32")
        sign = do("vdup", -(1 << 31))
        signed = do("vor", self.seen_as(z, "ui32"), sign)
        special = [do("vcmps", z, 0.0, "eq"), do("vcmps", signed, -(1 << 23), "ge")]
        stays = do("por", special[1], special[0])
        minus = do("vmuls", b, -1.0)
        near = [z, *(self.seen_as(do("vadds", self.seen_as(z, "i32"), step), "f32") for step in (-1, 1))]
        left = [do("vabs", do("vmula", a, candidate, minus)) for candidate in near]
        closer = do("vcmp", left[0], left[1], "lt")
        least = self.put("vsel", [left[0], left[1], closer])
        best = self.put("vsel", [z, near[1], closer])
        above = do("vcmp", left[2], least, "lt")
        quotient: TextValue = self.put("vsel", [z, self.put("vsel", [near[2], best, above]), stays])
        return quotient

    def _function(self, e: Any, args: list[Any], name: str) -> Any:
        """Put a function of f32 that has a precise form besides the hardware's."""
        a = self.value(args[0])
        chosen = self.masked(args[1], a.bits)
        if self._precision(e) in (None, 0):
            return self.put(name, [a, chosen])
        return getattr(self, f"_precise{name}")(a, chosen)

    _vexp = partialmethod(_function, name="vexp")
    _vln = partialmethod(_function, name="vln")
    _vsqrt = partialmethod(_function, name="vsqrt")

    def _precisevexp(self, a: TextValue, chosen: TextValue) -> Any:
        """The exponential whose subnormal results are squares of that of half the argument."""
        z = self.put("vexp", [a, chosen])
        small = self.put("vcmps", [z, _SUBNORMAL, chosen, "le"])
        half = self.put("vexp", [self.put("vmuls", [a, 0.5, chosen]), chosen])
        return self.put("vsel", [self.put("vmul", [half, half, chosen]), z, small])

    def _precisevln(self, a: TextValue, chosen: TextValue) -> Any:
        """The logarithm, of positive subnormal numbers with a detour by 2^23."""
        z = self.put("vln", [a, chosen])
        tests = [self.put("vcmps", [a, *test]) for test in ((2.0**-126, chosen, "lt"), (0.0, chosen, "gt"))]
        small = self.put("pand", [*tests, chosen])
        scaled = self.put("vln", [self.put("vmuls", [a, 2.0**23, chosen]), chosen])
        return self.put("vsel", [self.put("vadds", [scaled, -23 * log(2.0), chosen]), z, small])

    def _precisevsqrt(self, a: TextValue, chosen: TextValue) -> Any:
        """Emit the square root via the reciprocal, one step of Newton and a correction, with numbers below 1 scaled."""

        def do(name: str, *given: Any) -> Any:
            return self.put(name, [*given, chosen], "f32")

        low = self.put("vcmps", [a, 1.0, chosen, "lt"])
        b = self.put("vsel", [do("vmuls", a, 2.0**24), a, low])
        unit = do("vdup", 1.0)
        x = do("vdiv", unit, do("vsqrt", b))
        left = do("vmula", unit, do("vmul", x, b), do("vmuls", x, -1.0))
        x = do("vmula", x, left, do("vmuls", x, 0.5))
        root = do("vmul", x, b)
        left = do("vmula", b, root, do("vmuls", root, -1.0))
        root_value = do("vmula", root, do("vmuls", x, 0.5), left)
        root_value = self.put("vsel", [do("vmuls", root_value, 2.0**-12), root_value, low])
        special = [self.put("vcmps", [a, special_value, chosen, "eq"]) for special_value in (0.0, float("inf"))]
        return self.put("vsel", [a, root_value, do("por", *special)])

    def _vcvt(self, e: Any, args: list[Any]) -> Any:
        source, element = self.value(args[0]), element_of(e.dtype)
        try:
            pair = conversion(_format(source.element), _format(element))
        except IllegalError as error:
            raise refused("T.simd.vcvt:", self.text.where, error.message) from None
        given = [plain_word(_word(argument)) for argument in args[2:] if hasattr(argument, "value")]
        words = {
            key: next((word for word in given if word in legal), legal[0]) for key, legal in pair.words.items() if legal
        }
        shown = ", ".join(f'{key} = "{word}"' for key, word in words.items())
        operands = [source, self.masked(args[1], pair.mask_width)]
        text = (
            f"pto.vcvt {names(operands)}{f' {{{shown}}}' if shown else ''} : {kinds(operands)} -> {register(element)}"
        )
        return self.text.one(text, register(element))

    def _vexpdif(self, e: Any, args: list[Any]) -> Any:
        return self.put("vexpdif", [*args[:3], "EVEN"], "f32")

    def _vabsdif(self, e: Any, args: list[Any]) -> Any:
        """Emit the magnitude of a difference: two instructions, where the device has one."""
        return self.put("vabs", [self.put("vsub", args), args[2]])

    # ------------------------------------------------------------------------------------------------------ moves

    def _vdupv(self, e: Any, args: list[Any]) -> Any:
        return self.put("vdup", args, form=1)

    def _vselr(self, e: Any, args: list[Any]) -> TextValue:
        a, index = self.value(args[0]), self.value(args[1])
        return self.seen_as(self.put("vselr", [self.seen_as(a, f"ui{a.bits}"), index]), a.element)

    def _vpack(self, e: Any, args: list[Any]) -> TextValue:
        a = self.value(args[0])
        a = self.seen_as(a, f"ui{a.bits}")
        return self.seen_as(self.put("vpack", [a, args[1]], f"ui{a.bits // 2}"), element_of(e.dtype))

    def _vunpack(self, e: Any, args: list[Any]) -> Any:
        a = self.value(args[0])
        return self.put("vzunpack" if a.element[0] == "u" else "vsunpack", [a, args[1]], element_of(e.dtype), form=1)

    def _carried_over(self, e: Any, args: list[Any], name: str) -> tuple[TextValue, TextValue]:
        """Put an operation on 32-bit words with a carry; the dialect hands it over first."""
        total, carry = self.put(name, args)
        return carry, total

    _vaddc = partialmethod(_carried_over, name="vaddc")
    _vsubc = partialmethod(_carried_over, name="vsubc")
    _vaddcs = partialmethod(_carried_over, name="vaddcs")
    _vsubcs = partialmethod(_carried_over, name="vsubcs")

    def _vusqz(self, e: Any, args: list[Any]) -> Any:
        element = element_of(e.dtype)
        chosen = self.masked(args[0], bits_of(element))
        return self.put("vusqz", [self.put("vdup", [0, chosen], element), chosen])

    # ------------------------------------------------------------------------------------------------------ masks

    def every(self, bits: int) -> TextValue:
        """Return the mask of all lanes."""
        return self.text.once(f'pto.pset_b{bits} "PAT_ALL" : {mask(bits)}', mask(bits))

    def _pset(self, e: Any, args: list[Any], name: str = "pset") -> TextValue:
        bits = min(int(args[0].value), 32)
        return self.text.once(f'pto.{name}_b{bits} "{_word(args[1])}" : {mask(bits)}', mask(bits))

    _pge = partialmethod(_pset, name="pge")

    def _update_mask(self, e: Any, args: list[Any]) -> TextValue:
        bits, count = int(args[1].value), self.as_scalar(self.number(args[0]), "i32")
        return self.text.put(f"pto.plt_b{bits} {count.name} : i32 -> {mask(bits)}, i32", mask(bits), "i32")[0]

    def _part(self, e: Any, args: list[Any], name: str) -> Any:
        a = self.value(args[0])
        return self.put(name, [a, args[1]], mask(max(8, a.bits * 2 if name == "punpack" else a.bits // 2)))

    _ppack = partialmethod(_part, name="ppack")
    _punpack = partialmethod(_part, name="punpack")

    def _interleaved(self, e: Any, args: list[Any], name: str) -> Any:
        bits = int(args[2].value)
        return self.put(f"{name}_b{bits}", [self.masked(argument, bits) for argument in args[:2]])

    _pintlv = partialmethod(_interleaved, name="pintlv")
    _pdintlv = partialmethod(_interleaved, name="pdintlv")


_SUMS = frozenset(("vmula", "vmadd", "vaxpy"))
