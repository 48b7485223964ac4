"""A builtin function or a special function of TPC-C, emitted or called, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from castsim.isa.formats import FORMATS
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.run_report import output_of
from castsim.reports.schemas.keys import Bundles, Cycles, Output, Scalar, StaleRead
from castsim.targets.description import Status
from castsim.targets.tpc_compiler import ResultOrder
from castsim.tools.tpc_compiler.builtin_calls import Builtin, BuiltinResult, FunctionProgram, FunctionResult
from castsim.tools.tpc_compiler.builtin_calls import DescriptorCall as CalledDescriptor


class Operations(Keys):
    """Numbers of operations that a call issues."""

    counted: int = says("Number of operations in the assembly.")
    documented: int | None = says("Documented number of operations; null if there is none.")


class Called(Keys):
    """Results of calls; these keys exist if operands were given."""

    calls: int = says("Number of calls for these operands.", optional=True)
    total_cycles: Cycles = says("Cycles of all calls.", optional=True)
    outputs: list[Output] = says("The results.", optional=True)
    stale_reads: list[StaleRead] = says("Reads that are too early.", optional=True)
    warnings: list[str] = says("Warnings about the calls.", optional=True)


class BuiltinCall(CommandDocument, Called, name="builtin", version=2):
    """A cast builtin."""

    builtin: str = says("Its name.", "row.builtin")
    target: str = says("Name of the target.")
    signature: str = says("Result and operands.", "row.signature")
    source_holds: str | None = says(of="built.signature.source.held")
    """Meaning of the source's elements; null if they are plain elements."""
    result_order: str = says("Order of the result's elements.", "row.result_order")
    rounding: str | None = says("The rounding mode; null if nothing is rounded.", "built.rounding")
    vpu_operations: Operations = says("Vector operations of a call.")
    bundles: Bundles = says("Bundles of a call.", lambda found: len(found.kernel.body))
    cycles_per_call: Cycles = says("Cycles of a call.", "timing.total")
    status: Status = says("Evidence for the row.", "row.status")
    note: str = says("A note; may be empty.", "row.note")
    assembly: str = says("Its assembly.")


def builtin_document(builtin: Builtin, text: str, result: BuiltinResult | None, files: Mapping[str, Path]) -> Document:
    """Return a builtin: its description, the operations of one call, its assembly; with a result, also its values."""
    operations = Operations.of(counted=builtin.vector_operations, documented=builtin.row.vector_operations)
    called = _called(result, builtin.built.signature.result.format, files)
    return BuiltinCall.of(builtin, vpu_operations=operations, assembly=text, **called)


def _called(result: BuiltinResult | FunctionResult | None, fmt: str, files: Mapping[str, Path]) -> Document:
    """Return the results of calls, empty if there were none."""
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


def _called_lines(
    content: Mapping[str, Any], result: BuiltinResult | FunctionResult | None, operand: str, *notes: str
) -> Iterator[str]:
    """Yield the results of calls, however called: outputs of the document, warnings, reads that came too early.

    `notes` precede the outputs.
    """
    if result is None:
        yield f"values: not computed; --in {operand}=FILE.npy|random:SEED|zeros calls it"
        return
    yield f"{result.calls} call{'s' if result.calls > 1 else ''}, {result.cycles} cycles"
    yield from notes
    for output in content["outputs"]:
        shape = " x ".join(map(str, output["shape"]))
        yield f"output {output['name']}: {output['format']} [{shape}], sha256 {output['sha256']}"
        yield f"  written to {output['file']}" if output["file"] else "  not written; --out DIR writes DIR/NAME.npy"

    yield from (f"warning: {warning}" for warning in result.warnings)
    if not result.stale_reads:
        yield "stale reads: none"
    yield from (read.sentence() for read in result.stale_reads)


_ORDERS = {
    ResultOrder.LINEAR: "element i of the result from element i of the sources",
    ResultOrder.INTERLEAVED: "element r * i + k of the result from element i of source register k of r",
    ResultOrder.SPLIT: "element i of result register k of r from element r * i + k of the source",
    ResultOrder.UNDEFINED: "not documented",
}


def builtin_text(builtin: Builtin, document: Mapping[str, Any], result: BuiltinResult | None) -> RenderableType:
    """Return one builtin and the results of its calls; `document` is the same as JSON. Lines are never wrapped."""
    return _unfolded([*_builtin(builtin, document), *_called_lines(document, result, "x")])


def _unfolded(lines: list[str]) -> Text:
    return Text("\n".join(lines), no_wrap=True)


