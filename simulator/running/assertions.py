"""Casts and kernels under test: run as on a chip, then compared with oracles, cycle bounds and ordering rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import castsim
from castsim.execution.input_data import make_inputs, same_elements
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import ReadError
from castsim.isa.formats import Codes, Format, IntFormat, format_named
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import (
    FormatLike,
    array_from_codes,
    codes_from_array,
    decode_to_float64,
    encode_value,
    format_name,
    value_of,
)
from castsim.targets.loader import Target

MOST_SHOWN = 8
"""Maximum number of differing elements that a message lists."""

_GAP = "  "


class Coded(NamedTuple):
    """An array of codes with their format."""

    codes: Codes
    format: Format


def coded(array: Codes, fmt: Format, what: str) -> Coded:
    """Return an array, in a format's native dtype or its codes, as codes.

    Raises:
        AssertionError: the dtype is neither; the message names the array by `what`.
    """
    try:
        return Coded(codes_from_array(np.asarray(array), fmt), fmt)
    except ReadError as error:
        raise AssertionError(f"{what}: {error.message}") from None


def element_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal with its number: `0x3e00 1.5`."""
    value = value_of(code, fmt)
    number = str(int(value)) if isinstance(fmt, IntFormat) else repr(float(value))
    return f"0x{code & ((1 << fmt.bits) - 1):0{-(-fmt.bits // 4)}x} {number}"


def assert_same(
    what: str, got: Coded, expected: Coded, beside: Mapping[str, Coded] | None = None, *, any_nan: bool = False
) -> None:
    """Assert that two arrays have the same codes.

    Args:
        what: the array's name in the message.
        got, expected: arrays of one format.
        beside: arrays whose elements at the same indices the message shows; those of other shapes are left out.
        any_nan: whether all NaNs are equal.

    Raises:
        AssertionError: shapes or elements differ; the message lists the first ones, decoded.
    """
    __tracebackhide__ = True
    if got.codes.shape != expected.codes.shape:
        raise AssertionError(f"{what} has shape {list(got.codes.shape)}, expected {list(expected.codes.shape)}")
    apart = got.codes != expected.codes
    if any_nan and apart.any() and not isinstance(got.format, IntFormat):
        apart &= ~(np.isnan(_decoded(got)) & np.isnan(_decoded(expected)))
    count = int(np.count_nonzero(apart))
    if count == 0:
        return
    elements = f"element{'s' * (apart.size != 1)}"
    head = f"{what} differs in {count:,} of {apart.size:,} {elements} ({got.format.name})"
    raise AssertionError("\n".join([head, *_listed(apart, got, expected, beside or {}, count)]))


def _decoded(array: Coded) -> Codes:
    return decode_to_float64(array.codes, array.format)


