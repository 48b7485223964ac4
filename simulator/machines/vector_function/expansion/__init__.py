"""Tile programs as programs of vector instructions: what a lowered program issues, written as micro text.

Source: docs/reference/micro.md section 7.
"""

from castsim.machines.vector_function.expansion.lowered_program import expand_tree
from castsim.machines.vector_function.expansion.statements import expand_source

__all__ = ["expand_source", "expand_tree"]
