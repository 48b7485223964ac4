"""TPC assembly scheduled anew, loops unrolled first: the instructions one by one, then put into bundles again.

A program whose reads never come too early does what its instructions do one after the other, those of a bundle with
reads first. That makes it a text for the scheduler, which also chooses registers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import process_time

from castsim.exploration.advice.suggestion import Change
from castsim.isa import tpc
from castsim.isa.errors import CastsimError
from castsim.isa.tpc.program import Bundle, LabelDefinition, TpcInstruction
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.scheduling import schedule

RESCHEDULE, UNROLL = "reschedule", "unroll"
_METHODS = {"padding": "as written", "list": "list-scheduled", "pipelined": "software-pipelined"}
_FACTORS = (4, 2)
_MOST_LINES = 160
"""Instructions up to which a loop is unrolled."""
_REGISTER = re.compile(r"\b(V|S|I)(\d+)\b(?!\s*:)")
_GROUPS = re.compile(r"\b(?:D|A|Z)\d+\b|\bV_LANE|\bS3[2-5]\b|\bLFSR")
_PARTIAL = re.compile(r"lane_sel=[1-9]|\bVP\d|\bSP[1-9]")


@dataclass(slots=True)
class _Sequence:
    """A program as lines, one instruction each; `loops` are the places of a loop's line and of its label."""

    lines: list[str]
    loops: list[tuple[int, int]] = field(default_factory=list)


def reordered_bundles(text: str, file: str, target: VliwTarget, end: float = math.inf) -> Iterator[Change]:
    """Yield the program scheduled anew, with its registers and with others, and with innermost loops unrolled.

    Each schedule gets its share of the time left until `end` of `process_time`, and is the best found by then.
    """
    program = tpc.parse(text, target.dialect, file)
    found = _sequence(program)
    if found is None:
        return
    declared = [tpc.print_declaration(each) for each in program.declarations]
    line = program.bundles[0].span.line if program.bundles else 1
    asked = [
        (lines if own else _with_free_registers(lines), kind, title, "" if own else ", registers renamed")
        for lines, kind, title in _variants(found, declared)
        for own in (False, True)
    ]
    for number, (lines, kind, title, renamed) in enumerate(asked):
        if lines is None:
            continue
        now = process_time()
        until = now + (end - now) / (len(asked) - number)
        try:
            made = schedule("\n".join(lines) + "\n", file, target, longer=True, until=until)
        except CastsimError:
            continue
        why = "more instructions share a bundle, fewer bundles wait"
        yield Change(kind, f"{title} ({_METHODS[made.method]}{renamed})", why, line, _with_comments(text, made.text))


def _variants(found: _Sequence, declared: list[str]) -> Iterator[tuple[list[str], str, str]]:
    # What saves most comes first, as the time may end.
    for start, end in found.loops:
        for factor in _FACTORS:
            lines = _unrolled(found.lines, start, end, factor)
            if lines is not None and len(lines) <= _MOST_LINES:
                yield [*declared, *lines], UNROLL, f"unroll the loop by {factor}"
    yield [*declared, *found.lines], RESCHEDULE, "reschedule the loop" if found.loops else "reschedule the bundles"


def _sequence(program: tpc.TpcProgram) -> _Sequence | None:
    """Return a program one instruction a line; None if the order of a bundle's instructions cannot be told."""
    found = _Sequence([])
    open_loops: dict[str, list[int]] = {}
    for item in program.items:
        if isinstance(item, LabelDefinition):
            for start in open_loops.pop(item.name, []):
                found.loops.append((start, len(found.lines)))
            found.lines.append(f"{item.name}:")
        elif isinstance(item, Bundle):
            ordered = _ordered([each for each in item.slots if each is not None])
            if ordered is None:
                return None
            for instruction in ordered:
                text = tpc.print_instruction(instruction)
                if instruction.mnemonic == "loop":
                    open_loops.setdefault(text.split(",")[-1].strip(), []).append(len(found.lines))
                found.lines.append(text)
    return found


