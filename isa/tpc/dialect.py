"""The differences between the instruction set generations that show in the text of a program.

A dialect is made from a target description (`castsim.targets.vliw.VliwTarget.dialect`); nothing here knows which
generation has what. Sources of the distinctions: docs/reference/tpc.md sections 1 and 7.1 (processor definitions of
HabanaAI/tpc_llvm).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Feature(StrEnum):
    """An ability that some generations have and others lack."""

    TWO_PART_ADDRESS = "two_part_address"
    """Vector accesses of local memory name two address parts instead of one address."""
    VECTOR_PREDICATED_LOAD = "vector_predicated_load"
    """LD_TNSR under a VP predicate."""
    MASKED_STORE = "masked_store"
    """Vector stores under a VP predicate."""
    PACKED_STORE = "packed_store"
    """ST_TNSR with `pack`."""
    TYPED_PACK = "typed_pack"
    """ST_TNSR says by a word from which width to which it packs; without the ability it is 32 to 16 bits."""
    UNPACKED_LOAD = "unpacked_load"
    """LD_TNSR with `unpack` and `l0cs`."""
    PARTIAL_HALF_ACCESS = "partial_half_access"
    """LD_TNSR_LOW and LD_TNSR_HIGH of a range of lanes."""
    DIRECT_ACCESS = "direct_access"
    """LD_TNSR and ST_TNSR at a plain 64-bit address."""
    LOAD_IN_STORE_SLOT = "load_in_store_slot"
    """LD_TNSR in the STORE slot."""
    INDEXED_GLOBAL_LOAD = "indexed_global_load"
    """LD_G into an index register."""
    ADDRESS_ELEMENT_TYPE = "address_element_type"
    """GEN_ADDR with an element type of its own."""
    HARDWARE_REGISTERS = "hardware_registers"
    """Registers for tensor number, lane range, carry, zero point and dimension mask, and moves to and from them."""
    MASK_MOVES = "mask_moves"
    """MOV between V and VP."""
    ADDRESS_MOVES = "address_moves"
    """MOV between AD registers and pairs of S."""
    PAIR_MOVES = "pair_moves"
    """MOV of a register pair."""
    PROGRAM_COUNTER_MOVE = "program_counter_move"
    """MOV from PC."""
    SCALAR_RESEED = "scalar_reseed"
    """MOV to S_LFSR."""
    INDEX_SHIFT_IMMEDIATE = "index_shift_immediate"
    """Shifts of index registers by an immediate."""
    INDEX_COMPARE = "index_compare"
    """Compares of index registers."""
    MASKED_COMPARE = "masked_compare"
    """`mask_eq_zero` on CMP_EQ and SEL_EQ."""
    INVERTED_AND = "inverted_and"
    """`andn` on AND."""
    PRODUCT_ROUNDING = "product_rounding"
    """`keep_rs` on MUL and `rhaz_rs` on ASH."""
    BYTE_PRODUCT = "byte_product"
    """Signed 8-bit MUL in the vector unit."""
    FLUSH_SWITCH = "flush_switch"
    """`fp16_ftz_in` on MUL, ADD and SUB."""
    LANE_CHOICE = "lane_choice"
    """`single_lane` and `all_lanes` on CONVERT_INT*."""
    NIBBLE_CONVERT = "nibble_convert"
    """CONVERT_INT8 and CONVERT_UINT8."""
    MULTI_REGISTER_CONVERT = "multi_register_convert"
    """`x2` and `x4` on CONVERT."""
    CLIP_FLOAT = "clip_float"
    """`clip_fp` on CONVERT."""
    CONVERTING_NEARBYINT = "converting_nearbyint"
    """`cnvrt` on NEARBYINT."""
    UNPACK_LANE = "unpack_lane"
    """`unpack_lane` on UNPACK."""
    MOV_DG_ALL = "mov_dg_all"
    """MOV_DG of all dual groups."""
    MOV_DG_PACK = "mov_dg_pack"
    """MOV_DG that packs."""
    MOV_DG_UNPACK = "mov_dg_unpack"
    """MOV_DG that unpacks."""
    WIDE_ACCUMULATOR = "wide_accumulator"
    """`acc_fp32` on MAC."""
    MULTIPLY_ADD = "multiply_add"
    """MADD, and on integer products `x2`, `zp` and accumulators other than the plain one."""
    PAIR_ARITHMETIC = "pair_arithmetic"
    """`x2` on f32 MAC, MADD, MUL, ADD and SUB."""
    SHIFTED_PRODUCT = "shifted_product"
    """MSAC."""
    TYPED_LOOKUP = "typed_lookup"
    """Look-ups named 1C and 2C with types by width; without the ability C0 and C1C2, with types by part."""
    LOOKUP_POINTER = "lookup_pointer"
    """`lut_ptr` on look-ups, and tables of bytes."""
    LOOKUP_PAIRS = "lookup_pairs"
    """`x2` and `sbcd` on look-ups."""
    ENTRY_OPTIONS = "entry_options"
    """`opt` and `exp0` on GET_LUT_ENTRY_AND_INTERVAL_START."""
    CLASSES = "classes"
    """FCLASS and CALC_FP_SPECIAL."""
    CLASS_LIMIT = "class_limit"
    """`limit` on FCLASS."""
    BIASED_EXPONENT = "biased_exponent"
    """EXTRACT_EXP says `biased`; without the ability `subtract_bias`."""
    SPECIAL_EXPONENT = "special_exponent"
    """`special_func` on FORM_FP_NUM."""
    TRACE_EVENTS = "trace_events"
    """EVENT."""
    PREFETCH = "prefetch"
    """PREFETCH, and `dec` on ASO."""
    SQUEEZED_STORE = "squeezed_store"
    """ST_TNSR_SQZ, ST_TNSR_S and the counters of lanes, `high` on SET_INDX, words of CACHE_INVALIDATE."""
    DIVISION_STEP = "division_step"
    """UDIV_STEP."""
    FOUR_DIVISION_STEPS = "four_division_steps"
    """UDIV_4STEP."""
    WHOLE_DIVISION = "whole_division"
    """UDIV."""
    COMPRESSED_BUNDLES = "compressed_bundles"
    """Encoding: 128-bit bundles."""
    SHORT_IMMEDIATES = "short_immediates"
    """Encoding: small immediates inside an operand field, besides the one of 32 bits."""


_SIGNED = ("i64", "i32", "i16", "i8", "i4")


@dataclass(frozen=True, slots=True)
class ShortImmediates:
    """Operand codes that stand for the immediates 0, 1, ..; under a signed type only the first `signed` of them do."""

    codes: tuple[int, ...] = ()
    signed: int = 0

    def count(self, kind: str | None) -> int:
        """Return how many there are in an instruction of a type."""
        return self.signed if kind in _SIGNED else len(self.codes)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One generation's text.

    `registers` maps a register file (V, S, I, AD, SP, VP) to its number of registers; `roundings` maps `convert` and
    `convert_int` to the rounding words each accepts; `tensor_registers` maps the roles `load_number`, `store_number`,
    `load_range`, `store_range` and `store_merge` to the register that the generation provides for it, if it does.
    """

    name: str
    features: frozenset[Feature]
    registers: Mapping[str, int]
    roundings: Mapping[str, tuple[str, ...]]
    tensor_registers: Mapping[str, str]
