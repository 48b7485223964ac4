"""A planned cast as text; ways to a block format; lowered casts that ran again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.lowering.catalogue import ProgramCost
from castsim.lowering.demand import Counterexample, Verdict
from castsim.lowering.lowering_answers import Alternative, Answer, options_text, setting_text
from castsim.lowering.planner import Plan, PlanKind
from castsim.lowering.proof import Evidence, Method
from castsim.lowering.steps import Chain, path_of
from castsim.reports.lower import code_text, number_text, required_text
from castsim.reports.numbers import grouped
from castsim.reports.specification import specification_words
from castsim.reports.terminal import composed, indented, table
from castsim.targets.loader import Target

if TYPE_CHECKING:
    from castsim.evidence.verification.lowering import Checked, LoweringRecord
    from castsim.running.block_lowering import BlockLowering, BlockWay


@composed
def lower_text(answer: Answer, out: str | None) -> Iterator[RenderableType]:
    """Yield the report on an answer; `out` is the file that its program was written to."""
    yield from answer_parts(answer)
    if answer.plan.text is not None:
        yield Text("")
        yield from map(Text, _next(answer, out))


def answer_parts(answer: Answer) -> Iterator[RenderableType]:
    """Yield the parts of an answer: how, why the verdict holds, the cost, and where a nonconforming cast fails."""
    found = answer.plan
    demand = found.demand
    cast = f"{demand.src.name} -> {demand.dst.name} on {found.target.name}"
    yield Text(f"{cast}{headline(answer)}")
    yield indented(Text(f"rule: {demand.cast.rule.meaning}"))
    yield from (indented(Text(option_text(found.target, name, value))) for name, value in answer.settings)
    if found.chain:
        yield from (Text(""), indented(_steps(found.chain)))
    if found.evidence is not None:
        yield indented(Text(evidence_text(found, found.evidence)))
    if found.cost is not None:
        yield indented(Text(cost_text(found.cost)))
    if answer.native is not None:
        yield indented(Text(_native_text(answer.native)))
    if found.counterexample is not None:
        yield from counterexample_text(found.counterexample, found)
    for one in found.refuted:
        shown = ", ".join(step.label for step in one.chain)
        yield from (Text(""), Text(f"not as it stands: {shown}"), *counterexample_text(one.counterexample, found))
    if answer.refuted is not None and answer.refuted.counterexample is not None:
        shown = ", ".join(step.label for step in answer.refuted.chain)
        yield from (Text(""), Text(f"not without these options; the closest chain is {shown}"))
        yield from counterexample_text(answer.refuted.counterexample, found)


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


def _asked(found: Plan) -> str:
    """Return the requested version where the rule of another one is in force."""
    version, cast = found.request.version, found.demand.cast
    if version is None or str(version) == cast.version:
        return ""
    return f" ({specification_words(f'{cast.spec.name}@{version}')} has the cast of version {cast.version})"


def headline(answer: Answer) -> str:
    """Return the headline after `SRC -> DST on TARGET`: how, the options and the verdict, or that it fails."""
    found = answer.plan
    if found.kind.fails or found.verdict is Verdict.DIFFERS:
        return f" does not conform to {specification_words(found.demand.label)}{_asked(found)}: {_failing(found)}"
    asked = f", as {specification_words(found.demand.label)} asks{_asked(found)}"
    if not answer.chosen:
        modes = ", ".join(option for step in found.chain for form in step.forms[:1] for option in form.options)
        kind = f"native with {modes}" if answer.kind is PlanKind.OPTIONS else answer.kind.value
        return f"{asked}: {kind}, {found.claim}"
    kind = answer.kind.value if answer.kind is PlanKind.OPTIONS else f"{answer.kind.value} with options"
    return f"{asked}: {kind}: {setting_text(answer.chosen)}, {found.claim}"


def _failing(found: Plan) -> str:
    said = []
    if found.kind.fails:
        shown = "" if found.nearest is None else f"; the nearest format that chains make is {found.nearest}"
        said = [f"{found.reason} ({found.searched} instructions and modes tried){shown}"]
    if found.counterexample is not None:
        by = path_of(found.chain)[1:-1]
        chain = f"the best chain, by {', '.join(by)}," if by else "the instruction itself"
        said.append(f"{chain} fails first at {number_text(found.counterexample.values[0].value)}")
    return "; ".join(said)


def evidence_text(found: Plan, evidence: Evidence) -> str:
    """Return why the verdict on a plan's chain holds."""
    proven = evidence.proves and found.verdict is not Verdict.DIFFERS
    why = evidence.argument
    if evidence.method is Method.BREAKPOINTS:
        why = (
            f"the cast is monotonic, so {grouped(evidence.codes)} codes suffice: the ends of its output ranges and NaNs"
        )
    return f"{f'proven for every {found.demand.src.name}' if proven else found.claim}: {why}"


