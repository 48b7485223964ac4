"""The operands of an operation as what they stood for when it was walked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from castsim.execution.interpreter.places import TileHandle
from castsim.execution.interpreter.tile_parts import tile_of_values
from castsim.execution.tiles import Part, Tile
from castsim.isa.formats import Format
from castsim.isa.pto import program as pto


def named_operands(
    node: pto.Operation, environment: Mapping[str, object], element_bits: Callable[[Format], int]
) -> tuple[tuple[str, Tile | Part], ...]:
    """Return the tiles and parts of arguments that an operation names; pairs as two elements."""
    names: tuple[str | None, ...]
    match node:
        case pto.Tcvt():
            names = (node.src, node.dst, node.tmp)
        case pto.TileOperation():
            names = (*node.inputs, *node.outputs)
        case pto.ScalarAccess():
            names = (node.base,)
        case _:
            return ()
    found: list[tuple[str, Tile | Part]] = []
    for name in names:
        value = None if name is None else environment.get(name)
        if name is not None and isinstance(value, TileHandle):
            found.append((name, tile_of_values(value.tile, element_bits)))
        elif name is not None and isinstance(value, Part):
            found.append((name, value))
    return tuple(found)
