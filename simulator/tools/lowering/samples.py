"""The codes of a wide format on which a chain is tried, and arithmetic fast enough to try all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, Overflow, Rounding, code_bits
from castsim.numerics.blocks import code_dtype
from castsim.numerics.policy import Policy
from castsim.running.acceptance import converted
from castsim.tools.lowering.steps import ConstantArithmetic

Places = NDArray[np.uint64]


def is_ordered(fmt: Format) -> bool:
    """Return whether the codes of all numbers are ordered as `codes_at` counts them."""
    return isinstance(fmt, IntFormat) or (isinstance(fmt, FloatFormat) and fmt.signed and fmt.has_negative_zero)


def number_count(fmt: Format) -> int:
    """Return the number of codes that represent numbers, including infinities and both zeros."""
    if isinstance(fmt, IntFormat):
        return 1 << fmt.bits
    assert isinstance(fmt, FloatFormat)
    return 2 * (_largest(fmt) + 1)


def codes_at(places: Places, fmt: Format) -> Codes:
    """Return codes by rank: 0 is the lowest value, and minus zero is right before zero."""
    if isinstance(fmt, IntFormat):
        if not fmt.signed:
            return places.astype(code_dtype(fmt))
        codes = places - np.uint64(1 << (fmt.bits - 1))  # modulo 2**64
        mask = np.uint64((1 << code_bits(fmt)) - 1)
        return (codes & mask).astype(code_dtype(fmt))
    assert isinstance(fmt, FloatFormat)
    middle = np.uint64(_largest(fmt) + 1)
    negative = places < middle
    codes = np.where(negative, (middle - np.uint64(1) - places) | np.uint64(fmt.sign_bit), places - middle)
    return codes.astype(code_dtype(fmt))


def distinct(codes: Codes) -> Codes:
    """Return the distinct codes in rising order; `np.unique` would load masked arrays."""
    rising = np.sort(codes, axis=None)
    unique_codes: Codes = rising[np.concatenate((np.ones(min(rising.size, 1), np.bool_), rising[1:] != rising[:-1]))]
    return unique_codes


def nearest_zero_first(codes: Codes, fmt: Format) -> NDArray[np.intp]:
    """Return the order of codes by magnitude, the positive of two first; NaN last."""
    if isinstance(fmt, IntFormat):
        values = codes.astype(np.uint64)
        if not fmt.signed:
            return np.argsort(values, kind="stable")
        left = np.uint64(64 - code_bits(fmt))
        signed = (values << left).view(np.int64) >> left.astype(np.int64)
        magnitude = np.where(signed < 0, np.uint64(0) - signed.view(np.uint64), signed.view(np.uint64))
        return np.lexsort((signed < 0, magnitude))
    sign = np.uint64(fmt.sign_bit)
    wide = codes.astype(np.uint64)
    return np.lexsort(((wide & sign) != 0, wide & ~sign))


def _largest(fmt: FloatFormat) -> int:
    """Return the code of the number of largest magnitude, infinity if there is one."""
    return fmt.max_finite_code if fmt.infinity_code is None else fmt.infinity_code


# Codes on which a wrong chain shows: specials, ends of ranges, ties and their neighbours, spread random codes.

_WIDE = FORMATS["f64"]
_SEED = 20250801


def all_codes(fmt: Format) -> Codes | None:
    """Return every code of a format of up to 16 bits, booleans as 0 and 1; None for wider ones."""
    bits = fmt.bits if isinstance(fmt, IntFormat) and fmt.boolean else code_bits(fmt)
    return np.arange(1 << bits, dtype=code_dtype(fmt)) if bits <= 16 else None


def telling_codes(src: Format, others: Iterable[Format], count: int, seed: int = _SEED) -> Codes:
    """Return distinct codes of `src` at which casts through `others` change, and about `count` random ones.

    A source of up to 8 bits gives all its codes.
    """
    everything = all_codes(src)
    if everything is not None and everything.size <= 1 << 8:
        return everything
    rng = np.random.default_rng(seed)
    parts = [_edges(src), *_near(src, src, rng, count)]
    for fmt in {fmt.name: fmt for fmt in others if fmt.name != src.name}.values():
        parts += _near(fmt, src, rng, count)
    parts.append(_random(src, rng, count))
    codes = distinct(np.concatenate(parts))
    return codes.astype(code_dtype(src))


@cache
def common_codes(src: Format, count: int) -> Codes:
    """Return the codes that `telling_codes` takes of `src` whatever the other formats are, unless they are few."""
    near = _near(src, src, np.random.default_rng(_SEED), count)
    return distinct(np.concatenate((_edges(src), *near))).astype(code_dtype(src))


def _edges(fmt: Format) -> Codes:
    """Return specials, zeros, ends of subnormals and of the range; of integers powers of two and their neighbours."""
    mask = (1 << code_bits(fmt)) - 1
    if isinstance(fmt, IntFormat):
        powers = {sign * (1 << k) + d for k in range(fmt.bits) for sign in (1, -1) for d in (-1, 0, 1)}
        ends = {fmt.minimum, fmt.minimum + 1, fmt.maximum - 1, fmt.maximum}
        values = {value for value in powers | ends if fmt.minimum <= value <= fmt.maximum}
        return np.array(sorted(value & mask for value in values), code_dtype(fmt))
    if not isinstance(fmt, FloatFormat):
        return np.arange(1 << fmt.bits, dtype=code_dtype(fmt))
    normal, largest = 1 << fmt.fraction_bits, fmt.max_finite_code
    positive = {0, 1, 2, normal - 1, normal, normal + 1, largest - 1, largest}
    top = (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1
    specials = range(largest + 1, top + 1) if top - largest < 8 else (largest + 1, largest + 2, top - 1, top)
    positive |= {*specials, *([fmt.nan_code] if fmt.nan_code is not None else [])}
    codes = sorted({code | sign for code in positive for sign in (0, fmt.sign_bit)})
    return np.array(codes, code_dtype(fmt))


def _near(fmt: Format, src: Format, rng: np.random.Generator, count: int) -> list[Codes]:
    """Return codes of the source at numbers of another format and halfway between them, with their neighbours."""
    if not is_ordered(src) or src.bits < 8:
        return []
    codes = distinct(np.concatenate((_edges(fmt), _random(fmt, rng, count))))
    if isinstance(fmt, IntFormat):
        values = codes_to_values(codes, fmt)
        values = np.concatenate((values - 0.5, values + 0.5, values, values + 1))
        centers = converted(values.view(np.uint64), _WIDE, src, _DOWN)
        centers = np.concatenate((centers, converted(codes, fmt, src, _DOWN)))
        return _neighbours(centers, src)
    if isinstance(fmt, FloatFormat) and is_ordered(fmt):
        places = distinct(np.clip(place_of(codes, fmt), 0, number_count(fmt) - 2).astype(np.uint64))
        low, high = (converted(codes_at(p, fmt), fmt, src, _DOWN) for p in (places, places + np.uint64(1)))
        middle = (place_of(low, src) // 2 + place_of(high, src) // 2).astype(np.uint64)
        return [*_neighbours(low, src), *_neighbours(codes_at(middle, src), src)]
    return _neighbours(converted(codes, fmt, src, _DOWN), src)


_DOWN = Policy(Rounding.FLOOR, Overflow.SATURATE)


def codes_to_values(codes: Codes, fmt: IntFormat) -> NDArray[np.float64]:
    """Return integers as float64, rounded if they are wider."""
    numbers: NDArray[np.float64] = converted(codes, fmt, _WIDE, Policy(Rounding.RINT, Overflow.SPECIAL)).view(
        np.float64
    )
    return numbers


def _neighbours(codes: Codes, fmt: Format) -> list[Codes]:
    """Return codes with those up to two places away."""
    places, last = place_of(codes, fmt), number_count(fmt) - 1
    if fmt.storage_bits >= 64:
        steps = [places + np.uint64(d) for d in (0, 1, 2)] + [places - np.uint64(d) for d in (1, 2)]
        return [codes_at(np.minimum(step, np.uint64(last)), fmt) for step in steps]
    signed = places.astype(np.int64)
    return [codes_at(np.clip(signed + d, 0, last).astype(np.uint64), fmt) for d in (-2, -1, 0, 1, 2)]


def place_of(codes: Codes, fmt: Format) -> NDArray[np.uint64]:
    """Return the rank of codes in the order of values; NaN counts as the end of its sign."""
    wide = codes.astype(np.uint64)
    if isinstance(fmt, IntFormat):
        if not fmt.signed:
            return wide
        places: NDArray[np.uint64] = (wide + np.uint64(1 << (fmt.bits - 1))) & np.uint64((1 << fmt.bits) - 1)
        return places
    assert isinstance(fmt, FloatFormat)
    sign = np.uint64(fmt.sign_bit)
    half = number_count(fmt) // 2
    magnitude = np.minimum(wide & ~sign, np.uint64(half - 1))
    ranks: NDArray[np.uint64] = np.where(
        (wide & sign) != 0, np.uint64(half - 1) - magnitude, magnitude + np.uint64(half)
    )
    return ranks


def _random(fmt: Format, rng: np.random.Generator, count: int) -> Codes:
    """Return random codes, half of them integers of every length or floats of moderate exponents."""
    bits = 1 if isinstance(fmt, IntFormat) and fmt.boolean else code_bits(fmt)
    words = rng.integers(0, (1 << bits) - 1, count, dtype=np.uint64, endpoint=True)
    if isinstance(fmt, IntFormat):
        shifts = rng.integers(0, bits, count).astype(np.uint64)
        small = words >> shifts
        flip = rng.integers(0, 2, count).astype(bool) & fmt.signed
        mask = np.uint64((1 << fmt.storage_bits) - 1)
        small = np.where(flip, (np.uint64(0) - small) & mask, small)
        if fmt.signed and fmt.bits < fmt.storage_bits and code_bits(fmt) == fmt.bits:
            small &= np.uint64((1 << fmt.bits) - 1)
        drawn = np.concatenate((words, small))
    elif isinstance(fmt, FloatFormat):
        reach = min(40, (1 << fmt.exponent_bits) // 2 - 1)
        exponents = rng.integers(max(0, fmt.bias - reach), min(fmt.exponent_mask, fmt.bias + reach) + 1, count)
        field = np.uint64(fmt.exponent_mask << fmt.fraction_bits)
        moderate = (words & ~field) | (exponents.astype(np.uint64) << np.uint64(fmt.fraction_bits))
        drawn = np.concatenate((words, moderate))
    else:
        drawn = words
    return drawn.astype(code_dtype(fmt))


# Arithmetic with a constant at the speed of machine code, for trying billions of codes.
#
# Up to 16 bits a table holds what the machine model gives for every code, so nothing is left to prove. For 32 bits a
# NumPy function stands in for the instruction: one that gives the very codes of the machine model on the edges of the
# format and on thousands of random codes. That is a guess until all codes were tried: `castsim verify
# --substitutions` does so, and the record that is shipped says for which instructions, constants and facts of a
# target it has been done.

Function = Callable[[Codes], Codes]

RECORD = Path(__file__).parent / "records" / "substitutions.json"
"""The shipped record of substitutions that were tried on all codes."""

_TRIED = 1 << 12
_NARROW = 16
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a substitution that a proof refers to.

    `name` contains the target and the instruction with its operands, `facts` is the digest of the facts that its values
    depend on, `shape` names the substitute function.
    """

    name: str
    format: str
    constant: int | None
    facts: str
    shape: str


