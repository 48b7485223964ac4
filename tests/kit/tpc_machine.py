"""Running pieces of TPC assembly for the tests, without files."""

from __future__ import annotations

from collections.abc import Mapping

from castsim.engines import simulate
from castsim.execution.timing import Timing
from castsim.isa.formats import Codes
from castsim.machines.vliw.assembled import AssembledProgram, Ran, assemble, execute
from castsim.machines.vliw.findings import StaleReadKind
from castsim.targets.description import with_options
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget

END = "nop; nop; nop; nop\n" * 3 + "nop; halt; halt; nop\n"
"""What a clean program ends with."""


def chip(name: str, **options: int | str) -> VliwTarget:
    found = load_target(name)
    assert isinstance(found, VliwTarget)
    return with_options(found, options)


def assembled(text: str, target: VliwTarget | str = "gaudi2", **start: int) -> AssembledProgram:
    return assemble(text, "test.tpc", chip(target) if isinstance(target, str) else target, start)


def ran(
    text: str,
    target: VliwTarget | str = "gaudi2",
    inputs: Mapping[str, Codes | str] | None = None,
    *,
    values: bool = True,
    checked: bool = True,
    limit: int = 10**5,
    **start: int,
) -> Ran:
    return execute(assembled(text, target, **start), inputs or {}, values=values, checked=checked, max_bundles=limit)


def timed(text: str, target: VliwTarget, **start: int) -> Timing:
    return simulate(ran(text, target, values=False, **start).tree, target)


def nops(count: int) -> str:
    return "nop; nop; nop; nop\n" * count


def early(found: Ran) -> list[tuple[int, int]]:
    """Bundles of writer and reader of every early read."""
    return [(f.writer.bundle, f.reader.bundle) for f in found.stale_reads if f.writer and f.kind is StaleReadKind.EARLY]
