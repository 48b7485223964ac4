"""The documents of `castsim verify`."""

from __future__ import annotations

from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Bits,
    Date,
    Name,
    Scalar,
    Seconds,
    Sha256,
    SourcesEntry,
    VersionsOfRun,
    WorkerCodes,
    WorkerEntry,
)


class StatusCounts(Keys):
    """Numbers of parts by how far they are."""

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
    """A cast under one mode, and how far it is."""

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
    """A mismatch with its numbers; each is `no code` where the code is not one of the format."""

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
    """What running a lowered cast again gave."""

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
    """With `--lowering`: lowered casts run again from their text."""

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
    """A function that stands in for an instruction."""

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
    """With `--substitutions`: functions that stand in for instructions."""

    kind: str = says("Kind of the record.")
    complete: bool = says("Whether all is done.")
    codes_checked: int = says("How many codes were compared.")
    mismatches: int = says("How many differ.")
    sources: SourcesEntry = says("What the record rests on.")
    runs: list[VersionsOfRun] = says("When it was worked on.")
    workers: list[WorkerEntry] = says("Who computed.")
    parts: list[SubstitutionPart] = says("The functions.")
