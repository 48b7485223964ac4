"""Values and lanes of TPC instructions, as pure functions of operands and state (docs/reference/tpc.md sections 2, 5
and 7.1).

`prepare` checks an instruction against a generation once, `Prepared` runs it on operands as often as need be,
`evaluate` does both. Memory accesses and control flow are not among them; `computes` tells.
"""

from castsim.machines.vliw.semantics.configuration import (
    Coordinates,
    Effects,
    Mask,
    OperandValues,
    State,
    Value,
    Vector,
    Words,
)
from castsim.machines.vliw.semantics.dispatch import Prepared, computes, evaluate, prepare

__all__ = [
    "Coordinates",
    "Effects",
    "Mask",
    "OperandValues",
    "Prepared",
    "State",
    "Value",
    "Vector",
    "Words",
    "computes",
    "evaluate",
    "prepare",
]
