"""Tiles that a program places by hand, moved apart after their sizes have changed."""

from __future__ import annotations

import re

from castsim.exploration.advice.text import TileText
from castsim.exploration.advice.tiles import tile_size
from castsim.isa import pto
from castsim.targets.dataflow import BLOCK_BYTES


def placed_anew(before: TileText, after: TileText) -> str | None:
    """Return a text with the addresses of its tiles moved apart as their sizes ask for, in the order they had.

    Tiles of one address stay at one. None where addresses are no constants of their own, or tiles overlapped otherwise.
    """
    old, new = _extents(before), _extents(after)
    if old is None or new is None:
        return None
    if old == new or not new:
        return after.text
    if old.keys() != new.keys():
        return None
    constants = before.constants()
    end = limit = 0
    places: dict[int, int] = {}
    for address in sorted({constants[name] for name in old}):
        names = [name for name in old if constants[name] == address]
        if address < limit:
            return None
        limit = address + max(old[name] for name in names)
        places[address] = end
        end = -(-(end + max(new[name] for name in names)) // BLOCK_BYTES) * BLOCK_BYTES
    edited = after.edited()
    for one in after.all():
        node = one.node
        if isinstance(node, pto.Constant) and node.result in new and isinstance(node.value, int):
            line = re.sub(r"constant\s+\d+", f"constant {places[node.value]}", after.lines[one.first])
            edited.instead[one.first] = (line,)
    return edited.text()


def _extents(text: TileText) -> dict[str, int] | None:
    """Return the bytes of the largest tile at each address, by the name of its constant; None if one is not."""
    found: dict[str, int] = {}
    constants = text.constants()
    for one in text.all():
        node = one.node
        if isinstance(node, pto.AllocTiles) and node.address is not None:
            return None
        if isinstance(node, pto.AllocTile) and node.address is not None:
            if node.address not in constants:
                return None
            found[node.address] = max(found.get(node.address, 0), tile_size(node.type))
    return found
