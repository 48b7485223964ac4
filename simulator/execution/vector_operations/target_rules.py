"""A target's contribution to a vector operation: facts, options, and the scratch tile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from castsim.execution.tree import Access, ResolvedTileOp, Tile, strided
from castsim.execution.vector_operations.shapes import (
    BLOCK,
    BUFFER,
    Bytes,
    block_end,
    is_column,
    region,
    tile_error,
    transposes_by_blocks,
)
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, ReadError, ScratchError, TileError
from castsim.isa.formats import Format, IntFormat
from castsim.isa.pto.value_types import held_format
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, VectorOperation, parts_of
from castsim.targets.dataflow import DataflowTarget, TileArithmetic, TileOperationFacts

# Moves of bytes into boxes for the matrix unit: shared exponents to ZZ, codes to NZ.
#
# Source: docs/reference/pto.md section 7.12.

_ROWS, _COLUMNS = 16, 2
"""Rows and columns of exponents in a box."""

_ROW_PLUS_ONE = 2
"""The `compact` value of a tile with one additional row per column of boxes, against bank conflicts."""


def is_exponents(work: ResolvedTileOp) -> bool:
    """Return whether a move is one of shared exponents, to ZZ."""
    return work.mnemonic == "tmov.zz"


def exponent_shape(work: ResolvedTileOp) -> tuple[int, int]:
    """Return the number of rows of elements, or of columns if groups are of rows, and of groups in each."""
    source, dst = work.sources[0], work.dst
    return (source.valid_cols, source.valid_rows) if work.by_columns else region(dst)


def box_scratch(work: ResolvedTileOp) -> int:
    """Return the bytes of scratch that a move into boxes needs."""
    if not is_exponents(work) or work.by_columns:
        return 0
    rows, groups = exponent_shape(work)
    return 64 + -(-rows // _ROWS) * groups


def fill_boxes(buffer: Bytes, work: ResolvedTileOp) -> None:
    """Write the boxes; for exponents, the rows that fill the last box are zeros, in the source too."""
    source, dst = work.sources[0], work.dst
    if is_exponents(work):
        rows, groups = exponent_shape(work)
        whole = block_end(rows, _ROWS)
        size = whole * groups
        if work.by_columns:
            content = buffer[source.address : source.address + size].reshape(groups, rows).T
        else:
            buffer[source.address + rows * groups : source.address + size] = 0
            content = buffer[source.address : source.address + size].reshape(whole, groups)
        boxes = content.reshape(whole // _ROWS, _ROWS, groups // _COLUMNS, _COLUMNS).transpose(0, 2, 1, 3)
        buffer[dst.address : dst.address + size] = boxes.reshape(-1)
        return
    length, pitch = _line(work), _tall(work) * BLOCK
    for row in range(source.valid_rows):
        line = buffer[source.address + row * source.row_pitch :][:length].copy()
        for start in range(0, length, BLOCK):
            at = dst.address + start // BLOCK * pitch + row * BLOCK
            piece = line[start : start + BLOCK]
            buffer[at : at + piece.size] = piece


def boxed_bytes(work: ResolvedTileOp) -> Access:
    """Return the bytes that are written."""
    dst, rows = work.dst, work.sources[0].valid_rows
    if is_exponents(work):
        down, groups = exponent_shape(work)
        return Access(BUFFER, dst.address, dst.address + block_end(down, _ROWS) * groups, write=True)
    length = _line(work)
    if not rows or not length:
        return Access(BUFFER, dst.address, dst.address, write=True)
    whole, pitch = length // BLOCK, _tall(work) * BLOCK
    if length % BLOCK:  # the last column of boxes is not full
        whole += 1
    return strided(BUFFER, dst.address, ((whole, pitch), (rows, BLOCK)), min(length, BLOCK), write=True)


def bytes_to_box(work: ResolvedTileOp) -> list[Access]:
    """Return the bytes that are read."""
    source = work.sources[0]
    if is_exponents(work):
        rows, groups = exponent_shape(work)
        return [Access(BUFFER, source.address, source.address + rows * groups, write=False)]
    pitches = ((source.valid_rows, source.row_pitch),)
    return [strided(BUFFER, source.address, pitches, _line(work), write=False)]


def cleared_bytes(work: ResolvedTileOp) -> list[Access]:
    """Return the bytes of the source that are cleared: rows of exponents up to a whole box."""
    if not is_exponents(work) or work.by_columns:
        return []
    (rows, groups), start = exponent_shape(work), work.sources[0].address
    whole = block_end(rows, _ROWS)
    return [Access(BUFFER, start + rows * groups, start + whole * groups, write=True)] if whole > rows else []


def _line(work: ResolvedTileOp) -> int:
    source = work.sources[0]
    return source.valid_cols * source.element_bits // 8


def _tall(work: ResolvedTileOp) -> int:
    """Return the rows of a column of boxes."""
    return block_end(work.sources[0].valid_rows, _ROWS) + (work.dst.type.compact == _ROW_PLUS_ONE)


def check_boxes(work: ResolvedTileOp, types: tuple[str, ...]) -> None:
    """Reject operands that do not fit together; `types` are the formats of elements.

    Raises:
        ReadError: elements are unsupported or differ. TileError: extents do not fit; the message names the tile.
    """
    source, dst = work.sources[0], work.dst
    for tile in (source, dst, *([work.tmp] if work.tmp is not None else [])):
        name = held_format(tile.format)[0].name
        if name not in types or tile.format.name != source.format.name:
            text = f"{work.mnemonic[:4]} into boxes: %{tile.name} holds {tile.format.name}"
            raise ReadError(text, span=work.span, legal=types if name not in types else (source.format.name,))
    if source.type.block_layout != "row_major":
        raise TileError(f"{work.mnemonic[:4]} into boxes: %{source.name} must be row-major", span=work.span)
    if is_exponents(work):
        _check_exponents(work)
    else:
        if region(source) != region(dst):
            regions = f"{source.valid_rows} x {source.valid_cols}", f"{dst.valid_rows} x {dst.valid_cols}"
            raise _unfit(work, source.name, regions[0], f"%{dst.name} is {regions[1]}")
        written = boxed_bytes(work).end - dst.address
        if written > dst.size:
            raise _unfit(work, dst.name, f"{dst.size} bytes", f"{written} are written")


def _check_exponents(work: ResolvedTileOp) -> None:
    source, dst = work.sources[0], work.dst
    rows, groups = exponent_shape(work)
    if groups % _COLUMNS:
        raise _unfit(work, dst.name, f"{groups} groups", "boxes hold two")
    if work.by_columns and rows % _ROWS:
        raise _unfit(work, source.name, f"{rows} columns", f"boxes hold {_ROWS}")
    given = source.valid_rows * source.valid_cols
    if given != rows * groups or (source.valid_rows > 1 and source.cols != source.valid_cols):
        raise _unfit(work, source.name, f"{source.valid_rows} x {source.valid_cols} exponents in rows of {source.cols}",
                     f"{rows} x {groups} without gaps are moved")  # fmt: skip
    need = block_end(rows, _ROWS) * groups
    for tile in (source, dst):
        if tile.size < need:
            raise _unfit(work, tile.name, f"{tile.size} bytes", f"{need} are needed: whole boxes of {_ROWS} rows")


def _unfit(work: ResolvedTileOp, name: str, what: str, wanted: str) -> TileError:
    return TileError(f"{work.mnemonic[:4]} into boxes: %{name} has {what}; {wanted}", span=work.span)


@dataclass(frozen=True, slots=True)
class ExtremeScratch:
    """The layout of a row arg-reduction's tmp tile, in bytes; pairs of value and index come first.

    `values` and `places` are those of the pairs, `second` the pairs of the second stage, `size` the total.
    """

    values: int
    places: int
    second: int
    size: int


def extreme_scratch(source: Tile, piece_bytes: int) -> ExtremeScratch:
    """Return the scratch layout of a row arg-reduction whose instructions take a number of bytes of a row."""
    size = source.element_bits // 8
    rows, pieces = source.valid_rows, -(-source.valid_cols * size // piece_bytes)
    values = rows * pieces * 2 * size
    if pieces == 1:
        return ExtremeScratch(values, values, values, values + rows * size)
    places = values + rows * pieces * size
    second = places + rows * pieces * size
    return ExtremeScratch(values, places, second, second + rows * 2 * size)


def check_scratch(
    target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation, rule: TileOperationFacts
) -> None:
    """Reject a scratch tile of the wrong type, shape or size.

    Raises:
        IllegalError: the target accepts none. ReadError, TileError: its type or valid region is wrong.
        ScratchError: it is too small; the message states the missing bytes.
    """
    tmp = work.tmp
    if tmp is None:
        return
    if rule.tmp == "refused":
        raise IllegalError(
            f"pto.{work.mnemonic} does not take a tmp tile on {target.name}",
            span=work.span,
            legal=operation.spellings[:1],
        )
    if operation.kind is Kind.RAMP:
        _check_ramp_scratch(target, work, tmp, rule)
        return
    like = work.sources[0]
    must_match = operation.tmp_like_source and not tmp.added
    if must_match and (tmp.format, tmp.valid_rows, tmp.valid_cols) != (like.format, like.valid_rows, like.valid_cols):
        raise TileError(
            f"{work.mnemonic} needs a tmp tile of the type and valid region of %{like.name}: "
            f"{like.valid_rows} x {like.valid_cols} {like.format.name}",
            span=work.span,
        )
    if rule.tmp != "used":
        return
    if operation.kind is Kind.SELECT and work.scalars and tmp.format != like.format:
        raise ReadError(f"{work.mnemonic} keeps its scalar in tmp, so %{tmp.name} must hold {like.format.name}")
    _check_size(work, tmp, scratch_bytes(target, work, operation))


def _check_size(work: ResolvedTileOp, tmp: Tile, need: int) -> None:
    if tmp.size < need:
        raise ScratchError(
            f"tmp %{tmp.name} has {tmp.size} bytes, {work.mnemonic} needs {need}: {need - tmp.size} bytes too few",
            span=work.span,
        )


def _check_ramp_scratch(target: DataflowTarget, work: ResolvedTileOp, tmp: Tile, rule: TileOperationFacts) -> None:
    sizes = target.ramp_scratch
    if rule.tmp != "used" or sizes is None:
        return
    if tmp.element_bits != sizes.element_bits or is_column(tmp):
        raise tile_error(work, f"tmp %{tmp.name} must be row-major, its elements of {sizes.element_bits} bits")
    _check_size(work, tmp, sizes.bytes_32 if work.dst.element_bits == 32 else sizes.bytes_16)


def scratch_bytes(target: DataflowTarget, work: ResolvedTileOp, operation: VectorOperation) -> int:
    """Return the number of scratch bytes that an operation needs on a target that uses it."""
    rule = target.broadcast_scratch
    if rule is not None and operation.kind is Kind.ROW_BROADCAST and any(map(is_column, work.sources)):
        rows = work.dst.valid_rows
        return -(-rows // rule.rows) * rule.bytes if rows < rule.limit else rule.most
    if work.binary:
        source = work.sources[0]
        return (source.valid_rows + 1) // 2 * source.row_pitch
    if operation.kind is Kind.ROW_ARGUMENT:
        return extreme_scratch(work.sources[0], target.tile_arithmetic.piece_bytes).size
    if operation.kind is Kind.COLUMN_ARGUMENT:
        line = block_end(work.sources[0].valid_cols * work.sources[0].element_bits // 8, BLOCK)
        bits = block_end(-(-work.sources[0].valid_cols // 8), BLOCK)
        return line + bits if work.sources[0].valid_rows > 1 else 0
    if operation.kind is Kind.BOX:
        return box_scratch(work)
    if operation.kind is Kind.QUANTISE:
        return 0  # its shape is asked for; what is written behind it is told in a warning
    if operation.kind is Kind.SORT:
        first = work.sources[0]
        return first.valid_rows * block_end(first.valid_cols * first.element_bits // 8, BLOCK)
    if operation.function == "xor":
        return work.dst.valid_rows * work.dst.row_pitch
    if operation.function == "rem":
        return work.dst.row_pitch
    if operation.kind is Kind.TRANSPOSE and transposes_by_blocks(work):
        return work.sources[0].size
    return target.block_bytes


# What a target adds to the formula of a vector operation: its facts, and the options that this operation rests on.


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A target's part in one operation.

    `saturates` tells whether results clamp and NaN becomes 0; `choices` are the options read, by name; `window` the
    bytes that the operation overwrites besides its operands.
    """

    facts: TileArithmetic
    saturates: bool
    uses_tmp: bool
    choices: tuple[tuple[str, int | str], ...] = ()
    window: tuple[int, int] | None = None

    def choice(self, name: str) -> int | str:
        """Return the value of an option that `behaviour_of` has read; KeyError for any other."""
        return dict(self.choices)[name]