def _listed(apart: Codes, got: Coded, expected: Coded, beside: Mapping[str, Coded], count: int) -> list[str]:
    """Return the lines of a table of the first differing elements."""
    columns = {"got": got, "expected": expected}
    columns |= {name: array for name, array in beside.items() if array.codes.shape == apart.shape}
    places = [np.unravel_index(flat, apart.shape) for flat in np.flatnonzero(apart)[:MOST_SHOWN]]
    rows = [("index", *columns)]
    rows += [
        (
            str([int(axis) for axis in axes]),
            *(element_text(int(column.codes[axes]), column.format) for column in columns.values()),
        )
        for axes in places
    ]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = [
        _GAP + _GAP.join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return [*lines, f"  and {count - MOST_SHOWN:,} more"] if count > MOST_SHOWN else lines


Oracle = Callable[[Codes], ArrayLike]
"""Function from the source array, in its native dtype or as codes, to the results in either form."""


@dataclass(frozen=True, slots=True)
class CheckedCast:
    """The results of a cast: `source` and `result` are codes with their formats."""

    source: Coded
    result: Coded
    label: str
    """The cast in messages, as in `f32 -> f16 on a2a3`."""

    @property
    def values(self) -> Codes:
        """The results in the native dtype of their format, or as codes if there is none."""
        return array_from_codes(self.result.codes, self.result.format)

    def assert_values(self, expected: Sequence[float | str]) -> None:
        """Assert that the results are these numbers; texts such as `1/3`, `nan` and `-inf` are numbers too.

        All NaNs are equal; zeros have a sign.

        Raises:
            AssertionError: a result differs, or a number is not one of the format.
        """
        __tracebackhide__ = True
        fmt = self.result.format
        encoded = [encode_value(value, fmt) for value in expected]
        wrong = [str(value) for value, encoding in zip(expected, encoded, strict=True) if encoding.inexact]
        if wrong:
            raise AssertionError(f"{self.label}: expected {', '.join(wrong)}, which {fmt.name} cannot represent")
        codes = np.array([encoding.code for encoding in encoded], code_dtype(fmt))
        self._compare(Coded(codes.reshape(self._shape(codes)), fmt), any_nan=True)

    def assert_bits(self, expected: ArrayLike) -> None:
        """Assert that the results are these codes, unsigned integers.

        Raises:
            AssertionError: a result differs.
        """
        __tracebackhide__ = True
        codes = np.asarray(expected).astype(code_dtype(self.result.format))
        self._compare(Coded(codes.reshape(self._shape(codes)), self.result.format))

    def assert_equal(self, oracle: Oracle, *, any_nan: bool = False) -> None:
        """Assert that the results are those of a function of the source array, bit by bit.

        Args:
            oracle: takes the source array; returns an array of the native dtype of the result's format, or of codes.
            any_nan: whether all NaNs are equal.

        Raises:
            AssertionError: one differs, or the oracle's array has another shape or dtype.
        """
        __tracebackhide__ = True
        values = np.asarray(oracle(array_from_codes(self.source.codes, self.source.format)))
        self._compare(coded(values, self.result.format, f"{self.label}: the oracle's result"), any_nan=any_nan)

    def _shape(self, codes: Codes) -> tuple[int, ...]:
        """Return the shape of the results for a list of as many elements, otherwise the list's own."""
        return self.result.codes.shape if same_elements(codes.shape, self.result.codes.shape) else codes.shape

    def _compare(self, expected: Coded, *, any_nan: bool = False) -> None:
        __tracebackhide__ = True
        assert_same(f"{self.label}: the result", self.result, expected, {"source": self.source}, any_nan=any_nan)


class CastChecker:
    """Function with the arguments of `castsim.cast` that returns a `CheckedCast`.

    castsim_cast([1.5, 70000.0], "f32", "f16", target="a2a3").assert_values([1.5, 65504.0])
    """

    def __call__(
        self,
        values: ArrayLike,
        src: FormatLike,
        dst: FormatLike | None = None,
        *,
        target: str | Path | Target | None = None,
        rounding: str | None = None,
        overflow: str | None = None,
        saturation: str | None = None,
        scratch: bool = False,
    ) -> CheckedCast:
        """Convert values.

        Args:
            values: an array of any shape, or numbers; numbers that the source format lacks are rounded to it.
            src, dst: formats; a single one, for an array with a dtype, is the destination.
            target, rounding, overflow, saturation, scratch: see `castsim.cast`.

        Raises:
            CastsimError: see `castsim.cast`.
        """
        if dst is None:
            src, dst = np.asarray(values).dtype, src
        source, result = format_named(format_name(src)), format_named(format_name(dst))
        array = values if isinstance(values, np.ndarray) else _array(values, source)
        computed = castsim.cast(
            array, src, dst, target=target, rounding=rounding, overflow=overflow, saturation=saturation, scratch=scratch
        )
        where = "" if target is None else f" on {target if isinstance(target, str | Path) else target.name}"
        label = f"{source.name} -> {result.name}{where}"
        return CheckedCast(
            Coded(codes_from_array(array, source), source), Coded(codes_from_array(computed, result), result), label
        )


def _array(values: ArrayLike, fmt: Format) -> Codes:
    """Return numbers in the native dtype of a format, or as its codes if it has none.

    Raises:
        ReadError: an integer format lacks a number.
    """
    numbers = np.asarray(values)
    encoded = [encode_value(number, fmt) for number in numbers.reshape(-1).tolist()]
    if isinstance(fmt, IntFormat) and any(encoding.inexact for encoding in encoded):
        raise ReadError(f"{fmt.name} cannot represent all of {str(numbers.tolist())[:60]}")
    return array_from_codes(
        np.array([encoding.code for encoding in encoded], code_dtype(fmt)).reshape(numbers.shape), fmt
    )


KernelOracle = Callable[..., ArrayLike | Mapping[str, ArrayLike]]
"""Function from the inputs by name to an array by the name of each output; for one output, to its array."""

MOST_FINDINGS = 5
"""Maximum number of races or stale reads that a message describes."""


@dataclass(frozen=True, slots=True)
class CheckedKernel:
    """A kernel that has run: `result` is that of `castsim.run`, `inputs` are its arrays."""

    result: castsim.Result
    inputs: Mapping[str, Codes]

    @property
    def cycles(self) -> int:
        """Cycles from the first instruction until every pipe is empty."""
        return self.result.cycles

    @property
    def outputs(self) -> Mapping[str, Codes]:
        """Arrays by argument name, of native dtypes, or codes if there are none."""
        return self.result.outputs

    def assert_equal(self, oracle: KernelOracle, *, any_nan: bool = False) -> None:
        """Assert that the outputs are those of an oracle, bit by bit.

        Args:
            oracle: called with the inputs as keyword arguments, each of the shape that the kernel gives it; returns an
                array, or arrays by the names of outputs, of which only the named ones are compared.
            any_nan: whether all NaNs are equal.

        Raises:
            AssertionError: an element differs, or the oracle's arrays do not fit the kernel's.
        """
        __tracebackhide__ = True
        for name, array in self._expected(oracle(**self.inputs)).items():
            fmt = self._format(name)
            what = f"{self._label}: output '{name}'"
            got = coded(self.outputs[name], fmt, what)
            expected = coded(np.asarray(array), fmt, f"{what}, by the oracle")
            beside = {
                argument: coded(given, self._format(argument), argument) for argument, given in self.inputs.items()
            }
            if same_elements(expected.codes.shape, got.codes.shape):  # an oracle need not know of axes of 1
                expected = Coded(expected.codes.reshape(got.codes.shape), fmt)
            assert_same(what, got, expected, beside, any_nan=any_nan)

    def assert_cycles(self, at_most: int) -> None:
        """Assert that the kernel takes at most this many cycles.

        Raises:
            AssertionError: it takes more.
        """
        __tracebackhide__ = True
        if self.cycles <= at_most:
            return
        over = self.cycles - at_most
        cure = "`castsim run --what-if all` shows where they are lost"
        raise AssertionError(f"{self._label}: {self.cycles:,} cycles, {over:,} more than {at_most:,}; {cure}")

    def assert_no_races(self) -> None:
        """Assert that no instruction overtakes another whose result it needs, or reads a register too early.

        Raises:
            AssertionError: an instruction may; the message names it, and the missing synchronisation.
        """
        __tracebackhide__ = True
        findings = [f"{race.spans[-1]}: {race.sentence}" for race in self.result.races or ()]
        findings += [f"{read.reader.span}: {read.sentence()}" for read in self.result.stale_reads or () if read.stale]
        if not findings:
            return
        more = [f"  and {len(findings) - MOST_FINDINGS} more"] if len(findings) > MOST_FINDINGS else []
        number = len(findings)
        what = "violation{s} of order" if self.result.races else "stale read{s}"
        head = f"{self._label}: {number} {what.format(s='s' * (number != 1))}"
        raise AssertionError("\n".join([head, *(f"  {line}" for line in findings[:MOST_FINDINGS]), *more]))

    @property
    def _label(self) -> str:
        loaded = self.result.loaded
        return f"{Path(loaded.file).name} on {loaded.target.name}"

    def _format(self, name: str) -> Format:
        return self.result.loaded.arguments[name].format

    def _expected(self, expected: ArrayLike | Mapping[str, ArrayLike]) -> Mapping[str, ArrayLike]:
        __tracebackhide__ = True
        names = list(self.outputs)
        if isinstance(expected, Mapping):
            unknown = [name for name in expected if name not in names]
            if unknown or not expected:
                raise AssertionError(f"{self._label}: the oracle returned {unknown}; the outputs are {names}")
            return expected
        if len(names) != 1:
            raise AssertionError(f"{self._label}: the oracle returned one array; the outputs are {names}, by name")
        return {names[0]: expected}


class KernelRunner:
    """Function that runs a program on its inputs and returns a `CheckedKernel`.

    kernel = castsim_kernel("kernel.pto", inputs={"x": "random:1"})
    kernel.assert_equal(lambda x: x.astype(np.float16))
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(
        self,
        program: str | Path,
        *,
        target: str | Path | Target | None = None,
        entry: str | None = None,
        inputs: Mapping[str, Codes | str] | None = None,
        args: Mapping[str, int | float] | None = None,
        declare: str | Path | None = None,
        allow_races: bool = False,
    ) -> CheckedKernel:
        """Run a kernel.

        Args:
            program, target, entry, inputs, args, declare: see `castsim.run`.
            allow_races: whether a kernel with races or stale reads is returned instead of failing.

        Raises:
            AssertionError: the kernel has races or stale reads.
            CastsimError: see `castsim.run`.
        """
        __tracebackhide__ = True
        path = Path(program)
        beside = self._folder / path
        if not path.exists() and beside.exists():
            path = beside
        result = castsim.run(path, target, entry, inputs, args, races="report", declare=declare)
        kernel = CheckedKernel(result, _arrays(inputs or {}, result))
        if not allow_races:
            kernel.assert_no_races()
        return kernel


def _arrays(inputs: Mapping[str, Codes | str], result: castsim.Result) -> dict[str, Codes]:
    """Return a program's inputs as arrays of the shapes that it gives them, if the sizes agree."""
    uses = result.loaded.arguments
    texts = {name: given for name, given in inputs.items() if isinstance(given, str)}
    from_text = make_inputs(texts, uses)
    arrays = {name: from_text[name] if isinstance(given, str) else np.asarray(given) for name, given in inputs.items()}
    return {
        name: array.reshape(uses[name].shape) if array.size == uses[name].elements else array
        for name, array in arrays.items()
    }
