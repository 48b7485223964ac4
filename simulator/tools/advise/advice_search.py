"""Search for advice: propose changes of every kind, check them, and rank the valid ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from time import process_time

from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import arguments_checked
from castsim.isa.formats import Codes
from castsim.isa.pto import program as pto
from castsim.isa.reading import Language, read_source
from castsim.machines.mechanisms import tiles_of
from castsim.machines.vliw import assembly_target
from castsim.reports.documents import CommandDocument, record, says
from castsim.reports.schemas.keys import Cycles
from castsim.running.program_edits import Edited, TextOperation, TileText, each_of, indent, read_text
from castsim.targets.dataflow import BLOCK_BYTES
from castsim.targets.loader import Target
from castsim.tools.advise import equivalence, reordering, rewrites
from castsim.tools.advise.equivalence import REFUSED, Baseline, faster, offer_of, original
from castsim.tools.advise.rewrites import MERGING
from castsim.tools.advise.suggestions import (
    SECONDS,
    TRIES,
    Change,
    ProposedChange,
    RejectedChange,
    SearchConfig,
    SuggestionEvidence,
    fresh,
    placed_sizes,
    read_by,
    renamed,
    retype,
    row_aligned,
    tile_types,
    used,
    written_by,
)

__all__ = ["Advice", "advice_on", "advise", "proposed"]


# Tiles that a program places by hand, moved apart after their sizes have changed.


def placed_anew(before: TileText, after: TileText) -> str | None:
    """Return a text with its tiles' addresses moved apart to fit their sizes, in their original order.

    Tiles that share an address still do. None if an address is not a separate constant, or tiles overlapped otherwise.
    """
    old, new = placed_sizes(before), placed_sizes(after)
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
    for statement in after.all():
        node = statement.node
        if isinstance(node, pto.Constant) and node.result in new and isinstance(node.value, int):
            line = re.sub(r"constant\s+\d+", f"constant {places[node.value]}", after.lines[statement.first])
            edited.instead[statement.first] = (line,)
    return edited.text()


# Let a loop take more of its rows, or columns, per trip, or fewer: tiles as large as the buffer holds, or as it suits.
#
# Every trip pays for starting transfers, instructions and loops; fewer and larger trips pay less often. Smaller ones
# leave room for a second set of tiles.

RESIZING = "resize tiles"
FACTORS = (Fraction(2), Fraction(4), Fraction(8), Fraction(16), Fraction(1, 2), Fraction(1, 4))


@dataclass(frozen=True, slots=True)
class _Strip:
    """A loop over strips of views: `size` elements along one axis per trip; `parts` are its partition views.

    `parts` maps the line of a view to the axis along which the loop moves it. `rows` tells whether that axis is in the
    rows of tiles.
    """

    loop: TextOperation
    node: pto.For
    size: int
    parts: Mapping[int, int]
    tiles: frozenset[str]
    rows: bool


def resized_strips(text: TileText) -> Iterator[ProposedChange]:
    """Yield the text with each loop's strips enlarged or reduced by powers of two."""
    constants = text.constants()
    for statement in text.all():
        strip = _strip_of(text, statement, constants)
        if strip is None:
            continue
        node, span = strip.node, None
        if node.upper in constants and node.lower in constants:
            span = constants[node.upper] - constants[node.lower]
        factors = [*FACTORS, *([Fraction(span, strip.size)] if span and span % strip.size == 0 else [])]
        for factor in dict.fromkeys(factors):
            size = strip.size * factor
            if size.denominator != 1 or factor == 1 or (span is not None and size > span):
                continue
            if not _clamped(strip) and (strip.size % int(size) if span is None else span % int(size)):
                continue  # a strip would go past the end
            changed = _resized(text, strip, int(size))
            if changed is not None:
                what = "rows" if strip.rows else "columns"
                merged = strip.size == 1
                title = (
                    f"take {size} {what} at a time in the loop of line {statement.number}, not one by one"
                    if merged
                    else f"take {size} {what} per trip in the loop of line {statement.number}, not {strip.size}"
                )
                reason = (
                    "every trip pays for starting its transfers and instructions"
                    if factor > 1
                    else "smaller tiles finish earlier, so more work overlaps"
                )
                yield ProposedChange(MERGING if merged else RESIZING, title, reason, statement.number, changed)


