"""The documents of `castsim cast`, `scratch`, `diff` and `view`."""

from __future__ import annotations

from typing import Literal

from castsim.execution.outcomes import Outcome
from castsim.machines.target_cast import CastForm
from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Bits,
    Bytes,
    CauseName,
    Cycles,
    Elements,
    Line,
    Name,
    Number,
    Percent,
    Seconds,
    Ulps,
    Value,
)


class CastResult(Keys):
    """What one value becomes on one target under one mode."""

    target: str | None = says("Name of the target; null for the abstract cast.")
    forms: list[CastForm]
    """The forms of the target's tile cast that give this result: `1d` of contiguous tiles, `2d` of others; empty if it
    has no forms."""
    rounding: str = says("The rounding in force.")
    overflow: str = says("The overflow policy in force: `saturate`, `special` or `wrap`.")
    saturation: str | None
    """The saturation mode in force, `on` or `off`, where the target has a choice; else what happens beyond the range:
    `clamps`, `none: inf`, `none: NaN`, `none: low bits`, or `not needed`; null for the abstract cast."""
    input_bits: Bits = says("The code that was cast.")
    output_bits: Bits = says("The code of the result.")
    value: Value = says("The number that the result stands for, or `nan`, `inf`, `-inf`.")
    inexact: bool = says("Whether it differs from the value that was cast.")
    outcome: Outcome
    """What became of the value: `exact`, `rounded`, `clamped`, `wrapped`, `overflow` or `nan` (NaN became a number)."""
    ulps_from_abstract: Ulps | None
    """Distance from the abstract cast with the rounding asked for; null between NaN and a number."""
    accepted_by: dict[Name, bool] = says("Whether each specification accepts it, by name and version.")


class CastDifference(Keys):
    """A value and a rounding for which targets differ."""

    input_bits: Bits = says("The code that was cast.")
    rounding_asked: str | None = says("The rounding asked for; null for the default.")
    output_bits: dict[Name, Bits]
    """The result on each target (and its form, `a5_2d`, if they differ), and of the abstract cast as `abstract`."""
    max_ulps_apart: Ulps | None = says("The largest distance among them; null if some are NaN and some are not.")


class Skipped(Keys):
    """A target that was passed over."""

    target: str = says("Its name.")
    reason: str = says("Why.")


class AcceptedResults(Keys):
    """The results that a specification accepts for one value."""

    specification: str = says("Name and version, `tosa@1.1`.")
    input_bits: Bits = says("The code that was cast.")
    accepts: str = says("Form of the set: `exact`, `interval`, `class` (NaN only) or `any`.")
    lowest: Number | None = says("The lowest number; null if there is none.")
    highest: Number | None = says("The highest number; null if there is none.")
    further: Number | None = says("A number beside those from `lowest` to `highest`; null if there is none.")
    nan: bool = says("Whether every NaN is accepted.")
    rule: str = says("Name of the rule.")
    meaning: str = says("The rule in words.")
    requires: list[str] = says("Profiles and extensions that the cast needs.")
    status: str = says("How well the rule is known.")
    source: str = says("Where it is from.")


class Cast(CommandDocument, name="cast"):
    """Values cast, value by value."""

    results: list[CastResult] = says("One entry for each value, target and mode.")
    differences: list[CastDifference] = says("Where targets differ.")
    skipped: list[Skipped] = says("Targets that do not have the cast.")
    warnings: list[str] = says("What targets did not do as asked.")
    specifications: list[AcceptedResults] = says("What the specifications asked for accept.")


class TextResult(Keys):
    """What one value becomes, from text or to text."""

    given: str = says("The value as typed.")
    text: str | None = says("The result where it is text.")
    output_bits: Bits | None = says("The code of the result where it is a number.")
    value: Value | None = says("That number, or `nan`, `inf`, `-inf`.")


class CastText(CommandDocument, name="cast-text"):
    """Values cast from text or to text."""

    source_format: str = says("Name of the source format, or `string`.")
    destination_format: str = says("Name of the destination format, or `string`.")
    results: list[TextResult] = says("One entry for each value.")


