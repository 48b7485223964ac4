"""Documents that commands build themselves, and those of records."""

from __future__ import annotations

from typing import Annotated, Literal

from castsim.exploration.checking import Severity
from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Bits,
    Bundles,
    Column,
    Cycles,
    Date,
    ErrorEntry,
    Line,
    Name,
    Scalar,
    Seconds,
    Sha256,
    SourcesEntry,
    VersionsOfRun,
    WorkerCodes,
    WorkerEntry,
)

# What every command that fails writes; `castsim check`, `run --all-entries`, `schema`, `completion`, `manual`.


class FindingEntry(Keys):
    """An error, warning or note about a file."""

    severity: Severity = says("How grave it is.")
    kind: str = says("Its kind.")
    message: str = says("The finding in words.")
    file: str = says("The file.")
    line: Line | None = says("Line, from 1; null if it is about the whole file.")
    column: Column | None = says("Column in code points, from 1; null as `line`.")
    end_column: Column | None = says("Column behind the last character; null as `line`.")
    help: str | None = says("The cure; null if there is no one cure.", lambda found: found.help or None)
    legal: list[str] = says("What would be legal.")


class Check(CommandDocument, name="check"):
    """All findings of files."""

    findings: list[FindingEntry] = says("The findings, file by file.")


class Failure(CommandDocument, name="errors"):
    """The document of a command that fails; the exit code is 1 or 2."""

    errors: list[ErrorEntry] = says("The errors.")


class FormEntry(Keys):
    """A document that a command may write."""

    name: str = says("Its name.")
    version: int = says("Its `schema_version`.")
    meaning: str = says("What it tells.")


class CommandSchemas(Keys):
    """A command."""

    command: str = says("Its name.")
    documents: list[FormEntry] = says("What it may write.")


class SchemaList(CommandDocument, name="schema-list"):
    """The documents of all commands."""

    commands: list[CommandSchemas] = says("The commands.")


class SchemaEntry(CommandDocument, name="schema"):
    """The schema of a command's documents."""

    command: str = says("Its name.")
    schema_: dict[str, object] = says("The JSON Schema, draft 2020-12.", alias="schema")


class Completion(CommandDocument, name="completion"):
    """The output of `castsim completion`."""

    shell: str = says("Name of the shell.")
    script: str = says("The script that completes commands in it.")


class Manual(CommandDocument, name="manual"):
    """The output of `castsim manual`."""

    page: str = says("The manual page.")


class Entry(Keys):
    """A function of a file."""

    entry: str = says("Name of the function.")
    cycles: Cycles | None = says("Its cycles; null if it cannot be run, or they are not modelled.")
    error: str | None = says("Why it cannot be run; null if it can.")


class AllEntries(CommandDocument, name="run-all-entries"):
    """Every function of a file, run separately; with `--all-entries`."""

    program: str = says("The file.")
    entries: list[Entry] = says("The functions.")
    failed: int = says("How many cannot be run.")


# `castsim view`, `sweep` and `tosa`.


class Viewed(CommandDocument, name="view"):
    """A file that was shown."""

    file: str = says("The file.")
    kind: Literal["program", "result", "report", "trace"] = says("What it is; of the first two a report was made.")
    path: str = says("The report or the trace.")
    address: str | None = says("Where a trace was served; null if it was not.")


class Crossing(Keys):
    """Two routes, the first faster below `x`, the second from `x` on."""

    what: str = says("What both do, such as the type pair.")
    below: str = says("The route that is faster below.")
    above: str = says("The route that is faster from there on.")
    x: float = says("Elements of a cast; of programs, the value of the argument that the plots are over.")


class SweepDrawn(CommandDocument, name="sweep-report"):
    """The results of a sweep, drawn."""

    report: str = says("The Parquet file.")
    html: str = says("The page.")
    rows: int = says("Rows of the results.")
    failed: int = says("Those that failed.")
    crossings: list[Crossing] = says("Where another of two routes becomes the faster one.")


