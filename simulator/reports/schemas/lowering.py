"""The documents of `castsim lower`, and what those of `conform` and `graph` share with it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Generic, TypeVar

from pydantic import Field

from castsim.planning import PlanKind, Verdict
from castsim.planning.judgement import Method
from castsim.reports.schemas.keys import Bytes, Cycles, Elements, Form, Keys, Name, Percent, Scalar, Value
from castsim.reports.schemas.objects import Number, WorkerEntry
from castsim.targets.description import SourceKind

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


# The documents of `castsim conform` and `castsim accuracy`.


class CellInstruction(Keys):
    """An instruction of a chain."""

    instruction: str
    """The instruction."""
    options: str
    """What has to be asked of it; may be empty."""


class MatrixCell(Keys):
    """A cast of the specification on one target."""

    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    attributes: dict[Name, Scalar]
    """Attributes of the operator."""
    target: str
    """Name of the target."""
    way: PlanKind
    """How it is lowered."""
    verdict: Verdict
    """Whether it is right."""
    path: list[str]
    """Names of the formats on the way."""
    instructions: list[CellInstruction]
    """The instructions."""
    method: Method | None
    """How the verdict was reached; null if nothing was tried."""
    proven: bool
    """Whether the verdict is certain."""
    options: dict[Name, Scalar]
    """The options of the target with which the program is to be run."""
    native_with_options: dict[Name, Scalar] | None
    """The options with which a single instruction does it beside a chain; null if there is none."""
    cycles_per_element: CyclesPerElement | None
    """What it costs; null if it was not timed."""
    counterexample: CounterexampleEntry | None
    """Where it fails; null if it does not."""
    computed_by: int
    """Who computed it: the place in `workers`, from 0."""


class MatrixTotal(Keys):
    """How many casts go one way on one target."""

    target: str
    """Name of the target."""
    way: PlanKind
    """The way."""
    cells: int
    """How many casts."""


class LoweredMatrixCell(MatrixCell):
    """A cast of the specification on the target, and its program."""

    program: str | None
    """Text of the program; null if there is none."""
    file: str | None
    """The file that it was written to; null if it was not written."""


CellEntry = TypeVar("CellEntry", bound=MatrixCell)


class MatrixForm(Form, Generic[CellEntry]):
    """A matrix: casts of a specification on targets."""

    specification: str
    """Name of the specification."""
    version: str
    """Its version."""
    targets: list[str]
    """Names of the targets."""
    options: dict[Name, Scalar]
    """The options of the targets that were given."""
    cells: list[CellEntry]
    """One entry for each cast and target."""
    totals: list[MatrixTotal]
    """How many casts go which way."""
    workers: list[WorkerEntry]
    """Who computed."""


class Conform(MatrixForm[MatrixCell]):
    """Every cast of a specification on targets."""

    NAME: ClassVar[str] = "conform"


class LoweredMatrix(MatrixForm[LoweredMatrixCell]):
    """Without SRC and DST: every cast of a specification lowered to one target."""

    NAME: ClassVar[str] = "lower-matrix"


class Errors(Keys):
    """Statistics of the sizes of errors."""

    mean: Percent
    """Their mean."""
    median: Percent
    """Their median."""
    max: Percent
    """The largest."""


class Counted(Errors):
    """Errors of so many rows."""

    rows: int
    """How many."""


class MeasuredTable(Errors):
    """A table of published figures; the statistics are of its rows."""

    target: str
    """Name of the target."""
    file: str
    """The table."""
    source: str | None
    """Where it is from; null for a table of one's own."""
    measured_on: str
    """The chip that was measured: another one than the target if the description inherits the table."""
    rows: int
    """Rows simulated."""
    rows_skipped: int
    """Rows passed over."""
    unfitted: Counted | None
    """The statistics of those of its rows that no fact was fitted to; null if there are none."""
    public_model: Errors | None
    """The same of the public cost model; null where it says nothing."""


class MeasuredRow(Keys):
    """A published figure and its simulation."""

    target: str
    """Name of the target."""
    columns: dict[str, int | float | str | None]
    """The row as the table has it, by the names of its columns."""
    operation: str
    """The operation."""
    measured_cycles: Cycles
    """The published figure."""
    fitted: bool
    """Whether facts of the target were fitted to it."""
    source_kind: SourceKind | None
    """What it was read off; null if the table does not say."""
    convention: str
    """How the row is read."""
    simulated_rows: int
    """Rows simulated."""
    simulated_cols: int
    """Columns simulated."""
    simulated_cycles: Cycles
    """The simulation's figure."""
    error_percent: Percent
    """How far it is above the published figure."""
    public_model_error_percent: Percent | None
    """The same of the public cost model; null where it says nothing."""
    reason: str | None
    """Why it deviates; null if that is not known, or it does not."""
    computed_by: int
    """Who simulated it: the place in `workers`, from 0."""


