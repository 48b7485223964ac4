"""Tile operations with a constant as steps: bounds and offsets around a cast.

Values are those of `castsim.execution.vector_operations.effect.TileEffect`, which the program runs, on one row of any
length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.vector_operations import TileEffect
from castsim.execution.vector_operations.arithmetic import constant_codes
from castsim.execution.vector_operations.behaviour import behaviour_of
from castsim.isa.codes import Codes
from castsim.isa.errors import Span
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.pto.program import TileType
from castsim.lowering.steps import (
    ConstantArithmetic,
    Constants,
    LoweringStep,
    TileChoiceForm,
    TileOperationForm,
    digest_of_facts,
)
from castsim.numerics import code_dtype, value_of
from castsim.targets.dataflow import DataflowTarget

_HERE = Span("<plan>", 1, 1)


_UNARY = ("tnot", "tabs", "tneg", "trelu")
_RISING = ("tmaxs", "tmins", "trelu")
"""Operations that never give less for a larger operand, whatever the format."""
_WITHIN = ("tshls", "tshrs")
"""Operations in doubt for amounts beyond the width alone, of which there are none here."""


def tile_arithmetic(target: DataflowTarget, constants: Constants) -> Iterator[LoweringStep]:
    """Yield the operations that the target has, for every element type; none whose values are approximate."""
    for mnemonic in ("tmaxs", "tmins", "tadds", "tands", "tors", "txors", "tshls", "tshrs", *_UNARY):
        rule = target.tile_operation(mnemonic)
        if rule is None or (rule.approximate is not None and mnemonic not in _WITHIN):
            continue
        for name in rule.types:
            fmt = FORMATS[name]
            for constant in _constants(constants, mnemonic, fmt):
                form = TileOperationForm(mnemonic, constant, scratch=rule.tmp == "used")
                run = _OnRow(target, form, fmt)
                label = "" if constant is None else f" {_label(mnemonic, constant, fmt)}"
                what = f"{mnemonic} {name}{label}"
                # A rounded sum keeps order; one that wraps does not.
                ordered = mnemonic in _RISING or (mnemonic == "tadds" and isinstance(fmt, FloatFormat))
                primitive = ConstantArithmetic(f"{target.name} {what}", fmt, run, ordered, constant, run.facts)
                yield LoweringStep(fmt, fmt, (primitive,), (form,), what)


def tile_choices(target: DataflowTarget, constants: Constants) -> Iterator[LoweringStep]:
    """Yield comparison and selection: 1 of everything but zero for a boolean, and zero of NaN."""
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
    """Return a constant for a reader: what is added as a number."""
    return f"{value_of(constant, fmt)}" if mnemonic == "tadds" else shown(constant, fmt)


def shown(constant: int, fmt: Format) -> str:
    """Return a constant as the text spells it: integers in decimal, floats by their bits."""
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
        """The digest of what the values rest on."""
        return _facts(self.target, self._operations(_WHOLE))

    def _operations(self, length: int) -> tuple[ResolvedTileOp, ...]:
        size = length * code_dtype(self.fmt).itemsize
        source, result = (self._row(name, self.fmt, place, length) for name, place in (("src", 0), ("dst", size)))
        mask = self._row("mask", FORMATS["i8"], 2 * size, length)
        tmp = self._row("tmp", self.fmt, 2 * size + length, _TMP)
        bound, other = (((code, self.fmt),) for code in (self.form.bound, self.form.other))
        return (
            ResolvedTileOp("tcmps", mask, (source,), _HERE, scalars=bound, mode=self.form.mode),
            ResolvedTileOp("tsels", result, (source,), _HERE, scalars=other, tmp=tmp, mask=mask),
        )

    def _row(self, name: str, fmt: Format, address: int, cols: int) -> Tile:
        return Tile(name, fmt, TileType("vec", fmt.name, 1, cols, 1, cols), address, 1, cols, fmt.storage_bits)


_WHOLE = 1 << 12
"""Elements that make whole blocks of mask and whole units of comparison on any target."""
_TMP = 32
"""Elements of the tile in which the selection keeps its scalar: one block or more of any type."""


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
        """The digest of what the values rest on."""
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
    """Return the digest of what the target adds to the formulas of operations."""
    behaviours = [behaviour_of(target, operation) for operation in operations]
    return digest_of_facts(
        {
            "arithmetic": target.tile_arithmetic.model_dump(mode="json"),
            "operations": [[found.saturates, found.uses_tmp, found.choices, found.window] for found in behaviours],
        }
    )