def behaviour_of(target: DataflowTarget, work: ResolvedTileOp) -> Behaviour:
    """Return the target's part in an operation; only relevant options are read."""
    facts = target.tile_arithmetic
    operation = VECTOR_OPERATIONS[work.mnemonic]
    rule = target.tile_operation(work.mnemonic)
    fmt = float_route(work, facts) or compared_format(work)
    return Behaviour(
        facts=facts,
        saturates=saturates(facts, {operation.function, *operation.parts}, fmt, target.option),
        uses_tmp=work.tmp is not None and rule is not None and rule.tmp == "used",
        choices=tuple((name, target.option(name)) for name in _relevant(work, facts)),
        window=_window(target, work),
    )


LANE_OPTIONS = {
    "max": ("maximum_of_nan",),
    "min": ("maximum_of_nan",),
    "relu": ("relu_of_nan",),
    "shl": ("shift_beyond_width",),
    "shr": ("shift_beyond_width",),
    "axpy": ("axpy_rounding",),
    "madd": ("axpy_rounding",),
}
"""Options for results of lanes that no source states, by function."""


def lane_behaviour(
    target: DataflowTarget, function: str, fmt: str, ctrl: int, bits: Mapping[str, int], names: Iterable[str] = ()
) -> Behaviour:
    """Return the target's part in a function of lanes that reads the options `names`.

    Results clamp like those of tile operations under this CTRL, whose `bits` stand for options
    (docs/reference/pto.md section 7.1).
    """
    facts = target.tile_arithmetic

    def value_of(option: str) -> int | str:
        return ctrl >> bits[option] & 1 if option in bits else target.option(option)

    choices = tuple((name, target.option(name)) for name in names)
    return Behaviour(
        facts, saturates(facts, {function, *parts_of(function)}, fmt, value_of), uses_tmp=False, choices=choices
    )