class SweepResults(CommandDocument, name="sweep"):
    """A finished sweep; its rows are in the Parquet file."""

    out: str = says("The Parquet file.")
    ledger: str = says("The file that holds what is done, and from which the same command goes on.")
    rows: int = says("Rows of the results: points that are not excluded.")
    failed: int = says("Those that failed.")
    chunks: int = says("Chunks into which the points were divided.")
    resumed_chunks: int = says("Those that an earlier start had done.")
    version: str = says("The version of castsim.")
    facts_digest: Sha256 = says("Digest of the facts of all targets of the sweep.")


class TosaResult(Keys):
    """One call of a function."""

    arguments: list[int] = says("Its arguments.")
    result: list[int] = says("Its result; a scale is multiplier and shift.")


class Tosa(CommandDocument, name="tosa"):
    """The results of a helper function of the TOSA specification."""

    function: str = says("Name of the function.")
    results: list[TosaResult] = says("One entry for each call.")


# Commands on program texts: `record`, `expand`, `schedule`.


class Recorded(CommandDocument, name="record"):
    """A kernel in C++ as a `.pto` program of its recorded operations."""

    program: str = says("The kernel.")
    blocks: Annotated[int, ("minimum", 1)] = says("How many cores the kernel was told that there are.")
    statements: Annotated[int, ("minimum", 0)] = says("How many statements the function of the program has.")
    text: str = says("The program.")
    output: str | None = says("The file that it was written to; null if it was not written.")


class Expanded(CommandDocument, name="expand"):
    """A program of tile operations rewritten as vector instructions."""

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
    spilled: list[str] = says("Virtual registers whose values wait in local memory or are computed again.")
    program: str = says("The text.")


# `castsim verify`: what its records hold.


class StatusCounts(Keys):
    """Numbers of parts by progress."""

    done: int = says("Done.")
    partial: int = says("Begun.")
    pending: int = says("Not begun.")


class CodeMismatch(Keys):
    """A code for which the results differ."""

    code: int = says("The code that was cast.")
    result: int = says("The result.")
    expected: int = says("The right result.")
    random: int | None = says("The random word of stochastic rounding; null for others.")


class VerifiedPart(Keys):
    """A cast under one mode, and its progress."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    rounding: str = says("The rounding.")
    overflow: str = says("The overflow policy.")
    tier: str = says("What is judged.")
    against: str = says("What judges.")
    inputs: str = says("The set of codes.")
    count: int = says("How many samples.")
    seed: int = says("Of the samples.")
    status: str = says("`done`, `partial` or `pending`.")
    codes: int = says("How many codes are in the set.")
    checked: int = says("How many results were compared.")
    mismatches: int = says("How many differ.")
    undecided: int = says("How many nothing judges.")
    first_mismatches: list[CodeMismatch] = says("The first ones that differ.")
    done: list[list[int]] = says("Stretches of the set that are done: the first, and the one behind the last.")
    cpu_seconds: Seconds = says("Time that it took.")
    codes_per_cpu_second: int | None = says("Speed; null if nothing was done.")
    date: Date | None = says("The day of the last work; null if nothing was done.")
    computed_by: list[WorkerCodes] = says("Who tried how many codes, as far as that was kept.")


class MismatchDetail(Keys):
    """A mismatch with its numbers; `no code` replaces the number of an invalid code."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    rounding: str = says("The rounding.")
    overflow: str = says("The overflow policy.")
    tier: str = says("What is judged.")
    against: str = says("What judges.")
    input_bits: Bits = says("The code that was cast.")
    input_value: int | float | str = says("Its number, or `nan`, `inf`, `-inf`.")
    random_word: Bits | None = says("The random word of stochastic rounding; null for others.")
    output_bits: Bits = says("The result.")
    output_value: int | float | str = says("Its number, or `nan`, `inf`, `-inf`.")
    expected_bits: Bits = says("The right result.")
    expected_value: int | float | str = says("Its number, or `nan`, `inf`, `-inf`.")


