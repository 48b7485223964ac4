"""Reordering of independent operations; each pipe executes its operations in text order.

Loads come first, stores as early as possible, and vector operations apart from those whose results they need.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from time import process_time

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import CastsimError
from castsim.isa.pto import program as pto
from castsim.isa.pto.vector_operations import ALIASES
from castsim.isa.tpc.parser import parse, print_declaration, print_instruction
from castsim.isa.tpc.program import Bundle, LabelDefinition, TpcInstruction, TpcProgram
from castsim.running.program_edits import TextOperation, TileText, each_of
from castsim.targets.vliw import VliwTarget
from castsim.tools.advise.suggestions import ProposedChange, defined, read_by, used, written_by
from castsim.tools.tpc_assembly.scheduling import schedule

REORDERING = "reorder"
_STEPS = 60
"""Maximum number of orders that a search by single moves tries for a block."""

_MOST_ORDERS = 120
"""Maximum number of orders of a block that are all tried."""

Cost = Callable[[str], int | None]
_Order = tuple[int, ...]


def reordered_statements(text: TileText, cost: Cost) -> Iterator[ProposedChange]:
    """Yield each sequence of statements in better orders; `cost` returns the cycles of a text, None if refused."""
    if text.has(pto.SetFlag, pto.WaitFlag, pto.Barrier):
        return
    blocks = [text.statements, *(statement.body for statement in text.all() if isinstance(statement.node, pto.For))]
    for block in blocks:
        kept = [statement for statement in block if not isinstance(statement.node, pto.Return | pto.Yield)]
        if len([statement for statement in kept if written_by(statement.node)]) < 3:
            continue
        needs = _dependences(text, kept)
        best = tuple(range(len(kept)))
        seen = {best}
        for pick, words in _PICKS.items():
            order = _listed(kept, needs, pick)
            if order not in seen:
                seen.add(order)
                yield _change(text, kept, order, words)
        searched = _searched(text, kept, needs, cost)
        if searched not in seen:
            yield _change(text, kept, searched, "move operations between independent ones")


def _change(text: TileText, block: Sequence[TextOperation], order: _Order, words: str) -> ProposedChange:
    line = next(block[index].number for index, number in enumerate(order) if index != number)
    return ProposedChange(
        REORDERING, f"{words}, from line {line} on", "awaited work is issued earlier, other work during the wait",
        line, _in_order(text, block, order),
    )  # fmt: skip


def _in_order(text: TileText, block: Sequence[TextOperation], order: _Order) -> str:
    """Return the text with a block's statements in another order; comments stay before their statements."""
    chunks, start = [], block[0].first
    for statement in block:
        chunks.append(text.lines[start : statement.last + 1])
        start = statement.last + 1
    lines = [line for number in order for line in chunks[number]]
    before, after = text.lines[: block[0].first], text.lines[block[-1].last + 1 :]
    return "\n".join((*before, *lines, *after))


def _roots(text: TileText) -> dict[str, str]:
    """Return the representative of each tile: tiles that share bytes by name or by address have one."""
    roots: dict[str, str] = {}
    for statement in text.all():
        node = statement.node
        if isinstance(node, pto.AllocTile) and node.address is not None:
            roots[node.result] = f"@{node.address}"
        elif isinstance(node, pto.TileOperation) and node.mnemonic in ALIASES:
            roots |= {name: roots.get(node.inputs[0], node.inputs[0]) for name in node.outputs}
        elif isinstance(node, pto.Subview):
            roots[node.result] = roots.get(node.source, node.source)
        elif isinstance(node, pto.PartitionView):
            roots[node.result] = roots.get(node.view, node.view)
        elif isinstance(node, pto.MakeView):
            roots[node.result] = f"gm {node.pointer}"
    return roots


