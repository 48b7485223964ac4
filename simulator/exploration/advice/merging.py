"""Casts of single rows of a tile made one cast of the whole tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from castsim.exploration.advice.buffering import Statement, TileText, indent, read_by, trips_of, used, written_by
from castsim.exploration.advice.suggestion import Change
from castsim.isa import pto
from castsim.isa.pto.printer import operation_text

MERGING = "merge rows"


@dataclass(frozen=True, slots=True)
class _Row:
    """A cast of a part of a tile to a part of another, and the statements that make the parts."""

    cast: Statement
    source: pto.Subview
    destination: pto.Subview


def merged_rows(text: TileText) -> Iterator[Change]:
    """Yield the text with rows that a loop, or a run of statements, casts one by one cast at once."""
    constants = text.constants()
    for one in text.all():
        if isinstance(one.node, pto.For) and not one.node.carried:
            row = _row_of(one.body)
            trips = trips_of(one.node, constants)
            if row and trips and _covers_by_loop(row, one.node, trips, constants):
                yield _merged(text, row, [one], f"the {trips} rows that the loop of line {one.number} casts one by one")
    yield from _of_runs(text, constants)


def _row_of(body: Sequence[Statement]) -> _Row | None:
    """Return the one cast of a body that does nothing else; None if it does."""
    parts = {one.node.result: one.node for one in body if isinstance(one.node, pto.Subview)}
    casts = [one for one in body if isinstance(one.node, pto.Tcvt)]
    plain = all(isinstance(one.node, pto.Subview | pto.Tcvt | pto.Yield) for one in body)
    if len(casts) != 1 or not plain:
        return None
    return _row(casts[0], parts)


def _row(cast: Statement, parts: Mapping[str, pto.Subview]) -> _Row | None:
    node = cast.node
    if not isinstance(node, pto.Tcvt) or node.tmp is not None or not {node.src, node.dst} <= parts.keys():
        return None
    source, destination = parts[node.src], parts[node.dst]
    return None if source.valid or destination.valid else _Row(cast, source, destination)


def _covers_by_loop(row: _Row, loop: pto.For, trips: int, constants: Mapping[str, int]) -> bool:
    for part in (row.source, row.destination):
        across = constants.get(part.offsets[1])
        starts = (constants.get(loop.lower), constants.get(loop.step))
        if part.offsets[0] != loop.variable or across != 0 or starts != (0, part.type.rows):
            return False
        whole = part.source_type
        if (trips * part.type.rows, part.type.cols) != (whole.rows, whole.cols) or not _full(whole):
            return False
    return True


def _full(kind: pto.TileType) -> bool:
    return (kind.rows, kind.cols) == (kind.valid_rows, kind.valid_cols)


def _of_runs(text: TileText, constants: Mapping[str, int]) -> Iterator[Change]:
    """Yield statements one behind the other merged where their casts are all the rows of two tiles."""
    parts = {one.node.result: one.node for one in text.all() if isinstance(one.node, pto.Subview)}
    groups: dict[object, list[_Row]] = {}
    for one in text.all():
        row = _row(one, parts)
        if row is not None and isinstance(one.node, pto.Tcvt):
            key = (one.path, row.source.source, row.destination.source, one.node.rounding, one.node.saturation)
            groups.setdefault(tuple(map(str, key)), []).append(row)
    for rows in groups.values():
        if len(rows) > 1 and all(_covers(rows, constants, far) for far in (False, True)):
            yield _merged(text, rows[-1], [row.cast for row in rows], f"the rows of {len(rows)} casts")


def _covers(rows: Sequence[_Row], constants: Mapping[str, int], far: bool) -> bool:
    parts = [row.destination if far else row.source for row in rows]
    starts = sorted(constants.get(part.offsets[0], -1) for part in parts)
    whole, height = parts[0].source_type, parts[0].type.rows
    across = all(constants.get(part.offsets[1]) == 0 and part.type.cols == whole.cols for part in parts)
    same = all(part.type.rows == height for part in parts)
    return across and same and _full(whole) and starts == list(range(0, whole.rows, height))


def _merged(text: TileText, row: _Row, instead: Sequence[Statement], words: str) -> Change:
    node, edited, last = row.cast.node, text.edited(), instead[-1]
    assert isinstance(node, pto.Tcvt)
    whole = replace(
        node, src=row.source.source, src_type=row.source.source_type, dst=row.destination.source,
        dst_type=row.destination.source_type,
    )  # fmt: skip
    gone = {name for one in instead for name in (*read_by(one.node), *written_by(one.node))}
    for one in text.all():
        if isinstance(one.node, pto.Subview) and one.node.result in gone and _only_in(text, one.node.result, instead):
            edited.remove(one)
    for one in instead:
        edited.remove(one)
    edited.replace(last, [indent(text.lines[last.first]) + operation_text(whole)])
    return Change(
        MERGING, f"cast at once {words}: %{row.source.source} to %{row.destination.source}",
        "a cast of a whole tile starts once, not once per row", instead[0].number, edited.text(),
    )  # fmt: skip


def _only_in(text: TileText, name: str, statements: Sequence[Statement]) -> bool:
    """Whether nothing but these statements, and its definition, names a value."""
    lines = {number for one in statements for number in range(one.first, one.last + 1)}
    other = [line for number, line in enumerate(text.lines) if number not in lines]
    return sum(name in used([line]) for line in other) == 1
