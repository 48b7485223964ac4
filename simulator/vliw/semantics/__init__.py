"""Values and lanes of TPC instructions, as pure functions of operands and state (tpc.md sections 2, 5 and 7.1)."""

from simulator.vliw.semantics.interface import Coordinates, Effects, Mask, Operands, State, Value, Vector, Words

__all__ = [
    "Coordinates",
    "Effects",
    "Mask",
    "Operands",
    "State",
    "Value",
    "Vector",
    "Words",
]
