"""Estimates: the cycles of one operation alone, without a program; by a closed form if the facts allow one."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _estimate(parser: OptionParser) -> None:
    """The answer is the number of cycles that `castsim run` counts for the cast alone, between tiles of ROWS rows
    and COLS columns. It leaves out loads, stores and flags; use `castsim run -e` for a fragment with them.

    examples:
      castsim estimate f32 f16 16x256 --target a2a3
      castsim estimate f32 e4m3fn 16x512 --target a5 --saturation on
      castsim estimate f32 f16 64x64 --target a2a3 --valid 60x64 --option vector_head=always
      castsim estimate f32 bf16 128x64 --target gaudi2 --json -
    """
    add = parser.add_argument
    add("src", metavar="SRC", help="format of the source tile")
    add("dst", metavar="DST", help="format of the destination tile")
    add("shape", metavar="ROWSxCOLS", help="elements of both tiles, such as 16x256")
    parser.take("required_target")
    add("--rounding", metavar="M", help="rounding mode; default: the target's own")
    add("--saturation", metavar="on|off", help="saturation switch of the target")
    add("--scratch", action="store_true", help="give the cast a tmp tile")
    add("--valid", metavar="ROWSxCOLS", help="valid region of both tiles; default: the whole tile")
    add("--row-stride", metavar="N", help="elements from row to row of the source; default: COLS")
    add("--dst-row-stride", metavar="N", help="elements from row to row of the destination; default: COLS")
    parser.take("target_options")


FEATURES = (
    Feature(
        "estimate",
        "casts and specifications",
        "estimate the cycles of one cast without a program",
        _estimate,
        "castsim.tools.estimate.command",
        documents=("castsim.tools.estimate.command:EstimateDocument",),
    ),
)
