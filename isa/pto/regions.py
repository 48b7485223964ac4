"""The regions of operations: lists of operations that belong to another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from castsim.isa.pto.program import For, If, Operation, Section, While

REGION_FIELDS = ("body", "then_body", "else_body", "before", "after")
"""Names under which operations hold their regions."""


def regions_of(node: Operation) -> tuple[Sequence[Operation], ...]:
    """Return the regions of an operation, in the order of the text."""
    match node:
        case For() | Section():
            return (node.body,)
        case While():
            return node.before, node.after
        case If():
            return node.then_body, node.else_body
    return ()


def nodes(body: Sequence[Operation]) -> Iterator[Operation]:
    """Yield every operation of a region and of the regions in it, in the order of the text."""
    for node in body:
        yield node
        for region in regions_of(node):
            yield from nodes(region)
