"""The vendor's float functions as sequences of instructions (docs/reference/tpc.md section 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from castsim.tpc_compiler.code_generation import Value
from castsim.tpc_compiler.special_functions.blocks import (
    HALF,
    INFINITY,
    MAGNITUDE,
    MINUS_HALF,
    MINUS_ONE,
    NAN,
    ONE,
    SIGN,
    TWO,
    Writer,
    bits,
    exp_cephes,
    log2,
    pow2,
    reciprocal_fast,
    sqrt,
)

Build = Callable[[Writer, tuple[Value, ...]], Value]
"""Appends a function of vectors and returns its result."""

_PI, _HALF_PI, _FOUR_BY_PI = 0x40490FDB, 0x3FC90FDB, 0x3FA2F983
_MINUS_TWO = 0xC0000000
_ASIN = (0x3D2CB352, 0x3CC617E3, 0x3D3A3EC7, 0x3D9980F6, 0x3E2AAAE4)
_TINY = bits(1e-4)


def _asin(w: Writer, x: Value) -> Value:
    """Append the arc sine: a polynomial of x * x, or of half of 1 - |x| and its root."""
    size, sign = w.do("and.i32", x, MAGNITUDE), w.do("and.i32", x, SIGN)
    half = w.fma(HALF, size, MINUS_HALF)
    root = sqrt(w, half)
    above, within = w.mask("cmp_grt.f32", size, HALF), w.mask("cmp_leq.f32", size, HALF)
    z, base = w.constant(0), w.constant(0)
    w.change("mov", z, half, where=above)
    w.change("mov", base, root, where=above)
    w.change("mul.f32", z, size, size, where=within)
    w.change("mov", base, size, where=within)
    r = w.fma(base, w.do("mul.f32", w.horner(z, _ASIN), z), base)
    w.change("add.f32", r, r, r, where=above)
    w.change("sub.f32", r, w.constant(_HALF_PI), r, where=above)
    w.change("mov", r, size, where=w.mask("cmp_less.f32", size, _TINY))
    legal = w.mask("cmp_leq.f32", size, ONE)
    w.change("mul.f32", r, r, NAN, where=legal, inverted=True)
    return w.do("or.i32", r, sign)


def _acos(w: Writer, x: Value) -> Value:
    """Append the arc cosine: pi / 2 - asin x, or from the arc sine of a root."""
    size = w.do("and.i32", x, MAGNITUDE)
    operand = sqrt(w, w.fma(HALF, size, MINUS_HALF))
    high, low = w.mask("cmp_grt.f32", x, HALF), w.mask("cmp_less.f32", x, MINUS_HALF)
    within = w.mask("cmp_leq.f32", size, HALF)
    total, factor = w.constant(0), w.constant(MINUS_ONE)
    w.change("mov", operand, x, where=within)
    w.change("mov.f32", total, _PI, where=low)
    w.change("mov.f32", total, _HALF_PI, where=within)
    w.change("mov.f32", factor, TWO, where=high)
    w.change("mov.f32", factor, _MINUS_TWO, where=low)
    w.change("mov.f32", factor, MINUS_ONE, where=within)
    w.sequence.vpu("mac.f32", total, factor, _asin(w, operand))
    return total


_ASINH = (0x3CA4D6E6, 0xBD2EE581, 0x3D9949B1, 0xBE2AA9AD)


def _asinh(w: Writer, x: Value) -> Value:
    """Append asinh: a polynomial below one half, else the logarithm of |x| + sqrt(x * x + 1)."""
    square = w.do("mul.f32", x, x)
    root = sqrt(w, w.do("add.f32", square, ONE))
    size = w.do("and.i32", x, MAGNITUDE)
    far = log2(w, w.do("add.f32", size, root), full=True, natural=True)
    w.change("mul.f32", far, far, MINUS_ONE, where=w.mask("cmp_less.f32", x, 0))
    r = w.fma(x, w.do("mul.f32", w.horner(square, _ASINH), square), x)
    w.change("mov", r, far, where=w.mask("cmp_geq.f32", size, HALF))
    return r


_REDUCTION = (0x3F490000, 0x397DA000, 0x33222169)
_DOUBTFUL, _USELESS = bits(8192.0), bits(16777215.0)


def _sin_cos(w: Writer, x: Value, *, sine: bool) -> Value:
    """Append sine or cosine: octant by 4 / pi, the rest within pi / 4 by table, sine's as a factor of the rest."""
    size = w.do("and.i32", x, MAGNITUDE)
    octant = w.do("convert.f32 target_type=int32 rz", w.do("mul.f32", size, _FOUR_BY_PI))
    octant = w.do("add.i32", octant, w.do("and.i32", octant, 1))
    turns = w.do("convert.i32 target_type=fp32 rhne", octant)
    r = w.fma(size, turns, _REDUCTION[0], negative=True)
    for part in _REDUCTION[1:]:
        w.sequence.vpu("mac.f32 neg", r, turns, part)
    odd = w.do("and.i32", octant, 2)
    cosine = w.mask("cmp_eq.i32", odd, 2 if sine else 0)
    table = w.table_step(w.do("and.i32", r, MAGNITUDE), "sin_cos", 6, "sin_cos", cosine)
    w.change("mul.f32", table, table, r, where=cosine, inverted=True)
    half = octant if sine else w.do("add.i32", octant, odd)
    sign = w.do("and.i32", w.do("shl.i32", half, 29), SIGN)
    y = w.do("xor.i32", table, sign)
    if sine:
        y = w.do("xor.i32", y, w.do("and.i32", x, SIGN))
    y = w.select("sel_grt.f32", size, _DOUBTFUL, 0, y)
    y = w.select("sel_grt.f32", size, _USELESS, NAN, y)
    return w.select("sel_geq.i32", size, INFINITY, NAN, y)


