"""Estimating the cycles of tile casts without writing a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from isa.errors import ReadError
from isa.pto.program import Pipe
from simulator.engines import simulate
from simulator.estimating_placement import HERE
from simulator.execution.lowerer import LoweredInstruction
from simulator.execution.structure import bare
from simulator.timing import Cause, Timing
from simulator.tree import Block, Instruction, Lowered, Tree
from targets import Target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Extents = ArrayLike


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cycles of an operation alone, as the published convention of its mechanism counts them.

    For strided instructions: from the first control write until the vector pipe is empty; for a vector function: from
    its launch until it has drained, without what the scalar unit does beforehand. `causes` are those of the pipe that
    computes in these cycles and add up to them; `bound_by` is the largest.
    """

    cycles: int
    bound_by: Cause
    causes: Mapping[Cause, int]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of many shapes: `cycles` and every array of `causes` are int64, `bound_by` holds `Cause`s.

    All have the shape to which the arguments broadcast. A cause that no shape has is missing.
    """

    cycles: NDArray[np.int64]
    bound_by: NDArray[np.object_]
    causes: Mapping[Cause, NDArray[np.int64]]


@overload
def estimate(
    src: str,
    dst: str,
    rows: int,
    cols: int,
    *,
    target: str | Path | Target,
    row_stride: int | None = None,
    dst_row_stride: int | None = None,
    valid_rows: int | None = None,
    valid_cols: int | None = None,
    rounding: str | None = None,
    saturation: str | None = None,
    scratch: bool = False,
) -> Estimate:
    """Return the cycles of one shape."""


@overload
def estimate(
    src: str,
    dst: str,
    rows: Extents,
    cols: Extents,
    *,
    target: str | Path | Target,
    row_stride: Extents | None = None,
    dst_row_stride: Extents | None = None,
    valid_rows: Extents | None = None,
    valid_cols: Extents | None = None,
    rounding: str | None = None,
    saturation: str | None = None,
    scratch: bool = False,
) -> Estimates:
    """Return the cycles of many shapes."""


def estimate(
    src: str,
    dst: str,
    rows: Any,
    cols: Any,
    *,
    target: str | Path | Target,
    row_stride: Any = None,
    dst_row_stride: Any = None,
    valid_rows: Any = None,
    valid_cols: Any = None,
    rounding: str | None = None,
    saturation: str | None = None,
    scratch: bool = False,
) -> Estimate | Estimates:
    """Return the cycles of one cast of a `rows` x `cols` tile and what bounds it; of many, given arrays.

    The result is that of simulating the lowered cast. Tiles lie in banks that they share with no other where the
    buffer is large enough (`simulator.estimating_placement`); a closed form then gives the result at once, and shapes
    for which there is none are simulated and remembered.

    Args:
        src, dst: format names.
        rows, cols: extents of both tiles, in elements. These and the four below may be arrays, which broadcast.
        target: a chip. Where casts are instructions on registers: see `simulator.estimating_vliw`.
        row_stride, dst_row_stride: elements from row to row of source and destination, if not `cols`.
        valid_rows, valid_cols: valid region, if not the whole tile.
        rounding: a mode of the chip, or none; None takes the default.
        saturation: on, off or None.
        scratch: whether a tmp tile is given; it then has the size of an int32 tile of the source's shape, which
            always suffices (a2a3.md section 3.5), or what is left of the buffer.

    Raises:
        ReadError, IllegalError, TileError, ScratchError: see `isa.errors`. Of arrays, the first shape that is refused.
    """
    from simulator.estimating_casts import estimator_of  # noqa: PLC0415 - it builds on what stands here

    estimator = estimator_of(target, src, dst, rounding, saturation, scratch)
    extents = (rows, cols, row_stride, dst_row_stride, valid_rows, valid_cols)
    for each in extents:
        if hasattr(each, "__len__"):
            return estimator.many(*extents)
    return estimator.one(*map(_as_integer, extents))


def timed_alone(chip: Target, lowered: LoweredInstruction, text: str) -> Estimate:
    """Simulate one lowered instruction of the vector pipe and nothing else; `text` names it in messages."""
    body = Lowered(0, lowered.body, lowered.accesses)
    tree = Tree(Block((body,)), (Instruction(text, "V", HERE),), interlocked=False)
    timing = simulate(tree, chip, record_operations=False)
    return of_timing(timing)


def of_timing(timing: Timing) -> Estimate:
    """Return the estimate of the one instruction that was simulated."""
    execution = timing.executions[0]
    found = []
    for name, pipe in timing.pipes.items():
        # Before it starts, as its convention has it, the scalar unit works for it and no other pipe has anything to do.
        spent = Cause.BUSY if name == bare(Pipe.S) else Cause.EMPTY
        left = {cause: cycles - execution.start * (cause is spent) for cause, cycles in pipe.causes.items()}
        found.append({cause: cycles for cause, cycles in left.items() if cycles})
    # Whoever converts is occupied longest; a pipe may be so without being busy, at a barrier or a branch.
    causes = min(found, key=lambda causes: causes.get(Cause.EMPTY, 0))
    return Estimate(execution.end - execution.start, bound_by(causes), causes)


def bound_by(causes: Mapping[Cause, int]) -> Cause:
    """Return the cause of most cycles, of equals the first one in the order of `Cause`."""
    most = max(causes.values(), default=0)
    return next((cause for cause in Cause if most and causes.get(cause) == most), Cause.EMPTY)


def _as_integer(value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    try:
        return index(value)
    except TypeError:
        raise ReadError(f"an extent is an integer or an array of them, not {value!r}") from None
