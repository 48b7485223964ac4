"""Instruction table: conversions, rounding to integers, and the rearrangement of lanes.

Source: docs/reference/tpc.md section 2 (CONVERT family, lanes, PACK to MOV_G) and 7 (canonical switches); the order of
switches is that of their bits in the vendor's instruction database.
"""

from __future__ import annotations

from castsim.isa.tpc.dialect import Feature
from castsim.isa.tpc.forms import (
    ROUNDING,
    TARGET_SPELLINGS,
    TYPES,
    Family,
    Form,
    OperandSpec,
    Predication,
    Show,
    Style,
    Switch,
    Value,
    always,
    flag,
    operand,
)

_TO_3 = (0, 1, 2, 3)
_SPU = (1,)
_VPU = (2,)
_NUMERIC = TYPES[:-1]  # all but the one-bit type
_DATA = TYPES[:-2]  # those that fill vector lanes

_ROUNDING_WORDS = tuple((word, word) for word in ("rhne", "rz", "ru", "rd", "sr", "csr", "rhaz", "sr_rne"))
RANDOM_ROUNDINGS = ("sr", "sr_rne")
"""The stochastic modes."""
_ROUNDING_ALIASES: tuple[tuple[str, Value], ...] = (("rne", "rhne"), ("sr_rhne", "sr_rne"), ("default", "csr"))


def _rounding(which: str, default: str, show: Show) -> Switch:
    return Switch(
        ROUNDING,
        Style.WORD,
        default,
        show,
        words=_ROUNDING_WORDS,
        aliases=_ROUNDING_ALIASES,
        rounding=which,
        random=RANDOM_ROUNDINGS,
    )


_CONVERT_ROUNDING = _rounding("convert", "csr", Show.CHANGED)
_INTEGER_ROUNDING = _rounding("convert_int", "rhne", Show.ALWAYS)
_TARGET_TYPE = Switch("target_type", Style.NAMED, None, Show.ALWAYS, words=tuple(TARGET_SPELLINGS.items()))
_LANE_SEL = Switch("lane_sel", Style.DECIMAL, 0, numbers=_TO_3)
_NUM_LANES = Switch(
    "num_lanes", Style.WORD, "single_lane", words=(("single_lane", "single_lane"), ("all_lanes", "all_lanes"))
)
_WIDTH = Switch("width", Style.WORD, "to_8", Show.ALWAYS, words=(("to_8", "to_8"), ("to_16", "to_16")))
NARROWED_BITS = {"to_8": 8, "to_16": 16}
"""Bits of the results of integer conversions that can make several widths, by the words of the switch."""
_CLIP = flag("clip_fp", Feature.CLIP_FLOAT)

_CONVERT = (
    Form(
        "convert",
        _SPU,
        (operand("dest", "S"), operand("src_a", "S")),
        (_TARGET_TYPE, _CONVERT_ROUNDING, _CLIP),
        types=_NUMERIC,
        family=Family.CONVERSION,
    ),
    Form(
        "convert",
        _VPU,
        (operand("dest", "V D A"), operand("src_a", "V D A")),
        (
            _LANE_SEL,
            _NUM_LANES,
            flag("x2", Feature.MULTI_REGISTER_CONVERT),
            _TARGET_TYPE,
            _CONVERT_ROUNDING,
            flag("x4", Feature.MULTI_REGISTER_CONVERT),
            _CLIP,
        ),
        types=_NUMERIC,
        predication=Predication.VECTOR,
        family=Family.CONVERSION,
    ),
)

_SCALAR_SHIFT = (operand("dest", "S"), operand("src_a", "S"), operand("src_b", "S imm"))
_VECTOR_SHIFT = (operand("dest", "V D A"), operand("src_a", "V D A"), operand("src_b", "V D A S imm"))


def _integer(mnemonic: str, *, chooses_width: bool) -> tuple[Form, ...]:
    """Rows of CONVERT_INT32/UINT32 (destination of 8 or 16 bits) or CONVERT_INT16/UINT16 (half the source)."""
    width = (_WIDTH,) if chooses_width else ()
    lane_of_single = Switch(
        "lane_sel", Style.DECIMAL, 0, Show.ALWAYS, numbers=_TO_3, only_if=("num_lanes", "single_lane")
    )
    return (
        Form(mnemonic, _SPU, _SCALAR_SHIFT, (_INTEGER_ROUNDING, *width), family=Family.CONVERSION),
        Form(
            mnemonic,
            _VPU,
            _VECTOR_SHIFT,
            (always(_LANE_SEL), _INTEGER_ROUNDING, *width),
            predication=Predication.VECTOR,
            lacks=(Feature.LANE_CHOICE,),
            family=Family.CONVERSION,
        ),
        Form(
            mnemonic,
            _VPU,
            _VECTOR_SHIFT,
            (lane_of_single, always(_NUM_LANES), _INTEGER_ROUNDING, *width),
            predication=Predication.VECTOR,
            needs=(Feature.LANE_CHOICE,),
            family=Family.CONVERSION,
        ),
    )


def _nibble(mnemonic: str) -> tuple[Form, ...]:
    """Rows of CONVERT_INT8/UINT8: 8 to 4 bits, always all lanes."""
    all_lanes = Switch("num_lanes", Style.WORD, "all_lanes", Show.NEVER, words=(("all_lanes", "all_lanes"),))
    return (
        Form(
            mnemonic,
            _SPU,
            _SCALAR_SHIFT,
            (_INTEGER_ROUNDING,),
            needs=(Feature.NIBBLE_CONVERT,),
            family=Family.CONVERSION,
        ),
        Form(
            mnemonic,
            _VPU,
            _VECTOR_SHIFT,
            (all_lanes, _INTEGER_ROUNDING),
            predication=Predication.VECTOR,
            needs=(Feature.NIBBLE_CONVERT,),
            family=Family.CONVERSION,
        ),
    )


