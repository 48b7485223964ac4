"""Instruction table: arithmetic, logic, shifts, compares, selections, bits, products.

Source: docs/reference/tpc.md section 5.1 (meaning, switches) and 7.1 (operands). The canonical order of switches that
never occur together in the vendor's tests follows their bit numbers where stated (`st` 0, `rhu` 1) and is assumed
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from castsim.isa.tpc.dialect import Feature
from castsim.isa.tpc.forms import (
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

_SPU = (1,)
_VPU = (2,)
_NUMERIC = TYPES[:-2]
_FLOATS = tuple(name for name in _NUMERIC if "f" in name)
_BYTE_FLOATS = ("f8_143", "f8_152")
_INTEGERS = tuple(name for name in _NUMERIC if "f" not in name)
_SATURATE = flag("st", aliases=("sat",))
_NEGATE = flag("neg")
_FLUSH = flag("fp16_ftz_in", Feature.FLUSH_SWITCH)
_INVERT = flag("andn", Feature.INVERTED_AND)
_MASKED = flag("mask_eq_zero", Feature.MASKED_COMPARE)
_VECTOR = Predication.VECTOR

_S3 = (operand("dest", "S"), operand("src_a", "S"), operand("src_b", "S imm"))
_V3 = (operand("dest", "V"), operand("src_a", "V"), operand("src_b", "V S imm"))
# Index registers: the scalar may stand first in arithmetic, second in shifts.
_I3 = (
    (operand("mask", "mask"), operand("dest", "I"), operand("src_a", "I S imm"), operand("src_b", "I")),
    (operand("mask", "mask"), operand("dest", "I"), operand("src_a", "I"), operand("src_b", "S imm")),
)


def _index(mnemonic: str) -> tuple[Form, ...]:
    """Rows on indices, under a mask in the text or, from Greco, in a mask register."""
    register = operand("mask", "M0 M1 M2 M3")
    return (
        *(Form(mnemonic, _SPU, operands, types=("i32",)) for operands in _I3),
        *(
            Form(mnemonic, _SPU, (register, *operands[1:]), types=("i32",), needs=(Feature.HARDWARE_REGISTERS,))
            for operands in _I3
        ),
    )


def _plain(mnemonic: str, *switches: Switch) -> tuple[Form, ...]:
    """Rows of a two-source instruction on scalars, vectors and indices."""
    return (
        Form(mnemonic, _SPU, _S3, switches, types=_NUMERIC),
        *_index(mnemonic),
        Form(mnemonic, _VPU, _V3, switches, types=_NUMERIC, predication=_VECTOR),
    )


def _logic(mnemonic: str, *switches: Switch) -> tuple[Form, ...]:
    """The same, and on predicate registers under the one-bit type."""
    sp = (operand("dest", "SP"), operand("src_a", "SP"), operand("src_b", "SP"))
    vp = (operand("dest", "VP"), operand("src_a", "VP"), operand("src_b", "VP"))
    return (
        *_plain(mnemonic, *switches),
        Form(mnemonic, _SPU, sp, switches, types=("b",)),
        Form(mnemonic, _VPU, vp, switches, types=("b",), predication=_VECTOR),
    )


def _mul() -> tuple[Form, ...]:
    """Rows of MUL: the vector unit keeps the whole integer product in a pair or quad."""
    pair = (operand("dest", "D", by_first=True), *_V3[1:])
    quad = (operand("dest", "A", by_first=True), *_V3[1:])
    keep = flag("keep_rs", Feature.PRODUCT_ROUNDING)
    kept = (keep, flag("keep_rs_for_add", Feature.PRODUCT_ROUNDING))
    rounded = Switch("double_and_round32", Style.FLAG, None, numbers=(1,))
    wide = replace(flag("acc_fp32"), default=None, numbers=(1,))
    return (
        Form("mul", _SPU, _S3, (flag("upper32"), _NEGATE, _FLUSH), types=_NUMERIC),
        Form(
            "mul",
            _SPU,
            _S3,
            (_NEGATE, _FLUSH, wide),
            types=("bf16", "f16", *_BYTE_FLOATS),
            needs=(Feature.WIDE_ACCUMULATOR,),
        ),
        *_index("mul"),
        Form("mul", _VPU, _V3, (_NEGATE, _FLUSH), types=_FLOATS, predication=_VECTOR),
        Form(
            "mul",
            _VPU,
            _V3,
            (rounded, keep),
            types=("i32", "u32"),
            predication=_VECTOR,
        ),
        Form("mul", _VPU, pair, (_NEGATE, *kept), types=("i32", "u32", "i16", "u16"), predication=_VECTOR),
        *(
            Form(
                "mul",
                _VPU,
                operands,
                (_NEGATE, _FLUSH, wide),
                types=types,
                predication=_VECTOR,
                needs=(Feature.WIDE_ACCUMULATOR,),
            )
            for operands, types in ((pair, ("bf16", "f16")), (quad, _BYTE_FLOATS))
        ),
        Form("mul", _VPU, quad, (_NEGATE, keep), types=("u8",), predication=_VECTOR),
        Form("mul", _VPU, quad, (_NEGATE, keep), types=("i8",), predication=_VECTOR, needs=(Feature.BYTE_PRODUCT,)),
    )


def _shift(mnemonic: str, scalar: tuple[Switch, ...] = (), vector: tuple[Switch, ...] = ()) -> tuple[Form, ...]:
    """Rows of a shift: value, then amount."""
    head = (operand("mask", "mask"), operand("dest", "I"), operand("src_a", "I"))
    return (
        Form(mnemonic, _SPU, _S3, scalar, types=_NUMERIC),
        Form(mnemonic, _SPU, (*head, operand("src_b", "I S")), scalar, types=("i32",)),
        Form(
            mnemonic,
            _SPU,
            (*head, operand("src_b", "imm")),
            scalar,
            types=("i32",),
            needs=(Feature.INDEX_SHIFT_IMMEDIATE,),
        ),
        Form(mnemonic, _VPU, _V3, vector, types=_NUMERIC, predication=_VECTOR),
    )


# ASH saturates to the left by default.
_ASH_SATURATE = flag("st", aliases=("sat",), default=1)
_RHU = flag("rhu")
_RHAZ_RS = flag("rhaz_rs", Feature.PRODUCT_ROUNDING)


def _unary(mnemonic: str, *types: str) -> tuple[Form, ...]:
    return (
        Form(mnemonic, _SPU, (operand("dest", "S"), operand("src_a", "S")), types=types),
        Form(mnemonic, _VPU, (operand("dest", "V"), operand("src_a", "V")), types=types, predication=_VECTOR),
    )


_NOT_PREDICATES = (
    Form("not", _SPU, (operand("dest", "SP"), operand("src_a", "SP")), types=("b",)),
    Form("not", _VPU, (operand("dest", "VP"), operand("src_a", "VP")), types=("b",), predication=_VECTOR),
)


def _compare(condition: str) -> tuple[Form, ...]:
    mnemonic, family = f"cmp_{condition}", Family.COMPARISON
    switches = (_MASKED,) if condition == "eq" else ()
    scalar = (operand("dest", "SP"), *_S3[1:])
    vector = (operand("dest", "VP"), *_V3[1:])
    index = (operand("mask", "mask"), operand("dest", "SP"), operand("src_a", "I"), operand("src_b", "I imm"))
    return (
        Form(mnemonic, _SPU, scalar, switches, types=_NUMERIC, family=family),
        Form(mnemonic, _SPU, index, switches, types=("i32",), needs=(Feature.INDEX_COMPARE,), family=family),
        Form(mnemonic, _VPU, vector, switches, types=_NUMERIC, predication=_VECTOR, family=family),
    )


def _select(mnemonic: str, dest: str, family: Family, *switches: Switch) -> tuple[Form, ...]:
    """Rows of a selection: of its second and fourth source at most one is not a vector."""
    a, c = operand("src_a", "V"), operand("src_c", "V")
    return tuple(
        Form(
            mnemonic,
            _VPU,
            (operand("dest", dest), a, operand("src_b", b), c, operand("src_d", d)),
            switches,
            types=_NUMERIC,
            predication=_VECTOR,
            family=family,
        )
        for b, d in (("V S imm", "V"), ("V", "S imm"))
    )


_CONDITIONS = ("eq", "neq", "less", "leq", "grt", "geq")
_ORDERED = _CONDITIONS[2:]

# Sums of f8 in quads: the vendor's compiler prints them; what lies in the four registers no source states.
_QUADS = (operand("dest", "A"), operand("src_a", "A"), operand("src_b", "A S imm"))

FORMS: tuple[Form, ...] = (
    *(
        form
        for mnemonic in ("add", "sub")
        for form in (
            *_plain(mnemonic, _SATURATE, _NEGATE, _FLUSH),
            Form(mnemonic, _VPU, _QUADS, (_NEGATE,), types=_BYTE_FLOATS, predication=_VECTOR),
        )
    ),
    *_mul(),
    *_plain("max"),
    *_plain("min"),
    *_logic("and", _INVERT),
    *_logic("or"),
    *_logic("xor"),
    *_shift("shl"),
    *_shift("shr"),
    *_shift("ash", (_ASH_SATURATE, _RHU), (_ASH_SATURATE, _RHU, _RHAZ_RS)),
    *_unary("abs", *_NUMERIC),
    *_unary("not", *_INTEGERS, *_FLOATS),
    *_NOT_PREDICATES,
    *(form for condition in _CONDITIONS for form in _compare(condition)),
    *(
        form
        for condition in _CONDITIONS
        for form in _select(f"sel_{condition}", "V", Family.SELECTION, *((_MASKED,) if condition == "eq" else ()))
    ),
    *(form for condition in _ORDERED for form in _select(f"sel2_{condition}", "D", Family.PAIR_SELECTION)),
)
"""All rows of this module."""


# Instruction table: bits, exponents and classes of elements, shuffles inside dual groups, entries of tables.
#
# Source: docs/reference/tpc.md section 5.4 and 5.5 (meaning, switches, generations) and 7.1 (operands).

_BIT_SPU, _BIT_VPU = (1,), (2,)
_WIDE_FLOATS = ("f32", "bf16", "f16")

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
            mnemonic,
            _BIT_SPU,
            (operand("dest", "S"), operand("src_a", scalar)),
            switches,
            types,
            needs=needs,
            lacks=lacks,
        ),
        Form(
            mnemonic,
            _BIT_VPU,
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

BIT_FORMS: tuple[Form, ...] = (
    *_one_source("popcnt", _NUMERIC, (_SET,), "S imm", "V"),
    *_one_source("find_first", _NUMERIC, (_SET, _START), "S imm", "V"),
    *_one_source("extract_exp", _FLOATS, (_BIASED,), "S imm", "V S imm", _EXPONENT),
    *_one_source("extract_exp", _FLOATS, (_UNBIASED,), "S imm", "V S imm", lacks=(_EXPONENT,)),
    *_one_source("fclass", _FLOATS, (_LIMIT,), "S imm", "V S imm", _CLASSES),
    *_one_source("brev", _NUMERIC, (), "S imm", "V S imm"),
    Form(
        "calc_fp_special",
        _BIT_SPU,
        (operand("dest", "S"), operand("src_a", "S"), operand("src_b", "S")),
        (_FUNCTION,),
        types=_WIDE_FLOATS,
        needs=(_CLASSES,),
    ),
    Form(
        "calc_fp_special",
        _BIT_VPU,
        (operand("dest", "V"), operand("src_a", "V"), operand("src_b", "V")),
        (_FUNCTION,),
        types=_WIDE_FLOATS,
        predication=_VECTOR,
        needs=(_CLASSES,),
    ),
    Form(
        "form_fp_num",
        _BIT_VPU,
        (operand("dest", "V"), operand("src_a", "V S imm"), operand("src_b", "V"), operand("src_c", "V")),
        _FORM_SWITCHES,
        types=_FLOATS,
        predication=_VECTOR,
    ),
    Form(
        "shuffle",
        _BIT_VPU,
        (operand("dest", "V"), operand("src_a", "V"), operand("src_b", "V")),
        types=_NUMERIC,
        predication=_VECTOR,
    ),
    Form(
        "get_lut_entry_and_interval_start",
        _BIT_VPU,
        (operand("dest", "D", by_first=True), operand("src_a", "V"), operand("shift", "imm", limit=31)),
        (_VARIANT, flag("opt", Feature.ENTRY_OPTIONS), flag("exp0", Feature.ENTRY_OPTIONS)),
        types=_WIDE_FLOATS,
        predication=_VECTOR,
    ),
)
"""All rows of this module."""


# Instruction table: products that are added to an accumulator, and sums and products of pairs of registers.
#
# Source: docs/reference/tpc.md section 5.3 (meaning, switches, generations) and 7.1 (operands). The order of switches
# is that of their bits. MAC reads its accumulator from the destination, MADD from a third operand of the same class.

_PRODUCT_SPU, _PRODUCT_VPU = (1,), (2,)
_ADDEND = "src_c"
"""The stage tables' name of the accumulator; the third source of MADD."""
_SHIFTED_ADDEND = "src_e"
"""That of MSAC, which names four sources."""