def _builtin(builtin: Builtin, document: Mapping[str, Any]) -> Iterator[str]:
    row = builtin.row
    yield f"{row.builtin} on {builtin.target.name} ({builtin.target.title})"
    yield f"signature: {row.signature}"
    yield f"result order: {row.result_order}, {_ORDERS[row.result_order]}"
    yield f"VPU operations: {builtin.vector_operations} counted in the run, {row.vector_operations} documented"
    bundles, cycles = len(builtin.kernel.body), builtin.timing.total
    yield f"one call: {bundles} bundles with loads and stores, {cycles} cycles to the end"
    yield f"rounding: {builtin.built.rounding}"
    source = builtin.built.signature.source
    if source.held is not None:
        bits = FORMATS[source.held].bits
        yield f"elements of x: {source.format} with the code of {source.held} in the lower {bits} bits, 0 above"
    if row.note:
        yield f"note ({row.status.value}): {row.note}"
    yield ""
    yield from (f"  {line}" for line in document["assembly"].splitlines())
    yield ""


# A special function of TPC-C, emitted or called, as JSON and as text.

_FROM_INSTRUCTIONS, _ROUNDED, _NONE = "instructions", "correctly rounded", "none"


class FunctionTable(Keys):
    """A look-up table."""

    name: str = says("Name of the input that gives it.", "table")
    function: int = says("Number of the function.")
    entries: int = says("Number of entries.")
    public: bool = says("Whether its contents are public.", lambda _: False)


class FunctionCall(CommandDocument, Called, name="builtin-function", version=2):
    """A special function."""

    builtin: str = says("Its name.", "row.builtin")
    target: str = says("Name of the target.")
    signature: str = says("Result and operands.", "row.signature")
    kind: str = says("`sequence` or `table`.", "row.kind")
    values: str = says("Source of the values: `instructions`, `correctly rounded` or `none`.")
    claimed: bool | None = says("Whether the values are claimed to equal the chip's; null if there are none.")
    tables: list[FunctionTable] = says("The look-up tables that it reads.")
    operations: Operations = says("Operations of a call.")
    bundles: Bundles = says("Bundles of a call.", lambda program: len(program.kernel.body))
    cycles_per_call: Cycles = says("Cycles of a call.", "timing.total")
    accuracy: str | None = says(of=lambda program: program.row.accuracy or None)
    """Its accuracy as measured by others; null if no measurement exists."""
    status: Status = says("Evidence for the row.", "row.status")
    assembly: str = says("Its assembly.")


def function_document(program: FunctionProgram, result: FunctionResult | None, files: Mapping[str, Path]) -> Document:
    """Return a function: operations of one call, origin of its values, its assembly; with a result, also its values."""
    return FunctionCall.of(
        program,
        values=_NONE if result is None else _FROM_INSTRUCTIONS if result.claimed else _ROUNDED,
        claimed=None if result is None else result.claimed,
        tables=[FunctionTable.of(table, function=table.function(program.target)) for table in program.tables],
        operations=Operations.of(counted=program.operations, documented=program.row.operations),
        assembly=program.text() if result is None else result.text,
        **_called(result, "f32", files),
    )


def function_text(program: FunctionProgram, content: Document, result: FunctionResult | None) -> Text:
    """Return the same as text; lines are never wrapped."""
    claimed = result is not None and result.claimed
    values = "computed by the instructions" if claimed else "correctly rounded, not claimed to be the chip's"
    return _unfolded([*_function(program, content), *_called_lines(content, result, "NAME", f"values: {values}")])


def _function(program: FunctionProgram, content: Document) -> Iterator[str]:
    row = program.row
    yield f"{row.builtin} on {program.target.name} ({program.target.title})"
    yield f"signature: {row.signature}"
    counts = f"operations: {program.operations} counted, {row.operations} documented"
    inferred = "" if program.in_published_counts else "; order and operands are inferred, cycles with them"
    yield f"{counts}{inferred}"
    stored = "bundles with loads and stores" if program.lanes is None else "bundles"
    yield f"one call: {len(program.kernel.body)} {stored}, {program.timing.total} cycles to the end"
    for table in program.tables:
        contents = f"{table.entries} entries of c0, c1, c2; contents not public"
        yield f"table {table.table}, function id {table.function(program.target)}: {contents}"
    if row.accuracy:
        yield f"accuracy, measured by others: {row.accuracy}"
    yield ""
    yield from (f"  {line}" for line in str(content["assembly"]).splitlines())
    yield ""


class DescriptorCall(CommandDocument, name="builtin-descriptor", version=2):
    """A call that reads or writes a word of a descriptor."""

    builtin: str = says("Its name.", "row.builtin")
    target: str = says("Name of the target.")
    signature: str = says("Result and operands.", "row.signature")
    kind: str = says("Always `descriptor`.", "row.kind")
    address: int = says("Address of the word.")
    stored_word: int | None = says("The stored word; null for a read.", "stored")
    result: Scalar | None = says("The word that is read; null for a write, or if no word was given.")
    bundles: Bundles = says("Bundles of a call.", lambda call: len(call.kernel.body))
    cycles_per_call: Cycles = says("Cycles of a call.", "timing.total")
    status: Status = says("Evidence for the row.", "row.status")
    assembly: str = says("Its assembly.", lambda call: call.text())


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
        unknown = "not computed; --arg word=NUMBER sets the content of the descriptor"
        lines.append(f"result: {unknown if call.result is None else call.result}")
    return _unfolded(lines)
