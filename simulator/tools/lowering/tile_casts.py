"""Casts of tiles as steps, and chains of them as `.pto` programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from castsim.execution.tree import ResolvedTileOp, Tile, TileCast
from castsim.execution.vector_operations.arithmetic import constant_codes
from castsim.execution.vector_operations.effect import TileEffect
from castsim.execution.vector_operations.shapes import BLOCK
from castsim.execution.vector_operations.target_rules import behaviour_of
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, Span
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, Saturation, format_named
from castsim.isa.pto.program import PartitionType, PointerType, RoundMode, ScalarType, TileType, ViewType
from castsim.isa.pto.types import format_type
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import scale_of
from castsim.numerics.codec import value_of
from castsim.targets.dataflow import DataflowTarget
from castsim.targets.loader import TileTarget
from castsim.tools.lowering.catalogue import (
    Assembly,
    Catalogue,
    LazySteps,
    Steps,
    arithmetic_of,
    casts_of,
    machine_formats,
)
from castsim.tools.lowering.sharing import Primitives, Shared, recorded_casts
from castsim.tools.lowering.steps import (
    And,
    Chain,
    ConstantArithmetic,
    Constants,
    FormatCast,
    Integral,
    LoweringStep,
    Primitive,
    RereadForm,
    Scaled,
    TileCastForm,
    TileChoiceForm,
    TileOperationForm,
    digest_of_facts,
)

# Tile operations with a constant as steps: bounds and offsets around a cast.
#
# Values are those of `castsim.execution.vector_operations.effect.TileEffect`, which the program runs, on one row of
# any length.

_UNARY = ("tnot", "tabs", "tneg", "trelu")
_RISING = ("tmaxs", "tmins", "trelu")
"""Operations that never decrease for a larger operand, whatever the format."""
_WITHIN = ("tshls", "tshrs")
"""Operations whose results are uncertain only for amounts beyond the width, which do not occur here."""


def tile_arithmetic(target: DataflowTarget, constants: Constants) -> Iterator[LoweringStep]:
    """Yield the operations that the target has, for every element type, without those whose values are approximate."""
    for mnemonic in ("tmaxs", "tmins", "tadds", "tands", "tors", "txors", "tshls", "tshrs", *_UNARY):
        rule = target.tile_operation(mnemonic)
        if rule is None or (rule.approximate is not None and mnemonic not in _WITHIN):
            continue
        for name in rule.types:
            fmt, facts = FORMATS[name], ""
            for constant in _constants(constants, mnemonic, fmt):
                form = TileOperationForm(mnemonic, constant, scratch=rule.tmp == "used")
                run = _OnRow(target, form, fmt)
                label = "" if constant is None else f" {_label(mnemonic, constant, fmt)}"
                what = f"{mnemonic} {name}{label}"
                facts = facts or run.facts  # constants do not change them
                # A rounded sum keeps order; one that wraps does not.
                ordered = mnemonic in _RISING or (mnemonic == "tadds" and isinstance(fmt, FloatFormat))
                primitive = ConstantArithmetic(f"{target.name} {what}", fmt, run, ordered, constant, facts)
                yield LoweringStep(fmt, fmt, (primitive,), (form,), what)


def tile_choices(target: DataflowTarget, constants: Constants) -> Iterator[LoweringStep]:
    """Yield comparison and selection: 1 for every nonzero element for a boolean, and zero for NaN."""
    compare, select = target.tile_operation("tcmps"), target.tile_operation("tsels")
    if compare is None or select is None or compare.approximate or select.approximate:
        return
    boolean = isinstance(constants.dst, IntFormat) and constants.dst.boolean
    for fmt in (FORMATS[name] for name in compare.types if name in select.types):
        forms = [("", TileChoiceForm("eq", 0, one_of(fmt)))] if boolean else []
        if isinstance(fmt, FloatFormat) and fmt.infinity_code is not None:
            forms.append((" NaN to 0", TileChoiceForm("le", fmt.infinity_code, 0)))
        for label, form in forms:
            what = f"{form.mnemonic} {fmt.name}{label}"
            run = _ChoiceOnRow(target, fmt, form)
            primitive = ConstantArithmetic(f"{target.name} {what}", fmt, run, constant=form.other, facts=run.facts)
            yield LoweringStep(fmt, fmt, (primitive,), (form,), what)


def one_of(fmt: Format) -> int:
    """Return the code of 1."""
    return int(constant_codes(1, fmt)[0])


def _constants(constants: Constants, mnemonic: str, fmt: Format) -> Iterable[int | None]:
    if mnemonic in _UNARY:
        return constants.once()
    if mnemonic in ("tmaxs", "tmins"):
        return constants.bounds(fmt)
    if isinstance(fmt, FloatFormat):
        return constants.offsets_of_floats(fmt)
    assert isinstance(fmt, IntFormat)
    if mnemonic == "tadds":
        return constants.offsets(fmt)
    if mnemonic in _WITHIN:
        return constants.shifts(fmt)
    return constants.masks(fmt) if mnemonic == "tands" else constants.signs(fmt)


def _label(mnemonic: str, constant: int, fmt: Format) -> str:
    """Return a constant for readers: a summand as a number."""
    return f"{value_of(constant, fmt)}" if mnemonic == "tadds" else shown(constant, fmt)


def shown(constant: int, fmt: Format) -> str:
    """Return a constant in the text's spelling: integers in decimal, floats by their bits."""
    if not isinstance(fmt, IntFormat):
        return f"0x{constant:0{fmt.bits // 4}X}"
    top = 1 << (fmt.bits - 1)
    return str((constant ^ top) - top if fmt.signed else constant)


