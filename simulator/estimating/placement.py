"""Where the operands of an estimated cast lie: apart from each other where the buffer is large enough.

Operands that share no bank cannot hold each other up, so a cast's cycles follow from its extents alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.estimating.arithmetic import SCALAR, Number, NumberFunctions, Shape, up
from castsim.execution.interpreter import Lowerer
from castsim.execution.tiles import Tile, TileCast
from castsim.isa.errors import Span, TileError
from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import RoundMode, TileType
from castsim.machines.target_cast import CastAsked
from castsim.machines.tile_modes import round_mode
from castsim.targets.dataflow import DataflowTarget

HERE = Span("<estimate>", 1, 1)
_WORD_BYTES = 4
"""Bytes of an element of the tmp tile, int32."""


@dataclass(frozen=True, slots=True)
class TileCastRequest:
    """The cast that is asked for, whatever the shape."""

    src: Format
    dst: Format
    rounding: RoundMode | None
    saturation: Saturation | None
    scratch: bool

    @classmethod
    def of(cls, asked: CastAsked) -> TileCastRequest:
        """Return the request that is made in words.

        Raises:
            ReadError: unknown rounding mode.
        """
        mode = None if asked.rounding is None else round_mode(asked.rounding)
        return cls(asked.src, asked.dst, mode, asked.saturation, asked.scratch)


@dataclass(frozen=True, slots=True)
class OperandPlacement:
    """Places operands for one pair of formats.

    `region` is the distance after which other banks begin, `capacity` what tiles may take, `limit` what the buffer has;
    all in bytes.
    """

    request: TileCastRequest
    bits: tuple[int, int]
    region: int
    alignment: int
    capacity: int
    limit: int
    line: int

    @classmethod
    def of(cls, target: DataflowTarget, lowerer: Lowerer, request: TileCastRequest) -> OperandPlacement:
        """Return the placement on a target."""
        _, capacity, _ = lowerer.buffer()
        return cls(
            request=request,
            bits=(lowerer.element_bits(request.src), lowerer.element_bits(request.dst)),
            region=target.group_bytes,
            alignment=target.estimated_alignment,
            capacity=capacity,
            limit=target.memories["ub"].capacity_bytes,
            line=8 * target.block_bytes,
        )

    def cast(self, lowerer: Lowerer, shape: Shape) -> TileCast:
        """Return the cast of one shape.

        Raises:
            TileError: an extent is negative; see `castsim.execution.dataflow.checks.check_tile`.
        """
        for name in ("rows", "cols", "src_stride", "dst_stride", "valid_rows", "valid_cols"):
            if getattr(shape, name) < 0:
                raise TileError(f"{name} {getattr(shape, name)} is negative")
        if shape.valid_cols > shape.cols:
            raise TileError(f"{shape.valid_cols} valid columns: the tile has {shape.cols}")
        request = self.request
        source = self._tile(lowerer, "src", request.src, shape.src_stride, shape, 0)
        at = self._second(shape, SCALAR)
        destination = self._tile(lowerer, "dst", request.dst, shape.dst_stride, shape, at)
        tmp = self._scratch(shape, destination.end) if request.scratch else None
        return TileCast(source, destination, tmp, request.rounding, request.saturation, HERE)

    def fits(self, shape: Shape, reach: Number, arithmetic: NumberFunctions) -> Number:
        """Whether no tile of a shape would be refused, the destination being written as far as `reach` bytes."""
        rows, src, dst = shape.rows, shape.src_stride * self.bits[0], shape.dst_stride * self.bits[1]
        good = (rows >= 0) & (shape.valid_rows >= 0) & (shape.valid_cols >= 0) & (src >= 0) & (dst >= 0)
        good &= (shape.valid_rows <= rows) & (shape.valid_cols <= shape.cols)
        good &= (shape.valid_cols <= shape.src_stride) & (shape.valid_cols <= shape.dst_stride)
        good &= (src % self.line == 0) & (dst % self.line == 0)
        good &= up(rows * (src // 8), self.alignment) + rows * (dst // 8) <= self.limit
        good &= self._second(shape, arithmetic) + reach <= self.limit
        return good

    def apart(self, shape: Shape, arithmetic: NumberFunctions, *, scratch: bool) -> Number:
        """Whether all operands of a shape that `fits` lie in different banks; with `scratch` the tmp tile as well."""
        dst = shape.rows * (shape.dst_stride * self.bits[1] // 8)
        at = self._second(shape, arithmetic)
        apart = at % self.region == 0
        if scratch:
            behind = up(at + dst, self.region)
            apart &= behind + self._reserve(shape) <= self.capacity
        return apart

    def holds_scratch(self, shape: Shape, arithmetic: NumberFunctions) -> Number:
        """Whether a tmp tile that always suffices is left room for behind the tiles of a shape that `fits`."""
        return self._behind(shape, arithmetic) + self._reserve(shape) <= self.capacity

    def leaves_scratch(self, shape: Shape, arithmetic: NumberFunctions) -> Number:
        """Whether any bytes are left for a tmp tile; one without any is refused where it is simulated."""
        return self._behind(shape, arithmetic) + self.alignment <= self.capacity

    def _behind(self, shape: Shape, arithmetic: NumberFunctions) -> Number:
        dst = shape.rows * (shape.dst_stride * self.bits[1] // 8)
        return up(self._second(shape, arithmetic) + dst, self.alignment)

    def _second(self, shape: Shape, arithmetic: NumberFunctions) -> Number:
        """Return where the destination lies."""
        src = shape.rows * (shape.src_stride * self.bits[0] // 8)
        at = up(src, self.region)
        needed = up(shape.rows * (shape.dst_stride * self.bits[1] // 8), self.alignment) + self._reserve(shape)
        return arithmetic.choose(at + needed <= self.capacity, at, up(src, self.alignment))

    def _reserve(self, shape: Shape) -> Number:
        """Return the bytes of a tmp tile that always suffices, 0 if none is wanted."""
        return shape.rows * shape.src_stride * _WORD_BYTES if self.request.scratch else 0

    def _tile(self, lowerer: Lowerer, name: str, fmt: Format, stride: int, shape: Shape, at: int) -> Tile:
        kind = TileType("vec", fmt.name, shape.rows, stride, shape.valid_rows, shape.valid_cols)
        tile = Tile(name, fmt, kind, at, shape.valid_rows, shape.valid_cols, lowerer.element_bits(fmt))
        lowerer.check_tile(tile, HERE)
        return tile

    def _scratch(self, shape: Shape, behind: int) -> Tile:
        """Return an int32 tile of the source's shape, cut to what is left of the buffer."""
        words = shape.rows * shape.src_stride
        at: int = up(behind, self.region)
        if at + words * _WORD_BYTES > self.capacity:
            at = up(behind, self.alignment)
        words = max(0, min(words, (self.capacity - at) // _WORD_BYTES))
        words -= words % (self.line // 8 // _WORD_BYTES)
        return Tile("tmp", format_named("i32"), TileType("vec", "i32", 1, words, 1, words), at, 1, words, 32)
