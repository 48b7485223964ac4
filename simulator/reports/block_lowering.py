"""The ways to a block format on a target as JSON."""

from __future__ import annotations

from castsim.reports.documents import VERSIONS, Document
from castsim.running.block_lowering import BlockLowering


def block_lowering_document(found: BlockLowering, out: str | None) -> Document:
    """Return the document; `out` is the file that the first program was written to."""
    return {
        "schema_version": VERSIONS.get("lower-blocks", 1),
        "src": found.src,
        "format": found.format,
        "target": found.target,
        "rows": found.rows,
        "cols": found.cols,
        "ways": [
            {
                "kind": way.kind,
                "rule": way.rule,
                "operations": list(way.operations),
                "cycles": way.cycles,
                "cycles_per_element": way.cycles / (found.rows * found.cols),
                "differs": list(way.differs),
                "program": way.program,
            }
            for way in found.ways
        ],
        "refused": list(found.refused),
        "file": out if found.ways else None,
    }
