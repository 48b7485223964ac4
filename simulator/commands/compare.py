"""GIVEN is a function of yours, FILE.py:NAME, or the array FILE.npy of its results for --in. The function gets an array
of numbers in the NumPy dtype of SRC (codes where there is none) and returns numbers or codes of DST, or numbers of a
wider float dtype. It is tried on all codes of a SRC of up to 16 bits, or on every number of a DST of up to 16 bits,
every middle between two, their neighbours, and --samples random codes. The Python file is executed.

The cast is abstract (one exact rounding, then --overflow) or, with --target, that of a chip. Exit code 1 if results
differ. One NaN is as good as another unless --nan bits.

examples:
  castsim compare f32 e4m3fn pack.py:to_fp8
  castsim compare f32 bf16 pack.py:to_bf16 --target a2a3 --rounding rint
  castsim compare f32 f16 results.npy --in numbers.npy
"""

from __future__ import annotations

import traceback
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from castsim.commands.option_parsers import assignments
from castsim.commands.outcome import CommandOutcome
from castsim.commands.shared_options import OptionParser
from castsim.evidence.user_conversions import Conversion, compare
from castsim.execution.input_data import read_array
from castsim.isa.errors import CastsimError, ReadError, Span
from castsim.isa.formats import Codes
from castsim.isa.reading import read_text
from castsim.reports.cast_text import comparison_document, comparison_text


def declare(parser: OptionParser) -> None:
    """Add the arguments of `compare`."""
    add = parser.add_argument
    add("src", metavar="SRC", help="format of the inputs")
    add("dst", metavar="DST", help="format of the results")
    add("given", metavar="GIVEN", help="function FILE.py:NAME, or results FILE.npy")
    add(
        "--in",
        metavar="FILE",
        dest="input",
        help="numbers or codes (.npy) to convert; default for functions: see below",
    )
    add("--target", metavar="T", help="name or path of a target description; default: the abstract cast")
    add("--rounding", metavar="M", help="rounding mode; default: the cast's own")
    add("--overflow", metavar="O", help="saturate, wrap or special; not with --target")
    add("--saturation", metavar="on|off", help="saturation switch of the target")
    add("--scratch", action="store_true", help="give the target's cast a tmp tile")
    add("--nan", metavar="WHICH", default="any", help="any (default): all NaNs are equal; bits: compare their codes")
    add(
        "--samples",
        metavar="N",
        default="65536",
        help="number of random codes for sources wider than 16 bits; default: 65536",
    )
    add("--seed", metavar="N", default="0", help="seed of the random codes; default: 0")
    parser.take("target_options")


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
    found = compare(
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

    return CommandOutcome(comparison_document(found), lambda _: comparison_text(found), code=0 if found.equal else 1)


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
    found = space.get(name)
    if not callable(found):
        legal = [key for key, value in space.items() if callable(value) and not key.startswith("_")]
        raise ReadError(f"{path} has no function '{name}'", legal=legal)
    function: Callable[[Codes], ArrayLike] = found

    def converted(x: Codes) -> ArrayLike:
        made: list[ArrayLike] = []
        with np.errstate(all="ignore"):
            _guarded(path, name, lambda: made.append(function(x)))
        return made[0]

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
        frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
        span = Span(str(path), frames[-1].lineno or 1, 1, frames[-1].line or "") if frames else None
        raise ReadError(f"{what} raised {type(error).__name__}: {error}", span=span) from None
