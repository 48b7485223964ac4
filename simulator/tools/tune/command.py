"""The command `tune`: find the tile shapes and choices of a kernel that take the fewest cycles and bytes."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import assignments, integer_from, limits_of, positive, scalar
from castsim.commands.outcome import CommandOutcome
from castsim.commands.run_views import check_page, with_note, write_page_of
from castsim.engines import ENGINES
from castsim.execution.run_limits import MAX_CYCLES
from castsim.isa.errors import ReadError
from castsim.reports.lifted_limits import ALL
from castsim.reports.progress import stage_progress
from castsim.running.synchronisation.flags import MODES
from castsim.tools.tune.candidates import ChoiceAxis, ChoiceKind, Study, read_axes
from castsim.tools.tune.report import tuning_document, tuning_text
from castsim.tools.tune.studies import MOST_SIMULATED, TuningLedger, about, search, study_of

if TYPE_CHECKING:
    from collections.abc import Sequence


_CHOICE = re.compile(r"\s*%?[\w.-]+\s+in\b")


def execute(options: Namespace) -> CommandOutcome:
    """Search the space; the exit code is 1 if no point of it runs.

    Raises:
        ReadError: an option is wrong, every point of the program fails, or the ledger is about something else.
        KeyboardInterrupt: the search was interrupted; a ledger contains all finished points.
    """
    check_page(options.html, {"--json": options.json, "PROGRAM": options.program, "--resume": options.resume})
    study = _study_of(options)
    simulate = ALL if options.simulate == ALL else _count(options.simulate)
    ledger = None if options.resume is None else TuningLedger.opened(Path(options.resume), about(study))
    try:
        with stage_progress(options.quiet, options.json) as progress:
            tuning = search(study, simulate, ledger, progress)
    except KeyboardInterrupt:
        hint = "nothing was saved: save the search with --resume FILE"
        if ledger is not None:
            hint = f"the same command continues from {options.resume}"
        raise KeyboardInterrupt(hint) from None

    write_page_of(options.html, "castsim.tools.tune.page", tuning)

    return CommandOutcome(
        tuning_document(tuning),
        lambda width: with_note(tuning_text(tuning, width), options.html),
        code=0 if tuning.best is not None else 1,
    )


def _study_of(options: Namespace) -> Study:
    if options.program == "-":
        raise ReadError("give the program as a file: castsim records its digest", legal=("FILE",))
    if options.engine is not None and options.engine not in ENGINES:
        raise ReadError(f"--engine {options.engine}: not an engine", legal=ENGINES)
    if options.sync not in MODES:
        raise ReadError(f"--sync {options.sync}: unknown synchronisation", legal=MODES)
    axes = [axis for text in options.tile for axis in read_axes(ChoiceKind.TILE, text)]
    args, options_set = (
        _fixed_and_varied(kind, texts, axes)
        for kind, texts in ((ChoiceKind.ARGUMENT, options.args), (ChoiceKind.OPTION, options.options))
    )
    target = options.target
    if target is not None and "," in target:
        names = tuple(dict.fromkeys(name.strip() for name in target.split(",")))
        axes.append(ChoiceAxis(ChoiceKind.TARGET, "target", names))
        target = None
    return study_of(
        Path(options.program), axes, options.where, target=target, entry=options.entry,
        args={name: scalar(name, text) for name, text in args.items()}, options=options_set,
        inputs=assignments("--in", options.inputs), sync=options.sync, engine=options.engine,
        max_cycles=MAX_CYCLES if options.max_cycles is None else positive("--max-cycles", options.max_cycles),
        limits=limits_of(options.max_walk, options.max_statements, options.max_elements),
    )  # fmt: skip


def _fixed_and_varied(kind: ChoiceKind, texts: Sequence[str], axes: list[ChoiceAxis]) -> dict[str, str]:
    """Return the values fixed by `NAME=VALUE`; choices (`NAME in VALUES`) are added to the axes."""
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
