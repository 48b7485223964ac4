"""Loads and stores of global memory: tensors by coordinates, elements and vectors by address.

Source: docs/reference/tpc.md section 7.1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, TileError
from castsim.isa.formats import Format, format_named
from castsim.isa.spans import Span
from castsim.isa.tpc import DimensionMask, Feature, Immediate
from castsim.isa.tpc.program import ADDRESS_BITS, File
from castsim.machines.vliw.local_access import needs_values, part_of
from castsim.machines.vliw.merging import merge_of
from castsim.machines.vliw.plans import InstructionPlan
from castsim.machines.vliw.registers import Held, vector
from castsim.machines.vliw.semantics import Coordinates
from castsim.machines.vliw.tensors import (
    GlobalMemory,
    Tensor,
    as_in_memory,
    as_in_register,
    bytes_to_lanes,
    check_packed_tensor,
    lanes_to_bytes,
    packed_lanes,
)
from castsim.targets.vliw import VliwTarget

Mask = NDArray[np.bool_]
Sources = Mapping[str, Held]

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
        """Stores that lay outside of their tensor as a whole, by place and tensor: the first coordinates of each."""

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
        """LD_G: one element; a vector gets it in all lanes, an index register in the dimensions of the mask."""
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
            return _masked(predicate, lanes_to_bytes(lanes, tensor.format), income)
        if tensor.format.bits > 32:
            raise TileError(
                f"an element of {tensor.name} ({tensor.format.name}) does not fit {dest}", span=plan.site.span
            )
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
        filled = bytes_to_lanes(vector(income), tensor.format).copy()
        filled[lanes if packed is None else packed] = codes
        return _masked(predicate, lanes_to_bytes(filled, tensor.format), income)

    def store_tensor(self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, *, values: bool) -> None:
        """ST_TNSR: the reverse; what lies outside the tensor is dropped."""
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
        held = sources["src_c"]
        assert isinstance(held, np.ndarray)
        if held.dtype == np.bool_:
            codes = held[:: self._mask_width(plan, tensor)].astype(tensor.codes.dtype)
        else:
            codes = bytes_to_lanes(vector(held), tensor.format)
        moved = np.arange(lanes.start, lanes.stop) if packed is None else packed
        wanted = np.ones(moved.size, np.bool_)
        if isinstance(predicate, np.ndarray):
            wanted = predicate[moved * tensor.format.bits // _BYTE]
        place, values_ = self._place(plan, sources), codes[moved]
        if plan.instruction.switch("rmw_sel"):
            word = sources["rmw"]
            assert isinstance(word, int)
            flag = 8 if Feature.WHOLE_DIVISION in self._target.dialect.features else 6
            merge = merge_of(word, tensor.format, flag, plan.site.span)
            values_ = merge(tensor.read(place, values_.size), values_)
        if wanted.any() and not tensor.holds_any(place, values_.size):
            span = plan.site.span
            self.dropped.setdefault((span.line, span.column, tensor.name), (span, place))
        tensor.write(place, values_, wanted)

    def _tensor(self, plan: InstructionPlan, sources: Sources) -> Tensor:
        operand = plan.instruction.operand("tensor")
        number = operand.value if isinstance(operand, Immediate) else sources["tensor"]
        if number is None:
            raise needs_values(plan, "the tensor number")
        assert isinstance(number, int)
        return self.memory.tensor(number, plan.site.span)

    def _place(self, plan: InstructionPlan, sources: Sources) -> Coordinates:
        found = sources["src_a"]
        assert isinstance(found, tuple)
        return _coordinates(found)

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
                f"lanes {first} to {first + length - 1} of a partial access; there are {stop - start} lanes of "
                f"{fmt.name}",
                span=plan.site.span,
                legal=(f"0 .. {stop - start - 1}",),
            )
        return slice(start + first, start + first + length)

    def _mask_width(self, plan: InstructionPlan, tensor: Tensor) -> int:
        """Return how many bits of a VP stand for one element."""
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
        place, address = self._direct_place(plan, sources)
        if not values or address is None:
            return None
        assert isinstance(income, np.ndarray)
        if income.dtype == np.bool_:
            raise IllegalError("direct accesses of a VP are not documented", span=plan.site.span)
        result = income.copy()
        loaded = self.memory.load_bytes(address, place.stop - place.start, plan.site.span)
        result[place] = as_in_register(plan.instruction, loaded)
        return _masked(predicate, result, income)

    def _store_direct(self, plan: InstructionPlan, sources: Sources, predicate: bool | Mask, *, values: bool) -> None:
        place, address = self._direct_place(plan, sources)
        held = sources["src_c"]
        if not values or address is None:
            return
        assert isinstance(held, np.ndarray)
        if held.dtype == np.bool_:
            raise IllegalError("direct accesses of a VP are not documented", span=plan.site.span)
        size = place.stop - place.start
        mask = predicate[place] if isinstance(predicate, np.ndarray) else np.ones(size, np.bool_)
        self._check_writable(plan, self.memory.at(address, size, plan.site.span)[0])
        data, mask = as_in_memory(plan.instruction, vector(held)[place], mask)
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
                    f"{plan.instruction.mnemonic}: what {name} does to values is not documented",
                    span=plan.site.span,
                    legal=(f"{plan.instruction.mnemonic} without {name}",),
                )

    def _check_writable(self, plan: InstructionPlan, tensor: Tensor) -> None:
        if tensor.name not in self._writable:
            raise IllegalError(
                f"tensor {tensor.number} ({tensor.name}) is declared `in` and cannot be stored to",
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
