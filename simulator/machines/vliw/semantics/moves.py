"""Moves of unchanged elements: MOV in all its forms, index registers, PACK, UNPACK, MOV_DG, SHUFFLE.

Source: docs/reference/tpc.md sections 2.5, 5.4 and 7.1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Format, IntFormat
from castsim.isa.tpc.program import WORD_BITS, DimensionMask, File, Immediate, Register, Special, TpcInstruction
from castsim.machines.vliw.semantics.operands import (
    WORD_MASK,
    Coordinates,
    Effects,
    Mask,
    OperandValues,
    State,
    Unit,
    Value,
    Vector,
    Words,
    broadcast,
    check_element,
    merged,
    signed_word,
    stepped,
    vector_of,
    vectors,
    whole_bytes,
)
from castsim.targets.vliw import VliwTarget


def narrow_result(code: int, fmt: Format, operands: OperandValues, target: VliwTarget) -> int:
    """Return S after an instruction wrote an element to its low bits (option narrow_scalar_result).

    With scalar predicates only: an instruction with a false predicate never calls this.
    """
    if fmt.bits >= WORD_MASK.bit_length():
        return code & WORD_MASK
    low = (1 << fmt.bits) - 1
    rule = target.option("narrow_scalar_result")
    if rule == "keep" and isinstance(operands.income, int):
        return operands.income & ~low & WORD_MASK | code & low
    if rule == "sign_extend" and isinstance(fmt, IntFormat) and fmt.signed and code >> (fmt.bits - 1) & 1:
        return code & low | WORD_MASK & ~low
    return code & low


def scalar(value: object) -> int:
    """Return the content of an S register or immediate as an unsigned number."""
    assert isinstance(value, int)
    return value & WORD_MASK


def signed_scalar(value: object) -> int:
    """Return the content of an S register or immediate as a signed number."""
    return signed_word(scalar(value))


# Index registers: SET_INDX, PRMT_INDX, MOV_IRF_DIM and arithmetic on coordinates.
#
# Source: docs/reference/tpc.md section 7.1.

_FIELD_BITS = 3
"""Width of one dimension number in the pattern of PRMT_INDX."""

_Value = Callable[["Move", OperandValues, State], Effects]


@dataclass(frozen=True, slots=True)
class Move(Unit):
    """A prepared MOV, or operation on index registers."""

    run: _Value

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the moved value."""
        return self.run(self, operands, state)


def masked_dimensions(instruction: TpcInstruction, operands: OperandValues, target: VliwTarget) -> tuple[bool, ...]:
    """Return a mask of the dimensions that an instruction's mask admits, dimension 0 first.

    Raises:
        IllegalError: a mask register has bits beyond the dimensions.
    """
    mask = instruction.operand("mask")
    bits = mask.bits if isinstance(mask, DimensionMask) else scalar(operands.sources["mask"])
    count = target.registers.index_dimensions
    if bits >> count:
        message = f"dimension mask {bits:#x} has bits beyond the {count} dimensions"
        raise IllegalError(message, span=instruction.span, legal=(f"0 to {(1 << count) - 1:#x}",))
    return tuple(bool(bits >> dimension & 1) for dimension in range(count))


def written_dimensions(new: Value, dimensions: tuple[bool, ...], operands: OperandValues) -> Value:
    """Return an index register with the admitted dimensions replaced."""
    parts = zip(dimensions, coordinates_of(new), coordinates_of(operands.income), strict=True)
    return merged(tuple(coordinate if admitted else old for admitted, coordinate, old in parts), operands)


def coordinates_of(value: Value | None) -> Coordinates:
    """Return an index register's value as coordinates."""
    assert isinstance(value, tuple)
    return tuple(coordinate for coordinate in value if isinstance(coordinate, int))


def _set_index(move: Move, operands: OperandValues, state: State) -> Effects:
    """A scalar, or coordinates, to the masked dimensions."""
    value = move.value(operands, "src_a")
    dimensions = masked_dimensions(move.instruction, operands, move.target)
    if isinstance(value, int):
        value = (signed_scalar(value),) * len(dimensions)
    return Effects(written_dimensions(value, dimensions, operands))


