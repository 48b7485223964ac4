"""Vector functions of the A5: a call on tensors is a loop of load, instruction and store under a mask.

Source: the bodies of asc-devkit @0da921b9 for 3510 as far as docs/ascendc.md states them; sequences beyond are assumed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from castsim.ascendc.call_words import Words
from castsim.ascendc.function_bodies import BLOCK, I32, FunctionBody, Lanes, MaskedCalls, Value, bits_of, vector
from castsim.ascendc.function_forms import FORMS, compare
from castsim.isa.dataclass import dataclass
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_words import conversion
from castsim.isa.pto.value_types import REGISTER_BITS, MaskType

_LETTERS = {"RINT": "R", "ROUND": "A", "FLOOR": "F", "CEIL": "C", "TRUNC": "Z", "ODD": "O", "HYBRID": "H", "NONE": "R"}
_NAMES = {"vmla": "vmula", "vshl": "vshls", "vshr": "vshrs", "vector_dup": "vdup"}
"""Instructions that the A5 calls otherwise."""
_PLAIN = frozenset((
    "vadd", "vsub", "vmul", "vdiv", "vmax", "vmin", "vand", "vor", "vaddrelu", "vsubrelu", "vmla", "vmadd", "vexp",
    "vln", "vabs", "vsqrt", "vrsqrt", "vrec", "vrelu", "vnot", "vadds", "vmuls", "vmaxs", "vmins", "vlrelu", "vaxpy",
    "vshl", "vshr", "vector_dup", "vcopy", "vprelu", "cast", "vaddreluconv", "vsubreluconv"
))  # fmt: skip
"""Instructions of which calls are written element by element."""
_SCALED = (0x37000000, 0x48000000)
"""2 ** -17 and 2 ** 17 in f32, between which the library multiplies by the scale of a cast."""


@dataclass(slots=True)
class FunctionWriter(MaskedCalls):
    """Writes launches under the mask register and mode that it finds."""

    def write(self, call: str, mnemonic: str, repeats: int, words: Words) -> None:
        """Write a call as one launch.

        Raises:
            IllegalError: it is none of those that are written, or has strides or elements that are not.
        """
        body = FunctionBody(self.maker, call, self.pointer)
        form = FORMS.get(mnemonic)
        if mnemonic in _PLAIN:
            self._elements(body, mnemonic, repeats, words)
        elif mnemonic.startswith("vcmpv"):
            compare(self, body, words, repeats, mnemonic[-2:])
        elif form is not None:
            form(self, body, words, repeats, mnemonic)
        else:
            raise body.refusal("", ("--target a2a3",))
        if body.nodes:
            self.add(pto.Section("vecscope", tuple(body.nodes), span=self.maker.span))

    # ------------------------------------------------------------------------------------------ element by element

    def _elements(self, body: FunctionBody, mnemonic: str, repeats: int, words: Words) -> None:
        operands = words.operands
        nibbles = [each for each in operands if bits_of(each.element) < 8]
        width = max(bits_of(each.element) for each in operands)
        if nibbles and ("i4" in {each.element for each in nibbles} or width != 16):
            raise body.refusal("of elements of 4 bits" if "i4" in {each.element for each in nibbles} else "of pairs")
        lanes = REGISTER_BITS // width
        active = self.low if self.counts else (self.lanes(width).word.bit_length() if repeats == 1 else lanes)
        for each in operands:
            steps = 0 if self.counts else max(repeats - 1, 0) * each.repeat * BLOCK
            blocks = -(-active * bits_of(each.element) // (BLOCK * 8)) - 1
            self.check(body.call, each, active, steps + blocks * (each.block - 1) * BLOCK)
        if nibbles:
            self._nibbles(body, repeats, words)
            return

        def trip(index: Value, mask: Value, own: Lanes | None) -> None:
            to, *sources = operands
            given = [body.load(each, index, self.step(each, lanes), width, mask) for each in sources]
            if mnemonic in ("vmla", "vaxpy", "vmadd"):
                before = body.load(to, index, self.step(to, lanes), width, mask)
                given.insert(1 if mnemonic == "vaxpy" else 0, before)
            result = self._result(body, mnemonic, words, given, mask)
            body.store(result, to, index, self.step(to, lanes), width, mask, own)

        self.trips(body, width, repeats, trip)

    def _nibbles(self, body: FunctionBody, repeats: int, words: Words) -> None:
        """Write a cast between bf16 and pairs of 4-bit floats, of which 64 bytes are a register of 128 values."""
        to, source = words.operands
        if not self.counts:
            raise body.refusal("of pairs of 4 bits under a mask")
        narrows = bits_of(to.element) < 8
        count, whole = self.low, body.full(8 if not narrows else 16)

        def trip(index: Value, carried: tuple[Value, ...]) -> Sequence[Value]:
            wide, rest = body.issue("plt_b16", carried[:1], (MaskType(16), I32))
            if narrows:
                value = body.load(source, index, 256, 16, wide)
                value = self.converted(body, value, to.element, words.attributes["mode"], wide)
                mask, left = body.issue("plt_b32", carried[1:], (MaskType(32), I32))
                body.issue("vsts", (value, *body.place(to.element, to.address, index, 64), mask), dist="PK4_B32")
                return rest, left
            value = body.one(
                "vlds", body.place(source.element, source.address, index, 64), vector(source.element), dist="UNPK4"
            )
            value = body.one("vcvt", (value, whole), vector(to.element), part="P0")
            body.store(value, to, index, 256, 16, wide, None)
            return rest, carried[1]

        del repeats
        body.loop(-(-count // 128), trip, (body.number(count), body.number(count // 2)))

    def _result(self, body: FunctionBody, mnemonic: str, words: Words, given: list[Value], mask: Value) -> Value:
        """Return the register that a trip stores."""
        to = words.operands[0].element
        if mnemonic == "cast":
            return self.converted(body, given[0], to, words.attributes["mode"], mask)
        if mnemonic in ("vaddreluconv", "vsubreluconv"):
            name = mnemonic.replace("conv", "")
            return self.converted(body, body.one(name, (*given, mask), given[0][1]), to, "RINT", mask)
        if mnemonic in ("vmla", "vaxpy"):
            given = [
                value if value[1] == vector(to) else self.converted(body, value, to, "NONE", mask) for value in given
            ]
        elif len({each.element for each in words.operands}) > 1:
            raise body.refusal("of two element types")
        if mnemonic == "vcopy":
            return given[0]
        for element, code in words.scalars:
            shift = mnemonic in ("vshl", "vshr")
            given.append(body.number(code) if shift else body.scalar(to if mnemonic == "vaxpy" else element, code))
        return body.one(_NAMES.get(mnemonic, mnemonic), (*given, mask), vector(to))

    def converted(self, body: FunctionBody, value: Value, to: str, mode: str, mask: Value) -> Value:
        """Write a conversion; it saturates, as far as CTRL lets it."""
        kind = value[1]
        assert isinstance(kind, pto.VectorType)
        if kind.element == to:
            return body.one("vtrc", (value, mask), kind, rnd=_LETTERS[mode])
        if (kind.element, to) == ("i32", "f16"):  # x times the scale, between two factors that keep it in range
            wide = self.converted(body, value, "f32", "RINT", mask)
            scale = body.maker.code(_f32_of(self.scale), "f32"), pto.ScalarType("f32")
            for factor in (body.scalar("f32", _SCALED[0]), scale, body.scalar("f32", _SCALED[1])):
                wide = body.one("vmuls", (wide, factor, mask), wide[1])
            return self.converted(body, wide, to, "RINT", mask)
        row = conversion(kind.element, to)
        words = {
            "rnd": _LETTERS[mode] if row.roundings else "", "sat": "SAT" if row.saturations else "",
            "part": row.parts[0] if row.parts else "",
        }  # fmt: skip
        bits = min(32, bits_of(kind.element))
        if bits != mask[1].bits:  # type: ignore[union-attr] # a wide lane has the bit of the narrow one it comes from
            mask = body.one("pbitcast", (mask,), MaskType(bits))
        return body.one("vcvt", (value, mask), vector(to), **words)


def _f32_of(code: int) -> int:
    """Return the code in f32 of a code of f16."""
    return int(np.uint16(code).view(np.float16).astype(np.float32).view(np.uint32))
