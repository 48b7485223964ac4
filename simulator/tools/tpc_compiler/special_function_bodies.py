"""The vendor's float functions as sequences of instructions (docs/reference/tpc.md section 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from struct import pack, unpack

from castsim.isa.dataclass import dataclass, field
from castsim.isa.tpc.forms import Feature
from castsim.isa.tpc.program import Slot
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_compiler.code_generation import Sequence, SequenceRegister

# What the vendor's float functions are built from: polynomials, a step of a look-up table, exponents apart.
#
# Source: docs/reference/tpc.md section 3.1 (algorithms, constants, order of operations, instruction counts). Where
# that names an operation without its operands, in selects of special cases above all, they are inferred.

SIGN, MAGNITUDE, EXPONENT = 0x80000000, 0x7FFFFFFF, 0x7F800000
INFINITY, MINUS_INFINITY, NAN = 0x7F800000, 0xFF800000, 0x7FFFFFFF
ONE, HALF, MINUS_ONE, MINUS_HALF, TWO = 0x3F800000, 0x3F000000, 0xBF800000, 0xBF000000, 0x40000000
_SMALLEST_NORMAL = 0x00800000
_FRACTION_BITS = 23


def bits(number: float) -> int:
    """Return the code of the f32 nearest to a number."""
    return int(unpack("<I", pack("<f", number))[0])


@dataclass(slots=True)
class SequenceWriter:
    """Appends instructions to a sequence; `tables` collects the names of the look-up tables that they read."""

    target: VliwTarget
    functions: dict[str, int]
    """Function ids of the generation by table."""
    sequence: Sequence = field(default_factory=Sequence)
    tables: list[str] = field(default_factory=list)

    def do(self, head: str, *operands: SequenceRegister | int) -> SequenceRegister:
        """Append an instruction of the vector slot with a new result."""
        result = self.sequence.vector()
        self.sequence.vpu(head, result, *operands)
        return result

    def mask(self, head: str, *operands: SequenceRegister | int) -> SequenceRegister:
        """Append a compare with a new predicate."""
        result = self.sequence.mask()
        self.sequence.vpu(head, result, *operands)
        return result

    def change(
        self,
        head: str,
        value: SequenceRegister,
        *operands: SequenceRegister | int,
        where: SequenceRegister,
        inverted: bool = False,
    ) -> None:
        """Append an instruction that replaces a value in some lanes."""
        self.sequence.vpu(head, value, *operands, where=where, inverted=inverted)

    def select(
        self,
        head: str,
        a: SequenceRegister,
        b: SequenceRegister | int,
        then: SequenceRegister | int,
        other: SequenceRegister | int,
    ) -> SequenceRegister:
        """Append a select: `then` where the condition on a and b is true; constants except one immediate are loaded."""
        loaded = [self.constant(operand) if isinstance(operand, int) else operand for operand in (then, other)]
        return self.do(head, a, b, *loaded)

    def constant(self, code: int) -> SequenceRegister:
        """Return a register with a code in every lane, filled in the LOAD slot."""
        return self.sequence.broadcast(code, "f32")

    def fma(
        self, start: SequenceRegister | int, a: SequenceRegister, b: SequenceRegister | int, *, negative: bool = False
    ) -> SequenceRegister:
        """Return start + a * b, or start - a * b, in a new register that the LOAD slot fills with start."""
        total = self.constant(start) if isinstance(start, int) else self.sequence.copy(start)
        self.sequence.vpu(f"mac.f32{' neg' if negative else ''}", total, a, b)
        return total

    def horner(self, x: SequenceRegister, coefficients: Items[int]) -> SequenceRegister:
        """Return a polynomial, highest power first, one MAC per step."""
        total = self.constant(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self.fma(coefficient, total, x)
        return total

    # --------------------------------------------------------------------------------------------------- exponents

    def exponent(self, x: SequenceRegister) -> SequenceRegister:
        """Return exponents minus the bias, as integers."""
        biased = Feature.BIASED_EXPONENT in self.target.dialect.features
        return self.do("extract_exp.f32" if biased else "extract_exp.f32 subtract_bias", x)

    # ------------------------------------------------------------------------------------------------------ tables

    def table_step(
        self,
        x: SequenceRegister,
        table: str,
        binade_bits: int,
        variant: str = "",
        offset: SequenceRegister | None = None,
    ) -> SequenceRegister:
        """Return c0 + v (c1 + v c2), v from the start of the interval; `offset` is added to the entry where it is true.

        Each binade has 2 ** binade_bits intervals.
        """
        if table not in self.tables:
            self.tables.append(table)
        entry = self.sequence.vector(2)
        head = " ".join(filter(None, ("get_lut_entry_and_interval_start.f32", variant)))
        self.sequence.vpu(head, entry, x, _FRACTION_BITS - binade_bits)
        if offset is not None:
            self.change("add.i32", entry[0], entry[0], 1 << binade_bits, where=offset)
        away = self.do("sub.f32", x, entry[1])
        later = Feature.TYPED_LOOKUP in self.target.dialect.features
        first, second = ("lookup_1c", "lookup_2c") if later else ("lookup_c0", "lookup_c1c2")
        c0, others = self.sequence.vector(), self.sequence.vector(2)
        function = self.functions[table]
        self.sequence.add(Slot.LOAD, f"{second} BV32", others, entry[0], function)
        self.sequence.add(Slot.LOAD, f"{first} BV32", c0, entry[0], function)
        self.sequence.vpu("mac.f32", others[0], others[1], away)
        self.sequence.vpu("mac.f32", c0, others[0], away)
        return c0


def reciprocal_fast(w: SequenceWriter, x: SequenceRegister) -> SequenceRegister:
    """Append 1 / x: significand by table, exponent by integers."""
    return _reciprocal(w, x)[0]


def _reciprocal(w: SequenceWriter, x: SequenceRegister) -> tuple[SequenceRegister, SequenceRegister]:
    m = w.do("form_fp_num.f32 force_sign0", ONE, x, x)
    r = w.table_step(m, "rcp", 7)
    of_r, of_x = w.do("and.i32", r, EXPONENT), w.do("and.i32", x, EXPONENT)
    away = w.do("sub.i32", of_r, of_x)
    y = w.do("form_fp_num.f32 exp_add_bias", away, x, r)
    y = w.select("sel_less.i32", of_x, _SMALLEST_NORMAL, INFINITY, y)
    return w.select("sel_leq.i32", away, -ONE & 0xFFFFFFFF, 0, y), of_x


def reciprocal(w: SequenceWriter, x: SequenceRegister) -> SequenceRegister:
    """Append 1 / x with the results of special operands."""
    y, of_x = _reciprocal(w, x)
    y = w.select("sel_less.i32", of_x, _SMALLEST_NORMAL, INFINITY, y)
    y = w.do("form_fp_num.f32", y, x, y)
    y = w.select("sel_grt.i32", x, INFINITY, NAN, y)
    return w.select("sel_grt.u32", x, MINUS_INFINITY, NAN, y)


def _halved(
    w: SequenceWriter, x: SequenceRegister, table: str, binade_bits: int
) -> tuple[SequenceRegister, SequenceRegister]:
    """Append a table step of the significand with the parity of the exponent; return it and half the even exponent."""
    e = w.exponent(x)
    parity = w.do("and.i32", e, 1)
    even = w.do("sub.i32", e, parity)
    m = w.do("form_fp_num.f32 exp_add_bias force_sign0 exp_is_num", parity, x, x)
    r = w.table_step(m, table, binade_bits, "sqrt_rsqrt")
    return r, w.do("shl.i32", even, _FRACTION_BITS - 1)


def rsqrt(w: SequenceWriter, x: SequenceRegister, *, full: bool) -> SequenceRegister:
    """Append 1 / sqrt(x); `full` includes the results of special operands."""
    r, half = _halved(w, x, "rsqrt", 7)
    y = w.do("sub.i32", r, half)
    y = w.select("sel_less.i32", w.do("and.i32", x, EXPONENT), _SMALLEST_NORMAL, INFINITY, y)
    if not full:
        return y
    y = w.select("sel_grt.u32", x, INFINITY, NAN, y)
    y = w.select("sel_eq.f32", x, 0, INFINITY, y)
    y = w.select("sel_eq.i32", x, SIGN, MINUS_INFINITY, y)
    return w.select("sel_eq.i32", x, INFINITY, 0, y)


def sqrt(w: SequenceWriter, x: SequenceRegister, *, full: bool = True) -> SequenceRegister:
    """Append the square root: significand and parity of the exponent by table, half the exponent by integers."""
    r, half = _halved(w, x, "sqrt", 6)
    y = w.do("add.i32", r, half)
    y = w.select("sel_less.f32", x, 0, NAN, y)
    y = w.select("sel_eq.i32", w.do("and.i32", x, EXPONENT), 0, 0, y)
    if not full:
        return y
    y = w.select("sel_eq.f32", x, 0, x, y)
    y = w.select("sel_eq.f32", x, INFINITY, INFINITY, y)
    return w.select("sel_grt.i32", x, INFINITY, NAN, y)


_LOG = (*(0x3D9021BB, 0xBDEBD1B8, 0x3DEF251A, 0xBDFE5D4F, 0x3E11E9BF, 0xBE2AAE50, 0x3E4CCEAC, 0xBE7FFFFC, 0x3EAAAAAA),)
_INVERSE_ROOT, _REST_OF_LOG2E, _LN2 = 0x3F3504F3, 0x3EE2A8ED, 0x3F317218


def log2(w: SequenceWriter, x: SequenceRegister, *, full: bool, natural: bool = False) -> SequenceRegister:
    """Append the binary or natural logarithm; `full` includes the results of special operands."""
    e = w.do("add.i32", w.exponent(x), 1)
    m = w.do("form_fp_num.f32", HALF, x, x)
    below = w.do("shr.i32", w.do("sub.f32", m, _INVERSE_ROOT), 31)
    exponent = w.do("convert.i32 target_type=fp32 rhne", w.do("sub.i32", e, below))
    more = w.do("mul.f32", w.do("convert.i32 target_type=fp32 rhne", below), m)
    m = w.do("add.f32", m, w.do("add.f32", more, MINUS_ONE))
    square = w.do("mul.f32", m, m)
    t = w.do("mul.f32", m, w.do("mul.f32", square, w.horner(m, _LOG)))
    t = w.do("add.f32", t, w.do("mul.f32", square, MINUS_HALF))
    r = w.do("mul.f32", t, _REST_OF_LOG2E)
    r = w.do("add.f32", r, w.do("mul.f32", m, _REST_OF_LOG2E))
    for term in (t, m, exponent):
        r = w.do("add.f32", r, term)
    if natural:
        r = w.do("mul.f32", r, _LN2)
    if not full:
        return r
    r = w.select("sel_less.f32", x, 0, NAN, r)
    r = w.select("sel_grt.u32", x, INFINITY, NAN, r)
    r = w.select("sel_eq.f32", x, 0, MINUS_INFINITY, r)
    return w.select("sel_eq.f32", x, INFINITY, INFINITY, r)


_LOG2E, _LN2_HIGH, _LN2_LOW = 0x3FB8AA3B, 0x3F318000, 0xB95E8083
_EXP = (0x39506967, 0x3AB743CE, 0x3C088908, 0x3D2AA9C1, 0x3E2AAAAA, HALF)
_LOWEST, _HIGHEST = 0xC2AEAC08, 0x42B171AA


def exp_cephes(w: SequenceWriter, x: SequenceRegister, *, full: bool) -> SequenceRegister:
    """Append the exponential function; `full` includes the results of special operands."""
    z = w.do("nearbyint.f32 rd", w.fma(HALF, x, _LOG2E))
    r = w.fma(x, z, _LN2_HIGH, negative=True)
    w.sequence.vpu("mac.f32 neg", r, z, _LN2_LOW)
    square = w.do("mul.f32", r, r)
    y = w.do("add.f32", r, ONE)
    w.sequence.vpu("mac.f32", y, w.horner(r, _EXP), square)
    power = w.do("shl.i32", w.do("convert.f32 target_type=int32 rhne", z), _FRACTION_BITS)
    y = w.do("add.i32", y, power)
    if not full:
        return y
    y = w.select("sel_leq.f32", x, _LOWEST, 0, y)
    y = w.select("sel_geq.f32", x, _HIGHEST, INFINITY, y)
    return w.select("sel_grt.i32", w.do("and.i32", x, MAGNITUDE), INFINITY, x, y)


def _power_of(w: SequenceWriter, m: SequenceRegister, whole: SequenceRegister) -> SequenceRegister:
    """Append a power of two: of m - 1 with m in [1, 2) by table, of an integer as the exponent."""
    r = w.table_step(m, "pow2", 6)
    power = w.do("convert.f32 target_type=int32 rhne", whole)
    return w.do("form_fp_num.f32 exp_add_bias force_sign0 exp_is_num", power, r, r)


_EXP_LOWEST, _EXP_HIGHEST = 0xC2AEAC50, 0x42B17218


def exp(w: SequenceWriter, x: SequenceRegister, *, full: bool) -> SequenceRegister:
    """Append the exponential function by table; `full` includes the results of special operands."""
    z = w.do("nearbyint.f32 rd", w.do("mul.f32", x, _LOG2E))
    r = w.fma(x, z, _LN2_HIGH, negative=True)
    w.sequence.vpu("mac.f32 neg", r, z, _LN2_LOW)
    y = _power_of(w, w.fma(ONE, r, _LOG2E), z)
    if not full:
        return y
    y = w.select("sel_leq.f32", x, _EXP_LOWEST, 0, y)
    y = w.select("sel_geq.f32", x, _EXP_HIGHEST, INFINITY, y)
    return w.select("sel_grt.i32", w.do("and.i32", x, MAGNITUDE), INFINITY, x, y)


def pow2(w: SequenceWriter, x: SequenceRegister, *, full: bool = True) -> SequenceRegister:
    """Append 2 ** x: the fraction in [1, 2) by table, the integer as the exponent."""
    low = w.do("max.f32", w.do("min.f32", x, bits(128.0)), bits(-127.0))
    whole = w.do("nearbyint.f32 rd", low)
    y = _power_of(w, w.do("add.f32", w.do("sub.f32", low, whole), ONE), whole)
    if not full:
        return y
    y = w.select("sel_geq.f32", x, bits(128.0), INFINITY, y)
    y = w.select("sel_less.f32", x, bits(-126.0), 0, y)
    return w.select("sel_grt.i32", w.do("and.i32", x, MAGNITUDE), INFINITY, x, y)


Build = Callable[[SequenceWriter, tuple[SequenceRegister, ...]], SequenceRegister]
"""Appends a function of vectors and returns its result."""

_PI, _HALF_PI, _FOUR_BY_PI = 0x40490FDB, 0x3FC90FDB, 0x3FA2F983
_MINUS_TWO = 0xC0000000
_ASIN = (0x3D2CB352, 0x3CC617E3, 0x3D3A3EC7, 0x3D9980F6, 0x3E2AAAE4)
_TINY = bits(1e-4)


def _asin(w: SequenceWriter, x: SequenceRegister) -> SequenceRegister:
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


def _acos(w: SequenceWriter, x: SequenceRegister) -> SequenceRegister:
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


def _asinh(w: SequenceWriter, x: SequenceRegister) -> SequenceRegister:
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


def _sin_cos(w: SequenceWriter, x: SequenceRegister, *, sine: bool) -> SequenceRegister:
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


def _tan(w: SequenceWriter, x: SequenceRegister) -> SequenceRegister:
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


def _tanh(w: SequenceWriter, x: SequenceRegister, *, full: bool) -> SequenceRegister:
    """Append tanh: a table up to 8, below 1 as a factor of |x|; constants beyond; the sign by FORM_FP_NUM.

    `full` with NaN.
    """
    size = w.do("and.i32", x, MAGNITUDE)
    r = w.table_step(size, "tanh", 6, "tanh")
    w.change("mul.f32", r, r, size, where=w.mask("cmp_less.i32", w.exponent(x), 0))
    r = w.select("sel_less.f32", size, _EIGHT, r, _ALMOST_ONE)
    r = w.select("sel_geq.f32", size, _NINE, ONE, r)
    y = w.do("form_fp_num.f32", r, x, r)
    return w.select("sel_grt.i32", size, INFINITY, NAN, y) if full else y


def _pow(w: SequenceWriter, x: SequenceRegister, y: SequenceRegister) -> SequenceRegister:
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
    "v_asin_cephes_f32": lambda w, given: _asin(w, given[0]),
    "v_asinh_f32": lambda w, given: _asinh(w, given[0]),
    "v_cos_f32": lambda w, given: _sin_cos(w, given[0], sine=False),
    "v_div_f32": lambda w, given: w.do("mul.f32", given[0], reciprocal(w, given[1])),
    "v_div_fast_f32": lambda w, given: w.do("mul.f32", given[0], reciprocal_fast(w, given[1])),
    "v_exp_cephes_f32": lambda w, given: exp_cephes(w, given[0], full=True),
    "v_exp_cephes_fast_f32": lambda w, given: exp_cephes(w, given[0], full=False),
    "v_exp_f32": lambda w, given: exp(w, given[0], full=True),
    "v_exp_fast_f32": lambda w, given: exp(w, given[0], full=False),
    "v_log2_f32": lambda w, given: log2(w, given[0], full=True),
    "v_log2_fast_f32": lambda w, given: log2(w, given[0], full=False),
    "v_log_f32": lambda w, given: log2(w, given[0], full=True, natural=True),
    "v_log_fast_f32": lambda w, given: log2(w, given[0], full=False, natural=True),
    "v_pow2_f32": lambda w, given: pow2(w, given[0]),
    "v_pow2_fast_f32": lambda w, given: pow2(w, given[0], full=False),
    "v_pow_f32": lambda w, given: _pow(w, *given),
    "v_reciprocal_f32": lambda w, given: reciprocal(w, given[0]),
    "v_reciprocal_fast_f32": lambda w, given: reciprocal_fast(w, given[0]),
    "v_rsqrt_f32": lambda w, given: rsqrt(w, given[0], full=True),
    "v_rsqrt_fast_f32": lambda w, given: rsqrt(w, given[0], full=False),
    "v_sin_f32": lambda w, given: _sin_cos(w, given[0], sine=True),
    "v_sqrt_f32": lambda w, given: sqrt(w, given[0]),
    "v_sqrt_fast_f32": lambda w, given: sqrt(w, given[0], full=False),
    "v_tan_cephes_f32": lambda w, given: _tan(w, given[0]),
    "v_tanh_f32": lambda w, given: _tanh(w, given[0], full=True),
    "v_tanh_fast_f32": lambda w, given: _tanh(w, given[0], full=False),
}
"""The builders of the functions of vectors, by the vendor's names."""

OPERANDS: Mapping[str, tuple[str, ...]] = dict.fromkeys(("v_pow_f32", "v_div_f32", "v_div_fast_f32"), ("x", "y"))
"""The operands of functions with more than x."""