def _strip_of(text: TileText, loop: TextOperation, constants: Mapping[str, int]) -> _Strip | None:
    """Return how a loop iterates over strips of views; None if it does not."""
    node = loop.node
    if not isinstance(node, pto.For) or node.carried or constants.get(node.step, 0) < 1:
        return None
    size, parts, moved = constants[node.step], {}, {}
    for statement in each_of(loop.body):
        part = statement.node
        if isinstance(part, pto.PartitionView) and node.variable in part.offsets:
            axis = part.offsets.index(node.variable)
            if part.sizes[axis] in constants and constants[part.sizes[axis]] != size:
                return None
            parts[statement.first] = axis
            moved[part.result] = axis - len(part.sizes)
    fixed = _fixed_tiles(loop, moved)
    written = {name for operation in each_of(loop.body) for name in written_by(operation.node)}
    tmps = {
        name for operation in each_of(loop.body) for name in read_by(operation.node) if _is_tmp(operation.node, name)
    }
    kinds = tile_types(text)
    tiles = frozenset(name for name in (written | tmps) - fixed if name in kinds)
    if not parts or not tiles:
        return None
    along = [
        axis
        for operation in each_of(loop.body)
        for name, axis in moved.items()
        if name in (*read_by(operation.node), *written_by(operation.node))
        for tile in (*read_by(operation.node), *written_by(operation.node))
        if tile in kinds and kinds[tile].rows == size
    ]
    return _Strip(loop, node, size, parts, tiles, rows=-2 in along or (size == 1 and -2 in moved.values()))


def _is_tmp(node: pto.Operation, name: str) -> bool:
    if isinstance(node, pto.Tcvt):
        return node.tmp == name
    return isinstance(node, pto.TileOperation) and len(node.inputs) > 1 and name == node.inputs[-1]


def _fixed_tiles(loop: TextOperation, moved: Mapping[str, int]) -> set[str]:
    """Return the tiles with the same contents in every trip: loaded from views that the loop does not move."""
    loaded: dict[str, bool] = {}
    for statement in each_of(loop.body):
        for name in written_by(statement.node):
            still = (
                isinstance(statement.node, pto.TileOperation)
                and statement.node.mnemonic == "tload"
                and not any(view in moved for view in statement.node.inputs)
            )
            loaded[name] = loaded.get(name, True) and still
    return {name for name, still in loaded.items() if still}


def _clamped(strip: _Strip) -> bool:
    """Return whether the loop itself keeps its last strip from exceeding the end."""
    return any(
        isinstance(statement.node, pto.Arith) and statement.node.operation.startswith("min")
        for statement in strip.loop.body
    )


def _resized(text: TileText, strip: _Strip, size: int) -> str | None:
    """Return the text with strips of another size; None if a type is ambiguous, or tiles do not fit."""
    edited = text.edited()
    views = {statement.node.result: strip.parts[statement.first] for statement in each_of(strip.loop.body)
             if statement.first in strip.parts and isinstance(statement.node, pto.PartitionView)}  # fmt: skip

    def change(name: str, kind: pto.Type) -> pto.Type | None:
        if isinstance(kind, pto.PartitionType) and name in views and kind.dims[views[name]] == strip.size:
            axis = views[name]
            return replace(kind, dims=(*kind.dims[:axis], size, *kind.dims[axis + 1 :]))
        return _scaled(kind, strip, size) if isinstance(kind, pto.TileType) and name in strip.tiles else None

    if not retype(text, edited, change):
        return None
    _rename(text, edited, strip, size)
    changed = edited.text()
    again = read_text(changed, "resized", text.function.name)
    return None if again is None else placed_anew(text, again)


