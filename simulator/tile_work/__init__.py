"""Vector operations on tiles: what each computes, what it refuses, which bytes it touches; nothing about time."""

from simulator.tile_work.accesses import work_accesses
from simulator.tile_work.checks import check_work
from simulator.tile_work.effect import TileEffect

__all__ = ["TileEffect", "check_work", "work_accesses"]