class Verification(CommandDocument, name="verify"):
    """Casts compared bit by bit."""

    kind: str = says("Always `castsim verification record`.")
    complete: bool = says("Whether all is done.")
    parts_by_status: StatusCounts = says("How many parts are done.")
    codes_checked: int = says("How many results were compared.")
    mismatches: int = says("How many differ.")
    input_sets: dict[Name, str] = says("Why each set of codes is enough, or what it is.")
    sources: SourcesEntry = says("What the record rests on.")
    runs: list[VersionsOfRun] = says("When it was worked on.")
    workers: list[WorkerEntry] = says("Who computed.")
    parts: list[VerifiedPart] = says("The casts.")
    record: str | None = says("The file that keeps it; null if none does.")
    mismatch_details: list[MismatchDetail] = says("The first mismatches with their numbers.")


class LoweredCell(Keys):
    """A cast of the specification on a target."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    attributes: dict[Name, Scalar] = says("Attributes of the operator.")
    target: str = says("Name of the target.")
    number: int = says("Its place among all, from 0.")


class LoweredResult(Keys):
    """Result of running a lowered cast again."""

    way: str = says("How it is lowered.")
    verdict: str = says("What was claimed.")
    chain: list[str] = says("The instructions.")
    program_sha256: Sha256 = says("Digest of the program's text.")
    inputs: str = says("`all`, `samples` or `counterexample`.")
    codes: int = says("How many codes were tried.")
    wrong: int = says("How many results are against the claim.")
    first: int | None = says("The first such code; null if there is none.")
    seconds: Seconds = says("Time that it took.")
    options: list[list[Scalar]] = says("The options of the target with which it ran: name and value.")


class CheckedCell(LoweredCell):
    """A cast that was run again."""

    result: LoweredResult | None = says("What it gave; null if no chain was found.")
    computed_by: int | None = says("Who computed it: the place in `workers`, from 0; null if that was not kept.")


class LoweringVerification(CommandDocument, name="verify-lowering"):
    """Lowered casts run again from their text; with `--lowering`."""

    kind: str = says("Always `castsim lowering record`.")
    specification: str = says("Name of the specification.")
    version: str = says("Its version.")
    samples: int = says("Samples of wide sources.")
    seed: int = says("Of the samples.")
    complete: bool = says("Whether all is done.")
    cells: int = says("How many casts.")
    cells_without_a_way: int = says("For how many no chain was found.")
    programs_run: int = says("How many programs ran.")
    counterexamples_run: int = says("How many counterexamples ran.")
    programs_with_options: int = says("How many of the programs need options of the target.")
    codes: int = says("How many codes were tried.")
    wrong: int = says("How many claims do not stand.")
    planner_sha256: Sha256 = says("Digest of the sources that it rests on.")
    runs: list[VersionsOfRun] = says("When it was worked on.")
    workers: list[WorkerEntry] = says("Who computed.")
    results: list[CheckedCell] = says("The casts that are done.")
    missing: list[LoweredCell] = says("The others.")


class SubstitutionPart(Keys):
    """A function that replaces an instruction."""

    name: str = says("The target, and the instruction with its operands.")
    format: str = says("Name of its source format.")
    constant: int | None = says("Its constant; null if it has none.")
    facts: str = says("Digest of what its values rest on.")
    shape: str = says("The function that stands in.")
    codes: int = says("How many codes there are.")
    tried: int = says("How many were compared.")
    mismatches: int = says("How many differ.")
    first_mismatches: list[int] = says("The first ones that differ.")
    cpu_seconds: Seconds = says("Time that it took.")
    date: Date | None = says("The day of the last work; null if nothing was done.")
    computed_by: list[WorkerCodes] = says("Who tried how many codes, as far as that was kept.")


class SubstitutionVerification(CommandDocument, name="verify-substitutions"):
    """Functions that replace instructions; with `--substitutions`."""

    kind: str = says("Kind of the record.")
    complete: bool = says("Whether all is done.")
    codes_checked: int = says("How many codes were compared.")
    mismatches: int = says("How many differ.")
    sources: SourcesEntry = says("What the record rests on.")
    runs: list[VersionsOfRun] = says("When it was worked on.")
    workers: list[WorkerEntry] = says("Who computed.")
    parts: list[SubstitutionPart] = says("The functions.")
