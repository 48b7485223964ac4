"""Every operation on logical registers: its operands sorted out, and handed to what makes its instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.value_types import BLOCK_BITS, LogicalMaskType, LogicalVectorType, PointerType, ScalarType
from castsim.isa.pto.vmi.forms import LEGACY
from castsim.isa.pto.vmi.nodes import VmiOperation
from castsim.isa.pto.vmi.rules import group_of, leading_lanes
from castsim.machines.vector_function.logical.addresses import Address, Scalars
from castsim.machines.vector_function.logical.containers import Containers
from castsim.machines.vector_function.logical.divisors import Divisors
from castsim.machines.vector_function.logical.emitter import Emitter, Use
from castsim.machines.vector_function.logical.groups import Groups
from castsim.machines.vector_function.logical.lanewise import Lanewise
from castsim.machines.vector_function.logical.loads import Loads
from castsim.machines.vector_function.logical.masks import Masks
from castsim.machines.vector_function.logical.shapes import Shapes
from castsim.machines.vector_function.logical.stores import Stores
from castsim.machines.vector_function.logical.values import Logical, LogicalMask, Vector, register_count

_LOGIC = ("pand", "por", "pxor", "pnot")


@dataclass(slots=True)
class _Given:
    """The operands of an operation by kind."""

    vectors: list[Vector] = field(default_factory=list)
    masks: list[LogicalMask] = field(default_factory=list)
    scalars: list[Use] = field(default_factory=list)
    pointer: tuple[str, PointerType] | None = None

    @property
    def mask(self) -> LogicalMask | None:
        """The mask, if there is one."""
        return self.masks[-1] if self.masks else None


@dataclass(slots=True)
class Operations:
    """Makes instructions of operations."""

    out: Emitter
    masks: Masks
    shapes: Shapes
    containers: Containers
    facts: Divisors

    def forget(self) -> None:
        """Begin another vecscope."""
        self.masks.forget()
        self.shapes.forget()

    def make(self, node: VmiOperation, values: Sequence[Logical | None]) -> Logical | None:
        """Make the instructions of one operation; return what it defines.

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

    def _vector(self, node: VmiOperation, given: _Given, kind: object, container: int) -> Vector:
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
            scalars = Scalars(self.out, self.facts)
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

    def _memory(self, node: VmiOperation, given: _Given, container: int) -> Vector | None:
        place, scalars = self._place(node, given), Scalars(self.out, self.facts)
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

    def _stride(self, node: VmiOperation, given: _Given, scalars: Scalars, default: int) -> tuple[str, int]:
        """Return the stride of rows as an index, and what divides it; rows without one stand side by side."""
        if len(given.scalars) < 2:
            return scalars.constant(default), default
        return scalars.as_index(given.scalars[1]), self.facts.strides[id(node)]

    def _place(self, node: VmiOperation, given: _Given) -> Address:
        scalars = Scalars(self.out, self.facts)
        assert given.pointer is not None
        pointer, kind = given.pointer
        offset = scalars.as_index(given.scalars[0]) if given.scalars else scalars.constant(0)
        vectors = [each for each in (*node.operand_types, *node.result_types) if isinstance(each, LogicalVectorType)]
        near, far = lane_bits(vectors[-1].element), lane_bits(kind.element)
        narrows = node.mnemonic == "vstore" and far < near and kind.element[0] in "iu"
        width = far if narrows or node.word("dist_mode") == "unpack" else near
        return Address(scalars, pointer, kind, offset, width, self.facts.accesses[id(node)])

    def _gather(self, given: _Given, kind: LogicalVectorType, place: Address, container: int) -> Vector:
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
        stores, scalars = Stores(self.out, self.masks, self.shapes), Scalars(self.out, self.facts)
        (value,), groups = given.vectors, node.count("group")
        if place.width < value.width:  # whose low bits are stored
            value = Vector(value.lanes, f"u{place.width}", value.container, value.regs, value.home)
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
            case _ if isinstance(value, Vector):
                found.vectors.append(value)
            case _ if isinstance(value, LogicalMask):
                found.masks.append(value)
    return found
