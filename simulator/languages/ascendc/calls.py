"""Calls of AscendC: their operands and attributes, and the loops, accesses and masks that a vector function needs.

Source of modes and types: asc-devkit @0da921b9 (casts.csv).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, Span, TileError
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_reading import check_made
from castsim.isa.pto.strided_statements import STRIDED_ROWS
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import REGISTER_BITS, AlignType, MaskType, MicroOperation, element_format
from castsim.isa.reading import table_rows
from castsim.languages.cpp_recording.node_making import INDEX, NodeMaker
from castsim.languages.cpp_recording.scopes import MakerNotes

# Calls as written in a line: operands, scalars, attributes, and the instruction of each.


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as an instruction uses it: its byte address, the bytes of its buffer, its strides in blocks."""

    element: str
    address: int
    low: int
    high: int
    block: int
    repeat: int

    @classmethod
    def of(cls, word: str) -> Operand:
        """Read `u,ELEMENT,ADDRESS,LOW,HIGH,BLOCK,REPEAT`."""
        _, element, *numbers = word.split(",")
        return cls(element, *map(int, numbers))


@dataclass(frozen=True, slots=True)
class Words:
    """Operands, the destination first; scalars as element type and code; attributes."""

    operands: tuple[Operand, ...]
    scalars: tuple[tuple[str, int], ...]
    attributes: Mapping[str, str]

    @classmethod
    def of(cls, words: Sequence[str]) -> Words:
        """Read the words of a line."""
        scalars = [word.split(",")[1:] for word in words if word[0] == "s"]
        return cls(
            tuple(Operand.of(word) for word in words if word[0] == "u"),
            tuple((element, int(code, 16)) for element, code in scalars),
            dict(word.split(",")[1:] for word in words if word[0] == "a"),
        )


MODES = ("NONE", "RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD", "HYBRID", "EVEN", "ZERO")
"""The rounding modes of AscendC by their numbers, which are not those of PTO."""

LETTERS = {"NONE": "", "RINT": "r", "FLOOR": "f", "CEIL": "c", "ROUND": "a", "TRUNC": "z", "ODD": "o"}
"""The last letter of an instruction on A2/A3."""

_ANY = "any"
_NOTHING = "nothing is issued"


@dataclass(frozen=True, slots=True)
class Conversion:
    """A pair of types on one chip.

    `modes` are the legal ones (`any`: the mode is ignored), `stem` is the instruction's name without its letter, `none`
    what CAST_NONE is.
    """

    modes: tuple[str, ...]
    stem: str
    none: str


def _table() -> Mapping[tuple[bool, str, str], Conversion]:
    conversions = {}
    for row in table_rows(Path(__file__).with_name("casts.csv")):
        for a5, chip in ((False, "a2a3"), (True, "a5")):
            if row[f"{chip}_modes"]:
                modes = tuple(row[f"{chip}_modes"].split())
                stem = row["a2a3_instructions"] if not a5 else ""
                conversions[a5, row["from"], row["to"]] = Conversion(modes, stem, row[f"{chip}_none"])
    return conversions


CONVERSIONS = _table()
"""By whether the chip is an A5, source and destination."""


def conversion(words: Words, a5: bool, span: Span) -> tuple[str, str]:
    """Return the instruction of a Cast on A2/A3 (the A5's is `cast`), and its mode.

    Raises:
        IllegalError: the chip has no such pair, or issues nothing for the mode.
    """
    to, source = (operand.element for operand in words.operands)
    chip = "A5" if a5 else "A2/A3"
    row = CONVERSIONS.get((a5, source, to))
    if row is None:
        destinations = [destination for own, origin, destination in CONVERSIONS if (own, origin) == (a5, source)]
        raise IllegalError(f"Cast from {source} to {to} is not on {chip}", span=span, legal=sorted(destinations))
    number = int(words.attributes["mode"])
    mode = MODES[number] if number < len(MODES) else "UNKNOWN"
    ignored = row.modes[0] in (_ANY, "scale")
    if mode == "NONE" and not ignored and mode not in row.modes and a5 and row.none == "as RINT":
        mode = "RINT"
    if not ignored and mode not in row.modes:
        what = f"CAST_{mode} from {source} to {to}"
        why = f"{what}: the library issues nothing and leaves the destination as it was"
        raise IllegalError(
            f"Cast by {why}" if mode == "NONE" or row.none == _NOTHING else f"{what} is not on {chip}",
            span=span, legal=[f"RoundMode::CAST_{word}" for word in row.modes],
        )  # fmt: skip
    if a5:
        return "cast", mode
    return row.stem + ("" if ignored or len(row.modes) == 1 else LETTERS[mode]), ""


