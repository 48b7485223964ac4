"""Compiled casts, builtins and special functions of TPC-C as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.isa.formats import FORMATS, Format
from castsim.numerics import value_of
from castsim.reports.cast import SourceValue
from castsim.reports.cast_text import number_text
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.numbers import bits_text, json_value, number_document
from castsim.reports.run_report import output_of
from castsim.reports.schemas.keys import Bits, Bundles, Cycles, Number, Output, Scalar, StaleRead, Value
from castsim.reports.terminal import table
from castsim.targets.description import Status
from castsim.targets.tpc_compiler import ResultOrder
from castsim.tpc_compiler.builtin_calls import Builtin, BuiltinResult
from castsim.tpc_compiler.c_table import CompiledCastTable
from castsim.tpc_compiler.cast_building import Order
from castsim.tpc_compiler.cast_comparison import AccountMismatch, Column, ResultComparison, source_format
from castsim.tpc_compiler.compiled_casts import CompiledCast, MatrixEntry, SourceForm, entries
from castsim.tpc_compiler.special_function_calls import DescriptorCall as CalledDescriptor
from castsim.tpc_compiler.special_function_calls import FunctionProgram, FunctionResult


class Hop(Keys):
    """A step of a path."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    means: str = says("By what.")
    through: str | None = says("The format on the way; null if there is none.")
    rounding: str | None = says("Its own rounding; null if it takes that of the cast.", "word")


class CastPath(Keys):
    """The way of a cast."""

    types: list[str] = says("Names of the formats.")
    steps: list[Hop] = says("The steps.", "hops")
    status: Status = says("How well it is known.")
    sources: list[str] = says("Where it is from.")


class CompiledHead(Keys):
    """A cast of the compiler."""

    target: str = says("Name of the target.")
    src: str = says("The source type.", "src.name")
    dst: str = says("The destination type.", "dst.name")
    form: str = says("How the source says it.")
    reading: str = says("Whose account of a chain is followed.")
    order: str = says("Order of the result's elements.")
    rounding: str | None = says("The rounding; null where nothing is rounded.", "mode")
    roundings: list[str] = says("The roundings that it may have.", lambda cast: cast.path.modes(cast.target))
    lowering_kind: str | None = says("How the compiler lowers it; null if it does so in none of its ways.", "kind")
    path: CastPath = says("The steps.")


class CompiledAssembly(CommandDocument, CompiledHead, name="compiled-emit"):
    """With `--emit`: the assembly of a cast."""

    assembly: str = says("Its assembly.")


class CompiledInput(Number):
    """A value that was cast."""

    text: str = says("As it was given.")


class Account(Keys):
    """Results by one account."""

    account: str = says("Whose.")
    path: str | None = says("Its path in words; null if it has none.")
    values: list[list[Number]] = says("The results of each input.")
    poison: list[bool] = says("Whether each input gives poison, for which any result is right.")


class AccountDifference(Keys):
    """A value for which accounts differ."""

    account: str = says("The other account.")
    input_bits: Bits = says("The code that is cast.")
    input: Value = says("Its number.")
    value: Value = says("The result.")
    other_value: Value = says("The result by the other account.")


class CompiledValues(CommandDocument, CompiledHead, name="compiled"):
    """Values through a cast of the compiler."""

    vector_operations: int = says("Vector operations of one vector.")
    bundles: Bundles = says("Bundles of one vector.")
    ir: list[str] = says("The instructions of LLVM IR.")
    inputs: list[CompiledInput] = says("The values.")
    results: list[Account] = says("The results by account.")
    differences: list[AccountDifference] = says("Where accounts differ.")


class IrCast(CompiledHead):
    """A cast of a text of LLVM IR: as `compiled` has it, or with its assembly."""

    line: int = says("Its line.")
    column: int = says("Its column.")
    written: str = says("The instruction.")
    assembly: str = says("With `--emit`: its assembly.", optional=True)
    vector_operations: int = says("Vector operations of one vector.", optional=True)
    bundles: Bundles = says("Bundles of one vector.", optional=True)
    ir: list[str] = says("The instructions of LLVM IR.", optional=True)
    inputs: list[CompiledInput] = says("The values.", optional=True)
    results: list[Account] = says("The results by account.", optional=True)
    differences: list[AccountDifference] = says("Where accounts differ.", optional=True)


class CompiledText(CommandDocument, name="compiled-ir"):
    """The casts of a text of LLVM IR."""

    casts: list[IrCast] = says("In the order of the text.")