_IN_F32 = flag("acc_fp32", Feature.WIDE_ACCUMULATOR)
_IN_I16 = flag("acc_i16", Feature.MULTIPLY_ADD)
_IN_I32 = flag("acc_i32", Feature.MULTIPLY_ADD)
_X2 = flag("x2", Feature.MULTIPLY_ADD)
_PAIRS = flag("x2", Feature.PAIR_ARITHMETIC)
_ZERO_POINT = flag("zp", Feature.MULTIPLY_ADD)
_NEGATE_ZERO_POINT = replace(flag("neg_zp", Feature.MULTIPLY_ADD), only_if=("zp", 1))

_Implied = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class _Product:
    """One line of the table of forms: types, class of the destination, switches, what the operands imply."""

    types: tuple[str, ...]
    dest: str
    switches: tuple[Switch, ...]
    implied: _Implied = ()
    needs: tuple[Feature, ...] = ()
    zero_point: bool = False
    """Whether there is a form with `ZP_REG`."""
    pairs: bool = False
    """Whether there is a form with `x2`, which adds a product of a third and a fourth source."""


_BYTES = (_SATURATE, _NEGATE, _IN_I16, _X2, _ZERO_POINT, _NEGATE_ZERO_POINT)
_UNSIGNED_BYTES = (_SATURATE, _NEGATE, _IN_I16, _IN_I32, _X2, _ZERO_POINT, _NEGATE_ZERO_POINT)
_ONE, _NONE = (("acc_fp32", 1),), (("acc_fp32", 0),)
_SHORT: _Implied = (("acc_i16", 1),)
_LONG: _Implied = (("acc_i16", 0),)

