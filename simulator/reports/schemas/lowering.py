"""The documents of `castsim lower`, and what those of `conform` and `graph` share with it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from castsim.planning import PlanKind, Verdict
from castsim.planning.judgement import Method
from castsim.reports.schemas.keys import Bytes, Cycles, Elements, Form, Keys, Name, Scalar, Value
from castsim.reports.schemas.objects import Number

CyclesPerElement = Annotated[float, Field(json_schema_extra={"unit": "cycles per element"})]


class Step(Keys):
    """An instruction of a chain."""

    instruction: str
    """The instruction."""
    options: list[str]
    """What has to be asked of it."""
    src: str
    """Name of its source format."""
    dst: str
    """Name of its destination format."""


class Evidence(Keys):
    """How a verdict was reached."""

    method: Method
    """The method."""
    codes: int
    """How many codes went through."""
    proves: bool
    """Whether that leaves none out."""
    argument: str
    """Why, in words."""


class Cost(Keys):
    """The cost of a program that casts one tensor."""

    cycles: Cycles
    """Cycles of all."""
    elements: Elements
    """Elements cast."""
    cycles_per_element: CyclesPerElement
    """Cycles of an element."""
    scratch_bytes: Bytes
    """Bytes of tmp tiles."""
    buffer_bytes: Bytes
    """Bytes of the buffer, all tiles together."""
    vector_registers: int
    """Vector registers in use."""


class TracedValue(Keys):
    """A value on the way through a chain."""

    step: str | None
    """The instruction that makes it; null for the input."""
    format: str
    """Name of its format."""
    bits: str
    """Its code in hexadecimal."""
    value: Value
    """Its number, or `nan`, `inf`, `-inf`."""


class RequiredResult(Keys):
    """The results that are right for one input."""

    lowest: Number | None
    """The lowest number; null if there is none."""
    highest: Number | None
    """The highest number; null if there is none."""
    further: Number | None
    """A number beside those; null if there is none."""
    nan: bool
    """Whether every NaN is right."""


class CounterexampleEntry(Keys):
    """An input for which a chain is wrong."""

    values: list[TracedValue]
    """Every value on the way, the input first."""
    required: RequiredResult
    """What would be right."""


class RefutedChain(Keys):
    """A chain that fails."""

    chain: list[Step]
    """Its instructions."""
    counterexample: CounterexampleEntry | None
    """Where it fails."""


class NativeWithOptions(Keys):
    """The single instruction beside a chain."""

    options: dict[Name, Scalar]
    """The options of the target that it needs."""
    chain: list[Step]
    """The instruction."""
    cycles_per_element: CyclesPerElement | None
    """Its cost; null if it was not timed."""


class PlanEntry(Keys):
    """How a cast of a specification is lowered."""

    specification: str
    """Name and version, `tosa@1.1`."""
    version_asked: str | None
    """The version that was asked for; null for the default."""
    rule: str
    """The rule of the specification in words."""
    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    way: PlanKind
    """How it is lowered."""
    verdict: Verdict
    """Whether it is right."""
    proven: bool
    """Whether the verdict is certain."""
    claim: str
    """What is claimed, in words."""
    chain: list[Step]
    """The instructions."""
    evidence: Evidence | None
    """How the verdict was reached; null if nothing was tried."""
    cost: Cost | None
    """What it costs; null if it was not timed."""
    counterexample: CounterexampleEntry | None
    """Where it fails; null if it does not."""
    refuted: list[RefutedChain]
    """Chains that fail."""
    steps_searched: int
    """Chains and parts of them that were looked at."""
    reason: str | None
    """Why no chain is given, where none is."""
    nearest_format: str | None
    """The format nearest to the destination that chains lead to, where no chain is given."""
    options: dict[Name, Scalar]
    """The options of the target with which the program is to be run."""
    options_chosen: list[str]
    """Those of them that were found, not given."""
    without_options: RefutedChain | None
    """Where the target fails without the chosen options; null if none were chosen."""
    native_with_options: NativeWithOptions | None
    """The single instruction beside a chain; null if there is none."""


class Lower(Form, PlanEntry):
    """A cast of a specification lowered to a target."""

    NAME: ClassVar[str] = "lower"

    target: str
    """Name of the target."""
    program: str | None
    """Text of the program; null if there is none."""
    file: str | None
    """The file that it was written to; null if it was not written."""
