"""Chains as `.pto` programs: one tile loaded, taken through every step, and stored."""

from __future__ import annotations

from isa.errors import IllegalError
from isa.formats import Format, format_named
from isa.pto.program import PartitionType, PointerType, ScalarType, TileType, ViewType
from isa.pto.types import format_type
from simulator.planning.assembly import Assembly, machine_formats
from simulator.planning.steps import Chain, RereadForm, Step, TileCastForm, TileWorkForm
from simulator.planning.tile_arithmetic import TRUTH, shown
from simulator.tile_work.shapes import BLOCK
from targets import Target
from targets.strided_repeat import StridedRepeatTarget

_SCRATCH = "i32"
"""Element type of tmp tiles."""


def tile_assembly(chain: Chain, src: Format, dst: Format, target: Target, rows: int, cols: int) -> Assembly:
    """Return the program of a chain for one tile of `rows` x `cols` elements.

    Raises:
        IllegalError: a format that the text cannot spell.
    """
    first, last = machine_formats(chain, src, dst)
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
        order=None,
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
        tile, kind = self._tile(fmt)
        self.body.append(f"pto.tload ins(%psrc : {part}) outs({tile} : {kind})")
        return tile, kind

    def store(self, tile: tuple[str, str], fmt: Format) -> None:
        part = self._view("dst", fmt)
        self.body.append(f"pto.tstore ins({tile[0]} : {tile[1]}) outs(%pdst : {part})")

    def step(self, step: Step, source: tuple[str, str]) -> tuple[str, str]:
        form = step.forms[0]
        if isinstance(form, RereadForm):
            return self._alias(step, source)
        result = self._tile(step.dst)
        if isinstance(form, TileCastForm):
            self._cast(step, form, source, result)
        elif isinstance(form, TileWorkForm):
            self._work(step, form, source, result)
        else:
            raise IllegalError(f"{step.name} is no tile operation")
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

    def _tile(self, fmt: Format) -> tuple[str, str]:
        return self._alloc(fmt, *self.extent)

    def _alloc(self, fmt: Format, rows: int, cols: int) -> tuple[str, str]:
        kind = format_type(TileType("vec", fmt.name, rows, cols, rows, cols))
        name = f"%t{self.count}"
        self.count += 1
        self.tiles.append(f"{name} = pto.alloc_tile : {kind}")
        self.buffer_bytes += rows * cols * fmt.storage_bits // 8
        return name, kind

    def _cast(self, step: Step, form: TileCastForm, source: tuple[str, str], result: tuple[str, str]) -> None:
        words = [] if form.rounding is None else [f"rmode = #pto<round_mode {form.rounding.name}>"]
        words += [] if form.saturation is None else [f"sat_mode = #pto<saturation_mode {form.saturation.name}>"]
        attributes = f" {{{', '.join(words)}}}" if words else ""
        names, kinds = source
        if form.scratch:
            size = self._scratch_words(step, form)
            tmp, kind = self._alloc(format_named(_SCRATCH), 1, size)
            names, kinds = f"{names}, {tmp}", f"{kinds}, {kind}"
            self.scratch_bytes += size * 4
        self.body.append(f"pto.tcvt ins({names}{attributes} : {kinds}) outs({result[0]} : {result[1]})")

    def _scratch_words(self, step: Step, form: TileCastForm) -> int:
        """Return the length of the tmp tile, whole blocks of int32."""
        from simulator.strided.plan import plan_cast  # noqa: PLC0415 - only where a form has scratch
        from simulator.strided.scratch import scratch_need  # noqa: PLC0415

        assert isinstance(self.target, StridedRepeatTarget)
        rows, cols = self.extent
        plan = plan_cast(self.target, step.src, step.dst, form.rounding, form.saturation, scratch=True)
        size = scratch_need(plan, self.target.repeat, rows, cols, cols).total
        block = self.target.repeat.block_bytes
        return max(block, -(-size // block) * block) // 4

    def _work(self, step: Step, form: TileWorkForm, source: tuple[str, str], result: tuple[str, str]) -> None:
        assert form.constant is not None
        if form.mnemonic == TRUTH:
            self._truth(step, form.constant, source, result)
            return
        scalar, kind = self._scalar(form.constant, step.src)
        self.body.append(
            f"pto.{form.mnemonic} ins({source[0]}, {scalar} : {source[1]}, {kind}) outs({result[0]} : {result[1]})"
        )

    def _scalar(self, constant: int, fmt: Format) -> tuple[str, str]:
        """Declare a constant; return its name and type."""
        scalar, kind = f"%k{len(self.head)}", format_type(ScalarType(fmt.name))
        self.head.append(f"{scalar} = arith.constant {shown(constant, fmt)} : {kind}")
        return scalar, kind

    def _truth(self, step: Step, one: int, source: tuple[str, str], result: tuple[str, str]) -> None:
        """Compare with zero; where that holds keep the zero, elsewhere take 1."""
        mask, mask_kind = self._tile(format_named("i8"))  # a bit per element, but the valid region of the source
        tmp, tmp_kind = self._alloc(step.src, 1, BLOCK)
        (zero, kind), (single, _) = self._scalar(0, step.src), self._scalar(one, step.src)
        self.body.append(
            f"pto.tcmps ins({source[0]}, {zero} {{cmpMode = #pto<cmp eq>}} : {source[1]}, {kind}) "
            f"outs({mask} : {mask_kind})"
        )
        self.body.append(
            f"pto.tsels ins({mask}, {source[0]}, {tmp}, {single} : {mask_kind}, {source[1]}, {tmp_kind}, {kind}) "
            f"outs({result[0]} : {result[1]})"
        )
        self.scratch_bytes += BLOCK * step.src.storage_bits // 8

    def _alias(self, step: Step, source: tuple[str, str]) -> tuple[str, str]:
        """Give the bytes of a tile another element type."""
        kind = format_type(TileType("vec", step.dst.name, *self.extent, *self.extent))
        name = f"%t{self.count}"
        self.count += 1
        self.body.append(f"{name} = pto.bitcast {source[0]} : {source[1]} -> {kind}")
        return name, kind
