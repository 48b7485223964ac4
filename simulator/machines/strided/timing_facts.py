"""What a strided-repeat engine can time, and the facts that an instruction rests on."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from castsim.isa.errors import IllegalError
from castsim.machines.strided.operations import ControlWrite, VectorOperation
from castsim.targets.strided_repeat import StridedRepeatTarget, VectorTiming

_HEAD_ALWAYS = "always"


class Pace(NamedTuple):
    """The times of one instruction of so many repeats.

    Cycles before the first repeat, from repeat to repeat, behind the last one, those lost there by the number of
    delayed repeats, and until the results are in the buffer, `late` of them of the startup; `at_once` if they
    already are; `always` if it fills a pipe at work as well.
    """

    head: int
    interval: int
    rest: int
    lost: tuple[int, ...]
    tail: int
    late: int
    at_once: int
    always: int


@lru_cache(maxsize=1 << 14)
def _pace(row: VectorTiming, tail_of_pipe: int, repeats: int) -> Pace:
    lost = tuple(map(row.lost, range(repeats + 1))) if row.conflict_cycles else (0,) * (repeats + 1)
    tail = row.tail(repeats, tail_of_pipe)
    at_once, always = int(row.results_at_once), int(row.fills_always)
    return Pace(row.head, row.interval, row.rest(repeats), lost, tail, row.late, at_once, always)


def pace_of(target: StridedRepeatTarget, row: str, repeats: int) -> Pace:
    """Return the times of an instruction of so many repeats by the name of its timing row."""
    return _pace(target.timing.vector[row], target.timing.vector_pipe.tail_cycles, repeats)


def changes_mask(operation: object, target: StridedRepeatTarget) -> bool:
    """Whether an operation of the vector pipe is a write of control state that the next instruction waits for."""
    return isinstance(operation, ControlWrite) and operation.pipe == target.pipes.vector


def check_vector(operation: object, target: StridedRepeatTarget) -> None:
    """Refuse what is no vector instruction of this mechanism, and timing rows that the target does not have.

    Raises:
        IllegalError: as said; names the rows that the target has.
    """
    if changes_mask(operation, target):
        return
    if not isinstance(operation, VectorOperation):
        raise IllegalError(f"target '{target.name}' cannot execute a {type(operation).__name__}")
    if operation.timing not in target.timing.vector:
        raise IllegalError(
            f"target '{target.name}' has no vector timing '{operation.timing}'", legal=target.timing.vector
        )


def facts_of(operation: VectorOperation) -> tuple[str, ...]:
    """Return the paths of the facts that an instruction rests on."""
    return (f"timing.vector.{operation.timing}", "timing.vector_pipe", "banks", "options.vector_head")


def always_fills(target: StridedRepeatTarget) -> bool:
    """Whether an instruction fills the pipe even if it finds it at work."""
    return target.option("vector_head") == _HEAD_ALWAYS
