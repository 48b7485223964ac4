"""The reports on targets as JSON: the list, one target, one pair."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.reports.documents import VERSIONS, Document, document, json_of
from castsim.reports.facts import OPTIONS, facts_by_part
from castsim.reports.pairs import PairDetail, pair_rows
from castsim.targets import Target
from castsim.targets.tpc_compiler import FunctionKind, builtins_of, special_functions

# The builtin functions of TPC-C that a target has, as JSON.

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


def list_document(targets: Sequence[Target]) -> Document:
    """Return the list of targets."""
    return {"targets": [_header(target) for target in targets]}


def target_document(target: Target) -> Document:
    """Return everything a description says: header, pairs, facts by path, options."""
    return {
        **_header(target),
        "pairs": json_of(pair_rows(target)),
        "facts": [document(fact) for part, found in facts_by_part(target).items() if part != OPTIONS for fact in found],
        "options": [
            {"name": name, **document(option, "value", "legal", "meaning", "set_by", "status", "source")}
            for name, option in target.options.items()
        ],
        **listed(target),
    }


def pair_document(target: Target, detail: PairDetail) -> Document:
    """Return one pair in full."""
    return {
        "schema_version": VERSIONS["targets-pair"],
        "target": target.name,
        **document(detail.row),
        **document(detail, *_DETAIL, modes="mnemonics", saturation="saturation_modes", scratch="scratch_sequence"),
        "configuration": [{"name": name, "value": json_of(value)} for name, value in detail.configuration.items()],
    }


_DETAIL = ("modes", "saturation", "configuration", "scratch", "note", "status", "source")


def _header(target: Target) -> Document:
    head = document(target, "name", "title", "mechanism", "languages", "architectures")
    return {**head, "casts": len(target.casts)}
