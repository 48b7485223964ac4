"""Vector functions of the A5 that a kernel writes instruction by instruction: each is one launch, with its loops.

A line is an instruction with the numbers of the values that it reads and makes (`castsim_registers.hpp`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, Span, WarningKind
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_reading import check_made
from castsim.isa.pto.micro_words import conversion
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import REGISTER_BITS, AlignType, MaskType, MicroOperation, element_format
from castsim.languages.cpp_recording.node_making import INDEX, NodeMaker

# Loops found again in the instructions that a kernel's loops issued one by one while it ran on the host.
#
# Trips of a loop issue the same instructions from the same places; addresses and numbers grow evenly from trip to trip,
# and each register is one of the trip, one from before the loop, or one of the trip before. After Ketterlin and Clauss,
# "Prediction and trace compression of data access addresses through nested loop recognition" (2008).

_CANDIDATES = 6
"""Earlier occurrences of an instruction, and loops, that may begin the trip that it ends."""


@dataclass(slots=True, eq=False)
class Step:
    """An instruction as it was issued, the `end`-th.

    `key` is what trips have in common, `numbers` are its integers, `reads` and `writes` the numbers of its values. Each
    number with nonzero `lanes` is a count that the instruction lowers by them, down to 0.
    """

    key: object
    numbers: Sequence[int]
    reads: Sequence[int]
    writes: Sequence[int]
    lanes: Sequence[int]
    end: int
    content: object = None


@dataclass(slots=True, eq=False)
class Trips:
    """A loop: `body` is its first trip; numbers, reads (from outside) and writes (of the last trip) are the body's.

    `slopes` are by how much numbers grow (None: counts that are lowered), `relations` the origin of each read of
    the body: `in` the trip's write of a number, `same` for all trips, `before`: the write of a number a trip earlier.
    """

    body: Sequence[Item]
    trips: int
    slopes: tuple[int | None, ...]
    relations: tuple[tuple[str, int], ...]
    numbers: Sequence[int]
    reads: Sequence[int]
    writes: Sequence[int]
    last: Sequence[int]
    end: int
    _keys: tuple[object, ...] = ()

    @property
    def key(self) -> object:
        """What equal loops have in common."""
        return self.trips, self._keys, self.slopes, self.relations

    @property
    def lanes(self) -> Sequence[int]:
        """Zeros: no count is lowered from loop to loop."""
        return (0,) * len(self.numbers)


Item = Step | Trips


def _all(items: Iterable[Item], what: str) -> list[int]:
    return [number for item in items for number in getattr(item, what)]


def _next(number: int, slope: int | None, lanes: int) -> int:
    return max(number - lanes, 0) if slope is None else number + slope


@dataclass(slots=True)
class TripFolding:
    """Instructions so far, with the loops that were found; `last_reads` tells when each value is read last."""

    last_reads: dict[int, int]
    items: list[Item] = field(default_factory=list)
    _places: dict[object, list[int]] = field(default_factory=dict)
    _loops: list[int] = field(default_factory=list)

    def add(self, item: Item) -> None:
        """Add an instruction, which may end a trip."""
        self._push(item)
        while self._continued() or self._begun():
            pass

    def _push(self, item: Item) -> None:
        index = len(self.items)
        self.items.append(item)
        self._places.setdefault(item.key, []).append(index)
        if isinstance(item, Trips):
            self._loops.append(index)

    def _pop(self, count: int) -> None:
        for item in reversed(self.items[-count:]):
            self._places[item.key].pop()
            if isinstance(item, Trips):
                self._loops.pop()
        del self.items[-count:]

    def _continued(self) -> bool:
        """Make the last items the next trip of the loop before them, if they are."""
        top = len(self.items)
        for index in reversed(self._loops[-_CANDIDATES:]):
            loop = self.items[index]
            assert isinstance(loop, Trips)
            trip = self.items[index + 1 :]
            if len(trip) != len(loop.body) or [item.key for item in trip] != [item.key for item in loop.body]:
                continue
            numbers, writes = _all(trip, "numbers"), _all(trip, "writes")
            lanes = _all(loop.body, "lanes")
            expected = [_next(*lane) for lane in zip(loop.last, loop.slopes, lanes, strict=True)]
            outside = iter(loop.reads)
            slots = {number: slot for slot, number in enumerate(writes)}
            fits = expected == numbers and self._ends(loop.writes, trip[-1].end)
            for (relation, slot), read in zip(loop.relations, _all(trip, "reads"), strict=True):
                given = next(outside) if relation != "in" else 0
                fits = fits and (
                    slots.get(read) == slot if relation == "in"
                    else read == (given if relation == "same" else loop.writes[slot])
                )  # fmt: skip
            if fits:
                self._pop(top - index)
                loop.trips, loop.last, loop.writes, loop.end = loop.trips + 1, numbers, writes, trip[-1].end
                self._push(loop)
                return True
        return False

    def _begun(self) -> bool:
        """Make the last items a loop of two trips, if they are two."""
        top = len(self.items)
        for index in reversed(self._places[self.items[-1].key][-1 - _CANDIDATES : -1]):
            size = top - 1 - index
            if 2 * size > top:
                return False
            first, other = self.items[-2 * size : -size], self.items[-size:]
            loop = self._loop(first, other) if [a.key for a in first] == [b.key for b in other] else None
            if loop is not None:
                self._pop(2 * size)
                self._push(loop)
                return True
        return False

    def _loop(self, earlier: Sequence[Item], other: Sequence[Item]) -> Trips | None:
        """Return two trips as a loop, None if they are none."""
        written, again = (
            {number: slot for slot, number in enumerate(_all(items, "writes"))} for items in (earlier, other)
        )
        relations: list[tuple[str, int]] = []
        outside = []
        for read, later in zip(_all(earlier, "reads"), _all(other, "reads"), strict=True):
            if read in written:
                if again.get(later) != written[read]:
                    return None
                relations.append(("in", written[read]))
                continue
            if read != later and later not in written:
                return None
            relations.append(("same", 0) if read == later else ("before", written[later]))
            outside.append(read)
        if not self._ends(written, other[-1].end):
            return None
        first, second = _all(earlier, "numbers"), _all(other, "numbers")
        slopes = tuple(
            None if lanes and second[slot] != number and second[slot] == max(number - lanes, 0)
            else second[slot] - number
            for slot, (number, lanes) in enumerate(zip(first, _all(earlier, "lanes"), strict=True))
        )  # fmt: skip
        keys = tuple(item.key for item in earlier)
        return Trips(
            earlier, 2, slopes, tuple(relations), first, outside, _all(other, "writes"), second, other[-1].end, keys
        )  # fmt: skip

    def _ends(self, values: Iterable[int], end: int) -> bool:
        """Return whether nothing after an instruction reads any of some values."""
        return all(self.last_reads.get(value, -1) <= end for value in values)


def folded(steps: Sequence[Step]) -> Sequence[Item]:
    """Return instructions with their loops."""
    last_reads = {read: step.end for step in steps for read in step.reads}
    folding = TripFolding(last_reads)
    for step in steps:
        folding.add(step)
    return folding.items


def unfolded(items: Iterable[Item], numbers: Sequence[int] | None = None) -> Iterator[tuple[object, tuple[int, ...]]]:
    """Yield the key and the numbers of every instruction, trip by trip."""
    at = 0
    for item in items:
        own = item.numbers if numbers is None else numbers[at : at + len(item.numbers)]
        at += len(item.numbers)
        if isinstance(item, Step):
            yield item.key, tuple(own)
            continue
        now, lanes = list(own), _all(item.body, "lanes")
        for _ in range(item.trips):
            yield from unfolded(item.body, now)
            now = [_next(*lane) for lane in zip(now, item.slopes, lanes, strict=True)]


# The launch that they are.

_I32, _I64 = pto.ScalarType("i32"), pto.ScalarType("i64")
LETTERS: Mapping[int, str] = {1: "R", 2: "F", 3: "C", 4: "A", 5: "Z", 6: "O", 7: "H"}
"""The letters of AscendC's rounding modes by their numbers."""
_DISTS: Mapping[str, str] = {
    "BLK": "BRC_BLK", "UNPK4_B8": "UNPK4", "UNPACK4_B8": "UNPK4", "PACK4_B32": "PK4_B32",
    **{f"UNPACK_B{bits}": f"UNPK_B{bits}" for bits in (8, 16, 32)},
    **{f"PACK_B{bits}": f"PK_B{bits}" for bits in (16, 32, 64)}, "PACK": "PK",
    **{f"{name}_B{bits}": f"1PT_B{bits}" for name in ("ONEPT", "FIRST_ELEMENT") for bits in (8, 16, 32)},
}  # fmt: skip
"""Distributions by their names in libraries."""
_SATURATIONS = {"0": "NOSAT", "1": "SAT"}

