"""The bundles that a program issues when it runs."""

from __future__ import annotations

from castsim.execution.tree import Block, Loop, Lowered, Node
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.tpc import TpcProgram
from castsim.machines.vliw.assembled import execute, ready
from castsim.targets.vliw import VliwTarget

_MOST_BUNDLES = 10**9
_MOST_WALK = 50_000


def executed_bundles(program: TpcProgram, file: str, target: VliwTarget) -> int | None:
    """Return how many bundles a program issues; None if data decides it, or if that takes too long to find out."""
    try:
        assembled = ready(program, file, target, {})
        ran = execute(assembled, {}, values=False, checked=False, max_bundles=_MOST_BUNDLES, max_walk=_MOST_WALK)
    except (CastsimError, EngineError):
        return None
    return _issued(ran.tree.root)


def _issued(node: Node) -> int:
    if isinstance(node, Lowered):
        return 1
    if isinstance(node, Loop):
        return node.trips * _issued(node.body)
    if isinstance(node, Block):
        return sum(map(_issued, node.items))
    return 0
