"""Schema of the vector operations on tiles: which a chip has, for which elements, and where libraries differ.

Facts: pto_assembly.md section 10. What an operation computes is the same on every chip except for what stands here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from targets.schema import Count, Fact, Table


def _listed(value: Any) -> Any:
    """Split a CSV cell; an empty one is an empty list."""
    if value is None:
        return ()
    return tuple(value.split(";")) if isinstance(value, str) else value


Formats = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class TileOperation(Table):
    """One vector operation. `types` are the element formats it takes; for comparisons those of what is compared.

    `library_types` are further ones that the C++ library has and the text form refuses. `tmp` says what becomes of a
    scratch tile in the text; `approximate` why values are not claimed to be bit-exact (None: they are).
    """

    mnemonic: str
    types: Formats
    library_types: Formats = ()
    tmp: Literal["none", "used", "ignored", "refused"]
    validated: Formats = ()
    """Formats for which published cycles of the operation exist and are compared with the simulation."""
    approximate: str | None = None
    note: str | None = None


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


class TileArithmetic(Fact):
    """Where the vector operations of chips differ in what they compute or touch."""

    saturating_formats: tuple[str, ...]
    """Results of these formats clamp overflow and infinity and turn NaN into 0, while `saturates_while` holds."""
    saturating_functions: tuple[str, ...]
    saturates_while: tuple[tuple[str, int | str], ...]
    """Options and the values that they must all have."""
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
    """How the pieces of a row are joined: neighbours in pairs, or one after the other onto a neutral start value."""
    columns_only: tuple[str, ...] = ()
    """Operations that compare only the valid columns of their tiles."""
