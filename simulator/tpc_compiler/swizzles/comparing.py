"""A program and what it becomes without its lane moves, run on the same inputs and timed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from castsim.engines import simulate
from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.machines.vliw.assembled import Ran, assemble, execute
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.swizzles.elimination import Elimination, eliminate

_MAX_BUNDLES = 10**8
_DEFAULT_INPUT = "random:0"


@dataclass(frozen=True, slots=True)
class Compared:
    """Cycles before and after; `same_outputs` says of each output whether it is the same, bit by bit."""

    file: str
    target: VliwTarget
    elimination: Elimination
    cycles: tuple[int, int]
    same_outputs: Mapping[str, bool]

    @property
    def saved(self) -> int:
        """Cycles saved."""
        return self.cycles[0] - self.cycles[1]


def compared(
    source: str,
    file: str,
    target: VliwTarget,
    inputs: Mapping[str, Codes | str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Compared:
    """Rewrite a program and run it before and after.

    `inputs` are arrays or specifications by name; what is not given is `random:0`.

    Raises:
        ReadError, IllegalError, TileError: the program or an input is refused.
        IllegalError: the program reads early, so that the order of its instructions is not its meaning.
        EngineError: it does not end.
        LimitError: more of it is read or walked than `limits` let through.
    """
    assembled = assemble(source, file, target, {}, limits.max_statements)
    uses = assembled.arguments
    given = {name: _DEFAULT_INPUT for name, use in uses.items() if use.needs_input} | dict(inputs or {})
    before = execute(assembled, given, values=True, checked=True, max_bundles=_MAX_BUNDLES, max_walk=limits.computed)
    if before.stale_reads:
        first = before.stale_reads[0]
        message = f"{first.reader.text} reads {first.place} before its new value is there; its lanes cannot be followed"
        raise IllegalError(message, span=first.reader.span, legal=("a program without stale reads (castsim run)",))
    elimination = eliminate(assembled.program, target)
    changed = assemble(elimination.text, file, target, {})
    after = execute(changed, given, values=True, checked=True, max_bundles=_MAX_BUNDLES, max_walk=limits.computed)
    same = {name: _same(before, after, name) for name in before.outputs}
    if not all(same.values()) or after.stale_reads:
        raise IllegalError("the program written anew computes something else; please report it")
    return Compared(file, target, elimination, (_cycles(before, target), _cycles(after, target)), same)


def _same(before: Ran, after: Ran, name: str) -> bool:
    one, other = before.outputs[name], after.outputs[name]
    return np.array_equal(np.ascontiguousarray(one).view(np.uint8), np.ascontiguousarray(other).view(np.uint8))


def _cycles(ran: Ran, target: VliwTarget) -> int:
    return simulate(ran.tree, target).total
