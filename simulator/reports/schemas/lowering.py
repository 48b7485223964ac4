"""The documents of `castsim lower`, `conform`, `graph`, `accuracy` and `calibrate`."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from pydantic import Field

from castsim.graphs.verdict import NodeVerdict
from castsim.planning import PlanKind, Verdict
from castsim.planning.proof import Method
from castsim.reports.schemas.keys import (
    Bits,
    Bytes,
    Column,
    CommandDocument,
    Cycles,
    Elements,
    Keys,
    Line,
    Name,
    Number,
    Output,
    Percent,
    Scalar,
    Seconds,
    Value,
    WorkerEntry,
    says,
)
from castsim.targets.description import SourceKind

CyclesPerElement = Annotated[float, Field(json_schema_extra={"unit": "cycles per element"})]


class Step(Keys):
    """An instruction of a chain."""

    instruction: str = says("The instruction.")
    options: list[str] = says("What has to be asked of it.")
    src: str = says("Name of its source format.")
    dst: str = says("Name of its destination format.")


class Evidence(Keys):
    """How a verdict was reached."""

    method: Method = says("The method.")
    codes: int = says("How many codes went through.")
    proves: bool = says("Whether that leaves none out.")
    argument: str = says("Why, in words.")


class Cost(Keys):
    """The cost of a program that casts one tensor."""

    cycles: Cycles = says("Cycles of all.")
    elements: Elements = says("Elements cast.")
    cycles_per_element: CyclesPerElement = says("Cycles of an element.")
    scratch_bytes: Bytes = says("Bytes of tmp tiles.")
    buffer_bytes: Bytes = says("Bytes of the buffer, all tiles together.")
    vector_registers: int = says("Vector registers in use.")


class TracedValue(Keys):
    """A value on the way through a chain."""

    step: str | None = says("The instruction that makes it; null for the input.")
    format: str = says("Name of its format.")
    bits: str = says("Its code in hexadecimal.")
    value: Value = says("Its number, or `nan`, `inf`, `-inf`.")


class RequiredResult(Keys):
    """The results that are right for one input."""

    lowest: Number | None = says("The lowest number; null if there is none.")
    highest: Number | None = says("The highest number; null if there is none.")
    further: Number | None = says("A number beside those; null if there is none.")
    nan: bool = says("Whether every NaN is right.")


class CounterexampleEntry(Keys):
    """An input for which a chain is wrong."""

    values: list[TracedValue] = says("Every value on the way, the input first.")
    required: RequiredResult = says("What would be right.")


class RefutedChain(Keys):
    """A chain that fails."""

    chain: list[Step] = says("Its instructions.")
    counterexample: CounterexampleEntry | None = says("Where it fails.")


class NativeWithOptions(Keys):
    """The single instruction beside a chain."""

    options: dict[Name, Scalar] = says("The options of the target that it needs.")
    chain: list[Step] = says("The instruction.")
    cycles_per_element: CyclesPerElement | None = says("Its cost; null if it was not timed.")


class PlanEntry(Keys):
    """How a cast of a specification is lowered."""

    specification: str = says("Name and version, `tosa@1.1`.")
    version_asked: str | None = says("The version that was asked for; null for the default.")
    rule: str = says("The rule of the specification in words.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    way: PlanKind = says("How it is lowered.")
    verdict: Verdict = says("Whether it is right.")
    proven: bool = says("Whether the verdict is certain.")
    claim: str = says("What is claimed, in words.")
    chain: list[Step] = says("The instructions.")
    evidence: Evidence | None = says("How the verdict was reached; null if nothing was tried.")
    cost: Cost | None = says("What it costs; null if it was not timed.")
    counterexample: CounterexampleEntry | None = says("Where it fails; null if it does not.")
    refuted: list[RefutedChain] = says("Chains that fail.")
    steps_searched: int = says("Chains and parts of them that were looked at.")
    reason: str | None = says("Why no chain is given, where none is.")
    nearest_format: str | None
    """The format nearest to the destination that chains lead to, where no chain is given."""
    options: dict[Name, Scalar] = says("The options of the target with which the program is to be run.")
    options_chosen: list[str] = says("Those of them that were found, not given.")
    without_options: RefutedChain | None
    """Where the target fails without the chosen options; null if none were chosen."""
    native_with_options: NativeWithOptions | None
    """The single instruction beside a chain; null if there is none."""


class Lower(CommandDocument, PlanEntry, name="lower"):
    """A cast of a specification lowered to a target."""

    target: str = says("Name of the target.")
    program: str | None = says("Text of the program; null if there is none.")
    file: str | None = says("The file that it was written to; null if it was not written.")


# The documents of `castsim conform` and `castsim accuracy`.


class CellInstruction(Keys):
    """An instruction of a chain."""

    instruction: str = says("The instruction.")
    options: str = says("What has to be asked of it; may be empty.")


class MatrixCell(Keys):
    """A cast of the specification on one target."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    attributes: dict[Name, Scalar] = says("Attributes of the operator.")
    target: str = says("Name of the target.")
    way: PlanKind = says("How it is lowered.")
    verdict: Verdict = says("Whether it is right.")
    path: list[str] = says("Names of the formats on the way.")
    instructions: list[CellInstruction] = says("The instructions.")
    method: Method | None = says("How the verdict was reached; null if nothing was tried.")
    proven: bool = says("Whether the verdict is certain.")
    options: dict[Name, Scalar] = says("The options of the target with which the program is to be run.")
    native_with_options: dict[Name, Scalar] | None
    """The options with which a single instruction does it beside a chain; null if there is none."""
    cycles_per_element: CyclesPerElement | None = says("What it costs; null if it was not timed.")
    counterexample: CounterexampleEntry | None = says("Where it fails; null if it does not.")
    computed_by: int = says("Who computed it: the place in `workers`, from 0.")


