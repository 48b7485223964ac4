"""The other route of a cast: with or without a tmp tile, row by row where it ran as one loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from castsim.exploration.advice.buffering import TileText, fresh, indent, retype, tile_types, used
from castsim.exploration.advice.suggestion import Change
from castsim.isa import pto
from castsim.isa.pto.printer import operation_text
from castsim.isa.warning_text import WarningKind

OTHER_ROUTE = "other route of a cast"
_PADDING = 64
"""Elements: whole blocks of 32 bytes for every width."""


def other_routes(text: TileText) -> Iterator[Change]:
    """Yield the text with a tmp tile taken from one cast, or given to it, and with full tiles padded."""
    for one in text.all():
        node = one.node
        if not isinstance(node, pto.Tcvt):
            continue
        edited, margin = text.edited(), indent(text.lines[one.first])
        if node.tmp is not None:
            edited.replace(one, [margin + operation_text(replace(node, tmp=None, tmp_type=None))])
            yield Change(
                OTHER_ROUTE, f"cast without a tmp tile in line {one.number}", "the sequence with scratch has more steps",
                one.number, edited.text(), recasts=True, warns=frozenset({WarningKind.SCRATCH}),
            )  # fmt: skip
            continue
        tmp = fresh("tmp", set(used(text.lines)), "cast")
        kind = replace(node.src_type, valid_rows=node.src_type.rows, valid_cols=node.src_type.cols)
        made = f"{margin}%{tmp} = {operation_text(pto.AllocTile('tmp', kind)).partition(' = ')[2]}"
        changed = operation_text(replace(node, tmp=tmp, tmp_type=kind))
        edited.replace(one, [made, margin + changed])
        yield Change(
            OTHER_ROUTE, f"cast with a tmp tile in line {one.number}", "the sequence with scratch has fewer or cheaper steps",
            one.number, edited.text(), recasts=True,
        )  # fmt: skip
    yield from _padded(text)


def _padded(text: TileText) -> Iterator[Change]:
    types = tile_types(text)
    cast = [one for one in text.all() if isinstance(one.node, pto.Tcvt)]
    shapes = {
        (kind.rows, kind.cols)
        for one in cast
        if isinstance(one.node, pto.Tcvt)
        for kind in (types.get(one.node.src), types.get(one.node.dst))
        if kind is not None and kind.rows > 1 and kind.cols == kind.valid_cols and kind.block_layout == "row_major"
    }
    for rows, cols in sorted(shapes):
        edited = text.edited()

        def change(_: str, kind: pto.Type, shape: tuple[int, int] = (rows, cols)) -> pto.Type | None:
            if not isinstance(kind, pto.TileType) or (kind.rows, kind.cols) != shape or kind.cols != kind.valid_cols:
                return None
            return replace(kind, cols=kind.cols + _PADDING)

        if retype(text, edited, change):
            yield Change(
                OTHER_ROUTE, f"pad the tiles of {rows} x {cols} to {cols + _PADDING} columns, so that they are cast by rows",
                "the route of padded tiles takes fewer steps for these formats",
                cast[0].number, edited.text(), recasts=True,
            )  # fmt: skip
