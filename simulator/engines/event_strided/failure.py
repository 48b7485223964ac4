"""Why a simulation cannot go on, in words: who waits for whom, or where the cycle limit struck."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from isa.errors import EngineError
from simulator.engines.event_strided.issue import Issuer
from simulator.engines.event_strided.pipes import Pipe, Wait
from simulator.engines.event_strided.records import Entry, ExecutionRecord
from simulator.strided.operations import SetFlag, StridedOperation, WaitFlag
from simulator.tree import Instruction, Tree

_LOOK_AHEAD = 100_000
"""Operations of the rest of the program in which a missing signal is looked for."""


def deadlock(tree: Tree, issuer: Issuer, pipes: Mapping[str, Pipe]) -> EngineError | None:
    """Return the error that names every wait, None if nothing waits."""
    waits = [(pipe.name, pipe.wait) for pipe in pipes.values() if pipe.wait is not None]
    if issuer.wait is not None:
        waits.append((issuer.name, issuer.wait))
    if not waits:
        return None
    waits.sort(key=lambda named: named[1].entry.index)
    upcoming = list(islice(issuer.upcoming(), _LOOK_AHEAD))
    sentences = [f"{name} waits for {_reason(tree, wait, issuer, pipes, upcoming)}" for name, wait in waits]
    first = waits[0][1].entry
    return EngineError(f"deadlock: {'; '.join(sentences)}", span=_instruction(tree, first.execution).span)


def limit(tree: Tree, issuer: Issuer, pipes: Mapping[str, Pipe], max_cycles: int) -> EngineError:
    """Return the error of a run that took longer than allowed."""
    open_entries: list[Entry] = []
    for pipe in pipes.values():
        open_entries += [entry for entry in (pipe.current, *pipe.in_flight) if entry is not None]
    if not open_entries and issuer.beyond is not None:
        open_entries.append(issuer.beyond)
    message = f"cycle limit of {max_cycles} reached"
    if not open_entries:
        return EngineError(message)
    reached = _instruction(tree, min(open_entries, key=lambda entry: entry.index).execution)
    return EngineError(f"{message} at '{reached.text}' ({reached.span})", span=reached.span)


def _instruction(tree: Tree, execution: ExecutionRecord) -> Instruction:
    return tree.instructions[execution.instruction]


def _reason(tree: Tree, wait: Wait, issuer: Issuer, pipes: Mapping[str, Pipe], upcoming: list[StridedOperation]) -> str:
    place = _instruction(tree, wait.entry.execution).span
    if wait.flag is not None:
        key = wait.flag
        name = f"flag {key.signaller} -> {key.pipe} id {key.event} ({place})"
        return f"{name}, {_signal(tree, wait.flag, issuer, pipes, upcoming)}"
    if wait.needed is not None:
        needed = _instruction(tree, wait.needed)
        return f"the bytes of '{needed.text}' ({needed.span}), which has not ended ({place})"
    return f"all pipes to drain ({place})"


def _signal(
    tree: Tree, flag: WaitFlag, issuer: Issuer, pipes: Mapping[str, Pipe], upcoming: list[StridedOperation]
) -> str:
    """Say what has become of the signal."""
    signal = SetFlag(flag.signaller, flag.pipe, flag.event)
    signaller = pipes.get(flag.signaller)
    for item in signaller.queue if signaller is not None else ():
        if isinstance(item, Entry) and item.operation == signal:
            return f"set behind what {flag.signaller} waits for ({_instruction(tree, item.execution).span})"
    if signal in upcoming:
        return f"not issued yet because {issuer.name} waits"
    return "which nothing sets any more"
