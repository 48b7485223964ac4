"""Why a simulation cannot go on, in words that all engines share: who waits for whom, or where a limit struck."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from castsim.execution.dataflow.operations import SetFlag, WaitFlag
from castsim.execution.tree import Operation, Tree
from castsim.isa.errors import EngineError

LOOK_AHEAD = 100_000
"""Operations of the rest of the program in which a missing signal is looked for: a bound on the time an error takes."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """What a pipe stands still for: operation `index`, of source instruction `instruction`, is at its head.

    `flag` is set if it awaits a flag, `needed` if it awaits the bytes of that instruction, neither at a barrier.
    """

    pipe: str
    index: int
    instruction: int
    flag: WaitFlag | None = None
    needed: int | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left of a program that stands still.

    `queued` returns the instruction of a signal that stands in a queue, None if it does not; `unreached` are the next
    operations that the scalar unit, called `scalar`, cannot reach.
    """

    scalar: str
    queued: Callable[[SetFlag], int | None]
    unreached: Sequence[Operation]


def explain_deadlock(tree: Tree, waits: Sequence[Standstill], rest: Rest) -> EngineError:
    """Return the error that names every wait, in the order of the waiting operations."""
    ordered = sorted(waits, key=lambda wait: wait.index)
    sentences = [f"{wait.pipe} waits for {_reason(tree, wait, rest)}" for wait in ordered]
    return EngineError(f"deadlock: {'; '.join(sentences)}", span=tree.instructions[ordered[0].instruction].span)


def explain_limit(tree: Tree, max_cycles: int, reached: int | None) -> EngineError:
    """Return the error of a run that took longer than allowed and had reached that instruction, if any."""
    message = f"cycle limit of {max_cycles} reached"
    if reached is None:
        return EngineError(message)
    instruction = tree.instructions[reached]
    return EngineError(f"{message} at '{instruction.text}' ({instruction.span})", span=instruction.span)


def _reason(tree: Tree, wait: Standstill, rest: Rest) -> str:
    place = tree.instructions[wait.instruction].span
    if wait.flag is not None:
        key = wait.flag
        return f"flag {key.signaller} -> {key.pipe} id {key.event} ({place}), {_signal(tree, wait.flag, rest)}"
    if wait.needed is not None:
        needed = tree.instructions[wait.needed]
        return f"the bytes of '{needed.text}' ({needed.span}), which has not ended ({place})"
    return f"all pipes to drain ({place})"


def _signal(tree: Tree, flag: WaitFlag, rest: Rest) -> str:
    """Say what has become of the signal."""
    signal = SetFlag(flag.signaller, flag.pipe, flag.event)
    setter = rest.queued(signal)
    if setter is not None:
        return f"set after what {flag.signaller} waits for ({tree.instructions[setter].span})"
    if signal in rest.unreached:
        return f"not issued yet because {rest.scalar} waits"
    return "which nothing sets again"
