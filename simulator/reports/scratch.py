"""Scratch sizes as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from simulator.reports.sweeping import Sweep
from simulator.reports.terminal import indented, table
from simulator.strided.audit import ScratchAudit, ScratchAuditor


def single_document(auditor: ScratchAuditor, audit: ScratchAudit, *, touched: bool) -> Mapping[str, Any]:
    """Return the JSON of one shape; extents only if the operations were looked at."""
    document: dict[str, Any] = {
        "target": auditor.target.name,
        "src": auditor.src.name,
        "dst": auditor.dst.name,
        "rows": audit.rows,
        "cols": audit.cols,
        "row_stride_elements": audit.row_stride,
        "formula_bytes": audit.need.total,
        "terms": [{"name": name, "bytes": size} for name, size in audit.need.terms],
    }
    if touched:
        document |= _extents(audit)
    return document


def sweep_document(found: Sweep) -> Mapping[str, Any]:
    """Return the JSON of a sweep."""
    return {
        "target": found.auditor.target.name,
        "src": found.auditor.src.name,
        "dst": found.auditor.dst.name,
        "shapes": found.shapes,
        "equal_to_the_byte": found.equal,
        "formula_smaller": found.smaller,
        "explained": found.explained,
        "differences": [
            {
                "reason": reason,
                "shapes": count,
                "examples": [
                    {"rows": a.rows, "cols": a.cols, "row_stride_elements": a.row_stride, "formula_bytes": a.need.total}
                    | _extents(a)
                    for a in found.examples[reason]
                ],
            }
            for reason, count in found.reasons.most_common()
        ],
    }


def audit_text(auditor: ScratchAuditor, audit: ScratchAudit, *, touched: bool) -> RenderableType:
    """Return one shape as text: every term, what decides, and what the operations touch."""
    head = Text(
        f"{auditor.src.name} -> {auditor.dst.name} on {auditor.target.name}, saturation off, "
        f"{audit.rows} x {audit.cols}, row stride {audit.row_stride}"
    )
    terms = table("term", "bytes", numbers=("bytes",))
    for name, size in audit.need.terms:
        terms.add_row(name, str(size))
    terms.add_row("tmp tile needs (largest)", str(audit.need.total))
    parts: list[RenderableType] = [head, indented(terms)]
    if touched:
        parts.append(Text(f"touched: {audit.exact} bytes, {audit.in_blocks} in whole blocks"))
        parts.append(Text(f"formula and blocks {'agree' if audit.agrees else 'differ'}"))
        parts += [Text(f"  {reason}") for reason in audit.reasons]
    if not audit.rows and audit.need.total:
        parts.append(Text("nothing is issued for 0 rows; castsim run asks for no tmp bytes then"))
    return Group(*parts)


def sweep_text(found: Sweep) -> RenderableType:
    """Return a sweep as text: how many shapes agree, and the others by reason."""
    auditor = found.auditor
    parts: list[RenderableType] = [
        Text(f"{auditor.src.name} -> {auditor.dst.name} on {auditor.target.name}: {found.shapes} shapes"),
        Text(f"formula equals the touched bytes: {found.equal}; formula smaller: {found.smaller}"),
    ]
    for reason, count in found.reasons.most_common():
        examples = table("rows", "cols", "stride", "formula", "blocks", "bytes", title=f"{reason}: {count} shapes")
        for audit in found.examples[reason]:
            values = (audit.rows, audit.cols, audit.row_stride, audit.need.total, audit.in_blocks, audit.exact)
            examples.add_row(*map(str, values))
        parts.append(indented(examples))
    return Group(*parts)


def _extents(audit: ScratchAudit) -> dict[str, Any]:
    return {
        "touched_bytes": audit.exact,
        "touched_bytes_in_blocks": audit.in_blocks,
        "agrees": audit.agrees,
        "reasons": list(audit.reasons),
    }
