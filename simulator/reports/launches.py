"""The launches of a run as reports tell of them; targets without vector functions have none."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.execution.tree import Tree
from castsim.machines.mechanisms import Launches, machine_of
from castsim.running.program_runs import launch_slices, written_launches
from castsim.targets import Target
from castsim.timing import Timing

__all__ = ["all_launches", "launch_slices", "written_launches"]


def all_launches(tree: Tree, timing: Timing, target: Target) -> Sequence[Launches]:
    """Return the launches that a program writes itself, or those of its tile operations if its target has launches."""
    told = machine_of(target).launches
    return () if told is None else written_launches(tree, target) or told.lowered(tree, timing, target)
