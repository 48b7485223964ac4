"""A planned cast as JSON, and what its text shares with it; ways to a block format; lowered casts that ran again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.isa.formats import Format, IntFormat
from castsim.lowering.demand import Counterexample, Number, Required, Verdict
from castsim.lowering.lowering_answers import Answer
from castsim.lowering.planner import PlanKind
from castsim.lowering.proof import Method
from castsim.reports.documents import VERSIONS, CommandDocument, Document, Keys, numbered, says
from castsim.reports.numbers import bits_text, ends_document, json_value
from castsim.reports.schemas.keys import Bytes, Cycles, CyclesPerElement, Elements, Name, Scalar, Value
from castsim.reports.schemas.keys import Number as NumberKeys

if TYPE_CHECKING:
    from castsim.evidence.verification.lowering import LoweringRecord
    from castsim.running.block_lowering import BlockLowering


class Step(Keys):
    """An instruction of a chain."""

    instruction: str = says("The instruction.", "name")
    options: list[str] = says("What has to be asked of it.", lambda step: step.forms[0].options)
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
    vector_registers: int = says("Vector registers in use.", "registers")


class TracedValue(Keys):
    """A value on the way through a chain."""

    step: str | None = says("The instruction that makes it; null for the input.")
    format: str = says("Name of its format.")
    bits: str = says("Its code in hexadecimal.", lambda traced: code_text(traced.code, traced.format))
    value: Value = says("Its number, or `nan`, `inf`, `-inf`.", lambda traced: json_value(traced.value, traced.format))


class RequiredResult(Keys):
    """The results that are right for one input."""

    lowest: NumberKeys | None = says("The lowest number; null if there is none.")
    highest: NumberKeys | None = says("The highest number; null if there is none.")
    further: NumberKeys | None = says("A number beside those; null if there is none.")
    nan: bool = says("Whether every NaN is right.")


def _required(found: Counterexample) -> Document:
    required = found.required
    ends = required.lowest, required.highest, required.further
    return RequiredResult.of(required, **ends_document(ends, found.result.format, code_text))


class CounterexampleEntry(Keys):
    """An input for which a chain is wrong."""

    values: list[TracedValue] = says("Every value on the way, the input first.")
    required: RequiredResult = says("What would be right.", _required)


class RefutedChain(Keys):
    """A chain that fails."""

    chain: list[Step] = says("Its instructions.")
    counterexample: CounterexampleEntry | None = says("Where it fails.")


class NativeWithOptions(Keys):
    """The single instruction beside a chain."""

    options: dict[Name, Scalar] = says("The options of the target that it needs.")
    chain: list[Step] = says("The instruction.", "plan.chain")
    cycles_per_element: CyclesPerElement | None = says(
        of=lambda native: native.plan.cost and native.plan.cost.cycles_per_element
    )
    """Its cost; null if it was not timed."""


def _native(answer: Answer) -> Document | None:
    native = answer.native
    return None if native is None else NativeWithOptions.of(native, options=dict((*answer.given, *native.setting)))


class PlanEntry(Keys):
    """How a cast of a specification is lowered."""

    specification: str = says("Name and version, `tosa@1.1`.", "plan.demand.label")
    version_asked: str | None = says(of=lambda answer: answer.plan.request.version and str(answer.plan.request.version))
    """The version that was asked for; null for the default."""
    rule: str = says("The rule of the specification in words.", "plan.demand.cast.rule.meaning")
    src: str = says("Name of the source format.", "plan.demand.src")
    dst: str = says("Name of the destination format.", "plan.demand.dst")
    way: PlanKind = says("How it is lowered.", "kind")
    verdict: Verdict = says("Whether it is right.", "plan.verdict")
    proven: bool = says("Whether the verdict is certain.", "plan.proven")
    claim: str = says("What is claimed, in words.", "plan.claim")
    chain: list[Step] = says("The instructions.", "plan.chain")
    evidence: Evidence | None = says("How the verdict was reached; null if nothing was tried.", "plan.evidence")
    cost: Cost | None = says("What it costs; null if it was not timed.", "plan.cost")
    counterexample: CounterexampleEntry | None = says("Where it fails; null if it does not.", "plan.counterexample")
    refuted: list[RefutedChain] = says("Chains that fail.", "plan.refuted")
    steps_searched: int = says("Chains and parts of them that were looked at.", "plan.searched")
    reason: str | None = says("Why no chain is given, where none is.", "plan.reason")
    nearest_format: str | None = says(of="plan.nearest")
    """The format nearest to the destination that chains lead to, where no chain is given."""
    options: dict[Name, Scalar] = says(of=lambda answer: dict(answer.settings))
    """The options of the target with which the program is to be run."""
    options_chosen: list[str] = says(of=lambda answer: [name for name, _ in answer.chosen])
    """Those of them that were found, not given."""
    without_options: RefutedChain | None = says(of="refuted")
    """Where the target fails without the chosen options; null if none were chosen."""
    native_with_options: NativeWithOptions | None = says(of=_native)
    """The single instruction beside a chain; null if there is none."""


class Lower(CommandDocument, PlanEntry, name="lower"):
    """A cast of a specification lowered to a target."""

    target: str = says("Name of the target.", "plan.target")
    program: str | None = says("Text of the program; null if there is none.", "text")
    file: str | None = says("The file that it was written to; null if it was not written.")


def answer_document(answer: Answer, out: str | None) -> Document:
    """Return an answer as JSON; `out` is the file that its program was written to."""
    return Lower.of(answer, file=None if answer.plan.text is None else out)


def code_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal; of a boolean the whole byte, which may be true without being 1."""
    whole = isinstance(fmt, IntFormat) and fmt.boolean
    return f"0x{code:02x}" if whole else bits_text(code, fmt)


