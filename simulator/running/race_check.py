"""Looking for races before a program runs, as its user wants them treated."""

from __future__ import annotations

from castsim.execution.dataflow.idle import PATH_ONLY, Idle
from castsim.execution.limits import check_executions
from castsim.execution.tree import Tree
from castsim.isa.warning_text import WarningKind, Warnings, WarningText
from castsim.machines.mechanisms import tile_target
from castsim.running.loaded import RunOptions
from castsim.synchronisation.races import IGNORE, STOP, Finding, RaceKind, find_races, refusal
from castsim.synchronisation.races.unrolling import SLOTS
from castsim.targets import Target


def races_of(
    tree: Tree, target: Target, how: RunOptions, *, unwritten: bool = True
) -> tuple[tuple[Finding, ...] | None, Warnings]:
    """Look for races, unless they are ignored; `unwritten`: also for bytes that are read and nothing wrote.

    Returns:
        The races, None if they are ignored; and a warning for each instruction that reads what nothing wrote, which
        changes no order and stops nothing.

    Raises:
        RaceError, EngineError: there are some, and they stop the run.
        LimitError: loops are too deep in each other to be compared.
    """
    if how.races == IGNORE:
        return None, ()
    check_executions(tree, how.limits.walk, "executions that are compared for races", Idle(PATH_ONLY), SLOTS)
    found = find_races(tree, tile_target(target), unwritten=unwritten)
    races = tuple(each for each in found if each.kind is not RaceKind.UNWRITTEN)
    if races and how.races == STOP:
        raise refusal(races)
    gaps = (each for each in found if each.kind is RaceKind.UNWRITTEN)
    return races, tuple(WarningText(WarningKind.UNDEFINED, each.message, each.spans[-1]) for each in gaps)
