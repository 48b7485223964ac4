"""The dependences between the operations of a window: flags and the bytes of buffers and tensors, by the tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from castsim.execution.dataflow.operations import SetFlag, WaitFlag
from castsim.execution.tree import Access, Tree, accesses, instances, operations
from castsim.reports.views.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Dependence:
    """`consumer` needs what `producer` did; both are operation numbers, `why` names the flag or the bytes."""

    producer: int
    consumer: int
    why: str


def dependences(tree: Tree, timeline: Timeline) -> tuple[Dependence, ...]:
    """Return the dependences between operations of the window, those of flags first.

    A wait depends on the set that it consumes: sets and waits of one flag pair up in order. An instruction that reads
    bytes depends on the last one that wrote any of them; its first operation on the pipe of its main work stands for
    it, as the operation that ends last does for the writer. Programs of bundles name no bytes, so they have none.
    """
    return (*_of_flags(tree, timeline), *_of_bytes(tree, timeline))


def _of_flags(tree: Tree, timeline: Timeline) -> Iterator[Dependence]:
    shown = {row.index for row in timeline.rows}
    last = max(shown, default=-1)
    sets: dict[tuple[str, str, int], list[int]] = {}
    waits: dict[tuple[str, str, int], list[int]] = {}
    index = 0
    for lowered, _ in instances(tree):
        if index > last:
            break
        for operation in operations(lowered, None):  # no loop moves a flag
            if isinstance(operation, SetFlag):
                sets.setdefault((operation.pipe, operation.waiter, operation.event), []).append(index)
            elif isinstance(operation, WaitFlag):
                waits.setdefault((operation.signaller, operation.pipe, operation.event), []).append(index)
            index += 1
    for key, consumers in waits.items():
        for producer, consumer in zip(sets.get(key, ()), consumers, strict=False):
            if producer in shown and consumer in shown:
                yield Dependence(producer, consumer, f"flag {key[0]} -> {key[1]} id {key[2]}")


def _of_bytes(tree: Tree, timeline: Timeline) -> Iterator[Dependence]:
    shown = {row.index for row in timeline.rows}
    spans = {span.execution: span for span in timeline.spans}
    written: dict[str, list[tuple[Access, int]]] = {}
    last = max(spans, default=-1)
    for number, (lowered, deltas) in enumerate(instances(tree)):
        if number > last:
            break
        if number not in spans:
            continue
        touched = accesses(lowered, deltas)
        consumer = spans[number].first
        for access in (each for each in touched if not each.write):
            for writer, who in reversed(written.get(access.space, ())):
                if _overlap(writer, access):
                    producer = spans[who].last
                    if producer in shown and consumer in shown:
                        yield Dependence(producer, consumer, f"{access.space} bytes {_common(writer, access)}")
                    break
        for access in (each for each in touched if each.write):
            known = written.setdefault(access.space, [])
            known[:] = [(old, who) for old, who in known if old.start < access.start or old.end > access.end]
            known.append((access, number))


def _overlap(one: Access, other: Access) -> bool:
    """Whether the extents meet; rows in between that only one of them touches count as met."""
    return one.start < other.end and other.start < one.end


def _common(one: Access, other: Access) -> str:
    return f"{max(one.start, other.start)} .. {min(one.end, other.end) - 1}"