def number_text(value: Number) -> str:
    """Return a number as a report shows it: whole where it is, else in the shortest decimal."""
    if isinstance(value, float):
        return "-0" if value == 0 else str(value)
    if value.denominator == 1:
        return str(value.numerator)
    return repr(float(value))


def required_text(required: Required, dst: Format) -> str:
    """Return in words what would be right."""
    parts = []
    if required.lowest is not None and required.highest is not None:
        low, high = (
            f"{number_text(value)} ({code_text(code, dst)})" for code, value in (required.lowest, required.highest)
        )
        parts.append(low if required.lowest == required.highest else f"{low} to {high}")
        if required.further is not None:
            parts.append(f"{number_text(required.further[1])} ({code_text(required.further[0], dst)})")
    if required.nan:
        parts.append("NaN")
    return " or ".join(parts)


# The ways to a block format on a target.


class BlockWay(Keys):
    """One way to a block format."""

    kind: str = says("`operation` or `chain`.")
    rule: str = says("The rule by which scales follow from the largest magnitude.")
    operations: list[str] = says("Names of the operations, in order.")
    cycles: int = says("Cycles of the program, loads and stores included.")
    cycles_per_element: float = says("The same for each element.")
    differs: list[str] = says("Where results are not those of `castsim quantise`.")
    program: str = says("The program.")


class LoweredBlocks(CommandDocument, name="lower-blocks"):
    """The ways to a block format on a target."""

    src: str = says("Format of the numbers.")
    format: str = says("Name of the block format.")
    target: str = says("Name of the target.")
    rows: int = says("Rows of the tensor.")
    cols: int = says("Its columns.")
    ways: list[BlockWay] = says("The ways; empty if there is none.")
    refused: list[str] = says("Why there are no others.")
    file: str | None = says("With `--out`: the file of the first program.")


def block_lowering_document(found: BlockLowering, out: str | None) -> Document:
    """Return the document; `out` is the file that the first program was written to."""
    size = found.rows * found.cols
    ways = [BlockWay.of(way, cycles_per_element=way.cycles / size) for way in found.ways]
    return LoweredBlocks.of(found, ways=ways, file=out if found.ways else None)


# A record of lowered casts that were run again.


def lowering_document(record: LoweringRecord) -> Document:
    """Return a record as JSON, attributes by name."""
    found = record.document()
    return {
        **found,
        "schema_version": VERSIONS["verify-lowering"],  # of the command's document, not of the record
        "results": [{**row, "attributes": numbered(dict(row["attributes"]))} for row in found["results"]],
        "missing": [{**row, "attributes": numbered(dict(row["attributes"]))} for row in found["missing"]],
    }
