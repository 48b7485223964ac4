"""Kinds of changes to the text of a tile program that may save cycles and keep its outputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import WarningKind
from castsim.isa.formats import Saturation
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import RoundMode
from castsim.isa.pto.types import ELEMENTS
from castsim.running.program_edits import Edited, TextOperation, TileText, each_of, indent
from castsim.tools.advise.suggestions import (
    ProposedChange,
    defined,
    first_free,
    fresh,
    read_by,
    renamed,
    retype,
    tile_size,
    tile_types,
    used,
    written_by,
)

# Barriers and flags that order nothing: what the rest orders already, or what needs no order.

DROPPING = "drop synchronisation"

Clean = Callable[[str], bool]


def without_synchronisation(text: TileText, clean: Clean) -> Iterator[ProposedChange]:
    """Yield the text without each unnecessary barrier and flag; `clean` tells whether a text is free of races."""
    dropped: list[TextOperation] = []
    for group in _groups(text):
        if clean(_without(text, [*dropped, *group])):
            dropped += group
    if dropped:
        lines = ", ".join(str(statement.number) for statement in sorted(dropped, key=lambda statement: statement.first))
        many = "s" * (len(dropped) > 1)
        yield ProposedChange(
            DROPPING, f"drop the {len(dropped)} flag{many} or barrier{many} of line{many} {lines}",
            "the operations are ordered without them, or access no common bytes",
            min(operation.number for operation in dropped), _without(text, dropped),
        )  # fmt: skip


def _groups(text: TileText) -> Iterator[list[TextOperation]]:
    """Yield groups that can be dropped together: a barrier; the signals and waits of one pair of pipes and event."""
    pairs: dict[object, list[TextOperation]] = {}
    last = _closing(text)
    for statement in text.all():
        node = statement.node
        if isinstance(node, pto.Barrier):
            if statement.first != last:
                yield [statement]
        elif isinstance(node, pto.SetFlag | pto.WaitFlag):
            key = (node.src, node.dst, node.event, node.number)
            pairs.setdefault(key, []).append(statement)
    yield from pairs.values()
    for group in pairs.values():  # a single signal with its wait, the nearest behind it
        sets = [operation for operation in group if isinstance(operation.node, pto.SetFlag)]
        for setter in sets:
            behind = [wait for wait in group if isinstance(wait.node, pto.WaitFlag) and wait.first > setter.first]
            if behind and len(sets) > 1:
                yield [setter, behind[0]]


def _without(text: TileText, dropped: list[TextOperation]) -> str:
    edited = text.edited()
    for statement in dropped:
        edited.remove(statement)
    return edited.text()


def _closing(text: TileText) -> int | None:
    """Return the line of the barrier on all pipes that ends the kernel, as the vendor's tool writes it: it stays."""
    ends = [statement for statement in text.statements if not isinstance(statement.node, pto.Return)]
    node = ends[-1].node if ends else None
    return ends[-1].first if isinstance(node, pto.Barrier) and node.pipe is pto.Pipe.ALL else None


# Loads that fetch the same bytes in every trip of a loop, moved before it.

HOISTING = "hoist loads"

_MOVABLE = (pto.Constant, pto.Arith, pto.Convert, pto.Compare, pto.MakeView, pto.PartitionView, pto.AllocTile)


def hoisted_loads(text: TileText) -> Iterator[ProposedChange]:
    """Yield the text with the invariant loads of each loop moved before it."""
    if text.has(pto.SetFlag, pto.WaitFlag, pto.Barrier):
        return
    for loop in text.all():
        if not isinstance(loop.node, pto.For):
            continue
        moved = _invariant(text, loop)
        loads = [statement for statement in moved if isinstance(statement.node, pto.TileOperation)]
        if not loads:
            continue
        edited, margin = text.edited(), indent(text.lines[loop.first])
        lines = []
        for statement in moved:
            lines += [margin + line.strip() for line in text.written(statement)]
            edited.remove(statement)
        edited.insert(loop.first, lines)
        names = ", ".join(f"%{load.node.outputs[0]}" for load in loads if isinstance(load.node, pto.TileOperation))
        yield ProposedChange(
            HOISTING, f"load {names} once, before the loop of line {loop.number}",
            "the loop changes neither the loaded data nor its tile",
            loop.number, edited.text(),
        )  # fmt: skip


