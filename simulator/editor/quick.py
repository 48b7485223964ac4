"""Findings in the lines that have just been changed, before the whole text is checked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from castsim.checking.finding import Finding, in_order, of_errors, of_warnings
from castsim.editor.document import Settings, Text
from castsim.editor.program_slice import Excerpt, excerpt
from castsim.isa import pto
from castsim.isa.errors import CastsimError


@dataclass(frozen=True, slots=True)
class Change:
    """`added` lines of the new text, from number `first`, stand for `removed` lines of the old one; from 0."""

    first: int
    added: int
    removed: int


def change(old: Sequence[str], new: Sequence[str]) -> Change | None:
    """Return what differs between two texts; None if nothing does."""
    most = min(len(old), len(new))
    first = next((number for number in range(most) if old[number] != new[number]), most)
    if first == most and len(old) == len(new):
        return None
    behind = next((n for n in range(most - first) if old[-1 - n] != new[-1 - n]), most - first)
    return Change(first, len(new) - behind - first, len(old) - behind - first)


def quick_findings(text: Text, edit: Change, before: Sequence[Finding], settings: Settings) -> tuple[Finding, ...]:
    """Return what an edit leaves of earlier findings, where it moves them to, and what the new lines are wrong in.

    Only their syntax and types are read; `castsim.check_text` on the whole text finds the rest.
    """
    moved = edit.added - edit.removed
    start = min(edit.first, len(text.lines) - 1)
    found = excerpt(text, start, max(start, edit.first + edit.added - 1))
    replaced = range(edit.first, edit.first + edit.removed)
    kept = []
    for one in before:
        line = None if one.line is None else one.line - 1
        if line is None or line < edit.first:
            kept.append(one)
        elif line not in replaced and one.line is not None:
            kept.append(replace(one, line=one.line + moved, span=None))
    if found is None:
        return tuple(kept)
    fresh = [one for one in _read(found, settings) if found.holds(one.line)]
    return in_order([*(one for one in kept if not (fresh and found.holds(one.line))), *fresh])


def _read(found: Excerpt, settings: Settings) -> list[Finding]:
    text = found.text
    try:
        if text.language == "pto":
            parsed = pto.parse(text.text, text.name, go_past_refused=True)
            refused = [one for each in parsed.refused for one in of_errors(each.error, text.name)]
            return [*refused, *of_warnings(parsed.warnings, text.name)]
        return _read_assembly(text, settings)
    except CastsimError as error:
        return of_errors(error, text.name)


def _read_assembly(text: Text, settings: Settings) -> list[Finding]:
    from castsim.isa.tpc import parse  # noqa: PLC0415 - only the language in use is loaded
    from castsim.machines.vliw.source import chosen_target  # noqa: PLC0415 - as above
    from castsim.tpc_compiler.scheduling import has_virtual_registers  # noqa: PLC0415 - as above

    if not has_virtual_registers(text.text):
        parse(text.text, chosen_target(text.text, text.name, settings.request().target).dialect, text.name)
    return []
