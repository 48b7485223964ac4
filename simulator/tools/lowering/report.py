"""A planned cast as JSON and as text; ways to produce a block format as text."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from castsim.isa.formats import Format
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.numbers import Number, grouped
from castsim.reports.schemas.keys import Bytes, Cycles, CyclesPerElement, Elements, Name, Scalar
from castsim.reports.targets import specification_words
from castsim.reports.terminal import composed, indented, table
from castsim.targets.loader import Target
from castsim.tools.lowering.catalogue import ProgramCost
from castsim.tools.lowering.demand import Counterexample, Required, Verdict
from castsim.tools.lowering.lowering_answers import Alternative, Answer, options_text, setting_text
from castsim.tools.lowering.planner import CounterexampleEntry, Plan, PlanKind, Refuted, Step, code_text
from castsim.tools.lowering.proof import Evidence, Method
from castsim.tools.lowering.steps import Chain, path_of

if TYPE_CHECKING:
    from castsim.tools.lowering.block_lowering import BlockWay, LoweredBlocks


class Cost(Keys):
    """The cost of a program that casts one tensor."""

    cycles: Cycles = says("Cycles of all elements.")
    elements: Elements = says("Number of cast elements.")
    cycles_per_element: CyclesPerElement = says("Cycles per element.")
    scratch_bytes: Bytes = says("Bytes of tmp tiles.")
    buffer_bytes: Bytes = says("Bytes of the buffer for all tiles together.")
    vector_registers: int = says("Number of used vector registers.", "registers")


class RefutedChain(Keys):
    """A chain that fails."""

    chain: list[Step] = says("Its instructions.")
    counterexample: CounterexampleEntry | None = says("An input with a wrong result.")


class NativeWithOptions(Keys):
    """A single instruction in addition to a chain."""

    options: dict[Name, Scalar] = says("The required options of the target.")
    chain: list[Step] = says("The instruction.", "plan.chain")
    cycles_per_element: CyclesPerElement | None = says(
        of=lambda native: native.plan.cost and native.plan.cost.cycles_per_element
    )
    """Its cycles per element; null if it was not timed."""


def _native(answer: Answer) -> Document | None:
    native = answer.native
    return None if native is None else NativeWithOptions.of(native, options=dict((*answer.given, *native.setting)))


class PlanEntry(Keys):
    """How a cast of a specification is lowered."""

    specification: str = says("Name and version, `tosa@1.1`.", "plan.demand.label")
    version_asked: str | None = says(of=lambda answer: answer.plan.request.version and str(answer.plan.request.version))
    """The requested version; null for the default."""
    rule: str = says("The rule of the specification in words.", "plan.demand.cast.rule.meaning")
    src: str = says("Name of the source format.", "plan.demand.src")
    dst: str = says("Name of the destination format.", "plan.demand.dst")
    way: PlanKind = says("Method of the lowering.", "kind")
    verdict: Verdict = says("Whether the results are correct.", "plan.verdict")
    proven: bool = says("Whether the verdict is proven.", "plan.proven")
    claim: str = says("The claim in words.", "plan.claim")
    chain: list[Step] = says("The instructions.", "plan.chain")
    evidence: Evidence | None = says("Evidence for the verdict; null if nothing was tried.", "plan.evidence")
    cost: Cost | None = says("Cost of the cast; null if it was not timed.", "plan.cost")
    counterexample: CounterexampleEntry | None = says(
        "An input with a wrong result; null if there is none.", "plan.counterexample"
    )
    refuted: list[RefutedChain] = says("Rejected chains.", "plan.refuted")
    steps_searched: int = says("Number of examined chains and parts of chains.", "plan.searched")
    reason: str | None = says("The reason why no chain is given, if there is none.", "plan.reason")
    nearest_format: str | None = says(of="plan.nearest")
    """The reachable format nearest to the destination, if no chain reaches the destination."""
    options: dict[Name, Scalar] = says(of=lambda answer: dict(answer.settings))
    """The target options that the program needs."""
    options_chosen: list[str] = says(of=lambda answer: [name for name, _ in answer.chosen])
    """The options among them that the search chose."""
    without_options: RefutedChain | None = says(of="refuted")
    """First failure without the chosen options; null if none were chosen."""
    native_with_options: NativeWithOptions | None = says(of=_native)
    """The single instruction in addition to a chain; null if there is none."""


class Lower(CommandDocument, PlanEntry, name="lower", version=2):
    """A cast of a specification lowered to a target."""

    target: str = says("Name of the target.", "plan.target")
    program: str | None = says("Text of the program; null if there is none.", "text")
    file: str | None = says("The output file; null if none was written.")


def answer_document(answer: Answer, out: str | None) -> Document:
    """Return an answer as JSON; `out` is the file with its program."""
    return Lower.of(answer, file=None if answer.plan.text is None else out)


def number_text(value: Number) -> str:
    """Return a number as a report shows it: an integer in full, otherwise the shortest decimal."""
    if isinstance(value, float):
        return "-0" if value == 0 else str(value)
    if value.denominator == 1:
        return str(value.numerator)
    return repr(float(value))


def required_text(required: Required, dst: Format) -> str:
    """Return the correct results in words."""
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


# As text.


@composed
def lower_text(answer: Answer, out: str | None) -> Iterator[RenderableType]:
    """Yield the report on an answer; `out` is the file with its program."""
    yield from answer_parts(answer)
    if answer.plan.text is not None:
        yield Text("")
        yield from map(Text, _next(answer, out))


def answer_parts(answer: Answer) -> Iterator[RenderableType]:
    """Yield the parts of an answer: method, reason for the verdict, cost, and the failure of a nonconforming cast."""
    plan = answer.plan
    demand = plan.demand
    cast = f"{demand.src.name} -> {demand.dst.name} on {plan.target.name}"
    yield Text(f"{cast}{headline(answer)}")
    yield indented(Text(f"rule: {demand.cast.rule.meaning}"))
    yield from (indented(Text(option_text(plan.target, name, value))) for name, value in answer.settings)
    if plan.chain:
        yield from (Text(""), indented(_steps(plan.chain)))
    if plan.evidence is not None:
        yield indented(Text(evidence_text(plan, plan.evidence)))
    if plan.cost is not None:
        yield indented(Text(cost_text(plan.cost)))
    if answer.native is not None:
        yield indented(Text(_native_text(answer.native)))
    if plan.counterexample is not None:
        yield from counterexample_text(plan.counterexample)
    for refuted in plan.refuted:
        yield from _refutation("not unchanged: ", refuted)
    if answer.refuted is not None:
        yield from _refutation("not without these options; the closest chain is ", answer.refuted)


def _refutation(words: str, refuted: Refuted | Plan) -> Iterator[RenderableType]:
    if refuted.counterexample is not None:
        shown = ", ".join(step.label for step in refuted.chain)
        yield from (Text(""), Text(f"{words}{shown}"), *counterexample_text(refuted.counterexample))


def _next(answer: Answer, out: str | None) -> Iterator[str]:
    """Yield the commands that print the program and run it."""
    options = f" {options_text(answer.settings)}" if answer.settings else ""
    run = f"castsim run {quote(out or 'FILE')}{options} --in src=random:0"
    if out is not None:
        yield f"program written to {out}; run it with: {run}"
        return
    yield "--out FILE writes the program, --out - prints only the program"
    if options:
        yield f"run it with: {run}"


def _asked(plan: Plan) -> str:
    """Return the requested version if another version's rule is in force."""
    version, cast = plan.request.version, plan.demand.cast
    if version is None or str(version) == cast.version:
        return ""
    return f" ({specification_words(f'{cast.spec.name}@{version}')} has the cast of version {cast.version})"


