"""What the models of documents are made of: closed objects, units, keys that may be absent."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Never, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from castsim.reports.documents import identifier
from castsim.targets.schema import Status
from castsim.timing import Cause


class Keys(BaseModel):
    """A JSON object that has these keys and no others; the text under a key says what it means."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Form(Keys):
    """A document that a command writes."""

    NAME: ClassVar[str]
    """By which `castsim.reports.documents.VERSIONS` knows it."""

    schema_version: int
    """Version of the shape of this document; it grows with every change of the shape."""


def absent() -> Never:
    """Stand for the value of a key that is left out: there is none."""
    raise LookupError("a key that is not there has no value")


Cycles: TypeAlias = Annotated[int, Field(json_schema_extra={"unit": "cycles"})]
Bundles: TypeAlias = Annotated[int, Field(json_schema_extra={"unit": "bundles"})]
Bytes: TypeAlias = Annotated[int, Field(json_schema_extra={"unit": "bytes"})]
Elements: TypeAlias = Annotated[int, Field(json_schema_extra={"unit": "elements"})]
Seconds: TypeAlias = Annotated[float, Field(json_schema_extra={"unit": "seconds"})]
Percent: TypeAlias = Annotated[float, Field(json_schema_extra={"unit": "percent"})]
Ulps: TypeAlias = Annotated[int, Field(json_schema_extra={"unit": "ulps"})]

Line: TypeAlias = Annotated[int, Field(ge=1)]
"""A line of a source file, from 1."""

Column: TypeAlias = Annotated[int, Field(ge=1)]
"""A column of a source line in code points, from 1."""

Name: TypeAlias = Annotated[str, Field(pattern=r"^\S+$")]
"""The key of an object whose keys are names: without blanks."""

CauseName: TypeAlias = Annotated[str, Field(json_schema_extra={"enum": [identifier(cause) for cause in Cause]})]
"""A cause of cycles."""

Bits: TypeAlias = Annotated[str, Field(pattern="^0x[0-9a-f]+$")]
"""A code in hexadecimal."""

Hexadecimal: TypeAlias = Annotated[str, Field(pattern="^([0-9a-f]{2})*$")]
"""Bytes in hexadecimal, two digits each."""

Sha256: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
"""A SHA-256 digest in hexadecimal."""

Date: TypeAlias = Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
"""A day."""

Special: TypeAlias = Annotated[str, Field(json_schema_extra={"enum": ["nan", "inf", "-inf"]})]

Value: TypeAlias = int | float | Special
"""A number; JSON has no NaN and no infinities, which are words."""

Scalar: TypeAlias = bool | int | float | str
"""The value of an option or of an attribute."""


# The document of `castsim tune`.


class TuningAxis(Keys):
    """A choice."""

    name: str
    """Its name."""
    kind: str
    """What it is about: tile, arg, option or target."""
    values: list[int | float | str]
    """The values to choose from."""


class TuningRow(Keys):
    """A point of the space."""

    choices: dict[Name, int | float | str]
    """The value of each choice."""
    cycles: Cycles | None
    """Cycles; null if it was not simulated or does not run."""
    at_least: Cycles
    """A lower bound of the cycles; 0 if none is known."""
    cycles_per_element: float | None
    """Cycles for each element of the outputs; null as `cycles`."""
    buffer_bytes: Bytes | None
    """Size of the range of the tile buffer that the program touches; null if it is not known."""
    bound_by: str | None
    """The pipe that spends most cycles on work of its own; null as `cycles`."""
    pareto: bool
    """Whether no simulated point has fewer cycles or bytes and no more of the other."""
    outputs: dict[Name, Sha256]
    """Digest of the elements of each output; empty if no values were computed."""
    reason: str | None
    """Why it does not run; null if it does, or was not tried."""


class TuningDifference(Keys):
    """A point whose outputs are not those of the best."""

    choices: dict[Name, int | float | str]
    """The value of each choice."""
    outputs: list[str]
    """The names of the outputs that differ."""


class Tune(Form):
    """The tile shapes and choices of a kernel, ranked."""

    NAME: ClassVar[str] = "tune"

    program: str
    """The program."""
    space: list[TuningAxis]
    """The choices."""
    conditions: list[str]
    """The conditions between them."""
    combinations: int
    """Combinations of all values."""
    left_out: int
    """Combinations for which a condition does not hold."""
    points: int
    """The other combinations."""
    simulated: int
    """Points with cycles."""
    refused: int
    """Points that do not run."""
    best_is_proven: bool
    """Whether no other point can have fewer cycles."""
    pareto_is_proven: bool
    """Whether no other point can be on the front."""
    best: TuningRow | None
    """The point with fewest cycles; null if none runs."""
    command: str | None
    """The command that runs it; null as `best`."""
    outputs_equal: bool | None
    """Whether all simulated points give the same bits; null if no inputs were given."""
    differing: list[TuningDifference]
    """The points that do not."""
    rows: list[TuningRow]
    """All points: simulated ones by cycles, then the others by lower bounds, then those that do not run."""


