"""Casts of tiles as steps, and chains of them as `.pto` programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from castsim.execution.vector_operations.shapes import BLOCK
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Format, format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import PartitionType, PointerType, RoundMode, ScalarType, TileType, ViewType
from castsim.isa.pto.types import format_type
from castsim.lowering.catalogue import Assembly, Catalogue, LazySteps, Steps, arithmetic_of, casts_of, machine_formats
from castsim.lowering.steps import (
    Chain,
    Constants,
    LoweringStep,
    Primitive,
    RereadForm,
    TileCastForm,
    TileChoiceForm,
    TileOperationForm,
)
from castsim.lowering.tile_arithmetic import shown, tile_arithmetic, tile_choices
from castsim.targets import Target, TileTarget

Named = tuple[str, str]
"""The name of a value of the text and the spelling of its type."""

_SCRATCH = FORMATS["i32"]
"""Element type of tmp tiles."""
_MASK = FORMATS["i8"]
"""Element type of the tiles that hold the bits of a comparison."""


class Declarations(Protocol):
    """The declarations that a program offers to its steps: its extent, further tiles, constants."""

    @property
    def target(self) -> Target:
        """The chip."""
        ...

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns of every tile."""
        ...

    def tile(self, fmt: Format) -> Named:
        """Declare a tile of the extent."""
        ...

    def scratch(self, fmt: Format, rows: int, cols: int) -> Named:
        """Declare a tmp tile."""
        ...

    def scalar(self, constant: int, fmt: Format) -> Named:
        """Declare a constant, given by its code."""
        ...


def step_lines(step: LoweringStep, source: Named, result: Named, declarations: Declarations) -> list[str]:
    """Return the lines of one instruction from tile to tile.

    Raises:
        IllegalError: no operation on tiles.
    """
    form = step.forms[0]
    if isinstance(form, TileCastForm):
        return [_cast(step, form, source, result, declarations)]
    if isinstance(form, TileChoiceForm):
        return _choice(step, form, source, result, declarations)
    if not isinstance(form, TileOperationForm):
        raise IllegalError(f"{step.name} is not a tile operation")
    operands = [source]
    if form.constant is not None:
        operands.append(declarations.scalar(form.constant, step.src))
    if form.scratch:
        operands.append(declarations.scratch(step.src, *declarations.extent))
    names, kinds = (", ".join(part) for part in zip(*operands, strict=True))
    return [f"pto.{form.mnemonic} ins({names} : {kinds}) outs({result[0]} : {result[1]})"]


def _cast(step: LoweringStep, form: TileCastForm, source: Named, result: Named, declarations: Declarations) -> str:
    words = [] if form.rounding is None else [f"rmode = #pto<round_mode {form.rounding.name}>"]
    words += [] if form.saturation is None else [f"sat_mode = #pto<saturation_mode {form.saturation.name}>"]
    attributes = f" {{{', '.join(words)}}}" if words else ""
    names, kinds = source
    if form.scratch:
        tmp, kind = declarations.scratch(_SCRATCH, 1, _scratch_words(step, form, declarations))
        names, kinds = f"{names}, {tmp}", f"{kinds}, {kind}"
    return f"pto.tcvt ins({names}{attributes} : {kinds}) outs({result[0]} : {result[1]})"