def _dependences(text: TileText, block: Sequence[TextOperation]) -> list[set[int]]:
    """Return, for each statement, the numbers of those that must stay before it."""
    roots = _roots(text)
    facts = []
    for statement in block:
        lines = [*text.lines[statement.first : statement.last + 1]]
        inner = [nested.node for nested in each_of((statement,))]
        reads = {roots.get(name, name) for node in inner for name in read_by(node)}
        writes = {roots.get(name, name) for node in inner for name in written_by(node)}
        if any(_is_odd(node) for node in inner):
            reads, writes = {"*"}, {"*"}
        facts.append((defined(lines), used(lines), reads, writes))
    needs: list[set[int]] = []
    for number, (_, names, reads, writes) in enumerate(facts):
        earlier_needs = set()
        for earlier, (defined_names, _, was_read, was_written) in enumerate(facts[:number]):
            meet = writes & (was_read | was_written) or reads & was_written
            if defined_names & names or meet or ("*" in writes and was_written) or ("*" in was_written and writes):
                earlier_needs.add(earlier)
        needs.append(earlier_needs)
    return needs


def _is_odd(node: pto.Operation) -> bool:
    """Return whether an operation has effects beyond its tiles and views."""
    return isinstance(node, pto.ScalarAccess | pto.SetValidShape | pto.Call | pto.CacheOperation | pto.ForeignOperation)


Pick = Callable[[Sequence[TextOperation], Sequence[set[int]], list[int], list[int]], int]
"""Function that takes statements, their dependences, the numbers of the ready ones, and the order so far."""


def _listed(block: Sequence[TextOperation], needs: Sequence[set[int]], pick: Pick) -> _Order:
    """Return the order that results from repeatedly picking a ready statement."""
    order: list[int] = []
    left = list(range(len(block)))
    while left:
        done = set(order)
        ready = [number for number in left if needs[number] <= done]
        chosen = pick(block, needs, ready, order)
        order.append(chosen)
        left.remove(chosen)
    return tuple(order)


def _soon(mnemonic: str) -> Pick:
    """Return a function that picks statements without work first, then operations of one kind, then others."""

    def pick(block: Sequence[TextOperation], _: Sequence[set[int]], ready: list[int], __: list[int]) -> int:
        def rank(number: int) -> tuple[int, int]:
            node = block[number].node
            if not written_by(node) and not block[number].body:
                return 0, number
            return 1 if isinstance(node, pto.TileOperation) and node.mnemonic == mnemonic else 2, number

        return min(ready, key=rank)

    return pick


def _apart(block: Sequence[TextOperation], needs: Sequence[set[int]], ready: list[int], order: list[int]) -> int:
    """Pick the statement that depends least on the last ones picked."""
    places = {number: index for index, number in enumerate(order)}

    def rank(number: int) -> tuple[int, int, int]:
        statement = block[number]
        latest = max((places[producer] for producer in needs[number] if written_by(block[producer].node)), default=-1)
        return (0 if not written_by(statement.node) and not statement.body else 1, latest, number)

    return min(ready, key=rank)


_PICKS: dict[Pick, str] = {
    _soon("tload"): "load before the work that does not need it",
    _soon("tstore"): "store as soon as the result is there",
    _apart: "put other work between operations and what needs their results",
}


def _searched(text: TileText, block: Sequence[TextOperation], needs: Sequence[set[int]], cost: Cost) -> _Order:
    """Return the best order reached by moves of single statements, each kept if it saves cycles."""
    best = tuple(range(len(block)))
    least, left = cost(text.text), _STEPS
    every = list(islice(_every_order(block, needs), _MOST_ORDERS + 1))
    if len(every) <= _MOST_ORDERS:
        costs = {order: cost(_in_order(text, block, order)) for order in every}
        return min(every, key=lambda order: (costs[order] is None, costs[order] or 0))
    moved = True
    while moved and left > 0 and least is not None:
        moved = False
        for number in [candidate for candidate in best if written_by(block[candidate].node)]:
            for other in _moves(block, best, needs, number):
                cycles = cost(_in_order(text, block, other))
                left -= 1
                if cycles is not None and cycles < least:
                    best, least, moved = other, cycles, True
                    break
                if left <= 0:
                    return best
    return best


def _every_order(block: Sequence[TextOperation], needs: Sequence[set[int]]) -> Iterator[_Order]:
    """Yield the orders of the working statements in their positions; all others stay."""
    slots = [number for number, statement in enumerate(block) if written_by(statement.node) or statement.body]

    def continued(order: list[int]) -> Iterator[_Order]:
        while len(order) < len(block) and len(order) not in slots:
            if not needs[len(order)] <= set(order):
                return
            order = [*order, len(order)]
        if len(order) == len(block):
            yield tuple(order)
            return
        for number in slots:
            if number not in order and needs[number] <= set(order):
                yield from continued([*order, number])

    yield from continued([])