# Source: docs/reference/tpc.md section 5.2. The code of `target_type` counts only under `cnvrt`, but is printed
# without it too; an absent word leaves code 0, that of fp32, which is printed nowhere.
_NEARBYINT_TARGETS = ("i32", "i16", "i8")
_NEARBYINT_SWITCHES = (
    flag("cnvrt", Feature.CONVERTING_NEARBYINT),
    Switch(
        "target_type",
        Style.NAMED,
        "f32",
        words=tuple((name, TARGET_SPELLINGS[name]) for name in _NEARBYINT_TARGETS),
        needs=Feature.CONVERTING_NEARBYINT,
    ),
    _CONVERT_ROUNDING,
)
_NEARBYINT = (
    Form(
        "nearbyint",
        _SPU,
        (operand("dest", "S"), operand("src_a", "S")),
        (_CONVERT_ROUNDING,),
        types=_NUMERIC,
        family=Family.ROUNDING,
    ),
    Form(
        "nearbyint",
        _VPU,
        (operand("dest", "V D"), operand("src_a", "V")),
        _NEARBYINT_SWITCHES,
        types=_NUMERIC,
        predication=Predication.VECTOR,
        family=Family.ROUNDING,
    ),
)

_GROUP = Switch(
    "source_group",
    Style.DECIMAL,
    0,
    Show.ALWAYS,
    aliases=(("group_0", 0), ("group_1", 1)),
    keys=("group_source", "group"),
)
_STRIDE = Switch(
    "element_stride",
    Style.DECIMAL,
    2,
    Show.ALWAYS,
    numbers=(2, 4),
    aliases=(("stride_2", 2), ("stride_4", 4)),
    keys=("stride",),
)
_HALF = Switch("group_half", Style.DECIMAL, 0, Show.ALWAYS, aliases=(("group_half_0", 0), ("group_half_1", 1)))
_UNPACK_LANE = Switch(
    "unpack_lane",
    Style.DECIMAL,
    0,
    numbers=_TO_3,
    aliases=tuple((f"{name}_{lane}", lane) for name in ("unpack_lane", "lane") for lane in range(4)),
    keys=("lane",),
    needs=Feature.UNPACK_LANE,
)
_TWO_VECTORS = (operand("dest", "V"), operand("src_a", "V"))
_WITH_MASK = (*_TWO_VECTORS, operand("byte_mask", "imm"))


def _lanes(
    mnemonic: str,
    operands: tuple[OperandSpec, ...],
    switches: tuple[Switch, ...],
    *needs: Feature,
    typed: bool = False,
) -> Form:
    """One row of an instruction that moves lanes of a vector."""
    return Form(
        mnemonic,
        _VPU,
        operands,
        switches,
        types=_DATA if typed else (),
        predication=Predication.VECTOR,
        needs=needs,
        family=Family.LANE_MOVE,
    )


_SINGLE = (
    Switch("src", Style.DECIMAL, 0, Show.ALWAYS, numbers=_TO_3, keys=("src_dual_group", "src_dg")),
    Switch("dst", Style.DECIMAL, 0, Show.ALWAYS, numbers=_TO_3, keys=("dst_dual_group", "dst_dg")),
    Switch("wr_lg", Style.HEX, 0, Show.ALWAYS, keys=("wr_lower_group",)),
    Switch("wr_ug", Style.HEX, 0, Show.ALWAYS, keys=("wr_upper_group",)),
)
_SOURCES = tuple(
    Switch(f"{name}{group}", Style.DECIMAL, 0, Show.ALWAYS, numbers=_TO_3)
    for name in ("sdg", "weg")
    for group in range(4)
)
_PACK_TYPE = Switch("pack_type", Style.DECIMAL, 0, Show.ALWAYS)
_UNPACK_TYPE = Switch("unpack_type", Style.DECIMAL, 0, Show.ALWAYS)
_MOV_G = (
    Switch("g_en", Style.BINARY, 0, Show.ALWAYS, numbers=_TO_3, keys=("group_en",)),
    Switch("dg_en", Style.BINARY, 0, Show.ALWAYS, numbers=tuple(range(16)), keys=("dual_group_en",)),
)

FORMS: tuple[Form, ...] = (
    *_CONVERT,
    *_integer("convert_int32", chooses_width=True),
    *_integer("convert_uint32", chooses_width=True),
    *_integer("convert_int16", chooses_width=False),
    *_integer("convert_uint16", chooses_width=False),
    *_nibble("convert_int8"),
    *_nibble("convert_uint8"),
    *_NEARBYINT,
    _lanes("pack", _TWO_VECTORS, (_GROUP, _STRIDE), typed=True),
    _lanes("unpack", _TWO_VECTORS, (_GROUP, _STRIDE, _HALF, _UNPACK_LANE), typed=True),
    _lanes("mov_dg", _WITH_MASK, _SINGLE),
    _lanes("mov_dg.all", _WITH_MASK, _SOURCES, Feature.MOV_DG_ALL),
    _lanes("mov_dg.pack", _TWO_VECTORS, (_PACK_TYPE,), Feature.MOV_DG_PACK),
    _lanes("mov_dg.unpack", _WITH_MASK, (_UNPACK_TYPE, *_SOURCES), Feature.MOV_DG_UNPACK),
    _lanes("mov_g", _WITH_MASK, _MOV_G),
)
"""All rows of this module."""
