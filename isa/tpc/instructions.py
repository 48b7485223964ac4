"""The instruction table: opcodes, every way to write every instruction as a row, and the look-up by mnemonic.

A row is a line of words (the notation: `castsim.isa.tpc.forms.form_of`), under its mnemonic and opcode: `add=2` in
every slot of its rows, `mov=8,LOAD:5` another one in the LOAD slot. Opcodes are documented: the vendor's instruction
database (LL); no generation changes one (docs/reference/tpc.md section 8). Source of the rows: docs/reference/tpc.md
section 1 (generations), 2 (CONVERT family, lanes, PACK to MOV_G), 5 (meaning, switches) and 7.1 (operands). The order
of switches is that of their bits in the vendor's instruction database; for those that never occur together in the
vendor's tests it follows their bit numbers where stated (`st` 0, `rhu` 1) and is assumed otherwise. In the STORE slot
the destination of a load or an address still has the role `dest`; the encoding puts it into another field there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product

from castsim.isa.dataclass import replace
from castsim.isa.tpc.forms import (
    ROUNDING,
    TARGET_SPELLINGS,
    Dialect,
    Feature,
    Form,
    Show,
    Style,
    Switch,
    Value,
    always,
    flag,
    form_of,
)
from castsim.isa.tpc.program import Slot, TpcInstruction

# ---------------------------------------------------------------------------------------------------------- switches

RANDOM_ROUNDINGS = ("sr", "sr_rne")
"""The stochastic modes."""
NARROWED_BITS = {"to_8": 8, "to_16": 16}
"""Result widths of integer conversions with several widths, by the words of the switch."""
_TO_3 = (0, 1, 2, 3)


def _words(name: str, words: Iterable[str], default: str | None = None, show: Show = Show.ALWAYS) -> Switch:
    """Return a switch whose values are words."""
    return Switch(name, Style.WORD, default, show, words=tuple((word, word) for word in words))


def _rounding(which: str, default: str, show: Show) -> Switch:
    modes = _words(ROUNDING, ("rhne", "rz", "ru", "rd", "sr", "csr", "rhaz", "sr_rne"), default, show)
    aliases: tuple[tuple[str, Value], ...] = (("rne", "rhne"), ("sr_rhne", "sr_rne"), ("default", "csr"))
    return replace(modes, aliases=aliases, rounding=which, random=RANDOM_ROUNDINGS)


def _entries(*words: str, aliases: tuple[tuple[str, Value], ...] = ()) -> Switch:
    """Return the leading word of look-ups: the table's entries, and the requested part of them."""
    spelled = tuple((word.lower(), word) for word in words)
    return Switch("entries", Style.WORD, None, Show.ALWAYS, words=spelled, aliases=aliases)


def _widths(name: str, prefix: str, pairs: tuple[str, ...], needs: Feature) -> Switch:
    """Return the switch with both widths; it is written before `pack` or `unpack`."""
    words = tuple((f"{prefix}_{pair}", f"{prefix}_{pair}".upper()) for pair in pairs)
    return Switch(name, Style.WORD, words[0][0], words=words, needs=needs)


def _number(name: str, *keys: str, style: Style = Style.DECIMAL, numbers: tuple[int, ...] = _TO_3) -> Switch:
    return Switch(name, style, 0, Show.ALWAYS, numbers=numbers, keys=keys)


_PACK_WIDTHS, _UNPACK_WIDTHS = "pack_dt", "unpack_dt"
_LANE_SEL = Switch("lane_sel", Style.DECIMAL, 0, numbers=_TO_3)
_NUM_LANES = _words("num_lanes", ("single_lane", "all_lanes"), "single_lane", Show.CHANGED)
_TARGET_TYPE = Switch("target_type", Style.NAMED, None, Show.ALWAYS, words=tuple(TARGET_SPELLINGS.items()))
_ROUNDED = "acos asin asinh cos div exp pow pow2 reciprocal rsqrt sin sqrt tan tanh"
_FUNCTIONS = ("recip", "rsqrt", "sqrt", "log", "exp", "tanh", "div", "pow")
_GOYA_PARTS = ("BV32", "BV16_LOW", "BV16_HIGH", *(f"BV8_{part}" for part in range(4)))
_GOYA_ALIASES: tuple[tuple[str, Value], ...] = (
    *(("f32", "bv32"), ("i32", "bv32"), ("f16_low", "bv16_low"), ("f16_high", "bv16_high")),
    *(("i16_low", "bv16_low"), ("i16_high", "bv16_high")),
    *((f"bv8_element_{part}", f"bv8_{part}") for part in range(4)),
)

