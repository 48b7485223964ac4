"""The command `diff`: compare two programs, results, targets or options: cycles, lines, outputs."""

from __future__ import annotations

import re
from argparse import Namespace
from fractions import Fraction

from castsim.commands.kernels import launch_of, refuse_elsewhere
from castsim.commands.option_parsers import assignments, most_cycles, opaque_cycles, run_limits_of, scalars_of
from castsim.commands.outcome import CommandOutcome
from castsim.commands.run_views import check_page, with_note, write_page_of
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.isa.reading import STDIN
from castsim.running.languages import CPP, GRAPH, language_module, language_of
from castsim.tools.diff.comparing import SideRequest, diff_sides, difference_text
from castsim.tools.diff.differences import Difference

_PERCENT = re.compile(r"\d{1,12}(?:\.\d{0,12})?|\.\d{1,12}", re.ASCII)


def execute(options: Namespace) -> CommandOutcome:
    """Compare two sides.

    Raises:
        ComparisonError, ReadError: a side cannot be compared, or an option is wrong.
    """
    limit = _slowdown(options.max_slowdown)
    refuse_elsewhere(options, options.a, options.b)
    check_page(options, {"A": options.a, "B": options.b})
    comparison = diff_sides(*_sides(options))

    write_page_of(options, "castsim.tools.diff.page", comparison)

    return CommandOutcome(
        comparison.as_json(),
        lambda width: with_note(difference_text(comparison, width), options),
        code=_code(comparison, limit),
    )


def _code(comparison: Difference, limit: Fraction | None) -> int:
    """Return 0 if both sides are equal or the slowdown is allowed; otherwise 1."""
    return int(not (comparison.equal if limit is None else comparison.within(limit)))


def _sides(options: Namespace) -> tuple[SideRequest, SideRequest]:
    """Return the two sides to compare.

    Raises:
        ReadError: an option is wrong, a side is a graph, or both sides are necessarily the same.
    """
    a, b = options.a, options.a if options.b is None else options.b
    for name in (a, b):
        if language_of(name) == GRAPH:
            raise ReadError(f"'{name}' is a graph; diff compares programs or results of runs", legal=_LEGAL)
    if a == options.b == STDIN:
        raise ReadError("both sides are standard input, which can be read only once", legal=("castsim diff - B",))
    own = assignments("--option-b", options.options_b)
    if options.b is None and not own and options.target_b is None and options.entry_b is None:
        raise ReadError("the second program is missing", legal=("castsim diff A B", "--target-b T", *_LEGAL_B))
    shared = assignments("--option", options.options)
    common = {
        "inputs": assignments("--in", options.inputs),
        "args": scalars_of(options),
        "opaque": opaque_cycles(options.opaque),
        "timing_only": options.timing_only,
        "max_cycles": most_cycles(options),
        "limits": run_limits_of(options),
        "launch": launch_of(options, a, b),
    }
    other = options.target_b or options.target
    return (
        _recorded(SideRequest(a, options.target, options.entry, shared, **common), options),
        _recorded(SideRequest(b, other, options.entry_b or options.entry, own, shared, **common), options),
    )


def _recorded(side: SideRequest, options: Namespace) -> SideRequest:
    """Return a side; a kernel in C++ becomes its recording for the side's target and options."""
    if language_of(str(side.program)) != CPP:
        return side
    kernels = language_module(CPP)
    recording = kernels.side_of(options, str(side.program), side.entry, side.target, side.prepared)
    inputs = assignments("--in", kernels.without_arguments(options, recording).inputs)
    return replace(side, program=recording.source, entry=None, args={}, inputs=inputs)


_LEGAL = ("a .pto or .tpc file", "a .json file of `castsim run --json`")
_LEGAL_B = ("--option-b NAME=VALUE", "--entry-b F")


def _slowdown(text: str | None) -> Fraction | None:
    """Return the percentage from `--max-slowdown`, exactly.

    Raises:
        ReadError: the text is not a decimal number of at least 0.
    """
    if text is None:
        return None
    if _PERCENT.fullmatch(text.strip()) is None:
        raise ReadError(f"--max-slowdown {text.strip()[:40]}: expected a percentage", legal=("0", "2.5", "100"))
    return Fraction(text.strip())
