"""Loops with a known number of trips: several trips at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from castsim.tpc_compiler.scheduling.blocks import Block, Shape
from castsim.tpc_compiler.scheduling.operations import Operations
from castsim.tpc_compiler.scheduling.placing import Placer
from castsim.tpc_compiler.scheduling.settling import Schedule


@dataclass(frozen=True, slots=True)
class Pipelined:
    """A text with loops that begin a trip before the last one has ended."""

    shape: Shape
    schedule: Schedule


def pipelined(
    blocks: Sequence[Block],
    shape: Shape,
    lengths: Sequence[int],
    most: int,
    operations: Operations,
    placer: Callable[[Shape], Placer],
) -> Iterator[Pipelined]:
    """Yield the text with loops pipelined, in no more than so many bundles."""
    yield from ()