def _invariant(text: TileText, loop: TextOperation) -> list[TextOperation]:
    """Return the loads whose operands the loop does not change, and the statements that these need, in order."""
    varying = defined(text.lines[loop.first : loop.last + 1])
    writes = [name for statement in each_of(loop.body) for name in written_by(statement.node)]
    still: list[TextOperation] = []
    for statement in loop.body:
        node, lines = statement.node, text.written(statement)
        free = not (used(lines) - defined(lines)) & varying
        if isinstance(node, _MOVABLE) and free:
            still.append(statement)
            varying -= defined(lines)
        elif free and _is_only_load(node, writes):
            still.append(statement)
    needed: set[str] = set()
    kept = []
    for operation in reversed(still):
        lines = text.written(operation)
        if isinstance(operation.node, pto.TileOperation) or defined(lines) & needed:
            needed |= used(lines)
            kept.append(operation)
    return kept[::-1]


def _is_only_load(node: pto.Operation, writes: list[str]) -> bool:
    """Return whether a load is the only writer of its tile; `writes` are the tiles that the loop writes."""
    return isinstance(node, pto.TileOperation) and node.mnemonic == "tload" and writes.count(node.outputs[0]) == 1


# The other route of a cast: with or without a tmp tile, row by row where it ran as one loop.

OTHER_ROUTE = "other route of a cast"
_PADDING = 64
"""Number of elements in whole blocks of 32 bytes for every width."""


_Cast = tuple[TextOperation, pto.Tcvt]


def _casts(text: TileText) -> Iterator[_Cast]:
    for statement in text.all():
        if isinstance(statement.node, pto.Tcvt):
            yield statement, statement.node


def other_routes(text: TileText) -> Iterator[ProposedChange]:
    """Yield the text with a tmp tile added to or removed from one cast, and with full tiles padded."""
    for statement, node in _casts(text):
        edited = text.edited()
        if node.tmp is not None:
            edited.rewrite(statement, replace(node, tmp=None, tmp_type=None))
            yield ProposedChange(
                OTHER_ROUTE,
                f"cast without a tmp tile in line {statement.number}", "the sequence with scratch has more steps",
                statement.number, edited.text(), recasts=True, warns=frozenset({WarningKind.SCRATCH}),
            )  # fmt: skip
            continue
        tmp = fresh("tmp", set(used(text.lines)), "cast")
        kind = replace(node.src_type, valid_rows=node.src_type.rows, valid_cols=node.src_type.cols)
        edited.rewrite(statement, pto.AllocTile(tmp, kind), replace(node, tmp=tmp, tmp_type=kind))
        yield ProposedChange(
            OTHER_ROUTE,
            f"cast with a tmp tile in line {statement.number}", "the sequence with scratch has fewer or cheaper steps",
            statement.number, edited.text(), recasts=True,
        )  # fmt: skip
    yield from _padded(text)


def _padded(text: TileText) -> Iterator[ProposedChange]:
    types = tile_types(text)
    casts = list(_casts(text))
    shapes = {
        (kind.rows, kind.cols)
        for _, node in casts
        for kind in (types.get(node.src), types.get(node.dst))
        if kind is not None and kind.rows > 1 and kind.cols == kind.valid_cols and kind.block_layout == "row_major"
    }
    for rows, cols in sorted(shapes):
        edited = text.edited()

        def change(_: str, kind: pto.Type, shape: tuple[int, int] = (rows, cols)) -> pto.Type | None:
            if not isinstance(kind, pto.TileType) or (kind.rows, kind.cols) != shape or kind.cols != kind.valid_cols:
                return None
            return replace(kind, cols=kind.cols + _PADDING)

        if retype(text, edited, change):
            yield ProposedChange(
                OTHER_ROUTE,
                f"pad the tiles of {rows} x {cols} to {cols + _PADDING} columns, so that they are cast by rows",
                "the route of padded tiles takes fewer steps for these formats",
                casts[0][0].number, edited.text(), recasts=True,
            )  # fmt: skip


