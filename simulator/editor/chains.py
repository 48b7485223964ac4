"""A cast that the target lacks, replaced by the chain of casts that `castsim lower` finds."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from castsim.checking import Finding, Severity, check_text
from castsim.editor.alone import node_at
from castsim.editor.document import Settings, Text
from castsim.editor.program_slice import excerpt
from castsim.editor.repair import Edit, Repair, repaired
from castsim.editor.targeted import target_of_text
from castsim.isa import pto
from castsim.isa.errors import IllegalError
from castsim.isa.pto.types import format_type
from castsim.planning import CastRequest, PlanKind
from castsim.planning.lowering_answers import Answer, answer
from castsim.planning.steps import TileCastForm

_STEPS = 2
"""Casts of a chain: three take minutes to search."""

_REFUSALS = (IllegalError.kind, "tile does not fit", "cannot be read", "scratch too small")


def chain_repairs(text: Text, finding: Finding, settings: Settings) -> list[Repair]:
    """Return the chain that stands for a cast that the target lacks; nothing for other findings.

    Raises:
        CastsimError: no program can be written for the cast.
    """
    if finding.kind != IllegalError.kind or "no cast" not in finding.message or finding.line is None:
        return []
    node, statement = node_at(text, finding.line)
    target = target_of_text(text, settings)
    if not isinstance(node, pto.Tcvt) or node.defines_dst or node.tmp is not None or target is None:
        return []
    if statement.count("tcvt") != 1 or "addr" in text.text:  # others share its lines; tiles are placed by hand
        return []
    rounding = None if node.rounding in (None, pto.RoundMode.NONE) else node.rounding.name.lower()
    found = _answer(
        node.src_type.element,
        node.dst_type.element,
        settings.target or target.name,
        rounding,
        str(node.saturation) == "on",
    )
    if found.plan.kind is not PlanKind.CHAIN or found.settings:
        return []
    edit = _edit(text, node, finding.line, found)
    if edit is None or not _holds(text, edit, settings):
        return []
    path = " -> ".join([found.plan.chain[0].src.name, *(step.dst.name for step in found.plan.chain)])
    return [Repair(f"Cast {path} ({found.plan.claim})", (edit,), preferred=True)]


@lru_cache(maxsize=64)
def _answer(src: str, dst: str, target: str, rounding: str | None, saturate: bool) -> Answer:
    request = CastRequest(src, dst, target, rounding=rounding, saturate=saturate, steps=_STEPS)
    return answer(request, explain=False, quick=True, alternatives=False)


def _edit(text: Text, node: pto.Tcvt, line: int, found: Answer) -> Edit | None:
    """Return the chain in place of the lines of a cast; None if a step needs a tmp tile."""
    place = excerpt(text, line - 1, line - 1)
    forms = [step.forms[0] for step in found.plan.chain]
    if place is None or not all(isinstance(form, TileCastForm) and not form.scratch for form in forms):
        return None
    head = text.lines[place.first]
    indent = head[: len(head) - len(head.lstrip())]
    lines, source, kind = [], node.src, node.src_type
    for number, (step, form) in enumerate(zip(found.plan.chain, forms, strict=True)):
        last = number == len(forms) - 1
        name = node.dst if last else _free(text, f"via_{step.dst.name}")
        result = node.dst_type if last else replace(node.dst_type, element=step.dst.name)
        if not last:
            lines.append(f"%{name} = pto.alloc_tile : {format_type(result)}")
        modes = _modes(form) if isinstance(form, TileCastForm) else ""
        lines.append(f"pto.tcvt ins(%{source}{modes} : {format_type(kind)}) outs(%{name} : {format_type(result)})")
        source, kind = name, result
    written = f"\n{indent}".join(lines)
    old = "\n".join(text.lines[place.first : place.last + 1])
    if "\n" in old.strip():
        return None
    return Edit(place.first + 1, len(indent) + 1, len(head) + 1, written)


def _modes(form: TileCastForm) -> str:
    words = [] if form.rounding is None else [f"rmode = #pto<round_mode {form.rounding.name}>"]
    words += [] if form.saturation is None else [f"sat_mode = #pto<saturation_mode {form.saturation.name}>"]
    return f" {{{', '.join(words)}}}" if words else ""


def _free(text: Text, name: str) -> str:
    number, free = 1, name
    while f"%{free} " in text.text or f"%{free}," in text.text:
        number += 1
        free = f"{name}{number}"
    return free


def _holds(text: Text, edit: Edit, settings: Settings) -> bool:
    """Whether nothing refuses the lines that an edit leaves."""
    behind = repaired(text, (edit,))
    last = edit.line + edit.text.count("\n")
    part = excerpt(behind, edit.line - 1, last - 1)
    if part is None:
        return False
    found = check_text(part.text.name, part.text.text, target=settings.target, args=settings.args, language="pto")
    return not any(
        one.severity is Severity.ERROR and one.kind in _REFUSALS and part.holds(one.line) for one in found
    )  # fmt: skip