def headline(answer: Answer) -> str:
    """Return the headline after `SRC -> DST on TARGET`: the method, options and verdict, or the failure."""
    plan = answer.plan
    if plan.kind.fails or plan.verdict is Verdict.DIFFERS:
        return f" does not conform to {specification_words(plan.demand.label)}{_asked(plan)}: {_failing(plan)}"
    asked = f", as {specification_words(plan.demand.label)} asks{_asked(plan)}"
    if not answer.chosen:
        modes = ", ".join(option for step in plan.chain for option in step.forms[0].options)
        kind = f"native with {modes}" if answer.kind is PlanKind.OPTIONS else answer.kind.value
        return f"{asked}: {kind}, {plan.claim}"
    kind = answer.kind.value if answer.kind is PlanKind.OPTIONS else f"{answer.kind.value} with options"
    return f"{asked}: {kind}: {setting_text(answer.chosen)}, {plan.claim}"


def _failing(plan: Plan) -> str:
    clauses = []
    if plan.kind.fails:
        shown = "" if plan.nearest is None else f"; the nearest format that chains make is {plan.nearest}"
        clauses = [f"{plan.reason} ({plan.searched} instructions and modes tried){shown}"]
    if plan.counterexample is not None:
        by = path_of(plan.chain)[1:-1]
        chain = f"the best chain, by {', '.join(by)}," if by else "the instruction itself"
        clauses.append(f"{chain} fails first at {number_text(plan.counterexample.values[0].value)}")
    return "; ".join(clauses)


