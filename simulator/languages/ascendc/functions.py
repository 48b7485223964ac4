"""Vector functions of the A5: a call on tensors is a loop of load, instruction and store under a mask.

Source: the bodies of asc-devkit @0da921b9 for 3510; docs/ascendc.md says which calls are written so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, TileError
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_words import conversion
from castsim.isa.pto.value_types import MicroOperation, element_format
from castsim.languages.ascendc.call_words import Operand, Words
from castsim.languages.cpp_recording.node_making import INDEX, NodeMaker

_I32 = pto.ScalarType("i32")
_REGISTER = 2048
"""Bits of a vector register."""
_FULL = (1 << 64) - 1
_LETTERS = {"RINT": "R", "ROUND": "A", "FLOOR": "F", "CEIL": "C", "TRUNC": "Z", "ODD": "O", "HYBRID": "H", "NONE": "R"}
_NAMES = {"vmla": "vmula", "vshl": "vshls", "vshr": "vshrs", "vector_dup": "vdup"}
"""Instructions that the A5 calls otherwise."""
_WRITTEN = frozenset((
    "vadd", "vsub", "vmul", "vdiv", "vmax", "vmin", "vand", "vor", "vaddrelu", "vsubrelu", "vmla", "vexp", "vln",
    "vabs", "vsqrt", "vrsqrt", "vrec", "vrelu", "vnot", "vadds", "vmuls", "vmaxs", "vmins", "vlrelu", "vaxpy",
    "vshl", "vshr", "vector_dup", "vcopy", "vprelu", "cast"
))  # fmt: skip
"""Instructions of which calls are written."""
_ACCUMULATING = ("vmla", "vaxpy")


@dataclass(slots=True)
class FunctionWriter:
    """Writes launches under the mask register and mode that it finds.

    `pointer` gives the name of a pointer into the buffer, `add` takes a launch.
    """

    maker: NodeMaker
    pointer: Callable[[str, int], str]
    add: Callable[[pto.Operation], None]
    counts: bool = False
    high: int = _FULL
    low: int = _FULL
    _body: list[pto.Operation] = field(default_factory=list)

    def control(self, what: str, first: int, second: int) -> None:
        """Apply a word of control; scales and masks of comparisons belong to calls that are refused."""
        if what in ("count", "norm"):
            self.counts = what == "count"
        elif what == "mask":
            self.high, self.low = first, second
        elif what == "lanes":
            self.high, self.low = 0, first

    def write(self, call: str, mnemonic: str, repeats: int, words: Words) -> None:
        """Write a call as one launch.

        Raises:
            IllegalError: it is none of those that are written, or has strides or a mask that are not.
        """
        if mnemonic not in _WRITTEN or "reduced" in words.attributes:
            raise IllegalError(f"{call} is not modelled on the A5", span=self.maker.span, legal=("--target a2a3",))
        operands = words.operands
        width = max(_bits(each.element) for each in operands)
        if width > 32 or min(_bits(each.element) for each in operands) < 8:
            raise IllegalError(f"{call} of elements of 4 or 64 bits is not modelled on the A5", span=self.maker.span)
        lanes = _REGISTER // width
        count, span = self.low, self.maker.span
        if not self.counts and any(each.block != 1 for each in operands):
            raise IllegalError(f"{call} with block strides other than 1 is not modelled on the A5", span=span)
        if not self.counts:
            count = self._active(call, lanes)
        trips = -(-count // lanes) if self.counts else repeats
        if not trips or not count:
            return
        for each in operands:
            self._check(call, each, count if self.counts else lanes if repeats > 1 else count, repeats)
        index, left = self.maker.name(), self.maker.name()
        mask, rest = self.maker.name(), self.maker.name()
        self._body = []
        kind = pto.MaskType(width)
        self._add(f"plt_b{width}", (left,), (_I32,), (mask, rest), (kind, _I32))
        places = [self._place(index, each, lanes) for each in operands]
        self._work(call, mnemonic, words, places, (mask, kind), width)
        zero, end, one = (self.maker.index(number) for number in (0, trips, 1))
        start = self.maker.constant(count, _I32)
        again = rest if self.counts else left  # the register keeps its mask from repeat to repeat
        body = (*self._body, pto.Yield((again,), (_I32,), span=span))
        loop = pto.For(index, zero, end, one, body, (left,), (start,), (self.maker.name(),), (_I32,), span=span)
        self.add(pto.Section("vecscope", (loop,), span=span))

    def _check(self, call: str, operand: Operand, count: int, repeats: int) -> None:
        """Refuse bytes outside of the buffer that a tensor is of.

        Raises:
            TileError: there are some.
        """
        steps = 0 if self.counts else (repeats - 1) * operand.repeat * 32
        end = operand.address + steps + -(-count * _bits(operand.element) // 8)
        if end > operand.high:
            raise TileError(
                f"{call}: bytes {operand.address} .. {end - 1}; the tensor's buffer has bytes {operand.low} .. "
                f"{operand.high - 1}", span=self.maker.span, legal=("a smaller count", "a larger InitBuffer")
            )  # fmt: skip

    def _active(self, call: str, lanes: int) -> int:
        """Return how many low lanes the mask register names.

        Raises:
            IllegalError: its lanes are no low ones.
        """
        mask = (self.high << 64 | self.low) & ((1 << lanes) - 1)
        if mask & (mask + 1):
            raise IllegalError(
                f"{call} under a mask of bits is not modelled on the A5", span=self.maker.span, legal=("low lanes",)
            )
        return mask.bit_length()

    def _place(self, index: str, operand: Operand, lanes: int) -> str:
        """Return the offset in elements of a trip."""
        step = lanes if self.counts else operand.repeat * 256 // _bits(operand.element)
        name = self.maker.name()
        factor = self.maker.index(step)
        self._body.append(pto.Arith(name, "muli", (index, factor), INDEX, span=self.maker.span))
        return name

    def _work(
        self, call: str, mnemonic: str, words: Words, places: Sequence[str], mask: tuple[str, pto.MaskType], width: int
    ) -> None:
        """Write loads, the instruction and the store of a trip."""
        to, *sources = words.operands
        span = self.maker.span
        given = [self._load(each, place, width) for each, place in zip(sources, places[1:], strict=True)]
        if mnemonic in _ACCUMULATING:
            given.insert(0, self._load(to, places[0], width))
        if mnemonic == "cast":
            result = self._convert(sources[0].element, to.element, words.attributes["mode"], given[0], mask)
        elif len({each.element for each in words.operands}) > 1:
            raise IllegalError(f"{call} of two element types is not modelled on the A5", span=span)
        elif mnemonic == "vcopy":
            result = given[0][0]
        else:
            names, kinds = [name for name, _ in given], [kind for _, kind in given]
            for element, code in words.scalars:
                shift = mnemonic in ("vshl", "vshr")
                names.append(self.maker.constant(code, _I32) if shift else self.maker.code(code, element))
                kinds.append(_I32 if shift else self.maker.scalar_type(element))
            # vaxpy has its scalar last and no mask in one of its forms
            result = self.maker.name()
            own = _vector(to.element)
            name = _NAMES.get(mnemonic, mnemonic)
            self._add(name, (*names, mask[0]), (*kinds, mask[1]), (result,), (own,))
        dist = {width: (), width // 2: (("dist", f"PK_B{width}"),), width // 4: (("dist", "PK4_B32"),)}
        base, kind = self.pointer(to.element, to.address), pto.PointerType(to.element, "ub")
        self._add(
            "vsts", (result, base, places[0], mask[0]), (_vector(to.element), kind, INDEX, mask[1]),
            words=dist[_bits(to.element)],
        )  # fmt: skip

    def _load(self, operand: Operand, place: str, width: int) -> tuple[str, pto.Type]:
        bits = _bits(operand.element)
        dist = {width: (), width // 2: (("dist", f"UNPK_B{bits}"),), width // 4: (("dist", "UNPK4"),)}[bits]
        base, name = self.pointer(operand.element, operand.address), self.maker.name()
        kind = _vector(operand.element)
        self._add("vlds", (base, place), (pto.PointerType(operand.element, "ub"), INDEX), (name,), (kind,), dist)
        return name, kind

    def _convert(
        self, source: str, to: str, mode: str, given: tuple[str, pto.Type], mask: tuple[str, pto.MaskType]
    ) -> str:
        """Write a conversion; it saturates, as far as CTRL lets it."""
        name, kind = given
        result = self.maker.name()
        letter = (("rnd", _LETTERS[mode]),)
        if source == to:
            self._add("vtrc", (name, mask[0]), (kind, mask[1]), (result,), (_vector(to),), letter)
            return result
        if (source, to) == ("i32", "f16"):  # the library multiplies by the scale between two conversions
            raise IllegalError(
                "Cast from i32 to f16 by SetDeqScale is not modelled on the A5", span=self.maker.span,
                legal=("--target a2a3", "Cast to float, Muls, Cast to half"),
            )  # fmt: skip
        row = conversion(source, to)
        words: tuple[tuple[str, str], ...] = letter if row.roundings else ()
        words += (("sat", "SAT"),) if row.saturations else ()
        words += (("part", row.parts[0]),) if row.parts else ()
        bits = _bits(source)
        if bits < mask[1].bits:
            whole = self.maker.name()
            self._add(f"pset_b{bits}", (), (), (whole,), (pto.MaskType(bits),), (("pattern", "PAT_ALL"),))
            mask = whole, pto.MaskType(bits)
        self._add("vcvt", (name, mask[0]), (kind, mask[1]), (result,), (_vector(to),), words)
        return result

    def _add(
        self,
        mnemonic: str,
        operands: tuple[str, ...],
        kinds: tuple[pto.Type, ...],
        results: tuple[str, ...] = (),
        result_kinds: tuple[pto.Type, ...] = (),
        words: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._body.append(
            MicroOperation(mnemonic, operands, kinds, results, result_kinds, tuple(sorted(words)), span=self.maker.span)
        )


def _bits(element: str) -> int:
    found = element_format(element)
    return 4 if found.bits == 4 else found.storage_bits


def _vector(element: str) -> pto.VectorType:
    return pto.VectorType(_REGISTER // _bits(element), element)