@dataclass(frozen=True, slots=True)
class Substitute:
    """A function that replaces an instruction.

    `samples` is the number of codes on which it agrees; `proven` tells that it agrees on all.
    """

    primitive: ConstantArithmetic
    shape: str
    run: Function
    samples: int
    proven: bool

    @property
    def identity(self) -> Identity:
        """The identity that a proof of it must have."""
        return identity_of(self.primitive, self.shape)


def identity_of(primitive: ConstantArithmetic, shape: str) -> Identity:
    """Return the identity of a proof that a shape is equal to a primitive."""
    return Identity(primitive.name, primitive.src.name, primitive.constant, primitive.facts, shape)


def substitute_of(primitive: ConstantArithmetic) -> Substitute | None:
    """Return a fast function that agrees with a primitive on the codes of its format, None if there is none."""
    fmt = primitive.src
    if fmt.storage_bits <= _NARROW:
        everything = np.arange(1 << fmt.storage_bits, dtype=code_dtype(fmt))
        return Substitute(primitive, "table", primitive.run(everything).take, everything.size, proven=True)
    if primitive.constant is None or fmt.storage_bits != 32:
        return None
    codes = telling_codes(fmt, (), _TRIED)
    expected = primitive.run(codes)
    for shape, run in shapes(primitive.constant, fmt):
        if np.array_equal(run(codes), expected):
            proven = identity_of(primitive, shape) in recorded()
            return Substitute(primitive, shape, run, codes.size, proven)
    return None


