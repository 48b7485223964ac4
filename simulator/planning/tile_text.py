"""Chains as `.pto` programs: one tile loaded, taken through every step, and stored."""

from __future__ import annotations

from castsim.isa.formats import Format
from castsim.isa.pto.program import PartitionType, PointerType, ScalarType, TileType, ViewType
from castsim.isa.pto.types import format_type
from castsim.planning.assembly import Assembly, machine_formats
from castsim.planning.steps import Chain, LoweringStep, RereadForm
from castsim.planning.tile_arithmetic import shown
from castsim.planning.tile_steps import step_lines
from castsim.targets import Target


def tile_assembly(chain: Chain, src: Format, dst: Format, target: Target, rows: int, cols: int) -> Assembly:
    """Return the program of a chain for one tile of `rows` x `cols` elements.

    Raises:
        IllegalError: a format that the text cannot spell.
    """
    first, last = machine_formats(chain, src, dst, target)
    writer = _Writer(target, rows, cols)
    current = writer.load(first)
    for step in between_ends(chain):
        current = writer.step(step, current)
    writer.store(current, last)
    head = " -> ".join([src.name, *(step.dst.name for step in chain)]) if chain else f"{src.name}, copied"
    return Assembly(
        target=target,
        text=writer.text(head),
        suffix=".pto",
        elements=rows * cols,
        source=first,
        destination=last,
        scratch_bytes=writer.scratch_bytes,
        buffer_bytes=writer.buffer_bytes,
        registers=0,
    )


def between_ends(chain: Chain) -> Chain:
    """Return a chain without the rereads at its ends, which are declarations of the arguments."""
    places = [place for place, step in enumerate(chain) if step.is_instruction]
    return chain[places[0] : places[-1] + 1] if places else ()


class _Writer:
    def __init__(self, target: Target, rows: int, cols: int) -> None:
        self.target = target
        self.extent = (rows, cols)
        self.head: list[str] = []
        self.tiles: list[str] = []
        self.body: list[str] = []
        self.arguments: list[str] = []
        self.count = 0
        self.scratch_bytes = 0
        self.buffer_bytes = 0

    def load(self, fmt: Format) -> tuple[str, str]:
        part = self._view("src", fmt)
        tile, kind = self.tile(fmt)
        self.body.append(f"pto.tload ins(%psrc : {part}) outs({tile} : {kind})")
        return tile, kind

    def store(self, tile: tuple[str, str], fmt: Format) -> None:
        part = self._view("dst", fmt)
        self.body.append(f"pto.tstore ins({tile[0]} : {tile[1]}) outs(%pdst : {part})")

    def step(self, step: LoweringStep, source: tuple[str, str]) -> tuple[str, str]:
        if isinstance(step.forms[0], RereadForm):
            return self._alias(step, source)
        result = self.tile(step.dst)
        self.body += step_lines(step, source, result, self)
        return result

    def text(self, head: str) -> str:
        """Return the program."""
        rows, cols = self.extent
        # The text names architectures; a chip that answers to several is named by its first.
        architecture = self.target.architectures[0]
        lines = [
            f"// {head}",
            f'module attributes {{pto.target_arch = "{architecture}"}} {{',
            f"  func.func @lowered({', '.join(self.arguments)}) attributes {{pto.entry}} {{",
            "    %c0 = arith.constant 0 : index",
            "    %c1 = arith.constant 1 : index",
            f"    %rows = arith.constant {rows} : index",
            f"    %cols = arith.constant {cols} : index",
            *(f"    {line}" for line in (*self.head, *self.tiles, *self.body)),
            "    return",
            "  }",
            "}",
        ]
        return "".join(f"{line}\n" for line in lines)

    def _view(self, name: str, fmt: Format) -> str:
        view = format_type(ViewType(self.extent, fmt.name))
        part = format_type(PartitionType(self.extent, fmt.name))
        self.arguments.append(f"%{name}: {format_type(PointerType(fmt.name))}")
        self.head.append(
            f"%v{name} = pto.make_tensor_view %{name}, shape = [%rows, %cols], strides = [%cols, %c1] : {view}"
        )
        self.head.append(
            f"%p{name} = pto.partition_view %v{name}, offsets = [%c0, %c0], sizes = [%rows, %cols] : {view} -> {part}"
        )
        return part

    def tile(self, fmt: Format) -> tuple[str, str]:
        """Declare a tile of the extent."""
        return self._alloc(fmt, *self.extent)

    def _alloc(self, fmt: Format, rows: int, cols: int) -> tuple[str, str]:
        kind = format_type(TileType("vec", fmt.name, rows, cols, rows, cols))
        name = f"%t{self.count}"
        self.count += 1
        self.tiles.append(f"{name} = pto.alloc_tile : {kind}")
        self.buffer_bytes += rows * cols * fmt.storage_bits // 8
        return name, kind

    def scratch(self, fmt: Format, rows: int, cols: int) -> tuple[str, str]:
        """Declare a tmp tile."""
        self.scratch_bytes += rows * cols * fmt.storage_bits // 8
        return self._alloc(fmt, rows, cols)

    def scalar(self, constant: int, fmt: Format) -> tuple[str, str]:
        """Declare a constant; return its name and type."""
        scalar, kind = f"%k{len(self.head)}", format_type(ScalarType(fmt.name))
        self.head.append(f"{scalar} = arith.constant {shown(constant, fmt)} : {kind}")
        return scalar, kind

    def _alias(self, step: LoweringStep, source: tuple[str, str]) -> tuple[str, str]:
        """Give the bytes of a tile another element type."""
        kind = format_type(TileType("vec", step.dst.name, *self.extent, *self.extent))
        name = f"%t{self.count}"
        self.count += 1
        self.body.append(f"{name} = pto.bitcast {source[0]} : {source[1]} -> {kind}")
        return name, kind
