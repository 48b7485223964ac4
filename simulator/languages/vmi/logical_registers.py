"""Instructions of a function with logical registers: names, constants, masks, and registers in other containers.

Source: docs/reference/micro.md section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from castsim.isa.dataclass import dataclass, field
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import REGISTER_BITS, MaskType, ScalarType, Type
from castsim.tools.micro_builder.micro_builder import INDEX, MicroBuilder, OperationRun, Pred, Reg, Use

I16, I32 = ScalarType("i16"), ScalarType("i32")


# Logical registers and masks as physical ones.
#
# An element of w bits stands in the low bits of a container of c >= w bits, the containers of a register one after the
# other: what unpacking loads and conversions with part EVEN or P0 leave behind, and packing stores take.

_PHYSICAL = {"bf16_pair": "u32", "hif8_pair": "u16"}


def physical(element: str) -> str:
    """Return the instruction element for a logical element: pairs of 16 and 32 bits are integers."""
    return _PHYSICAL.get(element, element)


def per_register(container: int) -> int:
    """Return the number of containers per register."""
    return REGISTER_BITS // container


def register_count(lanes: int, container: int) -> int:
    """Return the number of registers for a number of containers."""
    return -(-lanes // per_register(container))


@dataclass(frozen=True, slots=True)
class LogicalRegister:
    """A logical register: lanes, element, container bits, physical registers, and the insertion point after it."""

    lanes: int
    element: str
    container: int
    regs: tuple[Reg, ...]
    home: OperationRun
    others: dict[int, LogicalRegister] = field(default_factory=dict)
    """The register's lanes in other containers, by container width."""

    @property
    def width(self) -> int:
        """Bits of an element."""
        return lane_bits(self.element)


@dataclass(frozen=True, slots=True)
class LogicalMask:
    """A logical mask: one bit per container, none beyond its lanes; `make` returns predicates for a container width."""

    make: Callable[[int], tuple[Pred, ...]]
    _made: dict[int, tuple[Pred, ...]] = field(default_factory=dict)

    def at(self, container: int) -> tuple[Pred, ...]:
        """Return the predicates for containers of a width."""
        if container not in self._made:
            self._made[container] = self.make(container)
        return self._made[container]


Logical = LogicalRegister | LogicalMask

_PATTERNS = (1, 2, 3, 4, 8, 16, 32, 64, 128)
"""The numbers of leading lanes that a pattern names."""


