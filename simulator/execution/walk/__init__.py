"""Walking programs: path and addresses are computed here, every tile instruction is lowered where it is met."""

from castsim.execution.walk.executed import Executed, execute
from castsim.execution.walk.lowerer import LoweredInstruction, Lowerer
from castsim.execution.walk.memory import Memory, Origin
from castsim.execution.walk.places import ArgumentUse
from castsim.execution.walk.scalar_access import ReadElement

__all__ = [
    "ArgumentUse", "Executed", "LoweredInstruction", "Lowerer", "Memory", "Origin", "ReadElement", "execute",
]  # fmt: skip