# The documents of `castsim diff` and `castsim view`.


class ComparedSide(Keys):
    """A side of the comparison."""

    file: str
    """The program, or the JSON of its run."""
    entry: str | None
    """The function; null where there is none."""
    target: str
    """Name of the target."""
    seconds: Seconds | None
    """Its cycles at the target's frequency; null if no cycles are modelled."""
    from_json: bool
    """Whether it was read from a JSON result."""


class LineThatDiffers(Keys):
    """A line that differs in text or cycles."""

    line_a: Line | None
    """Line of A; null if it does not stand there."""
    line_b: Line | None
    """Line of B; null if it does not stand there."""
    change: Literal["added", "removed", "changed", "renamed", "moved", "cycles"]
    """What became of it: `renamed` says the same with other names of values, `cycles` differs in nothing else."""
    cycles_a: Cycles | None
    """Cycles of A from start to end of its executions, added up; null where it takes none, or they are not known."""
    cycles_b: Cycles | None
    """The same of B."""
    causes_a: dict[CauseName, Cycles] | None
    """Cycles that pipes spent on it in A, by cause; null as `cycles_a`, and where a JSON result does not tell."""
    causes_b: dict[CauseName, Cycles] | None
    """The same of B."""
    text_a: str | None
    """The line of A without blanks around it, or the instructions in it if a side is a JSON result."""
    text_b: str | None
    """The same of B."""


class ElementThatDiffers(Keys):
    """An element of an output that differs."""

    index: list[int]
    """Its index."""
    bits_a: Bits
    """Its code in A."""
    bits_b: Bits
    """Its code in B."""
    value_a: Value
    """The number in A."""
    value_b: Value
    """The number in B."""


class ComparedOutput(Keys):
    """An output of both sides, or of one."""

    name: str
    """Its name in A, in B if A has none."""
    equal: bool
    """Whether it has the same format and bits; shapes of as many elements may differ."""
    differing: Elements | None
    """How many elements differ in their bits; null if both have other numbers of them, one side lacks it, or only
    digests are known."""
    first: list[ElementThatDiffers]
    """The first of them."""
    name_a: str | None
    """Its name in A; null if A lacks it."""
    format_a: str | None
    """Name of its format in A; null as `name_a`."""
    shape_a: list[Elements] | None
    """Extent of each dimension in A; null as `name_a`."""
    name_b: str | None
    """Its name in B; null if B lacks it."""
    format_b: str | None
    """Name of its format in B; null as `name_b`."""
    shape_b: list[Elements] | None
    """Extent of each dimension in B; null as `name_b`."""


class PipeThatDiffers(Keys):
    """A pipe whose cycles differ."""

    pipe: Name
    """The pipe."""
    causes_a: dict[CauseName, Cycles]
    """Its cycles in A by cause, without zeros; empty if A has no such pipe."""
    causes_b: dict[CauseName, Cycles]
    """The same of B."""


class Difference(Form):
    """Two runs, compared. Nothing differs if `equal` is true and `lines` is empty."""

    NAME: ClassVar[str] = "diff"

    equal: bool
    """Whether cycles and outputs are the same; the text of the programs does not count."""
    cycles_a: Cycles | None
    """Cycles of A; null if none are modelled."""
    cycles_b: Cycles | None
    """Cycles of B; null if none are modelled."""
    slowdown_percent: Percent | None
    """By how much B takes more cycles than A, negative if fewer; null without cycles, or if A takes none and B some."""
    lines: list[LineThatDiffers]
    """The lines that differ in text or cycles, in the order of the programs."""
    outputs: list[ComparedOutput]
    """Every output; empty if no values were computed."""
    pipes: list[PipeThatDiffers]
    """The pipes whose cycles differ."""
    a: ComparedSide
    """The first side."""
    b: ComparedSide
    """The second side."""


class Viewed(Form):
    """A file that was shown."""

    NAME: ClassVar[str] = "view"

    file: str
    """The file."""
    kind: Literal["program", "result", "report", "trace"]
    """What it is; of the first two a report was made."""
    path: str
    """The report or the trace."""
    address: str | None
    """Where a trace was served; null if it was not."""


# The documents of `castsim targets` on specifications.


