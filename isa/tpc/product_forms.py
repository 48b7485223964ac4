"""Instruction table: products that are added to an accumulator, and sums and products of pairs of registers.

Source: docs/reference/tpc.md section 5.3 (meaning, switches, generations) and 7.1 (operands). The order of switches is
that of their bits. MAC reads its accumulator from the destination, MADD from a third operand of the same class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from castsim.isa.tpc.dialect import Feature
from castsim.isa.tpc.forms import Form, OperandSpec, Predication, Style, Switch, Value, always, flag, operand

_SPU, _VPU = (1,), (2,)
_ADDEND = "src_c"
"""The stage tables' name of the accumulator; the third source of MADD."""
_SHIFTED_ADDEND = "src_e"
"""That of MSAC, which names four sources."""

_SATURATE = flag("st", aliases=("sat",))
_FLUSH = flag("fp16_ftz_in", Feature.FLUSH_SWITCH)
_NEGATE = flag("neg")
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
    sources = (_A, _B) if slots == _VPU else (operand("src_a", "S"), _SCALAR_B)
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
            _VPU,
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
        predication=Predication.VECTOR if slots == _VPU else Predication.SCALAR,
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
        _VPU,
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
            _VPU,
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


FORMS: tuple[Form, ...] = (
    *(form for product in _SCALARS for form in _mac(_SPU, product)),
    *(form for product in _VECTORS for form in _mac(_VPU, product)),
    *_paired("mac", _PAIR_FACTORS, _NEGATE, accumulator=_ADDEND),
    *(form for product in _VECTORS for form in _madd(product)),
    *_paired("madd", _PAIR_ADDENDS, _NEGATE),
    *_msac(),
    *(form for mnemonic in ("mul", "add", "sub") for form in _paired(mnemonic, _PAIR_SOURCES, _NEGATE)),
)
"""All rows of this module."""
