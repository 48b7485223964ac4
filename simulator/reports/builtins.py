"""A builtin function of TPC-C, emitted or called, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from castsim.reports.documents import Document, document
from castsim.reports.run_report import output_of
from castsim.reports.stale_reads import stale_entry
from castsim.tpc_compiler.builtin_calls import Builtin, BuiltinResult


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
    if result is None:
        return told
    fmt = found.built.signature.result.format
    return {
        **told,
        **document(result, "calls", "cycles", cycles="total_cycles"),
        "outputs": [document(output_of(name, array, fmt, files)) for name, array in result.outputs.items()],
        "stale_reads": [stale_entry(each) for each in result.stale_reads],
        "warnings": list(result.warnings),
    }
