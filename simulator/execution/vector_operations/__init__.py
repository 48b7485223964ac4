"""Vector operations on tiles: what each computes, what it refuses, which bytes it touches; nothing about time."""

from castsim.execution.vector_operations.accesses import check_work, work_accesses
from castsim.execution.vector_operations.effect import TileEffect
from castsim.execution.vector_operations.regions import over_destination
from castsim.execution.vector_operations.shapes import as_rows, vector_operand
from castsim.execution.vector_operations.target_rules import Behaviour, behaviour_of

__all__ = [
    "Behaviour", "TileEffect", "as_rows", "behaviour_of", "check_work", "over_destination", "vector_operand",
    "work_accesses",
]  # fmt: skip
