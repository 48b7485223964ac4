"""Lowering of every operation on logical registers: it prepares the operands and calls the emitter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, IntFormat
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import LEGACY
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import (
    BLOCK_BITS,
    REGISTER_BITS,
    AlignType,
    LogicalMaskType,
    LogicalVectorType,
    MaskType,
    PointerType,
    ScalarType,
    Type,
    VmiOperation,
)
from castsim.isa.pto.vmi_operations import group_of, leading_lanes
from castsim.machines.vector_function.logical_emitter import (
    I16,
    I32,
    INDEX,
    FunctionEmitter,
    Logical,
    LogicalMask,
    LogicalRegister,
    Masks,
    Pred,
    Reg,
    RegisterShapes,
    Use,
    per_register,
    physical,
    register_count,
)
from castsim.machines.vector_function.logical_loads import Address, AddressArithmetic, Divisors, Lanewise, Loads
from castsim.targets.dataflow import BLOCK_BYTES

# How wide the containers of every logical register of a function are: as its widest companion needs them.
#
# Registers that meet in an operation share one width; a conversion to 64 bits, a reinterpretation in other widths, and
# a gather of its indices do not tie.

Key = tuple[int, str, int]
"""The node that defines a value, the value's role there, and its number."""
_DEFAULT = 32
_MADE_TO_ORDER = ("pset", "create_mask", "create_group_mask")
_WIDEST = 64


@dataclass(slots=True)
class Containers:
    """Widths by value."""

    _parents: dict[Key, Key] = field(default_factory=dict)
    _widths: dict[Key, int] = field(default_factory=dict)
    _names: dict[str, Key] = field(default_factory=dict)
    _ordered: set[Key] = field(default_factory=set)
    """Masks that are made for whatever width is wanted."""

    def of(self, node: pto.Operation, what: str = "result", number: int = 0) -> int:
        """Return the bits of the containers of a value."""
        return self._widths.get(self._root((id(node), what, number)), _DEFAULT)

    def see(self, body: Sequence[pto.Operation]) -> list[str]:
        """Process a region; return its yielded values."""
        for node in body:
            match node:
                case pto.Yield():
                    return list(node.values)
                case VmiOperation():
                    self._operation(node)
                case pto.For():
                    self._loop(node)
                case pto.If():
                    for number, kind in enumerate(node.result_types):
                        self._define(node, "result", number, kind, node.results[number])
                    for region in (node.then_body, node.else_body):
                        self._tie_all(node, "result", self.see(region))
                case pto.Section():
                    self.see(node.body)
        return []

    def _loop(self, node: pto.For) -> None:
        for number, (name, kind) in enumerate(zip(node.carried, node.result_types, strict=True)):
            self._define(node, "carried", number, kind, name)
        self._tie_all(node, "carried", list(node.initial))
        self._tie_all(node, "carried", self.see(node.body))
        for number, (name, kind) in enumerate(zip(node.results, node.result_types, strict=True)):
            self._define(node, "result", number, kind, name)
        self._tie_all(node, "carried", list(node.results))

    def _tie_all(self, node: pto.Operation, what: str, names: list[str]) -> None:
        for number, name in enumerate(names):
            if name in self._names and (id(node), what, number) in self._parents:
                self._tie((id(node), what, number), self._names[name])

    def _define(self, node: pto.Operation, what: str, number: int, kind: Type, name: str) -> None:
        if not isinstance(kind, LogicalVectorType | LogicalMaskType):
            self._names.pop(name, None)
            return
        key = id(node), what, number
        self._parents[key] = key
        self._widths[key] = lane_bits(kind.element) if isinstance(kind, LogicalVectorType) else 8
        self._names[name] = key

    def _operation(self, node: VmiOperation) -> None:
        for number, (name, kind) in enumerate(zip(node.results, node.result_types, strict=True)):
            self._define(node, "result", number, kind, name)
        if node.mnemonic in _MADE_TO_ORDER:
            self._ordered.add((id(node), "result", 0))
            return
        tied = [self._names[name] for name in (*node.operands, *node.results) if name in self._names]
        if _unties(node):
            tied = tied[-1:]
        for other in tied[1:]:
            self._tie(tied[0], other)

    def _tie(self, one: Key, other: Key) -> None:
        if {one, other} & self._ordered:
            return
        near, far = self._root(one), self._root(other)
        if near != far:
            self._parents[far] = near
            self._widths[near] = max(self._widths[near], self._widths[far])

    def _root(self, key: Key) -> Key:
        while self._parents.get(key, key) != key:
            key = self._parents[key]
        return key