class TableCell(Keys):
    """A pair of a table."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    cell: str = says("What the vendor's table says.")
    path: CastPath | None = says("The path of a pair without an instruction; null for others.")


class CompiledTable(CommandDocument, name="compiled-table"):
    """With `--table`: the C-level casts of a target."""

    target: str = says("Name of the target.")
    elements: list[str] = says("Names of the element formats.")
    cells: list[TableCell] = says("Every pair.")


def cast_document(cast: CompiledCast) -> Document:
    """Return the document of a cast: types, path, mode, kind of lowering."""
    return CompiledHead.of(cast)


def compiled_document(found: ResultComparison, sources: Sequence[SourceValue]) -> Document:
    """Return a comparison; results are listed per account."""
    src, dst = source_format(found.cast), FORMATS[found.cast.dst.element]
    return {
        **cast_document(found.cast),
        "vector_operations": found.vector_operations,
        "bundles": found.bundles,
        "ir": [*found.instructions],
        "inputs": [CompiledInput.of(source, **number_document(source.code, source.value, src)) for source in sources],
        "results": [_column(column, found) for column in found.columns],
        "differences": [
            AccountDifference.of(
                account=each.label,
                input_bits=bits_text(each.witness.code, src),
                input=json_value(value_of(each.witness.code, src), src),
                value=json_value(value_of(each.witness.ours, dst), dst),
                other_value=json_value(value_of(each.witness.other, dst), dst),
            )
            for each in found.differences
        ],
    }


def _column(column: Column, found: ResultComparison) -> Document:
    fmt = FORMATS[found.cast.dst.element]
    path = found.other.path if found.other is not None and found.other.reading == column.label else found.cast.path
    return Account.of(
        account=column.label,
        path=str(path) if column.label in (found.cast.reading, getattr(found.other, "reading", None)) else None,
        values=[[number_document(int(code), value_of(int(code), fmt), fmt) for code in row] for row in column.codes],
        poison=[bool(each) for each in column.poison],
    )


def table_document(table: CompiledCastTable) -> Document:
    """Return a table of C-level casts: its cells, and the paths of the pairs without an instruction."""
    cells = [
        TableCell.of(src=src, dst=dst, cell=cell, path=table.mediated.get((src, dst)))
        for (src, dst), cell in table.cells.items()
    ]
    return CompiledTable.of(table, cells=cells)


# Compiled casts as text.


def compiled_text(found: ResultComparison, sources: Sequence[SourceValue]) -> RenderableType:
    """Return the path of a cast, its results for the inputs, and where accounts differ."""
    return Group(*_sections(found, sources))


def _sections(found: ResultComparison, sources: Sequence[SourceValue]) -> Iterator[RenderableType]:
    cast = found.cast
    yield Text(f"{cast.src.name} -> {cast.dst.name} on {cast.target.name}, {_said(found)}", style="bold")
    for each in [cast] if found.other is None else [cast, found.other]:
        doubt = ", assumed" if each.path.status is Status.ASSUMED else ""
        label = f"{each.reading}: " if found.other is not None else ""
        yield Text(f"{label}{each.path}   ({'; '.join(each.path.sources) or 'nothing to do'}{doubt})")
    if cast.order is Order.SCALAR:
        yield Text(f"{found.bundles} bundles for one element in scalar registers, which is stored as a vector")
    else:
        yield Text(
            f"{found.vector_operations} VPU operations in {found.bundles} bundles per vector of {cast.src.elements}, "
            f"{cast.order} order"
        )
    kinds = [f"{entry.src.elements}:{entry.dst.elements} {entry.kind}" for entry in _entries(found)]
    if kinds:
        yield Text(f"lowering matrix (elements): {', '.join(kinds)}", style="dim")
    if sources:
        yield _results(found, sources)
    for difference in found.differences:
        yield _difference(found, difference)
    if not found.differences and found.instructions:
        yield Text("LLVM IR: no difference among the inputs tried")


def _said(found: ResultComparison) -> str:
    cast = found.cast
    if found.instructions:
        return f"LLVM IR {' and '.join(found.instructions)}"
    mode = f", mode {cast.mode}" if cast.mode else ", no rounding mode"
    return f"form {cast.form}{mode if cast.form != SourceForm.REINTERPRET else ''}"


def _entries(found: ResultComparison) -> tuple[MatrixEntry, ...]:
    """Return the entry of the compiler's matrix for the two element types; it has no reinterpretations."""
    cast = found.cast
    return () if cast.form == SourceForm.REINTERPRET else entries(cast.target, cast.src.element, cast.dst.element)