def _ordered(instructions: Sequence[TpcInstruction]) -> list[TpcInstruction] | None:
    """Return the instructions of a bundle so that each reads before another writes; None if they exchange values."""
    halts = [each for each in instructions if each.mnemonic == "halt"]
    left = [each for each in instructions if each.mnemonic != "halt"]
    found: list[TpcInstruction] = []
    while left:
        for one in left:
            written = _written(one)
            if not any(written & _mentioned(other) for other in left if other is not one):
                break
        else:
            return None
        found.append(one)
        left.remove(one)
    return [*found, *halts[:1]]


def _mentioned(instruction: TpcInstruction) -> set[str]:
    return set(re.findall(r"\b(?:VP|SP|AD|[VDASZI])\d+\b", tpc.print_instruction(instruction)))


def _written(instruction: TpcInstruction) -> set[str]:
    destination = instruction.operand("dest")
    return set() if destination is None else {str(destination)} & _mentioned(instruction)


def _with_free_registers(lines: Sequence[str]) -> list[str] | None:
    """Return the text with virtual registers for V, S and I; None where some of them are more than a name."""
    code = [line for line in lines if not line.startswith("//")]
    if any(_GROUPS.search(line) for line in code):
        return None

    def virtual(found: re.Match[str]) -> str:
        return f"%{found[1].lower()}.r{found[2]}"

    return [
        _REGISTER.sub(virtual, line) if not line.startswith("//") or "castsim: reg" in line else line for line in lines
    ]


def _unrolled(lines: Sequence[str], start: int, end: int, factor: int) -> list[str] | None:
    """Return a sequence with the body of an innermost loop written several times; None if its trips do not divide."""
    found = re.fullmatch(r"loop (\w+), (\w+), (\w+), (<), (\S+)", lines[start])
    if found is None or any(line.startswith(("loop", "jmp")) for line in lines[start + 1 : end]):
        return None
    first, last, step = (int(found[place], 0) if found[place][0].isdigit() else None for place in (1, 2, 3))
    if first is None or last is None or not step or (last - first) % (step * factor):
        return None
    body = list(lines[start + 1 : end])
    head = f"loop {first}, {last}, {step * factor}, <, {found[5]}"
    return [*lines[:start], head, *_copies(body, factor), *lines[end:]]


def _copies(body: Sequence[str], factor: int) -> list[str]:
    """Return a body several times, vector registers that each trip writes anew told apart where there are enough."""
    if any(_GROUPS.search(line) for line in body):
        return list(body) * factor
    found = list(body)
    own = _fresh_each_trip(body)
    highest = max((int(number) for line in body for number in re.findall(r"\bV(\d+)\b", line)), default=0) + 1
    for copy in range(1, factor):
        names = {name: f"V{highest + place + (copy - 1) * len(own)}" for place, name in enumerate(sorted(own))}
        if any(int(name[1:]) > 39 for name in names.values()):
            names = {}
        found += [re.sub(r"\bV\d+\b", lambda one, names=names: names.get(one[0], one[0]), line) for line in body]  # type: ignore[misc]
    return found


def _fresh_each_trip(body: Sequence[str]) -> set[str]:
    """Return the vector registers that a body writes as a whole before it reads them."""
    own: set[str] = set()
    read: set[str] = set()
    for line in body:
        operands = re.findall(r"\bV\d+\b", line)
        if not operands:
            continue
        stores = line.startswith("st_")
        destination = None if stores else operands[0]
        read |= set(operands if stores else operands[1:]) - own
        if destination is not None and destination not in read and not _PARTIAL.search(line):
            own.add(destination)
    return own - read


def _with_comments(before: str, after: str) -> str:
    """Return a new text behind the comments that the old one begins with."""
    kept = []
    for line in before.split("\n"):
        if line.startswith("//") and "castsim:" not in line:
            kept.append(line)
        elif not line.startswith("//"):
            break
    return "".join(f"{line}\n" for line in kept) + after