def _scaled(kind: pto.TileType, strip: _Strip, size: int) -> pto.TileType | None:
    """Return a tile type with another extent of rows, or columns, along the strip."""
    by_rows = kind.rows == strip.size if strip.rows else False
    if by_rows:
        valid = size if kind.valid_rows == strip.size else kind.valid_rows
        return replace(kind, rows=size, valid_rows=valid)
    if kind.cols == strip.size and (not strip.rows or kind.rows == 1):
        valid = size if kind.valid_cols == strip.size else kind.valid_cols
        return replace(kind, cols=size, valid_cols=valid)
    return None


def _rename(text: TileText, edited: Edited, strip: _Strip, size: int) -> None:
    """Give the loop's step and the sizes of its views a new constant, or the old one another value."""
    name, loop = strip.node.step, strip.loop
    here = re.compile(rf"%{re.escape(name)}(?![\w$.\-])")
    lines: dict[int, str] = {}

    def line(number: int) -> str:
        return (edited.instead.get(number) or (text.lines[number],))[0]

    other = fresh(name, set(used(text.lines)), str(size))
    head = line(loop.first)
    lines[loop.first] = re.sub(rf"step\s+%{re.escape(name)}(?![\w$.\-])", f"step %{other}", head)
    for statement in each_of(loop.body):
        if statement.body:
            continue
        if isinstance(statement.node, pto.PartitionView):
            axis = strip.parts.get(statement.first)
            if axis is not None and name == statement.node.sizes[axis]:
                lines[statement.first] = _with_size(line(statement.first), axis, other)
        elif strip.size > 1 and here.search(line(statement.first)):
            lines[statement.first] = renamed([line(statement.first)], {name: other})[0]
    for number, changed in lines.items():
        edited.instead[number] = (changed,)
    origin = next(
        (
            operation
            for operation in text.all()
            if isinstance(operation.node, pto.Constant) and operation.node.result == name
        ),
        None,
    )
    left = [
        number
        for number in range(len(text.lines))
        if here.search(line(number).split("//")[0]) and (origin is None or number != origin.first)
    ]
    if origin is not None and not left:
        for number, changed in lines.items():
            edited.instead[number] = tuple(renamed([changed], {other: name}))
        edited.instead[origin.first] = (re.sub(r"constant\s+-?\d+", f"constant {size}", text.lines[origin.first]),)
        return
    kind = strip.node.type.name
    edited.insert(loop.first, [f"{indent(head)}%{other} = arith.constant {size} : {kind}"])


def _with_size(line: str, axis: int, name: str) -> str:
    """Return a partition view with another name at one index of its sizes."""
    match = re.search(r"sizes\s*=\s*\[([^\]]*)\]", line)
    if match is None:
        return line
    names = [size_name.strip() for size_name in match[1].split(",")]
    names[axis] = f"%{name}"
    return line[: match.start(1)] + ", ".join(names) + line[match.end(1) :]


# Tiles whose rows are full: casts of contiguous tiles run as one loop, those of padded ones row by row.

PADDING = "avoid padded tiles"


def narrowed_tiles(text: TileText) -> Iterator[ProposedChange]:
    """Yield the text without the padding of tiles: of all tiles, and of those of one shape."""
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
            yield ProposedChange(
                PADDING, f"narrow the tiles from {words}",
                "a full tile is cast in one loop over all of its elements, a padded one row by row",
                line, edited.text(), recasts=True,
            )  # fmt: skip


def _narrowed(kind: pto.TileType) -> pto.TileType | None:
    """Return a padded tile without its padding; None if it has none, or its rows would not be whole blocks."""
    if kind.valid_cols is None or kind.valid_cols >= kind.cols or kind.valid_cols == 0:
        return None
    narrowed = replace(kind, cols=kind.valid_cols)
    return narrowed if row_aligned(narrowed) else None


