"""What vector functions compute: register by register, or a whole tile at once where that is proven the same.

Nothing here knows time. Operations run in program order.
"""

from __future__ import annotations

from castsim.machines.tile_values import TileValues
from castsim.machines.vector_function.machine import execute_function
from castsim.machines.vector_function.operations import VectorFunction
from castsim.machines.vector_function.whole_tile import WholeTile, convert_whole

compute = TileValues(WholeTile, convert_whole, VectorFunction, execute_function)
"""Computes the values of a lowered program."""
