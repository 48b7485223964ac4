"""Compiled casts as JSON documents."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.isa.formats import FORMATS
from castsim.numerics import value_of
from castsim.reports.cast import SourceValue
from castsim.reports.documents import Document, document
from castsim.reports.numbers import bits_text, json_value, number_document
from castsim.tpc_compiler.c_table import CompiledCastTable, Path
from castsim.tpc_compiler.cast_comparison import Column, ResultComparison, source_format
from castsim.tpc_compiler.compiled_casts import CompiledCast


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
