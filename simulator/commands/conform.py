"""Plans every legal cast of a specification on every target, as `castsim lower` would: native, native with options, a
chain and its cost, or none found and why. --option, which may be repeated, and the search for target options work as in
`castsim lower`. A verdict that only a run of all codes of 32 bits could prove rests on samples, unless --prove is
given. --markdown prints a page. A full run takes many minutes; --src, --dst and --target narrow it
down. Use --workers or --scheduler to compute in parallel and --ledger FILE to continue after an interruption; FILE is
removed once the results are written.

examples:
  castsim conform --spec tosa --target a5 --src f32
  castsim conform --spec tosa --target a5 --src f32 --dst f16 --option ctrl_48_at_start=1
  castsim conform --spec tosa --target a2a3 a5 --src f16 --html matrix.html
  castsim conform --spec onnx@19 --target a2a3 gaudi2 --dst e4m3fn
  castsim conform --spec tosa --markdown --workers 2 > conformance.md
  castsim conform --spec onnx --scheduler tcp://host:8786 --ledger onnx.ledger --json onnx.json
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import assignments, workers_of
from castsim.commands.outcome import CommandOutcome
from castsim.commands.run_views import check_page, ledger_of, matrix_report, removal, resume_hint, write_page_of
from castsim.commands.shared_options import OptionParser
from castsim.isa.errors import ReadError
from castsim.lowering.acceptance import parse_specification
from castsim.lowering.conformance import conform
from castsim.reports.conform import conform_document
from castsim.reports.progress import stage_progress

if TYPE_CHECKING:
    from rich.console import RenderableType


def declare(parser: OptionParser) -> None:
    """Add the arguments of `conform`."""
    add = parser.add_argument
    add("--spec", metavar="S", required=True, help="specification: tosa, onnx or a path, optionally with @VERSION")
    parser.take(targets="names or paths of target descriptions; default: all shipped")
    add("--src", metavar="F", help="plan only casts from this format")
    add("--dst", metavar="F", help="plan only casts to this format")
    parser.take("target_options", "workers", ledger="finished cells")
    add("--prove", action="store_true", help="try all codes of 32-bit sources where nothing else proves the verdict")
    add("--markdown", action="store_true", help="print the matrix as Markdown")
    parser.take("page")


def execute(options: Namespace) -> CommandOutcome:
    """Plan every cell of the matrix.

    Raises:
        ReadError: an option, the ledger or the scheduler is wrong.
        IllegalError: the choice leaves no cast.
        EngineError: a worker runs another version or dies.
    """
    spec, version, attributes = parse_specification(options.spec)
    if attributes:
        raise ReadError("the matrix covers all attributes; give only the specification and its version")
    check_page(options, {})
    workers, ledger = workers_of(options), ledger_of(options)
    values = assignments("--option", options.options)
    names = [name for text in options.target for name in text.split(",")]
    with resume_hint(ledger), stage_progress(options) as progress:
        found = conform(
            spec,
            names,
            version=version,
            src=options.src,
            dst=options.dst,
            prove=options.prove,
            workers=workers.count,
            progress=progress,
            options=values,
            scheduler=workers.scheduler,
            ledger=ledger,
        )

    write_page_of(found, options)

    def text(_: int, *, summary: bool = False) -> RenderableType:
        return matrix_report(found, options, summary=summary, markdown=options.markdown)

    return CommandOutcome(conform_document(found), text, summary=partial(text, summary=True), delivered=removal(ledger))
