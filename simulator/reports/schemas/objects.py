"""Objects that several documents hold: numbers with their codes, outputs, stale reads, facts."""

from __future__ import annotations

from pydantic import JsonValue

from castsim.machines.vliw.findings import StaleReadKind
from castsim.reports.schemas.keys import Bits, Bundles, Date, Elements, Keys, Line, Sha256, Value, absent, says
from castsim.targets.description import Status


class Number(Keys):
    """A code and the number that it stands for."""

    bits: Bits = says("The code in hexadecimal.")
    value: Value = says("The number: JSON has no NaN and no infinities, which are `nan`, `inf`, `-inf`.")


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
    line: Line = says("Line of the source.")
    bundle: int = says("Number of its bundle, from 0.")
    slot: str = says("Slot of the bundle.")


class StaleRead(Keys):
    """A read that came too early, or of what nothing wrote."""

    kind: StaleReadKind = says("What is wrong.")
    register_: str = says("The register, memory or state.", alias="register")
    operand: str = says("Which operand of the reader it is.")
    reader: Site = says("The instruction that reads.")
    writer: Site | None = says("The instruction that writes; null if nothing does.")
    distance_bundles: Bundles = says("Bundles issued from the write to the read.")
    needed_bundles: Bundles = says("The smallest distance at which the new value is read.")
    missing_bundles: Bundles = says("The difference.")
    first_issued_bundle: int = says("The issued bundle in which it happened first.")
    times: int = says("How often it happened.")


class FactEntry(Keys):
    """A fact of a target."""

    name: str = says("Its path in the description.")
    status: Status = says("How well it is known.")
    value: JsonValue
    """The number of an option, or an object with the values of the table, whose keys are those of the description."""
    source: str = says("Where it is from.")
    note: str = says("What else is to be said; may be empty.")


class LintEntry(Keys):
    """A finding of the linter."""

    rule: str = says("The rule that is broken.")
    bundle: int = says("Number of the bundle, from 0.")
    line: Line = says("Line of the source.")
    message: str = says("The finding in words.")


class VersionsOfRun(Keys):
    """When a verification worked, and with which versions; the names are those of the packages."""

    date: Date = says("The day.")
    castsim: str = says("Version of castsim.")
    python: str = says("Version of Python.")
    numpy: str = says("Version of NumPy.")
    numba: str | None = says("Version of numba; null if it is not installed.", default_factory=absent)
    llvmlite: str | None = says("Version of llvmlite; null if it is not installed.", default_factory=absent)


class WorkerEntry(Keys):
    """Somebody who computed: a process of this machine, or a worker of a cluster; and with what."""

    worker: str = says("Its name in the cluster; `local`: this machine.")
    castsim: str = says("Version of castsim.")
    python: str = says("Version of Python.")
    numpy: str = says("Version of NumPy.")
    sources_sha256: Sha256 = says("Digest of castsim's source files, tables and records.")


class WorkerCodes(Keys):
    """Codes that somebody tried."""

    worker: int = says("Its place in `workers`, from 0.")
    codes: int = says("How many codes.")


class SourcesEntry(Keys):
    """The source files that a proof rests on."""

    rule: str = says("How the digests are made.")
    sha256: Sha256 = says("Digest of all of them.")
    files: dict[str, Sha256] = says("The digest of each file.")
