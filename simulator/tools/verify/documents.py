"""The JSON documents of verifications."""

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
    """Numbers of parts by progress."""

    done: int = says("Number of finished parts.")
    partial: int = says("Number of begun parts.")
    pending: int = says("Number of parts not begun.")


class CodeMismatch(Keys):
    """A code for which the results differ."""

    position: int = says("Its position in the set of codes.")
    code: int = says("The code of the input.")
    result: int = says("The result.")
    expected: int = says("The correct result.")
    random: int | None = says("The random word of stochastic rounding; null for other roundings.")


class VerifiedPart(Keys):
    """A cast under one mode, and its progress."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    rounding: str = says("The rounding.")
    overflow: str = says("The overflow policy.")
    tier: str = says("The tested implementation.")
    against: str = says("The reference.")
    inputs: str = says("Name of the set of codes.")
    count: int = says("Number of samples.")
    seed: int = says("Seed of the samples.")
    status: str = says("`done`, `partial` or `pending`.")
    codes: int = says("Number of codes in the set.")
    checked: int = says("Number of compared results.")
    mismatches: int = says("Number of results that differ.")
    undecided: int = says("Number of results without a reference.")
    first_mismatches: list[CodeMismatch] = says("The first results that differ.")
    done: list[list[int]] = says("Finished ranges of the set: the first code, and the one after the last.")
    cpu_seconds: Seconds = says("Time taken.")
    codes_per_cpu_second: int | None = says("Speed; null if nothing was done.")
    date: Date | None = says("The day of the last work; null if nothing was done.")
    computed_by: list[WorkerCodes] = says("Number of codes by worker, as far as it was recorded.")


class MismatchDetail(Keys):
    """A mismatch with its numbers; `no code` replaces the number of an invalid code."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    rounding: str = says("The rounding.")
    overflow: str = says("The overflow policy.")
    tier: str = says("The tested implementation.")
    against: str = says("The reference.")
    input_bits: Bits = says("The code of the input.")
    input_value: int | float | str = says("Its number, or `nan`, `inf`, `-inf`.")
    random_word: Bits | None = says("The random word of stochastic rounding; null for other roundings.")
    output_bits: Bits = says("The result.")
    output_value: int | float | str = says("Its number, or `nan`, `inf`, `-inf`.")
    expected_bits: Bits = says("The correct result.")
    expected_value: int | float | str = says("Its number, or `nan`, `inf`, `-inf`.")


class Verification(CommandDocument, name="verify", version=4):
    """Casts compared bit by bit."""

    kind: str = says("Always `castsim verification record`.")
    complete: bool = says("Whether everything is finished.")
    parts_by_status: StatusCounts = says("Number of parts by status.")
    codes_checked: int = says("Number of compared results.")
    mismatches: int = says("Number of results that differ.")
    input_sets: dict[Name, str] = says("Description of each set of codes, or the reason why it suffices.")
    sources: SourcesEntry = says("The sources on which the record depends.")
    runs: list[VersionsOfRun] = says("The runs that produced the record.")
    workers: list[WorkerEntry] = says("The workers of the computation.")
    parts: list[VerifiedPart] = says("The casts.")
    record: str | None = says("The file of the record; null if there is none.")
    mismatch_details: list[MismatchDetail] = says("The first mismatches with their numbers.")


class LoweredCell(Keys):
    """A cast of the specification on a target."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    attributes: dict[Name, Scalar] = says("Attributes of the operator.")
    target: str = says("Name of the target.")
    number: int = says("Index of the cast among all, from 0.")


class LoweredResult(Keys):
    """Result of running a lowered cast again."""

    way: str = says("Method of the lowering.")
    verdict: str = says("The claim.")
    chain: list[str] = says("The instructions.")
    program_sha256: Sha256 = says("Digest of the program's text.")
    inputs: str = says("`all`, `samples` or `counterexample`.")
    codes: int = says("Number of tried codes.")
    wrong: int = says("Number of results that contradict the claim.")
    first: int | None = says("The first code with such a result; null if there is none.")
    seconds: Seconds = says("Time taken.")
    options: list[list[Scalar]] = says("The options of the target in the run: name and value.")


class CheckedCell(LoweredCell):
    """A cast that was run again."""

    result: LoweredResult | None = says("The result; null if no chain was found.")
    computed_by: int | None = says(
        "The worker that computed it: its index in `workers`, from 0; null if it was not recorded."
    )


class LoweringVerification(CommandDocument, name="verify-lowering", version=3):
    """Lowered casts run again from their text; with `--lowering`."""

    kind: str = says("Always `castsim lowering record`.")
    specification: str = says("Name of the specification.")
    version: str = says("Its version.")
    samples: int = says("Number of samples of wide sources.")
    seed: int = says("Seed of the samples.")
    complete: bool = says("Whether everything is finished.")
    cells: int = says("Number of casts.")
    cells_without_a_way: int = says("Number of casts without a chain.")
    programs_run: int = says("Number of executed programs.")
    counterexamples_run: int = says("Number of executed counterexamples.")
    programs_with_options: int = says("Number of programs that need options of the target.")
    codes: int = says("Number of tried codes.")
    wrong: int = says("Number of wrong claims.")
    planner_sha256: Sha256 = says("Digest of the sources on which it depends.")
    runs: list[VersionsOfRun] = says("The runs that produced the record.")
    workers: list[WorkerEntry] = says("The workers of the computation.")
    results: list[CheckedCell] = says("The finished casts.")
    missing: list[LoweredCell] = says("The unfinished casts.")


class SubstitutionPart(Keys):
    """A function that replaces an instruction."""

    name: str = says("The target, and the instruction with its operands.")
    format: str = says("Name of its source format.")
    constant: int | None = says("Its constant; null if it has none.")
    facts: str = says("Digest of the sources of its values.")
    shape: str = says("The substitute function.")
    codes: int = says("Number of codes.")
    tried: int = says("Number of compared codes.")
    mismatches: int = says("Number of codes that differ.")
    first_mismatches: list[int] = says("The first codes that differ.")
    cpu_seconds: Seconds = says("Time taken.")
    date: Date | None = says("The day of the last work; null if nothing was done.")
    computed_by: list[WorkerCodes] = says("Number of codes by worker, as far as it was recorded.")


class SubstitutionVerification(CommandDocument, name="verify-substitutions", version=2):
    """Functions that replace instructions; with `--substitutions`."""

    kind: str = says("Kind of the record.")
    complete: bool = says("Whether everything is finished.")
    codes_checked: int = says("Number of compared codes.")
    mismatches: int = says("Number of codes that differ.")
    sources: SourcesEntry = says("The sources on which the record depends.")
    runs: list[VersionsOfRun] = says("The runs that produced the record.")
    workers: list[WorkerEntry] = says("The workers of the computation.")
    parts: list[SubstitutionPart] = says("The functions.")
