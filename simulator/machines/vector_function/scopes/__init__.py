"""Time of micro programs: the instructions of a vecscope one by one (docs/reference/micro.md 6)."""

from castsim.machines.vector_function.scopes.instruction_scoreboard import ScopeTiming, Span
from castsim.machines.vector_function.scopes.operation import MicroFunction, time_scope
from castsim.machines.vector_function.scopes.scope import Instruction, Issue, Item, Kind, Loop, Scope

__all__ = [
    "Instruction",
    "Issue",
    "Item",
    "Kind",
    "Loop",
    "MicroFunction",
    "Scope",
    "ScopeTiming",
    "Span",
    "time_scope",
]
