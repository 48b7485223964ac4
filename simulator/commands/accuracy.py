"""Compares with the published cycles of casts and other vector operations that come with the targets, or with your own
measurements: a CSV with the columns src, dst (or dtype), rows, cols, measured_cycles and, as far as known, op,
op_params, impl_kind, valid_rows, valid_cols, path, outer_iters, inner_iters_label, peer_predicted_cycles. Without
--target, your table is taken for that target one of whose own has most of its columns.

examples:
  castsim accuracy
  castsim accuracy --target a5
  castsim accuracy --target a5 --data mine.csv --json -
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.commands.outcome import Outcome
    from targets import Target

SUMMARY = "simulated against measured cycles: error per row and curve, beside the public model's"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `accuracy`."""
    parser.add_argument("--target", metavar="T", help="name or path of a target; default: all that have measurements")
    parser.add_argument("--data", metavar="FILE.csv", help="measurements, in the columns of the shipped tables")


def execute(options: Namespace) -> Outcome:
    """Assess.

    Raises:
        ReadError: unknown target, one without measurements, a table that cannot be read.
        IllegalError, TileError: a row that the target cannot run.
    """
    from simulator.accuracy import assess, read_table  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.accuracy import accuracy_document  # noqa: PLC0415
    from targets import load_target  # noqa: PLC0415

    if options.data is not None:
        own = read_table(Path(options.data))
        target = load_target(options.target) if options.target else _guessed(own.columns)
        pairs = [(target, own)]
    else:
        targets = [load_target(options.target)] if options.target else _measured_targets()
        pairs = [(target, read_table(path)) for target in targets for path in _shipped(target)]
    found = [assess(target, table) for target, table in pairs]

    def text(_: int) -> Any:
        from simulator.reports.accuracy_text import accuracy_text  # noqa: PLC0415 - rich, only if printed

        return accuracy_text(found)

    return Outcome(accuracy_document(found), text)


def _measured_targets() -> list[Target]:
    from targets import load_target, target_names  # noqa: PLC0415

    return [target for target in map(load_target, target_names()) if target.measurements]


def _shipped(target: Target) -> list[Path]:
    """Return the tables that come with a target."""
    from isa.errors import ReadError  # noqa: PLC0415
    from targets.loader import SHIPPED  # noqa: PLC0415

    if not target.measurements:
        names = [measured.name for measured in _measured_targets()]
        raise ReadError(f"no measurements come with {target.name}; name some by --data", legal=names)
    return [SHIPPED / table.file for table in target.measurements]


def _guessed(columns: tuple[str, ...]) -> Target:
    """Return the target one of whose own tables shares most columns with another."""
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.accuracy import read_table  # noqa: PLC0415

    targets = _measured_targets()
    shared = [max(len({*columns} & {*read_table(path).columns}) for path in _shipped(target)) for target in targets]
    best = [target for target, count in zip(targets, shared, strict=True) if count == max(shared)]
    if len(best) > 1:
        raise ReadError("the columns do not tell the target; name it by --target", legal=[one.name for one in best])
    return best[0]
