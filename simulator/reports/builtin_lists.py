"""The builtin functions of TPC-C that a target has, as JSON."""

from __future__ import annotations

from castsim.reports.documents import Document, document
from castsim.targets import Target
from castsim.targets.tpc_builtins import builtins_of
from castsim.targets.tpc_special_functions import FunctionKind, special_functions

_BUILTIN = ("builtin", "signature", "vector_operations", "result_order", "status", "note")


def listed(target: Target) -> Document:
    """Return the cast builtins and the special functions of a target; nothing for chips without TPC-C."""
    if not target.has_builtins:
        return {}
    return {
        "builtins": [
            document(row, *_BUILTIN, builtin="name", vector_operations="vpu_operations") for row in builtins_of(target)
        ],
        "special_functions": [
            {
                "name": row.builtin,
                "signature": row.signature,
                "modelled": row.kind is not FunctionKind.UNPUBLISHED,
                "kind": str(row.kind),
            }
            for row in special_functions()
        ],
    }
