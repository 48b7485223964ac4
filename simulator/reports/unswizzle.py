"""Removed lane moves as a JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator.swizzles.comparing import Compared


def unswizzle_document(found: Compared, output: Path | None) -> Mapping[str, Any]:
    """Return what was removed, what it saves, and the new program."""
    before, after = found.cycles
    return {
        "program": found.file,
        "target": found.target.name,
        "changed": found.elimination.changed,
        "cycles_before": before,
        "cycles_after": after,
        "cycles_saved": found.saved,
        "outputs_unchanged": dict(found.same_outputs),
        "blocks": [
            {
                "first_line": block.lines[0],
                "last_line": block.lines[1],
                "reason_kept": block.reason,
                "removed": dict(block.removed),
                "vector_operations_before": block.operations[0],
                "vector_operations_after": block.operations[1],
                "bundles_before": block.bundles[0],
                "bundles_after": block.bundles[1],
            }
            for block in found.elimination.blocks
        ],
        "text": found.elimination.text,
        "output": None if output is None else str(output),
    }
