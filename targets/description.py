"""The common content of all target descriptions, validated at load.

Every table of hardware facts has `source` and `status`. Unknown keys, missing sources and contradictions
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
    """Return a validator that rejects every number except that of the machine model."""

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
    """A measured number in the source."""
    DERIVED = "derived"
    """Computed from published figures that do not state it."""
    FITTED = "fitted"
    """Fitted by castsim to measured numbers."""
    ASSUMED = "assumed"
    """Inferred here; no source states it."""


DOUBTFUL = (Status.ASSUMED, Status.DERIVED, Status.FITTED, Status.VENDOR_MODEL)
"""Statuses of facts that no vendor document states and no source reports as measured."""


class SourceKind(StrEnum):
    """The origin of a figure, the strongest first."""

    SILICON = "silicon"
    """Measured on a chip of the target."""
    OTHER_SILICON = "other-silicon"
    """Measured on another chip or board."""
    VENDOR_SIMULATOR = "vendor-simulator"
    """Computed by the vendor's cycle simulator."""
    DOCUMENT = "document"
    """A vendor text that does not state the origin of its figure."""
    VENDOR_MODEL = "vendor-model"
    """Computed by the vendor's cost model."""
    ASSUMPTION = "assumption"
    """Inferred here; not a source of measurements."""


class Table(BaseModel):
    """Base of all tables: frozen, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class KeptValues(Table):
    """Values of a table that a derived description did not change, with their source and status in its base."""

    names: tuple[str, ...]
    source: str
    status: Status
    evidence: SourceKind | None = None

    @property
    def rests_on(self) -> SourceKind:
        """The final evidence for the values."""
        return _basis(self.status, self.evidence)


def _basis(status: Status, evidence: SourceKind | None) -> SourceKind:
    """Return the evidence for a fact: that of a measured or fitted one, or else a text."""
    kind_of = {Status.VENDOR_MODEL: SourceKind.VENDOR_MODEL, Status.ASSUMED: SourceKind.ASSUMPTION}
    return kind_of.get(status) or evidence or SourceKind.DOCUMENT


class Fact(Table):
    """A table of hardware facts with one source and one status, except for values kept from another one."""

    source: Annotated[str, Field(min_length=1)]
    """The origin of the numbers in the table."""
    status: Status
    """The reliability of the numbers."""
    evidence: SourceKind | None = None
    """The origin of a measured or fitted fact, if the source states it."""
    informational: bool = False
    """Whether no model reads the table yet."""
    note: str = ""
    """A doubt, or a disagreement between sources."""
    kept: Annotated[tuple[KeptValues, ...], Field(repr=False)] = ()
    """Values that a derived description did not change."""

    @property
    def rests_on(self) -> SourceKind:
        """The final evidence for the fact, the weakest of its values."""
        own = _basis(self.status, self.evidence)
        return max((own, *(kept.rests_on for kept in self.kept)), key=list(SourceKind).index)

    def status_of(self, name: str) -> Status:
        """Return the status of one of its values."""
        return next((kept.status for kept in self.kept if name in kept.names), self.status)


class Frequency(Fact):
    """Core clock, which converts cycles to seconds, and bytes per second of global memory to bytes per cycle."""

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
    """A named choice: `value` is the default, `legal` are the permitted values.

    Most options represent a doubtful point: the behaviour of the hardware where sources disagree or are silent; no user
    can choose that. `set_by` names the others: who in software sets it, the program or its launcher, with the source;
    '' if no software does. Source and status are those of the default and of the meaning.
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
    """A known deviation of simulated from published cycles: `where` selects its rows by cells and columns."""

    where: Annotated[dict[str, tuple[str, ...]], Field(min_length=1)]
    reason: Annotated[str, Field(min_length=1)]


class FreeFact(Fact):
    """Facts that change together when a fit to the target's own measured rows decides them; `step` is their grid.

    `start` is the value of another source, to which `source` and `status` refer: a fit begins there.
    """

    facts: Annotated[tuple[str, ...], Field(min_length=1)]
    start: Annotated[Decimal, Field(ge=0)]
    step: Annotated[Decimal, Field(gt=0)]


