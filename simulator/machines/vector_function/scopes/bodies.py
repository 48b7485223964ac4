"""The cycles of a body of vector instructions that stands in a published table, written out as a launch."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.execution.micro.bodies import LOAD, STORE, Body, Step
from castsim.machines.vector_function.scopes.operation import MicroFunction, check_scope, time_scope
from castsim.machines.vector_function.scopes.scope import Instruction as ScopeInstruction, Kind, Scope
from castsim.targets.vector_function import VectorFunctionTarget


def body_cycles(body: Body, target: VectorFunctionTarget) -> int:
    """Return the cycles of a body from launch to end.

    Raises:
        IllegalError: no latency of an instruction is known.
    """
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
            scope.issue(ScopeInstruction("mem_bar", Kind.BARRIER, word=body.between))
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


def _instruction(step: Step, width: int, register_bytes: int) -> ScopeInstruction:
    kind = {LOAD: Kind.LOAD, STORE: Kind.STORE}.get(step.mnemonic, Kind.COMPUTE)
    return ScopeInstruction(step.mnemonic, kind, width, size=0 if kind is Kind.COMPUTE else register_bytes)
