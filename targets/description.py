"""The content of every target description, whatever its mechanism; validated at load.

Every table that holds hardware facts carries `source` and `status`. Unknown keys, missing sources and contradictions
are refused. Loaded targets are frozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, ReadError, TargetDataError
from castsim.targets import validated
from castsim.targets.validated import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    model_validator,
)

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
    DERIVED = "derived"
    """Computed from published figures that do not state it."""
    FITTED = "fitted"
    """Fitted by castsim to measured numbers."""
    ASSUMED = "assumed"
    """Inferred here; no source states it."""


DOUBTFUL = (Status.ASSUMED, Status.DERIVED, Status.FITTED, Status.VENDOR_MODEL)
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
    """Base of all tables: frozen, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class KeptValues(Table):
    """Values of a table that a derived description left as its base has them, with the source and status there."""

    names: tuple[str, ...]
    source: str
    status: Status
    evidence: SourceKind | None = None

    @property
    def rests_on(self) -> SourceKind:
        """What the values rest on in the end."""
        return _basis(self.status, self.evidence)


def _basis(status: Status, evidence: SourceKind | None) -> SourceKind:
    """Return what a fact rests on: a measured or fitted one on its evidence, or else on a text."""
    held = {Status.VENDOR_MODEL: SourceKind.VENDOR_MODEL, Status.ASSUMED: SourceKind.ASSUMPTION}
    return held.get(status) or evidence or SourceKind.DOCUMENT


class Fact(Table):
    """A table of hardware facts with one source and one status, except for the values that it kept of another one."""

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
    kept: Annotated[tuple[KeptValues, ...], Field(repr=False)] = ()
    """Values that a derived description did not change."""

    @property
    def rests_on(self) -> SourceKind:
        """What the fact rests on in the end, the weakest of its values."""
        own = _basis(self.status, self.evidence)
        return max((own, *(kept.rests_on for kept in self.kept)), key=list(SourceKind).index)

    def status_of(self, name: str) -> Status:
        """Return the status of one of its values."""
        return next((kept.status for kept in self.kept if name in kept.names), self.status)