class ErrorCurve(Errors):
    """The rows of one operation, type pair and path; the statistics are of these."""

    target: str
    """Name of the target."""
    operation: str
    """The operation."""
    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    path: str
    """Class of the shape."""
    rows: int
    """How many rows."""
    public_model: Errors | None
    """The same of the public cost model; null where it says nothing."""


class SourceErrors(Counted):
    """The errors of rows of one sort."""

    target: str
    """Name of the target."""
    source_kind: SourceKind | None
    """What the cycles were read off; null if the table does not say."""
    fitted: bool
    """Whether facts were fitted to them."""


class KnownErrors(Keys):
    """What the shipped record says of the errors of a kind of operation, in percent of the simulated cycles."""

    target: str
    """Name of the target."""
    kind: str
    """Kind of operation; `any` stands for all with few rows."""
    rows: int
    """Measured rows that were not fitted."""
    refitted: int
    """How many of these are rows of fitted casts, predicted by facts fitted without their kernel."""
    mean: Percent
    """Mean of the absolute errors."""
    median: Percent
    """Their median."""
    maximum: Percent
    """The largest."""
    share: int
    """In how many percent of the cases measured cycles lie in the interval."""
    low: Percent
    """Its lower end."""
    high: Percent
    """Its upper end."""
    held: Percent
    """How many percent of the target's rows did, each group left out in turn."""


class Accuracy(Form, Errors):
    """Simulated against published cycles; the statistics are of all rows."""

    NAME: ClassVar[str] = "accuracy"

    unfitted: Counted | None
    """The statistics of the rows that no fact was fitted to; null if there are none."""
    fitted: Counted | None
    """Those of the rows that facts were fitted to, which confirm nothing; null if there are none."""
    by_source: list[SourceErrors]
    """The same by target and by what the cycles were read off."""
    intervals: list[KnownErrors]
    """Where measured cycles lie around simulated ones, by target and kind of operation."""
    targets: list[MeasuredTable]
    """The tables."""
    rows: list[MeasuredRow]
    """Their rows."""
    curves: list[ErrorCurve]
    """The rows by operation, type pair and path."""
    public_model: Errors | None
    """The statistics of the public cost model; null where it says nothing."""
    workers: list[WorkerEntry]
    """Who simulated."""


class PredictedRow(Keys):
    """A published figure, and what facts fitted without it give."""

    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    path: str
    """Class of the shape."""
    measured_cycles: Cycles
    """The published figure."""
    simulated_rows: int
    """Rows simulated."""
    simulated_cols: int
    """Columns simulated."""
    simulated_cycles: Cycles
    """The simulation's figure."""
    error_percent: Percent
    """How far it is above the published figure."""


class FittedFacts(Errors):
    """The facts that fit all rows, and their errors."""

    facts: dict[Name, float]
    """The facts by path."""


class FoldEntry(FittedFacts):
    """What was left out; the facts that fit all other rows, and their errors on what was left out."""

    left_out: str
    """What was left out."""
    rows: int
    """How many rows that are."""
    predictions: list[PredictedRow]
    """These rows."""


class CrossValidated(Form, Errors):
    """With `--cross-validate`: every published figure predicted by facts fitted without it."""

    NAME: ClassVar[str] = "accuracy-cross-validation"

    target: str
    """Name of the target."""
    file: str
    """The table."""
    left_out: str
    """What is left out each time."""
    rows: int
    """How many rows."""
    nothing_left_out: FittedFacts
    """The fit to all rows."""
    folds: list[FoldEntry]
    """One entry for each thing left out."""


class CalibratedParameter(Keys):
    """A number of the description that was fitted."""

    path: str
    """Its path in the description."""
    before: float
    """What the target says."""
    value: float
    """What fits the rows."""
    standard_error: float | None
    """Its standard error; null at a bound, or where there are no more rows than parameters."""
    low: float
    """The least that it could be."""
    high: float | None
    """The largest; null if there is none."""
    at_bound: bool
    """Whether a bound stopped it."""
    rows: int
    """How many rows depend on it."""


class CalibratedRow(Keys):
    """A measured row, simulated before and after."""

    line: int
    """Its line in the table."""
    operation: str
    """The operation and its parameters."""
    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    measured_cycles: Cycles
    """What was measured."""
    before_cycles: Cycles
    """Simulated on the target."""
    after_cycles: Cycles
    """Simulated on the derived target."""
    before_percent: Percent
    """How far the target is above what was measured."""
    after_percent: Percent
    """How far the derived target is."""


class Calibrated(Form):
    """Numbers of a target fitted to a table; every row of it is a fitted one."""

    NAME: ClassVar[str] = "calibrate"

    target: str
    """Name of the target."""
    file: str
    """The table."""
    out: str
    """The derived description."""
    residual_before_percent: Percent
    """Root of the mean squared error of the rows on the target."""
    residual_percent: Percent
    """The same on the derived target."""
    warnings: list[str]
    """What speaks against the fit: errors beyond the noise of the rows, numbers that they hardly determine."""
    parameters: list[CalibratedParameter]
    """What was fitted."""
    rows: list[CalibratedRow]
    """The rows."""