# Chains of casts through other formats, or in fewer steps, that give the same bits.

CHEAPER_CHAIN = "cheaper chain of casts"
_MODES = (RoundMode.RINT, RoundMode.ROUND, RoundMode.FLOOR, RoundMode.CEIL, RoundMode.TRUNC)

Casts = Mapping[str, frozenset[str]]
"""The formats that a target casts to, by source format."""


def cheaper_chains(text: TileText, casts: Casts) -> Iterator[ProposedChange]:
    """Yield the text with two successive casts merged, or taken through another format."""
    if text.has(pto.SetFlag, pto.WaitFlag):
        return
    for pair in _pairs(text):
        (_, first_node), (_, second_node) = pair
        src, middle, dst = first_node.src_type.element, first_node.dst_type.element, second_node.dst_type.element
        if dst in casts.get(src, ()) or src == dst:
            yield from _direct(text, *pair)
        for other in sorted(casts.get(src, frozenset()) - {middle, src}):
            if dst in casts.get(other, ()) and other in ELEMENTS.values():
                yield from _through(text, *pair, other)


def _pairs(text: TileText) -> Iterator[tuple[_Cast, _Cast]]:
    """Yield pairs of casts of which only the second reads the first one's result."""
    for statement, node in _casts(text):
        readers = [candidate for candidate in text.all() if node.dst in read_by(candidate.node)]
        reader = readers[0] if len(readers) == 1 and readers[0].path == statement.path else None
        behind = reader is not None and reader.first > statement.first
        if reader is not None and behind and isinstance(reader.node, pto.Tcvt) and reader.node.src == node.dst:
            yield (statement, node), (reader, reader.node)


def _direct(text: TileText, first_cast: _Cast, second_cast: _Cast) -> Iterator[ProposedChange]:
    (first, first_node), (second, second_node) = first_cast, second_cast
    path = f"{first_node.src_type.element} -> {second_node.dst_type.element}"
    for mode in dict.fromkeys((first_node.rounding, second_node.rounding, *_MODES)):
        for saturation in tuple(dict.fromkeys((second_node.saturation, Saturation.ON, Saturation.OFF))):
            node = replace(
                second_node, src=first_node.src, src_type=first_node.src_type, rounding=mode, saturation=saturation
            )
            edited = text.edited()
            edited.remove(first)
            edited.rewrite(second, node)
            word = "" if mode is None else f" with {mode.name}"
            yield ProposedChange(
                CHEAPER_CHAIN,
                f"cast {path} in one step{word} in line {second.number}, not by {first_node.dst_type.element}",
                "one step less gives the same bits", first.number, edited.text(), recasts=True,
            )  # fmt: skip


def _through(text: TileText, first_cast: _Cast, second_cast: _Cast, other: str) -> Iterator[ProposedChange]:
    (first, first_node), (second, second_node) = first_cast, second_cast
    tile, uses = (
        first_node.dst,
        [user for user in text.all() if not user.body and first_node.dst in used(text.written(user))],
    )
    path = f"{first_node.src_type.element} -> {other} -> {second_node.dst_type.element}"
    for before in dict.fromkeys((first_node.rounding, second_node.rounding, RoundMode.RINT, RoundMode.TRUNC)):
        for after in dict.fromkeys((second_node.rounding, RoundMode.RINT)):
            edited = text.edited()

            def change(name: str, kind: pto.Type) -> pto.Type | None:
                return replace(kind, element=other) if name == tile and isinstance(kind, pto.TileType) else None

            kind = replace(first_node.dst_type, element=other)
            if not retype(text, edited, change, uses):
                return
            edited.rewrite(first, replace(first_node, dst_type=kind, rounding=before))
            edited.rewrite(second, replace(second_node, src_type=kind, rounding=after))
            yield ProposedChange(
                CHEAPER_CHAIN,
                f"cast {path} in lines {first.number} and {second.number}, not by {first_node.dst_type.element}",
                "these steps are cheaper and give the same bits", first.number, edited.text(), recasts=True,
            )  # fmt: skip


# Casts of single rows of a tile made one cast of the whole tile.

