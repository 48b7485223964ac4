"""The content of every target description, whatever its mechanism; validated at load.

Every table that holds hardware facts carries `source` and `status`. Unknown keys, missing sources and contradictions
are refused. Loaded targets are frozen.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from castsim.isa.errors import IllegalError

Cycles = Annotated[int, Field(ge=0, strict=True)]
Count = Annotated[int, Field(gt=0, strict=True)]


def built_for(number: int, why: str) -> AfterValidator:
    """Return a validator that rejects every number but the one that a machine model is built for."""

    def check(value: int) -> int:
        if value != number:
            raise ValueError(f"{value} is not simulated: {why}, {number}")
        return value

    return AfterValidator(check)


class Status(StrEnum):
    """The reliability of a fact."""

    DOCUMENTED = "documented"
    """Stated or coded by the vendor."""
    VENDOR_MODEL = "vendor-model"
    """An assumption of the vendor's own cost model."""
    MEASURED = "measured"
    """A measured number that the source reports."""
    FITTED = "fitted"
    """Chosen here so that measured numbers come out."""
    ASSUMED = "assumed"
    """Inferred here; no source states it."""


DOUBTFUL = (Status.ASSUMED, Status.FITTED, Status.VENDOR_MODEL)
"""Of facts that no vendor document states and no source reports as measured."""


class SourceKind(StrEnum):
    """What a figure was read off, the strongest first."""

    SILICON = "silicon"
    """A chip of the target."""
    OTHER_SILICON = "other-silicon"
    """Another chip or board than the target."""
    VENDOR_SIMULATOR = "vendor-simulator"
    """The vendor's cycle simulator."""
    DOCUMENT = "document"
    """A text of the vendor, which does not say what its figure was read off."""
    VENDOR_MODEL = "vendor-model"
    """The vendor's cost model: computed, not read off anything."""
    ASSUMPTION = "assumption"
    """Nothing: inferred here. No source of measurements."""