def _unties(node: VmiOperation) -> bool:
    """Whether the operands of an operation may have other containers than its result."""
    if node.mnemonic == "vgather":
        return True
    if node.mnemonic not in ("vcvt", "vinterpret_cast", *LEGACY):
        return False
    kinds = [kind for kind in (*node.operand_types, *node.result_types) if isinstance(kind, LogicalVectorType)]
    widths = [lane_bits(kind.element) for kind in kinds]
    if node.mnemonic == "vinterpret_cast":
        return len(set(widths)) > 1
    return _WIDEST in widths and len(set(widths)) > 1


# Stores of logical registers: rows, packed where containers are wider, unaligned ones, blocks, slots.

_ALIGN = AlignType()
_PACKING = {(8, 16): "PK_B16", (16, 32): "PK_B32", (32, 64): "PK_B64", (8, 32): "PK4_B32"}
"""Distribution modes by the widths of elements in memory and of containers."""


def stored_container(width: int, container: int) -> int:
    """Return the containers from which a store can take elements, the widest up to those that there are."""
    return max([width, *(c for w, c in _PACKING if w == width and c <= container)])


@dataclass(slots=True)
class LogicalStores:
    """Makes stores; lanes without mask bit leave memory as it is."""

    out: FunctionEmitter
    masks: Masks
    shapes: RegisterShapes

    def row(self, value: LogicalRegister, place: Address, mask: LogicalMask | None) -> None:
        """Store elements one after the other."""
        if not place.is_aligned(BLOCK_BYTES):
            self._unaligned_row(value, place, mask)
            return
        value = self.shapes.within(value, stored_container(value.width, value.container))
        size = per_register(value.container)
        for number, pred in enumerate(self.masks.within(mask, value.lanes, value.container)):
            self._store(value, value.regs[number], place.further(number * size), pred)

    def _store(self, value: LogicalRegister, reg: Reg, place: Address, pred: Pred) -> None:
        """Store one register."""
        container, words = value.container, {}
        if container != value.width:
            words["dist"] = _PACKING[value.width, container]
        elif container > 32:
            words["dist"] = "NORM_B32"
            pred = self._both_halves(pred)
        mask = self.out.as_bits(pred, min(32, container))
        reg = self.out.as_element(reg, physical(value.element))
        self.out.micro("vsts", [reg.use, *place.operands(), mask.use], (), **words)

    def _both_halves(self, pred: Pred) -> Pred:
        """Return the mask of 32-bit lanes of containers of 64: both lanes of each."""
        (low, _), home = self.out.micro("pdintlv_b32", [pred.use, pred.use], [("m", MaskType(32)), ("m", MaskType(32))])
        kinds = [("m", MaskType(32)), ("m", MaskType(32))]
        uses = [(low, MaskType(32))] * 2
        (both, _), home = self.out.micro("pintlv_b32", uses, kinds)
        return Pred(both, 32, home)

    # ------------------------------------------------------------------------------------------------ any address

    def _unaligned_row(self, value: LogicalRegister, place: Address, mask: LogicalMask | None) -> None:
        if value.width == 64 and mask is not None:
            raise IllegalError("a masked store of 64 bits needs an aligned address", legal=("multiples of 32 bytes",))
        value = self.shapes.within(value, value.width)
        if mask is not None:
            self._scattered_row(value, place, mask)
            return
        pointer, kind = place.moved()
        (state,), _ = self.out.micro("init_align", (), [("a", _ALIGN)])
        left = value.lanes
        for reg in value.regs:
            count = self.out.constant(min(left, per_register(value.width)) * place.unit, I32)
            uses: list[Use] = [(state, _ALIGN), (count, I32), reg.use, (pointer, kind)]
            (state, pointer), _ = self.out.micro("vstus", uses, [("a", _ALIGN), ("p", kind)])
            left -= per_register(value.width)
        rest = [(state, _ALIGN), (pointer, kind), (self.out.constant(0, I32), I32)]
        self.out.micro("vstas", rest)

    def _scattered_row(self, value: LogicalRegister, place: Address, mask: LogicalMask) -> None:
        """Scatter lanes to where they would go."""
        self._check_unit(place)
        size = per_register(value.width)
        for number, pred in enumerate(mask.at(value.width)):
            index = self.shapes.lane_numbers(value.width, 0)
            self._scatter(value, number, place.further(number * size), index, pred)

    def _scatter(self, value: LogicalRegister, number: int, place: Address, index: Reg, pred: Pred) -> None:
        kind = f"u{value.width}"
        reg = self.out.as_element(value.regs[number], kind)
        mask = self.out.as_bits(pred, value.width)
        self.out.micro("vscatter", [reg.use, place.moved(), index.use, mask.use])

    def _check_unit(self, place: Address) -> None:
        if place.unit != 1 or place.width > 32:
            raise IllegalError("no instruction stores this", legal=("a pointer to the elements of the register",))

    # -------------------------------------------------------------------------------------------------- rows apart

    def rows(
        self, value: LogicalRegister, place: Address, groups: int, stride: str, divisor: int, mask: LogicalMask | None
    ) -> None:  # fmt: skip
        """Store rows that are `stride` of the pointer's elements apart; `divisor` divides the stride."""
        size, known = value.lanes // groups, place.scalars.known(stride)
        if known is not None and known == size * place.unit:
            self.row(value, place, mask)
            return
        if size == 1:
            self._slots(value, place, stride, divisor, mask)
            return
        container = stored_container(value.width, value.container)
        value = self.shapes.within(value, container)
        apart = known is not None and known >= size * place.unit
        for group in range(groups):
            self._row_of(value, place.row(group, stride, divisor), group * size, size, mask, apart=apart)

    def _row_of(
        self, value: LogicalRegister, place: Address, start: int, size: int, mask: LogicalMask | None, *, apart: bool
    ) -> None:  # fmt: skip
        """Store lanes `start` to `start` + `size` - 1, the first of them at an address.

        With rows `apart` a register that begins before the row can begin before it in memory, too.
        """
        lanes, lane = per_register(value.container), start
        while lane < start + size:
            number, first = divmod(lane, lanes)
            last = min(first + start + size - lane, lanes)
            here = place.further(lane - start)
            pred = self.masks.between(first, last, value.container)
            if mask is not None:
                pred = self.masks.logic("pand", mask.at(value.container)[number], pred, value.container)
            before = here.further(-first)
            if (first == 0 or apart) and before.is_aligned(BLOCK_BYTES):
                self._store(value, value.regs[number], before, pred)
            else:
                self._piece(value, number, here, first, pred)
            lane += last - first

    def _piece(self, value: LogicalRegister, number: int, place: Address, first: int, pred: Pred) -> None:
        """Scatter lanes from `first` on to an address."""
        self._check_unit(place)
        if value.container != value.width:
            raise IllegalError("rows of these lanes need aligned addresses", legal=("multiples of 32 bytes",))
        self._scatter(value, number, place, self.shapes.lane_numbers(value.width, -first), pred)

    def _slots(
        self, value: LogicalRegister, place: Address, stride: str, divisor: int, mask: LogicalMask | None
    ) -> None:
        """Store one element a row: all by one scatter where lanes can count as far, else each by one."""
        self._check_unit(place)
        value, scalars = self.shapes.within(value, value.width), place.scalars
        preds, known = self.masks.within(mask, value.lanes, value.width), scalars.known(stride)
        counts = known is not None and 0 <= known * (value.lanes - 1) < 1 << value.width - 1
        if counts or value.width == 32:
            kind = ScalarType(f"i{value.width}")
            step = self.out.constant(known, kind) if known is not None else scalars.out.converted(
                "index_cast", stride, INDEX, kind
            )  # fmt: skip
            for number, pred in enumerate(preds):
                lanes = self.shapes.lane_numbers(value.width, number * per_register(value.width))
                index = self.out.register(
                    "vmuls", [lanes.use, (step, kind), self.masks.whole(value.width).use], lanes.element
                )  # fmt: skip
                self._scatter(value, number, place, index, pred)
            return
        size, none = per_register(value.width), self.shapes.same_number(value.width, 0)
        for slot in range(value.lanes):
            number, lane = divmod(slot, size)
            only = self.masks.between(lane, lane + 1, value.width)
            pred = self.masks.logic("pand", preds[number], only, value.width)
            self._scatter(value, number, place.row(slot, stride, divisor), none, pred)

    # ------------------------------------------------------------------------------------------------------ blocks

    def blocks(self, value: LogicalRegister, place: Address, stride: Use) -> None:
        """Store blocks of 32 bytes at a distance in blocks."""
        value = self.shapes.within(value, value.width)
        name, _ = stride
        known = place.scalars.known(name)
        step = name if known is None else self.out.constant(known, I16)
        for number, pred in enumerate(self.masks.range(value.lanes, value.width)):
            if known is not None:
                first = self.out.constant(8 * number * known, I16)
            else:
                first = self.out.arith("muli", (name, self.out.constant(8 * number, I16)), I16)
            mask = self.out.as_bits(pred, min(32, value.width))
            reg = self.out.as_element(value.regs[number], physical(value.element))
            self.out.micro("vsstb", [reg.use, place.moved(), (step, I16), (first, I16), mask.use])