_VECTORS = (
    _Product(("f32",), "V", (_NEGATE, _PAIRS), (("x2", 0),)),
    _Product(("bf16",), "V", (_NEGATE, _IN_F32), _NONE, (Feature.WIDE_ACCUMULATOR,)),
    _Product(("f16",), "V", (_FLUSH, _NEGATE, _IN_F32), _NONE, (Feature.WIDE_ACCUMULATOR,)),
    _Product(("bf16",), "D", (_NEGATE, _IN_F32), _ONE, (Feature.WIDE_ACCUMULATOR,)),
    _Product(("f16",), "D", (_FLUSH, _NEGATE, _IN_F32), _ONE, (Feature.WIDE_ACCUMULATOR,)),
    _Product(("f8_143", "f8_152"), "A", (_NEGATE, _IN_F32), _ONE, (Feature.WIDE_ACCUMULATOR,)),
    _Product(("i16",), "D", (_SATURATE, _NEGATE)),
    _Product(("u16",), "D", (_SATURATE, _NEGATE, _IN_I32)),
    _Product(("i8",), "A", _BYTES, _LONG, (Feature.BYTE_PRODUCT,), zero_point=True, pairs=True),
    _Product(("u8",), "A", _UNSIGNED_BYTES, _LONG, (Feature.BYTE_PRODUCT,), zero_point=True, pairs=True),
    _Product(("i8",), "D", _BYTES, _SHORT, (Feature.MULTIPLY_ADD,), zero_point=True, pairs=True),
    _Product(("u8",), "D", _UNSIGNED_BYTES, _SHORT, (Feature.MULTIPLY_ADD,), zero_point=True, pairs=True),
)