def _moves(block: Sequence[TextOperation], order: _Order, needs: Sequence[set[int]], number: int) -> Iterator[_Order]:
    """Yield the orders with one statement moved before its working neighbour, and as early as possible."""
    rest = [other for other in order if other != number]
    position = order.index(number)
    earliest = max((rest.index(producer) + 1 for producer in needs[number]), default=0)
    work = [index for index in range(earliest, position) if written_by(block[rest[index]].node)]
    for at in dict.fromkeys([*work[-1:], *work[:1]]):
        yield (*rest[:at], number, *rest[at:])


# TPC assembly scheduled anew, loops unrolled first: the instructions one by one, then put into bundles again.
#
# A program whose reads never come too early does what its instructions do one after the other, those of a bundle with
# reads first. That makes it a text for the scheduler, which also chooses registers.

RESCHEDULE, UNROLL = "reschedule", "unroll"
_METHODS = {"padding": "as written", "list": "list-scheduled", "pipelined": "software-pipelined"}
_FACTORS = (4, 2)
_MOST_LINES = 160
"""Maximum number of instructions of an unrolled loop."""
_REGISTER = re.compile(r"\b(V|S|I)(\d+)\b(?!\s*:)")
_GROUPS = re.compile(r"\b(?:D|A|Z)\d+\b|\bV_LANE|\bS3[2-5]\b|\bLFSR")
_PARTIAL = re.compile(r"lane_sel=[1-9]|\bVP\d|\bSP[1-9]")


@dataclass(slots=True)
class _LoopedSequence:
    """A program as lines, one instruction each; `loops` are the indices of a loop's line and of its label."""

    lines: list[str]
    loops: list[tuple[int, int]] = field(default_factory=list)


def reordered_bundles(text: str, file: str, target: VliwTarget, end: float = math.inf) -> Iterator[ProposedChange]:
    """Yield the program rescheduled, with its registers and with others, and with innermost loops unrolled.

    Each schedule gets its share of the time left until `end` of `process_time`, and is the best one by then.
    """
    program = parse(text, target.dialect, file)
    sequence = _sequence(program)
    if sequence is None:
        return
    declared = [print_declaration(declaration) for declaration in program.declarations]
    line = program.bundles[0].span.line if program.bundles else 1
    asked = [
        (lines if own else _with_free_registers(lines), kind, title, "" if own else ", registers renamed")
        for lines, kind, title in _variants(sequence, declared)
        for own in (False, True)
    ]
    for number, (lines, kind, title, renamed) in enumerate(asked):
        if lines is None:
            continue
        now = process_time()
        until = now + (end - now) / (len(asked) - number)
        try:
            scheduled = schedule("\n".join(lines) + "\n", file, target, longer=True, until=until)
        except CastsimError:
            continue
        why = "more instructions share a bundle, fewer bundles wait"
        yield ProposedChange(
            kind, f"{title} ({_METHODS[scheduled.method]}{renamed})", why, line, _with_comments(text, scheduled.text)
        )


def _variants(sequence: _LoopedSequence, declared: list[str]) -> Iterator[tuple[list[str], str, str]]:
    # What saves most comes first, as the time may end.
    for start, end in sequence.loops:
        for factor in _FACTORS:
            lines = _unrolled(sequence.lines, start, end, factor)
            if lines is not None and len(lines) <= _MOST_LINES:
                yield [*declared, *lines], UNROLL, f"unroll the loop by {factor}"
    yield (
        [*declared, *sequence.lines],
        RESCHEDULE,
        "reschedule the loop" if sequence.loops else "reschedule the bundles",
    )