# Reductions of groups of lanes to one slot each, and slots in all lanes of their groups.

_BLOCKS = REGISTER_BITS // BLOCK_BITS
_COMBINE = {"vcadd": "vadd", "vcmax": "vmax", "vcmin": "vmin"}
_OF_BLOCKS = {"vcadd": "vcgadd", "vcmax": "vcgmax", "vcmin": "vcgmin"}


@dataclass(slots=True)
class Groups:
    """Makes the instructions of operations on groups."""

    out: FunctionEmitter
    masks: Masks
    shapes: RegisterShapes

    # -------------------------------------------------------------------------------------------------- reductions

    def reduction(
        self, name: str, source: LogicalRegister, mask: LogicalMask | None, groups: int, container: int
    ) -> LogicalRegister:
        """Make `vcadd`, `vcmax` or `vcmin` of groups."""
        source, size = self.shapes.within(source, min(32, source.container)), source.lanes // groups
        span = size * source.container
        preds = self.masks.within(mask, source.lanes, source.container)
        given = None if mask is None else preds
        if span % REGISTER_BITS == 0:
            regs, held = self._of_registers(name, source, given, groups), source.container
        elif span in (BLOCK_BITS, 2 * BLOCK_BITS, 4 * BLOCK_BITS):
            regs, held = self._of_blocks(name, source, preds, groups, span // BLOCK_BITS), source.width
        elif size & (size - 1) == 0:
            regs, held = self._of_neighbours(name, source, given, size), source.container
        else:
            regs, held = self._one_by_one(name, source, preds, groups), source.container
        made = self.shapes.made(groups, source.element, held, tuple(regs))
        return self.shapes.within(made, container)

    def _combined(self, name: str, one: Reg, other: Reg, bits: int) -> Reg:
        return self.out.register(_COMBINE[name], [one.use, other.use, self.masks.whole(bits).use], one.element)

    def _reduced(self, instruction: str, reg: Reg, pred: Pred, bits: int) -> Reg:
        return self.out.register(instruction, [reg.use, self.out.as_bits(pred, bits).use], reg.element)

    def _neutral(self, name: str, source: LogicalRegister, preds: tuple[Pred, ...] | None) -> list[Reg]:
        """Return registers whose inactive lanes are neutral; None: all are active."""
        if preds is None:
            return list(source.regs)
        scalar = _neutral(name, source.element)
        kind = ScalarType(f"i{source.width}" if isinstance(FORMATS[source.element], IntFormat) else source.element)
        none = self.out.register("vbr", [(self.out.constant(scalar, kind), kind)], source.element)
        return [self.shapes.chosen(reg, none, pred, source.width) for reg, pred in zip(source.regs, preds, strict=True)]

    def _of_registers(
        self, name: str, source: LogicalRegister, preds: tuple[Pred, ...] | None, groups: int
    ) -> list[Reg]:
        """Reduce groups that are whole registers: these combined, the rest by one instruction each."""
        each = len(source.regs) // groups
        regs = list(source.regs) if each == 1 else self._neutral(name, source, preds)
        slots = []
        for group in range(groups):
            first, *rest = regs[group * each : (group + 1) * each]
            for other in rest:
                first = self._combined(name, first, other, source.width)
            pred = preds[group] if preds is not None and each == 1 else self.masks.every(source.container)
            slots.append(self._reduced(name, first, pred, source.width))
        return self._placed(slots, 1, groups, source.container)

    def _of_blocks(
        self, name: str, source: LogicalRegister, preds: tuple[Pred, ...], groups: int, blocks: int
    ) -> list[Reg]:  # fmt: skip
        """Reduce groups of one, two or four blocks of 32 bytes; a result has as many lanes as a register has groups."""
        found = []
        for reg, pred in zip(source.regs, preds, strict=True):
            part, left = self._reduced(_OF_BLOCKS[name], reg, pred, source.width), blocks
            while left > 1:
                pieces = self.shapes.parted(part, part, source.width)
                low, high = (self.out.as_element(piece, source.element) for piece in pieces)
                part, left = self._combined(name, low, high, source.width), left // 2
            found.append(part)
        return self._placed(found, _BLOCKS // blocks, groups, source.width)

    def _placed(self, parts: list[Reg], each: int, lanes: int, container: int) -> list[Reg]:
        """Concatenate the first `each` containers of every register."""
        size, found = per_register(container), list[Reg]()
        for number in range(register_count(lanes, container)):
            whole: Reg | None = None
            for place in range(0, size, each):
                part = (number * size + place) // each
                if part >= len(parts):
                    break
                moved = self._moved(parts[part], each, place, container)
                mask = self.masks.between(place, place + each, container)
                whole = self.shapes.chosen(moved, whole, mask, container)
            assert whole is not None
            found.append(whole)
        return found

    def _moved(self, part: Reg, each: int, place: int, container: int) -> Reg:
        """Return a register with its first containers moved to `place`."""
        if each > 1 or place == 0:
            return self.shapes.shifted(part, -place, container)
        kind = f"u{container}"
        mask = self.masks.whole(container).use
        return self.out.as_element(
            self.out.register("vdup", [self.out.as_element(part, kind).use, mask], kind), part.element
        )

    def _of_neighbours(
        self, name: str, source: LogicalRegister, preds: tuple[Pred, ...] | None, size: int
    ) -> list[Reg]:
        """Reduce neighbours pair by pair: the even lanes of two registers with the odd ones."""
        regs = self._neutral(name, source, preds)
        while size > 1:
            pairs = zip(regs[::2], (*regs[1::2], regs[-1]), strict=False)
            halves = [self.shapes.parted(one, other, source.container) for one, other in pairs]
            regs = []
            for both in halves:
                one, other = (self.out.as_element(half, source.element) for half in both)
                regs.append(self._combined(name, one, other, source.width))
            size //= 2
        return regs

    def _one_by_one(self, name: str, source: LogicalRegister, preds: tuple[Pred, ...], groups: int) -> list[Reg]:
        """Reduce every group by separate instructions, for groups that do not fit evenly into registers."""
        lanes, size = per_register(source.container), source.lanes // groups
        slots = []
        for group in range(groups):
            first, last, whole = group * size, (group + 1) * size, None
            for number in range(first // lanes, -(-last // lanes)):
                start = number * lanes
                inside = self.masks.between(max(first - start, 0), min(last - start, lanes), source.container)
                pred = self.masks.logic("pand", preds[number], inside, source.container)
                part = self._reduced(name, source.regs[number], pred, source.width)
                whole = part if whole is None else self._combined(name, whole, part, source.width)
            assert whole is not None
            slots.append(whole)
        return self._placed(slots, 1, groups, source.container)

    # -------------------------------------------------------------------------------------------------- broadcasts

    def broadcast(self, source: LogicalRegister, kind: LogicalVectorType, container: int) -> LogicalRegister:
        """Make `vbrc` of slots: lane i is slot i div the lanes of a group."""
        held = min(32, container)
        source = self.shapes.within(source, held)
        lanes, size = per_register(held), kind.lanes // source.lanes
        regs = []
        for number in range(register_count(kind.lanes, held)):
            start = number * lanes
            first, last = start // size, min((start + lanes - 1) // size, source.lanes - 1)
            whole: Reg | None = None
            for place in range(first // lanes, last // lanes + 1):
                index = self._index(held, start, size, first - place * lanes)
                part = self.shapes.picked(source.regs[place], index, held)
                below = self.masks.first(place * lanes * size - start, held) if whole is not None else None
                whole = part if whole is None or below is None else self.shapes.chosen(whole, part, below, held)
            assert whole is not None
            regs.append(self.out.as_element(whole, physical(kind.element)))
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, held, tuple(regs)), container)

    def _index(self, bits: int, start: int, size: int, first: int) -> Reg:
        """Return the register of the slots of lanes, the slot of lane 0 being number `first`."""
        if size >= per_register(bits) and start % size + per_register(bits) <= size:
            return self.shapes.same_number(bits, first)
        numbers = self.shapes.group_numbers(bits, start, size)
        if first == 0:
            return numbers
        return self.shapes.added(numbers, first, bits)


def _neutral(name: str, element: str) -> int:
    """Return the neutral element of a sum, maximum or minimum: a number for integers, a bit pattern for floats."""
    fmt = FORMATS[element]
    if isinstance(fmt, IntFormat):
        most = fmt.maximum if fmt.signed else -1
        return {"vcadd": 0, "vcmax": fmt.minimum, "vcmin": most}[name]
    assert isinstance(fmt, FloatFormat)
    infinity, sign = fmt.exponent_mask << fmt.fraction_bits, 1 << fmt.bits - 1
    return {"vcadd": sign, "vcmax": infinity | sign, "vcmin": infinity}[name]


_LOGIC = ("pand", "por", "pxor", "pnot")


@dataclass(slots=True)
class _Given:
    """The operands of an operation by kind."""

    vectors: list[LogicalRegister] = field(default_factory=list)
    masks: list[LogicalMask] = field(default_factory=list)
    scalars: list[Use] = field(default_factory=list)
    pointer: tuple[str, PointerType] | None = None

    @property
    def mask(self) -> LogicalMask | None:
        """The mask, if there is one."""
        return self.masks[-1] if self.masks else None


@dataclass(slots=True)
class LogicalOperations:
    """Makes instructions of operations."""

    out: FunctionEmitter
    masks: Masks
    shapes: RegisterShapes
    containers: Containers
    facts: Divisors

    def forget(self) -> None:
        """Begin another vecscope."""
        self.masks.forget()
        self.shapes.forget()

    def make(self, node: VmiOperation, values: Sequence[Logical | None]) -> Logical | None:
        """Create the instructions of one operation; return its results.

        Raises:
            IllegalError: there are none.
        """
        given = _sorted(node, values)
        container = self.containers.of(node)
        if node.mnemonic in ("vload", "vstore", "vgather"):
            return self._memory(node, given, container)
        if isinstance(node.result_types[0], LogicalMaskType):
            return self._mask(node, given, container)
        return self._vector(node, given, node.result_types[0], container)

    def _vector(self, node: VmiOperation, given: _Given, kind: object, container: int) -> LogicalRegister:
        assert isinstance(kind, LogicalVectorType)
        lanewise, groups = Lanewise(self.out, self.masks, self.shapes), Groups(self.out, self.masks, self.shapes)
        name = node.mnemonic
        if name == "vcvt" or name in LEGACY:
            return lanewise.conversion(node, given.vectors[0], given.mask, container)
        if name == "vinterpret_cast":
            return lanewise.reinterpretation(given.vectors[0], kind, container)
        if name == "vsel":
            return lanewise.selection(node, given.vectors, given.masks[0], container)
        if name == "vci":
            return lanewise.numbered(kind, given.scalars[0], node.word("order") or "ASC", container)
        if name == "vbrc" and given.scalars:
            return lanewise.broadcast(kind, given.scalars[0], container)
        if name == "vbrc":
            return groups.broadcast(given.vectors[0], kind, container)
        if name in ("vcadd", "vcmax", "vcmin"):
            return groups.reduction(name, given.vectors[0], given.mask, group_of(node), container)
        scalar = given.scalars[0] if given.scalars else None
        return lanewise.operation(node, given.vectors, scalar, given.mask, container)

    def _mask(self, node: VmiOperation, given: _Given, container: int) -> LogicalMask:
        kind = node.result_types[0]
        assert isinstance(kind, LogicalMaskType)
        if node.mnemonic == "pset":
            return self.masks.counting(kind.lanes, "", leading_lanes(node, kind.lanes))
        if node.mnemonic in ("create_mask", "create_group_mask"):
            scalars = AddressArithmetic(self.out, self.facts)
            known = self.facts.constants.get(node.operands[0])
            count = node.operands[0] if known is not None else scalars.as_index(given.scalars[0])
            if node.mnemonic == "create_mask":
                return self.masks.counting(kind.lanes, count, known)
            groups, size = node.count("num_groups"), node.count("group_size")
            assert groups is not None and size is not None
            return self.masks.of_groups(groups, size, count, known)
        if node.mnemonic not in _LOGIC:
            scalar = given.scalars[0] if given.scalars else None
            lanewise = Lanewise(self.out, self.masks, self.shapes)
            return lanewise.comparison(node, given.vectors, scalar, given.mask, container)
        own = 1 if node.mnemonic == "pnot" else 2
        governing = given.masks[own:]
        preds = []
        for number, governor in enumerate(
            self.masks.within(governing[0] if governing else None, kind.lanes, container)
        ):
            bits = min(32, container)
            uses = [self.out.as_bits(mask.at(container)[number], bits).use for mask in given.masks[:own]]
            preds.append(self.out.predicate(node.mnemonic, [*uses, self.out.as_bits(governor, bits).use], bits))
        return self.masks.given(kind.lanes, container, tuple(preds))

    # ------------------------------------------------------------------------------------------------------ memory

    def _memory(self, node: VmiOperation, given: _Given, container: int) -> LogicalRegister | None:
        place, scalars = self._place(node, given), AddressArithmetic(self.out, self.facts)
        if node.mnemonic == "vstore":
            self._store(node, given, place)
            return None
        kind = node.result_types[0]
        assert isinstance(kind, LogicalVectorType)
        if node.mnemonic == "vgather":
            return self._gather(given, kind, place, container)
        loads = Loads(self.out, self.masks, self.shapes)
        groups, mode = node.count("group"), node.word("dist_mode")
        if groups is None and len(given.scalars) > 1:
            value = loads.blocks(kind, place, given.scalars[1], container)
        elif groups is None:
            value = loads.one(kind, place, container) if mode == "brc" else loads.row(kind, place, container)
        else:
            size = 1 if mode == "brc" else kind.lanes // groups
            stride, divisor = self._stride(node, given, scalars, size * place.unit)
            if mode == "brc" and scalars.known(stride) == place.unit and place.width == lane_bits(kind.element):
                slots = loads.row(LogicalVectorType(groups, kind.element), place, min(32, container))
                value = Groups(self.out, self.masks, self.shapes).broadcast(slots, kind, container)
            elif mode == "brc":
                value = loads.one_a_group(kind, place, groups, stride, divisor, container)
            else:
                value = loads.rows(kind, place, groups, stride, divisor, container)
        if given.mask is None:
            return value
        return Lanewise(self.out, self.masks, self.shapes).zeroed(value, given.mask)

    def _stride(self, node: VmiOperation, given: _Given, scalars: AddressArithmetic, default: int) -> tuple[str, int]:
        """Return the stride of rows as an index, and its divisor; rows without a stride are contiguous."""
        if len(given.scalars) < 2:
            return scalars.constant(default), default
        return scalars.as_index(given.scalars[1]), self.facts.strides[id(node)]

    def _place(self, node: VmiOperation, given: _Given) -> Address:
        scalars = AddressArithmetic(self.out, self.facts)
        assert given.pointer is not None
        pointer, kind = given.pointer
        offset = scalars.as_index(given.scalars[0]) if given.scalars else scalars.constant(0)
        vectors = [each for each in (*node.operand_types, *node.result_types) if isinstance(each, LogicalVectorType)]
        near, far = lane_bits(vectors[-1].element), lane_bits(kind.element)
        narrows = node.mnemonic == "vstore" and far < near and kind.element[0] in "iu"
        width = far if narrows or node.word("dist_mode") == "unpack" else near
        return Address(scalars, pointer, kind, offset, width, self.facts.accesses[id(node)])

    def _gather(self, given: _Given, kind: LogicalVectorType, place: Address, container: int) -> LogicalRegister:
        """Make a gather in lanes that hold both an index and an element."""
        (index,) = given.vectors
        bits = max(16, index.width, place.width)
        index = self.shapes.within(index, bits)
        regs = []
        for reg in index.regs:
            own = self.out.as_element(reg, f"u{index.width}")
            if index.width < bits:
                own = self.out.register("vcvt", [own.use, self.masks.whole(16).use], "u32", part="EVEN")
            regs.append(own)
        preds = [self.out.as_bits(pred, bits).use for pred in self.masks.within(given.mask, kind.lanes, bits)]
        loads = Loads(self.out, self.masks, self.shapes)
        return loads.gathered(kind, place.moved(), regs[: register_count(kind.lanes, bits)], preds, bits, container)

    def _store(self, node: VmiOperation, given: _Given, place: Address) -> None:
        stores, scalars = LogicalStores(self.out, self.masks, self.shapes), AddressArithmetic(self.out, self.facts)
        (value,), groups = given.vectors, node.count("group")
        if place.width < value.width:  # whose low bits are stored
            value = LogicalRegister(value.lanes, f"u{place.width}", value.container, value.regs, value.home)
        if groups is not None:
            stride, divisor = self._stride(node, given, scalars, value.lanes // groups * place.unit)
            stores.rows(value, place, groups, stride, divisor, given.mask)
        elif len(given.scalars) < 2:
            stores.row(value, place, given.mask)
        elif given.mask is None:
            stores.blocks(value, place, given.scalars[1])
        else:
            lanes = BLOCK_BITS // value.width
            stride = scalars.times(scalars.as_index(given.scalars[1]), lanes * place.unit)
            stores.rows(value, place, value.lanes // lanes, stride, lanes * place.unit, given.mask)


def _sorted(node: VmiOperation, values: Sequence[Logical | None]) -> _Given:
    found = _Given()
    for name, kind, value in zip(node.operands, node.operand_types, values, strict=True):
        match kind:
            case ScalarType():
                found.scalars.append((name, kind))
            case PointerType():
                found.pointer = name, kind
            case _ if isinstance(value, LogicalRegister):
                found.vectors.append(value)
            case _ if isinstance(value, LogicalMask):
                found.masks.append(value)
    return found
