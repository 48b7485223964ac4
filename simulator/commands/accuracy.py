"""Compares simulated cycles with the published measurements of casts and other vector operations that come with the
targets, or with your own: a CSV with the columns src, dst (or dtype), rows, cols, measured_cycles and, if known, op,
op_params, impl_kind, valid_rows, valid_cols, path, outer_iters, inner_iters_label, peer_predicted_cycles, convention,
fitted (yes, no), source_kind (silicon, other-silicon, vendor-simulator, document, vendor-model). Rows that no fact was
fitted to come first: only they confirm anything. Without
--target, your table is assigned to the target whose own table shares the most columns with it. Use
--workers or --scheduler to compute in parallel and --ledger FILE to continue after an interruption; FILE is removed
once the results are written.

examples:
  castsim accuracy
  castsim accuracy --target a5
  castsim accuracy --target a5 --data mine.csv --json -
  castsim accuracy --target a5 --html accuracy.html
  castsim accuracy --target a5 --data mine.csv --scheduler tcp://host:8786 --ledger mine.ledger
  castsim accuracy --target a5 --cross-validate pair
  castsim accuracy --record records
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from castsim.commands.option_parsers import output_folder, refuse_workers, workers_of
from castsim.commands.outcome import CommandOutcome, answer
from castsim.commands.run_views import ledger_of, removal, resume_hint
from castsim.commands.shared_options import OptionParser
from castsim.evidence.accuracy_assessment import accuracy, measured_targets
from castsim.evidence.left_out import LeftOut, cross_validate, together, write_record
from castsim.evidence.measured_rows import read_table
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.reports.accuracy import accuracy_document, cross_validation_document
from castsim.reports.pages.page_of_result import accuracy_page, cross_validation_page
from castsim.reports.progress import stage_progress
from castsim.targets.csv_tables import SHIPPED
from castsim.targets.loader import load_target


def declare(parser: OptionParser) -> None:
    """Add the arguments of `accuracy`."""
    parser.take(target="all that have measurements")
    parser.add_argument("--data", metavar="FILE.csv", help="measurements, in the columns of the shipped tables")
    what = (
        "leave out each pair of types, each kernel (all pairs that run the same functions) or each shape of the "
        "casts in turn, or each operation, width or source of all rows; fit the target's free facts to the rest, and "
        "predict it: pair, kernel, shape, operation, width, source"
    )
    parser.add_argument("--cross-validate", metavar="WHAT", help=what)
    what = (
        "write the error statistics for reports: residual_intervals.csv of all shipped measurements; castsim's own "
        "is in targets"
    )
    parser.add_argument("--record", metavar="DIR", help=what)
    parser.take("page", "workers", ledger="finished rows")


def execute(options: Namespace) -> CommandOutcome:
    """Compare simulated with published cycles.

    Raises:
        ReadError: the target is unknown or has no measurements, or the table, ledger or scheduler cannot be used.
        IllegalError, TileError: a row that the target cannot run.
        EngineError: a worker runs another version or dies.
    """
    given = {"--target": options.target, "--data": options.data, "--cross-validate": options.cross_validate}
    if options.record is not None and (excess := [name for name, value in given.items() if value is not None]):
        raise ReadError(f"--record covers all shipped measurements; leave out {', '.join(excess)}")
    if options.cross_validate is not None:
        refuse_workers(options, "--cross-validate uses a single process")
        return _cross_validation(options)
    workers, ledger = workers_of(options), ledger_of(options, data=options.data)
    with resume_hint(ledger), stage_progress(options) as progress:
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
    return replace(answer(accuracy_page, accuracy_document(found)), delivered=removal(ledger))


def _cross_validation(options: Namespace) -> CommandOutcome:
    """Predict each published figure from facts fitted without it.

    Raises:
        ReadError: an option is wrong, no target is named, there are no casts or free facts, or the table does not fit.
    """
    if options.cross_validate not in tuple(LeftOut):
        message = f"--cross-validate: '{options.cross_validate}' cannot be left out"
        raise ReadError(message, legal=[str(each) for each in LeftOut])
    legal = [target.name for target in measured_targets() if target.free_facts]
    if options.target is None:
        raise ReadError("--cross-validate needs --target", legal=legal)
    target = load_target(options.target)
    if not target.free_facts:
        raise ReadError(f"{target.name} has no free facts to cross-validate", legal=legal)
    if options.data is not None:
        table = read_table(Path(options.data))
    elif options.cross_validate in (LeftOut.OPERATION, LeftOut.SOURCE) or target.measured_casts is None:
        table = together([read_table(SHIPPED / each.file) for each in target.measurements])
    else:
        table = read_table(SHIPPED / target.measured_casts.file)
    with stage_progress(options) as progress:
        found = cross_validate(target, table, LeftOut(options.cross_validate), progress)
    return answer(cross_validation_page, cross_validation_document(found))