def check_elements(call: str, mnemonic: str, words: Words, span: Span) -> None:
    """Refuse a call on elements that its instruction does not have on A2/A3.

    Raises:
        IllegalError: it has no such instruction, or none for them.
    """
    row = STRIDED_ROWS.get(mnemonic)
    if row is None:
        raise IllegalError(f"{call} is not on A2/A3", span=span, legal=("--target a5",))
    elements = [operand.element for operand in words.operands]
    forms = [pointers for form in row.forms if len(pointers := re.sub("[^DSBOR]", "", form)) == len(elements)]
    fitting = not forms
    for form in forms:
        to, given = ({element for own, element in zip(form, elements, strict=True) if own == letter} for letter in "DS")
        fitting |= any((not to or to == {d}) and (not given or given == {s}) for d, s in row.elements)
    if not fitting:
        have = ", ".join(d if d == s else f"{s} to {d}" for d, s in row.elements)
        own = " and ".join(sorted(set(elements)))
        raise IllegalError(f"{call} of {own} is not on A2/A3; it takes {have}", span=span)


# What a vector function of the A5 needs for a call: loops, loads and stores, masks.

I32, _I16 = pto.ScalarType("i32"), pto.ScalarType("i16")
BLOCK, REPEAT = 32, 256
"""Bytes of a block and of a register."""
_FULL = (1 << 64) - 1
_ONE = 0x3C00
_FEW = 3
"""Runs of lanes up to which a mask is made of counts."""