_SWITCHES: Mapping[str, Switch] = {
    "st": flag("st", aliases=("sat",)),
    "st_left": flag("st", aliases=("sat",), default=1),  # ASH saturates to the left by default
    # The vendor's disassembler leaves the word away on loads whose range is a scalar register.
    "partial_hidden": Switch("partial", Style.FLAG, 0, Show.NEVER),
    # The register operands of these moves say that they are pairs; the switch may be left away and is printed.
    "x2_pair": Switch("x2", Style.FLAG, 1, Show.ALWAYS, numbers=(1,)),
    "neg_zp": replace(flag("neg_zp", Feature.MULTIPLY_ADD), only_if=("zp", 1)),
    # Address register moved on by so many bytes. Source: the vendor's tests.
    "inc": replace(
        _words("inc", (f"inc_{1 << power}" for power in range(9)), "none", Show.CHANGED),
        needs=Feature.HARDWARE_REGISTERS,
    ),
    "dt": replace(_TARGET_TYPE, name="dt", default="i8", needs=Feature.ADDRESS_ELEMENT_TYPE),
    _UNPACK_WIDTHS: _widths(
        _UNPACK_WIDTHS, "unpck", ("16_to_32", "8_to_16", "8_to_32", "4_to_8"), Feature.UNPACKED_LOAD
    ),
    _PACK_WIDTHS: _widths(_PACK_WIDTHS, "pck", ("32_to_16", "16_to_8", "32_to_8", "8_to_4"), Feature.TYPED_PACK),
    "entries_words": _entries("BV32"),
    "entries_halves": _entries("BV32", "BV16"),
    "entries_bytes": _entries("BV32", "BV16", "BV8_0", "BV8_1"),
    "entries_goya": _entries(*_GOYA_PARTS, aliases=_GOYA_ALIASES),
    "computes": _words("computes", _ROUNDED.split()),
    "unit": _words("unit", ("spu", "vpu")),
    "set": Switch("set", Style.DECIMAL, None, Show.ALWAYS, leading=True),
    "start": _words("start", ("start_lsb", "start_msb")),
    "func": replace(_words("func", _FUNCTIONS), style=Style.NAMED),
    "special_func": Switch("special_func", Style.DECIMAL, 0, numbers=(0, 1, 2, 3, 4), needs=Feature.SPECIAL_EXPONENT),
    "entry_variant": _words("entry_variant", ("none", "tanh", "sqrt_rsqrt", "sin_cos", "log"), "none", Show.CHANGED),
    "normalize": _words("normalize", ("normalize_ab", "normalize_c"), "normalize_ab"),
    "rounding": _rounding("convert", "csr", Show.CHANGED),
    "rounding_int": _rounding("convert_int", "rhne", Show.ALWAYS),
    "target_type": _TARGET_TYPE,
    # The code of `target_type` counts only under `cnvrt`, but is printed without it too; an absent word leaves code 0,
    # that of fp32, which is printed nowhere. Source: docs/reference/tpc.md section 5.2.
    "target_type_int": Switch(
        "target_type",
        Style.NAMED,
        "f32",
        words=tuple((name, TARGET_SPELLINGS[name]) for name in ("i32", "i16", "i8")),
        needs=Feature.CONVERTING_NEARBYINT,
    ),
    "lane_sel": _LANE_SEL,
    "lane_sel_shown": always(_LANE_SEL),
    "lane_sel_single": replace(always(_LANE_SEL), only_if=("num_lanes", "single_lane")),
    "num_lanes": _NUM_LANES,
    "num_lanes_shown": always(_NUM_LANES),
    "all_lanes": _words("num_lanes", ("all_lanes",), "all_lanes", Show.NEVER),
    "width": _words("width", NARROWED_BITS, "to_8"),
    "source_group": replace(
        _number("source_group", "group_source", "group", numbers=(0, 1)), aliases=(("group_0", 0), ("group_1", 1))
    ),
    "element_stride": replace(
        _number("element_stride", "stride", numbers=(2, 4)), default=2, aliases=(("stride_2", 2), ("stride_4", 4))
    ),
    "group_half": replace(_number("group_half", numbers=(0, 1)), aliases=(("group_half_0", 0), ("group_half_1", 1))),
    "unpack_lane": Switch(
        "unpack_lane",
        Style.DECIMAL,
        0,
        numbers=_TO_3,
        aliases=tuple((f"{name}_{lane}", lane) for name in ("unpack_lane", "lane") for lane in range(4)),
        keys=("lane",),
        needs=Feature.UNPACK_LANE,
    ),
    "src": _number("src", "src_dual_group", "src_dg"),
    "dst": _number("dst", "dst_dual_group", "dst_dg"),
    "wr_lg": _number("wr_lg", "wr_lower_group", style=Style.HEX, numbers=(0, 1)),
    "wr_ug": _number("wr_ug", "wr_upper_group", style=Style.HEX, numbers=(0, 1)),
    **{name: _number(name) for name in (f"{kind}{group}" for kind in ("sdg", "weg") for group in range(4))},
    "pack_type": _number("pack_type", numbers=(0, 1)),
    "unpack_type": _number("unpack_type", numbers=(0, 1)),
    "g_en": _number("g_en", "group_en", style=Style.BINARY),
    "dg_en": _number("dg_en", "dual_group_en", style=Style.BINARY, numbers=tuple(range(16))),
}
"""Every switch that is more than a flag, by the word that rows have for it."""