def disagreeing(substitute: Substitute, start: int, stop: int) -> Codes:
    """Return the 32-bit codes from `start` to `stop - 1` on which a substitute differs from its primitive.

    Results are compared bit by bit.
    """
    pieces = [np.zeros(0, np.uint32)]
    for first in range(start, stop, _BLOCK):
        codes = np.arange(first, min(first + _BLOCK, stop), dtype=np.uint32)
        results, expected = substitute.run(codes), substitute.primitive.run(codes)
        if not np.array_equal(results, expected):
            pieces.append(codes[results != expected])
    return np.concatenate(pieces)


@cache
def recorded() -> frozenset[Identity]:
    """Return the substitutions in the shipped record without a mismatch on all codes."""
    if not RECORD.is_file():
        return frozenset()
    parts = json.loads(RECORD.read_text(encoding="utf-8"))["parts"]
    return frozenset(
        Identity(part["name"], part["format"], part["constant"], part["facts"], part["shape"])
        for part in parts
        if part["tried"] == part["codes"] and not part["mismatches"]
    )


def shapes(constant: int, fmt: Format) -> Iterator[tuple[str, Function]]:
    """Yield the possible effects of an instruction with a constant on 32-bit codes, by name."""
    raw = np.dtype(f"u{fmt.storage_bits // 8}")
    code = np.array(constant & ((1 << fmt.storage_bits) - 1), raw)
    native = raw
    if isinstance(fmt, FloatFormat):
        native = np.dtype(f"f{fmt.storage_bits // 8}")
    elif isinstance(fmt, IntFormat) and fmt.signed:
        native = np.dtype(f"i{fmt.storage_bits // 8}")
    number = code.view(native)
    for compare in (np.greater_equal, np.less_equal, np.greater, np.less):
        yield from _extremes(compare, number, code, fmt)
    if isinstance(fmt, FloatFormat):
        yield from _sums(number, code, fmt)
    yield "constant unless zero", lambda codes: np.where(codes.view(native) != 0, code, raw.type(0))
    yield "constant unless a zero, kept", lambda codes: np.where(codes.view(native) == 0, codes, code)
    yield "sum modulo 2**32", lambda codes: codes + code
    yield "and", lambda codes: codes & code
    amount = constant & 0xFF
    if 0 < amount < fmt.storage_bits:
        yield "shift left", lambda codes: codes << raw.type(amount)
        yield "shift right", lambda codes: codes >> raw.type(amount)
    back = -constant & 0xFF
    if 0 < back < fmt.storage_bits:
        yield "shift right of the number", lambda codes: (codes.view(native) >> native.type(back)).view(raw)


