"""What reports call an instruction, beside the facts that they go by."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.execution.interpreter.structure import bare
from castsim.execution.tiles import ResolvedTileOp, TileCast
from castsim.execution.tree import Instruction, Role
from castsim.isa.errors import Span
from castsim.isa.pto import program as pto


@dataclass(frozen=True, slots=True)
class Label:
    """The text of an instruction, its mnemonic, what it is to reports, the format of its work, the casts it makes."""

    text: str
    mnemonic: str
    role: Role = Role.WORK
    element: str | None = None
    casts: tuple[tuple[str, str], ...] = ()
    inserted: bool = False
    spelling: str = ""

    def instruction(self, pipe: str, span: Span) -> Instruction:
        """Return the instruction that stands at a place and does its main work on a pipe."""
        return Instruction(
            self.text,
            pipe,
            span,
            inserted=self.inserted,
            role=self.role,
            mnemonic=self.mnemonic,
            element=self.element,
            spelling=self.spelling,
            casts=self.casts,
        )


def order_label(node: pto.SetFlag | pto.WaitFlag | pto.Barrier) -> Label:
    """Return what reports print for a flag or barrier; one that was inserted also says how a program spells it."""
    if isinstance(node, pto.Barrier):
        name, text = "barrier", f"barrier {bare(node.pipe)}"
    else:
        name = "set_flag" if isinstance(node, pto.SetFlag) else "wait_flag"
        text = (
            f"{name} {bare(node.src)} -> {bare(node.dst)} id {node.event if node.number is None else f'%{node.number}'}"
        )
    return Label(text, name, inserted=node.inserted, spelling=order_text(node) if node.inserted else "")


def order_text(node: pto.SetFlag | pto.WaitFlag | pto.Barrier) -> str:
    """Return a flag or barrier as a program spells it."""
    if isinstance(node, pto.Barrier):
        return f"pto.barrier <{node.pipe}>"
    name = "set_flag" if isinstance(node, pto.SetFlag) else "wait_flag"
    return f"pto.{name}[<{node.src}>, <{node.dst}>, <EVENT_ID{node.event}>]"


def cast_label(cast: TileCast) -> Label:
    """Return what reports print for a cast: its formats, and the rounding mode if it names one."""
    pair = (cast.src.format.name, cast.dst.format.name)
    mode = f" {cast.rounding.name}" if cast.rounding is not None else ""
    return Label(f"tcvt {pair[0]} -> {pair[1]}{mode}", "tcvt", casts=(pair,))


def work_label(work: ResolvedTileOp, name: str) -> Label:
    """Return what reports print for an operation of tiles: its name in the text, element type and extents."""
    shown = work.sources[0] if work.sources else work.dst
    mode = f" {work.mode}" if work.mode else ""
    text = f"{name} {shown.format.name} {shown.valid_rows} x {shown.valid_cols}{mode}"
    return Label(text, name, element=shown.format.name)