def _permute_index(move: Move, operands: OperandValues, state: State) -> Effects:
    """Set dimension k to the dimension that the k-th field of a scalar names."""
    source = coordinates_of(move.value(operands, "src_a"))
    pattern = scalar(move.value(operands, "src_b"))
    fields = [pattern >> _FIELD_BITS * k & (1 << _FIELD_BITS) - 1 for k in range(len(source))]
    wrong = [field for field in fields if field >= len(source)]
    if wrong:
        message = f"prmt_indx: pattern {pattern:#x} names dimension {wrong[0]}"
        raise IllegalError(message, span=move.instruction.span, legal=(f"0 to {len(source) - 1}",))
    return Effects(merged(tuple(source[field] for field in fields), operands))


def _move_dimension(move: Move, operands: OperandValues, state: State) -> Effects:
    """One coordinate to a scalar, as 32 bits."""
    dimension = move.instruction.operand("dimension")
    assert isinstance(dimension, Immediate)
    coordinates = coordinates_of(move.value(operands, "src_a"))
    return Effects(merged(coordinates[dimension.value] & WORD_MASK, operands))


# MOV in all its forms (docs/reference/tpc.md section 7.1, table of moves).

_MASK_BITS = 4
"""Bits of a VP per 32-bit lane in moves between VP and V."""

_LANE_NUMBERS = {"V_LANE_ID_32": "u32", "V_LANE_ID_16": "u16", "V_LANE_ID_8": "u8"}
"""Registers that hold the number of every lane, and its type."""

_VECTOR_RANDOM = {"LFSR": True, "LFSR_NO_CHANGE": False}
_SCALAR_RANDOM = {"S_LFSR": True, "S_LFSR_NO_CHANGE": False}
"""Names of the random generators, and whether reading advances them."""


def prepare_move(instruction: TpcInstruction, target: VliwTarget) -> Move:
    """Return the MOV variant by the classes of its operands, or by the mnemonic for index registers.

    Raises:
        IllegalError: the generation lacks an element type.
    """
    if instruction.mnemonic in _ON_INDICES:
        return Move(instruction, target, _ON_INDICES[instruction.mnemonic])
    dest, source = (_class_of(instruction, role) for role in ("dest", "src_a"))
    if instruction.type is not None and dest in (File.V, File.S):
        legal = tuple(name for name in target.elements.formats if FORMATS[name].bits <= WORD_BITS)
        check_element(instruction, target, instruction.type, legal)
    run = _BY_CLASS.get((dest, source)) or _BY_CLASS.get((dest, "")) or _copy
    return Move(instruction, target, run)


def _class_of(instruction: TpcInstruction, role: str) -> str:
    operand = instruction.operand(role)
    if isinstance(operand, Register):
        return operand.file
    return operand.name if isinstance(operand, Special) else "imm"


# ------------------------------------------------------------------------------------------------------- to vectors


def _copy(move: Move, operands: OperandValues, state: State) -> Effects:
    return Effects(merged(move.value(operands, "src_a"), operands))


def _broadcast(move: Move, operands: OperandValues, state: State) -> Effects:
    fmt = FORMATS[str(move.instruction.type)]
    codes = broadcast(move.value(operands, "src_a"), fmt, move.lanes(fmt))
    return Effects(merged(vector_of(codes, fmt), operands))


def _lane_numbers(move: Move, operands: OperandValues, state: State) -> Effects:
    fmt = FORMATS[_LANE_NUMBERS[_class_of(move.instruction, "src_a")]]
    return Effects(merged(vector_of(np.arange(move.lanes(fmt)), fmt), operands))


def _bytes_of(words: Words) -> Vector:
    return words.astype("<u4").view(np.uint8)


def _read_random(move: Move, operands: OperandValues, state: State) -> Effects:
    after = None
    if _VECTOR_RANDOM[_class_of(move.instruction, "src_a")]:
        after = stepped(state.vector_lfsr, "vector_lfsr_polynomial", move.target, state)
    return Effects(merged(_bytes_of(state.vector_lfsr), operands), vector_lfsr=after)


def _reseed(move: Move, operands: OperandValues, state: State) -> Effects:
    seed = vectors(move.value(operands, "src_a"))[0]
    if isinstance(operands.predicate, np.ndarray):
        seed = np.where(operands.predicate, seed, _bytes_of(state.vector_lfsr))
    return Effects(None, vector_lfsr=seed.view("<u4").astype(np.uint32))