MERGING = "merge rows"


@dataclass(frozen=True, slots=True)
class _Row:
    """A cast between parts of two tiles, and the statements that create the parts."""

    cast: TextOperation
    source: pto.Subview
    destination: pto.Subview


def merged_rows(text: TileText) -> Iterator[ProposedChange]:
    """Yield the text with casts of single rows, in a loop or a run of statements, merged into one cast."""
    constants = text.constants()
    for statement in text.all():
        if isinstance(statement.node, pto.For) and not statement.node.carried:
            row, loop = _row_of(statement.body), statement.node
            trips = trips_of(loop, constants)
            if (
                row
                and trips
                and all(_covers_by_loop(part, loop, trips, constants) for part in (row.source, row.destination))
            ):
                yield _merged(
                    text,
                    row,
                    [statement],
                    f"the {trips} rows that the loop of line {statement.number} casts one by one",
                )
    yield from _of_runs(text, constants)


def _row_of(body: Sequence[TextOperation]) -> _Row | None:
    """Return the cast of a body that does nothing else; None if there is other work."""
    parts = {statement.node.result: statement.node for statement in body if isinstance(statement.node, pto.Subview)}
    casts = [statement for statement in body if isinstance(statement.node, pto.Tcvt)]
    plain = all(isinstance(statement.node, pto.Subview | pto.Tcvt | pto.Yield) for statement in body)
    if len(casts) != 1 or not plain:
        return None
    return _row(casts[0], parts)


def _row(cast: TextOperation, parts: Mapping[str, pto.Subview]) -> _Row | None:
    node = cast.node
    if not isinstance(node, pto.Tcvt) or node.tmp is not None or not {node.src, node.dst} <= parts.keys():
        return None
    source, destination = parts[node.src], parts[node.dst]
    return None if source.valid or destination.valid else _Row(cast, source, destination)


def _covers_by_loop(part: pto.Subview, loop: pto.For, trips: int, constants: Mapping[str, int]) -> bool:
    step = constants[loop.step]
    starts = range(constants[loop.lower], constants[loop.lower] + trips * step, step)
    return part.offsets[0] == loop.variable and step == part.type.rows and _covers([part], constants, starts)


def _covers(parts: Sequence[pto.Subview], constants: Mapping[str, int], starts: Iterable[int] | None = None) -> bool:
    """Return whether parts are all rows of their tile; `starts` are the positions where a loop moves a part."""
    if starts is None:
        starts = sorted(constants.get(part.offsets[0], -1) for part in parts)
    whole, height = parts[0].source_type, parts[0].type.rows
    across = all(constants.get(part.offsets[1]) == 0 and part.type.cols == whole.cols for part in parts)
    same = all(part.type.rows == height for part in parts)
    full = (whole.rows, whole.cols) == (whole.valid_rows, whole.valid_cols)
    return across and same and full and list(starts) == list(range(0, whole.rows, height))


def _of_runs(text: TileText, constants: Mapping[str, int]) -> Iterator[ProposedChange]:
    """Yield statements in a row merged if their casts are all the rows of two tiles."""
    parts = {
        statement.node.result: statement.node for statement in text.all() if isinstance(statement.node, pto.Subview)
    }
    groups: dict[object, list[_Row]] = {}
    for statement in text.all():
        row = _row(statement, parts)
        if row is not None and isinstance(statement.node, pto.Tcvt):
            key = (
                statement.path,
                row.source.source,
                row.destination.source,
                statement.node.rounding,
                statement.node.saturation,
            )
            groups.setdefault(tuple(map(str, key)), []).append(row)
    for rows in groups.values():
        sides = [row.source for row in rows], [row.destination for row in rows]
        if len(rows) > 1 and all(_covers(parts, constants) for parts in sides):
            yield _merged(text, rows[-1], [row.cast for row in rows], f"the rows of {len(rows)} casts")


