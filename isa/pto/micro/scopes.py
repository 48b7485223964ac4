"""What may stand inside a vecscope and what outside (docs/reference/micro.md section 1.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from castsim.isa.errors import IllegalError
from castsim.isa.pto.micro.micro_forms import ROWS, Place
from castsim.isa.pto.program import (
    Barrier,
    CacheOperation,
    Function,
    Operation,
    ScalarAccess,
    Section,
    SetFlag,
    VmiOperation,
    WaitFlag,
    nodes,
    regions_of,
)
from castsim.isa.pto.value_types import MicroOperation

MICRO_ARCHITECTURE = "a5"
"""What programs of vector instructions are for (docs/reference/micro.md section 1.1)."""

SCOPES = ("vecscope", "strict_vecscope")
"""Kinds of sections that are one launch of a vector function."""

_SYNCHRONISATION: dict[type[Operation], str] = {
    SetFlag: "set_flag",
    WaitFlag: "wait_flag",
    Barrier: "barrier",
    CacheOperation: "a fence",
}


def check_scopes(body: Sequence[Operation], *, inside: bool = False) -> None:
    """Reject vector operations outside of vecscopes, and what reaches other pipes or global memory inside.

    Raises:
        IllegalError: one stands there.
    """
    for node in body:
        if isinstance(node, MicroOperation):
            place = ROWS[node.mnemonic].place
            if place is (Place.OUTSIDE if inside else Place.SCOPE):
                _refuse(node, f"pto.{node.mnemonic}", inside=inside)
        elif isinstance(node, VmiOperation):
            if not inside:
                _refuse(node, f"pto.vmi.{node.mnemonic}", inside=False)
        elif inside and type(node) in _SYNCHRONISATION:
            _refuse(node, _SYNCHRONISATION[type(node)], inside=True)
        elif inside and isinstance(node, ScalarAccess) and getattr(node.base_type, "space", None) != "ub":
            _refuse(node, f"pto.{node.mnemonic} of global memory", inside=True)
        elif isinstance(node, Section):
            check_scopes(node.body, inside=inside or node.kind in SCOPES)
        else:
            for region in regions_of(node):
                check_scopes(region, inside=inside)


def _refuse(node: Operation, what: str, *, inside: bool) -> None:
    where = "inside" if inside else "outside"
    legal = ("after the vecscope",) if inside else ("pto.vecscope { ... }",)
    raise IllegalError(f"{what} is not allowed {where} a vecscope", span=node.span, legal=legal)


def micro_operations(body: Sequence[Operation]) -> Iterator[MicroOperation]:
    """Yield the micro operations of a region and of the regions in it."""
    yield from (node for node in nodes(body) if isinstance(node, MicroOperation))


def logical_operations(body: Sequence[Operation]) -> Iterator[VmiOperation]:
    """Yield the operations on logical registers of a region and of the regions in it."""
    yield from (node for node in nodes(body) if isinstance(node, VmiOperation))


def is_micro(function: Function) -> bool:
    """Whether a function is one of vector instructions."""
    body = function.body or ()
    return next(micro_operations(body), None) is not None or has_logical_registers(function)


def has_logical_registers(function: Function) -> bool:
    """Whether a function has operations on logical registers."""
    return next(logical_operations(function.body or ()), None) is not None
