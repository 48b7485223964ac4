"""Kernels as `.pto` programs: a loop over tiles, each loaded, computed and stored.

Tensors are flat, cut into rows of `_COLUMNS` elements; tiles have as many whole rows as fit the buffer, all
the same number. Nothing is double-buffered. A tile whose value is no longer needed stores a later value of
its format.
"""

from __future__ import annotations

from collections.abc import Mapping

from castsim.execution.vector_operations.target_rules import saturates
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import TileError
from castsim.isa.formats import FORMATS, Codes, Format, IntFormat
from castsim.isa.pto.program import PartitionType, ViewType
from castsim.isa.pto.types import format_type
from castsim.targets.loader import TileTarget
from castsim.tools.graphs.graph_kernels import (
    Combined,
    Converted,
    KeptValue,
    KernelValue,
    NodeKernel,
    NodeText,
    operands,
)
from castsim.tools.lowering.steps import RereadForm
from castsim.tools.lowering.tile_casts import TileWriter, step_lines

_COLUMNS = 256
"""Elements of a row: whole blocks of every format."""
_FEWEST = 64
"""Least elements of a row: a block of the narrowest format."""
_BYTE = 8
_BYTES = FORMATS["i8"]


NIBBLES_AS_BYTES = False


def has(target: TileTarget, function: str, fmt: Format, *, constant: bool) -> bool:
    """Return whether there is an operation for a function on tiles, or on a tile and a constant."""
    rule = target.tile_operation(f"t{function}{'s' if constant else ''}")
    return rule is not None and fmt.name in rule.types


def clamps(target: TileTarget, functions: tuple[str, ...], fmt: Format) -> bool:
    """Return whether one of the functions clamps its results in a format, and converts NaN to 0."""
    return saturates(target.tile_arithmetic, functions, fmt.name, target.option)


def outputs(kernel: NodeKernel, target: TileTarget, inputs: Mapping[str, Codes]) -> None:
    """Return None: programs of tiles compute whole tiles, so they are quick."""
    del kernel, target, inputs