# ------------------------------------------------------------------------------- loads, stores and moves of all kinds

_ELEMENT = "inc bv64?hardware_registers ev_hint?hardware_registers"
_LOCAL = ("a:S|imm -two_part_address", "a:S b:S|imm +two_part_address", "a:imm b:S +two_part_address")
_PLACES = (
    ("tensor:imm<=15 a:I", "direct=0"),  # the field holds five bits; no generation has more than 16 tensors
    ("tensor:@{}_number a:I", "direct=0"),
    ("a:S b:S", "direct=1 +direct_access"),
)
"""The ways to name a target of access: a tensor by number or register, or an address in two scalars."""


def _tensor_loads(half: str) -> Iterator[str]:
    """Whole or partial loads; the word `partial` is written only where the range is a hardware register."""
    ranges = (
        "partial partial=0",
        f"range:@load_range partial partial=1 {half} +hardware_registers",
        f"range:@load_range partial_hidden partial=1 {half} -hardware_registers",
    )
    switches = "unpack_dt unpack?unpacked_load l0cs?unpacked_load direct?direct_access vp?vector_predicated_load"
    for slot, (address, direct), part in product(("LOAD", "STORE +load_in_store_slot"), _PLACES, ranges):
        yield f"{slot} dest:V|VP {address.format('load')} {part} {switches} {direct}"


def _tensor_stores(*ranges: str) -> Iterator[str]:
    """Whole, partial and read-modify-write stores."""
    for (address, direct), part in product(_PLACES, ranges):
        switches = "partial rmw_sel pack_dt pack?packed_store direct?direct_access vp?masked_store"
        yield f"STORE {address.format('store')} c:V|VP {part} {switches} {direct}"


def _merging(row: str) -> Iterator[str]:
    """Return the rows of stores that may merge with memory, to a tensor by number or register."""
    for tensor, merges in product(("tensor:imm<=15", "tensor:@store_number"), (0, 1)):
        last = "rmw:@store_merge" * merges
        yield f"STORE {row.format(tensor)} {last} rmw_sel rmw_sel={merges} +squeezed_store"


_WHOLE, _MERGED = "partial=0 rmw_sel=0", "rmw:@store_merge partial=0 rmw_sel=1"
_HARDWARE = "M0|M1|M2|M3|LD_TNSR_ID_REG|ST_TNSR_ID_REG|ST_RMW_REG|LD_PARTIAL_REG|ST_PARTIAL_REG"
_COUNTERS = "|".join(f"SQZ_CNTR{number}_{half}" for number in range(8) for half in ("LO", "HI"))
_LOOP = "SPU start:S|imm# bound:S|imm# step:S|imm# compare:compare end:label|imm#"

