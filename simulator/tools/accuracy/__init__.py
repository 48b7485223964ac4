"""Accuracy: simulated against measured cycles, row by row, and facts fitted without the rows that they predict."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _accuracy(parser: OptionParser) -> None:
    """Compares simulated cycles with the published measurements of casts and other vector operations that come with
    the targets, or with your own: a CSV with the columns src, dst (or dtype), rows, cols, measured_cycles and, if
    known, op, op_params, impl_kind, valid_rows, valid_cols, path, outer_iters, inner_iters_label,
    peer_predicted_cycles, convention, fitted (yes, no), source_kind (silicon, other-silicon, vendor-simulator,
    document, vendor-model). Rows that no fact was fitted to come first: only they confirm anything. Without
    --target, your table is assigned to the target whose own table shares the most columns with it. Use --workers or
    --scheduler to compute in parallel and --ledger FILE to continue after an interruption; FILE is removed once the
    results are written.

    examples:
      castsim accuracy
      castsim accuracy --target a5
      castsim accuracy --target a5 --data mine.csv --json -
      castsim accuracy --target a5 --html accuracy.html
      castsim accuracy --target a5 --data mine.csv --scheduler tcp://host:8786 --ledger mine.ledger
      castsim accuracy --target a5 --cross-validate pair
      castsim accuracy --record records
    """
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


FEATURES = (
    Feature(
        "accuracy",
        "evidence",
        "compare simulated with measured cycles, per row and curve, beside the public model",
        _accuracy,
        "castsim.tools.accuracy.command",
        documents=(
            "castsim.tools.accuracy.accuracy_assessment:AccuracyTables",
            "castsim.tools.accuracy.left_out:CrossValidation",
        ),
        pages=("castsim.tools.accuracy.command",),
    ),
)
