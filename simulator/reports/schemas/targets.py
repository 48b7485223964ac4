"""The documents of `castsim targets`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, JsonValue

from castsim.reports.schemas.keys import Form, Keys, absent
from castsim.reports.schemas.objects import FactEntry
from castsim.targets.description import Status


class TargetHeader(Keys):
    """A target in the list."""

    name: str
    """Its name."""
    title: str
    """The chip."""
    mechanism: str
    """How it executes: `strided-repeat`, `vector-function` or `vliw`."""
    languages: list[str]
    """The languages of its programs."""
    architectures: list[str]
    """The names by which programs ask for it."""
    casts: int
    """How many type pairs it has."""


class SpecificationHeader(Keys):
    """A specification in the list."""

    name: str
    """Its name."""
    title: str
    """What it specifies."""
    kind: str
    """Always `specification`."""
    versions: list[str]
    """Its versions; these are names, `1.1`."""
    default_version: str
    """The one that is taken if none is named."""
    casts: int
    """How many type pairs it has."""


class TargetsList(Form):
    """All targets and specifications."""

    NAME: ClassVar[str] = "targets-list"

    targets: list[TargetHeader]
    """The targets."""
    specifications: list[SpecificationHeader]
    """The specifications."""


class PairEntry(Keys):
    """A type pair."""

    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    modes: list[str]
    """The rounding modes that it honours; none if there is one instruction only."""
    default: str | None
    """The mode in force if none is named; null where nothing is rounded."""
    fallback: str | None
    """The mode in force if one is named that the pair lacks; null where there is none."""
    saturation: str
    """The default, `on` or `off`, where there is a choice; else what happens beyond the range by the options in force:
    `clamps`, `none: inf`, `none: NaN`, `none: low bits`, or `not needed` where all numbers have their place."""
    switchable: str
    """When the other value takes effect."""
    scratch: str | None
    """The sequence that runs through a tmp tile; null if there is none."""


class OptionEntry(Keys):
    """An option of a target."""

    name: str
    """Its name."""
    value: int | str
    """Its default."""
    legal: list[int | str]
    """The values that it may have."""
    meaning: str
    """What it decides."""
    set_by: str
    """Who sets it on the chip; may be empty."""
    status: Status
    """How well the default is known."""
    source: str
    """Where it is from."""


class BuiltinEntry(Keys):
    """A cast builtin of TPC-C."""

    name: str
    """Its name."""
    signature: str
    """Result and operands."""
    vpu_operations: int
    """Vector operations that a call issues, as documented."""
    result_order: str
    """Order of the result's elements."""
    status: Status
    """How well it is known."""
    note: str
    """What else is to be said; may be empty."""


class FunctionEntry(Keys):
    """A special function of TPC-C."""

    name: str
    """Its name."""
    signature: str
    """Result and operands."""
    modelled: bool
    """Whether castsim has it."""
    kind: str
    """`sequence`, `table`, `descriptor` or `unpublished`."""


class TargetDescription(Form, TargetHeader):
    """One target."""

    NAME: ClassVar[str] = "targets"

    pairs: list[PairEntry]
    """Its type pairs."""
    facts: list[FactEntry]
    """What its description says."""
    options: list[OptionEntry]
    """Its options."""
    builtins: list[BuiltinEntry] = Field(default_factory=absent)
    """The cast builtins of chips with TPC-C."""
    special_functions: list[FunctionEntry] = Field(default_factory=absent)
    """The special functions of chips with TPC-C."""


class ModeEntry(Keys):
    """What asking for a rounding mode gives."""

    requested: str
    """The mode asked for; `default` if none is named."""
    in_force: str | None
    """The mode in force; null where nothing is rounded."""
    mnemonic: str
    """The instruction."""
    warning: str | None
    """What a program is warned of; null for nothing."""


class SaturationEntry(Keys):
    """What asking for a saturation mode gives."""

    requested: str
    """The mode asked for; `default` if none is named."""
    scratch: bool
    """Whether a tmp tile is given."""
    in_force: str
    """The mode in force, in the words of `saturation` of the pair."""
    warning: str | None
    """What a program is warned of; null for nothing."""


class ConfigurationEntry(Keys):
    """A number of the instruction, or a word about it."""

    name: str
    """What it is."""
    value: JsonValue
    """Its value."""


class ScratchSequence(Keys):
    """The sequence through a tmp tile."""

    steps: str
    """Its name."""
    operations: list[str]
    """The operations that it issues for one element."""
    status: Status
    """How well it is known."""
    source: str
    """Where it is from."""


class TargetPair(Form, PairEntry):
    """One type pair of a target."""

    NAME: ClassVar[str] = "targets-pair"

    target: str
    """Name of the target."""
    mnemonics: list[ModeEntry]
    """The rounding modes."""
    saturation_modes: list[SaturationEntry]
    """The saturation modes."""
    configuration: list[ConfigurationEntry]
    """The mechanism's own numbers."""
    scratch_sequence: ScratchSequence | None
    """The sequence through a tmp tile; null if there is none."""
    note: str
    """What else is to be said; may be empty."""
    status: Status
    """How well the pair is known."""
    source: str
    """Where it is from."""


class DiffEntry(Keys):
    """The casts from one format on both targets."""

    src: str
    """Name of the source format."""
    first: list[str]
    """Its destinations on the first target."""
    second: list[str]
    """Its destinations on the second target."""
    only_first: list[str]
    """Those that the second lacks."""
    only_second: list[str]
    """Those that the first lacks."""
    difference: str
    """The same in words."""


class DiffFact(Keys):
    """A fact whose value differs between two targets."""

    name: str
    """Its path in the description."""
    first: JsonValue
    """Its value on the first target; null if that lacks it."""
    second: JsonValue
    """Its value on the second target; null if that lacks it."""


class TargetsDiff(Form):
    """With `--diff`: two targets side by side."""

    NAME: ClassVar[str] = "targets-diff"

    targets: list[str]
    """Names of the first and of the second target."""
    rows: list[DiffEntry]
    """One entry for each source format."""
    facts: list[DiffFact]
    """The facts whose values differ; none for two chips of the same facts."""