def evidence_text(plan: Plan, evidence: Evidence) -> str:
    """Return the evidence for the verdict on a plan's chain."""
    proven = evidence.proves and plan.verdict is not Verdict.DIFFERS
    why = evidence.argument
    if evidence.method is Method.BREAKPOINTS:
        why = (
            f"the cast is monotonic, so {grouped(evidence.codes)} codes suffice: the ends of its output ranges and NaNs"
        )
    return f"{f'proven for every {plan.demand.src.name}' if proven else plan.claim}: {why}"


def option_text(target: Target, name: str, value: int | str) -> str:
    """Return the meaning of a target option, and who sets it."""
    option = target.options[name]
    setter = f"; set by {option.set_by}" if option.set_by else ""
    return f"option {name}={value}: {option.meaning}{setter}"


def _native_text(alternative: Alternative) -> str:
    cost = (
        "" if alternative.plan.cost is None else f", {alternative.plan.cost.cycles_per_element:.4f} cycles per element"
    )
    return f"also native with options: {setting_text(alternative.setting)}{cost} ({chain_text(alternative.plan.chain)})"


def _steps(chain: Chain) -> RenderableType:
    rows = (
        (str(number), step.name, step.src.name, step.dst.name, ", ".join(step.forms[0].options))
        for number, step in enumerate(chain, 1)
    )
    return table(">step", "instruction", "from", "to", "options", rows=rows)


def cost_text(cost: ProgramCost) -> str:
    """Return the cost of a program in words."""
    text = (
        f"cost: {cost.cycles_per_element:.4f} cycles per element, {cost.cycles:,} cycles for {cost.elements:,} elements"
    )
    text += " with loads and stores"
    if cost.scratch_bytes:
        text += f"; {cost.scratch_bytes:,} bytes of scratch"
    if cost.buffer_bytes:
        text += f"; {cost.buffer_bytes:,} bytes of buffer"
    return text + (f"; {cost.registers} vector registers" if cost.registers else "")


def counterexample_text(counterexample: Counterexample) -> list[RenderableType]:
    """Return all values from the input on which a chain fails to its result, and the correct result."""
    rows = (
        (value.step or "input", value.format.name, code_text(value.code, value.format), number_text(value.value))
        for value in counterexample.values
    )
    right = required_text(counterexample.required, counterexample.result.format)
    values = table("after", "format", ">bits", ">value", rows=rows)
    return [indented(values), indented(Text(f"correct: {right}"))]


def chain_text(chain: Chain) -> str:
    """Return a chain in one line: its formats, and the required modes."""
    options = [", ".join(step.forms[0].options) for step in chain]
    names = path_of(chain)
    shown = " -> ".join(names)
    asked = "; ".join(f"{step.name}: {option}" for step, option in zip(chain, options, strict=True) if option)
    return f"{shown} ({asked})" if asked else shown


# The ways to a block format on a target.


@composed
def block_lowering_text(lowering: LoweredBlocks, out: str | None) -> Iterator[RenderableType]:
    """Yield the report; `out` is the file with the first program."""
    answer = "no way" if not lowering.ways else f"{lowering.ways[0].kind} ({len(lowering.ways)} in all)"
    yield Text(f"{lowering.src} -> {lowering.format} on {lowering.target}: {answer}", style="bold")
    for way in lowering.ways:
        yield from _way(way, lowering)
    if lowering.refused:
        yield Text("other ways fail:" if lowering.ways else "reasons:")
        yield from (indented(Text(reason)) for reason in lowering.refused)
    if lowering.ways and out is None:
        yield Text("--out FILE writes the first program, --out - prints it alone; run it with: castsim run FILE")
    elif lowering.ways:
        run = f"castsim run {quote(out or '')} --target {lowering.target} --in x=random:0"
        yield Text(f"program written to {out}; run it with: {run}")


def _way(way: BlockWay, lowering: LoweredBlocks) -> Iterator[RenderableType]:
    cycles = f"{way.cycles:,} cycles for {lowering.rows} x {lowering.cols} elements, loads and stores included"
    yield Text(f"{way.kind} by the rule {way.rule}: {', '.join(way.operations)}")
    yield indented(Text(f"{cycles}: {way.cycles_per_element:.3g} each"))
    yield from (indented(Text(f"unlike castsim quantise: {difference}")) for difference in way.differs)