class LogicalBuilder(MicroBuilder):
    """Builder of the masks and registers of logical values."""

    __slots__ = ()

    # -------------------------------------------------------------------------------- masks of lanes that are fixed

    def every(self, container: int) -> Pred:
        """Return the predicate of all containers: 64-bit ones use the type of 32 bits."""
        if container <= 32:
            return self.whole(container)
        return self.predicate_once(("every", container, 0), lambda: self.spread_mask(self.whole(32), "LOWER"))

    def first(self, count: int, container: int) -> Pred:
        """Return the predicate of the first containers of a register, with `count` no more than there are."""
        if count >= per_register(container):
            return self.every(container)
        if container > 32:
            return self.predicate_once(
                ("first", container, count), lambda: self.spread_mask(self.first(count, 32), "LOWER")
            )
        return self.predicate_once(("first", container, count), lambda: self._first(count, container))

    def _first(self, count: int, bits: int) -> Pred:
        if count in _PATTERNS or count <= 0:
            pattern = f"PAT_VL{count}" if count in _PATTERNS else "PAT_ALLF"
            return self.predicate(f"pset_b{bits}", (), bits, pattern=pattern)
        return self._counted(self.constant(count, I32), bits)[0]

    def between(self, start: int, end: int, container: int) -> Pred:
        """Return the predicate of containers `start` to `end` - 1 of a register."""
        if start <= 0:
            return self.first(end, container)
        return self.predicate_once(
            (f"from {start}", container, end),
            lambda: self.logic("pxor", self.first(end, container), self.first(start, container), container),
        )

    def leading(self, count: int, lanes: int, container: int) -> tuple[Pred, ...]:
        """Return the predicates of the first `count` lanes of a logical register."""
        size = per_register(container)
        return tuple(self.first(count - n * size, container) for n in range(register_count(lanes, container)))

    def active(self, mask: LogicalMask | None, lanes: int, container: int) -> tuple[Pred, ...]:
        """Return the active containers of a register: those of its mask, otherwise all lanes."""
        return self.leading(lanes, lanes, container) if mask is None else mask.at(container)

    def logic(self, mnemonic: str, first: Pred, other: Pred, container: int) -> Pred:
        """Combine two predicates of containers of a width, bit by bit."""
        bits = min(32, container)
        operands = [self.as_bits(pred, bits).use for pred in (first, other, self.every(container))]
        return self.predicate(mnemonic, operands, bits)

    def spread_mask(self, pred: Pred, half: str, bits: int = 32) -> Pred:
        """Widen half of a predicate to containers of twice the width; `bits` are those of its type."""
        return self.predicate("punpack", [pred.use], bits, half=half)

    def _counted(self, count: str, bits: int) -> tuple[Pred, str]:
        """Make `plt`; return the predicate, and how many lanes are left."""
        kinds: list[tuple[str, Type]] = [("m", MaskType(bits)), ("n", I32)]
        (name, left), home = self.micro(f"plt_b{bits}", [(count, I32)], kinds)
        return Pred(name, bits, home), left

    # ----------------------------------------------------------------------------------------------- logical masks

    def _made_here(self, make: Callable[[int], tuple[Pred, ...]]) -> LogicalMask:
        """Return a mask whose predicates are made at the current insertion point."""
        home = self.place()

        def preds(container: int) -> tuple[Pred, ...]:
            with self.at(home):
                return make(container)

        return LogicalMask(preds)

    def counting(self, lanes: int, count: str, number: int | None) -> LogicalMask:
        """Return the mask of the first `count` lanes (an index); `number` is its value if it is constant."""
        if number is not None:
            leading = min(max(number, 0), lanes)
            return LogicalMask(lambda container: self.leading(leading, lanes, container))
        narrow = self.converted(
            "index_cast", self.arith("minsi", (count, self.constant(lanes, INDEX)), INDEX), INDEX, I32
        )
        return self._made_here(
            lambda container: tuple(self._countdown(narrow, register_count(lanes, container), container))
        )

    def _countdown(self, left: str, count: int, container: int) -> Iterator[Pred]:
        """Yield the predicates of `count` registers, of whose lanes the first `left` are active."""
        for _ in range(count):
            pred, further = self._counted(left, min(32, container))
            if container > 32:
                pred = self.spread_mask(pred, "LOWER")
                further = self.arith("subi", (left, self.constant(per_register(container), I32)), I32)
            yield pred
            left = further

    def group_mask(self, groups: int, size: int, count: str, number: int | None) -> LogicalMask:
        """Return the mask of the first `count` lanes of every group."""
        narrow = ""
        if number is None:
            most, none = self.constant(size, INDEX), self.constant(0, INDEX)
            least = self.arith("maxsi", (self.arith("minsi", (count, most), INDEX), none), INDEX)
            narrow = self.converted("index_cast", least, INDEX, I32)
        lanes = groups * size
        return self._made_here(
            lambda container: tuple(
                self._of_groups(lanes, size, n * per_register(container), container, narrow, number)
                for n in range(register_count(lanes, container))
            )
        )

    def _of_groups(self, total: int, size: int, start: int, container: int, count: str, number: int | None) -> Pred:
        """Create the predicate of one register, which begins at lane `start`."""
        lanes = per_register(container)
        if number is not None and number >= size:
            return self.first(total - start, container)
        union: Pred | None = None
        for group in range(start // size, -(-min(start + lanes, total) // size)):
            first = group * size - start
            if number is not None:
                piece = self.between(first, min(first + max(number, 0), lanes), container)
            else:
                last = self.arith("addi", (count, self.constant(first, I32)), I32)
                (high,) = self._countdown(last, 1, container)
                piece = self.logic("pxor", high, self.first(first, container), container) if first > 0 else high
            union = piece if union is None else self.logic("por", union, piece, container)
        assert union is not None
        return union

    def given_mask(self, lanes: int, container: int, preds: tuple[Pred, ...]) -> LogicalMask:
        """Return a mask of predicates that exist for containers of one width."""
        return self._made_here(lambda wanted: self._repacked(preds, container, wanted)[: register_count(lanes, wanted)])

    def _repacked(self, preds: tuple[Pred, ...], container: int, wanted: int) -> tuple[Pred, ...]:
        while container < wanted:
            container *= 2
            bits = min(32, container)
            preds = tuple(self.spread_mask(mask, half, bits) for mask in preds for half in ("LOWER", "HIGHER"))
        while container > wanted:
            container //= 2
            bits, packed = min(32, container), list[Pred]()
            for number, pred in enumerate(preds):
                half = self.predicate("ppack", [pred.use], bits, half="HIGHER" if number % 2 else "LOWER")
                packed.append(self.logic("por", packed.pop(), half, container) if number % 2 else half)
            preds = tuple(packed)
        return preds

    # --------------------------------------------------------------------------------------------- logical registers

    def made(self, lanes: int, element: str, container: int, regs: Iterable[Reg]) -> LogicalRegister:
        """Return a logical register of the physical registers that its lanes need."""
        needed = tuple(regs)[: register_count(lanes, container)]
        return LogicalRegister(lanes, element, container, needed, self.place())

    def within(self, value: LogicalRegister, container: int) -> LogicalRegister:
        """Return the same lanes in containers of a width, cached."""
        if value.container == container:
            return value
        if container not in value.others:
            value.others[container] = self._moved_within(value, container)
        return value.others[container]

    def _moved_within(self, value: LogicalRegister, container: int) -> LogicalRegister:
        with self.at(value.home):
            regs, current = value.regs, value.container
            while current < container:
                regs = tuple(half for reg in regs for half in self.spread(reg, reg, current))
                current *= 2
                regs = regs[: register_count(value.lanes, current)]
            while current > container:
                current //= 2
                regs = tuple(self.parted(low, high, current)[0] for low, high in pairs_of(regs))
            element = physical(value.element)
            return self.made(value.lanes, value.element, container, [self.as_element(reg, element) for reg in regs])

    def spread(self, first: Reg, other: Reg, bits: int) -> list[Reg]:
        """Interleave the lanes of two registers into two registers."""
        kind = f"u{min(32, bits)}"
        return self.registers("vintlv", [self.as_element(reg, kind).use for reg in (first, other)], kind, kind)

    def parted(self, first: Reg, other: Reg, bits: int) -> list[Reg]:
        """Return the even lanes of two registers end to end, and the odd ones."""
        kind = f"u{bits}"
        return self.registers("vdintlv", [self.as_element(reg, kind).use for reg in (first, other)], kind, kind)

    # ------------------------------------------------------------------------------------------------------- lanes

    def lane_numbers(self, bits: int, start: int) -> Reg:
        """Return the register whose lane i holds `start` + i, created at the head of the vecscope."""
        kind = ScalarType(f"i{bits}")

        def make() -> Reg:
            first = self.scalar(signed(start, bits), kind)
            return self.as_element(self.register("vci", [first], kind.name, order="ASC"), f"u{bits}")

        return self.register_once(("lanes", bits, start), make)

    def same_number(self, bits: int, number: int) -> Reg:
        """Return the register with one number in all lanes, created at the head of the vecscope."""
        kind, wrapped = ScalarType(f"i{bits}"), signed(number, bits)
        return self.register_once(
            ("same", bits, number), lambda: self.register("vbr", [self.scalar(wrapped, kind)], f"u{bits}")
        )

    def group_numbers(self, bits: int, start: int, size: int) -> Reg:
        """Return the register whose lane i is (start + i) div size minus start div size, created at the head."""
        start %= size
        return self.register_once((f"groups of {size}", bits, start), lambda: self._group_numbers(bits, start, size))

    def _group_numbers(self, bits: int, start: int, size: int) -> Reg:
        lanes, kind = per_register(bits), f"u{bits}"
        if start == 0 and size >= lanes:
            return self.same_number(bits, 0)
        if start == 0 and size & (size - 1) == 0:
            amount = self.scalar(size.bit_length() - 1, I16)
            return self.register("vshrs", [self.lane_numbers(bits, 0).use, amount, self.whole(bits).use], kind)
        numbers, group, first = self.same_number(bits, 0), 1, size - start
        while first < lanes:
            below = self.as_bits(self.first(first, bits), bits)
            numbers = self.register("vsel", [numbers.use, self.same_number(bits, group).use, below.use], kind)
            group, first = group + 1, first + size
        return numbers

    def strided_numbers(self, bits: int, register: int, step: Use) -> Reg:
        """Return the indices of the lanes of a logical register's n-th register, each multiplied by a scalar."""
        lanes = self.lane_numbers(bits, register * per_register(bits))
        return self.register("vmuls", [lanes.use, step, self.whole(bits).use], lanes.element)

    def picked(self, reg: Reg, index: Reg, bits: int) -> Reg:
        """Return the lanes that an index selects."""
        kind = f"u{bits}"
        lanes = self.register("vselr", [self.as_element(reg, kind).use, index.use], kind)
        return self.as_element(lanes, reg.element)

    def shifted(self, reg: Reg, by: int, bits: int) -> Reg:
        """Return the register whose lane i is lane i + `by`; lanes beyond the end are undefined."""
        return reg if by == 0 else self.picked(reg, self.lane_numbers(bits, by), bits)

    def chosen(self, first: Reg, other: Reg | None, mask: Pred, bits: int) -> Reg:
        """Return the lanes of `first` where the mask is set, otherwise those of `other`, if there is one."""
        if other is None:
            return first
        kind = f"u{bits}"
        operands = [self.as_element(reg, kind).use for reg in (first, other)]
        return self.as_element(self.register("vsel", [*operands, self.as_bits(mask, bits).use], kind), first.element)


def pairs_of(regs: Sequence[Reg]) -> Iterator[tuple[Reg, Reg]]:
    """Yield pairs of neighbouring registers; a last one without neighbour is paired with itself."""
    return zip(regs[::2], (*regs[1::2], regs[-1]), strict=False)


def signed(number: int, bits: int) -> int:
    """Return a number modulo 2^bits, as signed."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half
