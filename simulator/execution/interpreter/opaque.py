"""Operations of which only the pipe and the bytes are known: the matrix unit's, those between cores, and what a run
takes for such.

A placeholder stands in for their time. What they write is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from castsim.execution.interpreter.dependence import Scalar
from castsim.execution.interpreter.labels import Label
from castsim.execution.interpreter.lowerer import LoweredInstruction, Lowerer
from castsim.execution.interpreter.places import TileHandle
from castsim.execution.interpreter.tile_operations import (
    SUPPORTED,
    alias_tile,
    foreign_tile,
    is_foreign,
    is_matrix_work,
)
from castsim.execution.tiles import Part, Tile
from castsim.execution.tree import Block, Role
from castsim.isa.errors import ReadError
from castsim.isa.formats import format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.regions import nodes
from castsim.isa.pto.spelling import closest
from castsim.isa.pto.vector_operations import ALIASES, text_name
from castsim.isa.warning_text import WarningKind, WarningText

Opaque = pto.Tcvt | pto.TileOperation | pto.ForeignOperation
Cycles = Mapping[str, int]
"""What operations are taken for, by their names without `pto.`; those that are not named, for nothing."""


def name_of(node: Opaque) -> str:
    """Return the name of an operation without its dialect."""
    return "tcvt" if isinstance(node, pto.Tcvt) else node.mnemonic


def is_opaque(node: pto.Operation, named: Cycles) -> TypeGuard[Opaque]:
    """Whether an operation is opaque: by what it is, or because it is not modelled and `named`."""
    if isinstance(node, pto.ForeignOperation):
        return True
    if isinstance(node, pto.Tcvt):
        return is_matrix_work(node)
    if not isinstance(node, pto.TileOperation):
        return False
    return is_matrix_work(node) or (text_name(node.mnemonic) not in SUPPORTED and node.mnemonic in named)


def check_named(body: Sequence[pto.Operation], named: Cycles) -> None:
    """Refuse names that are no opaque operation of a program.

    Raises:
        ReadError: there is one.
    """
    if not named:
        return
    found = {name_of(node) for node in nodes(body) if is_opaque(node, named)}
    for name in named:
        if name not in found:
            used = {node.mnemonic for node in nodes(body) if isinstance(node, pto.TileOperation)}
            why = "is modelled" if name in used else "does not occur in the program"
            near = closest(name, sorted(found)) or sorted(found)
            raise ReadError(f"--opaque {name}: pto.{name} {why}", legal=[f"--opaque {each}=CYCLES" for each in near])


@dataclass(slots=True)
class OpaqueWork:
    """The opaque operations of one walk; `cycles` is what they are taken for."""

    lowerer: Lowerer
    cycles: Cycles
    _popped: dict[tuple[int, str], Tile] = field(default_factory=dict)
    """Tiles that came from another core, by what gave them: they lie at the end of the buffer."""

    def lower(self, node: Opaque, values: Mapping[str, object]) -> tuple[Label, LoweredInstruction]:
        """Return what reports call an operation, and what stands in for it."""
        name = name_of(node)
        cycles = self.cycles.get(name, 0)
        reads, writes = (list(_places(names, values)) for names in _ends(node))
        if isinstance(node, pto.ForeignOperation):
            writes = [tile for (key, _), tile in self._popped.items() if key == id(node)]
        taken = f"it is taken for {cycles} cycles" if cycles else "no cycles are counted for it"
        warning = WarningText(WarningKind.UNTIMED, f"pto.{name} {_reason(node)}: opaque, {taken}")
        lowered = LoweredInstruction(Block(()))
        if name not in ALIASES:
            lowered = self.lowerer.opaque(node, cycles, reads, writes)
        return Label(f"{name} opaque", name, Role.OPAQUE), replace(lowered, warnings=(warning,))

    def alias(self, node: pto.TileOperation, source: Tile) -> Tile:
        """Return the tile of another type that a treshape or bitcast makes of one of the matrix unit."""
        (kind,) = node.output_types
        assert isinstance(kind, pto.TileType)
        if kind.location != "vec":
            return foreign_tile(node.outputs[0], kind, kind.valid_rows or 0, kind.valid_cols or 0)
        return alias_tile(node, source, self.lowerer.element_bits)

    def results(
        self, node: pto.ForeignOperation, unknown: Callable[[pto.ForeignOperation, str], Scalar]
    ) -> Iterator[tuple[str, Scalar | TileHandle]]:
        """Yield the results of an operation between cores: tiles get bytes, scalars are `unknown`."""
        for name, kind in zip(node.results, node.result_types, strict=True):
            tile = TileHandle(self._place(node, name, kind)) if isinstance(kind, pto.TileType) else None
            yield name, tile or unknown(node, name)

    def _place(self, node: pto.ForeignOperation, name: str, kind: pto.TileType) -> Tile:
        known = self._popped.get((id(node), name))
        if known is not None:
            return known
        rows, cols = (
            whole if extent is None else extent
            for whole, extent in ((kind.rows, kind.valid_rows), (kind.cols, kind.valid_cols))
        )
        if kind.location != "vec":
            return foreign_tile(name, kind, rows, cols)
        fmt = format_named(kind.element)
        bits = self.lowerer.element_bits(fmt)
        _, capacity, alignment = self.lowerer.buffer()
        end = min((tile.address for tile in self._popped.values()), default=capacity)
        size = kind.rows * kind.cols * bits // 8
        address = max(0, (end - size) // alignment * alignment)
        tile = self._popped[id(node), name] = Tile(name, fmt, kind, address, rows, cols, bits)
        if not is_foreign(kind):
            self.lowerer.check_tile(tile, node.span)
        return tile


def _reason(node: Opaque) -> str:
    if isinstance(node, pto.ForeignOperation):
        return "belongs to several cores"
    return "belongs to the matrix unit" if is_matrix_work(node) else "is not modelled"


def _ends(node: Opaque) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names that an operation reads and those that it writes."""
    if isinstance(node, pto.ForeignOperation):
        return node.operands, ()
    if isinstance(node, pto.Tcvt):
        return (node.src,), (node.dst, *([node.tmp] if node.tmp is not None else []))
    return node.inputs, () if node.mnemonic in ALIASES else node.outputs


def _places(names: Sequence[str], values: Mapping[str, object]) -> Iterator[Tile | Part]:
    """Yield the tiles of the vector unit's buffer and the parts of arguments behind names."""
    for name in names:
        value = values.get(name)
        if isinstance(value, Part):
            yield value
        elif isinstance(value, TileHandle) and value.tile.type.location == "vec":
            yield value.tile
