"""The documents of commands on texts: `asm`, `disasm`, `expand`, `latency`, `lint`, `record`, `schedule` and others."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from castsim.reports.schemas.keys import Bundles, Bytes, Cycles, Form, Hexadecimal, Keys, Line, Name
from castsim.reports.schemas.objects import LintEntry


class Assembled(Form):
    """An assembled program."""

    NAME: ClassVar[str] = "asm"

    file: str
    """The program."""
    target: str
    """Name of the target."""
    bundles: Bundles
    """Its length."""
    size_bytes: Bytes
    """Size of the code."""
    code: Hexadecimal
    """The code."""
    facts_assumed: list[str]
    """Positions of the encoding that no source states."""
    output: str | None
    """The file that it was written to; null if it was not written."""


class CanonicalText(Form):
    """With `--text`: the canonical text of a program."""

    NAME: ClassVar[str] = "asm-text"

    file: str
    """The program."""
    target: str
    """Name of the target."""
    text: str
    """The text."""
    output: str | None
    """The file that it was written to; null if it was not written."""


class Recorded(Form):
    """A kernel in C++ as the `.pto` program of what it did."""

    NAME: ClassVar[str] = "record"

    program: str
    """The kernel."""
    blocks: Annotated[int, Field(ge=1)]
    """How many cores the kernel was told that there are."""
    statements: Annotated[int, Field(ge=0)]
    """How many statements the function of the program has."""
    text: str
    """The program."""
    output: str | None
    """The file that it was written to; null if it was not written."""


class DisassembledLine(Keys):
    """A bundle of a binary."""

    address: int
    """Its address in bytes."""
    code: Hexadecimal
    """Its code."""
    text: str
    """Its text."""
    labels: list[str]
    """Labels in front of it."""
    directives: list[str]
    """Directives in front of it."""
    known: bool
    """Whether it is a bundle of the target."""
    remark: str | None
    """What else is to be said; null for nothing."""


class Disassembled(Form):
    """A disassembled binary."""

    NAME: ClassVar[str] = "disasm"

    file: str
    """The binary."""
    target: str
    """Name of the target."""
    size_bytes: Bytes
    """Size of the code."""
    unknown_bundles: Bundles
    """How many lines are not bundles of the target."""
    lines: list[DisassembledLine]
    """The bundles."""
    end_labels: list[str]
    """Labels behind the last one."""
    output: str | None
    """The file that the text was written to; null if it was not written."""


class Expanded(Form):
    """A program of tile operations as one of vector instructions."""

    NAME: ClassVar[str] = "expand"

    file: str
    """The program."""
    out: str | None
    """The file that the text was written to; null if it was not written."""
    program: str
    """The text."""


class Distance(Keys):
    """The distance of two instructions."""

    producer: str
    """The first instruction."""
    consumer: str
    """The second instruction."""
    register_: str | None = Field(alias="register")
    """What both share; null if only issue rules are about them."""
    consumer_operand: str | None
    """Which operand of the second it is; null as `register`."""
    distance_bundles: Bundles | None
    """Bundles until the new value is read; null as `register`."""
    minimum_bundles: Bundles | None
    """The least distance by issue rules; null if there is none."""
    producer_stage: str | None
    """The stage of the write; null where stages do not decide."""
    consumer_stage: str | None
    """The stage of the read; null where stages do not decide."""
    entry_port: str | None
    """The port of the read; null where stages do not decide."""
    rule: str
    """The rules that decide."""
    source: str
    """Where they are from."""


class Latency(Form):
    """The distances of pairs of instructions."""

    NAME: ClassVar[str] = "latency"

    pairs: list[Distance | None]
    """One entry for each pair; null where nothing is shared and no rule is about it."""


class Notice(Keys):
    """A notice of the linter, which breaks no rule."""

    kind: str
    """What it is about."""
    bundle: int
    """Number of the bundle, from 0."""
    line: Line
    """Line of the source."""
    message: str
    """The notice in words."""


class Lint(Form):
    """What the linter found."""

    NAME: ClassVar[str] = "lint"

    program: str
    """The file."""
    target: str
    """Name of the target."""
    rules: list[str]
    """The rules that it checks."""
    lint: list[LintEntry]
    """The certain findings."""
    lint_possible: list[LintEntry]
    """Findings that depend on the path, on predicates or on start values."""
    notices: list[Notice]
    """Notices."""


class Length(Keys):
    """A number of bundles."""

    static: Bundles
    """In the text."""
    executed: Bundles | None
    """In a run; null if that is not known."""


class Removed(Keys):
    """An instruction that was left out."""

    line: Line
    """Line of the source."""
    instruction: str
    """The instruction."""


class Schedule(Form):
    """A scheduled program."""

    NAME: ClassVar[str] = "schedule"

    file: str
    """The source."""
    target: str
    """Name of the target."""
    output: str | None
    """The file that it was written to; null if it was not written."""
    method: str
    """How loops were scheduled."""
    bundles: Length
    """Its length."""
    padding: Length
    """The length with one instruction a bundle and NOPs."""
    registers: dict[Name, list[str]]
    """The registers of each virtual one."""
    removed: list[Removed]
    """Instructions that were left out."""
    program: str
    """The text."""


class MovesBlock(Keys):
    """A block that moves lanes."""

    first_line: Line
    """Its first line."""
    last_line: Line
    """Its last line."""
    reason_kept: str | None
    """Why it stays; null if it was written anew."""
    removed: dict[Name, int]
    """How many of each instruction were removed."""
    vector_operations_before: int
    """Vector operations before."""
    vector_operations_after: int
    """Vector operations after."""
    bundles_before: Bundles
    """Length before."""
    bundles_after: Bundles
    """Length after."""


class Unswizzled(Form):
    """A program without the moves of lanes that it can do without."""

    NAME: ClassVar[str] = "unswizzle"

    program: str
    """The file."""
    target: str
    """Name of the target."""
    changed: bool
    """Whether anything was removed."""
    cycles_before: Cycles
    """Cycles before."""
    cycles_after: Cycles
    """Cycles after."""
    cycles_saved: Cycles
    """The difference."""
    outputs_unchanged: dict[Name, bool]
    """Whether each output is the same, bit by bit."""
    blocks: list[MovesBlock]
    """The blocks that move lanes."""
    text: str
    """The new program."""
    output: str | None
    """The file that it was written to; null if it was not written."""