def option_text(target: Target, name: str, value: int | str) -> str:
    """Return the meaning of an option of a target, and who sets it."""
    option = target.options[name]
    setter = f"; set by {option.set_by}" if option.set_by else ""
    return f"option {name}={value}: {option.meaning}{setter}"


def _native_text(found: Alternative) -> str:
    cost = "" if found.plan.cost is None else f", {found.plan.cost.cycles_per_element:.4f} cycles per element"
    return f"also native with options: {setting_text(found.setting)}{cost} ({chain_text(found.plan.chain)})"


def _steps(chain: Chain) -> RenderableType:
    rows = table("step", "instruction", "from", "to", "options", numbers=("step",))
    for number, step in enumerate(chain, 1):
        rows.add_row(str(number), step.name, step.src.name, step.dst.name, ", ".join(step.forms[0].options))
    return rows


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


def counterexample_text(found: Counterexample, plan: Plan) -> list[RenderableType]:
    """Return every value on the way from a code on which a chain fails, and what would be right."""
    rows = table("after", "format", "bits", "value", numbers=("bits", "value"))
    for traced in found.values:
        rows.add_row(
            traced.step or "input", traced.format.name, code_text(traced.code, traced.format), number_text(traced.value)
        )
    right = required_text(found.required, plan.demand.dst)
    return [indented(rows), indented(Text(f"correct: {right}"))]


def chain_text(chain: Chain) -> str:
    """Return a chain in one line: its formats, and what has to be asked for on the way."""
    options = [", ".join(step.forms[0].options) for step in chain]
    names = path_of(chain)
    shown = " -> ".join(names)
    asked = "; ".join(f"{step.name}: {option}" for step, option in zip(chain, options, strict=True) if option)
    return f"{shown} ({asked})" if asked else shown


# The ways to a block format on a target.


@composed
def block_lowering_text(found: BlockLowering, out: str | None) -> Iterator[RenderableType]:
    """Yield the report; `out` is the file that the first program was written to."""
    answer = "no way" if not found.ways else f"{found.ways[0].kind} ({len(found.ways)} in all)"
    yield Text(f"{found.src} -> {found.format} on {found.target}: {answer}", style="bold")
    for way in found.ways:
        yield from _way(way, found)
    if found.refused:
        yield Text("other ways fail:" if found.ways else "reasons:")
        yield from (indented(Text(reason)) for reason in found.refused)
    if found.ways and out is None:
        yield Text("--out FILE writes the first program, --out - prints it alone; run it with: castsim run FILE")
    elif found.ways:
        run = f"castsim run {quote(out or '')} --target {found.target} --in x=random:0"
        yield Text(f"program written to {out}; run it with: {run}")


def _way(way: BlockWay, found: BlockLowering) -> Iterator[RenderableType]:
    cycles = f"{way.cycles:,} cycles for {found.rows} x {found.cols} elements, loads and stores included"
    yield Text(f"{way.kind} by the rule {way.rule}: {', '.join(way.operations)}")
    yield indented(Text(f"{cycles}: {way.cycles / (found.rows * found.cols):.3g} each"))
    yield from (indented(Text(f"unlike castsim quantise: {one}")) for one in way.differs)


# A record of lowered casts that were run again.


def lowering_text(record: LoweringRecord, path: Path | None) -> RenderableType:
    """Return the report on a record: a line per cell that was run, then the sums."""
    rows = table("cast", "target", "claim", "tried", "codes", "wrong", numbers=("codes", "wrong"))
    for one in record.checked:
        cell = one.cell
        attributes = "".join(f", {name}={value}" for name, value in cell.attributes)
        cast = f"{cell.src} -> {cell.dst}{attributes}"
        rows.add_row(cast, cell.target, _claim(one), one.inputs, str(one.codes), str(one.wrong))
    found = record.document()
    summary = (
        f"{record.spec} {record.version}: {found['programs_run']} programs and {found['counterexamples_run']} "
        f"counterexamples run, {found['codes']:,} codes, {found['wrong']} claims refuted; "
        f"{found['cells_without_a_way']} cells without a program"
    )
    notes = []
    if found["programs_with_options"]:
        notes.append(Text(f"{found['programs_with_options']} programs were run with the named options of the target"))
    kept = [] if path is None else [Text(f"recorded in {path}")]
    return Group(indented(rows), Text(""), Text(summary), *notes, *kept)


def _claim(one: Checked) -> str:
    options = f" ({setting_text(one.options)})" if one.options else ""
    return f"{one.way}{options}, {one.verdict}"
