"""What reports call an instruction, beside the facts that they go by."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.execution.tiles import TileCast, TileWork
from castsim.execution.tree import Instruction, Role
from castsim.isa.errors import Span


@dataclass(frozen=True, slots=True)
class Label:
    """The text of an instruction, its mnemonic, what it is to reports, the format of its work, the casts it makes."""

    text: str
    mnemonic: str
    role: Role = Role.WORK
    element: str | None = None
    casts: tuple[tuple[str, str], ...] = ()

    def instruction(self, pipe: str, span: Span) -> Instruction:
        """Return the instruction that stands at a place and does its main work on a pipe."""
        return Instruction(
            self.text, pipe, span, role=self.role, mnemonic=self.mnemonic, element=self.element, casts=self.casts
        )


def cast_label(cast: TileCast) -> Label:
    """Return what reports print for a cast: its formats, and the rounding mode if it names one."""
    pair = (cast.src.format.name, cast.dst.format.name)
    mode = f" {cast.rounding.name}" if cast.rounding is not None else ""
    return Label(f"tcvt {pair[0]} -> {pair[1]}{mode}", "tcvt", casts=(pair,))


def work_label(work: TileWork) -> Label:
    """Return what reports print for an operation of tiles: its name, element type and extents."""
    shown = work.sources[0] if work.sources else work.dst
    mode = f" {work.mode}" if work.mode else ""
    text = f"{work.mnemonic} {shown.format.name} {shown.valid_rows} x {shown.valid_cols}{mode}"
    return Label(text, work.mnemonic, element=shown.format.name)
