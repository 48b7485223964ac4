"""A special function of TPC-C, emitted or called, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.text import Text

from castsim.reports.call_text import duration_line, notice_lines, output_lines
from castsim.reports.documents import Document, document
from castsim.reports.run_report import output_of
from castsim.reports.stale_reads import stale_entry
from castsim.tpc_compiler.special_function_calls import DescriptorCall, FunctionProgram, FunctionResult

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
    if result is None:
        return told
    return {
        **told,
        **document(result, "calls", "cycles", cycles="total_cycles"),
        "outputs": [document(output_of(name, each, "f32", files)) for name, each in result.outputs.items()],
        "stale_reads": [stale_entry(each) for each in result.stale_reads],
        "warnings": list(result.warnings),
    }


def function_text(program: FunctionProgram, told: Document, result: FunctionResult | None) -> Text:
    """Return the same as text; lines are never folded."""
    return Text("\n".join([*_function(program, told), *_values(told, result)]), no_wrap=True)


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


def _values(told: Document, result: FunctionResult | None) -> Iterator[str]:
    if result is None:
        yield "values: not computed; --in NAME=FILE.npy|random:SEED|zeros calls it"
        return
    yield duration_line(result)
    claimed = "computed by the instructions" if result.claimed else "correctly rounded, not claimed to be the chip's"
    yield f"values: {claimed}"
    outputs = told["outputs"]
    assert isinstance(outputs, list)
    yield from output_lines(outputs)
    yield from notice_lines(result)


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
