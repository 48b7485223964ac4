"""The command `advise`: find changes that save cycles and keep every bit of the outputs, as diffs."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castsim.commands.kernels import KernelOptions, bundles_of, launch_of, refuse_elsewhere, run_config_of
from castsim.commands.option_parsers import assignments, options_as, positive
from castsim.commands.outcome import CommandOutcome, plain, stacked, write_out
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.isa.reading import Language, Source, read_source
from castsim.reports.progress import stage_progress
from castsim.running.languages import CPP, GRAPH, language_module, language_of
from castsim.running.program_runs import RunConfig
from castsim.tools.advise.advice_search import Advice, advice_on
from castsim.tools.advise.equivalence import original
from castsim.tools.advise.suggestions import SECONDS, TRIES, Change, SearchConfig, SuggestionEvidence

if TYPE_CHECKING:
    from rich.console import RenderableType


def execute(options: Namespace) -> CommandOutcome:
    """Find and check changes, and write the changed program if requested.

    Raises:
        CastsimError, EngineError: the program is refused as it is, or an option is invalid.
    """
    number = None if options.apply is None else positive("--apply", options.apply)
    if (number is None) != (options.out is None):
        raise ReadError("--apply N and --out FILE go together", legal=("--apply 1 -o FILE",))
    config, kernel = run_config_of(options, options.program), options_as(KernelOptions, options)
    refuse_elsewhere(kernel, options.program)
    setting = SearchConfig(
        config.target,
        config.entry,
        config.args,
        config.inputs,
        config.options,
        ranges=ranges_of(options.ranges),
        tries=TRIES if options.tries is None else positive("--tries", options.tries),
        seconds=SECONDS if options.seconds is None else positive("--seconds", options.seconds),
        limits=config.limits,
    )
    if language_of(options.program) == GRAPH:
        raise ReadError(f"castsim advise takes a program; '{options.program}' is a graph", legal=("a .pto file",))
    launch = launch_of(kernel, config.inputs, options.program)
    if launch is not None:
        source = bundles_of(replace(config, launch=launch))
        setting = replace(setting, args={}, target=None)
    elif language_of(options.program) == CPP:
        kernels = language_module(CPP)
        recording = kernels.recording_of(config, kernel)
        source = kernels.as_text(recording)
        setting = replace(setting, entry=None, args={}, inputs=recording.inputs)
    else:
        source = _read(config)
    with stage_progress(options.quiet, options.json) as progress:
        advice = advice_on(original(source, setting), progress)
    written = None if number is None else _applied(advice, number, options.out, options.program, tried=options.tried)
    output = None if written is None else str(written)
    document = replace(advice, applied=number, output=output).as_json()
    return CommandOutcome(document, lambda _: _text(document, why=options.why))


def _text(document: Mapping[str, Any], *, why: bool) -> RenderableType:
    """Return the page as text, and the best change as a diff unless one was written; rejected changes with `why`."""
    from rich.text import Text  # noqa: PLC0415 - only if printed

    from castsim.reports.pages.answer_pages import answer_text  # noqa: PLC0415 - as above
    from castsim.tools.advise.page import advise_page  # noqa: PLC0415 - as above

    report = answer_text(advise_page(document if why else {**document, "rejected": []}))
    if not document["offers"]:
        more = "" if why or not document["rejected"] else "Next: --why lists the rejected changes and the reasons"
        return stacked(report, plain(more)) if more else report
    if document["output"]:
        return report
    diff = document["offers"][(document["applied"] or 1) - 1]["diff"]
    return stacked(report, Text(f"\n{diff.rstrip()}", no_wrap=True, overflow="ignore"))


def _read(config: RunConfig) -> Source:
    """Read the program.

    Raises:
        ReadError: it is a binary.
    """
    source = read_source(config.path, lambda: False)
    if source.language is Language.BINARY:
        raise ReadError(f"castsim advise edits text; '{config.program}' is a binary", legal=("castsim disasm",))
    return source


def ranges_of(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the ranges that `--range NAME=LO:HI` gives.

    Raises:
        ReadError: a range is not two finite numbers in rising order.
    """
    ranges = {}
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
        ranges[name] = (low, high)
    return ranges


def _applied(advice: Advice, number: int, out: str, program: str, *, tried: bool) -> Path | None:
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
    offer: Change = advice.offers[number - 1]
    if offer.how is not SuggestionEvidence.PROVEN and not tried:
        raise ReadError(
            f"--apply {number}: this change was tested on {offer.runs} inputs but is not proven",
            legal=(f"--apply {number} --tried",),
        )
    return write_out(out, offer.change.text.encode(), program)
