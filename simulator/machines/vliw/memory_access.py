"""Loads and stores of local memory, configuration space and global memory (docs/reference/tpc.md section 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from castsim.execution.tree import Access
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, Span, TileError
from castsim.isa.formats import FORMATS, Format, format_named
from castsim.isa.tpc.forms import Feature, Half
from castsim.isa.tpc.program import ADDRESS_BITS, WORD_BYTES, WORD_MASK, DimensionMask, File, Immediate, Register
from castsim.machines.vliw.findings import Findings, StaleReadKind
from castsim.machines.vliw.plans import InstructionPlan
from castsim.machines.vliw.semantics.operands import Coordinates, elements, vector_of
from castsim.machines.vliw.storage import (
    ConfigurationSpace,
    GlobalMemory,
    Held,
    Tensor,
    as_in_memory,
    as_in_register,
    check_packed_tensor,
    packed_lanes,
    vector,
)
from castsim.numerics.policy import abstract_policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.vliw import VliwTarget

# Vector and scalar local memory: bytes, their bounds, and which of them something has written.

Bytes = NDArray[np.uint8]


class LocalMemory:
    """A local memory of a core, initially zero."""

    def __init__(self, name: str, capacity: int) -> None:
        self.name = name
        self.capacity = capacity
        self.bytes: Bytes = np.zeros(capacity, np.uint8)
        self.written: NDArray[np.bool_] = np.zeros(capacity, np.bool_)

    def check(self, address: int, size: int, alignment: int, span: Span) -> None:
        """Reject an access outside the memory or at a misaligned address.

        Raises:
            TileError: there is such an access; the message names address, size, bounds and alignment.
        """
        if address + size > self.capacity:
            raise TileError(
                f"{self.name.upper()} address {address:#x}: an access of {size} bytes exceeds the memory of "
                f"{self.capacity} bytes",
                span=span,
                legal=(f"0x0 .. {self.capacity - size:#x}",),
            )
        if address % alignment:
            down = address - address % alignment
            raise TileError(
                f"{self.name.upper()} address {address:#x} is not a multiple of {alignment}",
                span=span,
                legal=(f"{down:#x}", f"{down + alignment:#x}"),
            )

    def load(self, address: int, size: int) -> Bytes:
        """Return a copy of some bytes."""
        return self.bytes[address : address + size].copy()

    def store(self, address: int, data: Bytes, mask: NDArray[np.bool_] | None = None) -> None:
        """Write bytes, only those under a mask if there is one."""
        region = slice(address, address + data.size)
        if mask is None:
            self.bytes[region] = data
            self.written[region] = True
        else:
            self.bytes[region][mask] = data[mask]
            self.written[region] |= mask

    def is_written(self, address: int, size: int) -> bool:
        """Return whether all of some bytes have been written or declared."""
        return bool(self.written[address : address + size].all())


Mask = NDArray[np.bool_]
Sources = Mapping[str, Held]


class LocalAccess:
    """The local side of the LOAD and STORE slots; `touched` collects the bytes that the current bundle accesses.

    `tables` tells whether the program has look-ups, whose tables occupy most of vector memory.
    """

    def __init__(
        self, target: VliwTarget, configuration: ConfigurationSpace, findings: Findings, *, tables: bool = False
    ) -> None:
        small = tables or target.option("vlm_size") == "small"
        memories = target.memories
        vlm_bytes = target.small_vector_memory.capacity_bytes if small else memories["vlm"].capacity_bytes
        self.vlm = LocalMemory("vlm", vlm_bytes)
        self.slm = LocalMemory("slm", memories["slm"].capacity_bytes)
        self.configuration = configuration
        self.touched: list[Access] = []
        self._findings = findings
        self._vector_bytes = target.registers.vector_bytes
        self._alignment = memories["vlm"].alignment_bytes
        self._word_alignment = memories["slm"].alignment_bytes

    def load_scalar(self, plan: InstructionPlan, sources: Sources, now: int) -> int | bool | None:
        """LD_L: a word of scalar memory or a memory-mapped register; a predicate loads bit 0."""
        address = address_of(plan, sources)
        if plan.mapped:
            word = self.configuration.load(address, plan.site, now, self._findings)
        else:
            self._check(self.slm, plan, address, WORD_BYTES, self._word_alignment, now, write=False)
            word = int(self.slm.load(address, WORD_BYTES).view("<u4")[0])
        return bool(word & 1) if plan.into_predicate and word is not None else word

    def store_scalar(self, plan: InstructionPlan, sources: Sources, now: int) -> bool:
        """ST_L: the reverse; a predicate stores 0 or 1. Return whether a later load may see the change."""
        address, value = address_of(plan, sources), sources["src_c"]
        if plan.mapped:
            self.configuration.store(address, None if value is None else _number(value), plan.site, now)
            return True
        self._check(self.slm, plan, address, WORD_BYTES, self._word_alignment, now, write=True)
        if value is None:
            raise needs_values(plan, "the word that it stores")
        data = np.array([_number(value)], "<u4").view(np.uint8)
        changes = not np.array_equal(self.slm.load(address, WORD_BYTES), data)
        self.slm.store(address, data)
        return changes

    def load_vector(
        self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, income: Held, now: int, *, values: bool
    ) -> Held:
        """LD_L_V: a vector, half a vector, or the packed bits of a predicate."""
        lanes, address, size, alignment = self._vector_place(plan, sources)
        self._check(self.vlm, plan, address, size, alignment, now, write=False)
        if not values:
            return None
        data = self.vlm.load(address, size)
        if plan.into_predicate:
            return _under(predicate, np.unpackbits(data, bitorder="little").astype(np.bool_), income, lanes)
        return _under(predicate, data, income, lanes)

    def store_vector(
        self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, now: int, *, values: bool
    ) -> None:
        """ST_L_V: the reverse; a VP predicate is a byte mask."""
        span_of_lanes, address, size, alignment = self._vector_place(plan, sources)
        self._check(self.vlm, plan, address, size, alignment, now, write=True)
        mask = predicate[span_of_lanes] if isinstance(predicate, np.ndarray) else None
        if not values:
            self.vlm.written[address : address + size] = True
            return
        stored = sources["src_c"]
        assert isinstance(stored, np.ndarray)
        if stored.dtype == np.bool_:
            bits = stored[span_of_lanes] if mask is None else stored[span_of_lanes] & mask
            self.vlm.store(address, np.packbits(bits, bitorder="little"))
        else:
            self.vlm.store(address, vector(stored)[span_of_lanes], mask)

    def _vector_place(self, plan: InstructionPlan, sources: Sources) -> tuple[slice, int, int, int]:
        """Return the part of the register, the byte address, the bytes in memory, and the alignment."""
        address, half = address_of(plan, sources), plan.instruction.form.half
        alignment = self._alignment if half is None else self._alignment // 2
        lanes = slice(*part_of(self._vector_bytes, half))
        size = lanes.stop - lanes.start
        if _holds_bits(plan):
            return lanes, address + lanes.start // 8, size // 8, alignment // 8
        return lanes, address + lanes.start, size, alignment

    def _check(
        self,
        memory: LocalMemory,
        plan: InstructionPlan,
        address: int,
        size: int,
        alignment: int,
        now: int,
        *,
        write: bool,
    ) -> None:
        memory.check(address, size, alignment, plan.site.span)
        self.touched.append(Access(memory.name, address, address + size, write))
        if not write and not memory.is_written(address, size):
            address_range = f"{memory.name.upper()} {address:#x} .. {address + size - 1:#x}"
            self._findings.add(StaleReadKind.UNWRITTEN, address_range, "memory", plan.site, now)


def part_of(whole: int, half: Half | None) -> tuple[int, int]:
    """Return the range of a register's part that an access of so many bytes or lanes moves."""
    if half is None:
        return 0, whole
    return (0, whole // 2) if half is Half.LOW else (whole // 2, whole)


def address_of(plan: InstructionPlan, sources: Sources) -> int:
    """Return the byte address of a local access: one operand, or the sum of two.

    Raises:
        IllegalError: it depends on values that are not computed.
    """
    total = 0
    for role in ("src_a", "src_b"):
        operand = plan.instruction.operand(role)
        if isinstance(operand, Immediate):
            total += operand.value
        elif operand is not None:
            part = sources[role]
            if not isinstance(part, int):
                raise needs_values(plan, "its address")
            total += part
    return total & WORD_MASK


def needs_values(plan: InstructionPlan, what: str) -> IllegalError:
    """Return (do not raise) the error about an operation that needs a run with values."""
    message = f"{plan.instruction.mnemonic}: {what} depends on tensor data, which --timing-only does not compute"
    return IllegalError(message, span=plan.site.span)


def _holds_bits(plan: InstructionPlan) -> bool:
    """Return whether a vector access moves a VP register."""
    data = plan.instruction.operand("src_c") or plan.instruction.operand("dest")
    return isinstance(data, Register) and data.file is File.VP


def _number(value: Held) -> int:
    assert isinstance(value, int)
    return int(value)


def _under(predicate: bool | Mask, data: NDArray[np.generic], income: Held, lanes: slice) -> Held:
    """Return the register after a load into part of it, under a predicate."""
    assert isinstance(income, np.ndarray)
    result = income.copy()
    if isinstance(predicate, np.ndarray):
        result[lanes][predicate[lanes]] = data[predicate[lanes]]
    else:
        result[lanes] = data
    result.flags.writeable = False
    return result


# Stores that read, change and write memory: the word that says how, and what becomes of the elements.
#
# Source: docs/reference/tpc.md section 7.1 (tensor access): type, operation, where the type is taken from, and whether
# the store merges at all.

Codes = NDArray[np.unsignedinteger]
_TYPES = ("i8", "i16", "i32", "u8", "u16", "u32", "bf16", "f32", "f16", "f8_152")
_OPERATIONS = ("add", "sub", "min", "max")
_FROM_DESCRIPTOR = 1
_SINGLE = FORMATS["f32"]
_COMPUTED: Mapping[str, Callable[..., NDArray[np.generic]]] = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Merge:
    """A merging store: memory = memory OPERATION value, in a format."""

    operation: str
    format: Format

    def __call__(self, old: Codes, new: Codes) -> Codes:
        """Return the elements after the store; f32 sums round once, to nearest even."""
        computed = _COMPUTED[self.operation]
        if self.format.name.startswith(("i", "u")):
            kind = np.dtype(f"{self.format.name[0]}{self.format.bits // 8}")
            return np.asarray(computed(old.view(kind), new.view(kind))).view(old.dtype)
        with np.errstate(all="ignore"):
            combined = computed(self._wide(old), self._wide(new)).astype(np.float32).view(np.uint32)
        if self.format.name == "f32":
            return np.asarray(combined, old.dtype)
        policy = abstract_policy(_SINGLE, self.format)
        return np.asarray(convert_codes(combined, _SINGLE, self.format, policy), old.dtype)

    def _wide(self, codes: Codes) -> NDArray[np.float32]:
        if self.format.name == "f32":
            return np.ascontiguousarray(codes, np.uint32).view(np.float32)
        policy = abstract_policy(self.format, _SINGLE)
        return np.asarray(convert_codes(codes, self.format, _SINGLE, policy), np.uint32).view(np.float32)


def merge_of(word: int, stored: Format, flag: int, span: Span) -> Merge:
    """Return the merge that a word requests; `stored` is the format of the tensor, `flag` the bit that makes the store
    merge.

    Raises:
        IllegalError: no source describes the operation or type, or the tensor has another type.
    """
    kind, operation, location = word & 15, (word & ((1 << min(flag, 7)) - 1)) >> 4, word >> 7 & 1
    if not word >> flag & 1:
        message = f"a store with the word {word:#x}, whose bit {flag} is clear, is not documented"
        raise IllegalError(message, span=span, legal=("MkRMW(type, op, e_rmw_atomic, e_tnsr_dt_srf)",))
    if operation >= len(_OPERATIONS):
        raise IllegalError(f"operation {operation} of a merging store is not documented", span=span, legal=_OPERATIONS)
    if kind >= len(_TYPES):
        raise IllegalError(f"type {kind} of a merging store is not documented", span=span, legal=_TYPES)
    wanted = stored if location == _FROM_DESCRIPTOR else FORMATS[_TYPES[kind]]
    if wanted.bits != stored.bits:
        message = f"a merging store of {wanted.name} to a tensor of {stored.name}"
        raise IllegalError(message, span=span, legal=(f"{stored.name}",))
    return Merge(_OPERATIONS[operation], wanted)


# Loads and stores of global memory: tensors by coordinates, elements and vectors by address.
#
# Source: docs/reference/tpc.md section 7.1.

_BYTE = 8
_UNDEFINED = ("l0cs", "bv64", "ev_hint", "inc")
"""Switches whose effect on values no source states."""


class GlobalAccess:
    """The global side of the LOAD and STORE slots."""

    def __init__(self, target: VliwTarget, memory: GlobalMemory, writable: frozenset[str]) -> None:
        self.memory = memory
        self._target = target
        self._writable = writable
        self._vector_bytes = target.registers.vector_bytes
        self.dropped: dict[tuple[int | None, int | None, str], tuple[Span, Coordinates]] = {}
        """Stores completely outside their tensor, by position and tensor: the first coordinates of each."""

    # ------------------------------------------------------------------------------------------------- addresses

    def make_address(self, plan: InstructionPlan, sources: Sources) -> int | None:
        """GEN_ADDR: the byte address of the element at some coordinates."""
        tensor = self._tensor(plan, sources)
        coordinates = sources["src_a"]
        if coordinates is None:
            return None
        bits = tensor.format.bits
        if plan.instruction.switch("dt_override"):
            bits = format_named(str(plan.instruction.switch("dt"))).bits
        assert isinstance(coordinates, tuple)
        return (tensor.base + tensor.position(_coordinates(coordinates)) * bits // _BYTE) % (1 << ADDRESS_BITS)

    # -------------------------------------------------------------------------------------------------- elements

    def load_element(
        self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, income: Held, *, values: bool
    ) -> Held:
        """LD_G: one element; a vector loads it in all lanes, an index register in the dimensions of the mask."""
        self._check_defined(plan, values=values)
        address = sources["src_a"]
        if not values or not isinstance(address, int):
            return None
        reads_zero = self._target.option("global_load_outside") == "zero"
        outside = self.memory.beside(address) if reads_zero else None
        if outside is not None:
            tensor, code = outside, 0
        else:
            tensor, position = self.memory.element_at(address, plan.site.span)
            code = int(tensor.codes[position])
        dest = plan.instruction.operand("dest")
        file = getattr(dest, "file", None)
        if file is File.V:
            lanes = np.full(self._vector_bytes * _BYTE // tensor.format.bits, code, tensor.codes.dtype)
            return _masked(predicate, vector_of(lanes, tensor.format), income)
        if tensor.format.bits > 32:
            raise TileError(f"an element of {tensor.name} ({tensor.format.name}) exceeds {dest}", span=plan.site.span)
        if file is File.SP:
            return bool(code & 1)
        if file is File.I:
            return self._into_index(plan, code, income)
        return code

    def store_element(self, plan: InstructionPlan, sources: Sources, *, values: bool) -> None:
        """ST_G: the low bits of a scalar."""
        self._check_defined(plan, values=values)
        address, value = sources["src_a"], sources["src_c"]
        if not values or not isinstance(address, int):
            return
        tensor, position = self.memory.element_at(address, plan.site.span)
        self._check_writable(plan, tensor)
        assert isinstance(value, int)
        tensor.codes[position] = int(value) & ((1 << tensor.format.bits) - 1)
        if tensor.written is not None:
            tensor.written[position] = True

    def _into_index(self, plan: InstructionPlan, code: int, income: Held) -> Coordinates:
        mask = plan.instruction.operand("mask")
        assert isinstance(mask, DimensionMask) and isinstance(income, tuple)
        signed = code - (1 << 32) if code >> 31 else code
        return tuple(signed if mask.bits >> k & 1 else old for k, old in enumerate(_coordinates(income)))

    # --------------------------------------------------------------------------------------------------- tensors

    def load_tensor(
        self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, income: Held, *, values: bool
    ) -> Held:
        """LD_TNSR: lanes from consecutive elements of dimension 0."""
        self._check_defined(plan, values=values)
        if plan.instruction.switch("direct"):
            return self._load_direct(plan, sources, predicate, income, values=values)
        tensor = self._tensor(plan, sources)
        check_packed_tensor(plan.instruction, tensor)
        if not values:
            return None
        packed = packed_lanes(plan.instruction, self._vector_bytes)
        lanes = self._lanes(plan, tensor.format, sources)
        codes = tensor.read(self._place(plan, sources), lanes.stop - lanes.start)
        if plan.into_predicate:
            assert isinstance(income, np.ndarray)
            width = self._mask_width(plan, tensor)
            bits = income.copy()
            bits[lanes.start * width : lanes.stop * width] = np.repeat(codes & 1, width).astype(np.bool_)
            return _masked(predicate, bits, income)
        assert isinstance(income, np.ndarray)
        filled = elements(vector(income), tensor.format).copy()
        filled[lanes if packed is None else packed] = codes
        return _masked(predicate, vector_of(filled, tensor.format), income)

    def store_tensor(self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, *, values: bool) -> None:
        """ST_TNSR: the reverse; elements outside the tensor are dropped."""
        self._check_defined(plan, values=values)
        if plan.instruction.switch("direct"):
            self._store_direct(plan, sources, predicate, values=values)
            return
        tensor = self._tensor(plan, sources)
        self._check_writable(plan, tensor)
        check_packed_tensor(plan.instruction, tensor)
        if not values:
            return
        packed = packed_lanes(plan.instruction, self._vector_bytes)
        lanes = self._lanes(plan, tensor.format, sources)
        data = sources["src_c"]
        assert isinstance(data, np.ndarray)
        if data.dtype == np.bool_:
            codes = data[:: self._mask_width(plan, tensor)].astype(tensor.codes.dtype)
        else:
            codes = elements(vector(data), tensor.format)
        moved = np.arange(lanes.start, lanes.stop) if packed is None else packed
        wanted = np.ones(moved.size, np.bool_)
        if isinstance(predicate, np.ndarray):
            wanted = predicate[moved * tensor.format.bits // _BYTE]
        coordinates, values_ = self._place(plan, sources), codes[moved]
        if plan.instruction.switch("rmw_sel"):
            word = sources["rmw"]
            assert isinstance(word, int)
            flag = 8 if Feature.WHOLE_DIVISION in self._target.dialect.features else 6
            merge = merge_of(word, tensor.format, flag, plan.site.span)
            values_ = merge(tensor.read(coordinates, values_.size), values_)
        if wanted.any() and not tensor.holds_any(coordinates, values_.size):
            span = plan.site.span
            self.dropped.setdefault((span.line, span.column, tensor.name), (span, coordinates))
        tensor.write(coordinates, values_, wanted)

    def _tensor(self, plan: InstructionPlan, sources: Sources) -> Tensor:
        operand = plan.instruction.operand("tensor")
        number = operand.value if isinstance(operand, Immediate) else sources["tensor"]
        if number is None:
            raise needs_values(plan, "the tensor number")
        assert isinstance(number, int)
        return self.memory.tensor(number, plan.site.span)

    def _place(self, plan: InstructionPlan, sources: Sources) -> Coordinates:
        coordinates = sources["src_a"]
        assert isinstance(coordinates, tuple)
        return _coordinates(coordinates)

    def _lanes(self, plan: InstructionPlan, fmt: Format, sources: Sources) -> slice:
        """Return the lanes that an access moves: all, a half, or the range that a register names within them."""
        count = self._vector_bytes * _BYTE // fmt.bits
        start, stop = part_of(count, plan.instruction.form.half)
        if not plan.instruction.switch("partial"):
            return slice(start, stop)
        bounds = sources["range"]
        assert isinstance(bounds, int)
        first, length = bounds >> _BYTE & 0xFF, (bounds & 0xFF) + 1
        if start + first + length > stop:
            raise TileError(
                f"a partial access of lanes {first} to {first + length - 1}; {fmt.name} has {stop - start} lanes",
                span=plan.site.span,
                legal=(f"0 .. {stop - start - 1}",),
            )
        return slice(start + first, start + first + length)

    def _mask_width(self, plan: InstructionPlan, tensor: Tensor) -> int:
        """Return the number of VP bits per element."""
        bits = tensor.format.bits
        if bits < _BYTE or (bits > _BYTE and self._target.option("mask_of_wide_elements") == "refuse"):
            raise IllegalError(
                f"which bits of a VP correspond to elements of {tensor.format.name} is not documented (option "
                "mask_of_wide_elements)",
                span=plan.site.span,
                legal=("a tensor of 8-bit elements",),
            )
        return bits // _BYTE

    # ---------------------------------------------------------------------------------------------------- direct

    def _load_direct(
        self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, income: Held, *, values: bool
    ) -> Held:
        lanes, address = self._direct_place(plan, sources)
        if not values or address is None:
            return None
        assert isinstance(income, np.ndarray)
        if income.dtype == np.bool_:
            raise IllegalError("direct accesses of a VP are not documented", span=plan.site.span)
        result = income.copy()
        loaded = self.memory.load_bytes(address, lanes.stop - lanes.start, plan.site.span)
        result[lanes] = as_in_register(plan.instruction, loaded)
        return _masked(predicate, result, income)

    def _store_direct(self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, *, values: bool) -> None:
        lanes, address = self._direct_place(plan, sources)
        stored = sources["src_c"]
        if not values or address is None:
            return
        assert isinstance(stored, np.ndarray)
        if stored.dtype == np.bool_:
            raise IllegalError("direct accesses of a VP are not documented", span=plan.site.span)
        size = lanes.stop - lanes.start
        mask = predicate[lanes] if isinstance(predicate, np.ndarray) else np.ones(size, np.bool_)
        self._check_writable(plan, self.memory.at(address, size, plan.site.span)[0])
        data, mask = as_in_memory(plan.instruction, vector(stored)[lanes], mask)
        self.memory.store_bytes(address, data, mask, plan.site.span)

    def _direct_place(self, plan: InstructionPlan, sources: Sources) -> tuple[slice, int | None]:
        if plan.instruction.switch("partial"):
            raise IllegalError("direct accesses of a range of lanes are not documented", span=plan.site.span)
        start, stop = part_of(self._vector_bytes, plan.instruction.form.half)
        low, high = sources["src_a"], sources["src_b"]
        if not isinstance(low, int) or not isinstance(high, int):
            return slice(start, stop), None
        return slice(start, stop), high << 32 | low

    # -------------------------------------------------------------------------------------------------- refusals

    def _check_defined(self, plan: InstructionPlan, *, values: bool) -> None:
        for name in _UNDEFINED:
            if values and plan.instruction.switch(name) not in (None, 0, "none"):
                raise IllegalError(
                    f"{plan.instruction.mnemonic}: the effect of {name} on values is not documented",
                    span=plan.site.span,
                    legal=(f"{plan.instruction.mnemonic} without {name}",),
                )

    def _check_writable(self, plan: InstructionPlan, tensor: Tensor) -> None:
        if tensor.name not in self._writable:
            raise IllegalError(
                f"tensor {tensor.number} ({tensor.name}) is declared `in`, so the program cannot store to it",
                span=plan.site.span,
                legal=("out", "inout"),
            )


def _coordinates(value: tuple[object, ...]) -> Coordinates:
    return tuple(int(c) for c in value if isinstance(c, int))


def _masked(predicate: bool | Mask, data: NDArray[np.generic], income: Held) -> Held:
    """Return a register under a predicate of its bytes."""
    if isinstance(predicate, np.ndarray):
        assert isinstance(income, np.ndarray)
        data = np.where(predicate, data, income)
    data.flags.writeable = False
    return data  # type: ignore[return-value]  # bytes or booleans, as the caller made them
