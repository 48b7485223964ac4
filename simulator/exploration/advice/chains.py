"""Chains of casts through other formats, or in fewer steps, that give the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from castsim.exploration.advice.buffering import Statement, TileText, indent, read_by, retype, used
from castsim.exploration.advice.suggestion import Change
from castsim.isa import pto
from castsim.isa.modes import Saturation
from castsim.isa.pto.printer import operation_text
from castsim.isa.pto.program import RoundMode
from castsim.isa.pto.types import ELEMENTS

CHEAPER_CHAIN = "cheaper chain of casts"
_MODES = (RoundMode.RINT, RoundMode.ROUND, RoundMode.FLOOR, RoundMode.CEIL, RoundMode.TRUNC)

Casts = Mapping[str, frozenset[str]]
"""The formats that a target casts to, by the format that it casts from."""


def cheaper_chains(text: TileText, casts: Casts) -> Iterator[Change]:
    """Yield the text with two casts in a row made one, or taken through another format."""
    if any(isinstance(one.node, pto.SetFlag | pto.WaitFlag) for one in text.all()):
        return
    for first, second in _pairs(text):
        one, two = first.node, second.node
        assert isinstance(one, pto.Tcvt) and isinstance(two, pto.Tcvt)
        src, middle, dst = one.src_type.element, one.dst_type.element, two.dst_type.element
        if dst in casts.get(src, ()) or src == dst:
            yield from _direct(text, first, second)
        for other in sorted(casts.get(src, frozenset()) - {middle, src}):
            if dst in casts.get(other, ()) and other in ELEMENTS.values():
                yield from _through(text, first, second, other)


def _pairs(text: TileText) -> Iterator[tuple[Statement, Statement]]:
    """Yield casts of which the second alone reads what the first gives."""
    for one in text.all():
        if not isinstance(one.node, pto.Tcvt):
            continue
        readers = [each for each in text.all() if one.node.dst in read_by(each.node)]
        reader = readers[0] if len(readers) == 1 and readers[0].path == one.path else None
        behind = reader is not None and reader.first > one.first
        if reader is not None and behind and isinstance(reader.node, pto.Tcvt) and reader.node.src == one.node.dst:
            yield one, reader


def _saturations(node: pto.Tcvt) -> tuple[Saturation | None, ...]:
    return tuple(dict.fromkeys((node.saturation, Saturation.ON, Saturation.OFF)))


def _direct(text: TileText, first: Statement, second: Statement) -> Iterator[Change]:
    one, two = first.node, second.node
    assert isinstance(one, pto.Tcvt) and isinstance(two, pto.Tcvt)
    path = f"{one.src_type.element} -> {two.dst_type.element}"
    for mode in dict.fromkeys((one.rounding, two.rounding, *_MODES)):
        for saturation in _saturations(two):
            node = replace(two, src=one.src, src_type=one.src_type, rounding=mode, saturation=saturation)
            edited = text.edited()
            edited.remove(first)
            edited.replace(second, [indent(text.lines[second.first]) + operation_text(node)])
            word = "" if mode is None else f" with {mode.name}"
            yield Change(
                CHEAPER_CHAIN, f"cast {path} in one step{word} in line {second.number}, not by {one.dst_type.element}",
                "one step less gives the same bits", first.number, edited.text(), recasts=True,
            )  # fmt: skip


def _through(text: TileText, first: Statement, second: Statement, other: str) -> Iterator[Change]:
    one, two = first.node, second.node
    assert isinstance(one, pto.Tcvt) and isinstance(two, pto.Tcvt)
    tile, uses = one.dst, [each for each in text.all() if not each.body and one.dst in used(text.written(each))]
    path = f"{one.src_type.element} -> {other} -> {two.dst_type.element}"
    for before in dict.fromkeys((one.rounding, two.rounding, RoundMode.RINT, RoundMode.TRUNC)):
        for after in dict.fromkeys((two.rounding, RoundMode.RINT)):
            edited = text.edited()

            def change(name: str, kind: pto.Type) -> pto.Type | None:
                return replace(kind, element=other) if name == tile and isinstance(kind, pto.TileType) else None

            kind = replace(one.dst_type, element=other)
            if not retype(text, edited, change, uses):
                return
            for place, node in (
                (first, replace(one, dst_type=kind, rounding=before)),
                (second, replace(two, src_type=kind, rounding=after)),
            ):
                edited.replace(place, [indent(text.lines[place.first]) + operation_text(node)])
            yield Change(
                CHEAPER_CHAIN, f"cast {path} in lines {first.number} and {second.number}, not by {one.dst_type.element}",
                "these steps are cheaper and give the same bits", first.number, edited.text(), recasts=True,
            )  # fmt: skip
