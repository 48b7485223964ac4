"""The vendor's float functions on one code, from the description of their algorithms, by exact arithmetic.

Every MAC rounds once; subnormal operands and results of f32 are flushed (docs/reference/tpc.md sections 3.1 and 5.1).
"""

from __future__ import annotations

from fractions import Fraction

from oracle_formats import decode
from oracle_tpc import float_operation, fused, nearby

INFINITY, MINUS_INFINITY, NAN = 0x7F800000, 0xFF800000, 0x7FFFFFFF


def _fma(a: int, b: int, c: int, *, neg: bool = False) -> int:
    return fused(a, b, c, "f32", "f32", "RHNE", negate=neg)


def _op(name: str, a: int, b: int) -> int:
    return float_operation(name, a, b, "f32", "RHNE", flush=True)


def _number(code: int) -> Fraction:
    value = decode(code, "f32")
    return -value.magnitude if value.negative else value.magnitude


def _float(number: int) -> int:
    """The code of a small integer."""
    if number == 0:
        return 0
    size = abs(number)
    exponent = size.bit_length() - 1
    return (number < 0) << 31 | (exponent + 127) << 23 | (size << 23 >> exponent) & 0x7FFFFF


def divide(x: int, y: int, rc: int) -> int:
    q = _op("mul", x, rc)
    return _fma(_fma(y, q, x, neg=True), rc, q)


EXP = (0x39506967, 0x3AB743CE, 0x3C088908, 0x3D2AA9C1, 0x3E2AAAAA, 0x3F000000)


def exp_cephes(x: int, *, full: bool = True) -> int:
    kind = decode(x, "f32").kind
    if full:
        if kind == "nan":
            return x
        if x == MINUS_INFINITY or (kind == "finite" and _number(x) <= _number(0xC2AEAC08)):
            return 0
        if x == INFINITY or _number(x) >= _number(0x42B171AA):
            return INFINITY
    z = nearby(_fma(x, 0x3FB8AA3B, 0x3F000000), "f32", "RD")
    r = _fma(z, 0xB95E8083, _fma(z, 0x3F318000, x, neg=True), neg=True)
    square, poly = _op("mul", r, r), EXP[0]
    for each in EXP[1:]:
        poly = _fma(poly, r, each)
    return (_fma(poly, square, _op("add", r, 0x3F800000)) + (int(_number(z)) << 23)) & 0xFFFFFFFF


LOG = (0x3D9021BB, 0xBDEBD1B8, 0x3DEF251A, 0xBDFE5D4F, 0x3E11E9BF, 0xBE2AAE50, 0x3E4CCEAC, 0xBE7FFFFC, 0x3EAAAAAA)


def log(x: int, *, binary: bool, full: bool = True) -> int:
    if full:
        value = decode(x, "f32")
        if value.kind == "nan" or (value.negative and value.kind == "inf"):
            return NAN
        if value.kind == "inf":
            return INFINITY
        if value.magnitude == 0:
            return MINUS_INFINITY
        if value.negative:
            return NAN
    e = (x >> 23 & 255) - 127 + 1
    m = x & 0x807FFFFF | 126 << 23
    s = _op("sub", m, 0x3F3504F3) >> 31
    e -= s
    m = _op("add", m, _op("add", _op("mul", _float(s), m), 0xBF800000))
    square, p = _op("mul", m, m), LOG[0]
    for each in LOG[1:]:
        p = _fma(p, m, each)
    t = _op("sub", _op("mul", m, _op("mul", square, p)), _op("mul", square, 0x3F000000))
    r = _op("add", _op("mul", t, 0x3EE2A8ED), _op("mul", m, 0x3EE2A8ED))
    for each in (t, m, _float(e)):
        r = _op("add", r, each)
    return r if binary else _op("mul", r, 0x3F317218)
