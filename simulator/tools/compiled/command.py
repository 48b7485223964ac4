"""The command `compiled`: show how the TPC compiler makes casts of C and LLVM IR: chains, values, assembly."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from castsim.commands.cast import read_value
from castsim.commands.option_parsers import given_of, refuse_given
from castsim.commands.outcome import CommandOutcome, plain, stacked
from castsim.isa.errors import ReadError
from castsim.isa.reading import read_text
from castsim.reports.cast_text import coded_number, number_text
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.numbers import bits_text
from castsim.reports.schemas.keys import Bundles
from castsim.reports.terminal import composed, table
from castsim.targets.description import Status
from castsim.tools.compiled.cast_comparison import (
    Account,
    AccountDifference,
    CompiledInput,
    CompiledResults,
    casts_of_text,
    compare,
    source_format,
)
from castsim.tools.compiled.compiled_casts import (
    CompiledCast,
    MatrixEntry,
    SourceForm,
    compile_cast,
    entries,
    tpc_target,
)
from castsim.tools.tpc_compiler.c_table import CompiledCastTable, cast_table
from castsim.tools.tpc_compiler.cast_building import Order

IR_SUFFIX = ".ll"


class Hop(Keys):
    """A step of a path."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    means: str = says("The means of the step.")
    through: str | None = says("The intermediate format; null if there is none.")
    rounding: str | None = says("The rounding of the step; null if it is that of the cast.", "word")


class CastPath(Keys):
    """The path of a cast, hop by hop."""

    types: list[str] = says("Names of the formats.")
    steps: list[Hop] = says("The steps.", "hops")
    status: Status = says("Evidence for the path.")
    sources: list[str] = says("Sources of the path.")


class CompiledHead(Keys):
    """A cast of the compiler."""

    target: str = says("Name of the target.")
    src: str = says("The source type.", "src.name")
    dst: str = says("The destination type.", "dst.name")
    form: str = says("Form of the cast in the source program.")
    reading: str = says("The account of the chain that is followed.")
    order: str = says("Order of the result's elements.")
    rounding: str | None = says("The rounding; null if nothing is rounded.", "mode")
    roundings: list[str] = says("The possible roundings.", lambda cast: cast.path.modes(cast.target))
    lowering_kind: str | None = says("Kind of the compiler's lowering; null if it has none for the pair.", "kind")
    path: CastPath = says("The steps.")


class CompiledAssembly(CommandDocument, CompiledHead, name="compiled-emit", version=2):
    """With `--emit`: the assembly of a cast."""

    assembly: str = says("Its assembly.")


class CompiledValues(CompiledResults, CommandDocument, CompiledHead, name="compiled", version=2):
    """Values through a cast of the compiler."""


class IrCast(CompiledHead):
    """A cast in an LLVM IR text: as in `compiled`, or with its assembly."""

    line: int = says("Its line.")
    column: int = says("Its column.")
    written: str = says("The instruction.")
    assembly: str = says("With `--emit`: its assembly.", optional=True)
    vector_operations: int = says("Vector operations of one vector.", optional=True)
    bundles: Bundles = says("Bundles of one vector.", optional=True)
    ir: list[str] = says("The instructions of LLVM IR.", optional=True)
    inputs: list[CompiledInput] = says("The values.", optional=True)
    results: list[Account] = says("The results by account.", optional=True)
    differences: list[AccountDifference] = says("The differences between the accounts.", optional=True)


class CompiledText(CommandDocument, name="compiled-ir", version=2):
    """The casts of a text of LLVM IR."""

    casts: list[IrCast] = says("The casts, in the order of the text.")


