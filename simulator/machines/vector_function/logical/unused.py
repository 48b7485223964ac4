"""Instructions whose results nothing uses, and that do nothing else: taken out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from castsim.isa.pto import program as pto
from castsim.isa.pto.micro.nodes import MicroOperation

_PURE = frozenset(("vbitcast", "pbitcast", "vbr", "vci", "vshrs", "pset_b8", "pset_b16", "pset_b32"))
"""What lowering makes ahead of knowing whether it will be wanted."""


def without_unused(body: tuple[pto.Operation, ...]) -> tuple[pto.Operation, ...]:
    """Return a function's body without such instructions."""
    while True:
        used = Counter(_used(body))
        smaller = _kept(body, used)
        if smaller == body:
            return body
        body = smaller


def _kept(body: Sequence[pto.Operation], used: Counter[str]) -> tuple[pto.Operation, ...]:
    found: list[pto.Operation] = []
    for node in body:
        match node:
            case MicroOperation() if node.mnemonic in _PURE and not any(used[name] for name in node.results):
                continue
            case pto.For() | pto.Section():
                found.append(replace(node, body=_kept(node.body, used)))
            case pto.If():
                then_body, else_body = (_kept(region, used) for region in (node.then_body, node.else_body))
                found.append(replace(node, then_body=then_body, else_body=else_body))
            case _:
                found.append(node)
    return tuple(found)


def _used(body: Sequence[pto.Operation]) -> Iterator[str]:
    """Yield the names of values that vector instructions, loops and conditions use."""
    for node in body:
        match node:
            case MicroOperation():
                yield from node.operands
            case pto.Yield():
                yield from node.values
            case pto.For():
                yield from node.initial
                yield from _used(node.body)
            case pto.Section():
                yield from node.initial
                yield from _used(node.body)
            case pto.If():
                yield from _used(node.then_body)
                yield from _used(node.else_body)
