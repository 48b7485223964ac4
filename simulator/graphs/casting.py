"""Casts of a specification in a graph: planned, and run whether or not a chain satisfies the specification."""

from __future__ import annotations

from castsim.graphs.kernel_runner import KernelRunner
from castsim.graphs.model import GraphTensor
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format
from castsim.planning import Verdict
from castsim.planning.lowering_answers import Answer


def converted(
    runner: KernelRunner, x: GraphTensor, dst: Format, spec: str, version: str, attributes: dict[str, str | int]
) -> tuple[GraphTensor, Answer]:
    """Run the planned chain of a cast, or the chain that fails on the fewest values if none satisfies.

    Raises:
        ReadError: unknown version, attribute or value.
        IllegalError: the specification does not have the cast; nothing leads to the destination.
    """
    answered = runner.chip.planned(x.format, dst, spec, version, attributes)
    found = answered.plan
    if found.verdict is Verdict.DIFFERS:
        if not found.chain:
            raise IllegalError(f"{runner.chip.target.name}: {found.kind.value}: {found.reason}")
        runner.remark(f"no chain found as {found.demand.label} asks; the closest one is run")
    src = found.demand.src
    title = f"cast {x.format.name} -> {dst.name}, {found.demand.label}"
    codes = runner.through(title, x.codes, src, found.chain, dst, answered)
    return GraphTensor(dst, codes), answered