_SCALARS = (
    _Product(("f32",), "S", (_NEGATE,)),
    _Product(("bf16",), "S", (_NEGATE, _IN_F32), needs=(Feature.WIDE_ACCUMULATOR,)),
    _Product(("f16",), "S", (_FLUSH, _NEGATE, _IN_F32), needs=(Feature.WIDE_ACCUMULATOR,)),
    _Product(("f8_143", "f8_152"), "S", (_NEGATE, _IN_F32), _ONE, (Feature.WIDE_ACCUMULATOR,)),
    _Product(("i16",), "S", (_SATURATE, _NEGATE)),
    _Product(("u16",), "S", (_SATURATE, _NEGATE, _IN_I32)),
    _Product(("i8",), "S", (_SATURATE, _NEGATE, _IN_I16), needs=(Feature.BYTE_PRODUCT,)),
    _Product(("u8",), "S", (_SATURATE, _NEGATE, _IN_I32), needs=(Feature.BYTE_PRODUCT,)),
)

_A, _B, _SCALAR_B = operand("src_a", "V"), operand("src_b", "V S imm"), operand("src_b", "S imm")
_ZERO = operand("zp", "ZP_REG")


def _mac(slots: tuple[int, ...], product: _Product) -> Iterator[Form]:
    """Rows of MAC: plain, with a zero point, with two products at once."""
    sources = (_A, _B) if slots == _PRODUCT_VPU else (operand("src_a", "S"), _SCALAR_B)
    plain = tuple((name, 0) for name, there in (("x2", product.pairs), ("zp", product.zero_point)) if there)
    dest = operand("dest", product.dest, by_first=True)
    yield _accumulating("mac", slots, (dest, *sources), product, plain)
    if not product.pairs:
        return
    more = (Feature.MULTIPLY_ADD,)
    twice = (dest, *sources, operand(_ADDEND, "V"), operand("src_d", "V"))
    yield _accumulating("mac", slots, (_ZERO, dest, *sources), product, (("x2", 0), ("zp", 1)), *more)
    yield _accumulating("mac", slots, twice, product, (("x2", 1), ("zp", 0)), *more)
    yield _accumulating("mac", slots, (_ZERO, *twice), product, (("x2", 1), ("zp", 1)), *more)