class Rule(Keys):
    """A rule that says which results are accepted."""

    name: str
    """Its name."""
    source: str
    """Where it is from."""
    status: Status
    """How well it is known."""
    note: str
    """What else is to be said; may be empty."""
    meaning: str
    """The rule in words."""
    accept: str
    """Form of the set: `exact`, `interval` and the like."""
    roundings: list[str]
    """The roundings of an exact rule."""
    overflow: str | None
    """The overflow policy of an exact rule; null if an attribute or the cast decides."""
    below_ulps: float
    """How far below the exact magnitude results may be."""
    above_ulps: float
    """How far above it."""
    beyond: str
    """What holds beyond the range."""
    undefined: list[str]
    """Sources for which every result is right."""
    flush_source: bool
    """Whether subnormal sources may be taken for 0."""
    flush_result: bool
    """Whether subnormal results may be 0."""
    zero_of_either_sign: bool
    """Whether the sign of 0 is free."""
    unclear_overflow: bool
    """Whether both orders of rounding and overflow are right."""


class SpecifiedPairs(Keys):
    """Type pairs that share a rule: every source with every destination."""

    src: list[str]
    """Names of the source formats."""
    dst: list[str]
    """Names of the destination formats."""
    since: str
    """The version that introduced them."""
    requires: list[str]
    """Profiles and extensions that they need."""
    when: dict[Name, Scalar]
    """The attribute values for which the rule holds."""
    rule: str
    """Name of the rule."""


class SpecifiedType(Keys):
    """A type."""

    name: str
    """Name of the format."""
    since: str
    """The version that introduced it."""


class AttributeEntry(Keys):
    """An attribute of the operator."""

    name: str
    """Its name."""
    source: str
    """Where it is from."""
    status: Status
    """How well it is known."""
    note: str
    """What else is to be said; may be empty."""
    values: list[Scalar]
    """Its values, the default first."""
    since: str
    """The version that introduced it."""
    effect: str
    """What it does."""
    meaning: str
    """The same in words."""


class RescaleRounding(Keys):
    """A rounding mode of RESCALE."""

    number: int
    """Its number."""
    requires: list[str]
    """Profiles and extensions that it needs."""
    wide_only: bool
    """Whether it needs the 32-bit multiplier."""


class Rescale(Keys):
    """The rules of RESCALE."""

    source: str
    """Where they are from."""
    status: Status
    """How well they are known."""
    note: str
    """What else is to be said; may be empty."""
    inputs: dict[Name, list[str]]
    """What each input type needs."""
    outputs: list[str]
    """The output types."""
    unsigned_types: list[str]
    """Types that may be unsigned."""
    wide_inputs: list[str]
    """Input types of the 32-bit multiplier."""
    any_zero_point: list[str]
    """Types with any zero point."""
    unsigned_zero_points: dict[Name, list[int]]
    """Zero points of types that have them only when unsigned."""
    wide_multiplier: str
    """Type of the wide multiplier."""
    narrow_multiplier: str
    """Type of the narrow multiplier."""
    shift_type: str
    """Type of the shift."""
    min_shift: int
    """The smallest shift."""
    max_shift: int
    """The largest shift."""
    double_round_above_shift: int
    """DOUBLE_ROUND rounds twice above this shift."""
    double_round_bit: int
    """At which bit it rounds first."""
    relative_errors: int
    """INEXACT_ROUND: how many units of error."""
    relative_error_exponent: int
    """The exponent of 2 of such a unit."""
    rounding_modes: dict[Name, RescaleRounding]
    """The rounding modes."""


class SpecificationDescription(Form):
    """One specification."""

    NAME: ClassVar[str] = "specification"

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
    pairs: list[SpecifiedPairs]
    """Its type pairs."""
    types: list[SpecifiedType]
    """Its types."""
    rules: list[Rule]
    """Its rules."""
    attributes: list[AttributeEntry]
    """Its attributes."""
    rescale: Rescale | None
    """Its RESCALE; null if it has none."""
    status: Status
    """How well the type pairs are known."""
    source: str
    """Where they are from."""


class PairRule(Rule):
    """A rule of a type pair."""

    since: str
    """The version that introduced it."""
    requires: list[str]
    """Profiles and extensions that it needs."""
    when: dict[Name, Scalar]
    """The attribute values for which it holds."""


class SpecificationPair(Form):
    """One type pair of a specification."""

    NAME: ClassVar[str] = "specification-pair"

    specification: str
    """Name of the specification."""
    src: str
    """The source as it was given."""
    dst: str
    """The destination as it was given."""
    rules: list[PairRule]
    """Its rules."""