def program(kernel: NodeKernel, target: TileTarget, elements: int) -> NodeText:
    """Return the program of a kernel for at least `elements` elements.

    Raises:
        IllegalError: the text cannot spell a format.
        TileError: a single row of every tile exceeds the buffer.
    """
    # Rows of 4-bit formats are whole repeats: some casts of them mistake the length of what remains.
    fewest = _COLUMNS if any(fmt.bits < _BYTE for fmt in kernel.formats()) else _FEWEST
    cols = min(_COLUMNS, -(-max(elements, 1) // fewest) * fewest)
    rows = -(-max(elements, 1) // cols)
    capacity = target.memories["ub"].allocatable_bytes
    most = rows
    writer = _TileProgramWriter(target, kernel, most, cols)
    while writer.buffer_bytes > capacity:
        if most == 1:
            raise TileError(f"one row of {cols} elements of every tile takes {writer.buffer_bytes} of {capacity} bytes")
        most = min(most - 1, most * capacity // writer.buffer_bytes + 1)
        writer = _TileProgramWriter(target, kernel, most, cols)
    trips = -(-rows // most)
    height = -(-rows // trips)
    writer = _TileProgramWriter(target, kernel, height, cols)
    return NodeText(
        target=target,
        text=writer.text(trips),
        suffix=".pto",
        inputs={port.name: port.format for port in kernel.inputs},
        outputs={port.name: port.format for port in kernel.outputs},
        elements=trips * height * cols,
        tiles=trips,
    )


@dataclass(frozen=True, slots=True)
class _Tile:
    """A name of some bytes with its type; `root` is the name of the tile that was allocated for them."""

    name: str
    kind: str
    root: str

    @property
    def named(self) -> tuple[str, str]:
        """Name and type."""
        return self.name, self.kind


class _TileProgramWriter(TileWriter):
    def __init__(self, target: TileTarget, kernel: NodeKernel, rows: int, cols: int) -> None:
        super().__init__(target, rows, cols)
        self.kernel = kernel
        self.buffer_bytes = 0
        self.roots: dict[str, tuple[Format, _Tile]] = {}
        self.free: dict[str, list[_Tile]] = {}
        self.held: dict[int, _Tile] = {}
        last = kernel.last_uses()
        for port in self.kernel.inputs:
            tile = self._fresh(port.format)
            self.held[port.value.number] = tile
            self.load(f"%p_{port.name}", self._part(port.format), tile.named)
        for index, instruction in enumerate(self.kernel.instructions):
            if isinstance(instruction, Converted):
                self._convert(instruction)
            elif isinstance(instruction, KeptValue):
                self._keep(instruction)
            else:
                self._combine(instruction)
            for value in dict.fromkeys((*operands(instruction), instruction.result)):
                self._release(value, index, last)
        for port in self.kernel.outputs:
            self.store(self.held[port.value.number].named, f"%p_{port.name}", self._part(port.format))

    def text(self, trips: int) -> str:
        """Return the program for `trips` tiles."""
        (rows, cols), ports = self.extent, [*self.kernel.inputs, *self.kernel.outputs]
        kinds = {port.name: format_type(ViewType((None, None), port.format.name)) for port in ports}
        parts = [
            f"%p_{name} = pto.partition_view %v_{name}, offsets = [%r, %c0], sizes = [%height, %cols] : "
            f"{kind} -> {self._part(port.format)}"
            for port, (name, kind) in zip(ports, kinds.items(), strict=True)
        ]
        return self.framed(
            self.kernel.title.splitlines(),
            "node",
            {port.name: port.format for port in ports},
            {"rows": trips * rows, "height": rows, "cols": cols},
            *self.head,
            *(self.view(f"%v_{name}", name, kind) for name, kind in kinds.items()),
            *self.tiles,
            "scf.for %r = %c0 to %rows step %height {",
            *(f"  {line}" for line in (*parts, *self.body)),
            "}",
        )

    # ----------------------------------------------------------------------------------------------------- instructions

    def _convert(self, instruction: Converted) -> None:
        step, source = instruction.step, self.held[instruction.source.number]
        if isinstance(step.forms[0], RereadForm):
            self.held[instruction.result.number] = self._viewed(source, step.src, step.dst)
            return
        result = self._take(step.dst)
        self.held[instruction.result.number] = result
        self.body += step_lines(step, source.named, result.named, self)

    def _combine(self, instruction: Combined) -> None:
        first, function = self.held[instruction.first.number], instruction.function
        fmt, second = instruction.first.format, instruction.second
        result = self._take(fmt)
        self.held[instruction.result.number] = result
        if isinstance(second, KernelValue):
            other = self.held[second.number]
            self.body.append(
                f"pto.t{function} ins({first.name}, {other.name} : {first.kind}, {other.kind}) "
                f"outs({result.name} : {result.kind})"
            )
        elif function == "shl":
            self._with_constant("tmuls", first, 1 << second, fmt, result)
        else:
            self._with_constant(f"t{function}s", first, second, fmt, result)

    def _keep(self, instruction: KeptValue) -> None:
        """Compare a tile with itself, which is false only for NaN, and select by the bits."""
        tested = self.held[instruction.tested.number]
        result = self._take(instruction.result.format)
        self.held[instruction.result.number] = result
        # A bit for each of a row's elements; the selection leaves its scratch block as it likes.
        shaped = self.target.tile_arithmetic.mask_has_source_shape
        rows, cols = self.extent
        mask = self._allocated(_BYTES, rows, cols if shaped else _COLUMNS // _BYTE)
        tmp = self._allocated(_BYTES, 1, self._block)
        self.body.append(
            f"pto.tcmp ins({tested.name}, {tested.name} {{cmpMode = #pto<cmp eq>}} : {tested.kind}, {tested.kind}) "
            f"outs({mask.name} : {mask.kind})"
        )
        bounded, origin, into = (
            self._viewed(tile, instruction.result.format, instruction.view)
            for tile in (self.held[instruction.bounded.number], self.held[instruction.origin.number], result)
        )
        self.body.append(
            f"pto.tsel ins({mask.name}, {bounded.name}, {origin.name}, {tmp.name} : {mask.kind}, {bounded.kind}, "
            f"{origin.kind}, {tmp.kind}) outs({into.name} : {into.kind})"
        )

    def _viewed(self, tile: _Tile, fmt: Format, view: Format) -> _Tile:
        """Return a tile of one format as one of another of its width."""
        if fmt == view:
            return tile
        name, kind = f"%a{len(self.body)}", self.kind(view, *self.extent)
        self.bitcast(name, tile.named, kind)
        return _Tile(name, kind, tile.root)

    def _with_constant(self, mnemonic: str, source: _Tile, constant: int, fmt: Format, result: _Tile) -> None:
        scalar, kind = self.scalar(constant, fmt)
        self.body.append(
            f"pto.{mnemonic} ins({source.name}, {scalar} : {source.kind}, {kind}) outs({result.name} : {result.kind})"
        )

    # ----------------------------------------------------------------------------------------------------- declarations

    def tile(self, fmt: Format) -> tuple[str, str]:
        """Declare a new tile."""
        return self._fresh(fmt).named

    def scratch(self, fmt: Format, rows: int, cols: int) -> tuple[str, str]:
        """Declare a tmp tile."""
        return self._allocated(fmt, rows, cols).named

    # ------------------------------------------------------------------------------------------------------------ tiles

    def _take(self, fmt: Format) -> _Tile:
        free = self.free.get(fmt.name)
        return free.pop() if free else self._fresh(fmt)

    def _fresh(self, fmt: Format) -> _Tile:
        return self._allocated(fmt, *self.extent)

    def _allocated(self, fmt: Format, rows: int, cols: int) -> _Tile:
        name, kind = f"%t{len(self.tiles)}", self.kind(fmt, rows, cols)
        self.tiles.append(f"{name} = pto.alloc_tile : {kind}")
        bits = fmt.bits if isinstance(fmt, IntFormat) and fmt.bits < 8 else fmt.storage_bits
        self.buffer_bytes += -(-rows * cols * bits // 8 // self._block) * self._block
        self.roots[name] = fmt, _Tile(name, kind, name)
        return self.roots[name][1]

    def _release(self, value: KernelValue, index: int, last: dict[int, int]) -> None:
        """Free the tile of a value read for the last time, unless another name of its bytes is still needed."""
        if last[value.number] != index:
            return
        tile = self.held.pop(value.number)
        if any(other.root == tile.root for other in self.held.values()):
            return
        fmt, root = self.roots[tile.root]
        self.free.setdefault(fmt.name, []).append(root)

    # ------------------------------------------------------------------------------------------------------------ types

    @property
    def _block(self) -> int:
        return self.target.block_bytes

    def _part(self, fmt: Format) -> str:
        return format_type(PartitionType(self.extent, fmt.name))