def _extremes(compare: Callable[..., Any], number: Codes, code: Codes, fmt: Format) -> Iterator[tuple[str, Function]]:
    """Yield the choice of the operand for which a comparison holds, and the same with NaN made canonical."""
    native, name = number.dtype, compare.__name__.replace("_", " ")
    yield f"kept where {name}", lambda codes: np.where(compare(codes.view(native), number), codes, code)
    if not isinstance(fmt, FloatFormat) or fmt.nan_code is None:
        return
    nan = np.array(fmt.nan_code, code.dtype)

    def with_nan(codes: Codes) -> Codes:
        values = codes.view(native)
        return np.where(values != values, nan, np.where(compare(values, number), codes, code))  # noqa: PLR0124

    yield f"kept where {name}, canonical NaN", with_nan


def _sums(number: Codes, code: Codes, fmt: FloatFormat) -> Iterator[tuple[str, Function]]:
    """Yield the sum rounded to nearest, ties to even, and the same with NaN as the canonical one or all ones."""
    raw, native = code.dtype, number.dtype

    def rounded(codes: Codes) -> Codes:
        with np.errstate(all="ignore"):
            total: Codes = (codes.view(native) + number).view(raw)
        return total

    def with_nan(nan: int) -> Function:
        def replaced(codes: Codes) -> Codes:
            values = codes.view(native)
            return np.where(values != values, raw.type(nan), rounded(codes))  # noqa: PLR0124

        return replaced

    yield "sum", rounded
    if fmt.nan_code is not None:
        yield "sum, canonical NaN", with_nan(fmt.nan_code)
        yield "sum, NaN of all ones", with_nan(fmt.sign_bit - 1)
