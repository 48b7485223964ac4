"""The execution of `castsim accuracy`."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.execution.page_files import check_page, with_note, write_page_of
from castsim.commands.execution.workers import ledger_of, refuse_workers, removal, resume_hint, workers_of
from castsim.commands.option_parsers import output_folder
from castsim.commands.outcome import Outcome
from castsim.evidence.accuracy import accuracy, measured_targets, read_table
from castsim.evidence.accuracy.left_out import LeftOut, cross_validate, together, write_record
from castsim.isa.errors import ReadError
from castsim.reports.accuracy import accuracy_document, cross_validation_document
from castsim.reports.progress import stage_progress
from castsim.targets import load_target
from castsim.targets.csv_tables import SHIPPED

if TYPE_CHECKING:
    from rich.console import RenderableType


def execute(options: Namespace) -> Outcome:
    """Assess.

    Raises:
        ReadError: unknown target, one without measurements, a table that cannot be read, the ledger, the scheduler.
        IllegalError, TileError: a row that the target cannot run.
        EngineError: workers that are others, or die.
    """
    check_page(options, {"--data": options.data})
    given = {"--target": options.target, "--data": options.data, "--cross-validate": options.cross_validate}
    if options.record is not None and (excess := [name for name, value in given.items() if value is not None]):
        raise ReadError(f"--record is of all shipped measurements; {', '.join(excess)} would leave some out")
    if options.cross_validate is not None:
        refuse_workers(options, "--cross-validate is computed by one process")
        return _cross_validation(options)
    workers, ledger = workers_of(options), ledger_of(options, data=options.data)
    with resume_hint(ledger, "accuracy"), stage_progress(quiet=options.quiet) as progress:
        found = accuracy(
            options.target or None,
            data=options.data,
            workers=workers.count,
            scheduler=workers.scheduler,
            ledger=ledger,
            progress=progress,
        ).tables

    if (folder := output_folder(options.record, "--record")) is not None:
        write_record(folder, found)
    write_page_of(found, options)

    def text(_: int, *, summary: bool = False) -> RenderableType:
        from castsim.reports.accuracy import accuracy_summary, accuracy_text  # noqa: PLC0415 - rich, only if printed

        return with_note(accuracy_summary(found) if summary else accuracy_text(found), options)

    return Outcome(accuracy_document(found), text, summary=partial(text, summary=True), delivered=removal(ledger))


def _cross_validation(options: Namespace) -> Outcome:
    """Leave out casts in turn.

    Raises:
        ReadError: no such thing to leave out, no target named, no casts or free facts, a table with other rows.
    """
    if options.cross_validate not in tuple(LeftOut):
        message = f"--cross-validate: '{options.cross_validate}' cannot be left out"
        raise ReadError(message, legal=[str(each) for each in LeftOut])
    legal = [target.name for target in measured_targets() if target.free_facts]
    if options.target is None:
        raise ReadError("--cross-validate needs --target", legal=legal)
    target = load_target(options.target)
    if not target.free_facts:
        raise ReadError(f"no facts of {target.name} are free; nothing to cross-validate", legal=legal)
    if options.data is not None:
        table = read_table(Path(options.data))
    elif options.cross_validate in (LeftOut.OPERATION, LeftOut.SOURCE) or target.measured_casts is None:
        table = together([read_table(SHIPPED / each.file) for each in target.measurements])
    else:
        table = read_table(SHIPPED / target.measured_casts.file)
    with stage_progress(quiet=options.quiet) as progress:
        found = cross_validate(target, table, LeftOut(options.cross_validate), progress)

    write_page_of(found, options)

    def text(_: int) -> RenderableType:
        from castsim.reports.accuracy import cross_validation_text  # noqa: PLC0415 - rich, only if printed

        return with_note(cross_validation_text(found), options)

    return Outcome(cross_validation_document(found), text)
