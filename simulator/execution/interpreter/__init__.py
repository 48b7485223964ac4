"""Walking programs: path and addresses are computed here, every tile instruction is lowered where it is met."""

from castsim.execution.interpreter.arguments import ArgumentUse
from castsim.execution.interpreter.interpreter import Executed, execute
from castsim.execution.interpreter.lowerer import LoweredInstruction, Lowerer
from castsim.execution.interpreter.memory import Memory, Origin, ReadElement

__all__ = [
    "ArgumentUse", "Executed", "LoweredInstruction", "Lowerer", "Memory", "Origin", "ReadElement", "execute",
]  # fmt: skip
