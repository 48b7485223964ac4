"""The documents of `castsim builtin` and `castsim compiled`, and of commands on program texts, as `asm` and `lint`."""

from __future__ import annotations

from typing import Annotated

from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Bundles,
    Line,
    Name,
)

# The documents of commands on texts: `asm`, `disasm`, `expand`, `latency`, `lint`, `record`, `schedule` and others.


class Recorded(CommandDocument, name="record"):
    """A kernel in C++ as the `.pto` program of what it did."""

    program: str = says("The kernel.")
    blocks: Annotated[int, ("minimum", 1)] = says("How many cores the kernel was told that there are.")
    statements: Annotated[int, ("minimum", 0)] = says("How many statements the function of the program has.")
    text: str = says("The program.")
    output: str | None = says("The file that it was written to; null if it was not written.")


class Expanded(CommandDocument, name="expand"):
    """A program of tile operations as one of vector instructions."""

    file: str = says("The program.")
    out: str | None = says("The file that the text was written to; null if it was not written.")
    program: str = says("The text.")


class Length(Keys):
    """A number of bundles."""

    static: Bundles = says("In the text.")
    executed: Bundles | None = says("In a run; null if that is not known.")


class Removed(Keys):
    """An instruction that was left out."""

    line: Line = says("Line of the source.")
    instruction: str = says("The instruction.")


class Schedule(CommandDocument, name="schedule"):
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