_MEMORY: Mapping[str, Iterable[str]] = {
    "ld_l=11": ("LOAD dest:S|SP a:S|imm mmio lock",),
    "st_l=5": ("STORE a:S|imm c:S|SP mmio unlock",),
    # Vector local memory: one address, or two parts that are added.
    **{
        f"{access}{half}={first + place}": tuple(f"{start} {address} {value}" for address in _LOCAL)
        for place, half in enumerate(("", "_low", "_high"))
        for access, first, start, value in (
            ("ld_l_v", 14, "LOAD dest:V|VP", "vp"),
            ("st_l_v", 7, "STORE", "c:V|VP vp?masked_store"),
        )
    },
    "gen_addr=0": (
        f"{slot} dest:AD {tensor} a:I dt dt_override?address_element_type"
        for slot, register in (("LOAD", "@load_number"), ("STORE", "@store_number"))
        for tensor in ("tensor:imm<=15", f"tensor:{register}")
    ),
    "ld_g=12": (
        f"LOAD dest:S|SP|V a:AD {_ELEMENT} l0cs?unpacked_load vp",
        f"LOAD mask:mask dest:I a:AD {_ELEMENT} l0cs?unpacked_load +indexed_global_load",
    ),
    "st_g=6": (f"STORE a:AD c:S|SP {_ELEMENT}",),
    "ld_tnsr=17": _tensor_loads(""),
    "ld_tnsr_low=18 ld_tnsr_high=19": tuple(_tensor_loads("+partial_half_access")),
    "st_tnsr=11": _tensor_stores(
        _WHOLE,
        "range:@store_range partial=1 rmw_sel=0",
        _MERGED,
        "rmw:@store_merge range:@store_range partial=1 rmw_sel=1",
    ),
    "st_tnsr_low=12 st_tnsr_high=13": tuple(_tensor_stores(_WHOLE, _MERGED)),
    # The spelling of LFSR moves is this project's; the encoding is an ordinary MOV.
    "mov=8,LOAD:5": (
        "LOAD VPU dest:V a:V untyped",
        "LOAD VPU dest:V a:S|imm .data,i64",
        "VPU dest:D a:D x2_pair untyped +pair_moves",
        "LOAD VPU dest:VP a:VP|SP|S|imm untyped",
        "LOAD VPU section:imm<=7 dest:VP a:S|imm untyped",
        "LOAD VPU dest:VP a:V untyped +mask_moves",
        "LOAD VPU dest:V a:VP untyped +mask_moves",
        "LOAD VPU dest:V a:LFSR|LFSR_NO_CHANGE|V_LANE_ID_32|V_LANE_ID_16|V_LANE_ID_8 untyped",
        "LOAD VPU dest:LFSR a:V untyped",
        "LOAD VPU dest:V_CARRY a:VP untyped +hardware_registers",
        "LOAD VPU dest:VP a:V_CARRY untyped +hardware_registers",
        "LOAD VPU dest:ZP_REG a:V untyped +hardware_registers",
        "LOAD VPU dest:V a:ZP_REG untyped +hardware_registers",
        "LOAD SPU dest:S a:S|imm|S_LFSR|S_LFSR_NO_CHANGE .data,i64",
        "LOAD SPU dest:S a:PC untyped +program_counter_move",
        "LOAD SPU dest:S_LFSR a:S untyped +scalar_reseed",
        "LOAD SPU dest:SP a:S|imm untyped",
        "SPU dest:SP a:SP untyped",
        "LOAD SPU mask:mask dest:I a:I|S|imm untyped",
        "SPU mask:M0|M1|M2|M3 dest:I a:I|S|imm untyped +hardware_registers",
        "LOAD SPU dest:AD a:AD untyped +address_moves",
        "SPU dest:AD a:Z untyped +address_moves",
        "SPU dest:Z a:AD untyped +address_moves",
        f"LOAD SPU dest:{_HARDWARE} a:S untyped +hardware_registers",
        f"LOAD SPU dest:S a:{_HARDWARE} untyped +hardware_registers",
        "SPU dest:DIV_STEP a:S untyped +hardware_registers",
        "SPU dest:S a:DIV_STEP untyped +hardware_registers",
        f"LOAD SPU dest:{_COUNTERS} a:S untyped +squeezed_store",
        f"LOAD SPU dest:S a:{_COUNTERS} untyped +squeezed_store",
        "LOAD SPU dest:S_CARRY a:SP untyped +hardware_registers",
        "LOAD SPU dest:SP a:S_CARRY untyped +hardware_registers",
    ),
    "set_indx=4,SPU:39": ("LOAD SPU STORE dest:I mask:mask a:S|imm high?squeezed_store",),
    "prmt_indx=3": ("LOAD STORE dest:I a:I b:S",),
    "mov_irf_dim=38": ("SPU dimension:imm<=4 dest:S a:I",),
    "halt=32": ("SPU VPU unpredicated",),
    "loop=34": (_LOOP, f"{_LOOP} once:imm<=1#"),
    "jmpr=36 jmpa=37": ("SPU a:label|S|imm",),
    "cache_flush=20": ("STORE",),
    "cache_invalidate=21": (
        "STORE sb?hardware_registers d?squeezed_store lu?squeezed_store rst_lu?squeezed_store "
        "rst_d_pref?squeezed_store",
    ),
}

# -------------------------------------------------------------- arithmetic, logic, shifts, compares, selections

_S3, _V3 = "dest:S a:S b:S|imm", "dest:V a:V b:V|S|imm"
_PAIRED = "x2?pair_arithmetic .f32 x2=1 +pair_arithmetic"


def _plain(switches: str = "") -> Iterator[str]:
    """Rows of a two-source instruction on scalars, vectors and indices.

    Indices are under a mask in the text or, from Greco, in a mask register; the scalar may come first in arithmetic,
    second in shifts.
    """
    yield f"SPU {_S3} {switches} .data"
    yield from _INDEX
    yield f"VPU {_V3} {switches} .data"


_INDEX, _INDEX_ALONE = (
    tuple(
        f"SPU mask:{mask} dest:I {sources} .i32 {needs}"
        for mask, needs in (("mask", ""), ("M0|M1|M2|M3", "+hardware_registers"))
        for sources in ways
    )
    for ways in (("a:I|S|imm b:I", "a:I b:S|imm"), ("a:I",))
)


def _logic(switches: str = "") -> Iterator[str]:
    """Return the rows of a logic instruction, also on predicate registers under the one-bit type."""
    yield from _plain(switches)
    yield f"SPU dest:SP a:SP b:SP {switches} .b"
    yield f"VPU dest:VP a:VP b:VP {switches} .b"


def _shift(scalar: str = "", vector: str = "") -> Iterator[str]:
    """Rows of a shift: value, then amount."""
    yield f"SPU {_S3} {scalar} .data"
    yield f"SPU mask:mask dest:I a:I b:I|S {scalar} .i32"
    yield f"SPU mask:mask dest:I a:I b:imm {scalar} .i32 +index_shift_immediate"
    yield f"VPU {_V3} {vector} .data"


