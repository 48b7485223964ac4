"""A builtin function of TPC-C, emitted or called, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from castsim.reports.documents import Document
from castsim.reports.exposed import stale_entry
from castsim.reports.run_report import digest
from castsim.tpc_compiler.builtins import Builtin, BuiltinResult


def builtin_document(found: Builtin, text: str, result: BuiltinResult | None, files: Mapping[str, Path]) -> Document:
    """Return a builtin: what it is, what one call issues, its assembly; with a result what the calls computed."""
    row = found.row
    document: Document = {
        "builtin": row.builtin,
        "target": found.target.name,
        "signature": row.signature,
        "source_holds": found.built.signature.source.held,
        "result_order": str(row.result_order),
        "rounding": found.built.rounding,
        "vpu_operations": {"counted": found.vector_operations, "documented": row.vector_operations},
        "bundles": len(found.kernel.body),
        "cycles_per_call": found.timing.total,
        "status": row.status.value,
        "note": row.note,
        "assembly": text,
    }
    if result is None:
        return document
    outputs = [
        {
            "name": name,
            "file": str(files[name]) if name in files else None,
            "format": found.built.signature.result.format,
            "shape": list(array.shape),
            "sha256": digest(array),
        }
        for name, array in result.outputs.items()
    ]
    return {
        **document,
        "calls": result.calls,
        "total_cycles": result.cycles,
        "outputs": outputs,
        "stale_reads": [stale_entry(each) for each in result.stale_reads],
        "warnings": list(result.warnings),
    }
