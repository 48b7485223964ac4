"""The reports on targets as JSON: the list, one target, one pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from simulator.reports.builtin_lists import listed
from simulator.reports.facts import NamedFact, facts_of
from simulator.reports.pairs import PairDetail, pair_rows
from targets import Target


def list_document(targets: Sequence[Target]) -> dict[str, Any]:
    """Return the list of targets."""
    return {"targets": [_header(target) for target in targets]}


def target_document(target: Target) -> dict[str, Any]:
    """Return everything a description says: header, pairs, facts by path, options."""
    options = {f"options.{name}" for name in target.options}
    return {
        **_header(target),
        "pairs": [asdict(row) for row in pair_rows(target)],
        "facts": [asdict(fact) for fact in facts_of(target) if fact.name not in options],
        "options": [
            {
                "name": name,
                "value": option.value,
                "legal": list(option.legal),
                "meaning": option.meaning,
                "set_by": option.set_by,
                "status": option.status.value,
                "source": option.source,
            }
            for name, option in target.options.items()
        ],
        **listed(target),
    }


def pair_document(target: Target, detail: PairDetail) -> dict[str, Any]:
    """Return one pair in full."""
    return {
        "target": target.name,
        **asdict(detail.row),
        "mnemonics": [asdict(row) for row in detail.modes],
        "saturation_modes": [asdict(row) for row in detail.saturation],
        "configuration": dict(detail.configuration),
        "scratch_sequence": asdict(detail.scratch) if detail.scratch else None,
        "note": detail.note,
        "status": detail.status,
        "source": detail.source,
    }


def facts_below(target: Target, prefix: str) -> list[NamedFact]:
    """Return the facts whose path starts with `prefix`."""
    return [fact for fact in facts_of(target) if fact.name.startswith(prefix)]


def _header(target: Target) -> dict[str, Any]:
    return {
        "name": target.name,
        "title": target.title,
        "mechanism": target.mechanism,
        "languages": list(target.languages),
        "architectures": list(target.architectures),
        "casts": len(target.casts),
    }
