"""Cycles of a launch that is written down as a body of instructions in loops, without a program around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.machines.vector_function.scopes import Instruction, Kind, MicroFunction, Scope, time_scope
from castsim.machines.vector_function.scopes.operation import check_scope
from castsim.targets import Target
from castsim.targets.vector_function import VectorFunctionTarget

LOAD, STORE = "vlds", "vsts"


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a body: `mnemonic`, the register that it makes ('' for a store), those it reads.

    `buffer` names the memory of a load or store.
    """

    mnemonic: str
    result: str
    sources: tuple[str, ...]
    buffer: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """`loops` loops after each other, a barrier `between` them ('' for none), of `trips` executions of `steps`.

    The compiler has put `unroll` executions into a trip of the hardware's loop; their instructions alternate. Lanes
    have `width` bits.
    """

    loops: int
    trips: int
    unroll: int
    steps: tuple[Step, ...]
    width: int = 32
    between: str = ""


def estimate_scope(body: Body, target: Target) -> int:
    """Return the cycles from launch to end.

    Raises:
        IllegalError: the target has no vector functions, or no latency of an instruction.
    """
    if not isinstance(target, VectorFunctionTarget):
        raise IllegalError(f"target '{target.name}' does not launch vector functions")
    scope = _scope(body, target.registers.register_bytes)
    check_scope(MicroFunction("estimate", scope, target.pipes.vector), target)
    return time_scope(scope, target).cycles


def _scope(body: Body, register_bytes: int) -> Scope:
    """Write the loops out; every buffer has room for the trips of one, behind those before."""
    scope = Scope()
    buffers = list(dict.fromkeys(step.buffer for step in body.steps if step.buffer))
    places = {name: number * register_bytes * body.trips for number, name in enumerate(buffers)}
    for loop in range(body.loops):
        if loop and body.between:
            scope.issue(Instruction("mem_bar", Kind.BARRIER, word=body.between))
        whole, rest = divmod(body.trips, body.unroll)
        for first, trips, copies in ((0, whole, body.unroll), (whole * body.unroll, rest, 1)):
            scope.begin_loop(trips)
            for trip in range(trips):
                _trip(scope, body, places, register_bytes, range(first + trip * copies, first + (trip + 1) * copies))
                scope.end_trip()
    return scope


def _trip(scope: Scope, body: Body, places: dict[str, int], register_bytes: int, numbers: range) -> None:
    names: list[dict[str, int]] = [{} for _ in numbers]
    for step, number, own in _alternating(body.steps, numbers, names):
        reads = [own[name] for name in step.sources if name in own]
        place = places.get(step.buffer, 0) + number * register_bytes
        made = scope.issue(_instruction(step, body.width, register_bytes), reads, int(bool(step.result)), place)
        own.update(zip((step.result,), made, strict=False))


def _alternating(
    steps: tuple[Step, ...], numbers: range, names: list[dict[str, int]]
) -> Iterator[tuple[Step, int, dict[str, int]]]:
    for step in steps:
        for number, own in zip(numbers, names, strict=True):
            yield step, number, own


def _instruction(step: Step, width: int, register_bytes: int) -> Instruction:
    kind = {LOAD: Kind.LOAD, STORE: Kind.STORE}.get(step.mnemonic, Kind.COMPUTE)
    return Instruction(step.mnemonic, kind, width, size=0 if kind is Kind.COMPUTE else register_bytes)