class MatrixTotal(Keys):
    """How many casts go one way on one target."""

    target: str = says("Name of the target.")
    way: PlanKind = says("The way.")
    cells: int = says("How many casts.")


class LoweredMatrixCell(MatrixCell):
    """A cast of the specification on the target, and its program."""

    program: str | None = says("Text of the program; null if there is none.")
    file: str | None = says("The file that it was written to; null if it was not written.")


CellEntry = TypeVar("CellEntry", bound=MatrixCell)


class MatrixForm(CommandDocument, Generic[CellEntry]):
    """A matrix: casts of a specification on targets."""

    specification: str = says("Name of the specification.")
    version: str = says("Its version.")
    targets: list[str] = says("Names of the targets.")
    options: dict[Name, Scalar] = says("The options of the targets that were given.")
    cells: list[CellEntry] = says("One entry for each cast and target.")
    totals: list[MatrixTotal] = says("How many casts go which way.")
    workers: list[WorkerEntry] = says("Who computed.")


class Conform(MatrixForm[MatrixCell], name="conform"):
    """Every cast of a specification on targets."""


class LoweredMatrix(MatrixForm[LoweredMatrixCell], name="lower-matrix"):
    """Without SRC and DST: every cast of a specification lowered to one target."""


class Errors(Keys):
    """Statistics of the sizes of errors."""

    mean: Percent = says("Their mean.")
    median: Percent = says("Their median.")
    max: Percent = says("The largest.")


class Counted(Errors):
    """Errors of so many rows."""

    rows: int = says("How many.")


class MeasuredTable(Errors):
    """A table of published figures; the statistics are of its rows."""

    target: str = says("Name of the target.")
    file: str = says("The table.")
    source: str | None = says("Where it is from; null for a table of one's own.")
    measured_on: str
    """The chip that was measured: another one than the target if the description inherits the table."""
    rows: int = says("Rows simulated.")
    rows_skipped: int = says("Rows passed over.")
    unfitted: Counted | None
    """The statistics of those of its rows that no fact was fitted to; null if there are none."""
    public_model: Errors | None = says("The same of the public cost model; null where it says nothing.")


class MeasuredRow(Keys):
    """A published figure and its simulation."""

    target: str = says("Name of the target.")
    columns: dict[str, int | float | str | None] = says("The row as the table has it, by the names of its columns.")
    operation: str = says("The operation.")
    measured_cycles: Cycles = says("The published figure.")
    fitted: bool = says("Whether facts of the target were fitted to it.")
    source_kind: SourceKind | None = says("What it was read off; null if the table does not say.")
    convention: str = says("How the row is read.")
    simulated_rows: int = says("Rows simulated.")
    simulated_cols: int = says("Columns simulated.")
    simulated_cycles: Cycles = says("The simulation's figure.")
    error_percent: Percent = says("How far it is above the published figure.")
    public_model_error_percent: Percent | None
    """The same of the public cost model; null where it says nothing."""
    reason: str | None = says("Why it deviates; null if that is not known, or it does not.")
    computed_by: int = says("Who simulated it: the place in `workers`, from 0.")


