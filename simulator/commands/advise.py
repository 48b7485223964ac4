"""Prints the changes that save most cycles, the best one as a diff that `patch` applies. Every change is made on a copy
of the text and checked: it has no race, gives the same bits, and takes the same cycles on both engines. `proven` means
that every output byte is computed from the same input bytes by the same operations; `tried`, that random and boundary
inputs gave the same bits.

examples:
  castsim advise kernel.pto
  castsim advise kernel.pto --arg rows=20 --range x=-8:8
  castsim advise kernel.pto --apply 1 -o faster.pto
  castsim advise kernel.tpc --apply 1 --tried -o faster.tpc
  castsim advise kernel.pto --json -
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castsim.commands.asm import write_out
from castsim.commands.kernels import as_text, bundles_of, launch_of, recording_of, refuse_elsewhere, without_arguments
from castsim.commands.option_parsers import GRAPHS, assignments, positive, run_limits_of, scalars_of
from castsim.commands.outcome import CommandOutcome, plain, stacked
from castsim.commands.shared_options import OptionParser
from castsim.exploration.advice_search import Advice, advice_on
from castsim.exploration.equivalence import original
from castsim.exploration.program_edits import SECONDS, TRIES, RunConfig, Suggestion, SuggestionEvidence
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.isa.reading import CPP_SUFFIXES, Language, Source, read_source
from castsim.reports.progress import stage_progress
from castsim.reports.tuning import Advise

if TYPE_CHECKING:
    from rich.console import RenderableType


def declare(parser: OptionParser) -> None:
    """Add the arguments of `advise`."""
    add = parser.add_argument
    what = "a .pto or .tpc file, or a kernel in C or C++; - reads standard input"
    add("program", metavar="PROGRAM", help=what)
    parser.take("target", entry="change", inputs="an input to try first")
    parser.take("arguments", "target_options", "toolchain", "cores")
    what = "range of input NAME; outputs must keep their bits within it only"
    add("--range", metavar="NAME=LO:HI", dest="ranges", action="append", default=[], help=what)
    add("--tries", metavar="N", help="run changes that cannot be proven on at least N inputs; default: 4")
    what = "search for N seconds of processor time, and check for as long; default: 10"
    add("--seconds", metavar="N", help=what)
    add("--why", action="store_true", help="list the rejected changes and the reasons")
    add("--tried", action="store_true", help="let --apply write a change that was tried but not proven")
    add("--apply", metavar="N", help="apply change N, and write the program to the --out file")
    add("-o", "--out", metavar="FILE", help="the file that --apply writes")
    parser.take("kernel", "c_launch", "run_limits", "page")


def execute(options: Namespace) -> CommandOutcome:
    """Find and check changes, and write the changed program if requested.

    Raises:
        CastsimError, EngineError: the program is refused as it is, or an option is invalid.
    """
    number = None if options.apply is None else positive("--apply", options.apply)
    if (number is None) != (options.out is None):
        raise ReadError("--apply N and --out FILE go together", legal=("--apply 1 -o FILE",))
    refuse_elsewhere(options, options.program)
    setting = RunConfig(
        target=options.target,
        entry=options.entry,
        args=scalars_of(options),
        inputs=assignments("--in", options.inputs),
        options=assignments("--option", options.options),
        ranges=ranges_of(options.ranges),
        tries=TRIES if options.tries is None else positive("--tries", options.tries),
        seconds=SECONDS if options.seconds is None else positive("--seconds", options.seconds),
        limits=run_limits_of(options),
    )
    if options.program.endswith(GRAPHS):
        raise ReadError(f"castsim advise takes a program; '{options.program}' is a graph", legal=("a .pto file",))
    launch = launch_of(options)
    if launch is not None:
        source = bundles_of(options, launch, setting.args)
        setting = replace(setting, args={}, target=None)
    elif options.program.endswith(CPP_SUFFIXES):
        recording = recording_of(options)
        source, inputs = as_text(recording), assignments("--in", without_arguments(options, recording).inputs)
        setting = replace(setting, entry=None, args={}, inputs=inputs)
    else:
        source = _read(options)
    with stage_progress(options) as progress:
        advice = advice_on(original(source, setting), progress)
    written = None if number is None else _applied(advice, number, options)
    document = Advise.of(advice, applied=number, output=written)
    return CommandOutcome(document, lambda _: _text(document, why=options.why))


def _text(document: Mapping[str, Any], *, why: bool) -> RenderableType:
    """Return the page as text, and the best change as a diff unless one was written; rejected changes with `why`."""
    from rich.text import Text  # noqa: PLC0415 - only if printed

    from castsim.reports.pages.answer_pages import answer_text  # noqa: PLC0415 - as above
    from castsim.reports.pages.page_of_result import advise_page  # noqa: PLC0415 - as above

    report = answer_text(advise_page(document if why else {**document, "rejected": []}))
    if not document["offers"]:
        more = "" if why or not document["rejected"] else "Next: --why lists the rejected changes and the reasons"
        return stacked(report, plain(more)) if more else report
    if document["output"]:
        return report
    diff = document["offers"][(document["applied"] or 1) - 1]["diff"]
    return stacked(report, Text(f"\n{diff.rstrip()}", no_wrap=True, overflow="ignore"))


def _read(options: Namespace) -> Source:
    """Read the program.

    Raises:
        ReadError: it is a binary.
    """
    source = read_source(Path("/dev/stdin" if options.program == "-" else options.program), lambda: False)
    if source.language is Language.BINARY:
        raise ReadError(f"castsim advise edits text; '{options.program}' is a binary", legal=("castsim disasm",))
    return source


def ranges_of(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the ranges that `--range NAME=LO:HI` gives.

    Raises:
        ReadError: a range is not two finite numbers in rising order.
    """
    found = {}
    for name, text in assignments("--range", texts).items():
        try:
            low, high = (float(part) for part in text.split(":"))
        except ValueError:
            low = high = math.nan
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ReadError(f"--range {name}={text[:40]}: expected two numbers, LO:HI", legal=(f"--range {name}=-1:1",))
        if low > high:
            turned = ":".join(reversed(text.split(":")))
            raise ReadError(f"--range {name}={text[:40]}: LO is above HI", legal=(f"--range {name}={turned[:40]}",))
        found[name] = (low, high)
    return found


def _applied(advice: Advice, number: int, options: Namespace) -> Path | None:
    """Write the program with a change; return the path.

    Raises:
        ReadError: the change does not exist, or is not proven and `--tried` was not given.
    """
    if number > len(advice.offers):
        count = len(advice.offers)
        raise ReadError(
            f"--apply {number}: {'no change was found' if not count else f'{count} changes were found'}",
            legal=() if not count else (f"1 to {count}",),
        )
    offer: Suggestion = advice.offers[number - 1]
    if offer.how is not SuggestionEvidence.PROVEN and not options.tried:
        raise ReadError(
            f"--apply {number}: this change was tested on {offer.runs} inputs but is not proven",
            legal=(f"--apply {number} --tried",),
        )
    return write_out(options.out, offer.change.text.encode(), options.program)