def _sequence(program: TpcProgram) -> _LoopedSequence | None:
    """Return a program with one instruction per line; None if the order of a bundle's instructions is unknown."""
    sequence = _LoopedSequence([])
    open_loops: dict[str, list[int]] = {}
    for item in program.items:
        if isinstance(item, LabelDefinition):
            for start in open_loops.pop(item.name, []):
                sequence.loops.append((start, len(sequence.lines)))
            sequence.lines.append(f"{item.name}:")
        elif isinstance(item, Bundle):
            ordered = _ordered([operation for operation in item.slots if operation is not None])
            if ordered is None:
                return None
            for instruction in ordered:
                text = print_instruction(instruction)
                if instruction.mnemonic == "loop":
                    open_loops.setdefault(text.split(",")[-1].strip(), []).append(len(sequence.lines))
                sequence.lines.append(text)
    return sequence


def _ordered(instructions: Sequence[TpcInstruction]) -> list[TpcInstruction] | None:
    """Return the instructions of a bundle in an order that reads before writes; None if they exchange values."""
    halts = [operation for operation in instructions if operation.mnemonic == "halt"]
    left = [operation for operation in instructions if operation.mnemonic != "halt"]
    ordered: list[TpcInstruction] = []
    while left:
        for instruction in left:
            written = _written(instruction)
            if not any(written & _mentioned(other) for other in left if other is not instruction):
                break
        else:
            return None
        ordered.append(instruction)
        left.remove(instruction)
    return [*ordered, *halts[:1]]


def _mentioned(instruction: TpcInstruction) -> set[str]:
    return set(re.findall(r"\b(?:VP|SP|AD|[VDASZI])\d+\b", print_instruction(instruction)))


def _written(instruction: TpcInstruction) -> set[str]:
    destination = instruction.operand("dest")
    return set() if destination is None else {str(destination)} & _mentioned(instruction)


def _with_free_registers(lines: Sequence[str]) -> list[str] | None:
    """Return the text with virtual registers for V, S and I; None if some register numbers have a meaning."""
    code = [line for line in lines if not line.startswith("//")]
    if any(_GROUPS.search(line) for line in code):
        return None

    def virtual(match: re.Match[str]) -> str:
        return f"%{match[1].lower()}.r{match[2]}"

    return [
        _REGISTER.sub(virtual, line) if not line.startswith("//") or "castsim: reg" in line else line for line in lines
    ]


def _unrolled(lines: Sequence[str], start: int, end: int, factor: int) -> list[str] | None:
    """Return a sequence with the body of an innermost loop repeated; None if its trips are not divisible."""
    match = re.fullmatch(r"loop (\w+), (\w+), (\w+), (<), (\S+)", lines[start])
    if match is None or any(line.startswith(("loop", "jmp")) for line in lines[start + 1 : end]):
        return None
    first, last, step = (int(match[group], 0) if match[group][0].isdigit() else None for group in (1, 2, 3))
    if first is None or last is None or not step or (last - first) % (step * factor):
        return None
    body = list(lines[start + 1 : end])
    head = f"loop {first}, {last}, {step * factor}, <, {match[5]}"
    return [*lines[:start], head, *_copies(body, factor), *lines[end:]]


def _copies(body: Sequence[str], factor: int) -> list[str]:
    """Return a repeated body, with distinct vector registers for values that each trip overwrites, if possible."""
    if any(_GROUPS.search(line) for line in body):
        return list(body) * factor
    copied = list(body)
    own = _fresh_each_trip(body)
    highest = max((int(number) for line in body for number in re.findall(r"\bV(\d+)\b", line)), default=0) + 1
    for copy in range(1, factor):
        names = {name: f"V{highest + index + (copy - 1) * len(own)}" for index, name in enumerate(sorted(own))}
        if any(int(name[1:]) > 39 for name in names.values()):
            names = {}
        copied += [re.sub(r"\bV\d+\b", lambda match, names=names: names.get(match[0], match[0]), line) for line in body]  # type: ignore[misc]
    return copied


def _fresh_each_trip(body: Sequence[str]) -> set[str]:
    """Return the vector registers that a body writes completely before it reads them."""
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
    """Return a new text after the leading comments of the old one."""
    kept = []
    for line in before.split("\n"):
        if line.startswith("//") and "castsim:" not in line:
            kept.append(line)
        elif not line.startswith("//"):
            break
    return "".join(f"{line}\n" for line in kept) + after
