"""Instruction table: arithmetic, logic, shifts, compares and selections.

Source: docs/reference/tpc.md section 5.1 (meaning, switches) and 7.1 (operands). The canonical order of switches that
never occur together in the vendor's tests follows their bit numbers where stated (`st` 0, `rhu` 1) and is assumed
otherwise.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.isa.tpc.dialect import Feature
from castsim.isa.tpc.forms import TYPES, Family, Form, Predication, Style, Switch, flag, operand

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