class WhatIf(Table):
    """A limit that can be lifted to see its cost: facts by path (`timing.load.startup_cycles`), and new values.

    `lifts` are the causes of cycles that it removes, by pipe; `*` is any pipe.
    """

    title: Annotated[str, Field(min_length=1)]
    lifts: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    set: Annotated[dict[str, int | Decimal | bool | str], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Lineage:
    """The shipped target that a description builds on or copies, and the paths of the differences."""

    name: str
    changed: frozenset[str]

    def concerns(self, facts: Iterable[str]) -> bool:
        """Return whether any of some facts, or tables of facts, differs."""
        heads = tuple(f"{fact}." for fact in facts)
        return any(f"{path}.".startswith(heads) for path in self.changed)


class TargetKind(StrEnum):
    """Kind of a description: chips run programs; specifications only define legality and acceptance."""

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
    """The tables of its description with times."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """Small letters, digits and underscores; distinct from `base`."""
    title: str
    """The chip's name in words."""
    kind: Literal[TargetKind.CHIP] = TargetKind.CHIP
    """`chip`; for specifications `specification`."""
    mechanism: str
    """The machine model that runs its programs."""
    languages: tuple[str, ...]
    """Languages of the programs that it runs: `pto`, `tpc`."""
    architectures: tuple[str, ...]
    """Names by which programs request it, such as those of `pto.target_arch`."""
    frequency: Frequency
    memories: dict[str, OnChipMemory]
    options: dict[str, Option]
    measured_casts: Measurements | None = None
    """Published cycles of casts; None if there are none."""
    measured_operations: Measurements | None = None
    """Published cycles of other operations; None if there are none."""
    measured_scopes: Measurements | None = None
    """Published cycles of programs of vector instructions; None if there are none."""
    measured: dict[str, Measurements] = Field(default_factory=dict)
    """Additional tables of published cycles, by name."""
    accuracy_notes: tuple[AccuracyNote, ...] = ()
    free_facts: tuple[FreeFact, ...] = ()
    """Facts that its measured casts decide; all others come from other sources."""
    what_if: dict[str, WhatIf] = Field(default_factory=dict)
    _lineage: Lineage | None = PrivateAttr(None)
    """The lineage of a description that is not shipped; None if no shipped one has its mechanism."""

    @property
    def lineage(self) -> Lineage:
        """The shipped target whose measurements apply to this one, and the differences."""
        return self._lineage or Lineage(self.name, frozenset())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def measurements(self) -> tuple[Measurements, ...]:
        """All tables of published cycles."""
        tables = (self.measured_casts, self.measured_operations, self.measured_scopes, *self.measured.values())
        return tuple(table for table in tables if table is not None)

    def measured_as(self, convention: str, operation: str = "") -> Self:
        """Return the target with its simulated cycles counted as in published ones of a convention.

        Args:
            convention: name of the convention.
            operation: the measured operation.

        Raises:
            IllegalError: the target lacks the convention.
        """
        raise IllegalError(f"{self.name} has no convention '{convention}'")

    def times_programs(self, convention: str | None) -> bool:
        """Return whether cycles of a convention measure how long programs take; None: no convention is stated."""
        return True

    def cycles_around(self, convention: str, operation: str) -> int:
        """Return the cycles by which the published figures of a convention exceed those simulated `measured_as` it."""
        return 0

    def meaning_of(self, convention: str) -> str:
        """Return the description of a measuring convention for published cycles, '' if there is none."""
        return ""

    @property
    def scalar_pipe(self) -> str | None:
        """The pipe that issues for all others, None if there is none."""
        return None

    def uses_scratch(self, src: str, dst: str) -> bool:
        """Return whether a cast runs through a tmp tile if it has one."""
        return False

    def code_variants(self, mnemonic: str, *, contiguous: bool) -> tuple[str, ...]:
        """Return the names of an operation's code variants in the order of `implementation_kind`, () if it has none."""
        return ()

    def elements_per_trip(self, src: str, dst: str, *, contiguous: bool) -> int | None:
        """Return the number of elements that one trip of a cast's loop converts, None if there is no loop or cast."""
        return None

    def option(self, name: str) -> int | str:
        """Return the value of a named option; KeyError if the target lacks it."""
        return self.options[name].value


# Lists within one cell of a table or one text of a description.

LIST_SEPARATOR = ";"
"""Separator of the items of a CSV cell."""


def _listed(cell: object) -> object:
    """Return the items of a cell; empty if it has none."""
    if cell is None or cell == "":
        return ()
    return tuple(cell.split(LIST_SEPARATOR)) if isinstance(cell, str) else cell


def _words(text: object) -> object:
    """Return the words of a text; empty if it has none."""
    if text is None:
        return ()
    return tuple(text.split()) if isinstance(text, str) else text


Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""Items separated by `;` in a CSV cell."""

Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
"""Words separated by blanks in a text."""


# Changing the options of a target, and noting which of them a run reads.

# Editing single facts of a loaded description, and the limits that a description names for lifting.
#
# A limit is lifted by editing facts, so a run with it lifted is a run on a description with those facts edited, and
# nothing else.

ANY = "*"
"""Every key of a table, in a path."""

_Target = TypeVar("_Target", bound=TargetHeader)


def limits_of(target: TargetHeader) -> Mapping[str, str]:
    """Return the limits that a target names, with their descriptions, in the order of the target's description."""
    return {name: limit.title for name, limit in target.what_if.items()}


def lifted(target: _Target, name: str) -> _Target:
    """Return the target with one limit lifted.

    Raises:
        ReadError: the target lacks the limit; the message lists those it has.
        TargetDataError: the description sets a fact to an illegal value.
    """
    if name not in target.what_if:
        raise ReadError(f"{target.name} has no what-if '{name}'", legal=target.what_if)
    return with_facts(target, target.what_if[name].set, checked=target._lineage is not None)


def with_facts(target: _Target, facts: Mapping[str, object], *, checked: bool = True) -> _Target:
    """Return the target with facts edited; `timing.vector.*.tail_cycles` names one in every row of a table.

    Values from shipped descriptions are known to be legal and need not be `checked` again.

    Raises:
        TargetDataError: a fact does not exist, or its value is not legal.
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
    """Return the target with numbers edited, each of a legal kind for its fact, without checks."""
    for path, value in facts.items():
        target = _replaced(target, path.split("."), value)
    return target


def _replaced(table: Any, path: Sequence[str], value: Decimal | int) -> Any:
    if not path:
        return value
    name, *rest = path
    if isinstance(table, BaseModel):
        return table.model_copy(update={name: _replaced(getattr(table, name), rest, value)})
    return {**table, name: _replaced(table[name], rest, value)}


def _edited(table: Any, path: Sequence[str], value: object, checked: bool) -> Any:
    """Return a table, or one of its entries, with the fact at `path` below it edited.

    Raises:
        AttributeError, KeyError: the fact does not exist.
        pydantic.ValidationError: its value is not legal.
    """
    if not path:
        return Decimal(value) if isinstance(table, Decimal) and isinstance(value, int) else value
    name, *rest = path
    if isinstance(table, BaseModel):
        changed = _edited(getattr(table, name), rest, value, checked)
        if not checked:
            if type(changed) is int and "Decimal" in str(type(table).model_fields[name].annotation):
                changed = Decimal(changed)
            return table.model_copy(update={name: changed})
        return type(table).model_validate({**_fields(table), name: changed})
    if not isinstance(table, Mapping):
        raise KeyError(name)
    names = list(table) if name == ANY else [name]
    return {**table, **{key: _edited(table[key], rest, value, checked) for key in names}}


def _fields(table: BaseModel) -> dict[str, Any]:
    return {name: getattr(table, name) for name in type(table).model_fields}


# What transfers take, and how many cores share the memory that they come from and go to.
#
# Facts: docs/reference/a2a3.md section 6.3, docs/reference/a5.md section 8.

Rate = Annotated[Decimal, Field(gt=0, decimal_places=2)]


class TransferTiming(Fact):
    """One direction of transfers: `startup_cycles` per transfer instruction, then `bytes_per_cycle`.

    The bytes of one instruction take at least `descriptor_cycles`. Rows that are not adjacent move in
    whole transactions of `transaction_bytes`; shorter ones at half the rate (None: like adjacent rows). If `overlaps`,
    successive instructions wait for memory together, and only their bytes are transferred in sequence.
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
    """The total rate at which all cores of a launch load from and store to global memory."""

    gigabytes_per_second: Rate


class SharedCache(Fact):
    """The cache between global memory and the cores, for a launch whose data an earlier one left in it.

    A launch hits in all bytes that it touches if they are up to `resident_percent` of the capacity, and in none from
    `absent_percent` on; in between, the share falls linearly. The cache moves `gigabytes_per_second`, loads and stores
    together.
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
        """Return the share of a number of touched bytes that it contains."""
        percent = Fraction(100 * touched, self.capacity_bytes)
        left = (self.absent_percent - percent) / (self.absent_percent - self.resident_percent)
        return min(max(left, Fraction(0)), Fraction(1))


class LaunchInterval(Fact):
    """The shortest time between back-to-back launches of one kernel: that of an empty launch."""

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
    """Cycles of a kernel outside its pipes: launch and end.

    `cycles_of` has those of kernels with operations of a kind, written with underscores.
    """

    cycles: Cycles
    cycles_of: dict[str, Cycles] = Field(default_factory=dict)

    def of(self, kinds: Iterable[str]) -> int:
        """Return the cycles of a kernel with operations of these kinds."""
        launch_cycles = (self.cycles_of.get(kind.replace(" ", "_")) for kind in kinds)
        return int(max((cycles for cycles in launch_cycles if cycles is not None), default=self.cycles))


def with_cores(target: _Target, cores: int | str) -> _Target:
    """Return the target with a number of its cores at work; the number may be text.

    Raises:
        ReadError: it is not an integer of at least 1, or exceeds the chip's cores.
        IllegalError: no source states what the target's cores share.
    """
    core_count = getattr(target, "cores", None)
    if core_count is None:
        raise IllegalError(f"no source documents what the cores of {target.name} share", legal=("no --cores",))
    text = str(cores)
    legal = (f"1 to {core_count.count}",)
    if isinstance(cores, bool) or not (text.isascii() and text.isdigit() and text.strip("0") and len(text) < 10):
        raise ReadError(f"'{cores}' is not a number of cores", legal=legal)
    if int(text) > core_count.count:
        raise ReadError(f"{target.name} has {core_count.count} cores, not {int(text)}", legal=legal)
    return with_facts(target, {"cores.at_work": int(text)})


CORES = "cores"
"""The option name for the number of cores at work."""


def with_options(target: _Target, values: Mapping[str, int | str]) -> _Target:
    """Return a target with other values for some of its options; the original is unchanged.

    A number may be text. `cores` sets how many cores work at once, like an option (`with_cores`).

    Raises:
        ReadError: an option does not exist, or its value is not legal; the message lists the legal ones.
        IllegalError: `cores` is given, and no source states what the target's cores share.
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
    match = next((legal for legal in option.legal if str(legal) == str(value)), None)
    if match is None:
        raise ReadError(f"option {name} cannot be '{value}'", legal=map(str, option.legal))
    return option.model_copy(update={"value": match})


class _Watched(dict[str, Option]):
    """The options of a target; `read` collects the names of those that are looked up, not of those enumerated."""

    def __init__(self, options: Mapping[str, Option], read: set[str]) -> None:
        super().__init__(options)
        self.read = read

    def copy(self) -> _Watched:
        """Return a copy that continues to record."""
        return _Watched(self, self.read)

    def __getitem__(self, name: str) -> Option:
        self.read.add(name)
        return super().__getitem__(name)


def unwatched(target: _Target) -> _Target:
    """Return a copy of the target whose options are read without being recorded."""
    return target.model_copy(update={"options": dict(target.options)})


def watched(target: _Target, read: set[str]) -> _Target:
    """Return a copy of the target that adds to `read` the name of every option that is read.

    It shares no cached times with other targets, which would hide reads: those compare tables by identity, and it has a
    table of limits of its own.
    """
    return target.model_copy(update={"options": _Watched(target.options, read), "what_if": dict(target.what_if)})
