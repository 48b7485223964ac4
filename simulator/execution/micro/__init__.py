"""Programs of vector instructions: control flow, scalars, pointers and transfers; a vector unit does the rest."""

from castsim.execution.micro.micro_interpreter import Walked, walk_function
from castsim.execution.micro.vector_unit import Issue, MicroMemory, Pointer, Value, VectorUnit

__all__ = ["Issue", "MicroMemory", "Pointer", "Value", "VectorUnit", "Walked", "walk_function"]