class Frequency(Fact):
    """Core clock: prints seconds beside cycles, and turns bytes a second of global memory into bytes a cycle."""

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
    """A limit that can be lifted to see what it costs: facts by path (`timing.load.startup_cycles`), and new values.

    `lifts` are the causes of cycles that it takes away, by pipe; `*` is any pipe.
    """

    title: Annotated[str, Field(min_length=1)]
    lifts: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    set: Annotated[dict[str, int | Decimal | bool | str], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Lineage:
    """The shipped target that a description builds on, or is a copy of, and the paths of what is not equal to it."""

    name: str
    changed: frozenset[str]

    def concerns(self, facts: Iterable[str]) -> bool:
        """Whether one of some facts, or tables of facts, is not equal."""
        heads = tuple(f"{fact}." for fact in facts)
        return any(f"{path}.".startswith(heads) for path in self.changed)


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
    _lineage: Lineage | None = PrivateAttr(None)
    """Of a description that is not shipped; None if nothing shipped is of its mechanism."""

    @property
    def lineage(self) -> Lineage:
        """The shipped target whose measurements hold for this one, and what differs from it."""
        return self._lineage or Lineage(self.name, frozenset())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def measurements(self) -> tuple[Measurements, ...]:
        """All tables of published cycles."""
        tables = (self.measured_casts, self.measured_operations, self.measured_scopes, *self.measured.values())
        return tuple(table for table in tables if table is not None)

    def measured_as(self, convention: str, operation: str = "") -> Self:
        """Return the target such that its simulated cycles count what published ones of a convention count.

        Args:
            convention: its name.
            operation: the operation that is measured.

        Raises:
            IllegalError: the target knows no such convention.
        """
        raise IllegalError(f"{self.name} has no convention '{convention}'")

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


# Changing the options of a target, and noting which of them a run reads.

# Editing single facts of a loaded description, and the limits that a description names for lifting.
#
# A limit is lifted by editing facts, so a run with it lifted is a run on a description with those facts edited, and
# nothing else.

ANY = "*"
"""In a path: every key of a table."""

_Target = TypeVar("_Target", bound=TargetHeader)


def limits_of(target: TargetHeader) -> Mapping[str, str]:
    """Return the limits that a target names for lifting, and what each is, in the order of the description."""
    return {name: limit.title for name, limit in target.what_if.items()}


def lifted(target: _Target, name: str) -> _Target:
    """Return the target with one limit lifted.

    Raises:
        ReadError: the target names no such limit; those that it names are listed.
        TargetDataError: the description would set a fact to what it cannot be.
    """
    if name not in target.what_if:
        raise ReadError(f"{target.name} has no what-if '{name}'", legal=target.what_if)
    return with_facts(target, target.what_if[name].set, checked=target._lineage is not None)


def with_facts(target: _Target, facts: Mapping[str, object], *, checked: bool = True) -> _Target:
    """Return the target with facts edited; `timing.vector.*.tail_cycles` names one in every row of a table.

    What shipped descriptions set is known to be legal, and not `checked` again.

    Raises:
        TargetDataError: no such fact, or a value that it cannot have.
    """
    lineage = target._lineage
    for path, value in facts.items():
        try:
            target = _edited(target, path.split("."), value, checked)
            target._lineage = lineage
        except validated.ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise TargetDataError(f"{target.name}: {path} cannot be {value}: {reason}") from None
        except (AttributeError, KeyError):
            raise TargetDataError(f"{target.name} has no fact '{path}'") from None
    return target


def with_values(target: _Target, facts: Mapping[str, Decimal | int]) -> _Target:
    """Return the target with numbers edited, each of a kind that its fact can have: nothing is checked again."""
    for path, value in facts.items():
        target = _replaced(target, path.split("."), value)
    return target


def _replaced(held: Any, path: Sequence[str], value: Decimal | int) -> Any:
    if not path:
        return value
    name, *rest = path
    if isinstance(held, BaseModel):
        return held.model_copy(update={name: _replaced(getattr(held, name), rest, value)})
    return {**held, name: _replaced(held[name], rest, value)}


def _edited(held: Any, path: Sequence[str], value: object, checked: bool) -> Any:
    """Return a table, or what a table holds, with the fact at `path` below it edited.

    Raises:
        AttributeError, KeyError: there is none.
        pydantic.ValidationError: a value that the fact cannot have.
    """
    if not path:
        return Decimal(value) if isinstance(held, Decimal) and isinstance(value, int) else value
    name, *rest = path
    if isinstance(held, BaseModel):
        changed = _edited(getattr(held, name), rest, value, checked)
        if not checked:
            if type(changed) is int and "Decimal" in str(type(held).model_fields[name].annotation):
                changed = Decimal(changed)
            return held.model_copy(update={name: changed})
        return type(held).model_validate({**_fields(held), name: changed})
    if not isinstance(held, Mapping):
        raise KeyError(name)
    names = list(held) if name == ANY else [name]
    return {**held, **{each: _edited(held[each], rest, value, checked) for each in names}}


def _fields(table: BaseModel) -> dict[str, Any]:
    return {name: getattr(table, name) for name in type(table).model_fields}


# What transfers take, and how many cores share the memory that they come from and go to.
#
# Facts: docs/reference/a2a3.md section 6.3, docs/reference/a5.md section 8.

Rate = Annotated[Decimal, Field(gt=0, decimal_places=2)]


class TransferTiming(Fact):
    """One direction of transfers: `startup_cycles` per transfer instruction, then `bytes_per_cycle`.

    The bytes of one instruction take at least `descriptor_cycles`. Rows that do not lie one behind the other move in
    whole transactions of `transaction_bytes`; shorter ones at half the rate (None: like adjacent rows). If `overlaps`,
    successive instructions wait for memory together, and only their bytes follow each other.
    """

    startup_cycles: Cycles
    bytes_per_cycle: Rate
    descriptor_cycles: Annotated[Cycles, Field(repr=False)] = 0
    transaction_bytes: Annotated[Count | None, Field(repr=False)] = None
    overlaps: Annotated[bool, Field(repr=False)] = False


class TransferPair(Table):
    """Both directions."""

    load: TransferTiming
    store: TransferTiming


class GlobalMemory(Fact):
    """What all cores of a launch move to and from global memory, loads and stores in one total."""

    gigabytes_per_second: Rate


class SharedCache(Fact):
    """The cache between global memory and the cores, for a launch whose data an earlier one left there.

    A launch finds all bytes that it touches if they are up to `resident_percent` of the capacity, and none from
    `absent_percent` on; in between, the share falls linearly. The cache moves `gigabytes_per_second`, loads and stores
    in one total.
    """

    capacity_bytes: Count
    resident_percent: Count
    absent_percent: Count
    gigabytes_per_second: Rate

    @model_validator(mode="after")
    def _share_falls(self) -> SharedCache:
        if self.resident_percent >= self.absent_percent:
            raise ValueError(f"resident_percent {self.resident_percent} is not below absent_percent")
        return self

    def share(self, touched: int) -> Fraction:
        """Return the share of so many touched bytes that it holds."""
        percent = Fraction(100 * touched, self.capacity_bytes)
        left = (self.absent_percent - percent) / (self.absent_percent - self.resident_percent)
        return min(max(left, Fraction(0)), Fraction(1))


class LaunchInterval(Fact):
    """The shortest time from launch to launch of one kernel back to back: an empty launch takes as long."""

    microseconds: Rate


class Cores(Fact):
    """The vector cores of a chip, of which `at_work` transfer at once."""

    count: Count
    at_work: Annotated[Count, Field(repr=False)] = 1

    @model_validator(mode="after")
    def _are_there(self) -> Cores:
        if self.at_work > self.count:
            raise ValueError(f"at_work {self.at_work} exceeds count {self.count}")
        return self


class KernelLaunch(Fact):
    """What a whole kernel takes beyond its pipes: launch and end.

    `cycles_of` is that of kernels with operations of a kind, written with underscores.
    """

    cycles: Cycles
    cycles_of: dict[str, Cycles] = Field(default_factory=dict)

    def of(self, kinds: Iterable[str]) -> int:
        """Return the cycles of a kernel with operations of such kinds."""
        known = (self.cycles_of.get(kind.replace(" ", "_")) for kind in kinds)
        return int(max((cycles for cycles in known if cycles is not None), default=self.cycles))


def with_cores(target: _Target, cores: int | str) -> _Target:
    """Return the target with so many of its cores at work; a number may come as text.

    Raises:
        ReadError: not a whole number from 1 on, or more than the chip has.
        IllegalError: nothing is known of what the target's cores share.
    """
    held = getattr(target, "cores", None)
    if held is None:
        raise IllegalError(f"no source documents what the cores of {target.name} share", legal=("no --cores",))
    text = str(cores)
    legal = (f"1 to {held.count}",)
    if isinstance(cores, bool) or not (text.isascii() and text.isdigit() and text.strip("0") and len(text) < 10):
        raise ReadError(f"'{cores}' is not a number of cores", legal=legal)
    if int(text) > held.count:
        raise ReadError(f"{target.name} has {held.count} cores, not {int(text)}", legal=legal)
    return with_facts(target, {"cores.at_work": int(text)})


CORES = "cores"
"""The name by which the number of cores at work is set among options."""


def with_options(target: _Target, values: Mapping[str, int | str]) -> _Target:
    """Return the target with other values for some of its options; the target itself stays as it is.

    A number may come as text. `cores` says how many cores work at once, as an option would (`with_cores`).

    Raises:
        ReadError: no such option, or a value that it cannot have; the legal ones are listed.
        IllegalError: cores, and nothing is known of those of the target.
    """
    if CORES in values:
        target = with_cores(target, values[CORES])
    options = target.options.copy()
    for name, value in values.items():
        if name == CORES:
            continue
        if name not in options:
            raise ReadError(f"{target.name} has no option '{name}'", legal=options)
        options[name] = _set(name, options[name], value)
    return target.model_copy(update={"options": options})


def _set(name: str, option: Option, value: int | str) -> Option:
    found = next((legal for legal in option.legal if str(legal) == str(value)), None)
    if found is None:
        raise ReadError(f"option {name} cannot be '{value}'", legal=map(str, option.legal))
    return option.model_copy(update={"value": found})


class _Watched(dict[str, Option]):
    """The options of a target; `read` collects the names of those that are looked up."""

    def __init__(self, options: Mapping[str, Option], read: set[str]) -> None:
        super().__init__(options)
        self.read = read

    def copy(self) -> _Watched:
        """Return a copy that goes on noting."""
        return _Watched(self, self.read)

    def __getitem__(self, name: str) -> Option:
        self.read.add(name)
        return super().__getitem__(name)


def unwatched(target: _Target) -> _Target:
    """Return a copy of the target whose options are looked up without anybody's notice."""
    return target.model_copy(update={"options": dict(target.options)})


def watched(target: _Target, read: set[str]) -> _Target:
    """Return a copy of the target that adds to `read` the name of every option that is looked up."""
    return target.model_copy(update={"options": _Watched(target.options, read)})
