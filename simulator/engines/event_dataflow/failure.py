"""Why a simulation cannot go on, in words: who waits for whom, or where the cycle limit struck."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from castsim.execution.dataflow.failure import LOOK_AHEAD, Rest, Standstill, explain_deadlock, explain_limit
from castsim.execution.dataflow.operations import SetFlag
from castsim.execution.tree import Tree
from castsim.isa.errors import EngineError

if TYPE_CHECKING:
    from castsim.engines.event_dataflow.issue import Issuer
    from castsim.engines.event_dataflow.pipes import PipeProcess, Wait
    from castsim.engines.event_dataflow.records import Entry


def deadlock(tree: Tree, issuer: Issuer, pipes: Mapping[str, PipeProcess]) -> EngineError | None:
    """Return the error that names every wait, None if nothing waits."""
    if not _waits(issuer, pipes):
        return None
    unreached = issuer.run_on(LOOK_AHEAD)

    def queued(signal: SetFlag) -> int | None:
        pipe = pipes.get(signal.pipe)
        for item in pipe.queue if pipe is not None else ():
            operation = getattr(item, "operation", None)
            if operation == signal:
                entry: Entry = item  # type: ignore[assignment]  # markers have no operation
                return entry.execution.instruction
        return None

    return explain_deadlock(tree, _waits(issuer, pipes), Rest(issuer.name, queued, unreached))


def _waits(issuer: Issuer, pipes: Mapping[str, PipeProcess]) -> list[Standstill]:
    """Return who waits for what."""
    named = [(pipe.name, pipe.wait) for pipe in pipes.values()] + [(issuer.name, issuer.wait)]
    return [_standstill(name, wait) for name, wait in named if wait is not None]


def _standstill(name: str, wait: Wait) -> Standstill:
    needed = None if wait.needed is None else wait.needed.instruction
    return Standstill(name, wait.entry.index, wait.entry.execution.instruction, wait.flag, needed)


def limit(tree: Tree, issuer: Issuer, pipes: Mapping[str, PipeProcess], max_cycles: int) -> EngineError:
    """Return the error of a run that took longer than allowed."""
    open_entries: list[Entry] = []
    if issuer.beyond is not None:
        open_entries.append(issuer.beyond)
    else:
        for pipe in pipes.values():
            started = [entry for entry in (pipe.current, *pipe.in_flight) if entry is not None]
            open_entries += [entry for entry in started if not entry.over(max_cycles)]
    reached = min(open_entries, key=lambda entry: entry.index, default=None)
    return explain_limit(tree, max_cycles, None if reached is None else reached.execution.instruction)
