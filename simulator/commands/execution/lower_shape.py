"""The shape of the tensor that `castsim lower` writes a program for: which shapes the program can have, and why not.

A program of tiles holds the whole tensor in the buffer, in lines of whole blocks; a program of a vector unit loops over
it. A shape that does not go is refused in the words of the command line: its user never saw the text that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from castsim.isa.errors import IllegalError, ReadError, TileError
from castsim.planning import CastRequest, assembly_of, cost_of
from castsim.planning.lowering_answers import Answer
from castsim.targets import load_target

LARGEST = 1 << 26
"""Elements of the largest tensor: its conversion is simulated to the end, for several chains, to find the fastest."""


_USUAL = (16, 256)
"""Rows and columns on which a chain is looked for to say what would go; the defaults of the command."""


_WIDEST_BLOCK = 1 << 10
"""Elements up to which columns are tried as the size of a block."""


def planned(request: CastRequest, make: Callable[[CastRequest], Answer]) -> Answer:
    """Return the answer to a request.

    Raises:
        ReadError: more elements than are simulated.
        TileError: the target holds no program of this shape; names --rows and --cols and what goes.
        CastsimError: as `make`.
    """
    target = load_target(request.target) if isinstance(request.target, str | Path) else request.target
    if not target.has_tiles:
        _check_elements(request.rows, request.cols)
    try:
        return make(request)
    except TileError as error:
        raise TileError(
            f"--rows {request.rows} --cols {request.cols}: no program for {target.name} converts a tile of this "
            f"shape: {error.message}",
            legal=_going(request, make),
        ) from None


def _check_elements(rows: int, cols: int) -> None:
    if rows * cols > LARGEST:
        most = {"rows": LARGEST // cols, "cols": LARGEST // rows}
        raise ReadError(
            f"--rows {rows} --cols {cols}: more than {LARGEST} elements, which would all be simulated",
            legal=[f"--{name} up to {number}" for name, number in most.items() if number],
        )


def _going(request: CastRequest, make: Callable[[CastRequest], Answer]) -> tuple[str, ...]:
    """Return the column counts that run and the rows with them, by trying the chain found for the usual shape."""
    rows, cols = _USUAL
    try:
        found = make(replace(request, rows=rows, cols=cols)).plan
    except TileError:
        return ()

    def goes(rows: int, cols: int) -> bool:
        try:
            cost_of(assembly_of(found.chain, found.demand.src, found.demand.dst, found.target, rows, cols))
        except (TileError, IllegalError):
            return False
        return True

    block = next((size for size in _powers() if goes(1, size)), None)
    if block is None:
        return ()
    widest = block * _most(lambda count: goes(1, count * block))
    cols = min(-(-request.cols // block) * block, widest)
    return (
        f"--cols: a multiple of {block} up to {widest}",
        f"--rows with --cols {cols}: up to {_most(lambda count: goes(count, cols))}",
    )


def _powers() -> list[int]:
    return [1 << place for place in range(_WIDEST_BLOCK.bit_length())]


def _most(goes: Callable[[int], bool]) -> int:
    """Return the largest number that goes; 1 does, and nothing does beyond a number that does not."""
    low, high = 1, 2
    while goes(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if goes(middle) else (low, middle)
    return low
