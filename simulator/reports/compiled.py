"""Compiled casts as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.isa.formats import FORMATS, Format
from castsim.numerics import value_of
from castsim.reports.cast import SourceValue
from castsim.reports.cast_text import number_text
from castsim.reports.documents import Document, document
from castsim.reports.numbers import bits_text, json_value, number_document
from castsim.reports.terminal import table
from castsim.targets.description import Status
from castsim.tpc_compiler.c_table import CompiledCastTable, Path
from castsim.tpc_compiler.cast_building import Order
from castsim.tpc_compiler.cast_comparison import AccountMismatch, Column, ResultComparison, source_format
from castsim.tpc_compiler.compiled_casts import CompiledCast, MatrixEntry, SourceForm, entries


def cast_document(cast: CompiledCast) -> Document:
    """Return the document of a cast: types, path, mode, kind of lowering."""
    return {
        "target": cast.target.name,
        "src": cast.src.name,
        "dst": cast.dst.name,
        **document(cast, "form", "reading", "order", "mode", mode="rounding"),
        "roundings": list(cast.path.modes(cast.target)),
        **document(cast, "kind", kind="lowering_kind"),
        "path": path_document(cast.path),
    }


def path_document(path: Path) -> Document:
    """Return the hops of a path and how well they are known."""
    return {
        **document(path, "types"),
        "steps": [document(hop, "src", "dst", "means", "through", "word", word="rounding") for hop in path.hops],
        **document(path, "status", "sources"),
    }


def compiled_document(found: ResultComparison, sources: Sequence[SourceValue]) -> Document:
    """Return a comparison; results are listed per account."""
    src, dst = source_format(found.cast), FORMATS[found.cast.dst.element]
    return {
        **cast_document(found.cast),
        **document(found, "vector_operations", "bundles", "instructions", instructions="ir"),
        "inputs": [{"text": source.text, **number_document(source.code, source.value, src)} for source in sources],
        "results": [_column(column, found) for column in found.columns],
        "differences": [
            {
                "account": each.label,
                "input_bits": bits_text(each.witness.code, src),
                "input": json_value(value_of(each.witness.code, src), src),
                "value": json_value(value_of(each.witness.ours, dst), dst),
                "other_value": json_value(value_of(each.witness.other, dst), dst),
            }
            for each in found.differences
        ],
    }


def _column(column: Column, found: ResultComparison) -> Document:
    fmt = FORMATS[found.cast.dst.element]
    path = found.other.path if found.other is not None and found.other.reading == column.label else found.cast.path
    return {
        "account": column.label,
        "path": str(path) if column.label in (found.cast.reading, getattr(found.other, "reading", None)) else None,
        "values": [[number_document(int(code), value_of(int(code), fmt), fmt) for code in row] for row in column.codes],
        "poison": [bool(each) for each in column.poison],
    }


def table_document(table: CompiledCastTable) -> Document:
    """Return a table of C-level casts: its cells, and the paths of the pairs without an instruction."""
    return {
        **document(table, "target", "elements"),
        "cells": [
            {"src": src, "dst": dst, "cell": cell, "path": _mediated(table, src, dst)}
            for (src, dst), cell in table.cells.items()
        ],
    }


def _mediated(table: CompiledCastTable, src: str, dst: str) -> Document | None:
    path = table.mediated.get((src, dst))
    return None if path is None else path_document(path)


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