def _scratch_words(step: LoweringStep, form: TileCastForm, declarations: Declarations) -> int:
    """Return the length of the tmp tile, whole blocks of int32."""
    from castsim.machines.strided.plan import packed_need  # noqa: PLC0415 - only where a form has scratch

    target = declarations.target
    assert target.casts_use_scratch  # or no form has scratch
    rows, cols = declarations.extent
    size = packed_need(target, (step.src, step.dst), (form.rounding, form.saturation), rows, cols).total
    block = target.repeat.block_bytes
    return max(block, -(-size // block) * block) // 4


def _choice(
    step: LoweringStep, form: TileChoiceForm, source: Named, result: Named, declarations: Declarations
) -> list[str]:
    """Compare with a scalar; where that holds keep the element, elsewhere take the other scalar."""
    mask, mask_kind = declarations.tile(_MASK)  # a bit per element, but the source's region
    tmp, tmp_kind = declarations.scratch(step.src, 1, BLOCK)
    (bound, kind), (other, _) = (declarations.scalar(code, step.src) for code in (form.bound, form.other))
    return [
        f"pto.tcmps ins({source[0]}, {bound} {{cmpMode = #pto<cmp {form.mode}>}} : {source[1]}, {kind}) "
        f"outs({mask} : {mask_kind})",
        f"pto.tsels ins({mask}, {source[0]}, {tmp}, {other} : {mask_kind}, {source[1]}, {tmp_kind}, {kind}) "
        f"outs({result[0]} : {result[1]})",
    ]


# Chains as `.pto` programs: one tile loaded, taken through every step, and stored.


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


# The tile casts of a chip as steps: every type pair with every rounding, saturation and scratch that a text can name.
#
# Values come from the same plans as the machines': see `strided_casts` and `function_casts`.

Primitives = tuple[Primitive, ...]

Tracer = Callable[[Format, Format, TileCastForm], Primitives]
"""Tells the steps of each form of a type pair."""

_Chip = TypeVar("_Chip", bound=TileTarget)

_SATURATIONS = (None, Saturation.ON, Saturation.OFF)


@dataclass(frozen=True, slots=True)
class TilePlanning(Generic[_Chip]):
    """See `castsim.lowering.catalogue.Planning`; `tracer` makes what tells the steps of one target's type pair."""

    tracer: Callable[[_Chip], Tracer]

    def casts(self, target: _Chip) -> Catalogue:
        """Return all casts, and the rereads among all formats."""
        return Catalogue.of(self._steps(target), FORMATS.values(), rereads_inside=False)

    def catalogue(self, target: _Chip, constants: Constants) -> Catalogue:
        """Return the casts, only traced from formats that chains come to, and the arithmetic with these constants."""
        sources = [rule.src for rule in target.casts]
        casts = casts_of(target, lambda: LazySteps(sources, lambda source: self._steps(target, source)))
        work = self.arithmetic(target, constants)
        steps = LazySteps((*sources, *work), lambda source: (*casts.get(source, ()), *work.get(source, ())))
        ends = [(format_named(rule.src), format_named(rule.dst)) for rule in target.casts]
        ends += [(step.src, step.dst) for listed in work.values() for step in listed]
        return Catalogue.made_later(steps, ends, (constants.src, constants.dst), rereads_inside=True)

    def arithmetic(self, target: _Chip, constants: Constants) -> Steps:
        """Return the arithmetic with these constants."""
        return arithmetic_of(target, constants, partial(tile_arithmetic, target), partial(tile_choices, target))

    def assembly(self, chain: Chain, src: Format, dst: Format, target: _Chip, rows: int, cols: int) -> Assembly:
        """Return the program for one tile."""
        return tile_assembly(chain, src, dst, target, rows, cols)

    def _steps(self, target: _Chip, source: str | None = None) -> Iterator[LoweringStep]:
        """Yield one step per type pair and behaviour, from `source` alone where it is named."""
        for rule in target.casts:
            if source not in (None, rule.src):
                continue
            src, dst = format_named(rule.src), format_named(rule.dst)
            modes = [None, *(RoundMode[mode.name] for mode in rule.suffixes)]
            found: dict[Primitives, list[TileCastForm]] = {}
            steps_of = self.tracer(target)
            for form in _forms(modes, scratch=target.uses_scratch(rule.src, rule.dst)):
                found.setdefault(steps_of(src, dst, form), []).append(form)
            for primitives, forms in found.items():
                plainest = tuple(sorted(forms, key=lambda form: len(form.options)))
                yield LoweringStep(src, dst, primitives, plainest, f"tcvt {src.name} -> {dst.name}")


def _forms(modes: Sequence[RoundMode | None], *, scratch: bool) -> Iterator[TileCastForm]:
    for with_tmp in (False, True) if scratch else (False,):
        for saturation in _SATURATIONS:
            for mode in modes:
                yield TileCastForm(mode, saturation, with_tmp)
