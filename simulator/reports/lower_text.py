"""A planned cast as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.planning import Chain, Cost, Counterexample, Evidence, Plan, PlanKind, Verdict
from castsim.planning.judgement import Method
from castsim.planning.lowering_answers import Alternative, Answer
from castsim.planning.lowering_answers.answer import options_text, setting_text
from castsim.planning.steps import path_of
from castsim.reports.lower import code_text, number_text, required_text
from castsim.reports.numbers import grouped
from castsim.reports.specification import specification_words
from castsim.reports.terminal import indented, table
from castsim.targets import Target


def lower_text(answer: Answer, out: str | None) -> RenderableType:
    """Return the report on an answer; `out` is the file that its program was written to."""
    found = answer.plan
    demand = found.demand
    cast = f"{demand.src.name} -> {demand.dst.name} on {found.target.name}"
    parts: list[RenderableType] = [
        Text(f"{cast}{headline(answer)}"),
        indented(Text(f"rule: {demand.cast.rule.meaning}")),
    ]
    parts += [indented(Text(option_text(found.target, name, value))) for name, value in answer.settings]
    if found.chain:
        parts += [Text(""), indented(_steps(found.chain))]
    if found.evidence is not None:
        parts.append(indented(Text(evidence_text(found, found.evidence))))
    if found.cost is not None:
        parts.append(indented(Text(cost_text(found.cost))))
    if answer.native is not None:
        parts.append(indented(Text(_native(answer.native))))
    if found.counterexample is not None:
        parts += counterexample_text(found.counterexample, found)
    for one in found.refuted:
        shown = ", ".join(step.label for step in one.chain)
        parts += [Text(""), Text(f"not as it stands: {shown}"), *counterexample_text(one.counterexample, found)]
    if answer.refuted is not None and answer.refuted.counterexample is not None:
        shown = ", ".join(step.label for step in answer.refuted.chain)
        parts += [Text(""), Text(f"not without these options; the closest chain is {shown}")]
        parts += counterexample_text(answer.refuted.counterexample, found)
    if found.text is not None:
        parts += [Text(""), *_next(answer, out)]
    return Group(*parts)


def program_text(program: str) -> RenderableType:
    """Return a program as it stands."""
    return Text(program.rstrip("\n"), no_wrap=True)


def _next(answer: Answer, out: str | None) -> list[RenderableType]:
    """Return the commands that print the program and run it."""
    options = f" {options_text(answer.settings)}" if answer.settings else ""
    run = f"castsim run {out or 'FILE'}{options} --in src=random:0"
    if out is not None:
        return [Text(f"program written to {out}; run it with: {run}")]
    lines = [Text("--out FILE writes the program, --out - prints only the program")]
    return [*lines, Text(f"run it with: {run}")] if options else list[RenderableType](lines)


def _asked(found: Plan) -> str:
    """Return the requested version where the rule of another one is in force."""
    version, cast = found.request.version, found.demand.cast
    if version is None or str(version) == cast.version:
        return ""
    return f" ({specification_words(f'{cast.spec.name}@{version}')} has the cast of version {cast.version})"


def headline(answer: Answer) -> str:
    """Return what goes on from `SRC -> DST on TARGET`: how, with which options and what is known, or that it fails."""
    found = answer.plan
    if found.kind.fails or found.verdict is Verdict.DIFFERS:
        return f" does not conform to {specification_words(found.demand.label)}{_asked(found)}: {_failing(found)}"
    asked = f", as {specification_words(found.demand.label)} asks{_asked(found)}"
    if not answer.chosen:
        return f"{asked}: {answer.kind.value}, {found.claim}"
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
            f"the cast is monotonic, so the ends of its output ranges and NaNs suffice, {grouped(evidence.codes)} codes"
        )
    return f"{f'proven for every {found.demand.src.name}' if proven else found.claim}: {why}"


def option_text(target: Target, name: str, value: int | str) -> str:
    """Return the meaning of an option of a target, and who sets it."""
    option = target.options[name]
    setter = f"; set by {option.set_by}" if option.set_by else ""
    return f"option {name}={value}: {option.meaning}{setter}"


def _native(found: Alternative) -> str:
    cost = "" if found.plan.cost is None else f", {found.plan.cost.cycles_per_element:.4f} cycles per element"
    return f"also native with options: {setting_text(found.setting)}{cost} ({chain_text(found.plan.chain)})"


def _steps(chain: Chain) -> RenderableType:
    rows = table("step", "instruction", "from", "to", "options", numbers=("step",))
    for number, step in enumerate(chain, 1):
        rows.add_row(str(number), step.name, step.src.name, step.dst.name, ", ".join(step.forms[0].options))
    return rows


def cost_text(cost: Cost) -> str:
    """Return the cost of a program in words."""
    text = f"cost: {cost.cycles_per_element:.4f} cycles per element, {cost.cycles} for {cost.elements} elements"
    text += " with loads and stores"
    if cost.scratch_bytes:
        text += f"; {cost.scratch_bytes} bytes of scratch"
    if cost.buffer_bytes:
        text += f"; {cost.buffer_bytes} bytes of buffer"
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