class Table(BaseModel):
    """Base of all tables: frozen, no unknown keys; the check of a table is built when a description needs it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Fact(Table):
    """A table of hardware facts with one source and one status."""

    source: Annotated[str, Field(min_length=1)]
    """Where the numbers of the table are from."""
    status: Status
    """How far they can be relied on."""
    evidence: SourceKind | None = None
    """What a measured or fitted fact was read off, where the source says so."""
    informational: bool = False
    """Whether no model reads the table yet."""
    note: str = ""
    """Doubt, or disagreement between sources."""

    @property
    def rests_on(self) -> SourceKind:
        """What the fact rests on in the end: a measured or fitted one on its evidence, or else on a text."""
        held = {Status.VENDOR_MODEL: SourceKind.VENDOR_MODEL, Status.ASSUMED: SourceKind.ASSUMPTION}
        return held.get(self.status) or self.evidence or SourceKind.DOCUMENT


class Frequency(Fact):
    """Core clock, used only to print seconds beside cycles."""

    megahertz: Count


class OnChipMemory(Fact):
    """An on-chip buffer. Addresses of tiles are multiples of `alignment_bytes`."""

    capacity_bytes: Count
    allocatable_bytes: Count
    alignment_bytes: Count

    @model_validator(mode="after")
    def _allocator_fits(self) -> OnChipMemory:
        if self.allocatable_bytes > self.capacity_bytes:
            raise ValueError(f"allocatable_bytes {self.allocatable_bytes} exceeds capacity_bytes {self.capacity_bytes}")
        return self


class Option(Fact):
    """A named choice: `value` is the default, `legal` what it may be set to.

    Most options stand for a doubtful point: what the hardware does where sources disagree or are silent; no user can
    choose that. `set_by` names the others: who in software sets it, the program or its launcher, and the source
    that says so; '' where no software does. Source and status are those of the default and of the meaning.
    """

    value: int | str
    legal: tuple[int | str, ...]
    meaning: Annotated[str, Field(min_length=1)]
    set_by: str = ""

    @model_validator(mode="after")
    def _default_is_legal(self) -> Option:
        if self.value not in self.legal:
            raise ValueError(f"value {self.value!r} is not among the legal ones {list(self.legal)}")
        return self


class Measurements(Fact):
    """A CSV file of published cycles beside the shipped descriptions, with which simulations are compared."""

    file: Annotated[str, Field(min_length=1)]


class AccuracyNote(Table):
    """A deviation of simulated from published cycles: `where` gives the cells, by column, of the rows concerned."""

    where: Annotated[dict[str, tuple[str, ...]], Field(min_length=1)]
    reason: Annotated[str, Field(min_length=1)]


class FreeFact(Fact):
    """Facts that move together when a fit to the target's own measured rows decides them; `step` is its grid.

    `start` is the value of another source, of which `source` and `status` speak: a fit begins there.
    """

    facts: Annotated[tuple[str, ...], Field(min_length=1)]
    start: Annotated[Decimal, Field(ge=0)]
    step: Annotated[Decimal, Field(gt=0)]


class WhatIf(Table):
    """A limit that can be lifted to see what it costs: facts by path (`timing.load.startup_cycles`), and new values."""

    title: Annotated[str, Field(min_length=1)]
    set: Annotated[dict[str, int | Decimal | bool | str], Field(min_length=1)]


class TargetKind(StrEnum):
    """Chips run programs; specifications only say what is legal and what is acceptable."""

    CHIP = "chip"
    SPECIFICATION = "specification"


class TargetHeader(Table):
    """The properties of all targets."""

    has_tiles: ClassVar[bool]
    """Whether its programs work on tiles in a buffer."""
    casts_use_scratch: ClassVar[bool] = False
    """Whether some casts run through a tmp tile."""
    has_builtins: ClassVar[bool] = False
    """Whether its C has builtin functions for casts."""
    time_tables: ClassVar[tuple[str, ...]]
    """The tables of its description that hold times."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """Small letters, digits and underscores; a name of its own beside `base`."""
    title: str
    """The chip in words."""
    kind: Literal[TargetKind.CHIP] = TargetKind.CHIP
    """`chip`; specifications have `specification`."""
    mechanism: str
    """The machine model that runs its programs."""
    languages: tuple[str, ...]
    """The program texts that it runs: `pto`, `tpc`."""
    architectures: tuple[str, ...]
    """Names by which programs ask for it, such as those of `pto.target_arch`."""
    frequency: Frequency
    memories: dict[str, OnChipMemory]
    options: dict[str, Option]
    measured_casts: Measurements | None = None
    """Published cycles of casts; None: there are none."""
    measured_operations: Measurements | None = None
    """The same of other operations."""
    measured_scopes: Measurements | None = None
    """The same of programs of vector instructions."""
    measured: dict[str, Measurements] = Field(default_factory=dict)
    """Further tables of published cycles, by a name of their own."""
    accuracy_notes: tuple[AccuracyNote, ...] = ()
    free_facts: tuple[FreeFact, ...] = ()
    """What its measured casts decide; all else is other sources'."""
    what_if: dict[str, WhatIf] = Field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def measurements(self) -> tuple[Measurements, ...]:
        """All tables of published cycles."""
        tables = (self.measured_casts, self.measured_operations, self.measured_scopes, *self.measured.values())
        return tuple(table for table in tables if table is not None)

    def measured_as(self, convention: str) -> Self:
        """Return the target such that its simulated cycles count what published ones of a convention count.

        Raises:
            IllegalError: the target knows no such convention.
        """
        raise IllegalError(f"{self.name} knows no convention of measurement, not '{convention}' either")

    def times_programs(self, convention: str | None) -> bool:
        """Whether cycles of a convention say how long programs take; None: no convention is stated."""
        return True

    def cycles_around(self, convention: str, operation: str) -> int:
        """Return the cycles that published ones of a convention have beyond those simulated `measured_as` it."""
        return 0

    def meaning_of(self, convention: str) -> str:
        """Return the description of a measuring convention for published cycles, '' if there is none."""
        return ""

    @property
    def scalar_pipe(self) -> str | None:
        """The pipe that issues for all others, None if there is none."""
        return None

    def uses_scratch(self, src: str, dst: str) -> bool:
        """Whether a cast runs through a tmp tile if it is given one."""
        return False

    def code_variants(self, mnemonic: str, *, contiguous: bool) -> tuple[str, ...]:
        """Return the names of an operation's code variants in the order of `implementation_kind`, () if it has none."""
        return ()

    def elements_per_trip(self, src: str, dst: str, *, contiguous: bool) -> int | None:
        """Return how many elements one trip of a cast's loop converts, None where nothing loops or nothing casts."""
        return None

    def option(self, name: str) -> int | str:
        """Return the value of a named option; KeyError if the target has none of that name."""
        return self.options[name].value


# Lists within one cell of a table or one text of a description.

LIST_SEPARATOR = ";"
"""Between the items of a cell of a CSV table."""


def _listed(cell: object) -> object:
    """Split a cell into its items; an empty one has none."""
    if cell is None or cell == "":
        return ()
    return tuple(cell.split(LIST_SEPARATOR)) if isinstance(cell, str) else cell


def _words(text: object) -> object:
    """Split a text into its words; an empty one has none."""
    if text is None:
        return ()
    return tuple(text.split()) if isinstance(text, str) else text


Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""Items that a CSV cell separates by `;`."""

Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
"""Words that a text separates by blanks."""
