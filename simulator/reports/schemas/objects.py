"""Objects that several documents hold: numbers with their codes, outputs, stale reads, facts."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, JsonValue

from castsim.machines.vliw.findings import StaleReadKind
from castsim.reports.schemas.keys import (
    Bits,
    Bundles,
    Date,
    Elements,
    Form,
    Keys,
    Line,
    Name,
    Scalar,
    Seconds,
    Sha256,
    Value,
    absent,
)
from castsim.targets.schema import Status


class Number(Keys):
    """A code and the number that it stands for."""

    bits: Bits
    """The code in hexadecimal."""
    value: Value
    """The number: JSON has no NaN and no infinities, which are `nan`, `inf`, `-inf`."""


class Output(Keys):
    """An output array."""

    name: str
    """Name of the argument or tensor."""
    file: str | None
    """The `.npy` file that it was written to; null if it was not written."""
    format: str
    """Name of its format."""
    shape: list[Elements]
    """Extent of each dimension."""
    sha256: Sha256
    """Digest of its elements in C order, little-endian."""


class Site(Keys):
    """An instruction of an assembly program."""

    text: str
    """The instruction as canonical text."""
    line: Line
    """Line of the source."""
    bundle: int
    """Number of its bundle, from 0."""
    slot: str
    """Slot of the bundle."""


class StaleRead(Keys):
    """A read that came too early, or of what nothing wrote."""

    kind: StaleReadKind
    """What is wrong."""
    register_: str = Field(alias="register")
    """The register, memory or state."""
    operand: str
    """Which operand of the reader it is."""
    reader: Site
    """The instruction that reads."""
    writer: Site | None
    """The instruction that writes; null if nothing does."""
    distance_bundles: Bundles
    """Bundles issued from the write to the read."""
    needed_bundles: Bundles
    """The smallest distance at which the new value is read."""
    missing_bundles: Bundles
    """The difference."""
    first_issued_bundle: int
    """The issued bundle in which it happened first."""
    times: int
    """How often it happened."""


class FactEntry(Keys):
    """A fact of a target."""

    name: str
    """Its path in the description."""
    status: Status
    """How well it is known."""
    value: JsonValue
    """The number of an option, or an object with the values of the table, whose keys are those of the description."""
    source: str
    """Where it is from."""
    note: str
    """What else is to be said; may be empty."""


class LintEntry(Keys):
    """A finding of the linter."""

    rule: str
    """The rule that is broken."""
    bundle: int
    """Number of the bundle, from 0."""
    line: Line
    """Line of the source."""
    message: str
    """The finding in words."""


class VersionsOfRun(Keys):
    """When a verification worked, and with which versions; the names are those of the packages."""

    date: Date
    """The day."""
    castsim: str
    """Version of castsim."""
    python: str
    """Version of Python."""
    numpy: str
    """Version of NumPy."""
    numba: str | None = Field(default_factory=absent)
    """Version of numba; null if it is not installed."""
    llvmlite: str | None = Field(default_factory=absent)
    """Version of llvmlite; null if it is not installed."""


class WorkerEntry(Keys):
    """Somebody who computed: a process of this machine, or a worker of a cluster; and with what."""

    worker: str
    """Its name in the cluster; `local`: this machine."""
    castsim: str
    """Version of castsim."""
    python: str
    """Version of Python."""
    numpy: str
    """Version of NumPy."""
    sources_sha256: Sha256
    """Digest of castsim's source files, tables and records."""


class WorkerCodes(Keys):
    """Codes that somebody tried."""

    worker: int
    """Its place in `workers`, from 0."""
    codes: int
    """How many codes."""


class SourcesEntry(Keys):
    """The source files that a proof rests on."""

    rule: str
    """How the digests are made."""
    sha256: Sha256
    """Digest of all of them."""
    files: dict[str, Sha256]
    """The digest of each file."""


# The documents of `castsim verify`.


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
