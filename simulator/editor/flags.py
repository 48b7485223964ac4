"""Flags and barriers that a race lacks. Only repairs are offered with which a check no longer finds the race."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

from castsim.checking import Finding, Severity, check_text
from castsim.editor.document import Settings, Text
from castsim.editor.repair import Edit, Repair, line_before, repaired

_LACKS = re.compile(
    r"set_flag (?P<pair>(?P<from>\w+) -> (?P<to>\w+)) after line (?P<set>\d+) "
    r"and wait_flag (?P=pair) before line (?P<wait>\d+)"
)
_UNMATCHED = re.compile(r"set_flag (\w+ -> \w+) id (\d+) .* is never waited for")
_EVENTS = 8
_BUDGET = 2.0
"""Seconds after which no further repair is tried."""

_MOST_LINES = 3000
"""Lines of a text that is checked again for every repair."""


def flag_repairs(text: Text, finding: Finding, findings: Sequence[Finding], settings: Settings) -> list[Repair]:
    """Return the flags, or the barrier, that a race lacks; nothing for other findings."""
    lacks = _LACKS.search(finding.help)
    if lacks is None or finding.line is None or len(text.lines) > _MOST_LINES:
        return []
    errors = _errors(findings)
    limit = time.monotonic() + _BUDGET
    found: list[Repair] = []
    for one in _candidates(text, lacks, findings):
        if time.monotonic() > limit:
            break
        left = _errors(_checked(repaired(text, one.edits), settings))
        if len(left) < len(errors) and _moved(finding, one.edits) not in left:
            found.append(Repair(one.title, one.edits, preferred=not found))
    return found


def _checked(text: Text, settings: Settings) -> Sequence[Finding]:
    return check_text(text.name, text.text, target=settings.target, args=settings.args, language="pto")


def _errors(findings: Sequence[Finding]) -> set[tuple[str, int | None]]:
    return {(one.kind, one.line) for one in findings if one.severity is Severity.ERROR}


def _moved(finding: Finding, edits: tuple[Edit, ...]) -> tuple[str, int | None]:
    """Return kind and line that a finding would have with edits."""
    line = finding.line or 0
    return finding.kind, line + sum(one.text.count("\n") for one in edits if one.line <= line)


def _candidates(text: Text, lacks: re.Match[str], findings: Sequence[Finding]) -> Iterator[Repair]:
    lines, pair = text.lines, lacks["pair"]
    pipes, wait, behind = f"<PIPE_{lacks['from']}>, <PIPE_{lacks['to']}>", int(lacks["wait"]), int(lacks["set"])
    for one in findings:
        unmatched = _UNMATCHED.search(one.message)
        if unmatched is not None and unmatched[1] == pair:
            waiting = f"pto.wait_flag[{pipes}, <EVENT_ID{unmatched[2]}>]"
            yield Repair(f"Insert {waiting}", (line_before(wait, waiting, lines[wait - 1]),))
    event = next((each for each in range(_EVENTS) if not _used(text, lacks, each)), None)
    if event is not None:
        setting, waiting = (f"pto.{what}_flag[{pipes}, <EVENT_ID{event}>]" for what in ("set", "wait"))
        both = (
            line_before(behind + 1, setting, lines[behind - 1]),
            line_before(wait, waiting, lines[wait - 1]),
        )
        title = f"Insert set_flag and wait_flag {pair}, event {event}"
        yield Repair(title, both)
        loop = _loop(lines, wait, behind)
        if loop is not None:
            head, end = loop
            around = (line_before(head, setting, lines[head - 1]), line_before(end + 1, waiting, lines[head - 1]))
            yield Repair(f"{title}, with a first set before the loop and a last wait behind it", (*both, *around))
    barrier = "pto.barrier <PIPE_ALL>"
    yield Repair(f"Insert {barrier}", (line_before(wait, barrier, lines[wait - 1]),))


def _used(text: Text, lacks: re.Match[str], event: int) -> bool:
    found = rf'_flag\s*\[[<"]*PIPE_{lacks["from"]}[>"]*\s*,\s*[<"]*PIPE_{lacks["to"]}[>"]*\s*,\s*[<"]*EVENT_ID{event}\b'
    return re.search(found, text.text) is not None


def _loop(lines: Sequence[str], wait: int, behind: int) -> tuple[int, int] | None:
    """Return head and end, lines from 1, of the innermost loop around two lines; None if there is none."""
    depth, ends = 0, None
    for number in range(min(wait, behind) - 1, 0, -1):
        depth += lines[number - 1].count("{") - lines[number - 1].count("}")
        if depth > 0:
            if "scf.for" not in lines[number - 1]:
                return None
            ends = number
            break
    if ends is None:
        return None
    depth = 0
    for number in range(ends, len(lines) + 1):
        depth += lines[number - 1].count("{") - lines[number - 1].count("}")
        if depth == 0:
            return (ends, number) if number > max(wait, behind) else None
    return None
