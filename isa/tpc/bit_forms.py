"""Instruction table: bits, exponents and classes of elements, shuffles inside dual groups, entries of tables.

Source: docs/reference/tpc.md section 5.4 and 5.5 (meaning, switches, generations) and 7.1 (operands).
"""

from __future__ import annotations

from castsim.isa.tpc.dialect import Feature
from castsim.isa.tpc.forms import TYPES, Form, Predication, Show, Style, Switch, flag, operand

_SPU, _VPU = (1,), (2,)
_NUMERIC = TYPES[:-2]
_FLOATS = tuple(name for name in _NUMERIC if "f" in name)
_WIDE_FLOATS = ("f32", "bf16", "f16")
_VECTOR = Predication.VECTOR

_SET = Switch("set", Style.DECIMAL, None, Show.ALWAYS, leading=True)
_START = Switch("start", Style.WORD, None, Show.ALWAYS, words=(("start_lsb",) * 2, ("start_msb",) * 2))
_BIASED, _UNBIASED = flag("biased"), flag("subtract_bias")
_LIMIT = flag("limit", Feature.CLASS_LIMIT)
_FUNCTIONS = ("recip", "rsqrt", "sqrt", "log", "exp", "tanh", "div", "pow")
_FUNCTION = Switch("func", Style.NAMED, None, Show.ALWAYS, words=tuple((name, name) for name in _FUNCTIONS))

_FORM_SWITCHES = (
    flag("exp_add_bias"),
    flag("force_sign0"),
    flag("force_sign1"),
    flag("exp_is_num"),
    flag("sign_lsb"),
    Switch("special_func", Style.DECIMAL, 0, numbers=(0, 1, 2, 3, 4), needs=Feature.SPECIAL_EXPONENT),
)

_VARIANTS = ("none", "tanh", "sqrt_rsqrt", "sin_cos", "log")
_VARIANT = Switch("entry_variant", Style.WORD, "none", words=tuple((name, name) for name in _VARIANTS))


def _one_source(
    mnemonic: str,
    types: tuple[str, ...],
    switches: tuple[Switch, ...],
    scalar: str,
    vector: str,
    *needs: Feature,
    lacks: tuple[Feature, ...] = (),
) -> tuple[Form, ...]:
    """Rows of an instruction with one source in both units; `scalar` and `vector` say what it may be."""
    return (
        Form(
            mnemonic, _SPU, (operand("dest", "S"), operand("src_a", scalar)), switches, types, needs=needs, lacks=lacks
        ),
        Form(
            mnemonic,
            _VPU,
            (operand("dest", "V"), operand("src_a", vector)),
            switches,
            types,
            predication=_VECTOR,
            needs=needs,
            lacks=lacks,
        ),
    )


_CLASSES = Feature.CLASSES
_EXPONENT = Feature.BIASED_EXPONENT

FORMS: tuple[Form, ...] = (
    *_one_source("popcnt", _NUMERIC, (_SET,), "S imm", "V"),
    *_one_source("find_first", _NUMERIC, (_SET, _START), "S imm", "V"),
    *_one_source("extract_exp", _FLOATS, (_BIASED,), "S imm", "V S imm", _EXPONENT),
    *_one_source("extract_exp", _FLOATS, (_UNBIASED,), "S imm", "V S imm", lacks=(_EXPONENT,)),
    *_one_source("fclass", _FLOATS, (_LIMIT,), "S imm", "V S imm", _CLASSES),
    *_one_source("brev", _NUMERIC, (), "S imm", "V S imm"),
    Form(
        "calc_fp_special",
        _SPU,
        (operand("dest", "S"), operand("src_a", "S"), operand("src_b", "S")),
        (_FUNCTION,),
        types=_WIDE_FLOATS,
        needs=(_CLASSES,),
    ),
    Form(
        "calc_fp_special",
        _VPU,
        (operand("dest", "V"), operand("src_a", "V"), operand("src_b", "V")),
        (_FUNCTION,),
        types=_WIDE_FLOATS,
        predication=_VECTOR,
        needs=(_CLASSES,),
    ),
    Form(
        "form_fp_num",
        _VPU,
        (operand("dest", "V"), operand("src_a", "V S imm"), operand("src_b", "V"), operand("src_c", "V")),
        _FORM_SWITCHES,
        types=_FLOATS,
        predication=_VECTOR,
    ),
    Form(
        "shuffle",
        _VPU,
        (operand("dest", "V"), operand("src_a", "V"), operand("src_b", "V")),
        types=_NUMERIC,
        predication=_VECTOR,
    ),
    Form(
        "get_lut_entry_and_interval_start",
        _VPU,
        (operand("dest", "D", by_first=True), operand("src_a", "V"), operand("shift", "imm", limit=31)),
        (_VARIANT, flag("opt", Feature.ENTRY_OPTIONS), flag("exp0", Feature.ENTRY_OPTIONS)),
        types=_WIDE_FLOATS,
        predication=_VECTOR,
    ),
)
"""All rows of this module."""
