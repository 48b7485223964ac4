"""Compiled casts as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from castsim.isa.formats import FORMATS
from castsim.numerics.codec import value_of
from castsim.reports.cast_text import coded_number, number_text
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.numbers import bits_text, json_value, number_document
from castsim.reports.schemas.keys import Bits, Bundles, Number, Value
from castsim.reports.terminal import composed, table
from castsim.reports.value_casts import SourceValue
from castsim.targets.description import Status
from castsim.tools.compiled.cast_comparison import AccountMismatch, Column, ResultComparison, source_format
from castsim.tools.compiled.compiled_casts import MatrixEntry, SourceForm, entries
from castsim.tools.tpc_compiler.c_table import CompiledCastTable
from castsim.tools.tpc_compiler.cast_building import Order


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


class CompiledInput(Number):
    """A value that was cast."""

    text: str = says("The input as given.")


class Account(Keys):
    """Results according to one account."""

    account: str = says("Name of the account.")
    path: str | None = says("The path in words; null if there is none.")
    values: list[list[Number]] = says("The results of each input.")
    poison: list[bool] = says("Whether each input gives poison, for which any result is valid.")


class AccountDifference(Keys):
    """A value for which accounts differ."""

    account: str = says("The other account.")
    input_bits: Bits = says("The code of the input.")
    input: Value = says("The number of the input.")
    value: Value = says("The result.")
    other_value: Value = says("The result by the other account.")


class CompiledValues(CommandDocument, CompiledHead, name="compiled", version=2):
    """Values through a cast of the compiler."""

    vector_operations: int = says("Vector operations of one vector.")
    bundles: Bundles = says("Bundles of one vector.")
    ir: list[str] = says("The instructions of LLVM IR.")
    inputs: list[CompiledInput] = says("The values.")
    results: list[Account] = says("The results by account.")
    differences: list[AccountDifference] = says("The differences between the accounts.")


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


def compiled_document(comparison: ResultComparison, sources: Sequence[SourceValue]) -> Document:
    """Return a comparison; results are listed per account."""
    src, dst = source_format(comparison.cast), FORMATS[comparison.cast.dst.element]
    return {
        **CompiledHead.of(comparison.cast),
        "vector_operations": comparison.vector_operations,
        "bundles": comparison.bundles,
        "ir": [*comparison.instructions],
        "inputs": [CompiledInput.of(source, **number_document(source.code, source.value, src)) for source in sources],
        "results": [_column(column, comparison) for column in comparison.columns],
        "differences": [
            AccountDifference.of(
                account=mismatch.label,
                input_bits=bits_text(mismatch.witness.code, src),
                input=json_value(value_of(mismatch.witness.code, src), src),
                value=json_value(value_of(mismatch.witness.ours, dst), dst),
                other_value=json_value(value_of(mismatch.witness.other, dst), dst),
            )
            for mismatch in comparison.differences
        ],
    }


def _column(column: Column, comparison: ResultComparison) -> Document:
    fmt = FORMATS[comparison.cast.dst.element]
    path = (
        comparison.other.path
        if comparison.other is not None and comparison.other.reading == column.label
        else comparison.cast.path
    )
    return Account.of(
        account=column.label,
        path=str(path)
        if column.label in (comparison.cast.reading, getattr(comparison.other, "reading", None))
        else None,
        values=[[number_document(int(code), value_of(int(code), fmt), fmt) for code in row] for row in column.codes],
        poison=[bool(flag) for flag in column.poison],
    )


def table_document(table: CompiledCastTable) -> Document:
    """Return a table of C-level casts: its cells, and the paths of the pairs without an instruction."""
    cells = [
        TableCell.of(src=src, dst=dst, cell=cell, path=table.mediated.get((src, dst)))
        for (src, dst), cell in table.cells.items()
    ]
    return CompiledTable.of(table, cells=cells)


# Compiled casts as text.


@composed
def compiled_text(comparison: ResultComparison, sources: Sequence[SourceValue]) -> Iterator[RenderableType]:
    """Yield the path of a cast, its results for the inputs, and where accounts differ."""
    cast = comparison.cast
    yield Text(f"{cast.src.name} -> {cast.dst.name} on {cast.target.name}, {_said(comparison)}", style="bold")
    for account in [cast] if comparison.other is None else [cast, comparison.other]:
        doubt = ", assumed" if account.path.status is Status.ASSUMED else ""
        label = f"{account.reading}: " if comparison.other is not None else ""
        yield Text(f"{label}{account.path}   ({'; '.join(account.path.sources) or 'nothing to do'}{doubt})")
    if cast.order is Order.SCALAR:
        yield Text(f"{comparison.bundles} bundles for one element in scalar registers, which is stored as a vector")
    else:
        yield Text(
            f"{comparison.vector_operations} VPU operations in {comparison.bundles} bundles per vector of "
            f"{cast.src.elements}, {cast.order} order"
        )
    kinds = [f"{entry.src.elements}:{entry.dst.elements} {entry.kind}" for entry in _entries(comparison)]
    if kinds:
        yield Text(f"lowering matrix (elements): {', '.join(kinds)}", style="dim")
    if cast.form == SourceForm.AS and cast.src.bits == cast.dst.bits and cast.src.element != "i1":
        yield Text("in kernels in C, as_T(x) keeps the bits; as_T(x, mode) converts as here", style="dim")
    if sources:
        yield _results(comparison, sources)
    for difference in comparison.differences:
        yield _difference(comparison, difference)
    if not comparison.differences and comparison.instructions:
        yield Text("LLVM IR: no difference among the inputs tried")


def _said(comparison: ResultComparison) -> str:
    cast = comparison.cast
    if comparison.instructions:
        return f"LLVM IR {' and '.join(comparison.instructions)}"
    mode = f", mode {cast.mode}" if cast.mode else ", no rounding mode"
    return f"form {cast.form}{mode if cast.form != SourceForm.REINTERPRET else ''}"


def _entries(comparison: ResultComparison) -> tuple[MatrixEntry, ...]:
    """Return the entry of the compiler's matrix for the two element types; reinterpretations have none."""
    cast = comparison.cast
    return () if cast.form == SourceForm.REINTERPRET else entries(cast.target, cast.src.element, cast.dst.element)


