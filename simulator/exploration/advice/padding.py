"""Tiles whose rows are full: casts of contiguous tiles run as one loop, those of padded ones row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from castsim.exploration.advice.suggestion import Change
from castsim.exploration.advice.text import TileText
from castsim.exploration.advice.tiles import retype, row_aligned, tile_types
from castsim.isa import pto

KIND = "avoid padded tiles"


def changes(text: TileText) -> Iterator[Change]:
    """Yield the text with the padding of tiles left out: of all tiles, and of those of one shape."""
    padded = {kind for kind in tile_types(text).values() if _narrowed(kind) is not None}
    shapes = sorted({(kind.cols, kind.valid_cols or 0) for kind in padded})
    for chosen in ([shapes] if len(shapes) > 1 else []) + [[shape] for shape in shapes]:
        edited = text.edited()

        def change(_: str, kind: pto.Type, chosen: list[tuple[int, int]] = chosen) -> pto.Type | None:
            if not isinstance(kind, pto.TileType) or (kind.cols, kind.valid_cols) not in chosen:
                return None
            return _narrowed(kind)

        if retype(text, edited, change):
            words = ", ".join(f"{cols} columns to the {valid} that are valid" for cols, valid in chosen)
            line = min(_first(text, shape) for shape in chosen)
            yield Change(
                KIND, f"narrow the tiles from {words}",
                "a full tile is cast in one loop over all of its elements, a padded one row by row",
                line, edited.text(), recasts=True,
            )  # fmt: skip


def _narrowed(kind: pto.TileType) -> pto.TileType | None:
    """Return a padded tile without its padding; None if it has none, or its rows would not be whole blocks."""
    if kind.valid_cols is None or kind.valid_cols >= kind.cols or kind.valid_cols == 0:
        return None
    found = replace(kind, cols=kind.valid_cols)
    return found if row_aligned(found) else None


def _first(text: TileText, shape: tuple[int, int]) -> int:
    lines = [
        one.number
        for one in text.all()
        if isinstance(one.node, pto.AllocTile) and (one.node.type.cols, one.node.type.valid_cols) == shape
    ]
    return min(lines, default=1)
