"""The documents of `castsim diff` and `castsim view`."""

from __future__ import annotations

from typing import Literal

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
    says,
)


class ComparedSide(Keys):
    """A side of the comparison."""

    file: str = says("The program, or the JSON of its run.")
    entry: str | None = says("The function; null where there is none.")
    target: str = says("Name of the target.")
    seconds: Seconds | None = says("Its cycles at the target's frequency; null if no cycles are modelled.")
    from_json: bool = says("Whether it was read from a JSON result.")


class LineThatDiffers(Keys):
    """A line that differs in text or cycles."""

    line_a: Line | None = says("Line of A; null if it does not stand there.")
    line_b: Line | None = says("Line of B; null if it does not stand there.")
    change: Literal["added", "removed", "changed", "renamed", "moved", "cycles"]
    """What became of it: `renamed` says the same with other names of values, `cycles` differs in nothing else."""
    cycles_a: Cycles | None
    """Cycles of A from start to end of its executions, added up; null where it takes none, or they are not known."""
    cycles_b: Cycles | None = says("The same of B.")
    causes_a: dict[CauseName, Cycles] | None
    """Cycles that pipes spent on it in A, by cause; null as `cycles_a`, and where a JSON result does not tell."""
    causes_b: dict[CauseName, Cycles] | None = says("The same of B.")
    text_a: str | None
    """The line of A without blanks around it, or the instructions in it if a side is a JSON result."""
    text_b: str | None = says("The same of B.")


class ElementThatDiffers(Keys):
    """An element of an output that differs."""

    index: list[int] = says("Its index.")
    bits_a: Bits = says("Its code in A.")
    bits_b: Bits = says("Its code in B.")
    value_a: Value = says("The number in A.")
    value_b: Value = says("The number in B.")


class ComparedOutput(Keys):
    """An output of both sides, or of one."""

    name: str = says("Its name in A, in B if A has none.")
    equal: bool = says("Whether it has the same format and bits; shapes of as many elements may differ.")
    differing: Elements | None
    """How many elements differ in their bits; null if both have other numbers of them, one side lacks it, or only
    digests are known."""
    first: list[ElementThatDiffers] = says("The first of them.")
    name_a: str | None = says("Its name in A; null if A lacks it.")
    format_a: str | None = says("Name of its format in A; null as `name_a`.")
    shape_a: list[Elements] | None = says("Extent of each dimension in A; null as `name_a`.")
    name_b: str | None = says("Its name in B; null if B lacks it.")
    format_b: str | None = says("Name of its format in B; null as `name_b`.")
    shape_b: list[Elements] | None = says("Extent of each dimension in B; null as `name_b`.")


class PipeThatDiffers(Keys):
    """A pipe whose cycles differ."""

    pipe: Name = says("The pipe.")
    causes_a: dict[CauseName, Cycles] = says("Its cycles in A by cause, without zeros; empty if A has no such pipe.")
    causes_b: dict[CauseName, Cycles] = says("The same of B.")


class Difference(Form, name="diff"):
    """Two runs, compared. Nothing differs if `equal` is true and `lines` is empty."""

    equal: bool = says("Whether cycles and outputs are the same; the text of the programs does not count.")
    cycles_a: Cycles | None = says("Cycles of A; null if none are modelled.")
    cycles_b: Cycles | None = says("Cycles of B; null if none are modelled.")
    slowdown_percent: Percent | None
    """By how much B takes more cycles than A, negative if fewer; null without cycles, or if A takes none and B some."""
    lines: list[LineThatDiffers] = says("The lines that differ in text or cycles, in the order of the programs.")
    outputs: list[ComparedOutput] = says("Every output; empty if no values were computed.")
    pipes: list[PipeThatDiffers] = says("The pipes whose cycles differ.")
    a: ComparedSide = says("The first side.")
    b: ComparedSide = says("The second side.")


class Viewed(Form, name="view"):
    """A file that was shown."""

    file: str = says("The file.")
    kind: Literal["program", "result", "report", "trace"] = says("What it is; of the first two a report was made.")
    path: str = says("The report or the trace.")
    address: str | None = says("Where a trace was served; null if it was not.")
