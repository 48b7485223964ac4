"""What a strided-repeat engine can time, and the facts that an instruction rests on."""

from __future__ import annotations

from castsim.isa.errors import IllegalError
from castsim.machines.strided.operations import VectorOperation
from castsim.targets.strided_repeat import StridedRepeatTarget

_HEAD_ALWAYS = "always"


def check_vector(operation: object, target: StridedRepeatTarget) -> None:
    """Refuse what is no vector instruction of this mechanism, and timing rows that the target does not have.

    Raises:
        IllegalError: as said; names the rows that the target has.
    """
    if not isinstance(operation, VectorOperation):
        raise IllegalError(f"target '{target.name}' cannot execute a {type(operation).__name__}")
    if operation.timing not in target.timing.vector:
        raise IllegalError(
            f"target '{target.name}' has no vector timing '{operation.timing}'", legal=target.timing.vector
        )


def facts_of(operation: VectorOperation) -> tuple[str, ...]:
    """Return the paths of the facts that an instruction rests on."""
    return (f"timing.vector.{operation.timing}", "banks", "options.vector_head")


def always_fills(target: StridedRepeatTarget) -> bool:
    """Whether an instruction fills the pipe even if it finds it at work."""
    return target.option("vector_head") == _HEAD_ALWAYS