def _results(found: ResultComparison, sources: Sequence[SourceValue]) -> Table:
    """Return a row per input, a column per account."""
    fmt = source_format(found.cast)
    made = table("input", "bits", *(column.label for column in found.columns), "")
    rows = [column.codes for column in found.columns]
    per_row = max(1, len(sources) // max(1, len(rows[0])))
    for place, codes in enumerate(zip(*rows, strict=True)):
        given = sources[place * per_row : (place + 1) * per_row]
        shown = [_cell(found, number, place) for number in range(len(rows))]
        same = len({tuple(int(code) for code in row) for row in codes}) == 1
        free = any(column.poison[place] for column in found.columns)
        made.add_row(
            ", ".join(f"{number_text(source.value)}{'' if source.exact else ' *'}" for source in given),
            ", ".join(bits_text(source.code, fmt) for source in given),
            *shown,
            "" if same or free else Text("differs", style="bold yellow"),
        )
    return made


def _cell(found: ResultComparison, column: int, place: int) -> str:
    chosen = found.columns[column]
    if chosen.poison[place]:
        return "poison"
    fmt = FORMATS[found.cast.dst.element]
    return ", ".join(_number(int(code), fmt) for code in chosen.codes[place])


def _number(code: int, fmt: Format) -> str:
    return f"{number_text(value_of(code, fmt))} ({bits_text(code, fmt)})"


def _difference(found: ResultComparison, difference: AccountMismatch) -> Text:
    src, dst, witness = source_format(found.cast), FORMATS[found.cast.dst.element], difference.witness
    return Text.assemble(
        ("differs from ", "bold yellow"),
        f"{difference.label}: {number_text(value_of(witness.code, src))} ({bits_text(witness.code, src)}) becomes "
        f"{_number(witness.ours, dst)}, there {_number(witness.other, dst)}",
    )


def table_text(found: CompiledCastTable) -> Text:
    """Return the table as Markdown, and below it the chains of the pairs without an instruction."""
    lines = [found.markdown(), "C: CONVERT; C-INT: CONVERT_INT; N/A: no instruction. Through mediators:", ""]
    for path in found.mediated.values():
        doubt = "  (assumed)" if path.status is Status.ASSUMED else ""
        lines.append(f"  {path}{doubt}")
    return Text("\n".join(lines), no_wrap=True)


# A builtin function or a special function of TPC-C, emitted or called, as JSON and as text.


class Operations(Keys):
    """How many operations a call issues."""

    counted: int = says("As counted in the assembly.")
    documented: int | None = says("As documented; null if that is not so.")


class Called(Keys):
    """What calls gave; these keys are there if operands were given."""

    calls: int = says("How many calls the operands take.", optional=True)
    total_cycles: Cycles = says("Cycles of all calls.", optional=True)
    outputs: list[Output] = says("The results.", optional=True)
    stale_reads: list[StaleRead] = says("Reads that came too early.", optional=True)
    warnings: list[str] = says("What else happened.", optional=True)


class BuiltinCall(CommandDocument, Called, name="builtin"):
    """A cast builtin."""

    builtin: str = says("Its name.", "row.builtin")
    target: str = says("Name of the target.")
    signature: str = says("Result and operands.", "row.signature")
    source_holds: str | None = says(of="built.signature.source.held")
    """What the source's elements are in; null if in themselves."""
    result_order: str = says("Order of the result's elements.", "row.result_order")
    rounding: str | None = says("The rounding mode; null where nothing is rounded.", "built.rounding")
    vpu_operations: Operations = says("Vector operations of a call.")
    bundles: Bundles = says("Bundles of a call.", lambda found: len(found.kernel.body))
    cycles_per_call: Cycles = says("Cycles of a call.", "timing.total")
    status: Status = says("How well it is known.", "row.status")
    note: str = says("What else is to be said; may be empty.", "row.note")
    assembly: str = says("Its assembly.")


def builtin_document(found: Builtin, text: str, result: BuiltinResult | None, files: Mapping[str, Path]) -> Document:
    """Return a builtin: what it is, what one call issues, its assembly; with a result what the calls computed."""
    operations = Operations.of(counted=found.vector_operations, documented=found.row.vector_operations)
    called = _called(result, found.built.signature.result.format, files)
    return BuiltinCall.of(found, vpu_operations=operations, assembly=text, **called)


def _called(result: BuiltinResult | FunctionResult | None, fmt: str, files: Mapping[str, Path]) -> Document:
    """Return what calls gave, nothing if there were none."""
    if result is None:
        return {}
    return Called.of(
        calls=result.calls,
        total_cycles=result.cycles,
        outputs=[output_of(name, array, fmt, files) for name, array in result.outputs.items()],
        stale_reads=result.stale_reads,
        warnings=result.warnings,
    )


# What calls of builtins and special functions gave, as lines of text.


def _duration_line(result: BuiltinResult | FunctionResult) -> str:
    """Return how many calls there were, and the cycles of all of them."""
    return f"{result.calls} call{'s' if result.calls > 1 else ''}, {result.cycles} cycles"


def _output_lines(outputs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the outputs of a document: format, shape, digest, file."""
    for output in outputs:
        shape = " x ".join(map(str, output["shape"]))
        yield f"output {output['name']}: {output['format']} [{shape}], sha256 {output['sha256']}"
        yield f"  written to {output['file']}" if output["file"] else "  not written; --out DIR writes DIR/NAME.npy"


def _notice_lines(result: BuiltinResult | FunctionResult) -> Iterator[str]:
    """Yield the warnings, and the reads of registers that came too early."""
    yield from (f"warning: {warning}" for warning in result.warnings)
    if not result.stale_reads:
        yield "stale reads: none"
    yield from (each.sentence() for each in result.stale_reads)


_ORDERS = {
    ResultOrder.LINEAR: "element i of the result from element i of the sources",
    ResultOrder.INTERLEAVED: "element r * i + k of the result from element i of source register k of r",
    ResultOrder.SPLIT: "element i of result register k of r from element r * i + k of the source",
    ResultOrder.UNDEFINED: "not documented",
}


def builtin_text(found: Builtin, document: Mapping[str, Any], result: BuiltinResult | None) -> RenderableType:
    """Return one builtin, and what its calls computed; `document` is the same as JSON. Lines are never folded."""
    return _unfolded([*_builtin(found, document), *_values(document, result)])


def _unfolded(lines: list[str]) -> Text:
    return Text("\n".join(lines), no_wrap=True)


def _builtin(found: Builtin, document: Mapping[str, Any]) -> Iterator[str]:
    row = found.row
    yield f"{row.builtin} on {found.target.name} ({found.target.title})"
    yield f"signature: {row.signature}"
    yield f"result order: {row.result_order}, {_ORDERS[row.result_order]}"
    yield f"VPU operations: {found.vector_operations} counted in the run, {row.vector_operations} documented"
    yield f"one call: {len(found.kernel.body)} bundles with loads and stores, {found.timing.total} cycles to the end"
    yield f"rounding: {found.built.rounding}"
    source = found.built.signature.source
    if source.held is not None:
        bits = FORMATS[source.held].bits
        yield f"elements of x: {source.format} with the code of {source.held} in the lower {bits} bits, 0 above"
    if row.note:
        yield f"note ({row.status.value}): {row.note}"
    yield ""
    yield from (f"  {line}" for line in document["assembly"].splitlines())
    yield ""


def _values(document: Mapping[str, Any], result: BuiltinResult | None) -> Iterator[str]:
    if result is None:
        yield "values: not computed; --in x=FILE.npy|random:SEED|zeros calls it"
        return
    yield _duration_line(result)
    yield from _output_lines(document["outputs"])
    yield from _notice_lines(result)


# A special function of TPC-C, emitted or called, as JSON and as text.

_FROM_INSTRUCTIONS, _ROUNDED, _NONE = "instructions", "correctly rounded", "none"


class FunctionTable(Keys):
    """A look-up table."""

    name: str = says("Name of the input that gives it.", "table")
    function: int = says("Number of the function.")
    entries: int = says("How many entries.")
    public: bool = says("Whether its contents are published.", lambda _: False)


class FunctionCall(CommandDocument, Called, name="builtin-function"):
    """A special function."""

    builtin: str = says("Its name.", "row.builtin")
    target: str = says("Name of the target.")
    signature: str = says("Result and operands.", "row.signature")
    kind: str = says("`sequence` or `table`.", "row.kind")
    values: str = says("Where values are from: `instructions`, `correctly rounded` or `none`.")
    claimed: bool | None = says("Whether they are claimed to be the chip's; null if there are none.")
    tables: list[FunctionTable] = says("The tables that it looks up.")
    operations: Operations = says("Operations of a call.")
    bundles: Bundles = says("Bundles of a call.", lambda program: len(program.kernel.body))
    cycles_per_call: Cycles = says("Cycles of a call.", "timing.total")
    accuracy: str | None = says(of=lambda program: program.row.accuracy or None)
    """Its accuracy as others have measured it; null if nobody has."""
    status: Status = says("How well it is known.", "row.status")
    assembly: str = says("Its assembly.")


def function_document(program: FunctionProgram, result: FunctionResult | None, files: Mapping[str, Path]) -> Document:
    """Return a function: what one call issues, where its values come from, its assembly; with a result its values."""
    return FunctionCall.of(
        program,
        values=_NONE if result is None else _FROM_INSTRUCTIONS if result.claimed else _ROUNDED,
        claimed=None if result is None else result.claimed,
        tables=[FunctionTable.of(each, function=each.function(program.target)) for each in program.tables],
        operations=Operations.of(counted=program.operations, documented=program.row.operations),
        assembly=program.text() if result is None else result.text,
        **_called(result, "f32", files),
    )


def function_text(program: FunctionProgram, told: Document, result: FunctionResult | None) -> Text:
    """Return the same as text; lines are never folded."""
    return Text("\n".join([*_function(program, told), *_operand_values(told, result)]), no_wrap=True)


def _function(program: FunctionProgram, told: Document) -> Iterator[str]:
    row = program.row
    yield f"{row.builtin} on {program.target.name} ({program.target.title})"
    yield f"signature: {row.signature}"
    counts = f"operations: {program.operations} counted, {row.operations} documented"
    inferred = "" if program.in_published_counts else "; order and operands are inferred, cycles with them"
    yield f"{counts}{inferred}"
    stored = "bundles with loads and stores" if program.lanes is None else "bundles"
    yield f"one call: {len(program.kernel.body)} {stored}, {program.timing.total} cycles to the end"
    for each in program.tables:
        contents = f"{each.entries} entries of c0, c1, c2; contents not public"
        yield f"table {each.table}, function id {each.function(program.target)}: {contents}"
    if row.accuracy:
        yield f"accuracy, measured by others: {row.accuracy}"
    yield ""
    yield from (f"  {line}" for line in str(told["assembly"]).splitlines())
    yield ""


def _operand_values(told: Document, result: FunctionResult | None) -> Iterator[str]:
    if result is None:
        yield "values: not computed; --in NAME=FILE.npy|random:SEED|zeros calls it"
        return
    yield _duration_line(result)
    claimed = "computed by the instructions" if result.claimed else "correctly rounded, not claimed to be the chip's"
    yield f"values: {claimed}"
    outputs = told["outputs"]
    assert isinstance(outputs, list)
    yield from _output_lines(outputs)
    yield from _notice_lines(result)


class DescriptorCall(CommandDocument, name="builtin-descriptor"):
    """A call that reads or writes a word of a descriptor."""

    builtin: str = says("Its name.", "row.builtin")
    target: str = says("Name of the target.")
    signature: str = says("Result and operands.", "row.signature")
    kind: str = says("Always `descriptor`.", "row.kind")
    address: int = says("Address of the word.")
    stored_word: int | None = says("What is stored; null for a read.", "stored")
    result: Scalar | None = says("What is read; null for a write, or if the word was not given.")
    bundles: Bundles = says("Bundles of a call.", lambda call: len(call.kernel.body))
    cycles_per_call: Cycles = says("Cycles of a call.", "timing.total")
    status: Status = says("How well it is known.", "row.status")
    assembly: str = says("Its assembly.", lambda call: call.text())


def descriptor_document(call: CalledDescriptor) -> Document:
    """Return a call that reads or writes a word of a descriptor."""
    return DescriptorCall.of(call)


def descriptor_text(call: CalledDescriptor) -> Text:
    """Return the same as text."""
    did = "read" if call.stored is None else f"set to {call.stored:#x}"
    lines = [
        f"{call.row.builtin} on {call.target.name} ({call.target.title})",
        f"signature: {call.row.signature}",
        f"configuration word {call.address:#x}: {did}",
        f"one call: {len(call.kernel.body)} bundles, {call.timing.total} cycles to the end",
        "",
        *(f"  {line}" for line in call.text().splitlines()),
        "",
    ]
    if call.stored is None:
        unknown = "not computed; --arg word=NUMBER says what the descriptor holds"
        lines.append(f"result: {unknown if call.result is None else call.result}")
    return Text("\n".join(lines), no_wrap=True)
