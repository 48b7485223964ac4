"""Why a simulation cannot go on, in words: who waits for whom, or where the cycle limit struck."""

from __future__ import annotations

from collections.abc import Mapping

from isa.errors import EngineError
from simulator.dataflow.operations import SetFlag, WaitFlag
from simulator.engines.event_dataflow.issue import Issuer
from simulator.engines.event_dataflow.pipes import Pipe, Wait
from simulator.engines.event_dataflow.records import Entry, ExecutionRecord
from simulator.tree import Instruction, Operation, Tree

_LOOK_AHEAD = 100_000
"""Operations of the rest of the program in which a missing signal is looked for: a bound on the time an error takes."""


def deadlock(tree: Tree, issuer: Issuer, pipes: Mapping[str, Pipe]) -> EngineError | None:
    """Return the error that names every wait, None if nothing waits."""
    if not _waits(issuer, pipes):
        return None
    unreached = issuer.run_on(_LOOK_AHEAD)
    waits = _waits(issuer, pipes)
    sentences = [f"{name} waits for {_reason(tree, wait, issuer, pipes, unreached)}" for name, wait in waits]
    first = waits[0][1].entry
    return EngineError(f"deadlock: {'; '.join(sentences)}", span=_instruction(tree, first.execution).span)


def _waits(issuer: Issuer, pipes: Mapping[str, Pipe]) -> list[tuple[str, Wait]]:
    """Return who waits for what, by name of the pipe, in the order of the waiting operations."""
    named = [(pipe.name, pipe.wait) for pipe in pipes.values()] + [(issuer.name, issuer.wait)]
    waits = [(name, wait) for name, wait in named if wait is not None]
    return sorted(waits, key=lambda named: named[1].entry.index)


def limit(tree: Tree, issuer: Issuer, pipes: Mapping[str, Pipe], max_cycles: int) -> EngineError:
    """Return the error of a run that took longer than allowed."""
    open_entries: list[Entry] = []
    if issuer.beyond is not None:
        open_entries.append(issuer.beyond)
    else:
        for pipe in pipes.values():
            started = [entry for entry in (pipe.current, *pipe.in_flight) if entry is not None]
            open_entries += [entry for entry in started if not entry.over(max_cycles)]
    message = f"cycle limit of {max_cycles} reached"
    if not open_entries:
        return EngineError(message)
    reached = _instruction(tree, min(open_entries, key=lambda entry: entry.index).execution)
    return EngineError(f"{message} at '{reached.text}' ({reached.span})", span=reached.span)


def _instruction(tree: Tree, execution: ExecutionRecord) -> Instruction:
    return tree.instructions[execution.instruction]


def _reason(tree: Tree, wait: Wait, issuer: Issuer, pipes: Mapping[str, Pipe], unreached: list[Operation]) -> str:
    place = _instruction(tree, wait.entry.execution).span
    if wait.flag is not None:
        key = wait.flag
        name = f"flag {key.signaller} -> {key.pipe} id {key.event} ({place})"
        return f"{name}, {_signal(tree, wait.flag, issuer, pipes, unreached)}"
    if wait.needed is not None:
        needed = _instruction(tree, wait.needed)
        return f"the bytes of '{needed.text}' ({needed.span}), which has not ended ({place})"
    return f"all pipes to drain ({place})"


def _signal(tree: Tree, flag: WaitFlag, issuer: Issuer, pipes: Mapping[str, Pipe], unreached: list[Operation]) -> str:
    """Say what has become of the signal."""
    signal = SetFlag(flag.signaller, flag.pipe, flag.event)
    signaller = pipes.get(flag.signaller)
    for item in signaller.queue if signaller is not None else ():
        if isinstance(item, Entry) and item.operation == signal:
            return f"set behind what {flag.signaller} waits for ({_instruction(tree, item.execution).span})"
    if signal in unreached:
        return f"not issued yet because {issuer.name} waits"
    return "which nothing sets any more"
