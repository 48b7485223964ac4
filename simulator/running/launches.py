"""The launches that a program of vector instructions writes itself; targets without vector functions have none."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.execution.tree import Tree
from castsim.machines.launches import LAUNCH, Launches, LaunchSlice
from castsim.machines.mechanisms import machine_of
from castsim.targets import Target
from castsim.timing import Timing


def written_launches(tree: Tree, target: Target) -> Sequence[Launches]:
    """Return the launches that a program writes itself; none in programs of tile operations or bundles."""
    told = machine_of(target).launches
    return told.written(tree, target) if told is not None and _has_launches(tree) else ()


def launch_slices(tree: Tree, timing: Timing, target: Target) -> Sequence[LaunchSlice]:
    """Return the cycles of the launches that a program writes itself, in order."""
    told = machine_of(target).launches
    return told.slices(tree, timing, target) if told is not None and _has_launches(tree) else ()


def _has_launches(tree: Tree) -> bool:
    return any(each.mnemonic == LAUNCH for each in tree.instructions)
