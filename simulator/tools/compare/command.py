"""The command `compare`: compare your own conversion with a cast: first difference, distances, binades."""

from __future__ import annotations

import traceback
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.console import RenderableType
from rich.text import Text

from castsim.commands.option_parsers import assignments
from castsim.commands.outcome import CommandOutcome
from castsim.execution.input_data import read_array
from castsim.isa.errors import CastsimError, ReadError, Span
from castsim.isa.formats import Codes
from castsim.isa.reading import read_text
from castsim.reports.cast_text import coded_number
from castsim.reports.numbers import grouped
from castsim.reports.terminal import composed, table
from castsim.tools.compare.user_conversions import (
    CAST_WORDS,
    Comparison,
    Conversion,
    ConversionCounterexample,
    DifferingBinade,
    compare,
)

_LEGAL = ("FILE.py:FUNCTION", "FILE.npy")
_MOST_SAMPLES = 1 << 26


def execute(options: Namespace) -> CommandOutcome:
    """Compare the results of the file or the function with those of the cast.

    Raises:
        ReadError: an option is wrong, a file is neither an array nor Python, or a function is missing or fails.
        IllegalError: the cast does not exist.
    """
    given = _given(options.given)
    x = None if options.input is None else read_array(Path(options.input), "x")
    if x is None and not callable(given):
        raise ReadError("results need the inputs they were computed from", legal=("--in FILE.npy",))
    comparison = compare(
        x,
        given,
        options.src,
        options.dst,
        target=options.target,
        rounding=options.rounding,
        overflow=options.overflow,
        saturation=options.saturation,
        scratch=options.scratch,
        options=assignments("--option", options.options) or None,
        nan=options.nan,
        samples=_number("--samples", options.samples, _MOST_SAMPLES),
        seed=_number("--seed", options.seed, 1 << 63),
    )

    return CommandOutcome(
        comparison.as_json(), lambda _: comparison_text(comparison), code=0 if comparison.equal else 1
    )


def _number(option: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
        raise ReadError(f"{option} '{text[:40]}' is not a valid number here", legal=(f"0 .. {most}",))
    return int(text)


def _given(text: str) -> Codes | Conversion:
    """Return the array of a file, or the function in one."""
    if text.endswith(".npy"):
        return read_array(Path(text), "y")
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise ReadError(f"'{text}' is neither a results file nor a function", legal=_LEGAL)
    return _function(Path(file), name)


def _function(path: Path, name: str) -> Conversion:
    """Execute a Python file and return one of its functions, whose failures name their line."""
    source = read_text(path, "Python file")
    space: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    try:
        code = compile(source, str(path), "exec")
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
        shown = (source.splitlines() or [""])[min(line, source.count("\n") + 1) - 1] if source else ""
        raise ReadError(f"invalid Python: {error.args[0]}", span=Span(str(path), line, max(1, column), shown)) from None
    _guarded(path, "the file", lambda: exec(code, space))
    candidate = space.get(name)
    if not callable(candidate):
        legal = [key for key, value in space.items() if callable(value) and not key.startswith("_")]
        raise ReadError(f"{path} has no function '{name}'", legal=legal)
    function: Callable[[Codes], ArrayLike] = candidate

    def converted(x: Codes) -> ArrayLike:
        results: list[ArrayLike] = []
        with np.errstate(all="ignore"):
            _guarded(path, name, lambda: results.append(function(x)))
        return results[0]

    return converted


def _guarded(path: Path, what: str, work: Callable[[], object]) -> None:
    """Run the user's code and report its exceptions as errors.

    Raises:
        ReadError: the code raised an exception; the message names the last line of the file in its traceback.
    """
    try:
        work()
    except CastsimError:
        raise
    except (Exception, SystemExit) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        span = Span(str(path), frames[-1].lineno or 1, 1, frames[-1].line or "") if frames else None
        raise ReadError(f"{what} raised {type(error).__name__}: {error}", span=span) from None


# The comparison as text.

_BINADES_SHOWN = 12
"""Maximum number of binades that are printed."""


@composed
def comparison_text(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the findings, the answer first."""
    cast = f"{comparison.src.name} -> {comparison.dst.name}" + (f" on {comparison.target}" if comparison.target else "")
    tried = (
        f"all {grouped(comparison.inputs)} codes" if comparison.all_codes else f"{grouped(comparison.inputs)} inputs"
    )
    if comparison.equal:
        end = "" if comparison.all_codes else ": evidence, no proof"
        yield Text(f"equal to {cast} on {tried}{end}")
        return
    yield Text(f"{comparison.verdict}. {_advice(comparison)}", style="bold")
    yield Text(f"compared with {cast} on {tried}")
    if comparison.first is not None:
        yield Text(_first_text(comparison, comparison.first))
    yield Text(f"largest distance {grouped(comparison.largest_ulps)} ulps, mean {comparison.mean_ulps:.3g}", end="")
    missing = (
        f"; {grouped(comparison.unrepresentable)} are not representable in {comparison.dst.name}"
        if comparison.unrepresentable
        else ""
    )
    yield Text(missing)
    own, other = (
        "no error" if ratio is None else f"{ratio:.2f} dB"
        for ratio in (comparison.signal_to_noise_db, comparison.cast_signal_to_noise_db)
    )
    yield Text(f"signal to noise {own}, of the cast {other}")
    binades = sorted(comparison.binades, key=lambda binade: -binade.differing)[:_BINADES_SHOWN]
    rows = ((_magnitude(row), *map(grouped, (row.inputs, row.differing, row.largest_ulps))) for row in binades)
    yield Text()
    yield table("magnitude", ">inputs", ">differ", ">largest ulps", rows=rows)
    if len(comparison.binades) > _BINADES_SHOWN:
        yield Text(f"... and {len(comparison.binades) - _BINADES_SHOWN} more binades (--json)")


def _advice(comparison: Comparison) -> str:
    """Return the options that make the results equal, or a sentence that none does."""
    if comparison.remedy is None:
        return "No option of the cast makes them equal."
    words = (
        f"--{name} {value}" if name in (*CAST_WORDS, "nan") else f"--option {name}={value}"
        for name, value in comparison.remedy.items()
    )
    return f"Try `{' '.join(words)}`."


def _first_text(comparison: Comparison, first: ConversionCounterexample) -> str:
    dst = comparison.dst
    given = f"{first.number:.9g}, which {dst.name} lacks" if first.given is None else coded_number(first.given, dst)
    right = coded_number(first.expected, dst)
    return f"first: {coded_number(first.code, comparison.src)} gives {given}; the cast gives {right}"


def _magnitude(binade: DifferingBinade) -> str:
    return binade.kind if binade.exponent is None else f"2^{binade.exponent} .. 2^{binade.exponent + 1}"
