"""A planned cast as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from simulator.planning import Chain, Cost, Counterexample, Plan, Way
from simulator.planning.steps import path_of
from simulator.reports.lower import code_text, number_text, required_text
from simulator.reports.terminal import indented, table


def lower_text(found: Plan, out: str | None) -> RenderableType:
    """Return the report on a plan; `out` is the file that its program was written to."""
    demand = found.demand
    parts: list[RenderableType] = [
        Text(
            f"{demand.src.name} -> {demand.dst.name} on {found.target.name}, as {demand.label} asks: {_headline(found)}"
        ),
        indented(Text(f"rule: {demand.cast.rule.meaning}")),
    ]
    if found.chain:
        parts += [Text(""), indented(_steps(found.chain))]
    if found.evidence is not None:
        parts.append(indented(Text(f"{found.verdict.value}: {found.evidence.argument}")))
    if found.cost is not None:
        parts.append(indented(Text(_cost(found.cost))))
    if found.counterexample is not None:
        parts += _counterexample(found.counterexample, found)
    for one in found.refuted:
        shown = ", ".join(step.label for step in one.chain)
        parts += [Text(""), Text(f"not as it stands: {shown}"), *_counterexample(one.counterexample, found)]
    if found.text is not None:
        written = f"program written to {out}; run it with: castsim run {out} --in src=random:0"
        parts += [Text(""), Text("--out FILE writes the program, --out - prints it alone" if out is None else written)]
    return Group(*parts)


def _headline(found: Plan) -> str:
    if found.way is Way.IMPOSSIBLE:
        searched = f"{found.searched} instructions and modes, chains of up to {found.request.steps}"
        if not found.chain:
            return f"impossible: nothing leads there ({searched})"
        return f"impossible; this comes nearest ({searched})"
    return f"{found.way.value}, {found.verdict.value}"


def _steps(chain: Chain) -> RenderableType:
    rows = table("step", "instruction", "from", "to", "options", numbers=("step",))
    for number, step in enumerate(chain, 1):
        rows.add_row(str(number), step.name, step.src.name, step.dst.name, ", ".join(step.forms[0].options))
    return rows


def _cost(cost: Cost) -> str:
    text = f"cost: {cost.cycles_per_element:.4f} cycles per element, {cost.cycles} for {cost.elements} elements"
    text += " with loads and stores"
    if cost.scratch_bytes:
        text += f"; {cost.scratch_bytes} bytes of scratch"
    if cost.buffer_bytes:
        text += f"; {cost.buffer_bytes} bytes of buffer"
    return text + (f"; {cost.registers} vector registers" if cost.registers else "")


def _counterexample(found: Counterexample, plan: Plan) -> list[RenderableType]:
    rows = table("after", "format", "bits", "value", numbers=("bits", "value"))
    for hop in found.hops:
        rows.add_row(hop.step or "input", hop.format.name, code_text(hop.code, hop.format), number_text(hop.value))
    right = required_text(found.required, plan.demand.dst)
    return [indented(rows), indented(Text(f"right would be {right}"))]


def chain_text(chain: Chain) -> str:
    """Return a chain in one line: its formats, and what has to be asked for on the way."""
    options = [", ".join(step.forms[0].options) for step in chain]
    names = path_of(chain)
    shown = " -> ".join(names)
    asked = "; ".join(f"{step.name}: {option}" for step, option in zip(chain, options, strict=True) if option)
    return f"{shown} ({asked})" if asked else shown
