"""A function without the statement that an error is about, so that what else is wrong with it can be found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from castsim.isa import pto
from castsim.isa.errors import Span
from castsim.isa.pto.program import Condition, Operation, Return, Yield
from castsim.isa.pto.regions import REGION_FIELDS, nodes
from castsim.isa.pto.vector_operations import ALIASES


def without(function: pto.Function, place: Span) -> pto.Function | None:
    """Return a function without the statement at a place and those that use what it defines.

    None if there is no such statement, or the function cannot do without it.
    """
    body = function.body or ()
    at = (place.line, place.column)
    before = [node for node in nodes(body) if node.span.file == place.file and _start(node) <= at]
    if not before:
        return None
    removed: set[int] = {id(max(before, key=_start))}
    names: set[str] = set()
    while True:
        found = [node for node in nodes(body) if id(node) in removed or not names.isdisjoint(_names(node))]
        if any(isinstance(node, Return | Yield | Condition) for node in found):
            return None
        defined = {name for node in found for name in _defined(node)}
        if defined <= names and {id(node) for node in found} <= removed:
            return replace(function, body=_kept(body, removed))
        names |= defined
        removed |= {id(node) for node in found}


def _start(node: Operation) -> tuple[int, int]:
    return node.span.line, node.span.column


def _names(node: Operation) -> set[str]:
    """Return every text that a statement holds outside of its regions; names of values are among them."""
    found: set[str] = set()
    for each in fields(node):
        held = getattr(node, each.name)
        if isinstance(held, str):
            found.add(held)
        elif isinstance(held, tuple) and each.name not in REGION_FIELDS:
            found |= {one for one in held if isinstance(one, str)}
    return found


def _defined(node: Operation) -> set[str]:
    """Return the names that a statement makes visible behind itself."""
    if isinstance(node, pto.Tcvt):
        return {node.dst} if node.defines_dst else set()
    if isinstance(node, pto.ScalarAccess):
        return {node.value} if node.reads else set()
    if isinstance(node, pto.TileOperation):
        return set(node.outputs) if node.mnemonic in ALIASES else set()
    found = set(getattr(node, "results", ()))
    result = getattr(node, "result", None)
    return found | ({result} if isinstance(result, str) else set())


def _kept(body: Sequence[Operation], removed: set[int]) -> tuple[Operation, ...]:
    found = []
    for node in body:
        if id(node) in removed:
            continue
        changed = {region: _kept(getattr(node, region), removed) for region in REGION_FIELDS if hasattr(node, region)}
        found.append(replace(node, **changed) if changed else node)  # type: ignore[arg-type]  # regions of a node
    return tuple(found)