_TAN_REDUCTION = (0xBF490000, 0xB97DA000, 0xB3222169)
_TAN = (0x3C19C53B, 0x3B4C779C, 0x3CC821B5, 0x3D5AC5C9, 0x3E0896DD, 0x3EAAAA6F)


def _tan(w: Writer, x: Value) -> Value:
    """Append the tangent: octant by 4 / pi, a polynomial, minus its reciprocal in odd quadrants."""
    size = w.do("and.i32", x, MAGNITUDE)
    turns = w.do("nearbyint.f32 rz", w.do("mul.f32", size, _FOUR_BY_PI))
    octant = w.do("convert.f32 target_type=int32 rhne", turns)
    odd = w.mask("cmp_eq.i32", w.do("and.i32", octant, 1), 1)
    w.change("add.i32", octant, octant, 1, where=odd)
    w.change("add.f32", turns, turns, ONE, where=odd)
    r = w.sequence.copy(size)
    for part in _TAN_REDUCTION:
        w.sequence.vpu("mac.f32", r, turns, part)
    square = w.do("mul.f32", r, r)
    near = w.fma(r, w.do("mul.f32", w.horner(square, _TAN), square), r)
    y = w.constant(0)
    w.change("mov", y, near, where=w.mask("cmp_grt.f32", square, _TINY))
    w.change("mov", y, r, where=w.mask("cmp_leq.f32", square, _TINY))
    inverse = w.do("xor.i32", reciprocal_fast(w, y), SIGN)
    w.change("mov", y, inverse, where=w.mask("cmp_eq.i32", w.do("and.i32", octant, 2), 2))
    w.change("sub.f32", y, w.constant(0), y, where=w.mask("cmp_less.f32", x, 0))
    return y


_EIGHT, _NINE, _ALMOST_ONE = 0x41000000, 0x41100000, 0x3F7FFFFE


def _tanh_fast(w: Writer, x: Value) -> Value:
    """Append tanh: a table up to 8, below 1 as a factor of |x|; constants beyond; the sign by FORM_FP_NUM."""
    size = w.do("and.i32", x, MAGNITUDE)
    r = w.table_step(size, "tanh", 6, "tanh")
    w.change("mul.f32", r, r, size, where=w.mask("cmp_less.i32", w.exponent(x), 0))
    r = w.select("sel_less.f32", size, _EIGHT, r, _ALMOST_ONE)
    r = w.select("sel_geq.f32", size, _NINE, ONE, r)
    return w.do("form_fp_num.f32", r, x, r)


def _pow(w: Writer, x: Value, y: Value) -> Value:
    """Append x ** y by pow2(y * log2 |x|); the sign of an odd power, and the results of special operands."""
    size = w.do("abs.f32", x)
    r = pow2(w, w.do("mul.f32", log2(w, size, full=True), y))
    whole = w.do("convert.f32 target_type=int32 rz", y)
    exact = w.mask("cmp_eq.f32", w.do("convert.i32 target_type=fp32 rhne", whole), y)
    odd = w.do("and.i32", w.do("shl.i32", whole, 31), w.do("and.i32", x, SIGN))
    w.change("xor.i32", r, r, odd, where=exact)
    negative = w.do("sel_less.f32", x, 0, w.constant(NAN), r)
    w.change("mov", r, negative, where=exact, inverted=True)
    r = w.select("sel_eq.f32", y, ONE, x, r)
    return w.select("sel_eq.f32", y, 0, ONE, r)


FUNCTIONS: Mapping[str, Build] = {
    "v_acos_cephes_f32": lambda w, given: _acos(w, given[0]),
    "v_asinh_f32": lambda w, given: _asinh(w, given[0]),
    "v_cos_f32": lambda w, given: _sin_cos(w, given[0], sine=False),
    "v_exp_cephes_f32": lambda w, given: exp_cephes(w, given[0], full=True),
    "v_exp_cephes_fast_f32": lambda w, given: exp_cephes(w, given[0], full=False),
    "v_log2_f32": lambda w, given: log2(w, given[0], full=True),
    "v_log2_fast_f32": lambda w, given: log2(w, given[0], full=False),
    "v_log_f32": lambda w, given: log2(w, given[0], full=True, natural=True),
    "v_log_fast_f32": lambda w, given: log2(w, given[0], full=False, natural=True),
    "v_pow_f32": lambda w, given: _pow(w, *given),
    "v_reciprocal_fast_f32": lambda w, given: reciprocal_fast(w, given[0]),
    "v_sin_f32": lambda w, given: _sin_cos(w, given[0], sine=True),
    "v_sqrt_f32": lambda w, given: sqrt(w, given[0]),
    "v_tan_cephes_f32": lambda w, given: _tan(w, given[0]),
    "v_tanh_fast_f32": lambda w, given: _tanh_fast(w, given[0]),
}
"""What appends each function of vectors, by the vendor's name."""
