"""The command `diff`: compare two programs, results, targets or options: cycles, lines, outputs."""

from __future__ import annotations

import re
from argparse import Namespace
from fractions import Fraction

from castsim.commands.kernels import KernelOptions, launch_of, refuse_elsewhere, run_config_of
from castsim.commands.option_parsers import assignments, options_as
from castsim.commands.outcome import CommandOutcome
from castsim.commands.run_views import check_page, with_note, write_page_of
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.isa.reading import STDIN
from castsim.running.languages import CPP, GRAPH, language_module, language_of
from castsim.running.program_runs import RunConfig
from castsim.tools.diff.comparing import SideRequest, diff_sides, difference_text
from castsim.tools.diff.differences import Difference

_PERCENT = re.compile(r"\d{1,12}(?:\.\d{0,12})?|\.\d{1,12}", re.ASCII)


def execute(options: Namespace) -> CommandOutcome:
    """Compare two sides.

    Raises:
        ComparisonError, ReadError: a side cannot be compared, or an option is wrong.
    """
    limit = _slowdown(options.max_slowdown)
    kernel = options_as(KernelOptions, options)
    refuse_elsewhere(kernel, options.a, options.b)
    check_page(options.html, {"--json": options.json, "A": options.a, "B": options.b})
    a, b = (_recorded(side, kernel) for side in _sides_of(options, kernel))
    comparison = diff_sides(a, b)

    write_page_of(options.html, "castsim.tools.diff.page", comparison)

    return CommandOutcome(
        comparison.as_json(),
        lambda width: with_note(difference_text(comparison, width), options.html),
        code=_code(comparison, limit),
    )


def _code(comparison: Difference, limit: Fraction | None) -> int:
    """Return 0 if both sides are equal or the slowdown is allowed; otherwise 1."""
    return int(not (comparison.equal if limit is None else comparison.within(limit)))


def _sides_of(options: Namespace, kernel: KernelOptions) -> tuple[SideRequest, SideRequest]:
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
    config = run_config_of(options, a)
    side = SideRequest(
        a, config.target, config.entry, shared, inputs=config.inputs, args=config.args, opaque=config.opaque,
        timing_only=config.timing_only, max_cycles=config.max_cycles, limits=config.limits,
        launch=launch_of(kernel, config.inputs, a, b),
    )  # fmt: skip
    target, entry = options.target_b or options.target, options.entry_b or options.entry
    return side, replace(side, program=b, target=target, entry=entry, options=own, inherited=shared)


def _recorded(side: SideRequest, kernel: KernelOptions) -> SideRequest:
    """Return a side; a kernel in C++ becomes its recording for the side's target and options."""
    if language_of(str(side.program)) != CPP:
        return side
    config = RunConfig(str(side.program), side.target, side.entry, side.args, side.inputs, limits=side.limits)
    recording = language_module(CPP).recording_of(config, kernel, side.prepared)
    return replace(side, program=recording.source, entry=None, args={}, inputs=recording.inputs)


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