def _compare(switches: str = "") -> tuple[str, ...]:
    return (
        f"SPU dest:SP a:S b:S|imm {switches} .data",
        f"SPU mask:mask dest:SP a:I b:I|imm {switches} .i32 +index_compare",
        f"VPU dest:VP a:V b:V|S|imm {switches} .data",
    )


def _select(dest: str, switches: str = "") -> tuple[str, ...]:
    """Return the rows of a selection: at most one of its second and fourth sources is not a vector."""
    return (
        f"VPU dest:{dest} a:V b:V|S|imm c:V d:V {switches} .data",
        f"VPU dest:{dest} a:V b:V c:V d:S|imm {switches} .data",
    )


_FLUSH, _MASKED = "fp16_ftz_in?flush_switch", "mask_eq_zero?masked_compare"
_PAIR_SUM = f"VPU dest:D* a:D* b:V|S|imm d:V|S|imm neg {_PAIRED}"
_KEEP = "keep_rs?product_rounding"

_ARITHMETIC: Mapping[str, Iterable[str]] = {
    "add=2 sub=3": (
        *_plain(f"st neg {_FLUSH}"),
        # The vendor's compiler prints these; what lies in the four registers no source states.
        "VPU dest:A a:A b:A|S|imm neg .f8_143,f8_152",
        _PAIR_SUM,
    ),
    # The vector unit keeps the whole integer product in a pair or quad.
    "mul=1": (
        f"SPU {_S3} upper32 neg {_FLUSH} .data",
        f"SPU {_S3} neg {_FLUSH} acc_fp32! .bf16,f16,f8_143,f8_152 +wide_accumulator",
        *_INDEX,
        f"VPU {_V3} neg {_FLUSH} .floats",
        f"VPU {_V3} double_and_round32! {_KEEP} .i32,u32",
        f"VPU dest:D* a:V b:V|S|imm neg {_KEEP} keep_rs_for_add?product_rounding .i32,u32,i16,u16",
        f"VPU dest:D* a:V b:V|S|imm neg {_FLUSH} acc_fp32! .bf16,f16 +wide_accumulator",
        f"VPU dest:A* a:V b:V|S|imm neg {_FLUSH} acc_fp32! .f8_143,f8_152 +wide_accumulator",
        f"VPU dest:A* a:V b:V|S|imm neg {_KEEP} .u8",
        f"VPU dest:A* a:V b:V|S|imm neg {_KEEP} .i8 +byte_product",
        _PAIR_SUM,
    ),
    "max=5 min=6": tuple(_plain()),
    "and=16": _logic("andn?inverted_and"),
    "or=15 xor=17": tuple(_logic()),
    "shl=20 shr=19": tuple(_shift()),
    "ash=21": (
        *_shift("st_left rhu", "st_left rhu"),
        # The product that MUL leaves is a pair; that the bits tell a pair from a register no source says.
        "VPU dest:V|D a:V|D b:V|S|imm st_left rhu rhaz_rs! .data +product_rounding",
    ),
    "abs=7": ("SPU dest:S a:S .data", *_INDEX_ALONE, "VPU dest:V a:V .data"),
    "not=18": (
        "SPU dest:S a:S .integers,floats",
        *_INDEX_ALONE,
        "VPU dest:V a:V .integers,floats",
        "SPU dest:SP a:SP .b",
        "VPU dest:VP a:VP .b",
    ),
    "cmp_eq=9": _compare(_MASKED),
    "cmp_neq=10 cmp_less=11 cmp_leq=12 cmp_grt=13 cmp_geq=14": _compare(),
    "sel_eq=34": _select("V", _MASKED),
    "sel_neq=35 sel_less=36 sel_leq=37 sel_grt=38 sel_geq=39": _select("V"),
    "sel2_less=40 sel2_leq=41 sel2_grt=42 sel2_geq=43": _select("D"),
}

# ------------------------------------------------- conversions, rounding to integers, and the rearrangement of lanes

_CLIP = "clip_fp?clip_float"
_SHIFTED, _SHIFTED_LANES = "dest:S a:S b:S|imm rounding_int", "dest:V|D|A a:V|D|A b:V|D|A|S|imm"
_MASKED_MOVE = "VPU dest:V a:V byte_mask:imm"
_DUAL_GROUPS = "sdg0 sdg1 sdg2 sdg3 weg0 weg1 weg2 weg3"


def _narrowing(width: str) -> tuple[str, ...]:
    """Rows of CONVERT_INT32/UINT32 (destination of 8 or 16 bits) or CONVERT_INT16/UINT16 (half the source)."""
    return (
        f"SPU {_SHIFTED} {width}",
        f"VPU {_SHIFTED_LANES} lane_sel_shown rounding_int {width} -lane_choice",
        f"VPU {_SHIFTED_LANES} lane_sel_single num_lanes_shown rounding_int {width} +lane_choice",
    )