def _first(text: TileText, shape: tuple[int, int]) -> int:
    lines = [
        statement.number
        for statement in text.all()
        if isinstance(statement.node, pto.AllocTile)
        and (statement.node.type.cols, statement.node.type.valid_cols) == shape
    ]
    return min(lines, default=1)


COMPOSED = (f"{RESIZING}, {rewrites.BUFFERING}", f"{MERGING}, {rewrites.BUFFERING}", "unroll")
"""Kinds that extend another kind, and are offered only if that one alone saves less."""


@record
class Advice(CommandDocument, name="advise", version=2, title="Advise"):
    """Changes that make a program faster."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    cycles: Cycles = says("Cycles of the original program.")
    looked_at: int = says("Changes that were applied and checked.")
    offers: tuple[Change, ...] = says("Valid changes, most cycles saved first.")
    rejected: tuple[RejectedChange, ...] = says("Changes that are not offered, in the order of their trial.")
    unfinished: bool = says("Whether the time limit ended the search.")
    applied: int | None = says("Number of the written change; null if none was written.", default=None)
    output: str | None = says("The output file.", default=None)


@arguments_checked
def advise(
    program: str | Path,
    target: str | Path | None = None,
    entry: str | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    args: Mapping[str, int | float] | None = None,
    options: Mapping[str, int | str] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    tries: int = TRIES,
    seconds: float = SECONDS,
) -> Advice:
    """Return changes of a program's text that keep its outputs to the bit and save cycles, most cycles first.

    Args:
        program: path of a `.pto` or `.tpc` file.
        target: name or path of a description; None takes the one the file names.
        entry: function to change; None takes the entry, or the only function.
        inputs: arrays by argument name, or values of `--in`: tried first, in addition to drawn inputs.
        args: values of scalar arguments.
        options: values of the target's options.
        ranges: the least and the largest number that an input may contain: only these must keep their bits.
        tries: minimum number of inputs on which an unproven change is tried.
        seconds: processor time for making changes, and again for checking them; one change may go beyond.

    Raises:
        CastsimError, EngineError: the unchanged program is refused, for example for a race.
        ReadError: an input or a range belongs to no argument.
    """
    setting = SearchConfig(
        None if target is None else str(target), entry, args or {}, inputs or {}, options or {}, ranges or {}, tries,
        seconds,
    )  # fmt: skip
    source = read_source(Path(program), lambda: False)
    return advice_on(original(source, setting))


def advice_on(before: Baseline, progress: ProgressCallback = lambda *_: None) -> Advice:
    """Return the changes of a program that was read and timed; `progress` receives the number of tried ones."""
    end = process_time() + before.setting.seconds
    looked, gains, rejected = [], [], []
    unfinished = False
    for change in proposed(before, end):
        looked.append(change)
        progress("timing changes", len(looked), 0)
        gain = faster(change, before)
        if isinstance(gain, RejectedChange):
            rejected.append(gain)
        else:
            gains.append((gain[1], change))
        if process_time() > end:
            unfinished = True
            break
    gains.sort(key=lambda entry: (entry[0], len(entry[1].text)))
    offers: list[Change] = []
    for number, (cycles, change) in enumerate(gains):
        progress("checking changes", number, len(gains))
        if offers and process_time() > end + before.setting.seconds:
            rejected.append(RejectedChange(change, f"{cycles:,} cycles, not checked: the time was over"))
            unfinished = True
            continue
        if not _is_better(change, offers, assembly=before.source.language is Language.ASSEMBLY):
            rejected.append(RejectedChange(change, f"{cycles:,} cycles, no better than an offer"))
            continue
        offer = offer_of(change, before)
        if isinstance(offer, RejectedChange):
            rejected.append(offer)
        elif offer.how is SuggestionEvidence.PROVEN or not _alike(change, offers):
            offers.append(offer)
        else:
            rejected.append(RejectedChange(change, f"{cycles:,} cycles, no better than an offer"))
    offers.sort(
        key=lambda suggestion: (
            -suggestion.gained,
            suggestion.how is not SuggestionEvidence.PROVEN,
            len(suggestion.diff),
        )
    )
    order = {id(change): index for index, change in enumerate(looked)}
    rejected.sort(key=lambda rejection: order[id(rejection.change)])
    name = before.loaded.target.name
    numbered = tuple(replace(offer, number=number) for number, offer in enumerate(offers, 1))
    return Advice(before.source.file, name, before.cycles, len(looked), numbered, tuple(rejected), unfinished)


def _alike(change: ProposedChange, offers: Sequence[Change]) -> list[Change]:
    """Return the offers of the same kind as a change at its position."""
    return [offer for offer in offers if (offer.change.kind, offer.change.line) == (change.kind, change.line)]


def _is_better(change: ProposedChange, offers: Sequence[Change], *, assembly: bool) -> bool:
    """Return whether a change, which saves no more than the offers so far, could be preferred to each of them.

    For assembly nothing can be proven, so tried changes are offered.
    """
    if any(offer.change.text == change.text for offer in offers):
        return False
    if any(offer.how is SuggestionEvidence.PROVEN or assembly for offer in _alike(change, offers)):
        return False
    if change.kind not in COMPOSED:
        return True
    here = [
        offer
        for offer in offers
        if offer.change.line == change.line and (offer.how is SuggestionEvidence.PROVEN or assembly)
    ]
    return not any(len(offer.change.text) <= len(change.text) for offer in here)


def proposed(before: Baseline, end: float = math.inf) -> Iterator[ProposedChange]:
    """Yield the proposals of every kind; none works long after the time `end` of `process_time`."""
    source = before.source
    if source.language is Language.TILES:
        text = read_text(source.text, source.file, before.setting.entry)
        if text is not None:
            yield from equivalence.without_store_barriers(before)
            yield from of_tiles(text, before)
        return
    target = assembly_target(before.loaded.target)
    if target is not None:
        yield from reordering.reordered_bundles(source.text, source.file, target, end)


def of_tiles(text: TileText, before: Baseline) -> Iterator[ProposedChange]:
    """Yield the changes of a tile program."""

    def cost(changed: str) -> int | None:
        try:
            return before.changed(changed)[1].cycles
        except REFUSED:
            return None

    def clean(changed: str) -> bool:
        cycles = cost(changed)
        return cycles is not None and cycles <= before.cycles

    yield from rewrites.without_synchronisation(text, clean)
    yield from rewrites.double_buffered(text)
    yield from narrowed_tiles(text)
    yield from rewrites.hoisted_loads(text)
    yield from rewrites.merged_rows(text)
    yield from rewrites.other_routes(text)
    yield from rewrites.cheaper_chains(text, casts_of(before.loaded.target))
    yield from reordering.reordered_statements(text, cost)
    for change in resized_strips(text):
        yield change
        again = read_text(change.text, before.source.file, before.setting.entry)
        if again is not None:
            for second in rewrites.double_buffered(again):
                yield joined(change, second)


def casts_of(target: Target) -> dict[str, frozenset[str]]:
    """Return the destination formats of a target by source format."""
    casts: dict[str, set[str]] = {}
    chip = tiles_of(target)
    for row in () if chip is None else chip.casts:
        casts.setdefault(row.src, set()).add(row.dst)
    return {src: frozenset(ends) for src, ends in casts.items()}


def joined(first: ProposedChange, second: ProposedChange) -> ProposedChange:
    """Return two changes as one; the second was made on the result of the first."""
    return ProposedChange(
        f"{first.kind}, {second.kind}", f"{first.title}; then {second.title}", f"{first.reason}; {second.reason}",
        first.line, second.text, first.recasts or second.recasts,
    )  # fmt: skip
