"""Walking programs: path and addresses are computed here, every tile instruction is lowered where it is met."""

from simulator.execution.lowerer import LoweredInstruction, Lowerer
from simulator.execution.places import ArgumentUse
from simulator.execution.walker import Executed, execute

__all__ = ["ArgumentUse", "Executed", "LoweredInstruction", "Lowerer", "execute"]
