"""Asking every kind of change, checking what it proposes, and ranking what holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

from castsim.exploration.advice import (
    buffering,
    bundles,
    chains,
    checking,
    dropping,
    hoisting,
    merging,
    reordering,
    resizing,
    routes,
)
from castsim.exploration.advice.buffering import TileText, read_text, retype, row_aligned, tile_types
from castsim.exploration.advice.checking import REFUSED, Baseline, faster, offer_of, original, timed
from castsim.exploration.advice.suggestion import (
    SECONDS,
    TRIES,
    Change,
    Rejection,
    RunConfig,
    Suggestion,
    SuggestionEvidence,
)
from castsim.isa import pto
from castsim.isa.codes import Codes
from castsim.isa.sources import Language, read_source
from castsim.machines.mechanisms import tiles_of
from castsim.machines.vliw.source import assembly_target
from castsim.targets import Target

__all__ = ["Advice", "advice_on", "advise", "proposed"]


# Tiles whose rows are full: casts of contiguous tiles run as one loop, those of padded ones row by row.

PADDING = "avoid padded tiles"


def narrowed_tiles(text: TileText) -> Iterator[Change]:
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
                PADDING, f"narrow the tiles from {words}",
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


COMPOSED = (f"{resizing.RESIZING}, {buffering.BUFFERING}", f"{merging.MERGING}, {buffering.BUFFERING}", "unroll")
"""Kinds that do more than another one, and are offered only where that alone saves less."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What was found for a program."""

    file: str
    """The program, as messages call it."""
    target: str
    """The name of the target that it ran on."""
    cycles: int
    """What it takes as it is."""
    offers: tuple[Suggestion, ...]
    """Changes that hold, most cycles saved first."""
    looked_at: int
    """Changes that were made and checked."""
    rejected: tuple[Rejection, ...] = ()
    """Those of them that are not offered, in the order in which they were made."""
    unfinished: bool = False
    """Whether the time for the search ended before all changes that castsim knows were made."""


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
        inputs: arrays by argument name, or what `--in` takes: tried first, besides those that are drawn.
        args: values of scalar arguments.
        options: values of the target's options.
        ranges: the least and the largest number that inputs may hold: bits need to be kept for these alone.
        tries: inputs on which what is not proven is tried at least.
        seconds: processor time for making changes, and again for checking them; one change may go beyond.

    Raises:
        CastsimError, EngineError: whatever the program is refused for as it is, races among it.
        ReadError: an input or a range of no argument.
    """
    setting = RunConfig(
        None if target is None else str(target), entry, args or {}, inputs or {}, options or {}, ranges or {}, tries,
        seconds,
    )  # fmt: skip
    source = read_source(Path(program), lambda: False)
    return advice_on(original(source, setting))


def advice_on(before: Baseline) -> Advice:
    """Return the changes of a program that has been read and timed."""
    end = process_time() + before.setting.seconds
    looked, found, rejected = [], [], []
    unfinished = False
    for change in proposed(before, end):
        looked.append(change)
        held = faster(change, before)
        if isinstance(held, Rejection):
            rejected.append(held)
        else:
            found.append((held[1], change))
        if process_time() > end:
            unfinished = True
            break
    found.sort(key=lambda each: (each[0], len(each[1].text)))
    offers: list[Suggestion] = []
    for cycles, change in found:
        if offers and process_time() > end + before.setting.seconds:
            rejected.append(Rejection(change, f"{cycles:,} cycles, not checked: the time was over"))
            unfinished = True
            continue
        if not _is_better(change, offers, assembly=before.source.language is Language.ASSEMBLY):
            rejected.append(Rejection(change, f"{cycles:,} cycles, no better than an offer"))
            continue
        offer = offer_of(change, before)
        if isinstance(offer, Rejection):
            rejected.append(offer)
        elif offer.how is SuggestionEvidence.PROVEN or not _alike(change, offers):
            offers.append(offer)
        else:
            rejected.append(Rejection(change, f"{cycles:,} cycles, no better than an offer"))
    offers.sort(key=lambda one: (-one.gained, one.how is not SuggestionEvidence.PROVEN, len(one.diff)))
    order = {id(change): number for number, change in enumerate(looked)}
    rejected.sort(key=lambda one: order[id(one.change)])
    name = before.loaded.target.name
    return Advice(
        before.source.file, name, before.cycles, tuple(offers), len(looked), tuple(rejected), unfinished
    )  # fmt: skip


def _alike(change: Change, offers: Sequence[Suggestion]) -> list[Suggestion]:
    """Return the offers of the kind of a change for its place."""
    return [one for one in offers if (one.change.kind, one.change.line) == (change.kind, change.line)]


def _is_better(change: Change, offers: Sequence[Suggestion], *, assembly: bool) -> bool:
    """Whether a change, which saves no more than the offers so far, could be preferred to each of them.

    Of assembly nothing is proven, so that what is tried has to do.
    """
    if any(one.change.text == change.text for one in offers):
        return False
    if any(one.how is SuggestionEvidence.PROVEN or assembly for one in _alike(change, offers)):
        return False
    if change.kind not in COMPOSED:
        return True
    here = [
        one for one in offers if one.change.line == change.line and (one.how is SuggestionEvidence.PROVEN or assembly)
    ]
    return not any(len(one.change.text) <= len(change.text) for one in here)


def proposed(before: Baseline, end: float = math.inf) -> Iterator[Change]:
    """Yield what every kind proposes; nothing takes long behind the time `end` of `process_time`."""
    source = before.source
    if source.language is Language.TILES:
        text = read_text(source.text, source.file, before.setting.entry)
        if text is not None:
            yield from checking.without_store_barriers(source, before.setting)
            yield from of_tiles(text, before)
        return
    target = assembly_target(before.loaded.target)
    if target is not None:
        yield from bundles.reordered_bundles(source.text, source.file, target, end)


def of_tiles(text: TileText, before: Baseline) -> Iterator[Change]:
    """Yield the changes of a tile program."""

    def clean(changed: str) -> bool:
        try:
            loaded = before.setting.loaded(replace(before.source, text=changed))
            return timed(loaded, before.setting).cycles <= before.cycles
        except REFUSED:
            return False

    yield from dropping.without_synchronisation(text, clean)
    yield from buffering.double_buffered(text)

    def cost(changed: str) -> int | None:
        try:
            return timed(before.setting.loaded(replace(before.source, text=changed)), before.setting).cycles
        except REFUSED:
            return None

    yield from narrowed_tiles(text)
    yield from hoisting.hoisted_loads(text)
    yield from merging.merged_rows(text)
    yield from routes.other_routes(text)
    yield from chains.cheaper_chains(text, casts_of(before.loaded.target))
    yield from reordering.reordered_statements(text, cost)
    for change in resizing.resized_strips(text):
        yield change
        again = read_text(change.text, before.source.file, before.setting.entry)
        if again is not None:
            for second in buffering.double_buffered(again):
                yield joined(change, second)


def casts_of(target: Target) -> dict[str, frozenset[str]]:
    """Return the formats that a target casts to, by the format that it casts from."""
    found: dict[str, set[str]] = {}
    chip = tiles_of(target)
    for row in () if chip is None else chip.casts:
        found.setdefault(row.src, set()).add(row.dst)
    return {src: frozenset(ends) for src, ends in found.items()}


def joined(first: Change, second: Change) -> Change:
    """Return two changes, the second made on what the first gives, as one."""
    return Change(
        f"{first.kind}, {second.kind}", f"{first.title}; then {second.title}", f"{first.reason}; {second.reason}",
        first.line, second.text, first.recasts or second.recasts,
    )  # fmt: skip
