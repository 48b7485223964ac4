"""The builtin functions of TPC-C that a target has, as JSON."""

from __future__ import annotations

from typing import Any

from targets import Target
from targets.tpc_builtins import builtins_of, special_functions
from targets.vliw import VliwTarget


def listed(target: Target) -> dict[str, Any]:
    """Return the cast builtins and the special functions of a target; nothing for chips without TPC-C."""
    if not isinstance(target, VliwTarget):
        return {}
    return {
        "builtins": [
            {
                "name": row.builtin,
                "signature": row.signature,
                "vpu_operations": row.vector_operations,
                "result_order": str(row.result_order),
                "status": row.status.value,
                "note": row.note,
            }
            for row in builtins_of(target)
        ],
        "special_functions": [
            {"name": row.builtin, "signature": row.signature, "modelled": False} for row in special_functions()
        ],
    }