def _merged(text: TileText, row: _Row, instead: Sequence[TextOperation], words: str) -> ProposedChange:
    node, edited, last = row.cast.node, text.edited(), instead[-1]
    assert isinstance(node, pto.Tcvt)
    whole = replace(
        node, src=row.source.source, src_type=row.source.source_type, dst=row.destination.source,
        dst_type=row.destination.source_type,
    )  # fmt: skip
    gone = {name for statement in instead for name in (*read_by(statement.node), *written_by(statement.node))}
    for statement in text.all():
        if (
            isinstance(statement.node, pto.Subview)
            and statement.node.result in gone
            and _only_in(text, statement.node.result, instead)
        ):
            edited.remove(statement)
    for operation in instead:
        edited.remove(operation)
    edited.rewrite(last, whole)
    return ProposedChange(
        MERGING, f"cast at once {words}: %{row.source.source} to %{row.destination.source}",
        "a cast of a whole tile starts once, not once per row", instead[0].number, edited.text(),
    )  # fmt: skip


def _only_in(text: TileText, name: str, statements: Sequence[TextOperation]) -> bool:
    """Return whether only these statements, and its definition, use a value."""
    lines = {number for statement in statements for number in range(statement.first, statement.last + 1)}
    other = [line for number, line in enumerate(text.lines) if number not in lines]
    return sum(name in used([line]) for line in other) == 1


# A second set of tiles for a loop, so that it loads the next part while it works on this one.
#
# The body is written twice, the second time for the next trip and on tiles of its own. Where the number of trips may be
# odd, the second half stands behind a comparison.

BUFFERING = "double-buffer"


def double_buffered(text: TileText) -> Iterator[ProposedChange]:
    """Yield each innermost loop with two or four sets of its tiles: of the transferred ones, and of all its own."""
    if text.has(pto.SetFlag, pto.WaitFlag):
        return  # events would have to be told apart as well
    for statement in text.all():
        if (
            not isinstance(statement.node, pto.For)
            or statement.node.carried
            or any(inner.body for inner in statement.body)
        ):
            continue
        trips = trips_of(statement.node, text.constants())
        own = _own_tiles(text, statement)
        moved = [name for name in own if _is_transferred(statement, name)]
        for copies in (2, 4):
            if trips is not None and trips < copies:
                continue
            if copies > 2 and (trips is None or trips % copies):
                continue
            for tiles, words in ((moved, "the tiles that are loaded or stored"), (own, "all of its tiles")):
                if tiles and (tiles is moved or len(own) > len(moved)):
                    changed = unrolled(text, statement, statement.node, trips, tiles, copies)
                    if changed is not None:
                        yield ProposedChange(
                            BUFFERING, f"{_TIMES[copies]} {words} in the loop of line {statement.number}",
                            "a transfer no longer waits until the previous trip has finished with its tile",
                            statement.number, changed,
                        )  # fmt: skip


_TIMES = {2: "double-buffer", 4: "four sets of"}


