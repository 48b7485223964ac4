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
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.option_parsers import assignments, output_folder, workers_of
from castsim.commands.outcome import STDOUT, CommandOutcome, write_program
from castsim.commands.run_views import check_page, ledger_of, removal, resume_hint, with_note, write_page_of
from castsim.commands.shared_options import OptionParser
from castsim.files import file_names
from castsim.isa.errors import ReadError
from castsim.lowering.acceptance import parse_specification
from castsim.lowering.conformance import Extent, LoweredMatrix, conform, lower_all
from castsim.lowering.demand import Verdict
from castsim.reports.conform import conform_document, lowered_matrix_document
from castsim.reports.progress import stage_progress

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.lowering.conformance import Matrix


def declare(parser: OptionParser) -> None:
    """Add the arguments of `conform`."""
    add = parser.add_argument
    add("--spec", metavar="S", required=True, help="specification: tosa, onnx, or a path; optionally with @VERSION")
    parser.take(targets="names or paths of target descriptions; default: all shipped")
    add("--src", metavar="F", help="casts from this format only")
    add("--dst", metavar="F", help="casts to this format only")
    parser.take("target_options", "workers", ledger="finished cells")
    add("--prove", action="store_true", help="try all codes of 32-bit sources if nothing less proves a verdict")
    add("--markdown", action="store_true", help="print a page in Markdown")
    parser.take("page")


def execute(options: Namespace) -> CommandOutcome:
    """Plan the cells.

    Raises:
        ReadError: what was typed; the ledger; the scheduler.
        IllegalError: no cast is left.
        EngineError: workers that are others, or die.
    """
    spec, version, attributes = parse_specification(options.spec)
    if attributes:
        raise ReadError("the matrix goes through all attributes; name the specification and its version only")
    check_page(options, {})
    workers, ledger = workers_of(options), ledger_of(options)
    values = assignments("--option", options.options)
    names = [name for text in options.target for name in text.split(",")]
    with resume_hint(ledger, "matrix"), stage_progress(quiet=options.quiet) as progress:
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


def matrix_report(
    found: Matrix, options: Namespace, *notes: str, summary: bool, markdown: bool = False
) -> RenderableType:
    """Return a matrix as text, with notes under it."""
    from castsim.reports import conform as texts  # noqa: PLC0415 - rich, only if printed

    if markdown and not summary:
        return texts.markdown_text(found)
    return with_note(texts.conform_summary(found) if summary else texts.conform_text(found), options, *notes)


# `castsim lower` without a cast: all casts of a specification, each with its program.


def lower_matrix(options: Namespace, *, rows: int, cols: int, steps: int) -> CommandOutcome:
    """Lower the casts, for tensors of `rows` times `cols` elements, by chains of up to `steps` instructions.

    Raises:
        ReadError: what was typed; the ledger; the scheduler; a file that cannot be written.
        IllegalError: the specification has no casts.
        TileError: no program holds a tensor of that shape.
        EngineError: workers that are others, or die.
    """
    _check(options)
    spec, version, attributes = parse_specification(options.spec)
    if attributes:
        raise ReadError("the matrix goes through all attributes; name the specification and its version only")
    workers, ledger = workers_of(options), ledger_of(options)
    folder = output_folder(options.out)
    values = assignments("--option", options.options)
    with resume_hint(ledger, "matrix"), stage_progress(quiet=options.quiet) as progress:
        found = lower_all(
            spec, options.target, version=version, options=values, extent=Extent(rows, cols, steps),
            workers=workers, ledger=ledger, progress=progress,
        )  # fmt: skip
    files = [None] * len(found.cells) if folder is None else _write(found, folder)
    write_page_of(found.matrix, options)

    notes = [] if folder is None else [f"{sum(map(bool, files))} programs written to {folder}"]

    def text(_: int, *, summary: bool = False) -> RenderableType:
        return matrix_report(found.matrix, options, *notes, summary=summary)

    differs = any(each.entry.verdict is Verdict.DIFFERS for each in found.cells)
    document = lowered_matrix_document(found, files)
    return CommandOutcome(document, text, int(differs), partial(text, summary=True), removal(ledger))


def _check(options: Namespace) -> None:
    given = {"--via": options.via, "--rounding": options.rounding, "--saturate": options.saturate}
    for name, value in given.items():
        if value:
            raise ReadError(f"{name} belongs to one cast, not to all of a specification", legal=("lower SRC DST ...",))
    if options.out == STDOUT:
        raise ReadError("--out -: the programs of all casts are files in a folder", legal=("--out DIR",))
    check_page(options, {"--out": options.out})


def _write(found: LoweredMatrix, folder: Path) -> list[str | None]:
    """Write each program to a file of the folder; return their paths, None for cells without one."""
    words = [
        "_".join((cell.src, cell.dst, *(word for pair in cell.attributes for word in pair)))
        for cell in (each.entry.cell for each in found.cells)
    ]
    names = file_names(words)
    paths = [
        None if each.program is None else folder / f"{names[word]}{each.suffix}"
        for each, word in zip(found.cells, words, strict=True)
    ]
    for each, path in zip(found.cells, paths, strict=True):
        if path is not None and each.program is not None:
            write_program(path, each.program)
    return [None if path is None else str(path) for path in paths]