@dataclass(frozen=True)
class _ChoiceOnRow:
    """Comparison with a scalar and selection, run on tiles of one row."""

    target: DataflowTarget
    fmt: Format
    form: TileChoiceForm

    def __call__(self, codes: Codes) -> Codes:
        flat = codes.reshape(-1)
        length = -(-max(flat.size, 1) // _WHOLE) * _WHOLE
        size = length * flat.itemsize
        buffer = np.zeros(2 * size + 2 * length, np.uint8)
        buffer[: flat.nbytes] = np.ascontiguousarray(flat).view(np.uint8)
        for operation in self._operations(length):
            TileEffect(operation, behaviour_of(self.target, operation)).apply(buffer)
        return buffer[size : size + flat.nbytes].view(flat.dtype).reshape(codes.shape)

    @property
    def facts(self) -> str:
        """The digest of everything that decides the values."""
        return _facts(self.target, self._operations(_WHOLE))

    def _operations(self, length: int) -> tuple[ResolvedTileOp, ...]:
        size = length * code_dtype(self.fmt).itemsize
        source, result = (self._row(name, self.fmt, place, length) for name, place in (("src", 0), ("dst", size)))
        mask = self._row("mask", FORMATS["i8"], 2 * size, length)
        tmp = self._row("tmp", self.fmt, 2 * size + length, _TMP_BYTES)
        bound, other = (((code, self.fmt),) for code in (self.form.bound, self.form.other))
        return (
            ResolvedTileOp("tcmps", mask, (source,), _HERE, scalars=bound, mode=self.form.mode),
            ResolvedTileOp("tsels", result, (source,), _HERE, scalars=other, tmp=tmp, mask=mask),
        )

    def _row(self, name: str, fmt: Format, address: int, cols: int) -> Tile:
        return Tile(name, fmt, TileType("vec", fmt.name, 1, cols, 1, cols), address, 1, cols, fmt.storage_bits)


_WHOLE = 1 << 12
"""Elements that make whole blocks of mask and whole units of comparison on any target."""
_TMP_BYTES = 32
"""Size of the tile that stores the selection's scalar: at least one block for every type."""


@dataclass(frozen=True)
class _OnRow:
    """One operation, run on a tile of one row."""

    target: DataflowTarget
    form: TileOperationForm
    fmt: Format

    def __call__(self, codes: Codes) -> Codes:
        flat = np.ascontiguousarray(codes.reshape(-1))
        operation = self._operation(flat.size)
        buffer = np.zeros((3 if operation.tmp else 2) * flat.nbytes, np.uint8)
        buffer[: flat.nbytes] = flat.view(np.uint8)
        TileEffect(operation, behaviour_of(self.target, operation)).apply(buffer)
        return buffer[flat.nbytes : 2 * flat.nbytes].view(flat.dtype).reshape(codes.shape)

    @property
    def facts(self) -> str:
        """The digest of everything that decides the values."""
        return _facts(self.target, (self._operation(1),))

    def _operation(self, length: int) -> ResolvedTileOp:
        kind, size = TileType("vec", self.fmt.name, 1, length, 1, length), length * code_dtype(self.fmt).itemsize
        source, result, tmp = (
            Tile(name, self.fmt, kind, place * size, 1, length, self.fmt.storage_bits)
            for place, name in enumerate(("src", "dst", "tmp"))
        )
        form = self.form
        scalars = () if form.constant is None else ((form.constant, self.fmt),)
        scratch = tmp if form.scratch else None
        return ResolvedTileOp(form.mnemonic, result, (source,), _HERE, scalars=scalars, tmp=scratch)


def _facts(target: DataflowTarget, operations: Iterable[ResolvedTileOp]) -> str:
    """Return the digest of the target's additions to the formulas of operations."""
    arithmetic, behaviours = target.tile_arithmetic, [behaviour_of(target, operation) for operation in operations]
    rows = [[found.saturates, found.uses_tmp, found.choices, found.window] for found in behaviours]
    key = id(arithmetic), repr(rows)
    return _DIGESTS.of(key, lambda: digest_of_facts({"arithmetic": arithmetic, "operations": rows}), arithmetic)


_DIGESTS: Shared[str] = Shared(1 << 10)


if TYPE_CHECKING:
    from castsim.targets.strided_repeat import StridedCast, StridedRepeatTarget
    from castsim.targets.vector_function import VectorCast, VectorFunctionTarget

    CastRule = StridedCast | VectorCast

Named = tuple[str, str]
"""The name of a value in the text and the spelling of its type."""

_SCRATCH = FORMATS["i32"]
"""Element type of tmp tiles."""
_MASK = FORMATS["i8"]
"""Element type of the tiles that hold the bits of a comparison."""


def step_lines(step: LoweringStep, source: Named, result: Named, writer: TileWriter) -> list[str]:
    """Return the lines of one instruction from tile to tile.

    Raises:
        IllegalError: the step is not an operation on tiles.
    """
    form = step.forms[0]
    if isinstance(form, TileCastForm):
        return [_cast(step, form, source, result, writer)]
    if isinstance(form, TileChoiceForm):
        return _choice(step, form, source, result, writer)
    if not isinstance(form, TileOperationForm):
        raise IllegalError(f"{step.name} is not a tile operation")
    operands = [source]
    if form.constant is not None:
        operands.append(writer.scalar(form.constant, step.src))
    if form.scratch:
        operands.append(writer.scratch(step.src, *writer.extent))
    names, kinds = (", ".join(part) for part in zip(*operands, strict=True))
    return [f"pto.{form.mnemonic} ins({names} : {kinds}) outs({result[0]} : {result[1]})"]


def _cast(step: LoweringStep, form: TileCastForm, source: Named, result: Named, writer: TileWriter) -> str:
    words = [] if form.rounding is None else [f"rmode = #pto<round_mode {form.rounding.name}>"]
    words += [] if form.saturation is None else [f"sat_mode = #pto<saturation_mode {form.saturation.name}>"]
    attributes = f" {{{', '.join(words)}}}" if words else ""
    names, kinds = source
    if form.scratch:
        tmp, kind = writer.scratch(_SCRATCH, 1, _scratch_words(step, form, writer))
        names, kinds = f"{names}, {tmp}", f"{kinds}, {kind}"
    return f"pto.tcvt ins({names}{attributes} : {kinds}) outs({result[0]} : {result[1]})"


def _scratch_words(step: LoweringStep, form: TileCastForm, writer: TileWriter) -> int:
    """Return the length of the tmp tile, whole blocks of int32."""
    from castsim.machines.strided.plan import packed_need  # noqa: PLC0415 - only where a form has scratch

    target = writer.target
    assert target.casts_use_scratch  # or no form has scratch
    rows, cols = writer.extent
    size = packed_need(target, (step.src, step.dst), (form.rounding, form.saturation), rows, cols).total
    block = target.repeat.block_bytes
    return max(block, -(-size // block) * block) // 4


def _choice(step: LoweringStep, form: TileChoiceForm, source: Named, result: Named, writer: TileWriter) -> list[str]:
    """Compare with a scalar; where the comparison is true keep the element, elsewhere use the other scalar."""
    mask, mask_kind = writer.tile(_MASK)  # a bit per element, but the source's region
    tmp, tmp_kind = writer.scratch(step.src, 1, BLOCK)
    (bound, kind), (other, _) = (writer.scalar(code, step.src) for code in (form.bound, form.other))
    return [
        f"pto.tcmps ins({source[0]}, {bound} {{cmpMode = #pto<cmp {form.mode}>}} : {source[1]}, {kind}) "
        f"outs({mask} : {mask_kind})",
        f"pto.tsels ins({mask}, {source[0]}, {tmp}, {other} : {mask_kind}, {source[1]}, {tmp_kind}, {kind}) "
        f"outs({result[0]} : {result[1]})",
    ]


# Chains as `.pto` programs: one tile loaded, taken through every step, and stored.


def tile_assembly(chain: Chain, src: Format, dst: Format, target: TileTarget, rows: int, cols: int) -> Assembly:
    """Return the program of a chain for one tile of `rows` x `cols` elements.

    Raises:
        IllegalError: the text cannot spell a format.
    """
    first, last = machine_formats(chain, src, dst, target)
    writer = _ChainWriter(target, rows, cols)
    source, current = writer.part("src", first), writer.tile(first)
    writer.load(*source, current)
    for step in between_ends(chain):
        current = writer.step(step, current)
    writer.store(current, *writer.part("dst", last))
    head = " -> ".join([src.name, *(step.dst.name for step in chain)]) if chain else f"{src.name}, copied"
    sizes = {"rows": rows, "cols": cols}
    lines = (*writer.head, *writer.tiles, *writer.body)
    return Assembly(
        target=target,
        text=writer.framed([head], "lowered", writer.arguments, sizes, *lines),
        suffix=".pto",
        elements=rows * cols,
        source=first,
        destination=last,
        scratch_bytes=writer.scratch_bytes,
        buffer_bytes=writer.buffer_bytes,
        registers=0,
    )


def between_ends(chain: Chain) -> Chain:
    """Return a chain without the rereads at its ends, which become declarations of the arguments."""
    places = [place for place, step in enumerate(chain) if step.is_instruction]
    return chain[places[0] : places[-1] + 1] if places else ()


class TileWriter(ABC):
    """The lines of a program of tiles of one extent: constants and views, then declarations of tiles, operations."""

    def __init__(self, target: TileTarget, rows: int, cols: int) -> None:
        self.target = target
        self.extent = (rows, cols)
        self.head: list[str] = []
        self.tiles: list[str] = []
        self.body: list[str] = []

    def kind(self, fmt: Format, rows: int, cols: int) -> str:
        """Return the spelling of a fully valid tile type."""
        return format_type(TileType("vec", fmt.name, rows, cols, rows, cols))

    @abstractmethod
    def tile(self, fmt: Format) -> Named:
        """Declare a tile of the program's extent."""

    @abstractmethod
    def scratch(self, fmt: Format, rows: int, cols: int) -> Named:
        """Declare a tmp tile."""

    def scalar(self, constant: int, fmt: Format) -> Named:
        """Declare a constant by its code; return its name and type."""
        name, kind = f"%k{len(self.head)}", format_type(ScalarType(fmt.name))
        self.head.append(f"{name} = arith.constant {shown(constant, fmt)} : {kind}")
        return name, kind

    def view(self, name: str, argument: str, kind: str) -> str:
        """Return the line that names a view of a whole argument."""
        return f"{name} = pto.make_tensor_view %{argument}, shape = [%rows, %cols], strides = [%cols, %c1] : {kind}"

    def load(self, view: str, part: str, tile: Named) -> None:
        """Load a tile from a part of an argument, given by name and type."""
        self.body.append(f"pto.tload ins({view} : {part}) outs({tile[0]} : {tile[1]})")

    def store(self, tile: Named, view: str, part: str) -> None:
        """Store a tile to a part of an argument, given by name and type."""
        self.body.append(f"pto.tstore ins({tile[0]} : {tile[1]}) outs({view} : {part})")

    def bitcast(self, name: str, tile: Named, kind: str) -> None:
        """Give the bytes of a tile another name and element type."""
        self.body.append(f"{name} = pto.bitcast {tile[0]} : {tile[1]} -> {kind}")

    def framed(
        self, title: Iterable[str], name: str, arguments: Mapping[str, Format], sizes: Mapping[str, int], *lines: str
    ) -> str:
        """Return the text of a function with these arguments, sizes of index type, and body lines."""
        # The text names architectures; a chip that answers to several is named by its first.
        given = ", ".join(f"%{name}: {format_type(PointerType(fmt.name))}" for name, fmt in arguments.items())
        text = [
            *(f"// {line}" for line in title),
            f'module attributes {{pto.target_arch = "{self.target.architectures[0]}"}} {{',
            f"  func.func @{name}({given}) attributes {{pto.entry}} {{",
            *(f"    %{name} = arith.constant {size} : index" for name, size in {"c0": 0, "c1": 1, **sizes}.items()),
            *(f"    {line}" for line in lines),
            "    return",
            "  }",
            "}",
        ]
        return "".join(f"{line}\n" for line in text)


class _ChainWriter(TileWriter):
    def __init__(self, target: TileTarget, rows: int, cols: int) -> None:
        super().__init__(target, rows, cols)
        self.arguments: dict[str, Format] = {}
        self.count = 0
        self.scratch_bytes = 0
        self.buffer_bytes = 0

    def part(self, name: str, fmt: Format) -> tuple[str, str]:
        """Declare an argument; return the name and type of all of it as a part."""
        view, part = format_type(ViewType(self.extent, fmt.name)), format_type(PartitionType(self.extent, fmt.name))
        self.arguments[name] = fmt
        self.head += [
            self.view(f"%v{name}", name, view),
            f"%p{name} = pto.partition_view %v{name}, offsets = [%c0, %c0], sizes = [%rows, %cols] : {view} -> {part}",
        ]
        return f"%p{name}", part

    def step(self, step: LoweringStep, source: Named) -> Named:
        """Apply a step to a tile; return the result's tile."""
        if isinstance(step.forms[0], RereadForm):
            result = self._name(), self.kind(step.dst, *self.extent)
            self.bitcast(result[0], source, result[1])
            return result
        result = self.tile(step.dst)
        self.body += step_lines(step, source, result, self)
        return result

    def tile(self, fmt: Format) -> Named:
        """Declare a tile of the extent."""
        return self._alloc(fmt, *self.extent)

    def scratch(self, fmt: Format, rows: int, cols: int) -> Named:
        """Declare a tmp tile."""
        self.scratch_bytes += rows * cols * fmt.storage_bits // 8
        return self._alloc(fmt, rows, cols)

    def _alloc(self, fmt: Format, rows: int, cols: int) -> Named:
        name, kind = self._name(), self.kind(fmt, rows, cols)
        self.tiles.append(f"{name} = pto.alloc_tile : {kind}")
        self.buffer_bytes += rows * cols * fmt.storage_bits // 8
        return name, kind

    def _name(self) -> str:
        self.count += 1
        return f"%t{self.count - 1}"


# The tile casts of a chip as steps: every type pair with every rounding, saturation and scratch that a text can name.
#
# Values come from the same plans as the machines': see `_strided_tracer` and `_function_tracer`.

Tracer = Callable[[Format, Format, TileCastForm], Primitives]
"""Function that returns the steps of each form of a type pair."""

_Chip = TypeVar("_Chip", bound=TileTarget)

_SATURATIONS = (None, Saturation.ON, Saturation.OFF)


@dataclass(frozen=True, slots=True)
class TilePlanning(Generic[_Chip]):
    """Steps of tile casts (see `castsim.tools.lowering.catalogue.Planning`); `tracer` returns the tracer of a target.

    `sources` are the machine's files on which the shipped record of its casts depends.
    """

    tracer: Callable[[_Chip], Tracer]
    sources: tuple[str, ...]

    def casts(self, target: _Chip) -> Catalogue:
        """Return all casts, and the rereads among all formats."""
        return Catalogue.of(self._steps(target), FORMATS.values(), rereads_inside=False)

    def catalogue(self, target: _Chip, constants: Constants) -> Catalogue:
        """Return the casts, traced only from formats that chains reach, and the arithmetic with these constants."""
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

    def behaviours(self, target: _Chip) -> Mapping[tuple[str, str], tuple[Primitives, ...]]:
        """Return the effect of every form of every pair."""
        return {(rule.src, rule.dst): self._of_forms(target, rule) for rule in target.casts}

    def _of_forms(self, target: _Chip, rule: CastRule) -> tuple[Primitives, ...]:
        """Return the effect of each form of a pair: from the shipped record of the target, or traced."""
        key = id(target), rule.src, rule.dst
        return _OF_FORMS.of(key, lambda: self._recorded(target, rule) or self.traced(target, rule), target)

    def _recorded(self, target: _Chip, rule: CastRule) -> tuple[Primitives, ...] | None:
        recorded = recorded_casts(target, self.sources)
        row = None if recorded is None else recorded.row(target, rule.src, rule.dst)
        return row if row is not None and len(row) == len(tuple(_forms_of(target, rule))) else None

    def traced(self, target: _Chip, rule: CastRule) -> tuple[Primitives, ...]:
        """Return the effect of each form of a pair, according to the machine's own plans."""
        steps_of = self.tracer(target)
        ends = format_named(rule.src), format_named(rule.dst)
        return tuple(steps_of(*ends, form) for form in _forms_of(target, rule))

    def _steps(self, target: _Chip, source: str | None = None) -> Iterator[LoweringStep]:
        """Yield one step per type pair and behaviour, only from `source` if it is given."""
        for rule in target.casts:
            if source not in (None, rule.src):
                continue
            src, dst = format_named(rule.src), format_named(rule.dst)
            found: dict[Primitives, list[TileCastForm]] = {}
            for form, primitives in zip(_forms_of(target, rule), self._of_forms(target, rule), strict=True):
                found.setdefault(primitives, []).append(form)
            for primitives, forms in found.items():
                plainest = tuple(sorted(forms, key=lambda form: len(form.options)))
                yield LoweringStep(src, dst, primitives, plainest, f"tcvt {src.name} -> {dst.name}")


_OF_FORMS: Shared[tuple[Primitives, ...]] = Shared(1 << 12)


def _forms_of(target: TileTarget, rule: CastRule) -> Iterator[TileCastForm]:
    modes = [None, *(RoundMode[mode.name] for mode in rule.suffixes)]
    return _forms(modes, scratch=target.uses_scratch(rule.src, rule.dst))


def _forms(modes: Sequence[RoundMode | None], *, scratch: bool) -> Iterator[TileCastForm]:
    for with_tmp in (False, True) if scratch else (False,):
        for saturation in _SATURATIONS:
            for mode in modes:
                yield TileCastForm(mode, saturation, with_tmp)


# The steps that a tile cast of strided instructions makes of an element.


def _strided_tracer(target: StridedRepeatTarget) -> Tracer:
    """Return the function that gives the steps of each form of a type pair: of an instruction, or of a sequence."""
    from castsim.machines.strided import strided_instructions as strided  # noqa: PLC0415 - as above
    from castsim.machines.strided.plan import DESTINATION, SOURCE, element_steps, plan_cast  # noqa: PLC0415 - as above
    from castsim.machines.strided.values import SCALE_FORMAT  # noqa: PLC0415 - as above

    def of_action(action: object, src: Format, dst: Format) -> Primitive:
        assert isinstance(action, strided.Conversion)
        if action.integral:
            return Integral(dst, action.policy)
        if action.scale is None:
            return FormatCast(src, dst, action.policy)
        assert isinstance(src, IntFormat)
        return Scaled(src, dst, scale_of(action.scale, SCALE_FORMAT), action.policy)

    def primitives(src: Format, dst: Format, form: TileCastForm) -> Primitives:
        plan = plan_cast(target, src, dst, form.rounding, form.saturation, scratch=form.scratch)
        if plan.sequence is None:
            return (of_action(plan.action, src, dst),)
        held: dict[int, Primitives] = {SOURCE: ()}
        constants: dict[int, int] = {}
        for operation in element_steps(target, plan):
            if not isinstance(operation, strided.StridedInstruction):
                continue
            place, action = operation.destination.address, operation.action
            sources = [source.address for source in operation.sources]
            if isinstance(action, strided.DuplicateCode):
                constants[place] = action.value
                continue
            if isinstance(action, strided.BitwiseAnd):
                value, mask = sources
                held[place] = (*held[value], And(constants[mask]))
            else:
                step = of_action(action, operation.sources[0].format, operation.destination.format)
                held[place] = (*held[sources[0]], step)
            constants.pop(place, None)
        return held[DESTINATION]

    return primitives


# The steps that a tile cast of a vector function makes of an element, traced through its kernel.

_HERE = Span("<plan>", 1, 1)


def _function_tracer(target: VectorFunctionTarget) -> Tracer:
    """Return a function for the steps of each form of a type pair.

    A form and the target's options change the policies of conversions alone, so each code variant is traced once.
    """
    from castsim.machines.vector_function import lowering, plan, values  # noqa: PLC0415 - only the target's machine

    size = target.registers.register_bytes

    def traced(src: Format, dst: Format, form: TileCastForm) -> values.Chain:
        source = _row("src", src, 0, size)
        cast = TileCast(source, _row("dst", dst, source.end, size), None, form.rounding, form.saturation, _HERE)
        function = lowering.lower_cast(target, cast).function
        chain = values.trace_nest(function, function.nests[-1])
        assert chain is not None  # tests trace every variant of every pair
        return chain

    def primitives(src: Format, dst: Format, form: TileCastForm) -> Primitives:
        cast = plan.plan_cast(target, src, dst, form.rounding, form.saturation, contiguous=True, scratch=False)
        key = src, dst, cast.variant.variant, id(cast.kernel), size
        chain = _TRACES.of(key, lambda: traced(src, dst, form), cast.kernel)
        steps: list[Primitive] = []
        for step in chain:
            match step:
                case values.ConvertStep(before, after):
                    steps.append(FormatCast(before, after, plan.step_policy(target, cast, before, after)))
                case values.IntegralStep(fmt):
                    steps.append(Integral(fmt, plan.step_policy(target, cast, fmt, fmt)))
                case values.MaskStep(mask):
                    steps.append(And(mask))
        return tuple(steps)

    return primitives


_TRACES: Shared[Any] = Shared(1 << 10)
"""Steps of a code variant, with the policies of the form that it was traced in."""


def _row(name: str, fmt: Format, address: int, cols: int) -> Tile:
    """One full row of whole trips of every kernel."""
    bits = fmt.bits if fmt.bits == 4 else fmt.storage_bits
    return Tile(name, fmt, TileType("vec", fmt.name, 1, cols, 1, cols), address, 1, cols, bits)


STRIDED = TilePlanning(_strided_tracer, ("strided/plan.py", "strided/strided_instructions.py", "strided/values.py"))
FUNCTIONS = TilePlanning(
    _function_tracer, ("vector_function/plan.py", "vector_function/lowering.py", "vector_function/values.py")
)
