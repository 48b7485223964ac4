"""The documents of `castsim verify`."""

from __future__ import annotations

from typing import ClassVar

from castsim.reports.schemas.keys import Bits, Date, Form, Keys, Name, Scalar, Seconds, Sha256
from castsim.reports.schemas.objects import SourcesEntry, VersionsOfRun, WorkerCodes, WorkerEntry


class StatusCounts(Keys):
    """Numbers of parts by how far they are."""

    done: int
    """Done."""
    partial: int
    """Begun."""
    pending: int
    """Not begun."""


class CodeMismatch(Keys):
    """A code for which the results differ."""

    code: int
    """The code that was cast."""
    result: int
    """The result."""
    expected: int
    """The right result."""
    random: int | None
    """The random word of stochastic rounding; null for others."""


class VerifiedPart(Keys):
    """A cast under one mode, and how far it is."""

    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    rounding: str
    """The rounding."""
    overflow: str
    """The overflow policy."""
    tier: str
    """What is judged."""
    against: str
    """What judges."""
    inputs: str
    """The set of codes."""
    count: int
    """How many samples."""
    seed: int
    """Of the samples."""
    status: str
    """`done`, `partial` or `pending`."""
    codes: int
    """How many codes are in the set."""
    checked: int
    """How many results were compared."""
    mismatches: int
    """How many differ."""
    undecided: int
    """How many nothing judges."""
    first_mismatches: list[CodeMismatch]
    """The first ones that differ."""
    done: list[list[int]]
    """Stretches of the set that are done: the first, and the one behind the last."""
    cpu_seconds: Seconds
    """Time that it took."""
    codes_per_cpu_second: int | None
    """Speed; null if nothing was done."""
    date: Date | None
    """The day of the last work; null if nothing was done."""
    computed_by: list[WorkerCodes]
    """Who tried how many codes, as far as that was kept."""


class MismatchDetail(Keys):
    """A mismatch with its numbers; each is `no code` where the code is not one of the format."""

    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    rounding: str
    """The rounding."""
    overflow: str
    """The overflow policy."""
    tier: str
    """What is judged."""
    against: str
    """What judges."""
    input_bits: Bits
    """The code that was cast."""
    input_value: int | float | str
    """Its number, or `nan`, `inf`, `-inf`."""
    random_word: Bits | None
    """The random word of stochastic rounding; null for others."""
    output_bits: Bits
    """The result."""
    output_value: int | float | str
    """Its number, or `nan`, `inf`, `-inf`."""
    expected_bits: Bits
    """The right result."""
    expected_value: int | float | str
    """Its number, or `nan`, `inf`, `-inf`."""


class Verification(Form):
    """Casts compared bit by bit."""

    NAME: ClassVar[str] = "verify"

    kind: str
    """Always `castsim verification record`."""
    complete: bool
    """Whether all is done."""
    parts_by_status: StatusCounts
    """How many parts are done."""
    codes_checked: int
    """How many results were compared."""
    mismatches: int
    """How many differ."""
    input_sets: dict[Name, str]
    """Why each set of codes is enough, or what it is."""
    sources: SourcesEntry
    """What the record rests on."""
    runs: list[VersionsOfRun]
    """When it was worked on."""
    workers: list[WorkerEntry]
    """Who computed."""
    parts: list[VerifiedPart]
    """The casts."""
    record: str | None
    """The file that keeps it; null if none does."""
    mismatch_details: list[MismatchDetail]
    """The first mismatches with their numbers."""


class LoweredCell(Keys):
    """A cast of the specification on a target."""

    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    attributes: dict[Name, Scalar]
    """Attributes of the operator."""
    target: str
    """Name of the target."""
    number: int
    """Its place among all, from 0."""


class LoweredResult(Keys):
    """What running a lowered cast again gave."""

    way: str
    """How it is lowered."""
    verdict: str
    """What was claimed."""
    chain: list[str]
    """The instructions."""
    program_sha256: Sha256
    """Digest of the program's text."""
    inputs: str
    """`all`, `samples` or `counterexample`."""
    codes: int
    """How many codes were tried."""
    wrong: int
    """How many results are against the claim."""
    first: int | None
    """The first such code; null if there is none."""
    seconds: Seconds
    """Time that it took."""
    options: list[list[Scalar]]
    """The options of the target with which it ran: name and value."""


class CheckedCell(LoweredCell):
    """A cast that was run again."""

    result: LoweredResult | None
    """What it gave; null if no chain was found."""
    computed_by: int | None
    """Who computed it: the place in `workers`, from 0; null if that was not kept."""


class LoweringVerification(Form):
    """With `--lowering`: lowered casts run again from their text."""

    NAME: ClassVar[str] = "verify-lowering"

    kind: str
    """Always `castsim lowering record`."""
    specification: str
    """Name of the specification."""
    version: str
    """Its version."""
    samples: int
    """Samples of wide sources."""
    seed: int
    """Of the samples."""
    complete: bool
    """Whether all is done."""
    cells: int
    """How many casts."""
    cells_without_a_way: int
    """For how many no chain was found."""
    programs_run: int
    """How many programs ran."""
    counterexamples_run: int
    """How many counterexamples ran."""
    programs_with_options: int
    """How many of the programs need options of the target."""
    codes: int
    """How many codes were tried."""
    wrong: int
    """How many claims do not stand."""
    planner_sha256: Sha256
    """Digest of the sources that it rests on."""
    runs: list[VersionsOfRun]
    """When it was worked on."""
    workers: list[WorkerEntry]
    """Who computed."""
    results: list[CheckedCell]
    """The casts that are done."""
    missing: list[LoweredCell]
    """The others."""


class SubstitutionPart(Keys):
    """A function that stands in for an instruction."""

    name: str
    """The target, and the instruction with its operands."""
    format: str
    """Name of its source format."""
    constant: int | None
    """Its constant; null if it has none."""
    facts: str
    """Digest of what its values rest on."""
    shape: str
    """The function that stands in."""
    codes: int
    """How many codes there are."""
    tried: int
    """How many were compared."""
    mismatches: int
    """How many differ."""
    first_mismatches: list[int]
    """The first ones that differ."""
    cpu_seconds: Seconds
    """Time that it took."""
    date: Date | None
    """The day of the last work; null if nothing was done."""
    computed_by: list[WorkerCodes]
    """Who tried how many codes, as far as that was kept."""


class SubstitutionVerification(Form):
    """With `--substitutions`: functions that stand in for instructions."""

    NAME: ClassVar[str] = "verify-substitutions"

    kind: str
    """Kind of the record."""
    complete: bool
    """Whether all is done."""
    codes_checked: int
    """How many codes were compared."""
    mismatches: int
    """How many differ."""
    sources: SourcesEntry
    """What the record rests on."""
    runs: list[VersionsOfRun]
    """When it was worked on."""
    workers: list[WorkerEntry]
    """Who computed."""
    parts: list[SubstitutionPart]
    """The functions."""
