"""Comparison of a user's conversion with a cast: where results differ, by how much, and on which inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, IllegalError, ReadError, arguments_checked
from castsim.isa.formats import (
    FORMATS,
    Codes,
    Format,
    IntFormat,
    Overflow,
    Rounding,
    TaperedFormat,
    code_bits,
    format_named,
)
from castsim.machines.casting import cast, format_given
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import (
    FormatLike,
    array_from_codes,
    codes_from_array,
    decode_to_float64,
    format_name,
    is_codes,
    native_dtype,
    value_of,
)
from castsim.reports.documents import CommandDocument, Keys, apart, derived, record, says
from castsim.reports.numbers import bits_text, json_value
from castsim.reports.schemas.keys import Bits, Elements, FormatName, Name, Ulps, Value
from castsim.targets.description import watched
from castsim.targets.loader import Target, load_target
from castsim.tools.verify.inputs import Exhaustive, Samples

Conversion = Callable[[Codes], ArrayLike]
"""Function from numbers in the native dtype of the source (or codes if there is none) to as many results."""

EXHAUSTIVE_BITS = 16
"""Maximum bits of a source that is tried on all codes, and of a result whose boundaries are all tried."""

SAMPLES = 1 << 16
"""Number of random codes of a wider source, every second one near a boundary between results."""

_I64 = NDArray[np.int64]
_UNREPEATABLE = ("stochastic", "hybrid")


@dataclass(frozen=True, slots=True)
class ConversionCounterexample:
    """An input whose result differs, all as codes; if the destination lacks the number, `given` is None and `number` is
    its text.
    """

    position: int
    code: int
    expected: int
    given: int | None
    number: float


@record
class FirstDifference(Keys):
    """The first input, in order, whose result differs."""

    position: int = says("Position of the input, from 0.")
    input_bits: Bits = says("Its code.")
    input: Value = says("Its number, or `nan`, `inf`, `-inf`.")
    expected_bits: Bits = says("The code of the cast's result.")
    expected: Value = says("Its number.")
    given_bits: Bits | None = says("The given code; null if the destination has no such number.")
    given: Value = says("The given number.")


def _first_difference(comparison: Comparison) -> FirstDifference | None:
    first, src, dst = comparison.first, comparison.src, comparison.dst
    if first is None:
        return None
    return FirstDifference(
        position=first.position,
        input_bits=bits_text(first.code, src),
        input=json_value(value_of(first.code, src), src),
        expected_bits=bits_text(first.expected, dst),
        expected=json_value(value_of(first.expected, dst), dst),
        given_bits=None if first.given is None else bits_text(first.given, dst),
        given=json_value(first.number, FORMATS["f64"]),
    )


@record
class DifferingBinade(Keys):
    """Inputs of one binade, some of whose results differ."""

    kind: Literal["number", "zero", "infinite", "nan"] = says("Kind of the inputs.")
    exponent: int | None = says(
        "Exponent of 2 of the smallest magnitude in the range, which ends below twice that; null unless numbers."
    )
    inputs: Elements = says("Number of inputs of that magnitude.")
    differing: Elements = says("Number of these inputs with different results.")
    largest_ulps: Ulps = says("The largest distance between their results.")


@record
class Comparison(CommandDocument, name="compare", version=2, title="Compare"):
    """A user's conversion compared with a cast."""

    src: FormatName = says("Format of the inputs.")
    dst: FormatName = says("Format of the results.")
    target: str | None = says("The chip with the cast; null for the abstract cast.")
    inputs: Elements = says("Number of compared inputs.")
    all_codes: bool = says("Whether these are all codes of the source.")
    differing: Elements = says("Number of results that differ.")
    unrepresentable: Elements = says("Number of results that the destination lacks.")
    largest_ulps: Ulps = says("The largest distance between results that are both numbers.")
    mean_ulps: float = says("The mean distance between results that are both numbers, in ulps.")
    signal_to_noise_db: float | None
    """Signal-to-noise ratio of finite results against the inputs, in decibels; null without an error."""
    cast_signal_to_noise_db: float | None = says("The signal-to-noise ratio of the cast.")
    first: ConversionCounterexample | None = apart()
    """The first input with another result; None if all are equal."""
    first_difference: FirstDifference | None = derived(
        "The first difference; null if there is none.", _first_difference, key="first"
    )
    binades: tuple[DifferingBinade, ...] = says("Magnitudes with differences, in ascending order.")
    verdict: str = says("A sentence with the number and place of the differences, and the results of both there.")
    remedy: Mapping[Name, str] | None = says("Options of the cast that make all results equal; null if there are none.")

    @property
    def equal(self) -> bool:
        """Whether all results are equal."""
        return self.differing == 0

    def __repr__(self) -> str:
        verdict = "equal" if self.equal else f"{self.differing:,} differ"
        return f"<Comparison {self.src.name} -> {self.dst.name}, {self.inputs:,} inputs: {verdict}>"


