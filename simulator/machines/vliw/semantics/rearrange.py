"""PACK, UNPACK, MOV_DG and MOV_G: bytes of a vector in other places (docs/reference/tpc.md section 2.5).

A vector is four dual groups, a dual group two groups. Every instruction is a map of bytes: for each byte of the
destination the byte of the source that goes there, or none; so it is computed once per instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.program import Immediate, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_element, whole_bytes
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State
from castsim.machines.vliw.semantics.lanes import given, merged, vectors
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.targets.vliw import VliwTarget

NOTHING = -1
"""In a byte map: the destination keeps its byte."""

ByteMap = NDArray[np.intp]

UNPACKED_ORDER = "mov_dg.unpack: which source element reaches which lane is not documented"
"""Refusal of, or remark on, a move whose values are a guess."""

PACKED_ORDER = "mov_dg.pack: the parts taken are those that PACK fills, which is inferred"
"""Remark on a move of which only the place of the result is documented."""

_UNPACKED_BYTES = 2
"""MOV_DG unpack serves one cast, from 16 to 32 bits: width of its elements (option unpacked_lane_order)."""


@dataclass(frozen=True, slots=True)
class Rearrange:
    """A map of bytes, ready to run."""

    instruction: TpcInstruction
    target: VliwTarget
    source_of: ByteMap
    remarks: tuple[str, ...] = ()

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the destination with the bytes moved."""
        source = vectors(given(self.instruction, operands, "src_a"))[0]
        assert operands.income is not None
        income = vectors(operands.income)[0]
        moved = np.where(self.source_of == NOTHING, income, source[self.source_of])
        return Effects(merged(moved, operands), remarks=self.remarks)

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


