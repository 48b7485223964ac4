"""Schema of the vector operations on tiles: which a chip has, for which elements, and where libraries differ.

Facts: docs/reference/pto.md section 7. What an operation computes is the same on every chip except for what stands
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.targets.description import Count, Fact, Listed, Words


class TileOperationFacts(Fact):
    """One vector operation on one chip: what it takes, and its kernel, of which source, status and note speak.

    `types` are the element formats it takes; for comparisons those of what is compared. `library_types` are further
    ones that the C++ library has and the text form refuses. `tmp` says what becomes of a scratch tile in the text;
    `approximate` why values are not claimed to be bit-exact (None: they are). `instructions` are those that make this
    kernel out of its structure, which a mechanism names; in the order of use.
    """

    mnemonic: str
    types: Listed
    library_types: Listed = ()
    tmp: Literal["none", "used", "ignored", "refused"]
    validated: Listed = ()
    """Formats for which published cycles of the operation exist and are compared with the simulation."""
    approximate: str | None = None
    instructions: Words = ()

    @model_validator(mode="before")
    @classmethod
    def _without_empty_cells(cls, row: Any) -> Any:
        return {key: cell for key, cell in row.items() if cell is not None} if isinstance(row, dict) else row


@dataclass(frozen=True, slots=True)
class StructureOf:
    """The purpose of a structure of kernels: kinds of operations, and its least and greatest number of instructions."""

    kinds: tuple[Kind, ...]
    least: int = 0
    most: int = 0


LANEWISE = (Kind.ELEMENTWISE, Kind.BROADCAST)
MANY = 16
"""Instructions of a structure that runs any number of them one behind the other."""


def check_kernel(operation: TileOperationFacts, name: str, structure: StructureOf) -> None:
    """Reject a kernel whose structure, called `name`, is not one of its operation's kind, or has other instructions.

    Raises:
        ValueError: names the operation, what it has and what it may have.
    """
    what, count = f"tile_operations: {operation.mnemonic}", len(operation.instructions)
    known = VECTOR_OPERATIONS.get(operation.mnemonic)
    if known is not None and known.kind not in structure.kinds:
        kinds = ", ".join(structure.kinds)
        raise ValueError(f"{what}: structure '{name}' is for operations of kind {kinds}, not {known.kind}")
    if not structure.least <= count <= structure.most:
        legal = str(structure.least) if structure.least == structure.most else f"{structure.least} to {structure.most}"
        raise ValueError(f"{what}: {count} instructions, but structure '{name}' takes {legal}")


class ScratchWindow(Fact):
    """Bytes of the buffer that some operations overwrite although nothing reserves them."""

    start: Annotated[int, Field(ge=0)]
    end: Count


class BroadcastScratch(Fact):
    """Scratch of a row broadcast of a column vector: `bytes` for each `rows` rows, `most` from `limit` rows on."""

    rows: Count
    bytes: Count
    limit: Count
    most: Count


class RampScratch(Fact):
    """Bytes of scratch of a ramp of 32-bit and of 16-bit numbers, in a tile with elements of `element_bits`."""

    element_bits: Count
    bytes_32: Count
    bytes_16: Count


class ArithmeticSaturation(Fact):
    """Results that clamp to the largest and smallest number; NaN becomes 0.

    `functions` on elements of `formats` do so while all options of `holds_while` have the values there.
    """

    formats: tuple[str, ...]
    functions: tuple[str, ...]
    holds_while: tuple[tuple[str, int | str], ...]


class TileArithmetic(Fact):
    """The differences between the vector operations of chips in what they compute or touch."""

    saturation: tuple[ArithmeticSaturation, ...]
    """The results that clamp; a function of a format is in one of these rules or in none."""
    equality_only: tuple[str, ...] = ()
    """Formats whose every comparison acts as `eq`."""
    compare_bytes: Count | None = None
    """Bytes of a row that are compared at once, valid or not; None: the valid elements only."""
    inverts_whole_mask: bool = False
    """`ne` is `eq` followed by an inversion of all bytes of the destination tile."""
    mask_has_source_shape: bool = False
    move_bytes: Count | None = None
    """Unit in which a move copies the end of a row, beyond the valid columns; None: the elements only."""
    move_needs_one_shape: bool = False
    equal_pad_keeps_source: bool = False
    """Filling between tiles of one pad value copies the rest of a row's last block from the source."""
    in_place_reciprocal: tuple[str, ...] = ()
    """Formats whose division by a scalar in place multiplies by the rounded reciprocal."""
    divides_through: tuple[tuple[str, str], ...] = ()
    """Integer format, and the float format into which a division by a scalar converts its source, in place."""
    scalar_dividend_in_place: bool = True
    reciprocal_root: Literal["estimate", "divide"] = "divide"
    """Reciprocal square root without scratch: one hardware estimate, or a root and a division."""
    piece_bytes: Count
    """Bytes that one instruction of a row reduction takes."""
    row_pieces: Literal["tree", "accumulator"]
    """The joining of the pieces of a row: neighbours in pairs, or one after the other onto a neutral start value."""
    debug_regions: tuple[str, ...] = ()
    """Operations whose valid regions are compared in debug builds of the library only."""
    columns_only: tuple[str, ...] = ()
    """Operations that compare only the valid columns of their tiles."""
    ramp_negates_sum: bool = False
    """A descending ramp by scratch is the negated ascending one, which is right for a start of 0 only."""
    gather_numbers: tuple[str, ...] = ()
    """Formats of the numbers by which a gather takes elements."""
    gather_scales_in_tmp: bool = False
    """A gather turns numbers into byte offsets in its tmp tile, which it needs."""
    concatenation_fills: bool = False
    """The columns of both parts must be as many as are valid in the result."""
    sort_pads_in_tmp: bool = False
    """A sort of rows that are no whole groups pads them in its tmp tile, which it then needs."""
    dequantises_whole_registers: bool = False
    """A dequantisation stores whole registers where a row has more than one."""
    spread_rows_limit: Count = 256
    spread_rows_most: Count = 240
    """From so many rows on, a quantisation spreads its parameters so many rows at a time."""
    sums_in_steps: bool = False
    """A sum of three adds the first two into its destination, then the third."""
    transposes_through_tmp: bool = False
    """A transposition in blocks copies its source to tmp before it writes, and then whole blocks of its result."""
