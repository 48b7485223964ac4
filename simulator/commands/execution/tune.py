"""The execution of `castsim tune`."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.execution.page_files import check_page, with_note, write_page_of
from castsim.commands.option_parsers import assignments, integer_from, positive, run_limits_of, scalar
from castsim.commands.outcome import Outcome
from castsim.commands.output import tell
from castsim.engines import ENGINES
from castsim.exploration.tuning import (
    ALL,
    MOST_SIMULATED,
    Axis,
    Kind,
    Ledger,
    Study,
    about,
    read_axes,
    search,
    study_of,
)
from castsim.isa.errors import ReadError
from castsim.reports.progress import stage_progress
from castsim.reports.tuning import tuning_document
from castsim.running import MAX_CYCLES
from castsim.synchronisation.flags import MODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

_CHOICE = re.compile(r"\s*%?[\w.-]+\s+in\b")


def execute(options: Namespace) -> Outcome:
    """Search the space; the exit code is 1 if no point of it runs.

    Raises:
        ReadError: what was typed; the program, at every point; a ledger about something else.
        KeyboardInterrupt: interrupted; a ledger holds everything done so far.
    """
    check_page(options, {"PROGRAM": options.program, "--resume": options.resume})
    study = _study(options)
    simulate = ALL if options.simulate == ALL else _count(options.simulate)
    ledger = None if options.resume is None else Ledger.opened(Path(options.resume), about(study))
    try:
        with stage_progress(quiet=options.quiet) as progress:
            found = search(study, simulate, ledger, progress)
    except KeyboardInterrupt:
        kept = "nothing is saved: no --resume FILE was given" if ledger is None else f"saved in {options.resume}"
        tell(f"the search was interrupted; {kept}")
        raise

    write_page_of(found, options)

    def text(width: int) -> RenderableType:
        from castsim.reports.tuning import tuning_text  # noqa: PLC0415 - rich, only if printed

        return with_note(tuning_text(found, width), options)

    return Outcome(tuning_document(found), text, code=0 if found.best is not None else 1)


def _study(options: Namespace) -> Study:
    if options.program == "-":
        raise ReadError("the program is read once for all points and its digest kept; name a file", legal=("FILE",))
    if options.engine is not None and options.engine not in ENGINES:
        raise ReadError(f"--engine {options.engine}: not an engine", legal=ENGINES)
    if options.sync not in MODES:
        raise ReadError(f"--sync {options.sync}: there is no such synchronisation", legal=MODES)
    axes = [axis for text in options.tile for axis in read_axes(Kind.TILE, text)]
    args, options_set = (
        _fixed_and_varied(kind, texts, axes)
        for kind, texts in ((Kind.ARGUMENT, options.args), (Kind.OPTION, options.options))
    )
    target = options.target
    if target is not None and "," in target:
        names = tuple(dict.fromkeys(name.strip() for name in target.split(",")))
        axes.append(Axis(Kind.TARGET, "target", names))
        target = None
    return study_of(
        Path(options.program), axes, options.where, target=target, entry=options.entry,
        args={name: scalar(name, text) for name, text in args.items()}, options=options_set,
        inputs=assignments("--in", options.inputs), sync=options.sync, engine=options.engine,
        max_cycles=MAX_CYCLES if options.max_cycles is None else positive("--max-cycles", options.max_cycles),
        limits=run_limits_of(options),
    )  # fmt: skip


def _fixed_and_varied(kind: Kind, texts: Sequence[str], axes: list[Axis]) -> dict[str, str]:
    """Return what is fixed by `NAME=VALUE`; what is to be chosen by `NAME in VALUES` goes to the axes."""
    varied = [text for text in texts if _CHOICE.match(text)]
    axes += [axis for text in varied for axis in read_axes(kind, text)]
    return assignments(f"--{kind.value}", [text for text in texts if text not in varied])


def _count(text: str | None) -> int:
    if text is None:
        return MOST_SIMULATED
    try:
        return integer_from("--simulate", text)
    except ReadError as error:
        raise ReadError(error.message, legal=("1 or more", ALL)) from None
