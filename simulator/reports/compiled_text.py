"""Compiled casts as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from castsim.isa.formats import FORMATS, Format
from castsim.numerics import value_of
from castsim.reports.cast import SourceValue
from castsim.reports.cast_text import number_text
from castsim.reports.numbers import bits_text
from castsim.reports.terminal import table
from castsim.targets.description import Status
from castsim.tpc_compiler.c_table import CompiledCastTable
from castsim.tpc_compiler.cast_building import Order
from castsim.tpc_compiler.cast_comparison import Difference, ResultComparison, source_format
from castsim.tpc_compiler.compiled_casts import MatrixEntry, SourceForm, entries


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


def _difference(found: ResultComparison, difference: Difference) -> Text:
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