Value = tuple[str, pto.Type]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Which lanes of a register of `bits` take part: those whose bit is set in `word`."""

    bits: int
    word: int

    @property
    def count(self) -> int:
        """The number of lanes of a register."""
        return REGISTER_BITS // self.bits

    @property
    def low(self) -> int | None:
        """How many low lanes it names; None if it names others."""
        return None if self.word & (self.word + 1) else self.word.bit_length()

    @property
    def whole_blocks(self) -> bool:
        """Whether it takes blocks of 32 bytes wholly or not at all."""
        size = BLOCK * 8 // self.bits
        parts = {self.word >> at & ((1 << size) - 1) for at in range(0, self.count, size)}
        return parts <= {0, (1 << size) - 1}


@dataclass(slots=True)
class FunctionBody:
    """The nodes of a function so far; `call` is what it is for, `pointer` gives the name of a pointer by element and
    address."""

    maker: NodeMaker
    call: str
    pointer: Callable[[str, int], str]
    nodes: list[pto.Operation] = field(default_factory=list)

    def refusal(self, what: str, legal: Sequence[str] = ()) -> IllegalError:
        """Return the error for what is not modelled of the call."""
        return IllegalError(f"{self.call} {what} is not modelled on the A5", span=self.maker.span, legal=legal)

    def issue(
        self, mnemonic: str, operands: Sequence[Value], kinds: Sequence[pto.Type] = (), **words: str
    ) -> tuple[Value, ...]:
        """Add an instruction; return its results.

        Raises:
            IllegalError: it does not take these operands.
        """
        results = tuple((self.maker.name(), kind) for kind in kinds)
        node = MicroOperation(
            mnemonic, tuple(name for name, _ in operands), tuple(kind for _, kind in operands),
            tuple(name for name, _ in results), tuple(kinds),
            tuple(sorted((key, word) for key, word in words.items() if word)), span=self.maker.span,
        )  # fmt: skip
        try:
            check_made(node, MakerNotes(self.maker))
        except IllegalError as error:
            message = f"{self.call} is not modelled so on the A5: {error.message}"
            raise IllegalError(message, span=self.maker.span, legal=error.legal) from None
        self.nodes.append(node)
        return results

    def one(self, mnemonic: str, operands: Sequence[Value], kind: pto.Type, **words: str) -> Value:
        """Add an instruction with one result, and return it."""
        return self.issue(mnemonic, operands, (kind,), **words)[0]

    def loop(
        self,
        trips: int,
        body: Callable[[Value, tuple[Value, ...]], Sequence[Value] | None],
        start: Sequence[Value] = (),
    ) -> tuple[Value, ...]:
        """Add a loop; `body` writes a trip, given its number and what it carries, and returns what it hands on."""
        if trips <= 1:
            zero = self.maker.index(0), INDEX
            return tuple(body(zero, tuple(start)) or ()) if trips else tuple(start)
        kinds = tuple(kind for _, kind in start)
        inside = tuple((self.maker.name(), kind) for kind in kinds)
        variable = self.maker.name()
        around, self.nodes = self.nodes, []
        ends = body((variable, INDEX), inside) or ()
        names = tuple(name for name, _ in ends)
        nodes = (*self.nodes, *([pto.Yield(names, kinds, span=self.maker.span)] if kinds else []))
        self.nodes = around
        results = tuple((self.maker.name(), kind) for kind in kinds)
        lower, upper, step = (self.maker.index(number) for number in (0, trips, 1))
        self.nodes.append(
            pto.For(
                variable, lower, upper, step, nodes, tuple(name for name, _ in inside),
                tuple(name for name, _ in start), tuple(name for name, _ in results), kinds, span=self.maker.span,
            )
        )  # fmt: skip
        return results

    # ------------------------------------------------------------------------------------------------- memory

    def place(self, element: str, address: int, index: Value, step: int) -> list[Value]:
        """Return a pointer and the offset of a trip, whose addresses are `step` bytes apart."""
        size = lane_bits(element) // 8
        base: Value = self.pointer(element, address), pto.PointerType(element, "ub")
        if index[0] == self.maker.index(0) or not step:
            return [base, (self.maker.index(0), INDEX)]
        name, factor = self.maker.name(), self.maker.index(step // size)
        self.nodes.append(pto.Arith(name, "muli", (index[0], factor), INDEX, span=self.maker.span))
        return [base, (name, INDEX)]

    def at(self, element: str, address: int, index: Value, step: int) -> Value:
        """Return a pointer to where a trip begins."""
        base, offset = self.place(element, address, index, step)
        if offset[0] == self.maker.index(0):
            return base
        kind = base[1]
        assert isinstance(kind, pto.PointerType)
        name = self.maker.name()
        self.nodes.append(pto.AddPointer(name, base[0], offset[0], kind, span=self.maker.span))
        return name, kind

    def load(self, operand: Operand, index: Value, step: int, width: int, mask: Value, more: int = 0) -> Value:
        """Load a register whose lanes have `width` bits, narrower elements in the low part of theirs; `more` bytes are
        added to the address."""
        bits = bits_of(operand.element)
        kind = vector(operand.element)
        address = operand.address + more
        if operand.block not in (0, 1):
            if bits != width:
                raise self.refusal("with block strides between elements of two widths")
            pointer = self.at(operand.element, address, index, step)
            strides = [(self.maker.constant(number, _I16), _I16) for number in (operand.block, 0)]
            return self.one("vsldb", (pointer, *strides, mask), kind)
        dist = {1: "", 2: f"UNPK_B{bits}", 4: "UNPK4"}.get(width // bits)
        if operand.block == 0:
            dist = "BRC_BLK" if bits == width else None
        if dist is None:
            raise self.refusal(f"of elements of {bits} and {width} bits")
        return self.one("vlds", self.place(operand.element, address, index, step), kind, dist=dist)

    def store(
        self, value: Value, operand: Operand, index: Value, step: int, width: int, mask: Value, lanes: Lanes | None,
        more: int = 0,
    ) -> None:  # fmt: skip
        """Store lanes of `width` bits, their low parts where elements are narrower."""
        bits = bits_of(operand.element)
        address = operand.address + more
        if operand.block != 1:
            if bits != width:
                raise self.refusal("with block strides between elements of two widths")
            if lanes is not None and not lanes.whole_blocks:  # a block is stored as a whole
                value = self.one("vsel", (value, self.load(operand, index, step, width, mask, more), mask), value[1])
            pointer = self.at(operand.element, address, index, step)
            strides = [(self.maker.constant(number, _I16), _I16) for number in (operand.block, 0)]
            self.issue("vsstb", (value, pointer, *strides, mask))
            return
        dist = {1: "NORM_B32" if width > 32 else "", 2: f"PK_B{width}", 4: "PK4_B32"}.get(width // bits)
        if dist is None:
            raise self.refusal(f"of elements of {bits} and {width} bits")
        self.issue("vsts", (value, *self.place(operand.element, address, index, step), mask), dist=dist)

    def first(self, value: Value, element: str, address: int, index: Value, step: int, mask: Value) -> None:
        """Store the first lane of a register."""
        dist = f"1PT_B{lane_bits(element)}"
        self.issue(
            "vsts", (self.cast(value, vector(element)), *self.place(element, address, index, step), mask), dist=dist
        )

    def unaligned(self, value: Value, count: int, element: str, address: int, index: Value, step: int) -> None:
        """Store the first elements of a register at any address."""
        pointer = self.at(element, address, index, step)
        state = self.one("init_align", (), AlignType())
        state = self.one("vstus", (state, self.number(count), value, pointer), AlignType(), mode="NO_POST_UPDATE")
        self.issue("vstas", (state, pointer, self.number(0)))

    # ------------------------------------------------------------------------------------------------- values

    def number(self, value: int) -> Value:
        """Return a number of 32 bits."""
        return self.maker.constant(value, I32), I32

    def scalar(self, element: str, code: int) -> Value:
        """Return a scalar of an element."""
        return self.maker.code(code, element), self.maker.scalar_type(element)

    def cast(self, value: Value, kind: pto.Type) -> Value:
        """Return a register under another type."""
        return value if value[1] == kind else self.one("vbitcast", (value,), kind)

    def full(self, bits: int) -> Value:
        """Return the mask of all lanes."""
        return self.one(f"pset_b{bits}", (), MaskType(bits), pattern="PAT_ALL")

    def low(self, bits: int, count: int) -> Value:
        """Return the mask of low lanes."""
        if count >= REGISTER_BITS // bits:
            return self.full(bits)
        return self.issue(f"plt_b{bits}", (self.number(count),), (MaskType(bits), I32))[0]

    def mask(self, lanes: Lanes) -> Value:
        """Return the mask of some lanes: of counts, or of the bits shifted to the lanes that they are for."""
        bits, kind = lanes.bits, MaskType(lanes.bits)
        if lanes.low is not None:
            return self.low(bits, lanes.low)
        edges = [at for at in range(lanes.count + 1) if (lanes.word << 1 >> at ^ lanes.word >> at) & 1]
        if len(edges) <= 2 * _FEW:
            bits_mask = self.low(bits, edges[0])
            for edge in edges[1:]:
                bits_mask = self.one("pxor", (bits_mask, self.low(bits, edge), self.full(bits)), kind)
            return bits_mask
        if bits < 16:
            raise self.refusal("under a mask of bits of 8-bit elements")
        element, whole = f"u{bits}", self.full(bits)
        register = vector(element)
        index = self.cast(self.one("vci", (self.scalar(f"i{bits}", 0),), vector(f"i{bits}")), register)
        words = [lanes.word >> at & ((1 << bits) - 1) for at in range(0, lanes.count, bits)]
        word = self.one("vbr", (self.scalar(element, words[0]),), register)
        for number in range(1, len(words)):
            if words[number] != words[number - 1]:
                behind = self.one("vcmps", (index, self.scalar(element, number * bits), whole), kind, cmp="ge")
                word = self.one(
                    "vsel", (self.one("vbr", (self.scalar(element, words[number]),), register), word, behind), register
                )
        inside = self.one(
            "vand", (index, self.one("vbr", (self.scalar(element, bits - 1),), register), whole), register
        )
        shifted = self.one("vshr", (word, self.cast(inside, vector(f"i{bits}")), whole), register)
        last = self.one("vand", (shifted, self.one("vbr", (self.scalar(element, 1),), register), whole), register)
        return self.one("vcmps", (last, self.scalar(element, 0), whole), kind, cmp="ne")

    def packed(self, masks: Sequence[Value]) -> Value:
        """Return masks of wide lanes side by side as one of bytes."""
        packed_masks = list(masks)
        while (bits := packed_masks[0][1].bits) > 8:  # type: ignore[union-attr]
            kind = MaskType(bits // 2)
            halves = [
                self.one("ppack", (mask,), kind, half="HIGHER" if number % 2 else "LOWER")
                for number, mask in enumerate(packed_masks)
            ]
            packed_masks = [
                halves[at]
                if at + 1 == len(halves)
                else self.one("por", (halves[at], halves[at + 1], self.full(bits // 2)), kind)
                for at in range(0, len(halves), 2)
            ]
        return packed_masks[0]

    def spread(self, mask: Value, bits: int, part: int) -> Value:
        """Return a part of a mask of bytes as one of lanes of `bits`."""
        for level in range((bits // 8).bit_length() - 2, -1, -1):
            width = mask[1].bits  # type: ignore[union-attr]
            mask = self.one("punpack", (mask,), MaskType(width * 2), half="HIGHER" if part >> level & 1 else "LOWER")
        return mask


@dataclass(slots=True)
class MaskedCalls:
    """The mask register and mode that calls find, and what depends on them.

    `pointer` gives the name of a pointer into the buffer, `add` takes a launch.
    """

    maker: NodeMaker
    pointer: Callable[[str, int], str]
    add: Callable[[pto.Operation], None]
    counts: bool = False
    high: int = _FULL
    low: int = _FULL
    compared: int = 0
    """The address of the bits that `vsel` takes."""
    scale: int = _ONE
    """The scale of casts from i32 to f16, a code of f16."""

    def control(self, what: str, first: int, second: int) -> None:
        """Apply a word of control."""
        if what in ("count", "norm"):
            self.counts = what == "count"
        elif what == "mask":
            self.high, self.low = first, second
        elif what == "lanes":
            self.high, self.low = 0, first
        elif what == "cmpmask":
            self.compared = first
        elif what == "deqscale":
            self.scale = first

    def lanes(self, bits: int) -> Lanes:
        """Return the lanes of the mask register."""
        return Lanes(bits, (self.high << 64 | self.low) & ((1 << REGISTER_BITS // bits) - 1))

    def trips(
        self, body: FunctionBody, width: int, repeats: int, trip: Callable[[Value, Value, Lanes | None], None]
    ) -> None:
        """Write the loop of a call: `trip` takes its number, its mask, and which lanes that has, if all have the same.

        Elements of 64 bits have two bits of a mask.
        """
        lanes, mask_bits, words = REGISTER_BITS // width, min(32, width), max(1, width // 32)
        kind = MaskType(mask_bits)
        if not self.counts:
            own = self.lanes(width) if width <= 32 else Lanes(32, (1 << words * self.lanes(64).word.bit_length()) - 1)
            if own.word and repeats:
                mask = body.mask(own)
                body.loop(repeats, lambda index, _: trip(index, mask, own))
            return
        count = self.low

        def counted(index: Value, carried: tuple[Value, ...]) -> Sequence[Value]:
            mask, rest = body.issue(f"plt_b{mask_bits}", carried, (kind, I32))
            trip(index, mask, None)
            return (rest,)

        body.loop(-(-count // lanes), counted, (body.number(count * words),))

    def step(self, operand: Operand, lanes: int) -> int:
        """Return the bytes from trip to trip of an operand."""
        return lanes * bits_of(operand.element) // 8 if self.counts else operand.repeat * BLOCK

    def check(self, call: str, operand: Operand, count: int, steps: int = 0) -> None:
        """Refuse bytes outside of the buffer that a tensor is of; `count` elements `steps` bytes behind it.

        Raises:
            TileError: there are some.
        """
        end = operand.address + steps + -(-count * bits_of(operand.element) // 8)
        if end > operand.high:
            raise TileError(
                f"{call}: bytes {operand.address} .. {end - 1}; the tensor's buffer has bytes {operand.low} .. "
                f"{operand.high - 1}", span=self.maker.span, legal=("a smaller count", "a larger InitBuffer")
            )  # fmt: skip


def bits_of(element: str) -> int:
    """Return the bits of an element in memory."""
    element_type = element_format(element)
    return 4 if element_type.bits == 4 else element_type.storage_bits


def vector(element: str) -> pto.VectorType:
    """Return the type of a register of elements."""
    return pto.VectorType(REGISTER_BITS // lane_bits(element), element)
