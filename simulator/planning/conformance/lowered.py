"""Every cast of a specification lowered to a target: a matrix, and the program of every cell that has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from castsim.execution.distribution import ALONE, Group, HandedTargets, Workers
from castsim.planning.conformance.cells import Cell, ConformanceEntry, request_of, settled
from castsim.planning.conformance.kept import entry_document, read_entry
from castsim.planning.conformance.matrix import Matrix, keeping, prepared, settle
from castsim.planning.lowering_answers import answer
from castsim.targets import Specification
from castsim.timing import ProgressCallback


@dataclass(frozen=True, slots=True)
class Extent:
    """Rows and columns of the tensor that programs convert, and the instructions of the longest chain."""

    rows: int = 16
    cols: int = 256
    steps: int = 4


_USUAL = Extent()


@dataclass(frozen=True, slots=True)
class Lowered:
    """The entry of a cell, the text of its program (None: there is none), and the suffix of a file that holds it."""

    entry: ConformanceEntry
    program: str | None
    suffix: str


@dataclass(frozen=True, slots=True)
class LoweredMatrix:
    """A matrix of one target, and what its cells were lowered to, cast by cast."""

    matrix: Matrix
    cells: tuple[Lowered, ...]


@dataclass(frozen=True, slots=True)
class Lowering:
    """Lowers cells of a specification's version; every verdict is proven where that is possible."""

    spec: Specification
    version: str
    options: Mapping[str, int | str]
    extent: Extent
    targets: HandedTargets

    def __call__(self, group: Group[Cell]) -> list[Lowered]:
        """Return what cells are lowered to; errors as `castsim.planning.lowering_answers.answer`."""
        return [self._lowered(cell) for cell in group.items]

    def _lowered(self, cell: Cell) -> Lowered:
        request = request_of(cell, self.spec, self.version, self.targets.get(cell.target))
        found = answer(replace(request, **asdict(self.extent)), options=self.options, explain=False)
        assembly = found.plan.assembly
        return Lowered(settled(cell, found), found.text, "" if assembly is None else assembly.suffix)


def lower_all(
    spec: Specification,
    target: str,
    *,
    version: str | None = None,
    options: Mapping[str, int | str] | None = None,
    extent: Extent = _USUAL,
    workers: Workers = ALONE,
    ledger: Path | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> LoweredMatrix:
    """Lower every cast of a specification to a target; arguments and errors otherwise as `conform`."""
    asked = prepared(spec, (target,), version, None, None, options or {})
    run = Lowering(asked.spec, asked.version, asked.options, extent, asked.handed(workers))
    kept = keeping(ledger, asked, {"shape of programs": repr(extent)}, _document, _read)
    found = settle(run, asked.cells, workers, kept, progress)
    cells = tuple(one.result for one in found)
    return LoweredMatrix(asked.matrix(tuple(each.entry for each in cells), tuple(one.origin for one in found)), cells)


def _document(one: Lowered) -> object:
    return [entry_document(one.entry), one.program, one.suffix]


def _read(_: int, held: object) -> Lowered:
    if not isinstance(held, list):
        raise TypeError(f"{held!r} is not a list")
    entry, program, suffix = held
    return Lowered(read_entry(entry), None if program is None else str(program), str(suffix))
