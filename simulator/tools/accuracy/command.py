"""The command `accuracy`: compare simulated with measured cycles, per row and curve, beside the public model."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from castsim.commands.option_parsers import given_of, output_folder
from castsim.commands.outcome import CommandOutcome, answer
from castsim.commands.run_views import ledger_of, removal, resume_hint
from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.reports.progress import stage_progress
from castsim.targets.csv_tables import SHIPPED
from castsim.targets.loader import load_target
from castsim.tools.accuracy.accuracy_assessment import accuracy, measured_targets
from castsim.tools.accuracy.left_out import LeftOut, cross_validate, together, write_record
from castsim.tools.accuracy.measured_rows import read_table
from castsim.tools.accuracy.page import accuracy_page, cross_validation_page
from castsim.tools.distribution.distributing import refuse_workers, workers_of


def execute(options: Namespace) -> CommandOutcome:
    """Compare simulated with published cycles.

    Raises:
        ReadError: the target is unknown or has no measurements, or the table, ledger or scheduler cannot be used.
        IllegalError, TileError: a row that the target cannot run.
        EngineError: a worker runs another version or dies.
    """
    chosen = {"--target": options.target, "--data": options.data, "--cross-validate": options.cross_validate}
    if options.record is not None and (excess := [name for name, value in chosen.items() if value is not None]):
        raise ReadError(f"--record covers all shipped measurements; leave out {', '.join(excess)}")
    if options.cross_validate is not None:
        given = given_of(options, "workers", "scheduler", "ledger")
        refuse_workers(given, "--cross-validate uses a single process")
        with stage_progress(options.quiet, options.json) as progress:
            return _cross_validation(options.cross_validate, options.target, options.data, progress)
    workers = workers_of(options.workers, options.scheduler)
    ledger = ledger_of(options.ledger, {"--json": options.json, "--html": options.html, "--data": options.data})
    with resume_hint(ledger), stage_progress(options.quiet, options.json) as progress:
        accuracies = accuracy(
            options.target or None,
            data=options.data,
            workers=workers.count,
            scheduler=workers.scheduler,
            ledger=ledger,
            progress=progress,
        )

    if (folder := output_folder(options.record, "--record")) is not None:
        write_record(folder, accuracies.tables)
    return replace(answer(accuracy_page, accuracies.as_json()), delivered=removal(ledger))


def _cross_validation(left_out: str, name: str | None, data: str | None, progress: ProgressCallback) -> CommandOutcome:
    """Predict each published figure from facts fitted without it.

    Raises:
        ReadError: an option is wrong, no target is named, there are no casts or free facts, or the table does not fit.
    """
    if left_out not in tuple(LeftOut):
        message = f"--cross-validate: '{left_out}' cannot be left out"
        raise ReadError(message, legal=[str(choice) for choice in LeftOut])
    legal = [target.name for target in measured_targets() if target.free_facts]
    if name is None:
        raise ReadError("--cross-validate needs --target", legal=legal)
    target = load_target(name)
    if not target.free_facts:
        raise ReadError(f"{target.name} has no free facts to cross-validate", legal=legal)
    if data is not None:
        table = read_table(Path(data))
    elif left_out in (LeftOut.OPERATION, LeftOut.SOURCE) or target.measured_casts is None:
        table = together([read_table(SHIPPED / measurement.file) for measurement in target.measurements])
    else:
        table = read_table(SHIPPED / target.measured_casts.file)
    validation = cross_validate(target, table, LeftOut(left_out), progress)
    return answer(cross_validation_page, validation.as_json())
