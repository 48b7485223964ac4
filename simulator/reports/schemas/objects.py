"""Objects that several documents hold: numbers with their codes, outputs, stale reads, facts."""

from __future__ import annotations

from pydantic import Field, JsonValue

from castsim.machines.vliw.findings import StaleReadKind
from castsim.reports.schemas.keys import Bits, Bundles, Date, Elements, Keys, Line, Sha256, Value, absent
from castsim.targets.description import Status


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