@dataclass(frozen=True, slots=True)
class _Geometry:
    """Sizes of the parts of a vector in bytes."""

    vector: int
    dual: int
    group: int

    @property
    def duals(self) -> range:
        return range(self.vector // self.dual)


def prepare_rearrange(instruction: TpcInstruction, target: VliwTarget) -> Rearrange:
    """Work out which byte goes where.

    Raises:
        IllegalError: an element type or lane that does not exist, or a move whose values are not documented.
    """
    sizes = _Geometry(target.registers.vector_bytes, target.registers.dual_group_bytes, target.registers.group_bytes)
    build = _MAPS[instruction.mnemonic]
    remarks: tuple[str, ...] = ()
    if instruction.mnemonic == "mov_dg.unpack":
        if target.option("unpacked_lane_order") == "refuse":
            legal = ("option unpacked_lane_order=every_second",)
            raise IllegalError(UNPACKED_ORDER, span=instruction.span, legal=legal)
        remarks = (UNPACKED_ORDER,)
    elif instruction.mnemonic == "mov_dg.pack":
        remarks = (PACKED_ORDER,)
    elif instruction.type is not None:
        check_element(instruction, target, instruction.type, whole_bytes(target))
    return Rearrange(instruction, target, build(instruction, sizes), remarks)


def _number(instruction: TpcInstruction, name: str) -> int:
    value = instruction.switch(name) or 0
    assert isinstance(value, int)
    return value


def _empty(sizes: _Geometry) -> ByteMap:
    return np.full(sizes.vector, NOTHING)


def _pack(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """Every s-th element of a group, as a block that is repeated through its dual group."""
    group, stride = _number(instruction, "source_group"), _number(instruction, "element_stride")
    size = FORMATS[str(instruction.type)].bits // 8
    kept = np.arange(sizes.group).reshape(-1, size)[::stride].reshape(-1) + group * sizes.group
    found = _empty(sizes)
    for dual in sizes.duals:
        for period in range(0, sizes.dual, 2 * kept.size):
            start = dual * sizes.dual + period + group * kept.size
            found[start : start + kept.size] = dual * sizes.dual + kept
    return found


def _unpack(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """Consecutive elements of a group, to every s-th place of their dual group."""
    group, stride = _number(instruction, "source_group"), _number(instruction, "element_stride")
    half, lane = _number(instruction, "group_half"), _number(instruction, "unpack_lane")
    if lane >= stride:
        message = f"unpack with element_stride={stride} has no unpack_lane={lane}"
        raise IllegalError(message, span=instruction.span, legal=[f"unpack_lane={one}" for one in range(stride)])
    size = FORMATS[str(instruction.type)].bits // 8
    length = sizes.dual // stride
    # With a stride of two the elements fill the whole group, and there are no halves to choose from.
    first = group * sizes.group + half * (sizes.group - length)
    taken = (np.arange(length) + first).reshape(-1, size)
    found = _empty(sizes).reshape(-1, sizes.dual // size, size)
    for dual in sizes.duals:
        found[dual, lane::stride] = dual * sizes.dual + taken
    return found.reshape(-1)


def _byte_mask(instruction: TpcInstruction, sizes: _Geometry) -> NDArray[np.bool_]:
    """The immediate, a bit per byte of a group."""
    operand = instruction.operand("byte_mask")
    assert isinstance(operand, Immediate)
    bits: NDArray[np.bool_] = (operand.value >> np.arange(sizes.group) & 1) != 0
    return bits


def _move_groups(
    found: ByteMap, sizes: _Geometry, dual: int, source: ByteMap, enabled: int, mask: NDArray[np.bool_]
) -> None:
    """Map a dual group to source bytes: bit 0 of `enabled` admits the lower group, bit 1 the upper."""
    for group in (0, 1):
        if enabled >> group & 1:
            part = slice(group * sizes.group, (group + 1) * sizes.group)
            place = found[dual * sizes.dual : (dual + 1) * sizes.dual][part]
            place[mask] = source[part][mask]


def _mov_dg(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """One dual group to another."""
    found = _empty(sizes)
    source = np.arange(sizes.dual) + _number(instruction, "src") * sizes.dual
    enabled = _number(instruction, "wr_lg") | _number(instruction, "wr_ug") << 1
    _move_groups(found, sizes, _number(instruction, "dst"), source, enabled, _byte_mask(instruction, sizes))
    return found


def _mov_dg_all(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """To every dual group one of the source's."""
    found = _empty(sizes)
    for dual in sizes.duals:
        source = np.arange(sizes.dual) + _number(instruction, f"sdg{dual}") * sizes.dual
        enabled = _number(instruction, f"weg{dual}")
        _move_groups(found, sizes, dual, source, enabled, _byte_mask(instruction, sizes))
    return found


def _mov_dg_pack(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """The leading half or quarter of every dual group, side by side in the lowest ones."""
    part = sizes.dual // (4 if _number(instruction, "pack_type") else 2)
    found = _empty(sizes)
    for dual in sizes.duals:
        found[dual * part : (dual + 1) * part] = np.arange(part) + dual * sizes.dual
    return found


def _mov_dg_unpack(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """Every second element of a dual group, each into the lower half of a slot of twice its width."""
    found = _empty(sizes)
    mask = _byte_mask(instruction, sizes)
    for dual in sizes.duals:
        pairs = np.arange(sizes.dual).reshape(-1, 2, _UNPACKED_BYTES) + _number(instruction, f"sdg{dual}") * sizes.dual
        source = np.full((pairs.shape[0], 2, _UNPACKED_BYTES), NOTHING)
        source[:, 0] = pairs[:, _number(instruction, "unpack_type")]
        enabled = _number(instruction, f"weg{dual}")
        _move_groups(found, sizes, dual, source.reshape(-1), enabled, mask)
    return found


def _mov_g(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """To each enabled group the other group of its dual group."""
    found = _empty(sizes)
    mask = _byte_mask(instruction, sizes)
    for dual in sizes.duals:
        if _number(instruction, "dg_en") >> dual & 1:
            swapped = np.roll(np.arange(sizes.dual) + dual * sizes.dual, sizes.group)
            _move_groups(found, sizes, dual, swapped, _number(instruction, "g_en"), mask)
    return found


_MAPS = {
    "pack": _pack,
    "unpack": _unpack,
    "mov_dg": _mov_dg,
    "mov_dg.all": _mov_dg_all,
    "mov_dg.pack": _mov_dg_pack,
    "mov_dg.unpack": _mov_dg_unpack,
    "mov_g": _mov_g,
}