_CONVERSIONS: Mapping[str, Iterable[str]] = {
    "convert=22": (
        f"SPU dest:S a:S target_type rounding {_CLIP} .data,i64",
        "VPU dest:V|D|A a:V|D|A lane_sel num_lanes x2?multi_register_convert target_type rounding "
        f"x4?multi_register_convert {_CLIP} .data,i64",
    ),
    "convert_int32=23 convert_uint32=24": _narrowing("width"),
    "convert_int16=4 convert_uint16=28": _narrowing(""),
    # 8 to 4 bits, always all lanes.
    "convert_int8=53 convert_uint8=54": (
        f"SPU {_SHIFTED} +nibble_convert",
        f"VPU {_SHIFTED_LANES} all_lanes rounding_int +nibble_convert",
    ),
    "nearbyint=27": (
        "SPU dest:S a:S rounding .data,i64",
        "VPU dest:V|D a:V cnvrt?converting_nearbyint target_type_int rounding .data,i64",
    ),
    "pack=45": ("VPU dest:V a:V source_group element_stride .data",),
    "unpack=46": ("VPU dest:V a:V source_group element_stride group_half unpack_lane .data",),
    "mov_dg=49": (f"{_MASKED_MOVE} src dst wr_lg wr_ug",),
    "mov_dg.all=49": (f"{_MASKED_MOVE} {_DUAL_GROUPS} +mov_dg_all",),
    "mov_dg.pack=49": ("VPU dest:V a:V pack_type +mov_dg_pack",),
    "mov_dg.unpack=49": (f"{_MASKED_MOVE} unpack_type {_DUAL_GROUPS} +mov_dg_unpack",),
    "mov_g=50": (f"{_MASKED_MOVE} g_en dg_en",),
}

# ---------------------- products added to an accumulator, which MAC reads from its destination, MADD beside

_WIDE, _IN_F32 = "+wide_accumulator", "acc_fp32?wide_accumulator"
_TWICE = " x2?multiply_add"
_BYTES = f"acc_i16?multiply_add{_TWICE} zp?multiply_add neg_zp"
_UNSIGNED_BYTES = f"acc_i16?multiply_add acc_i32?multiply_add{_TWICE} zp?multiply_add neg_zp"

_SCALAR_PRODUCTS = (
    ".f32 neg",
    f".bf16 neg {_IN_F32} {_WIDE}",
    f".f16 {_FLUSH} neg {_IN_F32} {_WIDE}",
    f".f8_143,f8_152 neg {_IN_F32} acc_fp32=1 {_WIDE}",
    ".i16 st neg",
    ".u16 st neg acc_i32?multiply_add",
    ".i8 st neg acc_i16?multiply_add +byte_product",
    ".u8 st neg acc_i32?multiply_add +byte_product",
)
_PRODUCTS = (
    ("V", ".f32 neg x2?pair_arithmetic x2=0"),
    ("V", f".bf16 neg {_IN_F32} acc_fp32=0 {_WIDE}"),
    ("V", f".f16 {_FLUSH} neg {_IN_F32} acc_fp32=0 {_WIDE}"),
    ("D", f".bf16 neg {_IN_F32} acc_fp32=1 {_WIDE}"),
    ("D", f".f16 {_FLUSH} neg {_IN_F32} acc_fp32=1 {_WIDE}"),
    ("A", f".f8_143,f8_152 neg {_IN_F32} acc_fp32=1 {_WIDE}"),
    ("D", ".i16 st neg"),
    ("D", ".u16 st neg acc_i32?multiply_add"),
)
"""Products of vectors: class of the destination, types and switches."""
_BYTE_PRODUCTS = (
    ("A", f".i8 st neg {_BYTES} acc_i16=0 +byte_product"),
    ("A", f".u8 st neg {_UNSIGNED_BYTES} acc_i16=0 +byte_product"),
    ("D", f".i8 st neg {_BYTES} acc_i16=1 +multiply_add"),
    ("D", f".u8 st neg {_UNSIGNED_BYTES} acc_i16=1 +multiply_add"),
)
"""Products that also accept `ZP_REG`, and `x2`, which adds a product of a third and a fourth source."""


def _mac() -> Iterator[str]:
    """Rows of MAC: plain, with a zero point, with two products at once."""
    yield from (f"SPU dest:S* a:S b:S|imm {row} +=src_c" for row in _SCALAR_PRODUCTS)
    yield from (f"VPU dest:{dest}* a:V b:V|S|imm {row} +=src_c" for dest, row in _PRODUCTS)
    for dest, row in _BYTE_PRODUCTS:
        sources = f"dest:{dest}* a:V b:V|S|imm"
        yield f"VPU {sources} {row} x2=0 zp=0 +=src_c"
        yield f"VPU zp:ZP_REG {sources} {row} x2=0 zp=1 +multiply_add +=src_c"
        yield f"VPU {sources} c:V d:V {row} x2=1 zp=0 +multiply_add +=src_c"
        yield f"VPU zp:ZP_REG {sources} c:V d:V {row} x2=1 zp=1 +multiply_add +=src_c"
    yield f"VPU dest:D* a:D|S|imm* b:V|S|imm d:V|S|imm neg {_PAIRED} +=src_c"


