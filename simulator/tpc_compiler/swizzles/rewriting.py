"""Element-wise work written anew, in the order that conversions of all lanes leave: no element is moved for order.

A value that is r times as wide as what the block loads and stores lies in r registers, element e in register e % r.
Conversions up and down keep to that numbering, so that what is stored is in order again.
"""

from __future__ import annotations

from castsim.isa.tpc import Slot
from castsim.targets.vliw import ConvertRow, IntegerConvertRow, VliwTarget
from castsim.tpc_compiler.code_generation import Sequence, Value
from castsim.tpc_compiler.compiled_casts.building import hop_in_swizzle, takes_group
from castsim.tpc_compiler.compiled_casts.hops import in_lane
from castsim.tpc_compiler.compiled_casts.paths import HopMethod, PathHop
from castsim.tpc_compiler.swizzles.analysis import Unsuited
from castsim.tpc_compiler.swizzles.terms import Term, Terms

_BYTE_BITS = 8
_GROUPS = (2, 4)
_LANEWISE = ("operation", "comparison")
"""Kinds of terms that an instruction makes lane by lane."""

Lanes = tuple[Value, ...]
"""The registers of a value, numbered by lane; of a constant the same one every time."""


class Rewriter:
    """Appends the work of shapes to a sequence.

    `loaded` are the registers of the loads, by number; `narrow` the width of what is loaded and stored, in bytes;
    `scalars` the S registers by index.
    """

    def __init__(
        self, sequence: Sequence, shapes: Terms, loaded: dict[int, Value], narrow: int, target: VliwTarget
    ) -> None:
        self.sequence = sequence
        self.shapes = shapes
        self.loaded = loaded
        self.narrow = narrow
        self.target = target
        self.scalars: dict[int, Value] = {}
        self._made: dict[int, Lanes] = {}
        self._users: dict[int, int] = {}

    def count_users(self, shape: int) -> None:
        """Record what a shape to be written uses, so that a value of one user may be made where it is needed."""
        for child in self.shapes.children(self.shapes.listed[shape]):
            self._users[child] = self._users.get(child, 0) + 1
            if self._users[child] == 1:
                self.count_users(child)

    def written(self, shape: int, into: Lanes | None = None) -> Lanes:
        """Return the registers of a shape's value, appending what computes it; `into` are wanted registers.

        Raises:
            Unsuited: something that cannot be done in this order.
        """
        if shape not in self._made:
            self._made[shape] = self._write(self.shapes.listed[shape], shape, into)
        return self._made[shape]

    def _lanes(self, width: int) -> int:
        """Return the number of registers of a value; narrower ones stay in lane 0 of the elements loaded."""
        return max(1, width // self.narrow)

    def _write(self, term: Term, shape: int, into: Lanes | None) -> Lanes:
        count = self._lanes(term.width)
        if term.kind == "load":
            if term.width != self.narrow or term.key[0] not in self.loaded:
                raise Unsuited("loads of several widths are combined")
            return (self.loaded[term.key[0]],)
        if term.kind == "constant":
            return (self.sequence.broadcast(term.key[0], f"i{term.width * _BYTE_BITS}"),) * count
        if term.kind == "joined":
            return self._extended(term)
        if term.kind == "select":
            return self._selected(term, count, into)
        if term.kind == "operation" and len(term.key) > 1:
            return self._converted(term)
        if term.kind in _LANEWISE:
            return self._lanewise(term, count, into)
        raise Unsuited(f"a {term.kind} is used where a vector is needed")

    # -------------------------------------------------------------------------------------------------- operations

    def _operands(self, parts: tuple[int, ...], count: int) -> list[tuple[Value | int, ...]]:
        """Return the operands of an instruction, lane by lane."""
        columns: list[tuple[Value | int, ...]] = []
        for part in parts:
            term = self.shapes.listed[part]
            if term.kind == "immediate":
                columns.append((int(term.key[0]),) * count)
            elif term.kind == "scalar":
                columns.append((self.scalars[term.key[0]],) * count)
            else:
                columns.append(self.written(part))
        return list(zip(*columns, strict=True))

    def _lanewise(self, term: Term, count: int, into: Lanes | None) -> Lanes:
        head = str(term.key[0])
        results = []
        for lane, operands in enumerate(self._operands(term.parts, count)):
            fresh = self.sequence.mask() if term.kind == "comparison" else self.sequence.vector()
            result = into[lane] if into is not None else fresh
            self.sequence.vpu(head, result, *operands)
            results.append(result)
        return tuple(results)

    def _selected(self, term: Term, count: int, into: Lanes | None) -> Lanes:
        """Write the new elements over a copy of the old ones, under the mask; by their own operation if it is free."""
        mask, new, old = term.parts
        made = self.shapes.listed[new]
        direct = made.kind in _LANEWISE and len(made.key) == 1 and new not in self._made and self._users.get(new) == 1
        if direct:
            head, operands = str(made.key[0]), self._operands(made.parts, count)
        else:
            head, operands = "mov", [(value,) for value in self.written(new)]
        results = []
        for lane, (masks, kept) in enumerate(zip(self.written(mask), self.written(old), strict=True)):
            result = into[lane] if into is not None else self.sequence.vector()
            self._copy(result, kept)
            self.sequence.vpu(head, result, *operands[lane], where=masks, inverted=term.key[0] == "!")
            results.append(result)
        return tuple(results)

    def _copy(self, result: Value, source: Value) -> None:
        """Append a copy of a register in the LOAD slot, which is not an operation of the vector slot."""
        self.sequence.add(Slot.LOAD, "mov", result, source)

    # ------------------------------------------------------------------------------------------------- conversions

    def _converted(self, term: Term) -> Lanes:
        mnemonic, src, dst, mode, shift = term.key
        before = self.shapes.listed[term.parts[0]].width
        row: ConvertRow | IntegerConvertRow | None
        if mnemonic == "convert":
            row, means = self.target.convert(src, dst), HopMethod.CONVERT
        else:
            row, means = self.target.integer_convert(mnemonic, dst), HopMethod.NARROW
        hop = PathHop(means, src, dst, row, shift=shift, integer_rounding=mode)
        return self._through(hop, term.parts[0], before, term.width, mode)

    def _extended(self, term: Term) -> Lanes:
        """Write an element that consists of a narrower one and zeroes above it."""
        parts = self.shapes.joined_parts(term)
        low = parts[0][0]
        width = self.shapes.listed[low].width
        zero = all(self.shapes.listed[part] == Term("constant", 1, (0,)) for part, _ in parts[width:])
        if not zero or parts[:width] != tuple((low, place) for place in range(width)):
            raise Unsuited("an element is put together from parts of others")
        if self.shapes.listed[low].kind == "constant":
            raise Unsuited("an element is put together from parts of others")
        hop = PathHop(HopMethod.EXTEND, f"u{width * _BYTE_BITS}", f"u{term.width * _BYTE_BITS}")
        return self._through(hop, low, width, term.width, "")

    def _through(self, hop: PathHop, source: int, before: int, after: int, mode: str) -> Lanes:
        """Write a change of type; below the width of the loads it happens in lane 0."""
        if max(before, after) <= self.narrow:
            (value,) = self.written(source)
            return (in_lane(self.sequence, hop, value, mode, zeroed=False, into=None),)
        if min(before, after) < self.narrow:
            raise Unsuited("a conversion goes from below to above the width of the loads")
        count = self._lanes(before)
        values = self._grouped(source, count) if count in _GROUPS and takes_group(hop, count, self.target) else None
        taken = list(values or self.written(source))
        return tuple(hop_in_swizzle(self.sequence, hop, taken, mode, None, self.target))

    def _grouped(self, source: int, count: int) -> Lanes:
        """Return the registers of a value as one group, made there if nothing else needs it, else copied."""
        group = self.sequence.vector(count).parts
        term = self.shapes.listed[source]
        movable = (term.kind in _LANEWISE and len(term.key) == 1) or term.kind == "select"
        if source not in self._made and movable and self._users.get(source) == 1:
            return self.written(source, group)
        for part, value in zip(group, self.written(source), strict=True):
            self._copy(part, value)
        return group
