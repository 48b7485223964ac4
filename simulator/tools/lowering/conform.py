"""The command `conform`: plan every cast of a specification on every target; the matrix as JSON, text and Markdown."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.commands.option_parsers import assignments
from castsim.commands.outcome import CommandOutcome, plain
from castsim.commands.run_views import check_page, ledger_of, removal, resume_hint, with_note, write_page_of
from castsim.isa.errors import ReadError
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.progress import stage_progress
from castsim.reports.schemas.keys import Name, Scalar, WorkerEntry
from castsim.reports.targets import specification_words
from castsim.reports.terminal import indented, table
from castsim.running.acceptance import SpecifiedCast, parse_specification
from castsim.tools.distribution.distributing import workers_of
from castsim.tools.distribution.origins import Origins
from castsim.tools.lowering.conformance import ConformanceEntry, Matrix, changed, conform
from castsim.tools.lowering.conformance import LoweredMatrix as LoweredCells
from castsim.tools.lowering.demand import Counterexample, TracedValue, Verdict
from castsim.tools.lowering.lowering_answers import options_text, setting_text
from castsim.tools.lowering.planner import SAMPLED_MARK, PlanKind, code_text
from castsim.tools.lowering.report import number_text


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
    check_page(options.html, {"--json": options.json})
    workers = workers_of(options.workers, options.scheduler)
    ledger = ledger_of(options.ledger, {"--json": options.json, "--html": options.html})
    values = assignments("--option", options.options)
    names = [name for text in options.target for name in text.split(",")]
    with resume_hint(ledger), stage_progress(options.quiet, options.json) as progress:
        matrix = conform(
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

    write_page_of(options.html, "castsim.tools.lowering.page", matrix)

    def text(_: int, *, summary: bool = False) -> RenderableType:
        return matrix_report(matrix, options.html, summary=summary, markdown=options.markdown)

    return CommandOutcome(
        conform_document(matrix), text, summary=partial(text, summary=True), delivered=removal(ledger)
    )


# The matrix as JSON.


class MatrixCell(ConformanceEntry):
    """A cast of the specification on one target."""

    computed_by: int = says("The worker that computed it: its index in `workers`, from 0.")


class MatrixTotal(Keys):
    """Number of casts of one kind on one target."""

    target: str = says("Name of the target.")
    way: PlanKind = says("The method.")
    cells: int = says("Number of casts.")


class LoweredMatrixCell(MatrixCell):
    """A cast of the specification on the target, and its program."""

    program: str | None = says("Text of the program; null if there is none.")
    file: str | None = says("The output file; null if none was written.")


def _totals_of(matrix: Matrix) -> list[Document]:
    return [
        MatrixTotal.of(
            target=target, way=kind, cells=sum(e.kind is kind for e in matrix.entries if e.cell.target == target)
        )
        for target in matrix.targets
        for kind in PlanKind
    ]


class MatrixForm(CommandDocument):
    """A matrix: casts of a specification on targets."""

    specification: str = says("Name of the specification.", "spec.name")
    version: str = says("Its version.")
    targets: list[str] = says("Names of the targets.")
    options: dict[Name, Scalar] = says("The given options of the targets.", lambda found: dict(found.options))
    cells: list[MatrixCell] = says("One entry for each cast and target.")
    totals: list[MatrixTotal] = says("Number of casts by method.", _totals_of)
    workers: list[WorkerEntry] = says("The workers of the computation.")


class Conform(MatrixForm, name="conform", version=4):
    """Every cast of a specification on targets."""


class LoweredMatrix(MatrixForm, name="lower-matrix", version=2):
    """Without SRC and DST: every cast of a specification lowered to one target."""

    cells: list[LoweredMatrixCell] = says("One entry for each cast and target.")  # type: ignore[assignment]


def conform_document(matrix: Matrix) -> Document:
    """Return a matrix as JSON, one entry per cell."""
    origins = Origins()
    cells = [
        MatrixCell.of(entry, computed_by=origins.place(by))
        for entry, by in zip(matrix.entries, matrix.origins, strict=True)
    ]
    return Conform.of(matrix, cells=cells, workers=origins.documents())


def lowered_matrix_document(lowered_cells: LoweredCells, files: Sequence[str | None]) -> Document:
    """Return a matrix of one target as JSON, each cell with its program and output file."""
    origins, matrix = Origins(), lowered_cells.matrix
    cells = [
        LoweredMatrixCell.of(entry, computed_by=origins.place(by), program=lowered.program, file=file)
        for entry, by, lowered, file in zip(matrix.entries, matrix.origins, lowered_cells.cells, files, strict=True)
    ]
    return LoweredMatrix.of(matrix, cells=cells, workers=origins.documents())


def cast_text(cast: SpecifiedCast, entry: ConformanceEntry) -> str:
    """Return the name of a row."""
    attributes = "".join(f", {name}={value}" for name, value in changed(cast))
    return f"{entry.cell.src} -> {entry.cell.dst}{attributes}"


def cell_text(entry: ConformanceEntry) -> str:
    """Return a cell in words: the method, requested modes, options and cost; or where it fails."""
    if entry.kind is PlanKind.IMPOSSIBLE:
        return "impossible: no elements of the width"
    if entry.kind is PlanKind.NONE_FOUND:
        return "no chain found" if entry.counterexample is None else f"no: {_failure(entry.counterexample)}"
    marks = f" with options {setting_text(entry.settings)}" if entry.settings else ""
    marks += "" if entry.verdict is Verdict.EXACT else " (within tolerance)"
    marks += "" if entry.proven else SAMPLED_MARK
    if entry.kind is PlanKind.COPY:
        return f"copy{marks}"
    cost = "" if entry.cycles_per_element is None else f", {entry.cycles_per_element:.3f}"
    cost += "" if entry.native is None else f"; or native with options {setting_text(entry.native)}"
    return f"{_done(entry)}{marks}{cost}"


def _done(entry: ConformanceEntry) -> str:
    asked = [option for option in entry.options if option]
    if entry.kind in (PlanKind.NATIVE, PlanKind.OPTIONS):
        return asked[0] if asked else "native"
    return "; ".join(
        f"{name} ({option})" if option else name for name, option in zip(entry.instructions, entry.options, strict=True)
    )


def _failure(example: Counterexample) -> str:
    required, result = example.required, example.result
    right = []
    if required.lowest is not None and required.highest is not None:
        low, high = number_text(required.lowest[1]), number_text(required.highest[1])
        right.append(low if low == high else f"{low} to {high}")
    right += ["NaN"] if required.nan else []
    values = [number_text(traced.value) for traced in _changing(example)]
    if values[-1] in right:  # a boolean that is true, but not 1
        values[-1] = code_text(result.code, result.format)
    return f"{' -> '.join(values)}, not {' or '.join(right)}"


def _changing(example: Counterexample) -> list[TracedValue]:
    """Return the input, every value that differs from the previous one, and always the result."""
    values = example.values
    kept = [traced for before, traced in pairwise(values) if number_text(before.value) != number_text(traced.value)]
    return [values[0], *(kept or [values[-1]])]


# A conformance matrix as a table for the terminal, and as a page in Markdown.

LEGEND: Mapping[str, str] = {
    "native": "native: one instruction.",
    "modes": "`saturation ON`, `rounding TRUNC` and similar: modes in the text of an instruction, unlike options of "
    "the target such as bits of CTRL.",
    "chain": "Several instructions: a chain, with its modes.",
    "copy": "copy: no bit changes.",
    "options": "with options NAME=VALUE: conforms if `castsim run` is given these options of the target, which a "
    "program or its launcher can set; or native with options: with these, one instruction does it instead of the "
    "chain.",
    "cost": "The number is the cost of the whole program, loads and stores included, in simulated cycles per element.",
    "tolerance": "(within tolerance): conforms, but does not always give the nearest result.",
    "samples": "~: the verdict is based on samples; `castsim lower` and --prove try all 32-bit codes.",
    "none": "no: no chain of up to four steps gives the result, with or without options; longer ones were not tried. "
    "The cell shows a value on which the closest chain fails, its result, and the correct result.",
    "bytes": "no chain found: no instruction takes or gives one of the formats; where it is an integer of fewer than 8 "
    "bits, `castsim graph` holds each element in a byte and computes the cast.",
    "impossible": "impossible: the target has no elements of that width.",
}
"""Explanations of words in cells, in the order in which a table lists those that it uses."""


def legend_lines(matrix: Matrix) -> tuple[str, ...]:
    """Return the legend of the words that the cells of a matrix use."""
    used = {word for entry in matrix.entries for word in _words_used(entry)}
    return tuple(text for word, text in LEGEND.items() if word in used)


def _words_used(entry: ConformanceEntry) -> set[str]:
    """Return the keys of the words that the cell of an entry uses."""
    if entry.kind is PlanKind.IMPOSSIBLE:
        return {"impossible"}
    if entry.kind is PlanKind.NONE_FOUND:
        return {"bytes" if entry.counterexample is None else "none"}
    single = entry.kind in (PlanKind.NATIVE, PlanKind.OPTIONS)
    used = {
        "modes": any(entry.options),
        "native": single and not any(entry.options),
        "chain": entry.kind is PlanKind.CHAIN,
        "copy": entry.kind is PlanKind.COPY,
        "options": bool(entry.settings or entry.native),
        "cost": entry.kind is not PlanKind.COPY and entry.cycles_per_element is not None,
        "tolerance": entry.verdict is not Verdict.EXACT,
        "samples": not entry.proven,
    }
    return {word for word, is_used in used.items() if is_used}


def conform_text(matrix: Matrix) -> RenderableType:
    """Return the matrix for the terminal: a line per cell, cast by cast."""
    cells = (
        (cast_text(cast, entry) if column == 0 else "", entry.cell.target, cell_text(entry))
        for number, cast in enumerate(matrix.casts)
        for column, entry in enumerate(matrix.row(number))
    )
    rows = table("cast", "target", "answer", rows=cells)
    return Group(
        Text(_head(matrix)), indented(rows), Text(""), *map(Text, _notes(matrix)), Text(""), conform_totals(matrix)
    )


def conform_summary(matrix: Matrix) -> RenderableType:
    """Return the number of casts of each kind on each target."""
    return Group(
        Text(_head(matrix)),
        conform_totals(matrix),
        Text("Run without --summary to see every cast.", style="dim"),
    )


def _head(matrix: Matrix) -> str:
    options = f" with {setting_text(matrix.options)}" if matrix.options else ""
    return f"Casts of {specification_words(f'{matrix.spec.name}@{matrix.version}')} on the targets{options}"


def _notes(matrix: Matrix) -> tuple[str, ...]:
    """Return the notes on the table: its words, and the parts of the specification that it leaves out."""
    legend = " ".join(legend_lines(matrix))
    if matrix.spec.rescale is None:
        return (legend,)
    return legend, f"RESCALE of {matrix.spec.name} is not in the table: it is not a cast; `castsim graph` runs it."


def conform_totals(matrix: Matrix) -> RenderableType:
    """Return the number of casts of each kind on each target."""
    rows = ((target, *(str(_count(matrix, target, kind)) for kind in PlanKind)) for target in matrix.targets)
    return indented(table("target", *(f">{kind.value}" for kind in PlanKind), rows=rows))


def _command(matrix: Matrix) -> str:
    options = f" {options_text(matrix.options)}" if matrix.options else ""
    return f"castsim conform --spec {matrix.spec.name}@{matrix.version}{options} --markdown"


def _count(matrix: Matrix, target: str, kind: PlanKind) -> int:
    return sum(_counted_as(entry) is kind for entry in matrix.entries if entry.cell.target == target)


def _counted_as(entry: ConformanceEntry) -> PlanKind:
    """Return the kind of a cell; modes in the text of an instruction are not target options."""
    asks = entry.kind is PlanKind.OPTIONS and not entry.settings
    return PlanKind.NATIVE if asks else entry.kind


def conform_markdown(matrix: Matrix) -> str:
    """Return the matrix as a Markdown page."""
    lines = [
        f"# {_head(matrix)}: conformance",
        "",
        f"Written by `{_command(matrix)}`; a test keeps it current.",
        "",
        *(line for note in _notes(matrix) for line in (note, "")),
        f"| target | {' | '.join(kind.value for kind in PlanKind)} |",
        f"|---|{'---:|' * len(PlanKind)}",
        *(
            f"| {target} | {' | '.join(str(_count(matrix, target, kind)) for kind in PlanKind)} |"
            for target in matrix.targets
        ),
        "",
        f"| cast | {' | '.join(matrix.targets)} |",
        f"|---|{'---|' * len(matrix.targets)}",
    ]
    for number, cast in enumerate(matrix.casts):
        entries = matrix.row(number)
        cells = " | ".join(cell_text(entry) for entry in entries)
        lines.append(f"| {cast_text(cast, entries[0])} | {cells} |")
    return "\n".join(lines) + "\n"


def matrix_report(
    matrix: Matrix, html: str | None, *notes: str, summary: bool, markdown: bool = False
) -> RenderableType:
    """Return a matrix as text, with notes under it."""
    if markdown and not summary:
        return plain(conform_markdown(matrix))
    return with_note(conform_summary(matrix) if summary else conform_text(matrix), html, *notes)
