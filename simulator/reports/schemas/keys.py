"""Building blocks of the document models: closed objects, units, optional keys, and shared objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from castsim.execution.timing import Cause
from castsim.isa.formats import Format
from castsim.machines.vliw.findings import StaleReadKind
from castsim.reports.documents import CommandDocument, Keys, identifier, record, says
from castsim.targets.description import Status

Cycles: TypeAlias = Annotated[int, ("unit", "cycles")]
Bundles: TypeAlias = Annotated[int, ("unit", "bundles")]
Bytes: TypeAlias = Annotated[int, ("unit", "bytes")]
Elements: TypeAlias = Annotated[int, ("unit", "elements")]
Seconds: TypeAlias = Annotated[float, ("unit", "seconds")]
Percent: TypeAlias = Annotated[float, ("unit", "percent")]
Ulps: TypeAlias = Annotated[int, ("unit", "ulps")]

CyclesPerElement: TypeAlias = Annotated[float, ("unit", "cycles per element")]

Line: TypeAlias = Annotated[int, ("minimum", 1)]
"""A line of a source file, from 1."""

Column: TypeAlias = Annotated[int, ("minimum", 1)]
"""A column of a source line in code points, from 1."""

Name: TypeAlias = Annotated[str, ("pattern", r"^\S+$")]
"""Key of an object whose keys are names without blanks."""

FormatName: TypeAlias = Annotated[Format, ("pattern", r"^\S+$")]
"""A format, written as its name."""

CauseName: TypeAlias = Annotated[Cause, ("enum", tuple(map(identifier, Cause))), ("type", "string")]
"""A cause of cycles."""

Bits: TypeAlias = Annotated[str, ("pattern", "^0x[0-9a-f]+$")]
"""A code in hexadecimal."""

Hexadecimal: TypeAlias = Annotated[str, ("pattern", "^([0-9a-f]{2})*$")]
"""Bytes in hexadecimal, two digits each."""

Sha256: TypeAlias = Annotated[str, ("pattern", "^[0-9a-f]{64}$")]
"""A SHA-256 digest in hexadecimal."""

Date: TypeAlias = Annotated[str, ("pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
"""A day."""

Special: TypeAlias = Annotated[str, ("enum", ("nan", "inf", "-inf"))]

Value: TypeAlias = int | float | Special
"""A number; NaN and infinities are words, because JSON lacks them."""

Scalar: TypeAlias = bool | int | float | str
"""The value of an option or of an attribute."""


# Objects that several documents hold: numbers with their codes, outputs, stale reads, facts.


class Number(Keys):
    """A code and the number that it stands for."""

    bits: Bits = says("The code in hexadecimal.")
    value: Value = says("The number: JSON has no NaN and no infinities, which are `nan`, `inf`, `-inf`.")


@record
class Output(Keys):
    """An output array."""

    name: str = says("Name of the argument or tensor.")
    file: str | None = says("The `.npy` file that it was written to; null if it was not written.")
    format: str = says("Name of its format.")
    shape: list[Elements] = says("Extent of each dimension.")
    sha256: Sha256 = says("Digest of its elements in C order, little-endian.")


class Site(Keys):
    """An instruction of an assembly program."""

    text: str = says("The instruction as canonical text.")
    line: Line = says("Line of the source.", "span.line")
    bundle: int = says("Number of its bundle, from 0.")
    slot: str = says("Slot of the bundle.", "slot.name")


class StaleRead(Keys):
    """A read before its result is available, or of unwritten memory."""

    kind: StaleReadKind = says("Kind of the stale read.")
    register_: str = says("The register, memory or state.", "place", key="register")
    operand: str = says("The operand of the reader.", "role")
    reader: Site = says("The reading instruction.")
    writer: Site | None = says("The writing instruction; null if there is none.")
    distance_bundles: Bundles = says("Bundles issued from the write to the read.", "distance")
    needed_bundles: Bundles = says("The smallest distance at which the new value is read.", "needed")
    missing_bundles: Bundles = says("The number of missing bundles.", "missing")
    first_issued_bundle: int = says("The issued bundle of the first occurrence.", "first")
    times: int = says("Number of occurrences.")


@record
class FactEntry(Keys):
    """A fact of a target."""

    name: str = says("Its path in the description.")
    status: Status = says("Evidence for the fact.")
    value: object = says()
    """The number of an option, or an object with the table's values, whose keys are those of the description."""
    source: str = says("Source of the fact.")
    note: str = says("A note; may be empty.")


class LintEntry(Keys):
    """A finding of the linter."""

    rule: str = says("The violated rule.")
    bundle: int = says("Number of the bundle, from 0.")
    line: Line = says("Line of the source.", "span.line")
    message: str = says("The finding in words.")


class VersionsOfRun(Keys):
    """The time of a verification, and the versions of the packages used."""

    date: Date = says("The day.")
    castsim: str = says("Version of castsim.")
    python: str = says("Version of Python.")
    numpy: str = says("Version of NumPy.")
    numba: str | None = says("Version of numba; null if it is not installed.", optional=True)
    llvmlite: str | None = says("Version of llvmlite; null if it is not installed.", optional=True)


class WorkerEntry(Keys):
    """A process on this machine, or a cluster worker, that computed, and its versions."""

    worker: str = says("Its name in the cluster; `local`: this machine.")
    castsim: str = says("Version of castsim.")
    python: str = says("Version of Python.")
    numpy: str = says("Version of NumPy.")
    sources_sha256: Sha256 = says("Digest of castsim's source files, tables and records.")


class WorkerCodes(Keys):
    """Number of codes that a worker tried."""

    worker: int = says("Index of the worker in `workers`, from 0.")
    codes: int = says("Number of codes.")


class SourcesEntry(Keys):
    """The source files that a proof depends on."""

    rule: str = says("Rule for the digests.")
    sha256: Sha256 = says("Digest of all file digests.")
    files: dict[str, Sha256] = says("The digest of each file.")


class ErrorEntry(Keys):
    """An error."""

    kind: str = says("Kind of the error; `internal error` is a fault of castsim.")
    message: str = says("The error in words.")
    file: str | None = says("The file; null if it has no place.")
    line: Line | None = says("Line, from 1; null if it has no place.")
    column: Column | None = says("Column in code points, from 1; null if it has no place.")
    legal: list[str] = says("Valid alternatives.")


class Failure(CommandDocument, name="errors"):
    """The document of a command that fails; the exit code is 1 or 2."""

    errors: list[ErrorEntry] = says("The errors.")


@record
class Entry(Keys):
    """A function of a file."""

    entry: str = says("Name of the function.")
    cycles: Cycles | None = says("Its cycles; null if it cannot be run, or they are not modelled.")
    error: str | None = says("The reason why it cannot be run; null if it can.")


@record
class AllEntries(CommandDocument, name="run-all-entries"):
    """Every function of a file, run separately; with `--all-entries`."""

    program: str = says("The file.")
    entries: Sequence[Entry] = says("The functions.")
    failed: int = says("Number of functions that cannot be run.")