class TableCell(Keys):
    """A pair of a table."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    cell: str = says("The entry of the vendor's table.")
    path: CastPath | None = says("The path of a pair without an instruction; null for others.")


class CompiledTable(CommandDocument, name="compiled-table", version=2):
    """With `--table`: the C-level casts of a target."""

    target: str = says("Name of the target.")
    elements: list[str] = says("Names of the element formats.")
    cells: list[TableCell] = says("All pairs.")


def compiled_document(results: CompiledResults) -> Document:
    """Return a cast with its results; these are listed per account."""
    return {**CompiledHead.of(results.cast), **results.as_json()}


def table_document(table: CompiledCastTable) -> Document:
    """Return a table of C-level casts: its cells, and the paths of the pairs without an instruction."""
    cells = [
        TableCell.of(src=src, dst=dst, cell=cell, path=table.mediated.get((src, dst)))
        for (src, dst), cell in table.cells.items()
    ]
    return CompiledTable.of(table, cells=cells)


def execute(options: Namespace) -> CommandOutcome:
    """Compile the cast, and run it on the values.

    Raises:
        ReadError: a type, form, mode or target is unknown, or a value is neither a number nor a code.
        IllegalError: the target or the form lacks the pair, mode, number of elements or order.
    """
    if options.table:
        if options.src is not None:
            raise ReadError("--table lists all casts of a target; leave out SRC and DST")
        return _table(options.target)
    if options.src is not None and options.src.endswith(IR_SUFFIX):
        why = "does not apply to LLVM IR text, which determines it"
        given = given_of(options, "form", "rounding", "reading")
        refuse_given(given, why, usual=("as", "compiler"), legal=("--order",))
        texts = [options.dst, *options.values] if options.dst is not None else []
        return _text(options.src, options.target, options.order, texts, emit=options.emit)
    if options.dst is None:
        raise ReadError("SRC and DST are needed (see `castsim compiled --help`)")
    cast = compile_cast(
        options.src,
        options.dst,
        options.target,
        form=options.form,
        rounding=options.rounding,
        reading=options.reading,
        order=options.order,
    )
    if not options.emit:
        results = _compared(cast, options.values)
        document = {"schema_version": CompiledValues.VERSION, **compiled_document(results)}
        return CommandOutcome(document, lambda _: compiled_text(results))
    assembly = cast.kernel.text()  # of one vector
    document = {"schema_version": CompiledAssembly.VERSION, **CompiledHead.of(cast), "assembly": assembly}
    return CommandOutcome(document, lambda _: plain(assembly.rstrip("\n")))


def _compared(cast: CompiledCast, texts: list[str]) -> CompiledResults:
    """Return the results of a cast for values, and where the accounts differ."""
    fmt = source_format(cast)
    return compare(cast, [read_value(text.strip(), fmt) for text in texts])


def _text(file: str, target: str, order: str, texts: list[str], *, emit: bool) -> CommandOutcome:
    """Show the casts of an LLVM IR text, with the results for values."""
    text_casts = casts_of_text(read_text(file, "LLVM IR"), file, tpc_target(target), order)
    places = [
        {"line": text_cast.span.line, "column": text_cast.span.column, "written": text_cast.written}
        for text_cast in text_casts
    ]
    if emit:
        parts = [
            f"// {text_cast.span}: {text_cast.written}\n{text_cast.cast.kernel.text()}" for text_cast in text_casts
        ]
        casts = [{**location, **CompiledHead.of(text_cast.cast), "assembly": part} for location, text_cast, part in
                 zip(places, text_casts, parts, strict=True)]  # fmt: skip
        document = {"schema_version": CompiledText.VERSION, "casts": casts}
        return CommandOutcome(document, lambda _: plain("".join(parts).rstrip("\n")))
    results = [_compared(text_cast.cast, texts) for text_cast in text_casts]
    casts = [{**location, **compiled_document(result)} for location, result in zip(places, results, strict=True)]

    def text(_: int) -> Any:
        pairs = zip(text_casts, results, strict=True)
        return stacked(
            *(
                part
                for text_cast, result in pairs
                for part in (plain(f"{text_cast.span}: {text_cast.written}", no_wrap=False), compiled_text(result))
            )
        )

    return CommandOutcome({"schema_version": CompiledText.VERSION, "casts": casts}, text)


def _table(target: str) -> CommandOutcome:
    """Show the C-level casts of a generation."""
    shown = cast_table(tpc_target(target))
    return CommandOutcome(table_document(shown), lambda _: table_text(shown))


# Compiled casts as text.


@composed
def compiled_text(results: CompiledResults) -> Iterator[RenderableType]:
    """Yield the path of a cast, its results for the inputs, and where accounts differ."""
    cast = results.cast
    yield Text(f"{cast.src.name} -> {cast.dst.name} on {cast.target.name}, {_said(results)}", style="bold")
    for account in [cast] if results.other is None else [cast, results.other]:
        doubt = ", assumed" if account.path.status is Status.ASSUMED else ""
        label = f"{account.reading}: " if results.other is not None else ""
        yield Text(f"{label}{account.path}   ({'; '.join(account.path.sources) or 'nothing to do'}{doubt})")
    if cast.order is Order.SCALAR:
        yield Text(f"{results.bundles} bundles for one element in scalar registers, which is stored as a vector")
    else:
        yield Text(
            f"{results.vector_operations} VPU operations in {results.bundles} bundles per vector of "
            f"{cast.src.elements}, {cast.order} order"
        )
    kinds = [f"{entry.src.elements}:{entry.dst.elements} {entry.kind}" for entry in _entries(results)]
    if kinds:
        yield Text(f"lowering matrix (elements): {', '.join(kinds)}", style="dim")
    if cast.form == SourceForm.AS and cast.src.bits == cast.dst.bits and cast.src.element != "i1":
        yield Text("in kernels in C, as_T(x) keeps the bits; as_T(x, mode) converts as here", style="dim")
    if results.sources:
        yield _results(results)
    yield from map(_difference, results.differences)
    if not results.differences and results.ir:
        yield Text("LLVM IR: no difference among the inputs tried")


def _said(results: CompiledResults) -> str:
    cast = results.cast
    if results.ir:
        return f"LLVM IR {' and '.join(results.ir)}"
    mode = f", mode {cast.mode}" if cast.mode else ", no rounding mode"
    return f"form {cast.form}{mode if cast.form != SourceForm.REINTERPRET else ''}"


def _entries(results: CompiledResults) -> tuple[MatrixEntry, ...]:
    """Return the entry of the compiler's matrix for the two element types; reinterpretations have none."""
    cast = results.cast
    return () if cast.form == SourceForm.REINTERPRET else entries(cast.target, cast.src.element, cast.dst.element)