Value = tuple[str, pto.Type]
Term = tuple[str, int]
"""The variable of a loop, and by how much a number grows a trip."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """What all trips of an instruction have in common: its operands and results without their numbers."""

    mnemonic: str
    words: tuple[str, ...]
    span: Span


@dataclass(slots=True)
class MakerNotes:
    """Takes warnings about an instruction for a maker."""

    maker: NodeMaker

    def warn(self, kind: WarningKind, message: str, span: Span) -> None:
        """Record a warning."""
        del span
        self.maker.warn(kind, message)

    def span(self, index: int) -> Span:
        """Return the place of the instruction."""
        del index
        return self.maker.span


@dataclass(slots=True)
class ScopeMaker:
    """Collects the instructions of a vector function, and writes it as a launch.

    `add` takes the launch. An instruction outside of any function begins one, which ends with the next other line.
    """

    maker: NodeMaker
    add: Callable[[pto.Operation], None]
    named: bool = False
    """Whether the kernel says where the function ends."""
    rolls: bool = True
    """Whether loops are looked for."""
    _steps: list[Step] = field(default_factory=list)
    _shapes: dict[tuple[str, Span], _Shape] = field(default_factory=dict)
    _span: Span | None = None
    _body: list[pto.Operation] = field(default_factory=list)
    _values: dict[int, Value] = field(default_factory=dict)
    _last_reads: dict[int, int] = field(default_factory=dict)
    _computed: dict[object, Value] = field(default_factory=dict)
    """Numbers and values under another type that are computed already."""
    _checked: set[tuple[_Shape, tuple[pto.Type, ...]]] = field(default_factory=set)

    def takes(self, line: str) -> bool:
        """Return whether a line is of a vector function, and record it; notes and reads by the host are of none.

        Raises:
            IllegalError: it may not stand in the function that the kernel has begun.
        """
        kind, location, *rest = line.split(" ")
        if kind in "np":
            return False
        self.maker.span = self.maker.span_of(location)
        if kind == "x":
            self._take(rest)
        elif self.named:
            raise IllegalError(
                "a vector function has only instructions on vector registers, no calls on tensors, copies or flags",
                span=self.maker.span, legal=("after the function",),
            )  # fmt: skip
        else:
            self.close()
        return kind == "x"

    def _take(self, rest: Sequence[str]) -> None:
        if rest[0] == "enter":
            self.close()
            self.named, self._span = True, self.maker.span
        elif rest[0] == "leave":
            self.named = False
            self.close()
        else:
            self._span = self._span or self.maker.span
            self._steps.append(self._step(rest[0], rest[1:]))

    def close(self) -> None:
        """Write the function, if it has instructions."""
        steps, span, self._steps, self._span = self._steps, self._span, [], None
        if not steps:
            return
        assert span is not None
        now, self.maker.span = self.maker.span, span
        self._body, self._computed, self._values = [], {}, {}
        self._last_reads = {read: step.end for step in steps for read in step.reads}
        for item in folded(steps) if self.rolls else steps:
            self._write(item, [self._values[read] for read in item.reads], [[] for _ in item.numbers])
        self.add(pto.Section("vecscope", tuple(self._body), span=span))
        self.maker.span = now

    def _step(self, mnemonic: str, given: Sequence[str]) -> Step:
        numbers: list[int] = []
        reads: list[int] = []
        writes: list[int] = []
        words = [mnemonic]
        for word in given:
            kind, first, *rest = word.split(",")
            if kind == "a" or (kind == "s" and first[0] not in "iu"):
                words.append(word)
                continue
            if kind == "s":
                bits = element_format(first).storage_bits
                code = int(rest[0], 16)
                numbers.append(code - (1 << bits) if first[0] == "i" and code >> (bits - 1) else code)
                words.append(f"s,{first}")
                continue
            {"v": reads, "k": reads, "n": reads, "V": writes, "K": writes, "N": writes}.get(kind, numbers).append(
                int(first)
            )
            words.append(",".join((kind, *rest)))
        text = " ".join(words)
        shape = self._shapes.setdefault((text, self.maker.span), _Shape(mnemonic, tuple(words[1:]), self.maker.span))
        lanes = [REGISTER_BITS // int(mnemonic[5:])] if mnemonic.startswith("plt_b") else [0] * len(numbers)
        return Step(shape, numbers, reads, writes, lanes, len(self._steps), shape)

    # ------------------------------------------------------------------------------------------------------- nodes

    def _write(
        self, item: Item, reads: Sequence[Value], terms: Sequence[list[Term]], counts: Sequence[str] = ()
    ) -> None:
        """Write an item, given the values that it reads, on what its numbers depend, and counts that loops carry."""
        if isinstance(item, Trips):
            self._loop(item, reads, terms)
            return
        shape = item.content
        assert isinstance(shape, _Shape)
        self.maker.span = shape.span
        numbers = iter(zip(item.numbers, terms, counts or [""] * len(item.numbers), strict=True))
        read, written = iter(reads), iter(item.writes)
        operands: list[Value] = []
        results: list[Value] = []
        words: dict[str, str] = {}
        for word in shape.words:
            kind, *rest = word.split(",")
            match kind:
                case "v":
                    operands.append(self._as(next(read), _vector(rest[0])))
                case "k":
                    operands.append(self._as(next(read), MaskType(int(rest[0]))))
                case "n":
                    operands.append(next(read))
                case "p" | "q":
                    number, own, _ = next(numbers)
                    operands += self._memory(rest[0], number, own, offset=kind == "p")
                case "i" | "s" if len(rest) == 1:
                    number, own, count = next(numbers)
                    type_ = self.maker.scalar_type(rest[0]) if kind == "s" else pto.ScalarType(rest[0])
                    operands.append((count or self._number(number, own, type_), type_))
                case "s":
                    operands.append((self.maker.code(int(rest[1], 16), rest[0]), self.maker.scalar_type(rest[0])))
                case "a":
                    words[rest[0]] = rest[1]
                case _:
                    results.append((self.maker.name(), _kind(word)))
                    self._values[next(written)] = results[-1]
        if shape.mnemonic.startswith("plt_b"):
            results.append((self.maker.name(), _I32))
        self._issue(shape, operands, results, words)

    def _issue(self, shape: _Shape, operands: list[Value], results: list[Value], words: dict[str, str]) -> None:
        node = MicroOperation(
            shape.mnemonic, tuple(name for name, _ in operands), tuple(kind for _, kind in operands),
            tuple(name for name, _ in results), tuple(kind for _, kind in results),
            tuple(sorted(_words(shape, words, [kind for _, kind in (*operands, *results)]).items())), span=shape.span,
        )  # fmt: skip
        key = shape, node.operand_types
        if key not in self._checked:
            check_made(node, MakerNotes(self.maker))
            self._checked.add(key)
        self._body.append(node)

    def _loop(self, loop: Trips, reads: Sequence[Value], terms: Sequence[list[Term]]) -> None:
        """Write a loop; what trips hand on, and what is read after it, it carries."""
        span, maker = self.maker.span, self.maker
        written = [number for item in loop.body for number in item.writes]
        outside = iter(reads)
        given: list[Value | None] = [None if relation == "in" else next(outside) for relation, _ in loop.relations]
        carried: dict[tuple[int, str], Value] = {}
        entries: list[Value] = []
        for (relation, slot), value in zip(loop.relations, given, strict=True):
            if relation == "before" and value is not None and (slot, value[0]) not in carried:
                kind = self._kind_of(loop.body, slot)
                entries.append(self._as(value, kind))
                carried[slot, value[0]] = maker.name(), kind
        kept = {slot for slot, _ in carried}
        for slot, number in enumerate(loop.writes):
            if slot not in kept and self._last_reads.get(number, -1) > loop.end:
                kind = self._kind_of(loop.body, slot)
                entries.append(self._nothing(kind))
                carried[slot, ""] = maker.name(), kind
        counts = {slot: maker.name() for slot, slope in enumerate(loop.slopes) if slope is None}
        entries += [(self._number(loop.numbers[slot], terms[slot], _I32), _I32) for slot in counts]
        variable = maker.name()
        lower, upper, step = (maker.index(number) for number in (0, loop.trips, 1))
        around, seen, self._body, self._computed = self._body, self._computed, [], dict(self._computed)
        inner = [[*own, (variable, slope)] if slope else own for own, slope in zip(terms, loop.slopes, strict=True)]
        lowered: dict[int, str] = {}
        at, number = 0, 0
        for item in loop.body:
            own: list[Value] = []
            for read, (relation, slot) in zip(item.reads, loop.relations[at:], strict=False):
                value = given[at]
                if value is None:
                    value = self._values[read]
                elif relation == "before":
                    value = carried[slot, value[0]]
                own.append(value)
                at += 1
            names = [counts.get(slot, "") for slot in range(number, number + len(item.numbers))]
            self._write(item, own, inner[number : number + len(item.numbers)], names)
            if any(names):
                last = self._body[-1]
                assert isinstance(last, MicroOperation)
                lowered[number] = last.results[1]
            number += len(item.numbers)
        yielded = [self._as(self._values[written[slot]], kind) for (slot, _), (_, kind) in carried.items()]
        yielded += [(lowered[slot], _I32) for slot in counts]
        kinds = tuple(kind for _, kind in yielded)
        body = (*self._body, *([pto.Yield(tuple(name for name, _ in yielded), kinds, span=span)] if yielded else []))
        self._body, self._computed = around, seen
        results = [(maker.name(), kind) for kind in kinds]
        names_inside = (*(name for name, _ in carried.values()), *counts.values())
        self._body.append(
            pto.For(
                variable, lower, upper, step, body, names_inside, tuple(name for name, _ in entries),
                tuple(name for name, _ in results), kinds, span=_first(body, span),
            )
        )  # fmt: skip
        for (slot, _), result in zip(carried, results, strict=False):
            self._values[loop.writes[slot]] = result

    def _kind_of(self, body: Sequence[Item], slot: int) -> pto.Type:
        """Return the type of a value that a trip makes."""
        for item in body:
            if slot < len(item.writes):
                if isinstance(item, Trips):
                    return self._kind_of(item.body, slot)
                assert isinstance(item.content, _Shape)
                return _kind([word for word in item.content.words if word[0] in "VKN"][slot])
            slot -= len(item.writes)
        raise AssertionError

    def _nothing(self, kind: pto.Type) -> Value:
        """Return a value that a loop begins with where its last trip's is read after it."""
        name, operands = self.maker.name(), ()
        words: dict[str, str] = {}
        mnemonic = "init_align"
        if isinstance(kind, MaskType):
            mnemonic, words = f"pset_b{kind.bits}", {"pattern": "PAT_ALLF"}
        elif isinstance(kind, pto.VectorType):
            number = f"i{lane_bits(kind.element)}"
            zero = self.maker.code(0, number), self.maker.scalar_type(number)
            zeros = self.maker.name(), pto.VectorType(kind.lanes, number)
            self._add("vbr", (zero,), zeros, {})
            return self._as(zeros, kind)
        self._add(mnemonic, operands, (name, kind), words)
        return name, kind

    def _add(self, mnemonic: str, operands: Sequence[Value], result: Value, words: Mapping[str, str]) -> None:
        self._body.append(
            MicroOperation(
                mnemonic, tuple(name for name, _ in operands), tuple(kind for _, kind in operands), (result[0],),
                (result[1],), tuple(sorted(words.items())), span=self.maker.span,
            )
        )  # fmt: skip

    def _as(self, value: Value, kind: pto.Type) -> Value:
        """Return a value under another type."""
        if value[1] == kind or isinstance(kind, AlignType):
            return value
        if (value[0], kind) not in self._computed:
            result = self.maker.name(), kind
            self._add("pbitcast" if isinstance(kind, MaskType) else "vbitcast", (value,), result, {})
            self._computed[value[0], kind] = result
        return self._computed[value[0], kind]

    # ----------------------------------------------------------------------------------------------------- numbers

    def _memory(self, element: str, address: int, terms: Sequence[Term], *, offset: bool) -> Iterator[Value]:
        """Yield a pointer into the buffer, and the offset from it."""
        size = lane_bits(element) // 8
        if any(slope % size for _, slope in terms):
            element, size = "u8", 1
        if not 0 <= address < self.maker.capacity:
            raise IllegalError(
                f"byte {address} is outside the buffer of {self.maker.capacity}", span=self.maker.span,
                legal=(f"0 .. {self.maker.capacity - 1}",),
            )  # fmt: skip
        at = self.maker.constant(address, _I64)
        kind = pto.PointerType(element, "ub")
        span = self.maker.span
        pointer = self.maker.once(
            (element, address), lambda name: MicroOperation("castptr", (at,), (_I64,), (name,), (kind,), span=span)
        )
        steps = [(variable, slope // size) for variable, slope in terms]
        if not offset and steps:
            by, base, pointer = self._number(0, steps, INDEX), pointer, self.maker.name()
            self._body.append(pto.AddPointer(pointer, base, by, kind, span=span))
        yield pointer, kind
        if offset:
            yield self._number(0, steps, INDEX), INDEX

    def _number(self, base: int, terms: Sequence[Term], kind: pto.ScalarType) -> str:
        """Return an integer that grows with the variables of loops."""
        if not terms:
            return self.maker.constant(base, kind)
        key = base, tuple(terms), kind
        if key not in self._computed:
            parts = [self._arith("muli", variable, self.maker.index(slope)) for variable, slope in terms]
            total = parts[0] if not base else self._arith("addi", self.maker.index(base), parts[0])
            for part in parts[1:]:
                total = self._arith("addi", total, part)
            if kind != INDEX:
                name = self.maker.name()
                self._body.append(pto.Convert(name, "index_cast", total, INDEX, kind, span=self.maker.span))
                total = name
            self._computed[key] = total, kind
        return self._computed[key][0]

    def _arith(self, operation: str, left: str, other: str) -> str:
        name = self.maker.name()
        self._body.append(pto.Arith(name, operation, (left, other), INDEX, span=self.maker.span))
        return name


def _first(body: Sequence[pto.Operation], span: Span) -> Span:
    """Return the place of the first instruction of a loop."""
    return next((node.span for node in body if isinstance(node, MicroOperation | pto.For)), span)


def _kind(word: str) -> pto.Type:
    """Return the type of a result."""
    letter, _, more = word.partition(",")
    if letter == "V":
        return _vector(more)
    return MaskType(int(more)) if letter == "K" else AlignType()


def _vector(element: str) -> pto.VectorType:
    return pto.VectorType(REGISTER_BITS // lane_bits(element), element)


def _words(shape: _Shape, given: Mapping[str, str], kinds: Sequence[pto.Type]) -> dict[str, str]:
    """Return the words of an instruction by castsim's names.

    Raises:
        IllegalError: a conversion lacks a word that its pair of types takes.
    """
    words = {key: _DISTS.get(word, word) if key == "dist" else word for key, word in given.items()}
    if "mode" in words and shape.mnemonic in ("vcvt", "vtrc"):
        letter = LETTERS.get(int(words.pop("mode")), "")
        if shape.mnemonic == "vtrc":
            return words | {"rnd": letter}
        source, to = (kind.element for kind in kinds if isinstance(kind, pto.VectorType))
        row = conversion(source, to)
        part, saturates = int(words.pop("layout")), _SATURATIONS.get(words.pop("saturates"), "")
        chosen = {
            "rnd": (row.roundings, letter, "RoundMode"), "sat": (row.saturations, saturates, "SatMode"),
            "part": (row.parts, row.parts[part] if 0 <= part < len(row.parts) else "", "RegLayout"),
        }  # fmt: skip
        for key, (legal, word, member) in chosen.items():
            if legal and word not in legal:
                raise IllegalError(f"Cast from {source} to {to} needs another {member}", span=shape.span, legal=legal)
            words |= {key: word} if legal else {}
    return words
