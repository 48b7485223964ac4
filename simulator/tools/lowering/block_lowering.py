"""Block formats on a chip with tiles: the operation that produces one, or a chain of operations, as programs.

Rules: docs/tools/quantise.md; operations: docs/reference/pto.md section 7.12.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.formats import Format, IntFormat
from castsim.isa.pto.types import element_spelling
from castsim.machines.mechanisms import tile_target
from castsim.reports.documents import CommandDocument, Keys, apart, derived, record, says
from castsim.running.program_loading import load_text
from castsim.running.program_runs import run_loaded
from castsim.targets.loader import Target, TileTarget

if TYPE_CHECKING:
    from castsim.tools.quantise.quantisation import BlockFormat

GROUP = 32
"""Number of elements of a block for the operation and the chain."""

_KINDS = {"mxfp8_e4m3": ("MXFP8", "ui8", 1), "mxfp4_e2m1": ("MXFP4_E2M1", "!pto.f4E2M1x2", 2)}
"""Block formats that `tquant.mx` produces: its `quant_type`, the element of its codes, the codes per element."""

_RULES = {"floor": "ocp", "rceil": "nv"}
"""Scale rules of `tquant.mx`, by name."""

_BIAS, _FIELD = 127, 23
"""Bias of the exponent field of f32, and the number of bits below it."""


@record
class BlockWay(Keys):
    """One way to produce a block format."""

    kind: str = says("`operation` or `chain`.")
    rule: str = says("The rule that determines scales from the largest magnitude.")
    operations: Sequence[str] = says("Names of the operations, in order.")
    elements: int = apart()
    cycles: int = says("Cycles of the program, including loads and stores.")
    cycles_per_element: float = derived("Cycles per element.", lambda own: own.cycles / own.elements)
    differs: Sequence[str] = says("Differences from the results of `castsim quantise`.")
    program: str = says("The program.")


@record
class LoweredBlocks(CommandDocument, name="lower-blocks"):
    """The ways to produce a block format on a target."""

    src: str = says("Format of the numbers.")
    format: str = says("Name of the block format.")
    target: str = says("Name of the target.")
    rows: int = says("Rows of the tensor.")
    cols: int = says("Its columns.")
    ways: Sequence[BlockWay] = says("The methods; empty if there is none.")
    refused: Sequence[str] = says("The reason why there are no others.")
    file: str | None = says("With `--out`: the file of the first program.", default=None)


def lower_blocks(src: Format, wanted: BlockFormat, target: Target, rows: int, cols: int) -> LoweredBlocks:
    """Return the ways in which a target quantises a tensor of `rows` x `cols` to a named block format.

    The cheapest of a rule comes first.

    Raises:
        ReadError: the rows are not whole blocks.
    """
    if wanted.block is None or cols % wanted.block:
        raise ReadError(f"--cols {cols}: rows must be whole blocks of {wanted.block} elements")
    ways: list[BlockWay] = []
    refused: list[str] = []
    for attempt in (_operations, _chain):
        for chain in attempt(src, wanted, target, rows, cols):
            if isinstance(chain, str):
                refused.append(chain)
            else:
                ways.append(chain)
    return LoweredBlocks(src.name, wanted.name, target.name, rows, cols, tuple(ways), tuple(refused))


def _operations(src: Format, wanted: BlockFormat, target: Target, rows: int, cols: int) -> Iterator[BlockWay | str]:
    """Yield the ways by the operation `tquant.mx`, one for each of its rules."""
    rule = tile_target(target).tile_operation("tquant.mx") if target.has_tiles else None
    if rule is None:
        yield f"{target.name} has no operation for shared exponents"
        return
    if wanted.name not in _KINDS:
        yield f"pto.tquant.mx makes {' and '.join(_KINDS)}, in blocks of {GROUP} with e8m0 scales"
        return
    for name, algorithm in _RULES.items():
        program = _program_of_operation(src, wanted.name, algorithm, rows, cols)
        try:
            cycles = _cycles(program, target)
        except CastsimError as error:
            yield f"pto.tquant.mx by {name} ({algorithm}): {error.message}"
            continue
        ceiling = ("the scale follows from m times the rounded reciprocal of the largest element, not from m / M",)
        differs = ceiling if name == "rceil" else ()
        yield BlockWay("operation", name, ("tquant.mx",), rows * cols, cycles, differs, program)


def _chain(src: Format, wanted: BlockFormat, target: Target, rows: int, cols: int) -> Iterator[BlockWay | str]:
    """Yield the chain of plain operations for the rule floor, if the operation does not produce the format."""
    if not target.has_tiles:
        yield f"castsim writes chains for tiles only: vector processors compute scales in a kernel ({target.name})"
        return
    chip = tile_target(target)
    if wanted.name in _KINDS and chip.tile_operation("tquant.mx") is not None:
        return
    if wanted.block != GROUP or wanted.scale.name != "e8m0":
        properties = f"{wanted.name} has {wanted.block} and {wanted.scale.name}"
        yield f"the chain is of blocks of {GROUP} with e8m0 scales, {properties}"
        return
    if not isinstance(wanted.element, IntFormat) and chip.cast("f32", wanted.element.name) is None:
        yield f"{target.name} has no cast from f32 to {wanted.element.name}"
        return
    try:
        program, operations = _program_of_chain(src, wanted, chip, rows * cols // GROUP)
        cycles = _cycles(program, target)
    except CastsimError as error:
        yield f"a chain of operations: {error.message}"
        return
    lowest = _largest(wanted) + max(0, _unit(wanted))
    differs = [
        "blocks with NaN get the scale of blocks with infinity",
        f"blocks below 2^{lowest - _BIAS}, zeros among them, get the scale of that size",
    ]
    if not isinstance(wanted.element, IntFormat):
        differs[1:] = ["NaN elements have the result of the cast"]
    yield BlockWay("chain", "floor", operations, rows * cols, cycles, tuple(differs), program)


def _largest(wanted: BlockFormat) -> int:
    """Return the exponent of the largest element."""
    if isinstance(wanted.element, IntFormat):
        return wanted.element.bits - 2 + wanted.unit_exponent
    return {"e5m2": 15, "e4m3fn": 8, "e2m1": 2}.get(wanted.element.name, 0)


def _unit(wanted: BlockFormat) -> int:
    return -wanted.unit_exponent


def _cycles(program: str, target: Target) -> int:
    return run_loaded(load_text(program, "lowered.pto", target), {}, timing_only=True).cycles


# ----------------------------------------------------------------------------------------------------------- programs


class _ProgramText:
    """The lines of a program: index constants, views of arguments, tiles, operations."""

    def __init__(self, arguments: dict[str, str]) -> None:
        self.arguments = arguments
        self.numbers: dict[int, str] = {}
        self.constants: list[str] = []
        self.lines: list[str] = []
        self.types: dict[str, str] = {}
        self.operations: list[str] = []

    def index(self, value: int) -> str:
        self.numbers.setdefault(value, f"%c{value}")
        return self.numbers[value]

    def tile(
        self, name: str, element: str, rows: int, cols: int, valid: tuple[int, int], *, column: bool = False
    ) -> str:
        fields = f"vec, {rows}x{cols}x{element}, valid={valid[0]}x{valid[1]}" + (
            ", blayout=col_major" if column else ""
        )
        self.types[name] = f"!pto.tile_buf<{fields}>"
        self.lines.append(f"%{name} = pto.alloc_tile : {self.types[name]}")
        return name

    def alias(self, kind: str, source: str, name: str, element: str, rows: int, cols: int, valid: tuple[int, int], *,
              column: bool = False) -> str:  # fmt: skip
        fields = f"vec, {rows}x{cols}x{element}, valid={valid[0]}x{valid[1]}" + (
            ", blayout=col_major" if column else ""
        )
        self.types[name] = f"!pto.tile_buf<{fields}>"
        self.lines.append(f"%{name} = pto.{kind} %{source} : {self.types[source]} -> {self.types[name]}")
        return name

    def move(self, operation: str, argument: str, tile: str, rows: int, cols: int) -> None:
        element = self.arguments[argument]
        down, across, zero, unity = (self.index(value) for value in (rows, cols, 0, 1))
        part = f"!pto.partition_tensor_view<{rows}x{cols}x{element}>"
        self.lines += [
            f"%v{argument} = pto.make_tensor_view %{argument}, shape = [{down}, {across}], "
            f"strides = [{across}, {unity}] : !pto.tensor_view<?x?x{element}>",
            f"%p{argument} = pto.partition_view %v{argument}, offsets = [{zero}, {zero}], sizes = [{down}, {across}] : "
            f"!pto.tensor_view<?x?x{element}> -> {part}",
        ]
        view, typed_tile = f"%p{argument} : {part}", f"%{tile} : {self.types[tile]}"
        ends = (view, typed_tile) if operation == "tload" else (typed_tile, view)
        self.lines.append(f"pto.{operation} ins({ends[0]}) outs({ends[1]})")

    def work(self, mnemonic: str, sources: tuple[str, ...], outputs: tuple[str, ...], more: str = "", *,
             scalar: int | None = None) -> None:  # fmt: skip
        names, types = [f"%{name}" for name in sources], [self.types[name] for name in sources]
        if scalar is not None:
            constant = f"%i{len(self.constants)}"
            self.constants.append(f"{constant} = arith.constant {scalar} : i32")
            names, types = [*names, constant], [*types, "i32"]
        results = ", ".join(f"%{name}" for name in outputs), ", ".join(self.types[name] for name in outputs)
        given = f"{', '.join(names)} : {', '.join(types)}"
        self.operations.append(mnemonic)
        self.lines.append(f"pto.{mnemonic} ins({given}) outs({results[0]} : {results[1]}){more}")

    def text(self) -> str:
        given = ", ".join(f"%{name}: !pto.ptr<{element}>" for name, element in self.arguments.items())
        indices = [f"{name} = arith.constant {value} : index" for value, name in sorted(self.numbers.items())]
        body = "\n".join(f"    {line}" for line in (*indices, *self.constants, *self.lines, "return"))
        return f"module {{\n  func.func @quantise({given}) attributes {{pto.entry}} {{\n{body}\n  }}\n}}\n"


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _program_of_operation(src: Format, name: str, algorithm: str, rows: int, cols: int) -> str:
    kind, element, packing = _KINDS[name]
    groups, spelling = rows * cols // GROUP, element_spelling(src.name)
    text = _ProgramText({"x": spelling, "codes": element, "exponents": "ui8"})
    text.tile("a", spelling, rows, cols, (rows, cols))
    text.tile("q", element, rows, cols // packing, (rows, cols // packing))
    text.tile("e", "ui8", 1, _up(groups, 128), (1, groups))
    for tile in ("m", "s"):
        text.tile(tile, spelling, 1, _up(2 * groups, 128), (1, groups))
    text.move("tload", "x", "a", rows, cols)
    attributes = f"quant_type = #pto<quant_type {kind}>, quantScaleAlg = #pto<quant_scale_alg {algorithm}>"
    text.work("tquant.mx", ("a",), ("q", "e", "m", "s"), f" {{{attributes}}}")
    text.move("tstore", "codes", "q", rows, cols // packing)
    text.move("tstore", "exponents", "e", 1, groups)
    return text.text()


def _program_of_chain(src: Format, wanted: BlockFormat, target: TileTarget, groups: int) -> tuple[str, tuple[str, ...]]:
    """Return the program of the chain, one group per row: maximum, exponent, power of two, products, one rounding."""
    integers, wide = isinstance(wanted.element, IntFormat), _up(groups, GROUP)
    code, spelling = "i8" if integers else element_spelling(wanted.element.name), element_spelling(src.name)
    text = _ProgramText({"x": spelling, "codes": code, "exponents": "ui8"})
    shape, line = (groups, GROUP), (1, groups)
    text.tile("x0", spelling, *shape, shape)
    first = "x0"
    if src.name != "f32":
        first = text.tile("a", "f32", *shape, shape)
    for name in ("b", "t", "p"):
        text.tile(name, "f32", *shape, shape)
    text.tile("m", "f32", wide, 1, (groups, 1), column=True)
    text.tile("k", "i32", 1, wide, line)
    text.tile("f", "i32", 1, wide, line)
    text.tile("q", code, *shape, shape)
    text.tile("e", "ui8", 1, wide, line)
    text.move("tload", "x", "x0", *shape)
    if src.name != "f32":
        text.work("tcvt", ("x0",), (first,))
    text.work("tabs", (first,), ("b",))
    text.work("trowmax", ("b", "t"), ("m",))
    text.alias("treshape", "m", "mr", "f32", 1, wide, line)
    text.alias("bitcast", "mr", "mi", "i32", 1, wide, line)
    lowest = _largest(wanted) + max(0, _unit(wanted))
    text.work("tshrs", ("mi",), ("k",), scalar=_FIELD)
    text.work("tmaxs", ("k",), ("k",), scalar=lowest)
    text.work("tadds", ("k",), ("k",), scalar=-_largest(wanted))
    text.work("tmuls", ("k",), ("f",), scalar=-1)
    text.work("tadds", ("f",), ("f",), scalar=2 * _BIAS + _unit(wanted))
    text.work("tshls", ("f",), ("f",), scalar=_FIELD)
    text.alias("bitcast", "f", "fr", "f32", 1, wide, line)
    text.alias("treshape", "fr", "fc", "f32", wide, 1, (groups, 1), column=True)
    scratch = target.tile_operation("tquant")
    if integers and scratch is not None:
        outputs = ("q", "t") if scratch.tmp == "used" else ("q",)
        text.work("tquant", (first, "fc"), outputs, " {quant_type = #pto<quant_type INT8_SYM>}")
    else:
        text.work("trowexpandmul", (first, "fc", "t"), ("p",))
        text.work("tcvt", ("p",), ("q",))
    if target.cast("i32", "u8") is not None:
        text.work("tcvt", ("k",), ("e",))
    elif target.cast("i32", "f16") is not None and target.cast("f16", "u8") is not None:
        text.tile("h", "f16", 1, wide, line)
        text.work("tcvt", ("k",), ("h",))
        text.work("tcvt", ("h",), ("e",))
    else:
        raise IllegalError(f"{target.name} cannot convert the exponents from i32 to bytes")
    text.move("tstore", "codes", "q", *shape)
    text.move("tstore", "exponents", "e", *line)
    return text.text(), tuple(text.operations)
