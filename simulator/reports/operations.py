"""Which vector operations of a program have no published cycles, and whose values are not claimed to be bit-exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from isa.formats import IntFormat, format_named
from isa.pto.vector_operations import VECTOR_OPERATIONS
from simulator.tree import Tree
from targets import Target
from targets.dataflow import DataflowTarget


@dataclass(frozen=True, slots=True)
class OperationNote:
    """One operation on one element type: `validated` tells that its cycles were compared with published ones.

    `approximate` is the reason for which its values are not claimed to be bit-exact, None if they are.
    """

    mnemonic: str
    element: str
    validated: bool
    approximate: str | None


def operation_notes(tree: Tree, target: Target) -> tuple[OperationNote, ...]:
    """Return a note per vector operation and element type of a program, sorted."""
    if not isinstance(target, DataflowTarget):
        return ()
    found = set()
    for instruction in tree.instructions:
        mnemonic, _, rest = instruction.text.partition(" ")
        if mnemonic in VECTOR_OPERATIONS:
            found.add((mnemonic, rest.partition(" ")[0]))
    return tuple(_note(target, mnemonic, element) for mnemonic, element in sorted(found))


def operation_entry(note: OperationNote) -> dict[str, Any]:
    """Return a note as JSON."""
    return {
        "op": note.mnemonic,
        "element": note.element,
        "validated": note.validated,
        "not_bit_exact": note.approximate,
    }


def operation_section(notes: tuple[OperationNote, ...]) -> Iterator[RenderableType]:
    """Yield what a reader must know of the operations: nothing, if all are validated and bit-exact."""
    doubtful = [f"{note.mnemonic} {note.element}" for note in notes if not note.validated]
    if doubtful:
        yield Text(f"cycles not validated (none published): {', '.join(doubtful)}")
    reasons: dict[str, list[str]] = {}
    for note in notes:
        if note.approximate is not None:
            reasons.setdefault(note.approximate, []).append(f"{note.mnemonic} {note.element}")
    for reason, operations in reasons.items():
        yield Text(f"values not bit-exact: {', '.join(operations)}: {reason}")


def _note(target: DataflowTarget, mnemonic: str, element: str) -> OperationNote:
    rule = target.tile_operation(mnemonic)
    assert rule is not None
    is_integer = isinstance(format_named(element), IntFormat)
    # Integer results are exact whatever the order; only divisions are not certain for them.
    doubtful = not is_integer or VECTOR_OPERATIONS[mnemonic].function == "div"
    return OperationNote(mnemonic, element, element in rule.validated, rule.approximate if doubtful else None)