class ErrorCurve(Errors):
    """The rows of one operation, type pair and path; the statistics are of these."""

    target: str = says("Name of the target.")
    operation: str = says("The operation.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    path: str = says("Class of the shape.")
    rows: int = says("How many rows.")
    public_model: Errors | None = says("The same of the public cost model; null where it says nothing.")


class SourceErrors(Counted):
    """The errors of rows of one sort."""

    target: str = says("Name of the target.")
    source_kind: SourceKind | None = says("What the cycles were read off; null if the table does not say.")
    fitted: bool = says("Whether facts were fitted to them.")


class KnownErrors(Keys):
    """What the shipped record says of the errors of a kind of operation, in percent of the simulated cycles."""

    target: str = says("Name of the target.")
    kind: str = says("Kind of operation; `any` stands for all with few rows.")
    rows: int = says("Measured rows that were not fitted.")
    refitted: int
    """How many of these are rows of fitted casts, predicted by facts fitted without their kernel."""
    mean: Percent = says("Mean of the absolute errors.")
    median: Percent = says("Their median.")
    maximum: Percent = says("The largest.")
    share: int = says("In how many percent of the cases measured cycles lie in the interval.")
    low: Percent = says("Its lower end.")
    high: Percent = says("Its upper end.")
    held: Percent = says("How many percent of the target's rows did, each group left out in turn.")


class Accuracy(CommandDocument, Errors, name="accuracy"):
    """Simulated against published cycles; the statistics are of all rows."""

    unfitted: Counted | None = says("The statistics of the rows that no fact was fitted to; null if there are none.")
    fitted: Counted | None
    """Those of the rows that facts were fitted to, which confirm nothing; null if there are none."""
    by_source: list[SourceErrors] = says("The same by target and by what the cycles were read off.")
    intervals: list[KnownErrors]
    """Where measured cycles lie around simulated ones, by target and kind of operation."""
    targets: list[MeasuredTable] = says("The tables.")
    rows: list[MeasuredRow] = says("Their rows.")
    curves: list[ErrorCurve] = says("The rows by operation, type pair and path.")
    public_model: Errors | None = says("The statistics of the public cost model; null where it says nothing.")
    workers: list[WorkerEntry] = says("Who simulated.")


class PredictedRow(Keys):
    """A published figure, and what facts fitted without it give."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    path: str = says("Class of the shape.")
    measured_cycles: Cycles = says("The published figure.")
    simulated_rows: int = says("Rows simulated.")
    simulated_cols: int = says("Columns simulated.")
    simulated_cycles: Cycles = says("The simulation's figure.")
    error_percent: Percent = says("How far it is above the published figure.")


class FittedFacts(Errors):
    """The facts that fit all rows, and their errors."""

    facts: dict[Name, float] = says("The facts by path.")


class FoldEntry(FittedFacts):
    """What was left out; the facts that fit all other rows, and their errors on what was left out."""

    left_out: str = says("What was left out.")
    rows: int = says("How many rows that are.")
    predictions: list[PredictedRow] = says("These rows.")


class CrossValidated(CommandDocument, Errors, name="accuracy-cross-validation"):
    """With `--cross-validate`: every published figure predicted by facts fitted without it."""

    target: str = says("Name of the target.")
    file: str = says("The table.")
    left_out: str = says("What is left out each time.")
    rows: int = says("How many rows.")
    nothing_left_out: FittedFacts = says("The fit to all rows.")
    folds: list[FoldEntry] = says("One entry for each thing left out.")


class CalibratedParameter(Keys):
    """A number of the description that was fitted."""

    path: str = says("Its path in the description.")
    before: float = says("What the target says.")
    value: float = says("What fits the rows.")
    standard_error: float | None
    """Its standard error; null at a bound, or where there are no more rows than parameters."""
    low: float = says("The least that it could be.")
    high: float | None = says("The largest; null if there is none.")
    at_bound: bool = says("Whether a bound stopped it.")
    rows: int = says("How many rows depend on it.")


class CalibratedRow(Keys):
    """A measured row, simulated before and after."""

    line: int = says("Its line in the table.")
    operation: str = says("The operation and its parameters.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    measured_cycles: Cycles = says("What was measured.")
    before_cycles: Cycles = says("Simulated on the target.")
    after_cycles: Cycles = says("Simulated on the derived target.")
    before_percent: Percent = says("How far the target is above what was measured.")
    after_percent: Percent = says("How far the derived target is.")


class Calibrated(CommandDocument, name="calibrate"):
    """Numbers of a target fitted to a table; every row of it is a fitted one."""

    target: str = says("Name of the target.")
    file: str = says("The table.")
    out: str = says("The derived description.")
    residual_before_percent: Percent = says("Root of the mean squared error of the rows on the target.")
    residual_percent: Percent = says("The same on the derived target.")
    warnings: list[str]
    """What speaks against the fit: errors beyond the noise of the rows, numbers that they hardly determine."""
    parameters: list[CalibratedParameter] = says("What was fitted.")
    rows: list[CalibratedRow] = says("The rows.")


# The document of `castsim graph`, and of `castsim run` on a graph.


class WitnessSource(Keys):
    """An element from which a wrong one was made."""

    format: str = says("Name of its format.")
    bits: Bits = says("Its code.")


class Witness(Keys):
    """A wrong element."""

    index: list[int] = says("Where it is.")
    sources: list[WitnessSource] = says("The elements from which it was made.")
    result_bits: Bits = says("Its code.")
    expected_bits: Bits | None = says("The right code; null where a set of results is right.")
    text: str = says("The same in words.")


class Comparison(Keys):
    """What came out against what should have."""

    output: str = says("Name of the tensor.")
    against: str = says("By what it is judged.")
    elements: Elements = says("Elements compared.")
    undefined: Elements = says("Elements for which any result is right.")
    wrong: Elements = says("Elements that are wrong.")
    passed: Elements = says("Elements that are not judged, because what they are made of is wrong.")
    because_of_nodes: list[str] = says("The nodes that made that.")
    witness: Witness | None = says("The first wrong element; null if there is none.")


class NodeProgram(Keys):
    """A program of a node."""

    title: str = says("What it does.")
    instructions: list[str] = says("Its instructions.")
    cycles: Cycles = says("Its cycles, loads and stores included.")
    elements: Elements = says("Elements of the tensor.")
    elements_with_filling: Elements = says("The same filled up to whole tiles or registers.")
    tiles: int = says("Tiles or registers.")
    options: dict[Name, Scalar] = says("The options of the target with which it is to be run.")
    file: str | None = says("The file that it was written to; null if it was not written.")
    run: str = says("The command that runs it.")


class Node(Keys):
    """A node of the graph."""

    name: str = says("Its name.")
    operator: str = says("Its operator.")
    line: Line | None = says("Line of the source; null where it is not text.")
    column: Column | None = says("Column of the source; null where it is not text.")
    verdict: NodeVerdict = says("What is known of it.")
    refusal: str | None = says("Why it cannot be lowered; null if it can.")
    unjudged: str | None = says("Why nothing judges it; null if something does.")
    cycles: Cycles | None = says("Cycles of its programs.")
    shapes: list[list[Elements]] = says("Shapes of its results.")
    options: dict[Name, Scalar] = says("The options of the target with which its programs are to be run.")
    options_chosen: list[str] = says("Those of them that were found, not given.")
    plan: PlanEntry | None = says("The lowering of a cast; null for other operators.")
    programs: list[NodeProgram] = says("Its programs.")
    comparisons: list[Comparison] = says("The elements of this run.")
    trial: list[Comparison] = says("The same over every code that it may read.")
    remarks: list[str] = says("What else is to be said.")


class Graph(CommandDocument, name="graph"):
    """A graph that was lowered and ran."""

    graph: str = says("The file.")
    name: str = says("Name of the graph.")
    specification: str = says("Name and version, `onnx@21`.")
    target: str = says("Name of the target.")
    conforms: bool = says("Whether every node is proven or exhaustively tried.")
    agrees: bool = says("Whether no element of this run is wrong.")
    total_cycles: Cycles = says("Cycles of all programs.")
    seconds: Seconds = says("The same at the target's frequency.")
    conventions: list[str] = says("How cycles are to be read.")
    nodes: list[Node] = says("The nodes, in the order of execution.")
    outputs: list[Output] = says("The outputs of the graph.")
    whole_graph: list[Comparison] = says("The outputs against those of the whole graph.")
    whole_graph_unjudged: str | None = says("Why nothing judges them; null if something does.")
