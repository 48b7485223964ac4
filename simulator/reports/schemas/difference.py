"""The documents of `castsim diff` and `castsim view`."""

from __future__ import annotations

from typing import ClassVar, Literal

from castsim.reports.schemas.keys import (
    Bits,
    CauseName,
    Cycles,
    Elements,
    Form,
    Keys,
    Line,
    Name,
    Percent,
    Seconds,
    Value,
)


class ComparedSide(Keys):
    """A side of the comparison."""

    file: str
    """The program, or the JSON of its run."""
    entry: str | None
    """The function; null where there is none."""
    target: str
    """Name of the target."""
    seconds: Seconds | None
    """Its cycles at the target's frequency; null if no cycles are modelled."""
    from_json: bool
    """Whether it was read from a JSON result."""


class LineThatDiffers(Keys):
    """A line that differs in text or cycles."""

    line_a: Line | None
    """Line of A; null if it does not stand there."""
    line_b: Line | None
    """Line of B; null if it does not stand there."""
    change: Literal["added", "removed", "changed", "renamed", "moved", "cycles"]
    """What became of it: `renamed` says the same with other names of values, `cycles` differs in nothing else."""
    cycles_a: Cycles | None
    """Cycles of A from start to end of its executions, added up; null where it takes none, or they are not known."""
    cycles_b: Cycles | None
    """The same of B."""
    causes_a: dict[CauseName, Cycles] | None
    """Cycles that pipes spent on it in A, by cause; null as `cycles_a`, and where a JSON result does not tell."""
    causes_b: dict[CauseName, Cycles] | None
    """The same of B."""
    text_a: str | None
    """The line of A without blanks around it, or the instructions in it if a side is a JSON result."""
    text_b: str | None
    """The same of B."""


class ElementThatDiffers(Keys):
    """An element of an output that differs."""

    index: list[int]
    """Its index."""
    bits_a: Bits
    """Its code in A."""
    bits_b: Bits
    """Its code in B."""
    value_a: Value
    """The number in A."""
    value_b: Value
    """The number in B."""


class ComparedOutput(Keys):
    """An output of both sides, or of one."""

    name: str
    """Its name in A, in B if A has none."""
    equal: bool
    """Whether it has the same format and bits; shapes of as many elements may differ."""
    differing: Elements | None
    """How many elements differ in their bits; null if both have other numbers of them, one side lacks it, or only
    digests are known."""
    first: list[ElementThatDiffers]
    """The first of them."""
    name_a: str | None
    """Its name in A; null if A lacks it."""
    format_a: str | None
    """Name of its format in A; null as `name_a`."""
    shape_a: list[Elements] | None
    """Extent of each dimension in A; null as `name_a`."""
    name_b: str | None
    """Its name in B; null if B lacks it."""
    format_b: str | None
    """Name of its format in B; null as `name_b`."""
    shape_b: list[Elements] | None
    """Extent of each dimension in B; null as `name_b`."""


class PipeThatDiffers(Keys):
    """A pipe whose cycles differ."""

    pipe: Name
    """The pipe."""
    causes_a: dict[CauseName, Cycles]
    """Its cycles in A by cause, without zeros; empty if A has no such pipe."""
    causes_b: dict[CauseName, Cycles]
    """The same of B."""


class Difference(Form):
    """Two runs, compared. Nothing differs if `equal` is true and `lines` is empty."""

    NAME: ClassVar[str] = "diff"

    equal: bool
    """Whether cycles and outputs are the same; the text of the programs does not count."""
    cycles_a: Cycles | None
    """Cycles of A; null if none are modelled."""
    cycles_b: Cycles | None
    """Cycles of B; null if none are modelled."""
    slowdown_percent: Percent | None
    """By how much B takes more cycles than A, negative if fewer; null without cycles, or if A takes none and B some."""
    lines: list[LineThatDiffers]
    """The lines that differ in text or cycles, in the order of the programs."""
    outputs: list[ComparedOutput]
    """Every output; empty if no values were computed."""
    pipes: list[PipeThatDiffers]
    """The pipes whose cycles differ."""
    a: ComparedSide
    """The first side."""
    b: ComparedSide
    """The second side."""


class Viewed(Form):
    """A file that was shown."""

    NAME: ClassVar[str] = "view"

    file: str
    """The file."""
    kind: Literal["program", "result", "report", "trace"]
    """What it is; of the first two a report was made."""
    path: str
    """The report or the trace."""
    address: str | None
    """Where a trace was served; null if it was not."""