@arguments_checked
def compare(
    x: ArrayLike | None,
    given: ArrayLike | Conversion,
    src: FormatLike,
    dst: FormatLike,
    *,
    target: str | Path | Target | None = None,
    rounding: str | None = None,
    overflow: str | None = None,
    saturation: str | None = None,
    scratch: bool = False,
    form: str | None = None,
    options: Mapping[str, int | str] | None = None,
    nan: str = "any",
    samples: int = SAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare a conversion with a cast, bit by bit.

        compare(None, pack_fp8, "f32", "e4m3fn"), compare(x, y, "f32", "bf16", target="a5")

    Args:
        x: elements to convert, of any shape, as for `cast`; None, with a function: all codes of a source of up
            to 16 bits, otherwise every number of a result of up to 16 bits, every midpoint, their neighbours, and
            random codes.
        given: a function of an array, or the results for `x`: numbers in the native dtype of `dst`, its codes, or
            numbers of another dtype that stand for them.
        src, dst: formats, as for `cast`.
        target, rounding, overflow, saturation, scratch, form, options: the cast, as for `cast`; none draws at random.
        nan: any: all NaNs are equal; bits: their codes must match.
        samples, seed: number and seed of random codes.

    Returns:
        Number of differing results, the first one, distances in ulps, and magnitudes.

    Raises:
        ReadError: results are missing or of another shape, a format or word is unknown, or results have no inputs.
        IllegalError: the cast does not exist, or its results are drawn at random.
    """
    if rounding is not None and rounding.lower() in _UNREPEATABLE:
        raise IllegalError(f"{rounding} rounding is random, so results cannot be compared")
    if nan not in ("any", "bits"):
        raise ReadError(f"nan '{nan}' is not a way to compare NaN", legal=("any", "bits"))
    source, destination = (format_given(given_format) for given_format in (src, dst))
    if x is None and not callable(given):
        raise ReadError("results need the inputs they were computed from", legal=("compare(x, y, ...)", "a function"))
    codes = tried(source, destination, samples, seed) if x is None else _codes(x, source)
    numbers = array_from_codes(codes, source)
    chip = None if target is None else load_target(target)
    read: set[str] = set()

    def expected_with(**words: object) -> Codes:
        """Return the codes that the cast gives, with some options changed."""
        usual = {"rounding": rounding, "overflow": overflow, "saturation": saturation, "options": options, **words}
        seen = None if chip is None else watched(chip, read)
        results = cast(numbers, source.name, destination.name, target=seen, scratch=scratch, form=form, **usual)  # type: ignore[arg-type]
        return codes_from_array(np.asarray(results), destination).reshape(-1)

    expected = expected_with()
    results = np.asarray(given(numbers.copy()) if callable(given) else given)
    if results.shape != codes.shape:
        message = f"results of shape {results.shape} for inputs of shape {codes.shape}"
        raise ReadError(message, legal=(str(codes.shape),))
    name = None if chip is None else chip.name
    whole = x is None and code_bits(source) <= EXHAUSTIVE_BITS
    codes = codes.reshape(-1)
    result_codes, values, representable = _results(results.reshape(-1), destination)
    inputs, wanted = decode_to_float64(codes, source), decode_to_float64(expected, destination)

    def differing_from(other: Codes, any_nan: bool) -> NDArray[np.bool_]:
        """Return which results are not those codes."""
        differ: NDArray[np.bool_] = (result_codes != other) | ~representable
        return differ & ~(np.isnan(decode_to_float64(other, destination)) & np.isnan(values)) if any_nan else differ

    differs = differing_from(expected, nan == "any")

    def equal_with(words: Mapping[str, str]) -> bool:
        """Return whether all results are those of the cast with some options changed."""
        asked: dict[str, object] = {word: value for word, value in words.items() if word in CAST_WORDS}
        if chosen := {word: value for word, value in words.items() if word not in (*CAST_WORDS, "nan")}:
            asked["options"] = {**(options or {}), **chosen}
        try:
            return not differing_from(expected_with(**asked), words.get("nan", nan) == "any").any()
        except CastsimError:
            return False

    tries = _alternatives(chip, read, nan) if differs.any() and representable.all() else iter(())
    remedy = next((words for words in tries if equal_with(words)), None)
    ulps = np.zeros(codes.shape, np.int64)
    both = ~np.isnan(wanted) & ~np.isnan(values)
    apart = differs & both
    ulps[apart] = np.abs(places(result_codes[apart], destination) - places(expected[apart], destination))
    first = None
    if differs.any():
        at = int(np.argmax(differs))
        code = int(result_codes[at]) if representable[at] else None
        first = ConversionCounterexample(at, int(codes[at]), int(expected[at]), code, float(values[at]))
    return Comparison(
        src=source,
        dst=destination,
        target=name,
        inputs=codes.size,
        all_codes=whole,
        differing=int(differs.sum()),
        unrepresentable=int((~representable).sum()),
        largest_ulps=int(ulps.max(initial=0)),
        mean_ulps=float(ulps[both].mean()) if both.any() else 0.0,
        signal_to_noise_db=_signal_to_noise(inputs, values),
        cast_signal_to_noise_db=_signal_to_noise(inputs, wanted),
        first=first,
        binades=tuple(_binades(inputs, differs, ulps)),
        verdict=_verdict(inputs, values, wanted, differs, int(ulps.max(initial=0))),
        remedy=remedy,
    )


CAST_WORDS = ("rounding", "overflow", "saturation")
"""Options of every cast; all others are target options, except `nan`, which controls the comparison."""


def _alternatives(chip: Target | None, read: Collection[str], nan: str) -> Iterator[dict[str, str]]:
    """Yield options for the cast, the fewest first, that may make its results equal to those of a conversion."""
    beyond = [{"overflow": overflow.value} for overflow in Overflow] if chip is None else [
        {"saturation": state} for state in ("on", "off")
    ]  # fmt: skip
    modes = [{"rounding": rounding.value} for rounding in Rounding if rounding.value not in _UNREPEATABLE]
    options = [] if chip is None else [
        {name: str(value)} for name in sorted(read) for value in chip.options[name].legal
        if value != chip.options[name].value
    ]  # fmt: skip
    of_nan = [{"nan": "any"}] if nan == "bits" else []
    yield from (*of_nan, *beyond, *modes, *options)
    yield from ({**overflow_mode, **further} for overflow_mode in beyond for further in (*modes, *options, *of_nan))


def _verdict(
    inputs: NDArray[np.float64], values: NDArray[np.float64], wanted: NDArray[np.float64],
    differs: NDArray[np.bool_], ulps: int,
) -> str:  # fmt: skip
    """Return a sentence on how many results differ, for which inputs, and the results of conversion and cast."""
    if not differs.any():
        return f"all {inputs.size:,} results are equal"
    own, other = _summed_up(values[differs]), _summed_up(wanted[differs])
    if own and other and own != other:
        both = f"yours gives {own}, the cast {other}"
    else:
        both = f"yours is up to {ulps:,} ulp{'s' * (ulps != 1)} from the cast" if ulps else "the codes differ"
    return f"{int(differs.sum()):,} of {inputs.size:,} inputs differ, {_where(inputs, differs)}: {both}"


def _where(inputs: NDArray[np.float64], differs: NDArray[np.bool_]) -> str:
    """Return the inputs for which results differ: beyond, up to or between magnitudes; and whether for NaN."""
    nan = np.isnan(inputs)
    among = differs & ~nan
    too = " and NaN" if (differs & nan).any() else ""
    if not among.any():
        return "all NaN"
    sizes = np.abs(inputs)
    signs = "-" if (inputs[among] <= 0).all() else "" if (inputs[among] >= 0).all() else "+-"
    same_side = ~nan & ((inputs <= 0) if signs == "-" else (inputs >= 0) if not signs else True)
    equal = sizes[same_side & ~differs]
    least, most = sizes[among].min(), sizes[among].max()
    if not equal.size:
        return f"all {'of them' if signs == '+-' else 'negative' if signs else 'positive'}{too}"
    if equal.max() < least:
        return f"all beyond {signs}{equal.max():.9g}{too}"
    if equal.min() > most:
        return f"all below {signs}{equal.min():.9g}{too}"
    return f"from {signs}{least:.9g} to {signs}{most:.9g}{too}"


_FEW = 2
"""Maximum number of results that a verdict names."""


def _summed_up(values: NDArray[np.float64]) -> str:
    """Return results in words if there are few: numbers of either sign once, NaN; otherwise ''."""
    finite = values[~np.isnan(values)]
    sizes = np.unique(np.abs(finite))
    if sizes.size > _FEW:
        return ""
    words = []
    for size in sizes.tolist():
        signs = np.unique(np.signbit(finite[np.abs(finite) == size]))
        words.append(f"{'+-' if signs.size == 2 else '-' if signs[0] else ''}{size:.9g}")
    return " or ".join([*words, *(["NaN"] if finite.size < values.size else [])])


def tried(source: Format, destination: Format, samples: int = SAMPLES, seed: int = 0) -> Codes:
    """Return the codes on which a conversion is tried, rising.

    Raises:
        IllegalError: a negative number of samples.
    """
    if code_bits(source) <= EXHAUSTIVE_BITS:
        return Exhaustive(source).codes(0, Exhaustive(source).size)
    if samples < 0:
        raise IllegalError(f"{samples} samples", legal=("0", "1", "..."))
    drawn = Samples(source, destination, Overflow.SATURATE, samples, seed).codes(0, samples)
    sign, last = 1 << (source.bits - 1), (1 << source.bits) - 1
    exact = [_neighbours(np.array([0, sign - 1, sign, last], code_dtype(source)), source)]
    if not isinstance(source, IntFormat):
        ends = np.array([np.inf, -np.inf, np.nan])  # and with them the largest numbers
        exact.append(_neighbours(_codes(cast(ends, "f64", source.name), source), source))
    if code_bits(destination) <= EXHAUSTIVE_BITS:
        ends = decode_to_float64(Exhaustive(destination).codes(0, Exhaustive(destination).size), destination)
        ends = np.unique(ends[np.isfinite(ends)])
        points = np.concatenate([ends, (ends[1:] + ends[:-1]) / 2, ends[[0, -1]] * 2])
        exact.append(_neighbours(_codes(cast(points, "f64", source.name), source), source))
    return np.unique(np.concatenate([*exact, drawn]))


def _neighbours(codes: Codes, fmt: Format) -> Codes:
    """Return codes with the next codes above and below, if the format has them."""
    last = codes.dtype.type((1 << fmt.bits) - 1)
    neighbours: Codes = np.concatenate([codes, codes + codes.dtype.type(1), codes - codes.dtype.type(1)]) & last
    return neighbours


def _codes(given: ArrayLike, fmt: Format) -> Codes:
    """Return numbers, or codes, as codes.

    Raises:
        ReadError: the values are neither numbers nor codes of the format.
    """
    array = given if isinstance(given, np.ndarray) else np.asarray(given, native_dtype(fmt))
    return codes_from_array(array, fmt)


def _binades(numbers: NDArray[np.float64], differs: NDArray[np.bool_], ulps: _I64) -> list[DifferingBinade]:
    finite = np.isfinite(numbers) & (numbers != 0)
    exponents = np.frexp(np.where(finite, numbers, 1.0))[1].astype(np.int64) - 1
    kinds = np.select([np.isnan(numbers), np.isinf(numbers), ~finite], [3, 2, 1], 0)
    names: tuple[Literal["number", "zero", "infinite", "nan"], ...] = ("number", "zero", "infinite", "nan")
    binades = []
    for kind, exponent in sorted({*zip(kinds[differs].tolist(), exponents[differs].tolist(), strict=True)}):
        among = (kinds == kind) & (exponents == exponent)
        differing = among & differs
        binades.append(
            DifferingBinade(
                kind=names[kind],
                exponent=int(exponent) if kind == 0 else None,
                inputs=int(among.sum()),
                differing=int(differing.sum()),
                largest_ulps=int(ulps[differing].max(initial=0)),
            )
        )
    return binades


def _results(results: NDArray[np.generic], fmt: Format) -> tuple[Codes, NDArray[np.float64], NDArray[np.bool_]]:
    """Return results as codes, as numbers, and a mask of those that the format has."""
    if results.dtype == native_dtype(fmt) or is_codes(results, fmt):
        codes = codes_from_array(results, fmt)
        return codes, decode_to_float64(codes, fmt), np.ones(codes.shape, np.bool_)
    try:
        other = format_named(format_name(results.dtype))
    except ReadError as error:
        legal = [
            str(dtype) for dtype in (native_dtype(fmt), code_dtype(fmt), "float32", "float64") if dtype is not None
        ]
        raise ReadError(f"results of dtype {results.dtype} cannot hold numbers of {fmt.name}", legal=legal) from error
    codes = codes_from_array(np.asarray(cast(results, other.name, fmt.name)), fmt)
    values = decode_to_float64(codes_from_array(results, other), other)
    back = decode_to_float64(codes, fmt)
    representable = (back == values) & (np.signbit(back) == np.signbit(values)) | (np.isnan(back) & np.isnan(values))
    return codes, values, representable


def places(codes: Codes, fmt: Format) -> _I64:
    """Return the rank of each number in its format, zero at 0; both zeros are one number."""
    ranks: _I64
    if isinstance(fmt, TaperedFormat):
        numbers = decode_to_float64(codes, fmt)
        every = decode_to_float64(Exhaustive(fmt).codes(0, Exhaustive(fmt).size), fmt)
        ordered = np.unique(every[~np.isnan(every)])
        ranks = np.searchsorted(ordered, numbers) - np.searchsorted(ordered, 0.0)
        return ranks
    if isinstance(fmt, IntFormat):
        wide = codes.astype(np.int64)
        return (wide ^ (1 << (fmt.bits - 1))) - (1 << (fmt.bits - 1)) if fmt.signed and fmt.bits < 64 else wide
    if not fmt.signed:
        return codes.astype(np.int64)
    magnitude = (codes & codes.dtype.type(fmt.sign_bit - 1)).astype(np.int64)
    ranks = np.where(codes & codes.dtype.type(fmt.sign_bit), -magnitude, magnitude)
    return ranks


def _signal_to_noise(numbers: NDArray[np.float64], values: NDArray[np.float64]) -> float | None:
    """Return the ratio of the squares of inputs and errors in decibels, over those that are both finite."""
    finite = np.isfinite(numbers) & np.isfinite(values)
    numbers, values = numbers[finite], values[finite]
    unit = float(np.abs(numbers).max(initial=0.0)) or 1.0
    with np.errstate(over="ignore"):
        signal, noise = (float(np.square(series / unit).sum()) for series in (numbers, values - numbers))
    return 10 * math.log10(signal / noise) if signal and noise and math.isfinite(noise) else None
