"""The documents of commands on texts: `asm`, `disasm`, `expand`, `latency`, `lint`, `record`, `schedule` and others."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from castsim.reports.schemas.keys import Bundles, Bytes, Cycles, Form, Hexadecimal, Keys, Line, Name, says
from castsim.reports.schemas.objects import LintEntry


class Assembled(Form, name="asm"):
    """An assembled program."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    bundles: Bundles = says("Its length.")
    size_bytes: Bytes = says("Size of the code.")
    code: Hexadecimal = says("The code.")
    facts_assumed: list[str] = says("Positions of the encoding that no source states.")
    output: str | None = says("The file that it was written to; null if it was not written.")


class CanonicalText(Form, name="asm-text"):
    """With `--text`: the canonical text of a program."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    text: str = says("The text.")
    output: str | None = says("The file that it was written to; null if it was not written.")


class Recorded(Form, name="record"):
    """A kernel in C++ as the `.pto` program of what it did."""

    program: str = says("The kernel.")
    blocks: Annotated[int, Field(ge=1)] = says("How many cores the kernel was told that there are.")
    statements: Annotated[int, Field(ge=0)] = says("How many statements the function of the program has.")
    text: str = says("The program.")
    output: str | None = says("The file that it was written to; null if it was not written.")


class DisassembledLine(Keys):
    """A bundle of a binary."""

    address: int = says("Its address in bytes.")
    code: Hexadecimal = says("Its code.")
    text: str = says("Its text.")
    labels: list[str] = says("Labels in front of it.")
    directives: list[str] = says("Directives in front of it.")
    known: bool = says("Whether it is a bundle of the target.")
    remark: str | None = says("What else is to be said; null for nothing.")


class Disassembled(Form, name="disasm"):
    """A disassembled binary."""

    file: str = says("The binary.")
    target: str = says("Name of the target.")
    size_bytes: Bytes = says("Size of the code.")
    unknown_bundles: Bundles = says("How many lines are not bundles of the target.")
    lines: list[DisassembledLine] = says("The bundles.")
    end_labels: list[str] = says("Labels behind the last one.")
    output: str | None = says("The file that the text was written to; null if it was not written.")


class Expanded(Form, name="expand"):
    """A program of tile operations as one of vector instructions."""

    file: str = says("The program.")
    out: str | None = says("The file that the text was written to; null if it was not written.")
    program: str = says("The text.")


class Distance(Keys):
    """The distance of two instructions."""

    producer: str = says("The first instruction.")
    consumer: str = says("The second instruction.")
    register_: str | None = says("What both share; null if only issue rules are about them.", alias="register")
    consumer_operand: str | None = says("Which operand of the second it is; null as `register`.")
    distance_bundles: Bundles | None = says("Bundles until the new value is read; null as `register`.")
    minimum_bundles: Bundles | None = says("The least distance by issue rules; null if there is none.")
    producer_stage: str | None = says("The stage of the write; null where stages do not decide.")
    consumer_stage: str | None = says("The stage of the read; null where stages do not decide.")
    entry_port: str | None = says("The port of the read; null where stages do not decide.")
    rule: str = says("The rules that decide.")
    source: str = says("Where they are from.")


class Latency(Form, name="latency"):
    """The distances of pairs of instructions."""

    pairs: list[Distance | None]
    """One entry for each pair; null where nothing is shared and no rule is about it."""


class Notice(Keys):
    """A notice of the linter, which breaks no rule."""

    kind: str = says("What it is about.")
    bundle: int = says("Number of the bundle, from 0.")
    line: Line = says("Line of the source.")
    message: str = says("The notice in words.")


class Lint(Form, name="lint"):
    """What the linter found."""

    program: str = says("The file.")
    target: str = says("Name of the target.")
    rules: list[str] = says("The rules that it checks.")
    lint: list[LintEntry] = says("The certain findings.")
    lint_possible: list[LintEntry] = says("Findings that depend on the path, on predicates or on start values.")
    notices: list[Notice] = says("Notices.")


class Length(Keys):
    """A number of bundles."""

    static: Bundles = says("In the text.")
    executed: Bundles | None = says("In a run; null if that is not known.")


class Removed(Keys):
    """An instruction that was left out."""

    line: Line = says("Line of the source.")
    instruction: str = says("The instruction.")


class Schedule(Form, name="schedule"):
    """A scheduled program."""

    file: str = says("The source.")
    target: str = says("Name of the target.")
    output: str | None = says("The file that it was written to; null if it was not written.")
    method: str = says("How loops were scheduled.")
    bundles: Length = says("Its length.")
    padding: Length = says("The length with one instruction a bundle and NOPs.")
    registers: dict[Name, list[str]] = says("The registers of each virtual one.")
    removed: list[Removed] = says("Instructions that were left out.")
    program: str = says("The text.")


class MovesBlock(Keys):
    """A block that moves lanes."""

    first_line: Line = says("Its first line.")
    last_line: Line = says("Its last line.")
    reason_kept: str | None = says("Why it stays; null if it was written anew.")
    removed: dict[Name, int] = says("How many of each instruction were removed.")
    vector_operations_before: int = says("Vector operations before.")
    vector_operations_after: int = says("Vector operations after.")
    bundles_before: Bundles = says("Length before.")
    bundles_after: Bundles = says("Length after.")


class Unswizzled(Form, name="unswizzle"):
    """A program without the moves of lanes that it can do without."""

    program: str = says("The file.")
    target: str = says("Name of the target.")
    changed: bool = says("Whether anything was removed.")
    cycles_before: Cycles = says("Cycles before.")
    cycles_after: Cycles = says("Cycles after.")
    cycles_saved: Cycles = says("The difference.")
    outputs_unchanged: dict[Name, bool] = says("Whether each output is the same, bit by bit.")
    blocks: list[MovesBlock] = says("The blocks that move lanes.")
    text: str = says("The new program.")
    output: str | None = says("The file that it was written to; null if it was not written.")