def _madd() -> Iterator[str]:
    """Return the rows of MADD, which has no pairs of integers."""
    for dest, row in _PRODUCTS:
        yield f"VPU dest:{dest}* a:V b:V|S|imm c:{dest}* {row} +multiply_add"
    for dest, row in _BYTE_PRODUCTS:
        once = f"dest:{dest}* a:V b:V|S|imm c:{dest}* {row.replace(_TWICE, '')} +multiply_add"
        yield f"VPU {once} zp=0"
        yield f"VPU zp:ZP_REG {once} zp=1"
    yield f"VPU dest:D* a:D|S|imm* b:V|S|imm c:D|S|imm* d:V|S|imm neg {_PAIRED}"


_SHIFTED_PRODUCT = "rhu normalize .i16,u16,i8,u8 +shifted_product +=src_e"

_ACCUMULATIONS: Mapping[str, Iterable[str]] = {
    "mac=0": _mac(),
    "madd=55": _madd(),
    # Of its second and fourth source at most one is not a vector.
    "msac=51": (
        f"VPU dest:V a:V b:V|S|imm c:V d:V {_SHIFTED_PRODUCT}",
        f"VPU dest:V a:V b:V c:V d:S|imm {_SHIFTED_PRODUCT}",
    ),
}

# ---------------------------- bits, exponents and classes of elements, shuffles, tables, division, what changes nothing


def _both_units(scalar: str, vector: str, rest: str) -> tuple[str, str]:
    """Return the rows of an instruction with one source in both units; `scalar` and `vector` are its classes."""
    return f"SPU dest:S a:{scalar} {rest}", f"VPU dest:V a:{vector} {rest}"


_OPTIONS = "upper_half lut_ptr?lookup_pointer x2?lookup_pairs sbcd?lookup_pairs"
_DIVISION = "dest:S|Z a:S b:S|imm .u32,u16,u8"


def _lookups(dest: str, before: str, after: str) -> tuple[str, ...]:
    """Rows of a look-up by types of entries, those without and with tables of bytes, and by a pointer."""
    return (
        f"LOAD dest:{dest} a:V function:imm<=511 {before} {_OPTIONS} lut_ptr=0 +typed_lookup -lookup_pointer",
        f"LOAD dest:{dest} a:V function:imm<=511 {after} {_OPTIONS} lut_ptr=0 +typed_lookup +lookup_pointer",
        f"LOAD dest:{dest} a:V b:S {after} {_OPTIONS} lut_ptr=1 +typed_lookup +lookup_pointer",
    )


_OTHERS: Mapping[str, Iterable[str]] = {
    "popcnt=25": _both_units("S|imm", "V", "set .data"),
    "find_first=26": _both_units("S|imm", "V", "set start .data"),
    "extract_exp=29": (
        *_both_units("S|imm", "V|S|imm", "biased .floats +biased_exponent"),
        *_both_units("S|imm", "V|S|imm", "subtract_bias .floats -biased_exponent"),
    ),
    "fclass=30": _both_units("S|imm", "V|S|imm", "limit?class_limit .floats +classes"),
    "brev=31": _both_units("S|imm", "V|S|imm", ".data"),
    "calc_fp_special=52": (
        "SPU dest:S a:S b:S func .f32,bf16,f16 +classes",
        "VPU dest:V a:V b:V func .f32,bf16,f16 +classes",
    ),
    "form_fp_num=48": (
        "VPU dest:V a:V|S|imm b:V c:V exp_add_bias force_sign0 force_sign1 exp_is_num sign_lsb special_func .floats",
    ),
    "shuffle=44": ("VPU dest:V a:V b:V .data",),
    "get_lut_entry_and_interval_start=47": (
        "VPU dest:D* a:V shift:imm<=31 entry_variant opt?entry_options exp0?entry_options .f32,bf16,f16",
    ),
    "lookup=6": (
        "LOAD dest:V a:V function:imm<=63 entries_goya -typed_lookup",
        *_lookups("V", "entries_words", "entries_words"),
    ),
    "lookup_c0=9": ("LOAD dest:V a:V function:imm<=63 entries_goya -typed_lookup",),
    "lookup_c1c2=7": ("LOAD dest:D* a:V function:imm<=63 entries_goya -typed_lookup",),
    "lookup_1c=9": _lookups("V", "entries_halves", "entries_bytes"),
    "lookup_2c=7": _lookups("D", "entries_halves", "entries_bytes"),
    "event=24": ("LOAD STORE a:S|imm unit +trace_events",),
    "prefetch=13": ("LOAD a:AD +prefetch",),
    "aso=10": ("STORE dec?prefetch vpu",),
    # Stores of the lanes under a predicate, whose count goes to a numbered counter, and of a scalar.
    "st_tnsr_sqz=22": _merging("{} counter:imm<=7 a:I c:V vp?masked_store"),
    "st_tnsr_s=23": _merging("{} a:I c:S|imm"),
    # Of division steps the vendor's tests print number and destination; the other operands of UDIV in its forms are
    # taken from the stage tables.
    "udiv_step=40": (
        "SPU steps:imm<=31 dest:S|Z a:S|imm .u32,u16,u8 +division_step +=src_c",
        f"SPU {_DIVISION} +division_step +=src_c",
    ),
    "udiv_4step=40": (
        "SPU steps:imm<=31 dest:S|Z a:S|imm .u32,u16,u8 +four_division_steps +=src_c",
        f"SPU {_DIVISION} +four_division_steps +=src_c",
    ),
    # For debugging; executes nothing. No source gives it operands.
    "dbg=62": ("SPU VPU unpredicated",),
    # castsim's own `rounded.f32 exp V1, V2, V2, V3, 0x100`: no instruction of the chip, and without an opcode.
    "rounded": ("VPU dest:V a:V b:V c:V function:imm<=511 computes .f32",),
    "udiv=40": (f"SPU {_DIVISION} +whole_division",),
}

