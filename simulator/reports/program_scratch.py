"""The scratch of a whole program: the smallest tmp tile each cast can do with, and whether all fits the buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.errors import IllegalError
from castsim.machines.strided.strided_lowering import CastScratch, StridedLowerer
from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import Bytes, Elements, Line
from castsim.reports.terminal import composed, indented, table
from castsim.running.program_loading import load_program
from castsim.targets.loader import Target


@dataclass(frozen=True, slots=True)
class ScratchOfProgram:
    """The casts with tmp tiles, and the buffer: bytes up to the end of the last tile, and with minimal tmp tiles.

    `minimal` assumes that every tmp tile shrinks (or grows) to what its most demanding cast needs, the other tiles
    staying where they are in size; tiles at overlapping fixed addresses count once.
    """

    file: str
    target: Target
    uses: tuple[CastScratch, ...]
    occupied: int
    minimal: int
    capacity: int

    @property
    def suffices(self) -> bool:
        """Whether every tmp tile is large enough."""
        return all(use.need.total <= use.tmp.size for use in self.uses)


def program_scratch(
    path: Path,
    target: str | None,
    entry: str | None,
    scalars: Mapping[str, int | float],
    limits: Limits = DEFAULT_LIMITS,
) -> ScratchOfProgram:
    """Walk a program without refusing small tmp tiles.

    Raises:
        IllegalError: a target whose casts use no scratch; otherwise as `castsim.running.load_program`.
    """
    lowerers: list[StridedLowerer] = []

    def make(chosen: Target) -> StridedLowerer:
        if not chosen.casts_use_scratch:
            raise IllegalError(f"casts on {chosen.name} use no scratch tile")
        lowerers.append(StridedLowerer(chosen, unsafe_scratch=True))
        return lowerers[0]

    loaded = load_program(path, target, entry, scalars, make_lowerer=make, limits=limits)
    lowerer = lowerers[0]
    _, capacity, _ = lowerer.buffer()
    needs: dict[tuple[str, int], int] = {}
    for use in lowerer.scratch_uses:
        key = (use.tmp.name, use.tmp.address)
        needs[key] = max(needs.get(key, 0), use.need.total)
    spans = [(tile.address, tile.end) for tile in lowerer.tiles.values()]
    others = [(tile.address, tile.end) for key, tile in lowerer.tiles.items() if key not in needs]
    uses = tuple(lowerer.scratch_uses)
    return ScratchOfProgram(
        loaded.file, loaded.target, uses, _covered(spans), _covered(others) + sum(needs.values()), capacity
    )


class ScratchUse(Keys):
    """A cast with a tmp tile."""

    line: Line = says("Line of the source.", "cast.span.line")
    src: str = says("Name of the source format.", "cast.src.format")
    dst: str = says("Name of the destination format.", "cast.dst.format")
    rows: int = says("Rows that are cast.", "cast.dst.valid_rows")
    cols: Elements = says("Columns that are cast.", "cast.dst.valid_cols")
    row_stride_elements: Elements = says("Distance from row to row of the source.", "cast.src.cols")
    tmp: str = says("Name of the tmp tile.", "tmp.name")
    given_bytes: Bytes = says("Its size.", "tmp.size")
    needed_bytes: Bytes = says("The size that the cast needs.", "need.total")


class ProgramScratch(CommandDocument, name="scratch-program"):
    """The scratch of a program."""

    program: str = says("The file.", "file")
    target: str = says("Name of the target.")
    casts: list[ScratchUse] = says("The casts with tmp tiles.", "uses")
    occupied_bytes: Bytes = says("Bytes of the buffer that tiles take.", "occupied")
    minimal_bytes: Bytes = says("The same with the smallest tmp tiles.", "minimal")
    capacity_bytes: Bytes = says("Size of the buffer.", "capacity")
    suffices: bool = says("Whether every tmp tile is large enough.")
    fits: bool = says(of=lambda found: found.minimal <= found.capacity)
    """Whether all fits the buffer with the smallest tmp tiles."""


@composed
def program_text(found: ScratchOfProgram) -> Iterator[RenderableType]:
    """Yield a program's scratch as text."""
    yield Text(f"{found.file} on {found.target.name}")
    if found.uses:
        made = table("line", "cast", "shape", "stride", "tmp", "given", "needed", "")
        for use in found.uses:
            cast = use.cast
            missing = use.need.total - use.tmp.size
            made.add_row(
                str(cast.span.line),
                f"{cast.src.format.name} -> {cast.dst.format.name}",
                f"{cast.dst.valid_rows} x {cast.dst.valid_cols}",
                str(cast.src.cols),
                f"%{use.tmp.name}",
                str(use.tmp.size),
                str(use.need.total),
                f"{missing} bytes missing" if missing > 0 else f"{-missing} to spare",
            )
        yield indented(made)
    else:
        yield Text("  no cast is given a tmp tile")
    fits = "fits" if found.minimal <= found.capacity else f"exceeds it by {found.minimal - found.capacity}"
    yield Text(
        f"tiles take {found.occupied} bytes, with the smallest tmp tiles {found.minimal}: {fits} "
        f"(buffer of {found.capacity})"
    )


def _covered(spans: list[tuple[int, int]]) -> int:
    """Return the number of bytes that the spans cover together."""
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
