"""Flags out of branches and loops: a set and its wait never stand on one path only (docs/reference/pto.md section 5.3).

What belongs to the next trip of a loop stays inside it; barriers stay where they are.
"""

from __future__ import annotations

from castsim.synchronisation.flags.elements import BranchSpan, Element, ElementKind, Hold, LoopSpan, Mark, Pair, Wait


def move_flags(elements: list[Element]) -> None:
    """Move waits before, and sets behind, the branches and loops that their other half is not in."""
    for element in elements:
        if element.kind is ElementKind.IF_BEGIN:
            assert isinstance(element.region, BranchSpan)
            for start, end in element.region.parts:
                _move(elements, start, end, (element.region.begin, element.region.end))
    for element in elements:
        if element.kind is ElementKind.LOOP_END:
            assert isinstance(element.region, LoopSpan)
            _move(elements, element.region.begin + 1, element.region.end, (element.region.begin, element.region.end))


def _move(elements: list[Element], start: int, end: int, ends: tuple[int, int]) -> None:
    """Move what leaves the elements from `start` to before `end` to the two ends of their region."""
    first, last = ends
    loop = elements[last].region if elements[last].kind is ElementKind.LOOP_END else None

    def leaves(mark: Mark) -> bool:
        """Whether the other half of a mark is elsewhere, and not in the next trip of this loop."""
        if isinstance(mark, Hold) or (loop is not None and mark.pair.loop is loop):
            return False
        other = mark.pair.set_at if isinstance(mark, Wait) else mark.pair.wait_at
        return not start <= other < end

    for element in elements[start:end]:
        for mark in [mark for mark in element.before if leaves(mark)]:
            element.before.remove(mark)
            elements[first].before.append(mark)
            _pair(mark).wait_at = first
        for mark in [mark for mark in element.after if leaves(mark)]:
            element.after.remove(mark)
            elements[last].after.insert(0, mark)
            _pair(mark).set_at = last
        if loop is not None:
            # The tool puts what stays into its new list from the front.
            element.after.reverse()


def _pair(mark: Mark) -> Pair:
    assert not isinstance(mark, Hold)
    return mark.pair