_INSTRUCTIONS = {**_MEMORY, **_ARITHMETIC, **_CONVERSIONS, **_ACCUMULATIONS, **_OTHERS}
_WITHOUT_ROWS = ("nop=SPU:63,VPU:63,LOAD:31,STORE:31", "ld_tnsr_cnvrt=LOAD:25,STORE:25")

FORMS: tuple[Form, ...] = tuple(
    form_of(word.partition("=")[0], row, _SWITCHES)
    for words, rows in _INSTRUCTIONS.items()
    for word, row in product(words.split(), rows)
)
"""All rows."""

ALIASES = {
    "mov_dual_group": "mov_dg",
    "mov_group": "mov_g",
    "get_lut_entry": "get_lut_entry_and_interval_start",
}
"""Mnemonics of the old spelling. Source: tpc_opcodes table of the vendor's instruction database."""

UNMODELLED = frozenset(("ld_tnsr_cnvrt",))
"""Instructions without documented operands, which belong to a later device."""


@lru_cache(maxsize=1)
def _by_mnemonic() -> dict[str, tuple[Form, ...]]:
    grouped: dict[str, list[Form]] = {}
    for form in FORMS:
        grouped.setdefault(form.mnemonic, []).append(form)
    return {mnemonic: tuple(forms) for mnemonic, forms in grouped.items()}


@lru_cache(maxsize=1)
def opcodes() -> Mapping[tuple[Slot, str], int]:
    """Return the opcode of every mnemonic in every slot that has it."""
    numbers: dict[tuple[Slot, str], int] = {}
    for word in (*" ".join(_INSTRUCTIONS).split(), *_WITHOUT_ROWS):
        mnemonic, _, codes = word.partition("=")
        for code in filter(None, codes.split(",")):
            slot, _, number = code.rpartition(":")
            slots = (
                [Slot[slot]]
                if slot
                else [Slot(slot_number) for form in forms_of(mnemonic) for slot_number in form.slots]
            )
            numbers |= {(legal_slot, mnemonic): int(number) for legal_slot in slots}
    return numbers


def mnemonics() -> tuple[str, ...]:
    """Return all canonical mnemonics in table order."""
    return tuple(_by_mnemonic())


def forms_of(mnemonic: str) -> tuple[Form, ...]:
    """Return the rows of a mnemonic in every slot and generation (empty for an unknown mnemonic)."""
    return _by_mnemonic().get(mnemonic, ())


def available(form: Form, dialect: Dialect) -> bool:
    """Return whether a generation has this form: its features, and the registers its operands name by role."""
    return (
        dialect.features.issuperset(form.needs)
        and dialect.features.isdisjoint(form.lacks)
        and all(spec.dialect_role is None or spec.dialect_role in dialect.tensor_registers for spec in form.operands)
    )


_UNTYPED_PACK = (32, 16)
"""Widths of a packed store on generations without a word for them. Source: docs/reference/tpc.md section 2.6."""


def packed_widths(instruction: TpcInstruction) -> tuple[int, int] | None:
    """Return the bit widths of the wide and the narrow elements of a packed store or an unpacked load.

    None for plain accesses, even if the text has a word of widths without `pack` or `unpack`.
    """
    for switch, widths in (("pack", _PACK_WIDTHS), ("unpack", _UNPACK_WIDTHS)):
        if instruction.switch(switch):
            word = instruction.switch(widths)
            first, second = _UNTYPED_PACK if word is None else map(int, re.findall(r"\d+", str(word)))
            return max(first, second), min(first, second)
    return None
