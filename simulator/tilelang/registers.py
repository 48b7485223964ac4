"""Register operations of the dialect, as vector instructions: calls `tl.simd.NAME` of lowered TIR.

Their arguments, and what the device's templates make of them, are in tilelang 0.1.15, `ascend/language/simd.py` and
`src/tl_templates/ascend/simd_inst.h`.
"""

from __future__ import annotations

from functools import partialmethod
from math import log
from typing import Any

from castsim.isa.errors import IllegalError
from castsim.isa.pto.micro_words import conversion, plain_word
from castsim.tilelang.scalars import (
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

_BINARY = frozenset(["vadd", "vsub", "vmul", "vmax", "vmin", "vand", "vor", "vxor", "vprelu"])
_SHIFTS = frozenset(("vshl", "vshr"))
_UNARY = frozenset(["vabs", "vneg", "vrelu", "vnot", "vexp", "vln", "vsqrt", "vcpadd"])
_REDUCTIONS = frozenset(["vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin"])
_BY_SCALAR = frozenset(["vadds", "vmuls", "vmaxs", "vmins", "vshls", "vshrs", "vlrelu"])
_SUMS = frozenset(("vmula", "vmadd", "vaxpy"))
_MASKS = frozenset(["pand", "por", "pxor", "pnot", "psel"])
_FORMATS = {"f8E4M3FN": "e4m3fn", "f8E5M2": "e5m2", "!pto.f4E2M1x2": "e2m1"}
_SUBNORMAL = 2.0**-126 - 2.0**-149
"""The largest subnormal number of f32."""
_PRECISE = 1
"""The code of exact division among a call's annotations; 0 is the hardware's."""
MERGING = "MODE_MERGING"


def _format(element: str) -> str:
    return _FORMATS.get(element, element.replace("ui", "u"))


class VectorTranslator(ScalarTranslator):
    """Vector operations."""

    fast_math: bool = False

    # ------------------------------------------------------------------------------------------------- operands

    def value(self, e: Any) -> Any:
        """Return what an expression comes to: a register, a mask, a pair of them, or a scalar."""
        dtype = str(e.dtype)
        if type(e).__name__ == "Call":
            name = name_of(e)
            if name.startswith("tl.simd."):
                return self.operation(e)
            if name == "tirx.tvm_access_ptr":
                return self._moved(e)
            if name == "tirx.reinterpret" and "x" in dtype:
                return self.seen_as(self.value(e.args[0]), element_of(dtype))
        if type(e).__name__ == "Var" and e in self.variables:
            return self.variables[e]
        if type(e).__name__ == "Broadcast":
            raise refused("an operation on registers without a name of its own", self.text.where)
        if "x" in dtype and type(e).__name__ not in ("BufferLoad", "Var"):
            raise refused(f"{type(e).__name__} of registers", self.text.where)
        return self.number(e)

    def seen_as(self, value: TextValue, element: str) -> TextValue:
        """Return a register's bits with other elements."""
        kind = register(element)
        if value.kind == kind:
            return value
        return self.text.once(f"pto.vbitcast {value.name} : {value.kind} -> {kind}", kind)

    def masked(self, e: Any, bits: int) -> TextValue:
        """Return a mask, seen at a width."""
        return self.mask_as(self.value(e) if not isinstance(e, TextValue) else e, bits)

    def mask_as(self, found: TextValue, bits: int) -> TextValue:
        """Return a mask's bits at a width."""
        kind = mask(bits)
        if found.kind == kind:
            return found
        return self.text.once(f"pto.pbitcast {found.name} : {found.kind} -> {kind}", kind)

    def address(self, e: Any, element: str | None = None) -> tuple[TextValue, TextValue]:
        """Return pointer and offset of `tvm_access_ptr`, or those of another element type."""
        if name_of(e) != "tirx.tvm_access_ptr":
            raise refused(f"a pointer by {name_of(e)}", self.text.where)
        own = element_of(e.args[0].dtype)
        offset = self.number(e.args[2])
        wanted = element or own
        if bits_of(wanted) != bits_of(own):
            whole = self._binary("Mul", offset, bits_of(own) // 8, "int64")
            offset = self._binary("FloorDiv", whole, bits_of(wanted) // 8, "int64")
        space = "gm" if e.args[1] in self.globals else "ub"
        return self.pointed(self.base(e.args[1]), wanted, space), self.text.named(offset)

    globals: dict[Any, TextValue]

    def base(self, data: Any) -> TextValue:
        """Return the pointer to a buffer's beginning."""
        raise NotImplementedError

    def put_register(
        self, name: str, operands: list[TextValue], result: str, words: str = "", tail: str = ""
    ) -> TextValue:
        """Put a vector operation with one result."""
        text = f"pto.{name} {names(operands)}{tail}{words} : {kinds(operands)} -> {result}"
        return self.text.one(text, result)

    # ------------------------------------------------------------------------------------------------ operations

    def operation(self, e: Any) -> Any:
        """Put the operation of a call and return its result, None if it has none.

        Raises:
            IllegalError: castsim does not know it, or not in this form.
        """
        place = e.annotations.get("castsim.place") if e.annotations else None
        self.text.at(place if place is not None else self.text.place)
        name = name_of(e).removeprefix("tl.simd.")
        args = list(e.args)
        merges = bool(args) and getattr(args[-1], "value", None) == MERGING
        if not merges or name in _SUMS:
            return self._known(name, e, args)
        # What merges names the register that it changes first.
        key = (args[0].args[1], self._place_of(args[0].args[2]))
        old, found = self.read(key), self._known(name, e, args[1:])
        self.cells[key] = self.put_register("vsel", [found, old, self.masked(args[-2], found.bits)], found.kind)
        return None

    def _known(self, name: str, e: Any, args: list[Any]) -> Any:
        if name in _BINARY or name in _SHIFTS:
            return self._two(name, args)
        if name in _UNARY or name in _REDUCTIONS:
            value = self.value(args[0])
            if name in ("vexp", "vln", "vsqrt") and self._precision(e) not in (None, 0):
                return getattr(self, f"_precise_{name}")(value, self.masked(args[1], value.bits))
            result = register(element_of(e.dtype)) if name in _REDUCTIONS else value.kind
            return self.put_register(name, [value, self.masked(args[1], value.bits)], result)
        if name in _BY_SCALAR:
            return self._by_scalar(name, args)
        if name in _SUMS:
            return self._sum(name, args)
        if name in _MASKS:
            operands = [self.value(each) for each in args]
            operands = [self.mask_as(each, operands[0].bits) for each in operands]
            return self.put_register(name, operands, operands[0].kind)
        handler = getattr(self, f"_{name}", None)
        if handler is None:
            raise refused(f"T.simd.{name}", self.text.where, "has no vector instruction in castsim")
        return handler(e, args)

    def _two(self, name: str, args: list[Any]) -> TextValue:
        a, b = self.value(args[0]), self.value(args[1])
        if name not in _SHIFTS:
            b = self.seen_as(b, a.element)
        return self.put_register(name, [a, b, self.masked(args[2], a.bits)], a.kind)

    def _by_scalar(self, name: str, args: list[Any]) -> TextValue:
        a = self.value(args[0])
        scalar = self.as_scalar(self.number(args[1]), "i16" if name in ("vshls", "vshrs") else a.element)
        return self.put_register(name, [a, scalar, self.masked(args[2], a.bits)], a.kind)

    def _sum(self, name: str, args: list[Any]) -> None:
        key = (args[0].args[1], self._place_of(args[0].args[2]))
        old = self.read(key)
        a = self.seen_as(self.value(args[1]), old.element)
        chosen = self.masked(args[3], old.bits)
        if name == "vaxpy":
            scalar = self.as_scalar(self.number(args[2]), old.element)
            new = self.put_register(name, [old, a, scalar, chosen], old.kind)
        else:
            b = self.seen_as(self.value(args[2]), old.element)
            operands = [old, a, b] if name == "vmula" else [b, old, a]
            new = self.put_register("vmula", [*operands, chosen], old.kind)
        if getattr(args[-1], "value", None) == MERGING:
            new = self.put_register("vsel", [new, old, chosen], old.kind)
        self.cells[key] = new

    def read(self, key: tuple[Any, int]) -> Any:
        """Return a mutable scalar or register."""
        raise NotImplementedError

    def _place_of(self, index: Any) -> int:
        """Return the number of a register in an array of them."""
        raise NotImplementedError

    def _pair_get(self, e: Any, args: list[Any]) -> TextValue:
        pair = self.value(args[0])
        assert isinstance(pair, tuple)
        found: TextValue = pair[int(args[1].value)]
        return found

    # ---------------------------------------------------------------------------------------------------- memory

    def _moving(self, e: Any, element: str) -> TextValue:
        """Return the pointer that a mutable one (`make_ubuf_ptr`) is now."""
        return self.pointed(self.value(e), element, "ub")

    def _vld(self, e: Any, args: list[Any]) -> Any:
        element, dist = element_of(e.dtype), str(args[1].value)
        dist = {"BLK": "BRC_BLK"}.get(dist, "" if dist.startswith("NORM") else dist)
        words = f' {{dist = "{dist}"}}' if dist else ""
        if len(args) > 2:
            at, step = self._moving(args[0], element), self.text.named(self.number(args[2]))
            types = register(element), at.kind
            return self.text.put(f"pto.vlds {at.name}[{step.name}]{words} : {at.kind} -> {', '.join(types)}", *types)
        at, offset = self.address(args[0], element if bits_of(element) != 64 else None)
        return self.text.one(
            f"pto.vlds {at.name}[{offset.name}]{words} : {at.kind} -> {register(element)}", register(element)
        )

    def _vld2(self, e: Any, args: list[Any]) -> tuple[TextValue, ...]:
        if len(args) > 2:
            raise refused("T.simd.vld2 with an offset", self.text.where)
        kind = register(element_of(e.dtype))
        at, offset = self.address(args[0], element_of(e.dtype))
        return self.text.put(
            f'pto.vldsx2 {at.name}[{offset.name}], "{args[1].value}" : {at.kind}, index -> {kind}, {kind}', kind, kind
        )

    def _vsts(self, e: Any, args: list[Any]) -> None:
        value, dist = self.value(args[1]), str(args[3].value)
        dist = "" if dist.startswith("NORM") else dist.replace("ONEPT_", "1PT_")
        packs = dist.startswith("PK")
        own = element_of(args[0].args[0].dtype)
        if dist.startswith("1PT"):
            value = self._one_point(value, own, dist)
        at, offset = self.address(args[0], own if packs else value.element)
        if packs and bits_of(own) not in (value.bits, 8, 16):
            at, offset = self.address(args[0], value.element)
        chosen = self.masked(args[2], int(dist.rpartition("_B")[2]) if packs else value.bits)
        if not dist and value.bits == 64:
            dist = "NORM_B32"
        words = f' {{dist = "{dist}"}}' if dist else ""
        self.text.line(
            f"pto.vsts {value.name}, {at.name}[{offset.name}], {chosen.name}{words} : "
            f"{value.kind}, {at.kind}, {chosen.kind}"
        )

    def _vsstb(self, e: Any, args: list[Any]) -> TextValue | None:
        """A store of blocks; the high half of the stride is between them, the low one that of a repeat."""
        value, stride = self.value(args[0]), self.number(args[2])
        parts = [self._binary("shift_right", stride, 16, "int32"), self._binary("bitwise_and", stride, 65535, "int32")]
        far, near = (self.as_scalar(each, "i16") for each in parts)
        updates = len(args) > 4
        at = self._moving(args[1], value.element) if updates else self._moved(args[1], value.element)
        operands = [value, at, far, near, self.masked(args[3], value.bits)]
        text = f"pto.vsstb {names(operands)} : {kinds(operands)}"
        if updates:
            return self.text.one(f"{text} -> {at.kind}", at.kind)
        self.text.line(text)
        return None

    def _one_point(self, value: TextValue, own: str, dist: str) -> TextValue:
        bits = int(dist.rpartition("_B")[2])
        if value.bits == bits:
            return value
        return self.seen_as(value, own if bits_of(own) == bits else f"ui{bits}")

    def _mem_bar(self, e: Any, args: list[Any]) -> None:
        self.text.line(f'pto.mem_bar "{args[0].value}"')

    def _vgather2(self, e: Any, args: list[Any]) -> TextValue:
        kind = register(element_of(e.dtype))
        index = self.value(args[1])
        index = self.seen_as(index, f"ui{index.bits}")
        at = self._moved(args[0])
        return self.put_register("vgather2", [at, index, self.masked(args[2], bits_of(element_of(e.dtype)))], kind)

    def _vscatter(self, e: Any, args: list[Any]) -> None:
        value, index = self.value(args[0]), self.value(args[2])
        index = self.seen_as(index, f"ui{index.bits}")
        operands = [value, self._moved(args[1]), index, self.masked(args[3], value.bits)]
        self.text.line(f"pto.vscatter {names(operands)} : {kinds(operands)}")

    def _vgatherb(self, e: Any, args: list[Any]) -> TextValue:
        element = element_of(e.dtype)
        every = f'pto.pset_b32 "PAT_ALL" : {mask(32)}'
        chosen = self.masked(args[2], 32) if len(args) > 2 else self.text.once(every, mask(32))
        operands = [self._moved(args[0], element), self.seen_as(self.value(args[1]), "ui32"), chosen]
        return self.put_register("vgatherb", operands, register(element))

    def _moved(self, e: Any, element: str | None = None) -> TextValue:
        at, offset = self.address(e, element)
        if offset == self.text.constants.get(("0", INDEX)):
            return at
        return self.text.once(f"pto.addptr {at.name}, {offset.name} : {at.kind} -> {at.kind}", at.kind)

    def _pld(self, e: Any, args: list[Any]) -> TextValue:
        at, offset = self.address(args[0])
        return self.text.one(
            f'pto.plds {at.name}[{offset.name}], "{args[1].value}" : {at.kind}, index -> {mask(8)}', mask(8)
        )

    def _pst(self, e: Any, args: list[Any]) -> None:
        at, offset = self.address(args[0])
        value = self.value(args[1])
        self.text.line(
            f'pto.psts {value.name}, {at.name}[{offset.name}], "{args[2].value}" : {value.kind}, {at.kind}, index'
        )

    # --------------------------------------------------------------------------------------------------- numbers

    def _precision(self, e: Any) -> int | None:
        found = e.annotations.get("precision") if e.annotations else None
        return None if found is None else int(getattr(found, "value", found))

    def _vdiv(self, e: Any, args: list[Any]) -> TextValue:
        a, b = self.value(args[0]), self.value(args[1])
        chosen = self.masked(args[2], a.bits)
        z = self.put_register("vdiv", [a, b, chosen], a.kind)
        precision = self._precision(e)
        exact = not self.fast_math if precision is None else precision == _PRECISE
        return self._exact_quotient(a, b, z, chosen) if exact and a.element == "f32" else z

    def _exact_quotient(self, a: TextValue, b: TextValue, z: TextValue, chosen: TextValue) -> TextValue:
        """Choose among a quotient and its two neighbours by what they leave; zero and special quotients stay."""
        put, f32, wide, whole = self.put_register, a.kind, register("i32"), register("ui32")
        words = {value: self.text.constant(value, "i32") for value in (1, -1)}
        sign = self.text.one(
            f"pto.vdup {self.text.constant(-(1 << 31), 'i32').name}, {chosen.name} : i32, {chosen.kind} -> {whole}",
            whole,
        )
        signed = put("vor", [self.seen_as(z, "ui32"), sign, chosen], whole)
        zero, bound = self.text.constant(0.0, "f32"), self.text.constant(-(1 << 23), "i32")
        special = [
            put("vcmps", [z, zero, chosen], mask(32), tail=', "eq"'),
            put("vcmps", [signed, bound, chosen], mask(32), tail=', "ge"'),
        ]
        stays = put("por", [special[1], special[0], chosen], mask(32))
        minus = put("vmuls", [b, self.text.constant(-1.0, "f32"), chosen], f32)
        near = [
            z,
            *(
                self.seen_as(put("vadds", [self.seen_as(z, "i32"), words[step], chosen], wide), "f32")
                for step in (-1, 1)
            ),
        ]
        left = [put("vabs", [put("vmula", [a, each, minus, chosen], f32), chosen], f32) for each in near]
        closer = put("vcmp", [left[0], left[1], chosen], mask(32), tail=', "lt"')
        least = put("vsel", [left[0], left[1], closer], f32)
        best = put("vsel", [z, near[1], closer], f32)
        above = put("vcmp", [left[2], least, chosen], mask(32), tail=', "lt"')
        return put("vsel", [z, put("vsel", [near[2], best, above], f32), stays], f32)

    def _f32(self, name: str, a: TextValue, other: TextValue | float | None, chosen: TextValue) -> TextValue:
        operand = [] if other is None else [other if isinstance(other, TextValue) else self.text.constant(other, "f32")]
        return self.put_register(name, [a, *operand, chosen], a.kind)

    def _f32_test(self, a: TextValue, number: float, order: str, chosen: TextValue) -> TextValue:
        operands = [a, self.text.constant(number, "f32"), chosen]
        return self.put_register("vcmps", operands, mask(32), tail=f', "{order}"')

    def _either(self, a: TextValue, b: TextValue, chosen: TextValue) -> TextValue:
        return self.put_register("vsel", [a, b, chosen], a.kind)

    def _precise_vexp(self, a: TextValue, chosen: TextValue) -> TextValue:
        """The exponential whose subnormal results are squares of that of half the argument."""
        z = self._f32("vexp", a, None, chosen)
        small = self._f32_test(z, _SUBNORMAL, "le", chosen)
        half = self._f32("vexp", self._f32("vmuls", a, 0.5, chosen), None, chosen)
        return self._either(self._f32("vmul", half, half, chosen), z, small)

    def _precise_vln(self, a: TextValue, chosen: TextValue) -> TextValue:
        """The logarithm, of positive subnormal numbers with a detour by 2^23."""
        z = self._f32("vln", a, None, chosen)
        tests = [self._f32_test(a, 2.0**-126, "lt", chosen), self._f32_test(a, 0.0, "gt", chosen)]
        small = self.put_register("pand", [*tests, chosen], mask(32))
        scaled = self._f32("vln", self._f32("vmuls", a, 2.0**23, chosen), None, chosen)
        return self._either(self._f32("vadds", scaled, -23 * log(2.0), chosen), z, small)

    def _precise_vsqrt(self, a: TextValue, chosen: TextValue) -> TextValue:
        """The square root by way of the reciprocal, one step of Newton and a correction, numbers below 1 scaled."""
        put = self._f32
        low = self._f32_test(a, 1.0, "lt", chosen)
        b = self._either(put("vmuls", a, 2.0**24, chosen), a, low)
        one = self.put_register("vdup", [self.text.constant(1.0, "f32"), chosen], a.kind)
        x = put("vdiv", one, put("vsqrt", b, None, chosen), chosen)
        left = self.put_register(
            "vmula", [one, put("vmul", x, b, chosen), put("vmuls", x, -1.0, chosen), chosen], a.kind
        )
        x = self.put_register("vmula", [x, left, put("vmuls", x, 0.5, chosen), chosen], a.kind)
        root = put("vmul", x, b, chosen)
        left = self.put_register("vmula", [b, root, put("vmuls", root, -1.0, chosen), chosen], a.kind)
        found = self.put_register("vmula", [root, put("vmuls", x, 0.5, chosen), left, chosen], a.kind)
        found = self._either(put("vmuls", found, 2.0**-12, chosen), found, low)
        special = [self._f32_test(a, 0.0, "eq", chosen), self._f32_test(a, float("inf"), "eq", chosen)]
        return self._either(a, found, self.put_register("por", [*special, chosen], mask(32)))

    def _vexpdif(self, e: Any, args: list[Any]) -> TextValue:
        a, b = self.value(args[0]), self.value(args[1])
        return self.put_register("vexpdif", [a, b, self.masked(args[2], a.bits)], register("f32"), tail=', "EVEN"')

    def _vcvt(self, e: Any, args: list[Any]) -> TextValue:
        source, element = self.value(args[0]), element_of(e.dtype)
        try:
            pair = conversion(_format(source.element), _format(element))
        except IllegalError as error:
            raise refused("T.simd.vcvt:", self.text.where, error.message) from None
        given = [plain_word(str(each.value)) for each in args[2:] if hasattr(each, "value")]
        words = {
            key: next((word for word in given if word in legal), legal[0]) for key, legal in pair.words.items() if legal
        }
        shown = ", ".join(f'{key} = "{word}"' for key, word in words.items())
        chosen = self.masked(args[1], pair.mask_width)
        return self.put_register("vcvt", [source, chosen], register(element), f" {{{shown}}}" if shown else "")

    def _vcmp(self, e: Any, args: list[Any]) -> TextValue:
        a, b = self.value(args[0]), self.value(args[1])
        operands = [a, self.seen_as(b, a.element), self.masked(args[2], a.bits)]
        return self.put_register("vcmp", operands, mask(a.bits), tail=f', "{args[3].value}"')

    def _vcmps(self, e: Any, args: list[Any]) -> TextValue:
        a = self.value(args[0])
        operands = [a, self.as_scalar(self.number(args[1]), a.element), self.masked(args[2], a.bits)]
        return self.put_register("vcmps", operands, mask(a.bits), tail=f', "{args[3].value}"')

    # ------------------------------------------------------------------------------------------------------ moves

    def _vdup(self, e: Any, args: list[Any]) -> TextValue:
        element = element_of(e.dtype)
        operands = [self.as_scalar(self.number(args[0]), element), self.masked(args[1], bits_of(element))]
        return self.put_register("vdup", operands, register(element))

    def _vdupv(self, e: Any, args: list[Any]) -> TextValue:
        a, where = self.value(args[0]), str(args[2].value).removeprefix("POS_")
        return self.put_register("vdup", [a, self.masked(args[1], a.bits)], a.kind, f' {{position = "{where}"}}')

    def _vci(self, e: Any, args: list[Any]) -> TextValue:
        element = element_of(e.dtype)
        order = "DESC" if "DEC" in str(args[1].value) else "ASC"
        start = self.as_scalar(self.number(args[0]), element)
        return self.put_register("vci", [start], register(element), f' {{order = "{order}"}}')

    def _vsel(self, e: Any, args: list[Any]) -> TextValue:
        a, b = self.value(args[0]), self.value(args[1])
        b = self.seen_as(b, a.element)
        return self.put_register("vsel", [a, b, self.masked(args[2], a.bits)], a.kind)

    def _vselr(self, e: Any, args: list[Any]) -> TextValue:
        a, index = self.value(args[0]), self.value(args[1])
        plain = self.seen_as(a, f"ui{a.bits}")
        found = self.put_register("vselr", [plain, self.seen_as(index, f"ui{a.bits}")], plain.kind)
        return self.seen_as(found, a.element)

    def _interleaved(self, e: Any, args: list[Any], name: str) -> tuple[TextValue, ...]:
        a, b = self.value(args[0]), self.value(args[1])
        b = self.seen_as(b, a.element)
        return self.text.put(
            f"pto.{name} {a.name}, {b.name} : {a.kind}, {a.kind} -> {a.kind}, {a.kind}", a.kind, a.kind
        )

    _vintlv = partialmethod(_interleaved, name="vintlv")
    _vdintlv = partialmethod(_interleaved, name="vdintlv")

    def _vpack(self, e: Any, args: list[Any]) -> TextValue:
        a = self.value(args[0])
        a = self.seen_as(a, f"ui{a.bits}")
        packed = self.put_register("vpack", [a], register(f"ui{a.bits // 2}"), tail=f', "{args[1].value}"')
        return self.seen_as(packed, element_of(e.dtype))

    def _vunpack(self, e: Any, args: list[Any]) -> TextValue:
        a = self.value(args[0])
        name = "vzunpack" if a.element[0] == "u" else "vsunpack"
        return self.put_register(name, [a], register(element_of(e.dtype)), tail=f', "{args[1].value}"')

    def _carried_over(self, e: Any, args: list[Any], name: str) -> tuple[TextValue, TextValue]:
        """Put an operation on 32-bit words with a carry; the dialect hands it over first."""
        a = self.value(args[0])
        given = [a, self.seen_as(self.value(args[1]), a.element), *(self.masked(each, 32) for each in args[2:])]
        types = a.kind, mask(32)
        found, carry = self.text.put(f"pto.{name} {names(given)} : {kinds(given)} -> {', '.join(types)}", *types)
        return carry, found

    _vaddc = partialmethod(_carried_over, name="vaddc")
    _vsubc = partialmethod(_carried_over, name="vsubc")
    _vaddcs = partialmethod(_carried_over, name="vaddcs")
    _vsubcs = partialmethod(_carried_over, name="vsubcs")

    def _vmull(self, e: Any, args: list[Any]) -> tuple[TextValue, ...]:
        a = self.value(args[0])
        given = [a, self.seen_as(self.value(args[1]), a.element), self.masked(args[2], 32)]
        return self.text.put(f"pto.vmull {names(given)} : {kinds(given)} -> {a.kind}, {a.kind}", a.kind, a.kind)

    def _vabsdif(self, e: Any, args: list[Any]) -> TextValue:
        """The magnitude of a difference: two instructions, where the device has one."""
        a, b = self.value(args[0]), self.value(args[1])
        chosen = self.masked(args[2], a.bits)
        return self.put_register("vabs", [self.put_register("vsub", [a, b, chosen], a.kind), chosen], a.kind)

    def _vusqz(self, e: Any, args: list[Any]) -> TextValue:
        element = element_of(e.dtype)
        chosen = self.masked(args[0], bits_of(element))
        zero = self.put_register("vdup", [self.as_scalar(0, element), chosen], register(element))
        return self.put_register("vusqz", [zero, chosen], zero.kind)

    def _vsqz(self, e: Any, args: list[Any]) -> TextValue:
        a = self.value(args[0])
        return self.put_register("vsqz", [a, self.masked(args[1], a.bits)], a.kind)

    # ------------------------------------------------------------------------------------------------------ masks

    def _pset(self, e: Any, args: list[Any], name: str = "pset") -> TextValue:
        bits = min(int(args[0].value), 32)
        return self.text.once(f'pto.{name}_b{bits} "{args[1].value}" : {mask(bits)}', mask(bits))

    _pge = partialmethod(_pset, name="pge")

    def _update_mask(self, e: Any, args: list[Any]) -> TextValue:
        bits, count = int(args[1].value), self.as_scalar(self.number(args[0]), "i32")
        return self.text.put(f"pto.plt_b{bits} {count.name} : i32 -> {mask(bits)}, i32", mask(bits), "i32")[0]

    def _part(self, e: Any, args: list[Any], name: str, factor: int) -> TextValue:
        a = self.value(args[0])
        bits = max(8, min(32, int(a.bits * factor) if factor > 1 else a.bits // 2))
        return self.put_register(name, [a], mask(bits), tail=f', "{args[1].value}"')

    _ppack = partialmethod(_part, name="ppack", factor=1)
    _punpack = partialmethod(_part, name="punpack", factor=2)

    def _pintlv(self, e: Any, args: list[Any], name: str = "pintlv") -> tuple[TextValue, ...]:
        bits = int(args[2].value)
        a, b, kind = self.masked(args[0], bits), self.masked(args[1], bits), mask(bits)
        return self.text.put(f"pto.{name}_b{bits} {a.name}, {b.name} : {kind}, {kind} -> {kind}, {kind}", kind, kind)

    _pdintlv = partialmethod(_pintlv, name="pdintlv")
