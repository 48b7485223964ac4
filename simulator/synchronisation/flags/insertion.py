"""A function with its flags and barriers put in, and where each of them stands in the source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from castsim.execution.interpreter import Lowerer
from castsim.execution.interpreter.labels import order_text
from castsim.isa.errors import Span
from castsim.isa.pto import program as pto
from castsim.synchronisation.flags.dependence import Rules
from castsim.synchronisation.flags.elements import Element, ElementKind, Listing
from castsim.synchronisation.flags.emission import DRAIN, Emitted, Order, emit, tail_of
from castsim.synchronisation.flags.events import assign_events
from castsim.synchronisation.flags.moving import move_flags
from castsim.synchronisation.flags.reading import Reading, read
from castsim.synchronisation.flags.removing import remove_needless
from castsim.synchronisation.flags.scanning import place_flags
from castsim.targets.dataflow import DataflowTarget


class Place(StrEnum):
    """Where an inserted instruction stands, seen from the source line that it belongs to."""

    BEFORE = "before"
    AFTER = "after"
    BEHIND = "behind"
    """Behind the end of the loop or branch that begins there."""
    AT_END = "end"


@dataclass(frozen=True, slots=True)
class Insert:
    """An inserted instruction, and where it stands."""

    node: Order
    place: Place

    @property
    def span(self) -> Span:
        """The place of the source line that it belongs to."""
        return self.node.span

    @property
    def text(self) -> str:
        """How a program spells it."""
        return order_text(self.node)


@dataclass(frozen=True, slots=True)
class Plan:
    """A function with synchronisation, and what was inserted, in the order of the text."""

    function: pto.Function
    inserts: tuple[Insert, ...]


def insert(function: pto.Function, lowerer: Lowerer, target: DataflowTarget) -> Plan:
    """Insert flags and barriers into a function without flags; see the package for the rules."""
    reading = read(function, lowerer, target.pipes)
    return _Writer(reading, plan(reading.listing, target, tail_of(function))).function(function)


def insert_barriers(function: pto.Function, lowerer: Lowerer, target: DataflowTarget) -> Plan:
    """Insert a barrier on all pipes before every operation and at the end: the simplest of the tool's ways."""
    reading = read(function, lowerer, target.pipes)
    before = tuple((DRAIN,) if e.kind is ElementKind.OPERATION else () for e in reading.listing.elements)
    return _Writer(reading, Emitted((), before, ((),) * len(before), (DRAIN,))).function(function)


def plan(listing: Listing, target: DataflowTarget, tail: tuple[Order, ...] = (DRAIN,)) -> Emitted:
    """Return what is inserted around the elements of a program; a single operation gets only the end."""
    elements: list[Element] = listing.elements
    facts = target.synchronisation
    if len(elements) > 1:
        regions = any(element.kind is not ElementKind.OPERATION for element in elements)
        literal = regions and target.option("flags_past_regions") == "literal"
        pairs = place_flags(listing, Rules(target.pipes, facts.unordered_bytes, literal))
        move_flags(elements)
        assign_events(elements, remove_needless(elements, pairs), lambda pipes: _ids(target, pipes))
    return emit(elements, target, tail if elements else ())


def _ids(target: DataflowTarget, pipes: tuple[str, str]) -> int:
    """Return how many event ids the tool uses of a pair of pipes."""
    if set(pipes) == {target.pipes.scalar, target.pipes.vector}:
        return min(target.pipes.event_ids, target.synchronisation.scalar_event_ids)
    return target.pipes.event_ids


@dataclass(slots=True)
class _Writer:
    reading: Reading
    emitted: Emitted
    inserts: list[Insert] = field(default_factory=list)

    def function(self, function: pto.Function) -> Plan:
        """Return the function with everything put in."""
        body = function.body or ()
        made: list[pto.Operation] = []
        if body:
            self._put(self.emitted.start, Place.BEFORE, body[0].span, made)
        ended = [node for node in body if isinstance(node, pto.Return)][:1]
        made += self._region(body[: body.index(ended[0])] if ended else body)
        last = ended[0].span if ended else body[-1].span if body else function.span
        self._put(self.emitted.end, Place.AT_END, last, made)
        return Plan(replace(function, body=(*made, *ended)), tuple(self.inserts))

    def _region(self, body: Sequence[pto.Operation]) -> tuple[pto.Operation, ...]:
        made: list[pto.Operation] = []
        for node in body:
            first, last = self.reading.places.get(id(node), (-1, -1))
            if first >= 0:
                self._put(self.emitted.before[first], Place.BEFORE, node.span, made)
            made.append(self._inside(node))
            if last >= 0:
                place = Place.AFTER if first == last else Place.BEHIND
                self._put(self.emitted.after[last], place, node.span, made)
        return tuple(made)

    def _inside(self, node: pto.Operation) -> pto.Operation:
        match node:
            case pto.For() | pto.Section():
                return replace(node, body=self._region(node.body))
            case pto.While():
                return replace(node, before=self._region(node.before), after=self._region(node.after))
            case pto.If():
                return replace(node, then_body=self._region(node.then_body), else_body=self._region(node.else_body))
            case _:
                return node

    def _put(self, orders: Iterable[Order], place: Place, span: Span, made: list[pto.Operation]) -> None:
        """Append inserted instructions; a barrier right behind the same one is left out."""
        for order in orders:
            last = made[-1] if made else None
            if isinstance(order, pto.Barrier) and isinstance(last, pto.Barrier) and last.inserted and last == order:
                continue
            node = replace(order, span=span)
            made.append(node)
            self.inserts.append(Insert(node, place))
