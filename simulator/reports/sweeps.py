"""The outcome of a sweep as JSON."""

from __future__ import annotations

from castsim.exploration.sweep_studies import Sweep
from castsim.reports.documents import Document


def sweep_document(found: Sweep) -> Document:
    """Return what was swept and where the results are; the rows stand in the Parquet file."""
    return {
        "out": str(found.path),
        "ledger": str(found.ledger),
        "rows": found.rows,
        "failed": found.failed,
        "chunks": found.chunks,
        "resumed_chunks": found.resumed,
        "version": found.version,
        "facts_digest": found.facts_digest,
    }