class ScratchTerm(Keys):
    """A term of the sizing formula."""

    name: str = says("What it stands for.")
    bytes_: Bytes = says("Its size.", alias="bytes")


class Shape(Keys):
    """A shape, and what the formula says of it."""

    rows: int = says("Rows.")
    cols: Elements = says("Columns.")
    row_stride_elements: Elements = says("Distance from row to row.")
    formula_bytes: Bytes = says("Bytes of the tmp tile by the formula.")


class TouchedShape(Shape):
    """A shape, what the formula says of it, and what the operations touch."""

    touched_bytes: Bytes = says("Bytes up to the last that the operations touch.")
    touched_bytes_in_blocks: Bytes = says("The same in whole blocks.")
    agrees: bool = says("Whether the formula gives these.")
    reasons: list[str] = says("Why it differs.")


class Scratch(CommandDocument, Shape, name="scratch"):
    """The scratch of a cast of one shape."""

    target: str = says("Name of the target.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    terms: list[ScratchTerm] = says("The terms of the formula, of which the largest decides.")
    touched_bytes: Bytes = says(optional=True)
    """With `--audit`: bytes up to the last that the operations touch."""
    touched_bytes_in_blocks: Bytes = says("With `--audit`: the same in whole blocks.", optional=True)
    agrees: bool = says("With `--audit`: whether the formula gives these.", optional=True)
    reasons: list[str] = says("With `--audit`: why it differs.", optional=True)


class PairScratch(Keys):
    """What one cast needs."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    formula_bytes: Bytes = says("Bytes of the tmp tile by the formula.")


class EveryScratch(CommandDocument, Shape, name="scratch-all"):
    """With `all`: the scratch that serves every cast of one shape."""

    target: str = says("Name of the target.")
    casts: list[PairScratch] = says("The casts that use scratch; the largest decides.")


class SweepDifference(Keys):
    """The shapes that differ for one reason."""

    reason: str = says("The reason.")
    shapes: int = says("How many shapes.")
    examples: list[TouchedShape] = says("Some of them.")


class ScratchSweep(CommandDocument, name="scratch-sweep"):
    """With `--sweep`: the scratch of a cast over ranges of shapes."""

    target: str = says("Name of the target.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    shapes: int = says("How many shapes.")
    equal_to_the_byte: int = says("How many of them the formula gives to the byte.")
    formula_smaller: int = says("For how many it is smaller than what is touched.")
    explained: bool = says("Whether every difference has a known reason.")
    differences: list[SweepDifference] = says("The shapes that differ, by reason.")


class ScratchUse(Keys):
    """A cast with a tmp tile."""

    line: Line = says("Line of the source.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    rows: int = says("Rows that are cast.")
    cols: Elements = says("Columns that are cast.")
    row_stride_elements: Elements = says("Distance from row to row of the source.")
    tmp: str = says("Name of the tmp tile.")
    given_bytes: Bytes = says("Its size.")
    needed_bytes: Bytes = says("The size that the cast needs.")


class ProgramScratch(CommandDocument, name="scratch-program"):
    """The scratch of a program."""

    program: str = says("The file.")
    target: str = says("Name of the target.")
    casts: list[ScratchUse] = says("The casts with tmp tiles.")
    occupied_bytes: Bytes = says("Bytes of the buffer that tiles take.")
    minimal_bytes: Bytes = says("The same with the smallest tmp tiles.")
    capacity_bytes: Bytes = says("Size of the buffer.")
    suffices: bool = says("Whether every tmp tile is large enough.")
    fits: bool = says("Whether all fits the buffer with the smallest tmp tiles.")


# The documents of `castsim diff` and `castsim view`.


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


class Difference(CommandDocument, name="diff"):
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


class Viewed(CommandDocument, name="view"):
    """A file that was shown."""

    file: str = says("The file.")
    kind: Literal["program", "result", "report", "trace"] = says("What it is; of the first two a report was made.")
    path: str = says("The report or the trace.")
    address: str | None = says("Where a trace was served; null if it was not.")
