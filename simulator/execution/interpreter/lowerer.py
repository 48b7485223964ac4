"""What program execution asks of a mechanism: how its chips place tiles and lower each instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from castsim.execution.program_choices import MAKE_SCRATCH, TOOLCHAIN, Choice
from castsim.execution.tiles import CastTiles, Element, Part, ResolvedTileOp, Tile, TileCast, TileTransfer
from castsim.execution.tree import Access, Block, Operation
from castsim.isa.errors import ReadError, Span
from castsim.isa.formats import Format
from castsim.isa.pto import program as pto
from castsim.isa.pto.operand_forms import form_of, is_older
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.isa.warning_text import Warnings


@dataclass(frozen=True, slots=True)
class LoweredInstruction:
    """The operations of one instruction, the bytes they touch, what they are proven to amount to, warnings."""

    body: Block
    accesses: tuple[Access, ...] = ()
    shortcut: object | None = None
    warnings: Warnings = field(default=())
    choices: tuple[Choice, ...] = ()
    """Options that decide what it computes, as the text leaves that open."""
    cast: CastTiles | None = None
    """The tiles of a cast."""


class Lowerer(Protocol):
    """A mechanism's lowering, bound to one target. Every method is pure, but for the control register.

    All refuse what the target cannot do with an error of `castsim.isa.errors` that carries the span.
    """

    def completed(self, function: pto.Function) -> tuple[pto.Function, tuple[tuple[Choice, Span], ...]]:
        """Return a function with what its assembler adds before tiles are placed, and what was decided where."""
        ...

    def element_bits(self, fmt: Format) -> int:
        """Return the bits one element takes in a tile's pitch and pointer arithmetic."""
        ...

    def control(self) -> int | None:
        """Return the control register as operations have left it, None where none outlives its operation."""
        ...

    def set_control(self, value: int | None) -> None:
        """Take the control register to hold what `control` has returned."""
        ...

    def buffer(self) -> tuple[str, int, int]:
        """Return name, allocatable bytes and alignment of the buffer that tiles live in."""
        ...

    def spared_scratch(self, node: pto.Tcvt | pto.TileOperation) -> str | None:
        """Return the tmp tile that an operation has and that is not touched, None if there is none."""
        ...

    def check_tile(self, tile: Tile, span: Span) -> None:
        """Refuse a tile that the buffer or the vector unit cannot take."""
        ...

    def cast(self, cast: TileCast) -> LoweredInstruction:
        """Lower one tile cast."""
        ...

    def transfer(self, transfer: TileTransfer) -> LoweredInstruction:
        """Lower one tile load or store."""
        ...

    def work(self, work: ResolvedTileOp) -> LoweredInstruction:
        """Lower one vector operation other than a cast."""
        ...

    def set_flag(self, signaller: str, waiter: str, event: int, span: Span) -> Operation:
        """Return the operation that signals a flag; pipes are named without the prefix PIPE_."""
        ...

    def wait_flag(self, signaller: str, waiter: str, event: int, span: Span) -> Operation:
        """Return the operation that waits for a flag."""
        ...

    def barrier(self, pipe: str, span: Span) -> Operation:
        """Return the barrier of one pipe, or of all (`ALL`)."""
        ...

    def scalar_work(self, kind: str) -> Operation:
        """Return the scalar unit's part in `arithmetic` or a `loop` turnaround."""
        ...

    def element(self, element: Element) -> LoweredInstruction:
        """Lower the scalar unit's access to an element."""
        ...

    def opaque(
        self,
        node: pto.Tcvt | pto.TileOperation | pto.ForeignOperation,
        cycles: int,
        reads: Sequence[Tile | Part],
        writes: Sequence[Tile | Part],
    ) -> LoweredInstruction:
        """Return what stands in for an operation of which only its pipe and bytes are known."""
        ...

    def option(self, name: str) -> int | str:
        """Return the value of an option of the target; KeyError if it has none of that name."""
        ...

    def closing_warnings(self) -> Warnings:
        """Return warnings that only the whole program gives reason for; asked for once it has been walked."""
        ...


# Forms of operations that only some assemblers know.


def is_binary(node: pto.TileOperation) -> bool:
    """Whether a column sum says that it adds in pairs."""
    return dict(node.attributes).get("isBinary") == "true"


def check_form(node: pto.Operation, toolchain: str) -> None:
    """Refuse an operation without the tmp tile that an older assembler wants.

    Raises:
        ReadError: it is such a one.
    """
    operation = VECTOR_OPERATIONS.get(node.mnemonic) if isinstance(node, pto.TileOperation) else None
    if operation is None or not isinstance(node, pto.TileOperation) or toolchain in MAKE_SCRATCH:
        return
    form = form_of(operation, node.input_types)
    if form is None or is_older(operation, form, binary=is_binary(node)):
        return
    if operation.attribute == "isBinary":
        message = f"pto.{node.mnemonic} has isBinary if and only if it has tmp"
    else:
        message = f"pto.{node.mnemonic} is not written with these operands"
    raise ReadError(
        f"{message}: assemblers add a tmp tile from {MAKE_SCRATCH[0]} on",
        span=node.span,
        legal=(*operation.spellings, f"--{TOOLCHAIN} {MAKE_SCRATCH[0]}"),
    )