def _results(results: CompiledResults) -> Table:
    """Return a row per input, a column per account."""
    fmt = source_format(results.cast)
    result_table = table("input", "bits", *(column.account for column in results.columns), "")
    rows, sources = [column.codes for column in results.columns], results.sources
    per_row = max(1, len(sources) // max(1, len(rows[0])))
    for row_number, codes in enumerate(zip(*rows, strict=True)):
        given = sources[row_number * per_row : (row_number + 1) * per_row]
        shown = [_cell(column, row_number) for column in results.columns]
        same = len({tuple(int(code) for code in row) for row in codes}) == 1
        free = any(column.poison[row_number] for column in results.columns)
        result_table.add_row(
            ", ".join(f"{number_text(source.value)}{'' if source.exact else ' *'}" for source in given),
            ", ".join(bits_text(source.code, fmt) for source in given),
            *shown,
            "" if same or free else Text("differs", style="bold yellow"),
        )
    return result_table


def _cell(account: Account, row: int) -> str:
    if account.poison[row]:
        return "poison"
    return ", ".join(coded_number(int(code), account.format) for code in account.codes[row])


def _difference(difference: AccountDifference) -> Text:
    src, dst, witness = difference.src, difference.dst, difference.witness
    return Text.assemble(
        ("differs from ", "bold yellow"),
        f"{difference.account}: {coded_number(witness.code, src)} becomes {coded_number(witness.ours, dst)}, there "
        f"{coded_number(witness.other, dst)}",
    )


def table_text(cast_table: CompiledCastTable) -> Text:
    """Return the table as Markdown, followed by the chains of the pairs without an instruction."""
    lines = [cast_table.markdown(), "C: CONVERT; C-INT: CONVERT_INT; N/A: no instruction. Through mediators:", ""]
    for path in cast_table.mediated.values():
        doubt = "  (assumed)" if path.status is Status.ASSUMED else ""
        lines.append(f"  {path}{doubt}")
    return Text("\n".join(lines), no_wrap=True)
