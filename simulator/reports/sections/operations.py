"""Which vector operations of a program have no published cycles, and whose values are not claimed to be bit-exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import RenderableType
from rich.text import Text

from castsim.execution.tree import Tree
from castsim.isa.formats import IntFormat, format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.reports.documents import Document, json_of, key
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.targets import Target, TileTarget
from castsim.targets.loader import measured_operation


@dataclass(frozen=True, slots=True)
class OperationNote:
    """One operation on one element type: `validated` tells that its cycles were compared with published ones.

    `approximate` is the reason for which its values are not claimed to be bit-exact, None if they are.
    """

    mnemonic: str = field(metadata=key("op"))
    element: str
    validated: bool
    approximate: str | None = field(metadata=key("not_bit_exact"))


def operation_notes(tree: Tree, target: Target) -> tuple[OperationNote, ...]:
    """Return a note per vector operation and element type of a program, sorted."""
    if not target.has_tiles:
        return ()
    found = set()
    for instruction in tree.instructions:
        if instruction.mnemonic in VECTOR_OPERATIONS and instruction.element is not None:
            found.add((instruction.mnemonic, instruction.element))
    return tuple(_note(target, mnemonic, element) for mnemonic, element in sorted(found))


def _data(report: RunReport) -> Document:
    notes = operation_notes(report.result.loaded.tree, report.result.loaded.target)
    return {"operations": json_of(notes)} if notes else {}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield what a reader must know of the operations: nothing, if all are validated and bit-exact."""
    del width
    notes = operation_notes(report.result.loaded.tree, report.result.loaded.target)
    doubtful = [f"{note.mnemonic} {note.element}" for note in notes if not note.validated]
    if doubtful:
        yield Text(f"cycles not validated (none published): {', '.join(doubtful)}")
    reasons: dict[str, list[str]] = {}
    for note in notes:
        if note.approximate is not None:
            reasons.setdefault(note.approximate, []).append(f"{note.mnemonic} {note.element}")
    for reason, operations in reasons.items():
        yield Text(f"values not bit-exact: {', '.join(operations)}: {reason}")


def _note(target: TileTarget, mnemonic: str, element: str) -> OperationNote:
    rule = target.tile_operation(mnemonic)
    assert rule is not None
    is_integer = isinstance(format_named(element), IntFormat)
    # Integer results are exact whatever the order; only divisions are not certain for them.
    doubtful = not is_integer or not VECTOR_OPERATIONS[mnemonic].integers_exact
    measured = measured_operation(target.name, mnemonic, element, element) is not None
    return OperationNote(
        mnemonic, element, measured or element in rule.validated, rule.approximate if doubtful else None
    )


SECTION = ReportSection(_text, _data)
