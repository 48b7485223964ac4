"""Predicates of logical masks: all lanes, the first, those of groups, and changes of containers."""

from __future__ import annotations

from dataclasses import dataclass, field

from castsim.isa.pto.value_types import MaskType, Type
from castsim.machines.vector_function.logical.emitter import I32, INDEX, Emitter, Pred
from castsim.machines.vector_function.logical.values import LogicalMask, per_register, register_count

_PATTERNS = (1, 2, 3, 4, 8, 16, 32, 64, 128)


@dataclass(slots=True)
class Masks:
    """Makes predicates; those that rest on nothing stand once at the head of the vecscope."""

    out: Emitter
    _fixed: dict[tuple[str, int, int], Pred] = field(default_factory=dict)

    def forget(self) -> None:
        """Begin another vecscope."""
        self._fixed.clear()

    # ------------------------------------------------------------------------------------------------ fixed lanes

    def whole(self, bits: int) -> Pred:
        """Return the predicate of all lanes of a width."""
        return self._kept(("every", bits, 0), lambda: self.out.predicate(f"pset_b{bits}", (), bits, pattern="PAT_ALL"))

    def every(self, container: int) -> Pred:
        """Return the predicate of all containers: 64 bits have the type of 32."""
        if container <= 32:
            return self.whole(container)
        return self._kept(("every", container, 0), lambda: self._spread(self.whole(32), "LOWER"))

    def first(self, count: int, container: int) -> Pred:
        """Return the predicate of the first containers of a register, with `count` no more than there are."""
        if count >= per_register(container):
            return self.every(container)
        if container > 32:
            return self._kept(("first", container, count), lambda: self._spread(self.first(count, 32), "LOWER"))
        return self._kept(("first", container, count), lambda: self._first(count, container))

    def _first(self, count: int, bits: int) -> Pred:
        pattern = f"PAT_VL{count}" if count in _PATTERNS else "PAT_ALLF"
        if count in _PATTERNS or count <= 0:
            return self.out.predicate(f"pset_b{bits}", (), bits, pattern=pattern)
        return self._counted(self.out.constant(count, I32), bits)[0]

    def between(self, start: int, end: int, container: int) -> Pred:
        """Return the predicate of containers `start` to `end` - 1 of a register."""
        if start <= 0:
            return self.first(end, container)
        key = f"from {start}", container, end
        return self._kept(
            key, lambda: self._logic("pxor", self.first(end, container), self.first(start, container), container)
        )  # fmt: skip

    def range(self, lanes: int, container: int) -> tuple[Pred, ...]:
        """Return the predicates of the lanes of a logical register."""
        size = per_register(container)
        return tuple(self.first(lanes - n * size, container) for n in range(register_count(lanes, container)))

    def _kept(self, key: tuple[str, int, int], make: object) -> Pred:
        if key not in self._fixed:
            assert callable(make)
            with self.out.at(self.out.scope):
                self._fixed[key] = make()
        return self._fixed[key]

    # ------------------------------------------------------------------------------------------------ instructions

    def _counted(self, count: str, bits: int) -> tuple[Pred, str]:
        """Make `plt`; return the predicate, and how many lanes are left."""
        kinds: list[tuple[str, Type]] = [("m", MaskType(bits)), ("n", I32)]
        (name, left), home = self.out.micro(f"plt_b{bits}", [(count, I32)], kinds)
        return Pred(name, bits, home), left

    def _spread(self, pred: Pred, half: str, bits: int = 32) -> Pred:
        """Make containers of twice the width of half of a predicate's; `bits` are those of its type."""
        return self.out.predicate("punpack", [pred.use], bits, half=half)

    def _logic(self, mnemonic: str, one: Pred, other: Pred, container: int) -> Pred:
        bits = min(32, container)
        operands = [self.out.as_bits(each, bits).use for each in (one, other, self.every(container))]
        return self.out.predicate(mnemonic, operands, bits)

    def logic(self, mnemonic: str, one: Pred, other: Pred, container: int) -> Pred:
        """Combine two predicates of containers of a width, bit by bit."""
        return self._logic(mnemonic, one, other, container)

    # ----------------------------------------------------------------------------------------------- logical masks

    def within(self, mask: LogicalMask | None, lanes: int, container: int) -> tuple[Pred, ...]:
        """Return the active containers of a register: those of its mask, else all lanes."""
        return self.range(lanes, container) if mask is None else mask.at(container)

    def counting(self, lanes: int, count: str, known: int | None) -> LogicalMask:
        """Return the mask of the first `count` lanes (an index); `known` is its value where the text gives it."""
        if known is not None:
            return LogicalMask(lanes, self.out.place(), lambda c: self._padded(min(max(known, 0), lanes), lanes, c))
        least = self.out.arith("minsi", (count, self.out.constant(lanes, INDEX)), INDEX)
        narrow = self.out.converted("index_cast", least, INDEX, I32)
        home = self.out.place()

        def make(container: int) -> tuple[Pred, ...]:
            with self.out.at(home):
                return tuple(self._countdown(narrow, register_count(lanes, container), container))

        return LogicalMask(lanes, home, make)

    def _padded(self, count: int, lanes: int, container: int) -> tuple[Pred, ...]:
        size = per_register(container)
        return tuple(self.first(count - n * size, container) for n in range(register_count(lanes, container)))

    def _countdown(self, left: str, count: int, container: int) -> list[Pred]:
        found: list[Pred] = []
        for _ in range(count):
            pred, further = self._counted(left, min(32, container))
            if container > 32:
                pred = self._spread(pred, "LOWER")
                further = self.out.arith("subi", (left, self.out.constant(per_register(container), I32)), I32)
            found.append(pred)
            left = further
        return found

    def of_groups(self, groups: int, size: int, count: str, known: int | None) -> LogicalMask:
        """Return the mask of the first `count` lanes of every group."""
        narrow = ""
        if known is None:
            most, none = self.out.constant(size, INDEX), self.out.constant(0, INDEX)
            least = self.out.arith("maxsi", (self.out.arith("minsi", (count, most), INDEX), none), INDEX)
            narrow = self.out.converted("index_cast", least, INDEX, I32)
        home, lanes = self.out.place(), groups * size

        def make(container: int) -> tuple[Pred, ...]:
            with self.out.at(home):
                return tuple(
                    self._of_groups(groups, size, n * per_register(container), container, narrow, known)
                    for n in range(register_count(lanes, container))
                )

        return LogicalMask(lanes, home, make)

    def _of_groups(self, groups: int, size: int, start: int, container: int, count: str, known: int | None) -> Pred:
        """Make the predicate of one register, which begins at lane `start`."""
        lanes, total = per_register(container), groups * size
        if known is not None and known >= size:
            return self.first(total - start, container)
        found: Pred | None = None
        for group in range(start // size, -(-min(start + lanes, total) // size)):
            first = group * size - start
            if known is not None:
                piece = self.between(first, min(first + max(known, 0), lanes), container)
            else:
                last = self.out.arith("addi", (count, self.out.constant(first, I32)), I32)
                (high,) = self._countdown(last, 1, container)
                piece = self._logic("pxor", high, self.first(first, container), container) if first > 0 else high
            found = piece if found is None else self._logic("por", found, piece, container)
        assert found is not None
        return found

    def given(self, lanes: int, container: int, preds: tuple[Pred, ...]) -> LogicalMask:
        """Return a mask of predicates that exist for containers of one width."""
        home = self.out.place()

        def make(wanted: int) -> tuple[Pred, ...]:
            with self.out.at(home):
                return self._changed(preds, container, wanted, register_count(lanes, wanted))

        return LogicalMask(lanes, home, make)

    def _changed(self, preds: tuple[Pred, ...], container: int, wanted: int, count: int) -> tuple[Pred, ...]:
        while container < wanted:
            container *= 2
            bits = min(32, container)
            preds = tuple(self._spread(each, half, bits) for each in preds for half in ("LOWER", "HIGHER"))
        while container > wanted:
            container //= 2
            packed = []
            for low, high in zip(preds[::2], (*preds[1::2], None), strict=False):
                first = self._packed(low, "LOWER", container)
                second = None if high is None else self._packed(high, "HIGHER", container)
                packed.append(first if second is None else self._logic("por", first, second, container))
            preds = tuple(packed)
        return preds[:count]

    def _packed(self, pred: Pred, half: str, bits: int) -> Pred:
        return self.out.predicate("ppack", [pred.use], min(32, bits), half=half)