def _bits_to_lanes(move: Move, operands: OperandValues, state: State) -> Effects:
    mask = vectors(move.value(operands, "src_a"))[0].reshape(-1, _MASK_BITS)
    lanes: Words = (mask.astype("<u4") << np.arange(_MASK_BITS, dtype="<u4")).sum(axis=1, dtype="<u4")
    return Effects(merged(lanes.view(np.uint8), operands))


# ---------------------------------------------------------------------------------------------------- to predicates


def _lanes_to_bits(move: Move, operands: OperandValues, state: State) -> Effects:
    lanes = vectors(move.value(operands, "src_a"))[0].view("<u4")
    mask: Mask = (lanes[:, None] >> np.arange(_MASK_BITS, dtype="<u4") & 1 != 0).reshape(-1)
    return Effects(merged(mask, operands))


def _word_to_mask(move: Move, operands: OperandValues, state: State) -> Effects:
    """Write the 32 bits to every section of the VP, or to one."""
    bits: Mask = (scalar(move.value(operands, "src_a")) >> np.arange(WORD_BITS, dtype=np.int64) & 1) != 0
    section = move.instruction.operand("section")
    mask = np.tile(bits, move.vector_bytes // WORD_BITS)
    if isinstance(section, Immediate):
        assert operands.income is not None
        kept = np.arange(mask.size) // WORD_BITS != section.value
        mask = np.where(kept, vectors(operands.income)[0] != 0, mask)
    return Effects(merged(mask, operands))


def _truth_to_mask(move: Move, operands: OperandValues, state: State) -> Effects:
    mask: Mask = np.full(move.vector_bytes, bool(move.value(operands, "src_a")))
    return Effects(merged(mask, operands))


def _word_to_truth(move: Move, operands: OperandValues, state: State) -> Effects:
    return Effects(merged(bool(scalar(move.value(operands, "src_a")) & 1), operands))


# ------------------------------------------------------------------------------------------------------- to scalars


def _to_scalar(move: Move, operands: OperandValues, state: State) -> Effects:
    """Return the low bits of a narrow immediate, or all bits of a register."""
    value = scalar(move.value(operands, "src_a"))
    if isinstance(move.instruction.operand("src_a"), Immediate):
        fmt = FORMATS[str(move.instruction.type)]
        value = narrow_result(value & (1 << fmt.bits) - 1, fmt, operands, move.target)
    return Effects(merged(value, operands))


def _read_scalar_random(move: Move, operands: OperandValues, state: State) -> Effects:
    after = None
    if _SCALAR_RANDOM[_class_of(move.instruction, "src_a")]:
        word = np.array([state.scalar_lfsr], np.uint32)
        after = int(stepped(word, "scalar_lfsr_polynomial", move.target, state)[0])
    return Effects(merged(state.scalar_lfsr, operands), scalar_lfsr=after)


def _reseed_scalar(move: Move, operands: OperandValues, state: State) -> Effects:
    return Effects(None, scalar_lfsr=scalar(move.value(operands, "src_a")))


_BY_CLASS: dict[tuple[str, str], _Value] = {
    (File.V, File.S): _broadcast,
    (File.V, "imm"): _broadcast,
    (File.V, File.VP): _bits_to_lanes,
    **{(File.V, name): _lane_numbers for name in _LANE_NUMBERS},
    **{(File.V, name): _read_random for name in _VECTOR_RANDOM},
    ("LFSR", File.V): _reseed,
    (File.VP, File.V): _lanes_to_bits,
    (File.VP, File.S): _word_to_mask,
    (File.VP, "imm"): _word_to_mask,
    (File.VP, File.SP): _truth_to_mask,
    (File.SP, File.S): _word_to_truth,
    (File.SP, "imm"): _word_to_truth,
    (File.S, File.S): _to_scalar,
    (File.S, "imm"): _to_scalar,
    **{(File.S, name): _read_scalar_random for name in _SCALAR_RANDOM},
    ("S_LFSR", File.S): _reseed_scalar,
    (File.I, ""): _set_index,
}
"""The effects of moves between different classes; all others copy."""

_ON_INDICES: dict[str, _Value] = {
    "set_indx": _set_index,
    "prmt_indx": _permute_index,
    "mov_irf_dim": _move_dimension,
}
INDEX_MOVES = tuple(_ON_INDICES)
"""The mnemonics for index registers only."""


# PACK, UNPACK, MOV_DG and MOV_G: bytes of a vector in other places (docs/reference/tpc.md section 2.5).
#
# A vector is four dual groups, a dual group two groups. Every instruction is a map of bytes: for each byte of the
# destination the byte of the source that goes there, or none; so it is computed once per instruction.

NOTHING = -1
"""The byte map entry for bytes that the destination keeps."""

ByteMap = NDArray[np.intp]

UNPACKED_ORDER = "mov_dg.unpack: the source element of each lane is not documented"
"""Error about, or remark on, a move whose values are a guess."""

PACKED_ORDER = "mov_dg.pack: the parts taken are those that PACK fills, which is inferred"
"""Remark on a move of which only the position of the result is documented."""

_UNPACKED_BYTES = 2
"""MOV_DG unpack serves one cast, from 16 to 32 bits: width of its elements (option unpacked_lane_order)."""


@dataclass(frozen=True, slots=True)
class Rearrange(Unit):
    """A prepared map of bytes."""

    source_of: ByteMap
    remarks: tuple[str, ...] = ()

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the destination with the bytes moved."""
        source = vectors(self.value(operands, "src_a"))[0]
        assert operands.income is not None
        income = vectors(operands.income)[0]
        moved = np.where(self.source_of == NOTHING, income, source[self.source_of])
        return Effects(merged(moved, operands), remarks=self.remarks)


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
    """Prepare a byte map.

    Raises:
        IllegalError: an element type or lane does not exist, or the values of a move are not documented.
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
    byte_map = _empty(sizes)
    for dual in sizes.duals:
        for period in range(0, sizes.dual, 2 * kept.size):
            start = dual * sizes.dual + period + group * kept.size
            byte_map[start : start + kept.size] = dual * sizes.dual + kept
    return byte_map


def _unpack(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """Consecutive elements of a group, to every s-th place of their dual group."""
    group, stride = _number(instruction, "source_group"), _number(instruction, "element_stride")
    half, lane = _number(instruction, "group_half"), _number(instruction, "unpack_lane")
    if lane >= stride:
        message = f"unpack with element_stride={stride} has no unpack_lane={lane}"
        raise IllegalError(
            message, span=instruction.span, legal=[f"unpack_lane={legal_lane}" for legal_lane in range(stride)]
        )
    size = FORMATS[str(instruction.type)].bits // 8
    length = sizes.dual // stride
    # With a stride of two the elements fill the whole group, and there are no halves to choose from.
    first = group * sizes.group + half * (sizes.group - length)
    taken = (np.arange(length) + first).reshape(-1, size)
    byte_map = _empty(sizes).reshape(-1, sizes.dual // size, size)
    for dual in sizes.duals:
        byte_map[dual, lane::stride] = dual * sizes.dual + taken
    return byte_map.reshape(-1)


def _byte_mask(instruction: TpcInstruction, sizes: _Geometry) -> NDArray[np.bool_]:
    """The immediate, a bit per byte of a group."""
    operand = instruction.operand("byte_mask")
    assert isinstance(operand, Immediate)
    bits: NDArray[np.bool_] = (operand.value >> np.arange(sizes.group, dtype=np.int64) & 1) != 0
    return bits


def _move_groups(
    byte_map: ByteMap, sizes: _Geometry, dual: int, source: ByteMap, enabled: int, mask: NDArray[np.bool_]
) -> None:
    """Map a dual group to source bytes: bit 0 of `enabled` admits the lower group, bit 1 the upper."""
    for group in (0, 1):
        if enabled >> group & 1:
            part = slice(group * sizes.group, (group + 1) * sizes.group)
            destination = byte_map[dual * sizes.dual : (dual + 1) * sizes.dual][part]
            destination[mask] = source[part][mask]


def _mov_dg(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """One dual group to another."""
    byte_map = _empty(sizes)
    source = np.arange(sizes.dual) + _number(instruction, "src") * sizes.dual
    enabled = _number(instruction, "wr_lg") | _number(instruction, "wr_ug") << 1
    _move_groups(byte_map, sizes, _number(instruction, "dst"), source, enabled, _byte_mask(instruction, sizes))
    return byte_map


def _mov_dg_all(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """Move a dual group of the source to every dual group."""
    byte_map = _empty(sizes)
    for dual in sizes.duals:
        source = np.arange(sizes.dual) + _number(instruction, f"sdg{dual}") * sizes.dual
        enabled = _number(instruction, f"weg{dual}")
        _move_groups(byte_map, sizes, dual, source, enabled, _byte_mask(instruction, sizes))
    return byte_map


def _mov_dg_pack(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """The leading half or quarter of every dual group, side by side in the lowest ones."""
    part = sizes.dual // (4 if _number(instruction, "pack_type") else 2)
    byte_map = _empty(sizes)
    for dual in sizes.duals:
        byte_map[dual * part : (dual + 1) * part] = np.arange(part) + dual * sizes.dual
    return byte_map


def _mov_dg_unpack(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """Return the map of every second element of a dual group to the lower half of a slot of twice its width."""
    byte_map = _empty(sizes)
    mask = _byte_mask(instruction, sizes)
    for dual in sizes.duals:
        pairs = np.arange(sizes.dual).reshape(-1, 2, _UNPACKED_BYTES) + _number(instruction, f"sdg{dual}") * sizes.dual
        source = np.full((pairs.shape[0], 2, _UNPACKED_BYTES), NOTHING)
        source[:, 0] = pairs[:, _number(instruction, "unpack_type")]
        enabled = _number(instruction, f"weg{dual}")
        _move_groups(byte_map, sizes, dual, source.reshape(-1), enabled, mask)
    return byte_map


def _mov_g(instruction: TpcInstruction, sizes: _Geometry) -> ByteMap:
    """Move to each enabled group the other group of its dual group."""
    byte_map = _empty(sizes)
    mask = _byte_mask(instruction, sizes)
    for dual in sizes.duals:
        if _number(instruction, "dg_en") >> dual & 1:
            swapped = np.roll(np.arange(sizes.dual) + dual * sizes.dual, sizes.group)
            _move_groups(byte_map, sizes, dual, swapped, _number(instruction, "g_en"), mask)
    return byte_map


_MAPS = {
    "pack": _pack,
    "unpack": _unpack,
    "mov_dg": _mov_dg,
    "mov_dg.all": _mov_dg_all,
    "mov_dg.pack": _mov_dg_pack,
    "mov_dg.unpack": _mov_dg_unpack,
    "mov_g": _mov_g,
}
REARRANGEMENTS = tuple(_MAPS)
"""The mnemonics of rearrangements."""


# SHUFFLE: elements inside each dual group, by a register of directions (docs/reference/tpc.md section 5.4).

_ELEMENT, _GROUP, _ENABLE = 0x1F, 0x20, 0x80
"""Bits of a direction: the source element, its group, and whether the byte is written."""


@dataclass(frozen=True, slots=True)
class Shuffle(Unit):
    """A prepared shuffle of elements, whose width is in bytes."""

    width: int

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the destination with the enabled bytes replaced."""
        assert operands.income is not None
        value, directions, income = (
            vectors(operand)[0]
            for operand in (
                self.value(operands, "src_a"),
                self.value(operands, "src_b"),
                operands.income,
            )
        )
        moved = np.where((directions & _ENABLE) != 0, value[self._sources(directions)], income)
        return Effects(merged(moved, operands))

    def _sources(self, directions: Vector) -> NDArray[np.intp]:
        """Return the source of every byte; the lowest direction of a lane selects its element."""
        registers = self.target.registers
        whole, group = registers.dual_group_bytes, registers.dual_group_bytes // 2
        places = np.arange(registers.vector_bytes)
        chosen = directions[places - places % self.width].astype(np.intp)
        element = (chosen & _ELEMENT) % (group // self.width)
        inside = element * self.width + np.where(chosen & _GROUP, group, 0) + places % self.width
        byte_map: NDArray[np.intp] = places - places % whole + inside
        return byte_map


def prepare_shuffle(instruction: TpcInstruction, target: VliwTarget) -> Shuffle:
    """Check a SHUFFLE.

    Raises:
        IllegalError: the generation lacks the element type.
    """
    name = check_element(instruction, target, instruction.type, whole_bytes(target))
    return Shuffle(instruction, target, FORMATS[name].bits // 8)