def _madd(product: _Product) -> Iterator[Form]:
    """Rows of MADD, which has no pairs of integers."""
    switches = tuple(switch for switch in product.switches if switch is not _X2)
    dest, addend = (operand(role, product.dest, by_first=True) for role in ("dest", _ADDEND))
    operands = (dest, _A, _B, addend)
    fixed: tuple[_Implied, ...] = ((("zp", 0),), (("zp", 1),)) if product.zero_point else ((),)
    for implied in fixed:
        yield Form(
            "madd",
            _PRODUCT_VPU,
            (_ZERO, *operands) if implied == (("zp", 1),) else operands,
            switches,
            types=product.types,
            predication=Predication.VECTOR,
            needs=(Feature.MULTIPLY_ADD, *product.needs),
            implied=(*product.implied, *implied),
        )


def _accumulating(
    mnemonic: str,
    slots: tuple[int, ...],
    operands: tuple[OperandSpec, ...],
    product: _Product,
    implied: _Implied,
    *needs: Feature,
) -> Form:
    return Form(
        mnemonic,
        slots,
        operands,
        product.switches,
        types=product.types,
        predication=Predication.VECTOR if slots == _PRODUCT_VPU else Predication.SCALAR,
        needs=(*product.needs, *needs),
        implied=(*product.implied, *implied),
        accumulator=_ADDEND,
    )


def _paired(
    mnemonic: str, sources: tuple[OperandSpec, ...], *switches: Switch, accumulator: str | None = None
) -> Iterator[Form]:
    """Rows of f32 instructions on pairs of registers."""
    yield Form(
        mnemonic,
        _PRODUCT_VPU,
        (operand("dest", "D", by_first=True), *sources),
        (*switches, _PAIRS),
        types=("f32",),
        predication=Predication.VECTOR,
        needs=(Feature.PAIR_ARITHMETIC,),
        implied=(("x2", 1),),
        accumulator=accumulator,
    )


_PAIR_SOURCES = (operand("src_a", "D", by_first=True), _B, operand("src_d", "V S imm"))
_PAIR_FACTORS = (operand("src_a", "D S imm", by_first=True), _B, operand("src_d", "V S imm"))
_PAIR_ADDENDS = (
    operand("src_a", "D S imm", by_first=True),
    _B,
    operand(_ADDEND, "D S imm", by_first=True),
    operand("src_d", "V S imm"),
)

_NORMALISE = always(
    Switch("normalize", Style.WORD, "normalize_ab", words=tuple((f"normalize_{at}",) * 2 for at in ("ab", "c")))
)


def _msac() -> Iterator[Form]:
    """Rows of MSAC: of its second and fourth source at most one is not a vector."""
    for second, fourth in (("V S imm", "V"), ("V", "S imm")):
        yield Form(
            "msac",
            _PRODUCT_VPU,
            (
                operand("dest", "V"),
                _A,
                operand("src_b", second),
                operand("src_c", "V"),
                operand("src_d", fourth),
            ),
            (flag("rhu"), _NORMALISE),
            types=("i16", "u16", "i8", "u8"),
            predication=Predication.VECTOR,
            needs=(Feature.SHIFTED_PRODUCT,),
            accumulator=_SHIFTED_ADDEND,
        )


PRODUCT_FORMS: tuple[Form, ...] = (
    *(form for product in _SCALARS for form in _mac(_PRODUCT_SPU, product)),
    *(form for product in _VECTORS for form in _mac(_PRODUCT_VPU, product)),
    *_paired("mac", _PAIR_FACTORS, _NEGATE, accumulator=_ADDEND),
    *(form for product in _VECTORS for form in _madd(product)),
    *_paired("madd", _PAIR_ADDENDS, _NEGATE),
    *_msac(),
    *(form for mnemonic in ("mul", "add", "sub") for form in _paired(mnemonic, _PAIR_SOURCES, _NEGATE)),
)
"""All rows of this module."""
