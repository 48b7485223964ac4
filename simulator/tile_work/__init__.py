"""Vector operations on tiles: what each computes, what it refuses, which bytes it touches; nothing about time."""

from simulator.tile_work.accesses import work_accesses
from simulator.tile_work.behaviour import Behaviour, behaviour_of
from simulator.tile_work.checks import check_work
from simulator.tile_work.effect import TileEffect
from simulator.tile_work.shapes import vector_operand

__all__ = ["Behaviour", "TileEffect", "behaviour_of", "check_work", "vector_operand", "work_accesses"]
