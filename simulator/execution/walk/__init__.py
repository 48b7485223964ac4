"""Walking programs: path and addresses are computed here, every tile instruction is lowered where it is met."""

from castsim.execution.walk.lowerer import LoweredInstruction, Lowerer
from castsim.execution.walk.places import ArgumentUse
from castsim.execution.walk.walker import Executed, execute

__all__ = ["ArgumentUse", "Executed", "LoweredInstruction", "Lowerer", "execute"]
