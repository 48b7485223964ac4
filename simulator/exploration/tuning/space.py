"""The points to try: choices by name, the values of each, and conditions between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from math import prod

from castsim.isa.errors import ReadError
from castsim.isa.expressions import Expression, Value
from castsim.isa.spans import SourceText, Span
from castsim.isa.value_lists import LEGAL, read_values

MOST_POINTS = 1_000_000
"""Combinations of all values, before conditions."""

Choices = Mapping[str, Value | float]
"""A point: the value of each choice."""

_NAMED = re.compile(r"\s*%?([A-Za-z_][\w.-]*)\s+in\b\s*", re.ASCII)
_NEXT = re.compile(r",(?=\s*%?[A-Za-z_][\w.-]*\s+in\b)", re.ASCII)


class Kind(Enum):
    """What a choice is about."""

    TILE = "tile"
    ARGUMENT = "arg"
    OPTION = "option"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class Axis:
    """A choice with its values; `span` is where it was typed, None if it comes from the program or from Python."""

    kind: Kind
    name: str
    values: tuple[Value | float, ...]
    span: Span | None = None


def read_axes(kind: Kind, text: str) -> tuple[Axis, ...]:
    """Return the choices of `NAME in VALUES, NAME in VALUES`.

    Raises:
        ReadError: it is not of this form; carries the place within the option.
    """
    option = f"--{kind.value}"
    source = SourceText(option, text)
    legal = tuple(f"{option} 'R in {form}'" for form in ("8..64", "8..64:8", "8..64*2", "128,256"))
    found: list[Axis] = []
    begin = 0
    for end in (*(match.start() for match in _NEXT.finditer(text)), len(text)):
        head = _NAMED.match(text, begin, end)
        if head is None:
            span = Span.within(source, min(begin, max(0, len(text) - 1)), max(1, end - begin))
            raise ReadError(f"{option} {text[:60]}: not of the form NAME in VALUES", span=span, legal=legal)
        values = read_values(source, head.end(), end)
        found.append(Axis(kind, head[1], values, Span.within(source, head.start(1), len(head[1]))))
        begin = end + 1
    return tuple(found)


def read_condition(text: str) -> Expression:
    """Return a condition on the choices.

    Raises:
        ReadError: it is no expression, or one of numbers alone; carries the place within the option.
    """
    condition = Expression(text, Span("--where", 1, 1, text, max(1, len(text))))
    if not condition.names:
        span = Span("--where", 1, 1, text, max(1, len(text)))
        raise ReadError(f"'{text}' uses none of the choices", span=span, legal=("R*C*4 <= 65536",))
    return condition


@dataclass(frozen=True, slots=True)
class Space:
    """All points: every combination of values for which every condition holds.

    `fixed` are names with one value that conditions may use as well.
    """

    axes: tuple[Axis, ...]
    conditions: tuple[Expression, ...] = ()
    fixed: Choices = field(default_factory=dict)

    @classmethod
    def of(cls, axes: Sequence[Axis], conditions: Sequence[Expression] = (), fixed: Choices | None = None) -> Space:
        """Return a space, checked.

        Raises:
            ReadError: no choice, a name twice, a name in a condition that is no choice, too many combinations.
        """
        if not axes:
            raise ReadError(
                "nothing to tune: give a parameter several values, such as --tile 'R in 8,16,32'",
                legal=("// castsim: parameter R = 16 in 8..64", "--tile 'R in 8..64'", "--arg 'rows in 64,128'"),
            )
        names = [axis.name for axis in axes]
        for place, axis in enumerate(axes):
            if axis.name in names[:place]:
                raise ReadError(f"--{axis.kind.value}: '{axis.name}' is given twice", span=axis.span)
            if not axis.values:
                raise ReadError(f"--{axis.kind.value}: '{axis.name}' has no values", span=axis.span, legal=LEGAL)
        known = dict(fixed or {})
        for condition in conditions:
            for name in condition.names:
                if name not in (*names, *known):
                    span = Span("--where", 1, condition.text.find(name) + 1, condition.text, len(name))
                    raise ReadError(f"'{name}' is not one of the choices", span=span, legal=(*names, *known))
        size = prod(len(axis.values) for axis in axes)
        if size > MOST_POINTS:
            raise ReadError(
                f"{size} combinations are more than {MOST_POINTS}", legal=("fewer values, such as 8..64*2",)
            )
        return cls(tuple(axes), tuple(conditions), known)

    @property
    def combinations(self) -> int:
        """Combinations of values, conditions apart."""
        return prod(len(axis.values) for axis in self.axes)

    def points(self) -> Iterator[Choices]:
        """Yield the points, the last choice moving fastest.

        Raises:
            ReadError: a condition that has no value, such as a division by zero.
        """
        names = [axis.name for axis in self.axes]
        for values in product(*(axis.values for axis in self.axes)):
            choices = dict(zip(names, values, strict=True))
            if all(self._holds(condition, choices) for condition in self.conditions):
                yield choices

    def _holds(self, condition: Expression, choices: Choices) -> bool:
        known = {**self.fixed, **choices}
        return bool(condition.value({name: each for name, each in known.items() if not isinstance(each, float)}))