def saturates(
    facts: TileArithmetic, functions: Collection[str], fmt: str, value_of: Callable[[str], int | str]
) -> bool:
    """Return whether one of the functions clamps its results in a format; `value_of` gives the value of an option."""
    return any(
        fmt in rule.formats
        and not set(rule.functions).isdisjoint(functions)
        and all(value_of(name) == value for name, value in rule.holds_while)
        for rule in facts.saturation
    )


def compared_format(work: ResolvedTileOp) -> str:
    """Return the element format of an operation's computation: that of its sources if it has any."""
    return (work.sources[0] if work.sources else work.dst).format.name


def computed_format(work: ResolvedTileOp) -> Format:
    """Return the format of the computation, before a conversion to narrower elements."""
    narrows = VECTOR_OPERATIONS[work.mnemonic].kind is Kind.NARROW
    return work.sources[0].format if narrows else work.dst.format


def float_route(work: ResolvedTileOp, facts: TileArithmetic) -> str | None:
    """Return the float format through which a division by a scalar is computed, None if there is none."""
    if not VECTOR_OPERATIONS[work.mnemonic].divides_by_scalar:
        return None
    return dict(facts.divides_through).get(work.dst.format.name)


def _relevant(work: ResolvedTileOp, facts: TileArithmetic) -> tuple[str, ...]:
    """Return the options that affect an operation on these elements."""
    operation = VECTOR_OPERATIONS[work.mnemonic]
    if operation.kind in (Kind.COMPARE_GATHER, Kind.PACK, Kind.BOX, Kind.PART_ARGUMENT):
        return ()
    if operation.kind is Kind.BLOCK_QUANTISE:
        return ("maximum_of_nan", "subnormals", "e4m3_nan", "nv_flat_fp4")
    if operation.kind is Kind.QUANTISE:
        return ("float_saturation_off_at_start",) if work.tmp is not None else ()
    if operation.kind is Kind.DEQUANTISE:
        return ("tdequant_tail",) if facts.dequantises_whole_registers else ()
    if operation.kind is Kind.COMPARE:
        if facts.compare_bytes is None:
            return ("spare_mask_bits",)
        inverts = facts.inverts_whole_mask and work.mode == "ne" and not isinstance(work.sources[0].format, IntFormat)
        return ("unequal_of_nan",) if inverts else ()
    if operation.kind.gives_places:  # a comparison has been dealt with
        return () if isinstance(work.sources[0].format, IntFormat) else ("maximum_of_nan",)
    read = next((_OF_FUNCTION[part] for part in operation.parts if part in _OF_FUNCTION), None)
    if read is not None:
        needed = operation.function not in ("rem", "fmod") or isinstance(work.dst.format, IntFormat)
        nan = ("relu_of_nan",) if "relu" in operation.parts else ()
        return (read, *nan) if needed else ()
    if isinstance(computed_format(work), IntFormat):
        if operation.integers_exact:
            return ()
        routed = float_route(work, facts) is not None
        return ("integer_saturation_off_at_start", "nan_to_integer") if routed else ("integer_division_by_zero",)
    names = tuple(dict.fromkeys(_OF_NAN[part] for part in operation.parts if part in _OF_NAN))
    return (*names, "lane_order") if operation.kind is Kind.ROW_REDUCE else names


_OF_NAN = {"max": "maximum_of_nan", "min": "maximum_of_nan", "relu": "relu_of_nan"}
"""Options for the treatment of NaN by functions."""

_OF_FUNCTION = {
    "shl": "shift_beyond_width",
    "shr": "shift_beyond_width",
    "rem": "remainder_by_zero",
    "fmod": "remainder_by_zero",
    "axpy": "axpy_rounding",
    "madd": "axpy_rounding",
    "adddeqrelu": "relu_of_nan",
}
"""Options for other unstated results of functions; remainders read theirs only for integers."""


def _window(target: DataflowTarget, work: ResolvedTileOp) -> tuple[int, int] | None:
    window = target.unreserved_scratch
    if window is None or work.tmp is not None or VECTOR_OPERATIONS[work.mnemonic].kind is not Kind.ROW_BROADCAST:
        return None
    column = any(source.type.block_layout == "col_major" for source in work.sources)
    return (window.start, window.end) if column else None