def _results(comparison: ResultComparison, sources: Sequence[SourceValue]) -> Table:
    """Return a row per input, a column per account."""
    fmt = source_format(comparison.cast)
    result_table = table("input", "bits", *(column.label for column in comparison.columns), "")
    rows = [column.codes for column in comparison.columns]
    per_row = max(1, len(sources) // max(1, len(rows[0])))
    for row_number, codes in enumerate(zip(*rows, strict=True)):
        given = sources[row_number * per_row : (row_number + 1) * per_row]
        shown = [_cell(comparison, number, row_number) for number in range(len(rows))]
        same = len({tuple(int(code) for code in row) for row in codes}) == 1
        free = any(column.poison[row_number] for column in comparison.columns)
        result_table.add_row(
            ", ".join(f"{number_text(source.value)}{'' if source.exact else ' *'}" for source in given),
            ", ".join(bits_text(source.code, fmt) for source in given),
            *shown,
            "" if same or free else Text("differs", style="bold yellow"),
        )
    return result_table


def _cell(comparison: ResultComparison, column: int, row: int) -> str:
    chosen = comparison.columns[column]
    if chosen.poison[row]:
        return "poison"
    fmt = FORMATS[comparison.cast.dst.element]
    return ", ".join(coded_number(int(code), fmt) for code in chosen.codes[row])


def _difference(comparison: ResultComparison, difference: AccountMismatch) -> Text:
    src, dst, witness = source_format(comparison.cast), FORMATS[comparison.cast.dst.element], difference.witness
    return Text.assemble(
        ("differs from ", "bold yellow"),
        f"{difference.label}: {coded_number(witness.code, src)} becomes {coded_number(witness.ours, dst)}, there "
        f"{coded_number(witness.other, dst)}",
    )


def table_text(cast_table: CompiledCastTable) -> Text:
    """Return the table as Markdown, followed by the chains of the pairs without an instruction."""
    lines = [cast_table.markdown(), "C: CONVERT; C-INT: CONVERT_INT; N/A: no instruction. Through mediators:", ""]
    for path in cast_table.mediated.values():
        doubt = "  (assumed)" if path.status is Status.ASSUMED else ""
        lines.append(f"  {path}{doubt}")
    return Text("\n".join(lines), no_wrap=True)
