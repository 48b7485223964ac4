"""The execution of `castsim lower` without a cast: all casts of a specification, each with its program."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.commands.execution.conform import matrix_report
from castsim.commands.execution.page_files import check_page, write_page_of
from castsim.commands.execution.workers import ledger_of, removal, resume_hint, workers_of
from castsim.commands.option_parsers import assignments, output_folder
from castsim.commands.outcome import Outcome
from castsim.commands.output import STDOUT, write_program
from castsim.files import file_names
from castsim.isa.errors import ReadError
from castsim.planning import Verdict
from castsim.planning.conformance.matrix import Extent, LoweredMatrix, lower_all
from castsim.reports.conform import lowered_matrix_document
from castsim.reports.progress import stage_progress
from castsim.specifications import parse_specification

if TYPE_CHECKING:
    from rich.console import RenderableType


def execute(options: Namespace, *, rows: int, cols: int, steps: int) -> Outcome:
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
    return Outcome(document, text, int(differs), partial(text, summary=True), removal(ledger))


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
