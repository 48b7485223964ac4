"""Which lines belong to a line of a program: the bodies of its loops and sections."""

from __future__ import annotations

from collections.abc import Mapping

from castsim.isa import pto
from castsim.isa.errors import CastsimError
from castsim.isa.pto.regions import nodes
from castsim.machines.vliw.machine import VliwCore
from castsim.running.loaded import Loaded


def regions_of(loaded: Loaded, core: VliwCore | None) -> Mapping[int, int]:
    """Return, by the line that a loop, branch or section begins in, the last line of its body."""
    if core is not None:
        bundles = core.program.bundles
        return {bundles[loop.head].span.line: bundles[loop.end - 1].span.line for loop in core.structure.loops}
    try:
        parsed = pto.parse(loaded.source, loaded.file, go_past_refused=True)
    except CastsimError:  # the text as a whole: only the entry needs to be without errors
        return {}
    found: dict[int, int] = {}
    for function in parsed.functions:
        for node in nodes(function.body or ()):
            inner = [each.span.line for each in _inside(node)]
            if inner:
                found[node.span.line] = max(*inner, found.get(node.span.line, 0))
    return found


def _inside(node: pto.Operation) -> list[pto.Operation]:
    match node:
        case pto.For() | pto.Section():
            return list(nodes(node.body))
        case pto.While():
            return [*nodes(node.before), *nodes(node.after)]
        case pto.If():
            return [*nodes(node.then_body), *nodes(node.else_body)]
    return []
