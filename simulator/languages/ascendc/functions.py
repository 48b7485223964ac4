"""Vector functions of the A5: a call on tensors is a loop of load, instruction and store under a mask.

Source: the bodies of asc-devkit @0da921b9 for 3510 as far as docs/languages/ascendc.md states them; sequences
beyond are assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from castsim.isa.dataclass import dataclass
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_words import conversion
from castsim.isa.pto.value_types import REGISTER_BITS, AlignType, MaskType
from castsim.languages.ascendc.calls import (
    BLOCK,
    I32,
    REPEAT,
    FunctionBody,
    Lanes,
    MaskedCalls,
    Value,
    Words,
    bits_of,
    vector,
)
from castsim.languages.cpp_recording.node_making import INDEX

# Comparisons, selections, reductions, gathers. Sequences that are not stated of the library yield its values by
# castsim's instructions (docs/languages/ascendc.md).

_GROUP = REGISTER_BITS // 8
"""Elements whose bits a predicate in memory holds."""
_REGISTERS = 4
"""Registers up to which a sum is one of registers."""
_EVEN, _ODD = "even", "odd"
_PATTERNS: Mapping[int, tuple[str, ...]] = {
    1: (_EVEN,),
    2: (_ODD,),
    3: (_EVEN, _EVEN),
    4: (_EVEN, _ODD),
    5: (_ODD, _EVEN),
    6: (_ODD, _ODD),
    7: (),
}
"""Patterns of GatherMask: lanes of even or odd numbers, of these again the even or odd ones, inner first."""

Group = Callable[[Value, int, Sequence[Value]], None]


def _grouped(calls: MaskedCalls, body: FunctionBody, width: int, repeats: int, group: Group) -> None:
    """Write calls that move a bit an element: trips of 256 elements, the last with what is left.

    `group` takes the trip, the number of its first register, and the masks of its registers.
    """
    lanes = REGISTER_BITS // width
    per_group = _GROUP // lanes
    registers = -(-calls.low // lanes) if calls.counts else repeats
    own = None if calls.counts else body.mask(calls.lanes(width))
    whole, rest = divmod(registers, per_group)
    tail = calls.low % lanes if calls.counts else 0
    if tail and not rest:
        whole, rest = whole - 1, per_group
    if whole:
        mask = own or body.full(width)
        body.loop(whole, lambda index, _: group(index, 0, [mask] * per_group))
    if rest:
        full = own or (body.full(width) if rest > 1 or not tail else None)
        masks = [full] * rest
        if tail:
            masks[-1] = body.low(width, tail)
        group((body.maker.index(0), INDEX), whole * per_group, [mask for mask in masks if mask is not None])


def _compare(calls: MaskedCalls, body: FunctionBody, words: Words, repeats: int, mode: str) -> None:
    """Write a comparison of tensors, or with a scalar: bits of 256 elements are stored at once."""
    to, first, *more = words.operands
    width = bits_of(first.element)
    lanes = REGISTER_BITS // width
    per_group = _GROUP // lanes
    if not 8 <= width <= 32:
        raise body.refusal(f"of elements of {width} bits")

    def group(index: Value, start: int, masks: Sequence[Value]) -> None:
        comparisons = []
        for number, mask in enumerate(masks, start):
            values = [
                body.load(
                    operand,
                    index,
                    calls.step(operand, lanes) * per_group,
                    width,
                    mask,
                    number * calls.step(operand, lanes),
                )
                for operand in (first, *more)
            ]
            if more:
                comparisons.append(body.one("vcmp", (*values, mask), mask[1], cmp=mode))
            else:
                scalar = body.scalar(*words.scalars[0])
                comparisons.append(body.one("vcmps", (*values, scalar, mask), mask[1], cmp=mode))
        bits = body.packed(comparisons)
        body.issue("psts", (bits, *body.place("u8", to.address + start // per_group * BLOCK, index, BLOCK)))

    _grouped(calls, body, width, repeats, group)


def _select(calls: MaskedCalls, body: FunctionBody, words: Words, repeats: int, _: str) -> None:
    """Write a selection by bits in memory: one register's for all, or a bit an element."""
    to, first, *more = words.operands
    bits = more.pop() if more and "one_mask" not in words.attributes and len(more) + bool(words.scalars) == 2 else None
    width = bits_of(to.element)
    lanes = REGISTER_BITS // width
    per_group = _GROUP // lanes
    if width not in (16, 32):
        raise body.refusal(f"of elements of {width} bits")
    zero = body.maker.index(0), INDEX
    other = None
    if not more:
        other = body.one("vbr", (body.scalar(*words.scalars[0]),), vector(to.element))
    scalar = None
    if bits is None:
        address = int(words.attributes.get("one_mask", calls.compared))
        scalar = body.spread(body.one("plds", body.place("u8", address, zero, 0), MaskType(8)), width, 0)

    def group(index: Value, start: int, masks: Sequence[Value]) -> None:
        chosen = scalar
        if bits is not None:
            image = body.one(
                "plds", body.place("u8", bits.address + start // per_group * BLOCK, index, BLOCK), MaskType(8)
            )
        for number, mask in enumerate(masks):
            if bits is not None:
                chosen = body.spread(image, width, number)
            values = [
                body.load(
                    own,
                    index,
                    calls.step(own, lanes) * per_group,
                    width,
                    mask,
                    (start + number) * calls.step(own, lanes),
                )
                for own in (first, *more)
            ]
            assert chosen is not None
            result = body.one("vsel", (*values, *([other] if other else []), chosen), vector(to.element))
            step = calls.step(to, lanes)
            body.store(
                result, to, index, step * per_group, width, mask, None if calls.counts else calls.lanes(width),
                (start + number) * step,
            )  # fmt: skip

    _grouped(calls, body, width, repeats, group)


# -------------------------------------------------------------------------------------------------- reductions


def _reduce(calls: MaskedCalls, body: FunctionBody, words: Words, repeats: int, mnemonic: str) -> None:
    """Write a reduction of every repeat, or of a count of elements."""
    if "reduced" in words.attributes:
        (_sum if mnemonic == "vcadd" else _extreme)(calls, body, words, mnemonic)
        return
    to, source = words.operands
    width = bits_of(to.element)
    lanes, size, kind = REGISTER_BITS // width, width // 8, vector(to.element)
    order = words.attributes.get("order", "value")
    results = {"vcg": 8, "vcp": lanes // 2}.get(mnemonic[:3], 1 + (order in ("value_index", "index_value")))
    step = to.repeat * results * size
    active = calls.lanes(width).word.bit_length()
    if repeats:
        calls.check(body.call, to, results, (repeats - 1) * step)
        calls.check(body.call, source, active, (repeats - 1) * source.repeat * BLOCK)
    numbers = _lane_numbers(body, width) if "index" in order else None
    half = body.full(width) if results == 1 else body.low(width, results)

    def trip(index: Value, mask: Value, own: Lanes | None) -> None:
        del own
        given = body.load(source, index, source.repeat * BLOCK, width, mask)
        value = body.one(mnemonic, (given, mask), kind)
        if results > 2:
            if step % BLOCK or to.address % BLOCK:
                body.unaligned(value, results, to.element, to.address, index, step)
            else:
                body.issue("vsts", (value, *body.place(to.element, to.address, index, step), half))
            return
        places = {"value": [value], "index": []}.get(order, [value])
        if numbers is not None:
            first_index = _first_equal(body, given, value, numbers, mask)
            places = {"index": [first_index], "index_value": [first_index, value]}.get(order, [value, first_index])
        for number, part in enumerate(places):
            body.first(part, to.element, to.address + number * size, index, step, mask)

    calls.trips(body, width, repeats, trip)


def _lane_numbers(body: FunctionBody, width: int) -> Value:
    """Return the numbers of the lanes."""
    signed = f"i{width}"
    return body.cast(body.one("vci", (body.scalar(signed, 0),), vector(signed)), vector(f"u{width}"))


def _first_equal(body: FunctionBody, given: Value, value: Value, numbers: Value, mask: Value) -> Value:
    """Return the least of the numbers of the lanes that have an extreme value."""
    everywhere = body.one("vdup", (value, body.full(mask[1].bits)), value[1], position="LOWEST")  # type: ignore[union-attr]
    equal = body.one("vcmp", (given, everywhere, mask), mask[1], cmp="eq")
    return body.one("vcmin", (numbers, equal), numbers[1])


def _sum(calls: MaskedCalls, body: FunctionBody, words: Words, mnemonic: str) -> None:
    """Write a sum: of up to four registers added; of more, sums of registers in memory, summed again."""
    to, source, tmp = words.operands
    count, kind = int(words.attributes["reduced"]), vector(to.element)
    width = bits_of(to.element)
    lanes, zero = REGISTER_BITS // width, (body.maker.index(0), INDEX)
    calls.check(body.call, source, count)
    address = source.address
    while (registers := -(-count // lanes)) > _REGISTERS:
        calls.check(body.call, tmp, registers)

        def trip(index: Value, carried: tuple[Value, ...], start: int = address) -> Sequence[Value]:
            mask, rest = body.issue(f"plt_b{width}", carried, (MaskType(width), I32))
            given = body.one("vlds", body.place(to.element, start, index, REPEAT), kind)
            body.first(body.one(mnemonic, (given, mask), kind), to.element, tmp.address, index, width // 8, mask)
            return (rest,)

        body.loop(registers, trip, (body.number(count),))
        body.issue("mem_bar", (), barrier="VST_VLD")
        address, count = tmp.address, registers
    total: Value | None = None
    whole = body.full(width)
    for number in range(registers):
        mask = body.low(width, count - number * lanes)
        given = body.one("vlds", body.place(to.element, address + number * REPEAT, zero, 0), kind)
        if total is None:
            total, whole = given, mask
        else:
            total = body.one("vadd", (total, body.one("vmov", (given, mask), kind), whole), kind)
    assert total is not None
    body.first(body.one(mnemonic, (total, whole), kind), to.element, to.address, zero, 0, whole)


def _extreme(calls: MaskedCalls, body: FunctionBody, words: Words, mnemonic: str) -> None:
    """Write the greatest or least of elements, lane by lane and then of the lanes; with the number of the first."""
    to, source, *_ = words.operands
    count, indexed = int(words.attributes["reduced"]), words.attributes["indexed"] == "1"
    width = bits_of(to.element)
    lanes, zero, kind = REGISTER_BITS // width, (body.maker.index(0), INDEX), vector(to.element)
    calls.check(body.call, source, count)
    first = body.low(width, count)
    start: list[Value] = [body.one("vlds", body.place(to.element, source.address, zero, 0), kind)]
    if indexed:
        numbers = _lane_numbers(body, width)
        start += [numbers, numbers]

    def trip(
        index: Value, carried: tuple[Value, ...], mask: Value, more: int = REPEAT, part: bool = False
    ) -> Sequence[Value]:
        given = body.one("vlds", body.place(to.element, source.address + more, index, REPEAT), kind)
        if not indexed:
            better = body.one("vmax" if mnemonic == "vcmax" else "vmin", (carried[0], given, mask), kind)
            return (body.one("vsel", (better, carried[0], mask), kind) if part else better,)
        best, best_index, now = carried
        now = body.one("vadds", (now, body.scalar(f"u{width}", lanes), body.full(width)), now[1])
        cmp = "gt" if mnemonic == "vcmax" else "lt"
        better = body.one("vcmp", (given, best, mask), mask[1], cmp=cmp)
        return body.one("vsel", (given, best, better), kind), body.one("vsel", (now, best_index, better), now[1]), now

    whole, rest = divmod(count, lanes)
    extreme: Sequence[Value] = start
    if whole > 1:
        full = body.full(width)
        extreme = body.loop(whole - 1, lambda index, carried: trip(index, carried, full), tuple(start))
    if whole and rest:
        extreme = trip(zero, tuple(extreme), body.low(width, rest), whole * REPEAT, True)
    value = body.one(mnemonic, (extreme[0], first), kind)
    body.first(value, to.element, to.address, zero, 0, first)
    if indexed:
        first_index = _first_equal(body, extreme[0], value, extreme[1], first)
        body.first(first_index, to.element, to.address + width // 8, zero, 0, first)


# ------------------------------------------------------------------------------------------------ rearranging


def _to_blocks(calls: MaskedCalls, body: FunctionBody, words: Words, repeats: int, _: str) -> None:
    """Write Brcb: eight elements a repeat, each to a block."""
    to, source = words.operands
    width = bits_of(to.element)
    if width not in (16, 32):
        raise body.refusal(f"of elements of {width} bits")
    mask = body.full(width)

    def trip(index: Value, carried: tuple[Value, ...]) -> Sequence[Value]:
        address = body.place(to.element, source.address, index, width)  # eight elements have as many bytes
        value = body.one("vlds", address, vector(to.element), dist=f"E2B_B{width}")
        body.store(value, to, index, to.repeat * BLOCK, width, mask, None)
        return carried

    if repeats:
        calls.check(body.call, source, 8 * repeats)
        body.loop(repeats, trip)


def _gather(calls: MaskedCalls, body: FunctionBody, words: Words, repeats: int, _: str) -> None:
    """Write Gather: offsets are bytes, lanes those of 32 bits."""
    to, offsets, source = words.operands
    bits = bits_of(to.element)
    if bits not in (16, 32) or (bits == 16 and not calls.counts):
        raise body.refusal(f"of elements of {bits} bits")

    def trip(index: Value, mask: Value, own: Lanes | None) -> None:
        del own
        kind = vector("u32")
        given = body.load(offsets, index, REPEAT, 32, mask)
        given = body.one("vshrs", (given, body.number(1 if bits == 16 else 2), mask), kind)
        pointer = body.at(to.element, source.address, index, 0)
        value = body.one("vgather2", (pointer, given, mask), kind if bits == 16 else vector(to.element))
        step = 8 * bits if calls.counts else to.repeat * BLOCK
        body.store(value, to, index, step, 32, mask, None)

    calls.trips(body, 32, repeats, trip)


def _gather_blocks(calls: MaskedCalls, body: FunctionBody, words: Words, repeats: int, _: str) -> None:
    """Write Gatherb: eight blocks a repeat by their offsets in bytes."""
    to, offsets, source = words.operands
    width = bits_of(to.element)

    def trip(index: Value, mask: Value, own: Lanes | None) -> None:
        address = body.place("u32", offsets.address, index, BLOCK)
        given = body.one("vlds", address, vector("u32"))
        value = body.one("vgatherb", (body.at(to.element, source.address, index, 0), given, mask), vector(to.element))
        body.store(value, to, index, to.repeat * BLOCK, width, mask, own)

    calls.trips(body, width, repeats, trip)


def _indices(calls: MaskedCalls, body: FunctionBody, words: Words, repeats: int, _: str) -> None:
    """Write CreateVecIndex with a count: numbers that grow by the lanes of a register from trip to trip."""
    (to,), ((element, code),) = words.operands, words.scalars
    width = bits_of(element)
    lanes = REGISTER_BITS // width
    signed = element.replace("u", "i") if element[0] == "u" else element
    del repeats
    calls.check(body.call, to, calls.low)
    more = body.scalar(signed, lanes if signed[0] == "i" else {"f16": 0x5800, "f32": 0x42800000}[signed])
    whole = body.full(width)

    def trip(index: Value, carried: tuple[Value, ...]) -> Sequence[Value]:
        mask, rest = body.issue(f"plt_b{width}", carried[:1], (MaskType(width), I32))
        body.store(carried[1], to, index, REPEAT, width, mask, None)
        return rest, body.one("vadds", (carried[1], more, whole), carried[1][1])

    first = body.one("vci", (body.scalar(signed, code),), vector(signed))
    body.loop(-(-calls.low // lanes), trip, (body.number(calls.low), first))


def _squeezed(calls: MaskedCalls, body: FunctionBody, words: Words, repeats: int, _: str) -> None:
    """Write GatherMask: kept elements of every repeat, one after another."""
    to, source, *pattern = words.operands
    width = bits_of(to.element)
    lanes = REGISTER_BITS // width
    if width not in (16, 32) or source.block != 1:
        raise body.refusal(f"of elements of {width} bits" if source.block == 1 else "with block strides")
    count = calls.low if calls.counts else lanes
    registers, per_group = -(-count // lanes), _GROUP // lanes
    kept = None if pattern else _pattern(body, width, int(words.attributes["pattern"]))
    pointer = body.at(to.element, to.address, (body.maker.index(0), INDEX), 0)
    body.issue("sprclr", (), register="AR")

    def trip(index: Value, carried: tuple[Value, ...]) -> Sequence[Value]:
        (state,) = carried
        for number in range(registers):
            mask = kept
            if mask is None:
                if number % per_group == 0:
                    at = pattern[0].address + number // per_group * BLOCK
                    image = body.one("plds", body.place("u8", at, index, pattern[0].repeat * BLOCK), MaskType(8))
                mask = body.spread(image, width, number % per_group)
            left = count - number * lanes
            if left < lanes:
                mask = body.one("pand", (mask, body.low(width, left), body.full(width)), MaskType(width))
            address = body.place(to.element, source.address + number * REPEAT, index, source.repeat * BLOCK)
            given = body.one("vlds", address, vector(to.element))
            given = body.one("vsqz", (given, mask), vector(to.element))
            state = body.one("vstur", (state, given, pointer), AlignType(), mode="POST_UPDATE")
        return (state,)

    (state,) = body.loop(repeats, trip, (body.one("init_align", (), AlignType()),))
    body.issue("vstar", (state, pointer))


def _pattern(body: FunctionBody, width: int, number: int) -> Value:
    """Return the mask of a fixed pattern."""
    kind = MaskType(width)
    pattern = body.full(width)
    if _PATTERNS[number]:
        none = body.one(f"pset_b{width}", (), kind, pattern="PAT_ALLF")
    for side in _PATTERNS[number]:
        pair = (pattern, none) if side == _EVEN else (none, pattern)
        pattern = body.issue(f"pintlv_b{width}", pair, (kind, kind))[0]
    return pattern


Form = Callable[[MaskedCalls, FunctionBody, Words, int, str], None]
_FORMS: Mapping[str, Form] = {
    "vsel": _select, "vbrcb": _to_blocks, "vgather": _gather, "vgatherb": _gather_blocks, "vci": _indices,
    "vreducev2": _squeezed,
    **dict.fromkeys(("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd"), _reduce),
}  # fmt: skip
"""How calls are written, by the names of the instructions that A2/A3 has for them."""


# Element by element.

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
        form = _FORMS.get(mnemonic)
        if mnemonic in _PLAIN:
            self._elements(body, mnemonic, repeats, words)
        elif mnemonic.startswith("vcmpv"):
            _compare(self, body, words, repeats, mnemonic[-2:])
        elif form is not None:
            form(self, body, words, repeats, mnemonic)
        else:
            raise body.refusal("", ("--target a2a3",))
        if body.nodes:
            self.add(pto.Section("vecscope", tuple(body.nodes), span=self.maker.span))

    # ------------------------------------------------------------------------------------------ element by element

    def _elements(self, body: FunctionBody, mnemonic: str, repeats: int, words: Words) -> None:
        operands = words.operands
        nibbles = [operand for operand in operands if bits_of(operand.element) < 8]
        width = max(bits_of(operand.element) for operand in operands)
        if nibbles and ("i4" in {operand.element for operand in nibbles} or width != 16):
            raise body.refusal(
                "of elements of 4 bits" if "i4" in {operand.element for operand in nibbles} else "of pairs"
            )
        lanes = REGISTER_BITS // width
        active = self.low if self.counts else (self.lanes(width).word.bit_length() if repeats == 1 else lanes)
        for operand in operands:
            steps = 0 if self.counts else max(repeats - 1, 0) * operand.repeat * BLOCK
            blocks = -(-active * bits_of(operand.element) // (BLOCK * 8)) - 1
            self.check(body.call, operand, active, steps + blocks * (operand.block - 1) * BLOCK)
        if nibbles:
            self._nibbles(body, repeats, words)
            return

        def trip(index: Value, mask: Value, own: Lanes | None) -> None:
            to, *sources = operands
            given = [body.load(operand, index, self.step(operand, lanes), width, mask) for operand in sources]
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
        elif len({operand.element for operand in words.operands}) > 1:
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
