"""Steps of chains as lines of `.pto` text, without the declarations of tiles and constants."""

from __future__ import annotations

from typing import Protocol

from castsim.execution.vector_operations.shapes import BLOCK
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Format
from castsim.planning.steps import LoweringStep, TileCastForm, TileChoiceForm, TileOperationForm
from castsim.targets import Target

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