def trips_of(node: pto.For, constants: Mapping[str, int]) -> int | None:
    """Return the number of trips of a loop; None if a bound is unknown."""
    bounds = [constants.get(name) for name in (node.lower, node.upper, node.step)]
    if any(bound is None for bound in bounds) or not bounds[2]:
        return None
    low, high, step = (bound or 0 for bound in bounds)
    return max(0, -(-(high - low) // step))


def _own_tiles(text: TileText, loop: TextOperation) -> list[str]:
    """Return the tiles that every trip writes before it reads them, and that only the loop reads."""
    allocated = [statement.node.result for statement in text.all() if isinstance(statement.node, pto.AllocTile)]
    inside = {name for statement in loop.body for name in (*read_by(statement.node), *written_by(statement.node))}
    outside = {
        name
        for statement in text.all()
        if not (loop.first <= statement.first <= loop.last)
        and not isinstance(statement.node, pto.AllocTile)
        and not statement.body
        for name in used(text.written(statement))
    }
    return [name for name in allocated if name in inside - outside and _written_first(loop, name)]


def _written_first(loop: TextOperation, name: str) -> bool:
    for statement in loop.body:
        if name in read_by(statement.node):
            return False
        if name in written_by(statement.node):
            return True
    return False


def _is_transferred(loop: TextOperation, name: str) -> bool:
    return any(
        isinstance(statement.node, pto.TileOperation)
        and statement.node.mnemonic in ("tload", "tstore")
        and name in (*statement.node.inputs, *statement.node.outputs)
        for statement in loop.body
    )


def unrolled(
    text: TileText, statement: TextOperation, node: pto.For, trips: int | None, tiles: list[str], copies: int
) -> str | None:
    """Return the text with a loop's body repeated on separate tiles; None if the buffer has no room."""
    taken, edited, margin = used(text.lines), text.edited(), indent(text.lines[statement.first])
    body = list(text.lines[statement.first + 1 : statement.last])
    free = first_free(text)
    if free is None:
        return None
    step, size = fresh(node.step, taken, str(copies)), text.constants().get(node.step)
    if size is None and copies != 2:
        return None
    step_value = f"arith.addi %{node.step}, %{node.step}" if size is None else f"arith.constant {size * copies}"
    adding = [f"{margin}%{step} = {step_value} : {node.type.name}"]
    inner, variable, lines = margin + "  ", node.variable, list(body)
    for _ in range(copies - 1):
        names = {name: fresh(name, taken) for name in sorted(defined(body))}
        following = fresh(node.variable, taken)
        for name in tiles:
            if name not in names:
                names[name] = fresh(name, taken)
        free = _allocate(text, edited, statement, {name: names[name] for name in tiles}, taken, free)
        second, free = _placed(statement, body, taken, free, adding, margin)
        ahead = f"{inner}%{following} = arith.addi %{variable}, %{node.step} : {node.type.name}"
        second = renamed(second, {**names, node.variable: following})
        if trips is None or trips % copies:
            more = fresh("more", taken)
            test = f"{inner}%{more} = arith.cmpi slt, %{following}, %{node.upper} : {node.type.name}"
            second = [
                test,
                f"{inner}scf.if %{more} {{",
                *(f"  {line}" if line else line for line in second),
                f"{inner}}}",
            ]
        lines += [ahead, *second]
        variable = following
    head = text.lines[statement.first]
    edited.insert(statement.first, adding)
    edited.instead[statement.first] = (re.sub(rf"step\s+%{re.escape(node.step)}(?![\w$.\-])", f"step %{step}", head),)
    for number in range(statement.first + 1, statement.last):
        edited.instead[number] = ()
    edited.instead[statement.first + 1] = tuple(lines)
    return edited.text()


def _allocate(
    text: TileText, edited: Edited, loop: TextOperation, copies: Mapping[str, str], taken: set[str], free: int
) -> int:
    """Allocate the named copies of tiles that are defined before the loop; return the first free byte after them."""
    for statement in text.all():
        node = statement.node
        if (
            not isinstance(node, pto.AllocTile)
            or node.result not in copies
            or loop.first <= statement.first <= loop.last
        ):
            continue
        lines = renamed(text.written(statement), {node.result: copies[node.result]})
        if node.address is not None:
            address = fresh(node.address, taken)
            lines = renamed(lines, {node.address: address})
            lines = [f"{indent(lines[0])}%{address} = arith.constant {free} : i64", *lines]
            free = -(-(free + tile_size(node.type)) // 256) * 256
        edited.insert(statement.last + 1, lines)
    return free


def _placed(
    loop: TextOperation, body: list[str], taken: set[str], free: int, adding: list[str], margin: str
) -> tuple[list[str], int]:
    """Give new addresses to the tiles that the body allocates; tiles that share an address still do."""
    moved: dict[str, str] = {}
    moved_lines = list(body)
    for statement in loop.body:
        node = statement.node
        if not isinstance(node, pto.AllocTile) or node.address is None:
            continue
        if node.address not in moved:
            moved[node.address] = fresh(node.address, taken)
            adding.append(f"{margin}%{moved[node.address]} = arith.constant {free} : i64")
            sizes = [
                tile_size(allocation.node.type)
                for allocation in loop.body
                if isinstance(allocation.node, pto.AllocTile) and allocation.node.address == node.address
            ]
            free = -(-(free + max(sizes)) // 256) * 256
        for line in range(statement.first, statement.last + 1):
            index = line - loop.first - 1
            moved_lines[index] = renamed([moved_lines[index]], {node.address: moved[node.address]})[0]
    return moved_lines, free
