"""Instructions of a function with logical registers: names, constants, masks, other containers, loads and stores.

Source: docs/reference/micro.md section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import gcd

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError
from castsim.isa.pto import program as pto
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import (
    REGISTER_BITS,
    AlignType,
    MaskType,
    PointerType,
    ScalarType,
    Type,
    vector,
)
from castsim.languages.vmi.facts import WIDEST, element_bytes
from castsim.languages.vmi.operations import LogicalVectorType
from castsim.targets.dataflow import BLOCK_BYTES
from castsim.tools.micro_builder import INDEX, MicroBuilder, OperationRun, Pred, Reg, Use

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


# Loads and stores of logical registers.


@dataclass(frozen=True, slots=True)
class Address:
    """Elements of `width` bits from a pointer on; `divisor` divides the address in bytes."""

    out: LogicalBuilder
    pointer: str
    kind: PointerType
    offset: str
    width: int
    divisor: int

    @property
    def unit(self) -> int:
        """Number of the pointer's elements per element of this address."""
        return self.width // lane_bits(self.kind.element)

    def further(self, elements: int) -> Address:
        """Return the address advanced by some elements."""
        offset = self.out.plus(self.offset, elements * self.unit)
        return self._at(offset, gcd(self.divisor, abs(elements) * self.width // 8))

    def row(self, number: int, stride: str, divisor: int) -> Address:
        """Return the address of a row: rows are `stride` pointer elements apart, a multiple of `divisor`."""
        offset = self.out.sum(self.offset, self.out.times(stride, number))
        return self._at(offset, gcd(self.divisor, number * divisor * element_bytes(self.kind)))

    def _at(self, offset: str, divisor: int) -> Address:
        return Address(self.out, self.pointer, self.kind, offset, self.width, divisor)

    def is_aligned(self, number: int) -> bool:
        """Return whether the address is known to be a multiple of a number of bytes."""
        return self.divisor % number == 0

    def operands(self) -> list[Use]:
        """Return pointer and offset."""
        return [(self.pointer, self.kind), (self.offset, INDEX)]

    def moved(self) -> Use:
        """Return a pointer to the address."""
        if self.out.known.get(self.offset) == 0:
            return self.pointer, self.kind
        name = self.out.fresh("p")
        self.out.add(pto.AddPointer(name, self.pointer, self.offset, self.kind, span=self.out.span))
        return name, self.kind


_UNPACKED_ALIGNMENT = 16
_FEW = 4
"""Maximum number of slots that are loaded one by one; more are gathered."""
_UNPACKING = {(8, 16): "UNPK_B8", (16, 32): "UNPK_B16", (32, 64): "UNPK_B32", (8, 32): "UNPK4"}
_PACKING = {(8, 16): "PK_B16", (16, 32): "PK_B32", (32, 64): "PK_B64", (8, 32): "PK4_B32"}
"""Distribution modes by the widths of elements in memory and of containers."""
_ALIGN = AlignType()


def _widest(modes: Iterable[tuple[int, int]], width: int, container: int) -> int:
    """Return the widest containers up to those wanted that an access can fill from, or empty into, memory."""
    return max([width, *(c for w, c in modes if w == width and c <= container)])


class LogicalAccesses(LogicalBuilder):
    """Writer of loads and stores; lanes of a store without mask bit leave memory unchanged."""

    __slots__ = ()

    def as_logical(self, kind: LogicalVectorType, width: int, regs: Iterable[Reg], container: int) -> LogicalRegister:
        """Return registers with containers of `container` bits as a logical register with containers of a width."""
        return self.within(self.made(kind.lanes, kind.element, width, regs), container)

    def merged(
        self, lanes: int, size: int, container: int, of_group: Callable[[int, int, int, Reg | None], Reg | None]
    ) -> list[Reg]:
        """Return the registers of groups of `size` adjacent lanes.

        `of_group` merges the lanes of a group into a register, given its index, its first lane and the register so far.
        """
        count, regs = per_register(container), list[Reg]()
        for number in range(register_count(lanes, container)):
            start, whole = number * count, None
            for group in range(start // size, -(-min(start + count, lanes) // size)):
                whole = of_group(group, group * size - start, count, whole)
            assert whole is not None
            regs.append(whole)
        return regs

    # ------------------------------------------------------------------------------------------------------- loads

    def load_row(self, kind: LogicalVectorType, address: Address, container: int) -> LogicalRegister:
        """Load contiguous elements; unpacking widens memory elements of `place.width` bits."""
        far, near = address.width, lane_bits(kind.element)
        width = _widest(_UNPACKING, far, container)
        element = physical(kind.element) if far == near else f"u{far}"
        if address.is_aligned(BLOCK_BYTES if width == far else _UNPACKED_ALIGNMENT):
            words = {} if width == far else {"dist": _UNPACKING[far, width]}
            regs = [
                self.register("vlds", address.further(number * per_register(width)).operands(), element, **words)
                for number in range(register_count(kind.lanes, width))
            ]
        else:
            width, regs = far, self._unaligned(element, register_count(kind.lanes, far), address)
        while width < near:
            none = self.same_number(width, 0)
            regs = [half for reg in regs for half in self.spread(reg, none, width)]
            width *= 2
        if far != near:
            regs = [self.as_element(reg, physical(kind.element)) for reg in regs]
        return self.as_logical(kind, width, regs, container)

    def _unaligned(self, element: str, count: int, address: Address) -> list[Reg]:
        pointer, kind = address.moved()
        (state,), _ = self.micro("vldas", [(pointer, kind)], [("a", _ALIGN)])
        regs = []
        for _ in range(count):
            results: list[tuple[str, Type]] = [("v", vector(element)), ("a", _ALIGN), ("p", kind)]
            (name, state, pointer), home = self.micro("vldus", [(pointer, kind), (state, _ALIGN)], results)
            regs.append(Reg(name, element, home))
        return regs

    def load_rows(
        self, kind: LogicalVectorType, address: Address, groups: int, stride: str, divisor: int, container: int
    ) -> LogicalRegister:
        """Load rows that are `stride` pointer elements apart; `divisor` divides the stride."""
        size = kind.lanes // groups
        if self.known.get(stride) == size * address.unit:
            return self.load_row(kind, address, container)
        single = size == 1 and address.width == lane_bits(kind.element) <= 32
        if single and groups > _FEW and address.unit == 1:
            step = self.as_integer(stride, I32)
            indices = [self.strided_numbers(32, n, step) for n in range(register_count(kind.lanes, 32))]
            preds = [pred.use for pred in self.leading(kind.lanes, kind.lanes, 32)]
            return self.gathered(kind, address.moved(), indices, preds, 32, container)
        if single:
            return self.load_slots(kind, address, groups, stride, divisor, container)
        width, part = min(32, container), LogicalVectorType(size, kind.element)
        parts = [self.load_row(part, address.row(number, stride, divisor), width) for number in range(groups)]

        def joined(group: int, first: int, lanes: int, whole: Reg | None) -> Reg | None:
            lane, end = max(first, 0), min(first + size, lanes)
            while lane < end:
                source, by = divmod(lane - first, lanes)
                here = min(end, lane + lanes - by)
                moved = self.shifted(parts[group].regs[source], by - lane, width)
                whole = self.chosen(moved, whole, self.between(lane, here, width), width)
                lane = here
            return whole

        return self.as_logical(kind, width, self.merged(kind.lanes, size, width, joined), container)

    def gathered(
        self, kind: LogicalVectorType, pointer: Use, indices: list[Reg], preds: list[Use], bits: int, container: int
    ) -> LogicalRegister:
        """Gather elements whose indices, in pointer elements, are in lanes of `bits`."""
        regs = [
            self.as_element(self.register("vgather2", [pointer, index.use, pred], f"u{bits}"), physical(kind.element))
            for index, pred in zip(indices, preds, strict=True)
        ]
        return self.as_logical(kind, bits, regs, container)

    def load_one(self, kind: LogicalVectorType, address: Address, container: int) -> LogicalRegister:
        """Load one element into all lanes."""
        reg = self._broadcast(kind, address)
        width = container if address.width == lane_bits(kind.element) else lane_bits(kind.element)
        return self.as_logical(kind, width, [reg] * register_count(kind.lanes, width), container)

    def _broadcast(self, kind: LogicalVectorType, address: Address) -> Reg:
        return self.register("vlds", address.operands(), physical(kind.element), dist=f"BRC_B{address.width}")

    def load_slots(
        self, kind: LogicalVectorType, address: Address, groups: int, stride: str, divisor: int, container: int
    ) -> LogicalRegister:
        """Load one element per group into all its lanes."""
        width, size = min(32, container), kind.lanes // groups
        places = [address.row(number, stride, divisor) for number in range(groups)]
        slots = [self._broadcast(kind, slot_address) for slot_address in places]

        def spread(group: int, first: int, lanes: int, whole: Reg | None) -> Reg:
            mask = self.between(max(first, 0), min(first + size, lanes), width)
            return self.chosen(slots[group], whole, mask, width)

        return self.as_logical(kind, width, self.merged(kind.lanes, size, width, spread), container)

    # ------------------------------------------------------------------------------------------------------ stores

    def store_row(self, value: LogicalRegister, address: Address, mask: LogicalMask | None) -> None:
        """Store contiguous elements."""
        if not address.is_aligned(BLOCK_BYTES):
            self._store_unaligned(value, address, mask)
            return
        value = self.within(value, _widest(_PACKING, value.width, value.container))
        for number, pred in enumerate(self.active(mask, value.lanes, value.container)):
            self._store(value, number, address.further(number * per_register(value.container)), pred)

    def _store(self, value: LogicalRegister, number: int, address: Address, pred: Pred) -> None:
        """Store one register."""
        container, words = value.container, {}
        if container != value.width:
            words["dist"] = _PACKING[value.width, container]
        elif container > 32:
            words["dist"] = "NORM_B32"
            for mnemonic in ("pdintlv_b32", "pintlv_b32"):  # both lanes of each container of 64
                (low, _), home = self.micro(mnemonic, [pred.use] * 2, [("m", MaskType(32))] * 2)
                pred = Pred(low, 32, home)
        mask = self.as_bits(pred, min(32, container))
        reg = self.as_element(value.regs[number], physical(value.element))
        self.micro("vsts", [reg.use, *address.operands(), mask.use], (), **words)

    def _store_unaligned(self, value: LogicalRegister, address: Address, mask: LogicalMask | None) -> None:
        if value.width == WIDEST and mask is not None:
            raise IllegalError("a masked store of 64 bits needs an aligned address", legal=("multiples of 32 bytes",))
        value, size = self.within(value, value.width), per_register(value.width)
        if mask is not None:  # lanes are scattered to where they would go
            _check_unit(address)
            for number, pred in enumerate(mask.at(value.width)):
                index = self.lane_numbers(value.width, 0)
                self._scatter(value, number, address.further(number * size), index, pred)
            return
        pointer, kind = address.moved()
        (state,), _ = self.micro("init_align", (), [("a", _ALIGN)])
        for number, reg in enumerate(value.regs):
            count = self.scalar(min(value.lanes - number * size, size) * address.unit, I32)
            uses: list[Use] = [(state, _ALIGN), count, reg.use, (pointer, kind)]
            (state, pointer), _ = self.micro("vstus", uses, [("a", _ALIGN), ("p", kind)])
        self.micro("vstas", [(state, _ALIGN), (pointer, kind), self.scalar(0, I32)])

    def _scatter(self, value: LogicalRegister, number: int, address: Address, index: Reg, pred: Pred) -> None:
        reg, mask = self.as_element(value.regs[number], f"u{value.width}"), self.as_bits(pred, value.width)
        self.micro("vscatter", [reg.use, address.moved(), index.use, mask.use])

    def store_rows(
        self, value: LogicalRegister, address: Address, groups: int, stride: str, divisor: int, mask: LogicalMask | None
    ) -> None:
        """Store rows that are `stride` pointer elements apart; `divisor` divides the stride."""
        size, distance = value.lanes // groups, self.known.get(stride)
        if distance == size * address.unit:
            self.store_row(value, address, mask)
        elif size == 1:
            self._store_slots(value, address, stride, divisor, mask)
        else:
            value = self.within(value, _widest(_PACKING, value.width, value.container))
            apart = distance is not None and distance >= size * address.unit
            for group in range(groups):
                self._store_lanes(value, address.row(group, stride, divisor), group * size, size, mask, apart=apart)

    def _store_lanes(
        self, value: LogicalRegister, address: Address, start: int, size: int, mask: LogicalMask | None, *, apart: bool
    ) -> None:
        """Store lanes `start` to `start` + `size` - 1, the first of them at an address.

        With rows `apart` a register that begins before the row can begin before it in memory, too.
        """
        lanes, lane = per_register(value.container), start
        while lane < start + size:
            number, first = divmod(lane, lanes)
            last = min(first + start + size - lane, lanes)
            here = address.further(lane - start)
            pred = self.between(first, last, value.container)
            if mask is not None:
                pred = self.logic("pand", mask.at(value.container)[number], pred, value.container)
            before = here.further(-first)
            if (first == 0 or apart) and before.is_aligned(BLOCK_BYTES):
                self._store(value, number, before, pred)
            else:
                _check_unit(here)
                if value.container != value.width:
                    legal = ("multiples of 32 bytes",)
                    raise IllegalError("rows of these lanes need aligned addresses", legal=legal)
                self._scatter(value, number, here, self.lane_numbers(value.width, -first), pred)
            lane += last - first

    def _store_slots(
        self, value: LogicalRegister, address: Address, stride: str, divisor: int, mask: LogicalMask | None
    ) -> None:
        """Store one element per row: all by one scatter if lanes can count that far, otherwise one by one."""
        _check_unit(address)
        value = self.within(value, value.width)
        width, preds, distance = value.width, self.active(mask, value.lanes, value.width), self.known.get(stride)
        if width == 32 or (distance is not None and 0 <= distance * (value.lanes - 1) < 1 << width - 1):
            step = self.as_integer(stride, ScalarType(f"i{width}"))
            for number, pred in enumerate(preds):
                self._scatter(value, number, address, self.strided_numbers(width, number, step), pred)
            return
        none = self.same_number(width, 0)
        for slot in range(value.lanes):
            number, lane = divmod(slot, per_register(width))
            pred = self.logic("pand", preds[number], self.between(lane, lane + 1, width), width)
            self._scatter(value, number, address.row(slot, stride, divisor), none, pred)

    # ------------------------------------------------------------------------------------------------------ blocks

    def load_blocks(self, kind: LogicalVectorType, address: Address, stride: Use, container: int) -> LogicalRegister:
        """Load blocks of 32 bytes at a distance in blocks."""
        pointer, element, size = address.moved(), physical(kind.element), lane_bits(kind.element)
        step, regs = self._block_step(stride), []
        for number, pred in enumerate(self.leading(kind.lanes, kind.lanes, size)):
            first = self._first_block(stride, number)
            operands = [pointer, step, first, self.as_bits(pred, min(32, size)).use]
            regs.append(self.register("vsldb", operands, element))
        return self.as_logical(kind, size, regs, container)

    def store_blocks(self, value: LogicalRegister, address: Address, stride: Use) -> None:
        """Store blocks of 32 bytes at a distance in blocks."""
        value = self.within(value, value.width)
        step = self._block_step(stride)
        for number, pred in enumerate(self.leading(value.lanes, value.lanes, value.width)):
            first = self._first_block(stride, number)
            mask = self.as_bits(pred, min(32, value.width))
            reg = self.as_element(value.regs[number], physical(value.element))
            self.micro("vsstb", [reg.use, address.moved(), step, first, mask.use])

    def _block_step(self, stride: Use) -> Use:
        name, _ = stride
        return self.scalar(self.known[name], I16) if name in self.known else (name, I16)

    def _first_block(self, stride: Use, number: int) -> Use:
        """Return the index of the block in which the n-th register begins."""
        name, _ = stride
        if name in self.known:
            return self.scalar(8 * number * self.known[name], I16)
        return self.arith("muli", (name, self.constant(8 * number, I16)), I16), I16


def _check_unit(address: Address) -> None:
    if address.unit != 1 or address.width > 32:
        raise IllegalError("no instruction stores this", legal=("a pointer to the elements of the register",))
