"""Drop barriers and flags that order nothing: what the rest orders already, or what needs no order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from castsim.exploration.advice.buffering import Statement, TileText
from castsim.exploration.advice.suggestion import Change
from castsim.isa import pto

DROPPING = "drop synchronisation"

Clean = Callable[[str], bool]


def without_synchronisation(text: TileText, clean: Clean) -> Iterator[Change]:
    """Yield the text without all the barriers and flags that it can do without; `clean` says what is free of races."""
    dropped: list[Statement] = []
    for group in _groups(text):
        if clean(_without(text, [*dropped, *group])):
            dropped += group
    if dropped:
        lines = ", ".join(str(one.number) for one in sorted(dropped, key=lambda one: one.first))
        many = "s" * (len(dropped) > 1)
        yield Change(
            DROPPING, f"drop the {len(dropped)} flag{many} or barrier{many} of line{many} {lines}",
            "what they order is ordered without them, or touches no bytes in common",
            min(one.number for one in dropped), _without(text, dropped),
        )  # fmt: skip


def _groups(text: TileText) -> Iterator[list[Statement]]:
    """Yield what can be dropped together: a barrier; the signals and waits of one pair of pipes and event."""
    pairs: dict[object, list[Statement]] = {}
    last = _closing(text)
    for one in text.all():
        node = one.node
        if isinstance(node, pto.Barrier):
            if one.first != last:
                yield [one]
        elif isinstance(node, pto.SetFlag | pto.WaitFlag):
            key = (node.src, node.dst, node.event, node.number)
            pairs.setdefault(key, []).append(one)
    yield from pairs.values()
    for group in pairs.values():  # a single signal with its wait, the nearest behind it
        sets = [one for one in group if isinstance(one.node, pto.SetFlag)]
        for one in sets:
            behind = [each for each in group if isinstance(each.node, pto.WaitFlag) and each.first > one.first]
            if behind and len(sets) > 1:
                yield [one, behind[0]]


def _without(text: TileText, dropped: list[Statement]) -> str:
    edited = text.edited()
    for one in dropped:
        edited.remove(one)
    return edited.text()


def _closing(text: TileText) -> int | None:
    """Return the line of the barrier on all pipes that ends the kernel, as the vendor's tool writes one: it stays."""
    ends = [one for one in text.statements if not isinstance(one.node, pto.Return)]
    node = ends[-1].node if ends else None
    return ends[-1].first if isinstance(node, pto.Barrier) and node.pipe is pto.Pipe.ALL else None
