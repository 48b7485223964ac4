"""A builtin function or a special function of TPC-C, emitted or called, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from castsim.isa.formats import FORMATS
from castsim.reports.documents import Document, document
from castsim.reports.run_report import output_of
from castsim.reports.schemas.keys import StaleRead
from castsim.targets.tpc_compiler import ResultOrder
from castsim.tpc_compiler.builtin_calls import Builtin, BuiltinResult
from castsim.tpc_compiler.special_function_calls import DescriptorCall, FunctionProgram, FunctionResult


def builtin_document(found: Builtin, text: str, result: BuiltinResult | None, files: Mapping[str, Path]) -> Document:
    """Return a builtin: what it is, what one call issues, its assembly; with a result what the calls computed."""
    row = found.row
    told: Document = {
        "builtin": row.builtin,
        "target": found.target.name,
        "signature": row.signature,
        "source_holds": found.built.signature.source.held,
        "result_order": str(row.result_order),
        "rounding": found.built.rounding,
        "vpu_operations": {"counted": found.vector_operations, "documented": row.vector_operations},
        "bundles": len(found.kernel.body),
        "cycles_per_call": found.timing.total,
        **document(row, "status", "note"),
        "assembly": text,
    }
    return {**told, **_called(result, found.built.signature.result.format, files)}


def _called(result: BuiltinResult | FunctionResult | None, fmt: str, files: Mapping[str, Path]) -> Document:
    """Return what calls gave, nothing if there were none."""
    if result is None:
        return {}
    return {
        **document(result, "calls", "cycles", cycles="total_cycles"),
        "outputs": [document(output_of(name, array, fmt, files)) for name, array in result.outputs.items()],
        "stale_reads": [StaleRead.of(each) for each in result.stale_reads],
        "warnings": list(result.warnings),
    }


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


def function_document(program: FunctionProgram, result: FunctionResult | None, files: Mapping[str, Path]) -> Document:
    """Return a function: what one call issues, where its values come from, its assembly; with a result its values."""
    row = program.row
    told: Document = {
        "builtin": row.builtin,
        "target": program.target.name,
        "signature": row.signature,
        "kind": str(row.kind),
        "values": _NONE if result is None else _FROM_INSTRUCTIONS if result.claimed else _ROUNDED,
        "claimed": None if result is None else result.claimed,
        "tables": [
            {"name": each.table, "function": each.function(program.target), "entries": each.entries, "public": False}
            for each in program.tables
        ],
        "operations": {"counted": program.operations, "documented": row.operations},
        "bundles": len(program.kernel.body),
        "cycles_per_call": program.timing.total,
        "accuracy": row.accuracy or None,
        "status": str(row.status),
        "assembly": program.text() if result is None else result.text,
    }
    return {**told, **_called(result, "f32", files)}


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


def descriptor_document(call: DescriptorCall) -> Document:
    """Return a call that reads or writes a word of a descriptor."""
    return {
        "builtin": call.row.builtin,
        "target": call.target.name,
        "signature": call.row.signature,
        "kind": str(call.row.kind),
        "address": call.address,
        "stored_word": call.stored,
        "result": call.result,
        "bundles": len(call.kernel.body),
        "cycles_per_call": call.timing.total,
        "status": str(call.row.status),
        "assembly": call.text(),
    }


def descriptor_text(call: DescriptorCall) -> Text:
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
