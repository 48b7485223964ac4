"""Lowering of one tile cast to control writes and one vector function.

Source: docs/reference/a5.md section 2 (choice of variant, loops, counters, zero fill) after pto-isa
include/pto/npu/a5/TCvt.hpp @ 3186c381; the kernels themselves are data of the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from castsim.execution.pipe_operations import check_equal_regions, check_overlap, check_tile
from castsim.execution.tree import Block, Tile, TileCast
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, Span, TileError, WarningKind, Warnings, WarningText
from castsim.isa.formats import Format, IntFormat, Overflow
from castsim.isa.pto.micro_words import ROUNDINGS
from castsim.isa.pto.program import TileType
from castsim.isa.pto.value_types import MicroOperation, vector
from castsim.machines.mechanisms import CastAsked, CastForm, ElementCast, form_of, saturation_in_force, tile_mode
from castsim.machines.vector_function.function_operations import (
    Nest,
    VectorFunction,
    count_step,
    formats_of,
    mnemonic,
    width_of,
    with_words,
)
from castsim.machines.vector_function.plan import (
    FunctionCastPlan,
    controlled,
    plan_cast,
    step_policy,
    switched_saturation,
)
from castsim.machines.vector_function.values import ConvertStep, IntegralStep, MaskStep, Step, apply_chain, trace_nest
from castsim.numerics.blocks import code_dtype
from castsim.numerics.policy import NanToInteger, Policy
from castsim.targets.vector_function import Counter, KernelText, VectorFunctionTarget

# From kernel text to the instructions of one cast: formats, rounding and lane widths filled in.


def bind_all(
    target: VectorFunctionTarget, plan: FunctionCastPlan, kernel: KernelText, lines: Iterable[MicroOperation]
) -> tuple[MicroOperation, ...]:
    """Return the instructions of some lines of a kernel."""
    return tuple(_bind(target, plan, kernel, line) for line in lines)


def _bind(
    target: VectorFunctionTarget, plan: FunctionCastPlan, kernel: KernelText, line: MicroOperation
) -> MicroOperation:
    match line.mnemonic:
        case "vcvt" | "vtrc":
            src, dst = formats_of(line) or (plan.src, plan.dst)
            rounding = step_policy(target, plan, src, dst).rounding
            letter = next(letter for letter, mode in ROUNDINGS.items() if mode is rounding)
            line = replace(line, operand_types=(vector(src.name),), result_types=(vector(dst.name),))
            return with_words(line, rnd=letter)
        case "vor" | "vand":
            return replace(line, result_types=(vector(f"i{_lane_width(kernel, line.operands[2])}"),))
        case _:
            return line


def _policies(
    target: VectorFunctionTarget, plan: FunctionCastPlan, operations: Iterable[MicroOperation]
) -> dict[tuple[str, str], Policy]:
    """Return the policies of the conversions of a cast, by their formats."""
    pairs = dict.fromkeys(pair for item in operations if (pair := formats_of(item)) is not None)
    return {(src.name, dst.name): step_policy(target, plan, src, dst) for src, dst in pairs}


def _lane_width(kernel: KernelText, predicate: str) -> int:
    """Return the lane width in which a predicate was created."""
    widths = [width_of(line) for line in (*kernel.setup, *kernel.row, *kernel.trip) if predicate in line.results]
    return widths[0] or 8


# What a cast refuses on a vector-function chip before anything is issued.


def check_cast(target: VectorFunctionTarget, cast: TileCast, *, fills: bool) -> Warnings:
    """Reject tiles that one cast cannot combine; return warnings about unusual combinations.

    `fills` tells whether the cast first clears its destination.

    Raises:
        TileError: see `castsim.execution.pipe_operations.check_tile`; also different valid regions, a
            column-major tile, and operands whose overlap would destroy unread elements.
    """
    src, dst = cast.src, cast.dst
    for tile in (src, dst):
        check_tile(target, tile, cast.span)
        if tile.type.block_layout != "row_major":
            raise TileError(f"tile %{tile.name} is {tile.type.block_layout}; tcvt takes row_major", span=cast.span)
    check_equal_regions(cast)
    if fills and src.address < dst.end and dst.address < src.end:
        raise TileError(f"%{dst.name} is cleared before %{src.name} is read, so they cannot overlap", span=cast.span)
    return check_overlap(replace(cast, tmp=None))  # no kernel uses a tmp tile


@dataclass(frozen=True, slots=True)
class FunctionCast:
    """The operations of one tile cast, including the function, its plan, and warnings.

    `filled` is the number of bytes from the start of the destination that are zeroed beforehand.
    """

    body: Block
    function: VectorFunction
    plan: FunctionCastPlan
    filled: int
    warnings: Warnings


def lower_cast(target: VectorFunctionTarget, cast: TileCast) -> FunctionCast:
    """Choose the code variant of one tile cast and lay out its loops.

    Raises:
        IllegalError: the type pair does not exist.
        TileError: the function does not support a layout, alignment, extent or overlap.
    """
    plan = plan_cast(
        target,
        cast.src.format,
        cast.dst.format,
        cast.rounding,
        cast.saturation,
        contiguous=form_of(cast.src.type, cast.dst.type) == "1d",
        scratch=cast.tmp is not None,
    )
    warnings = plan.warnings + check_cast(target, cast, fills=bool(plan.kernel.fill))
    function = _function(target, plan, cast)
    filled = sum(nest.count for nest in function.nests[:-1])
    warnings += _fill_warnings(target, cast, filled) + _dropped_columns(plan, cast)
    body = controlled(target, plan.writes, function, plan.restores)
    return FunctionCast(body, function, plan, filled, warnings)


def outcome(target: VectorFunctionTarget, cast: TileCast) -> tuple[object, ...]:
    """Return a key of a cast's results: equal keys mean equal results."""
    src, dst = cast.src.format, cast.dst.format
    contiguous = form_of(cast.src.type, cast.dst.type) == "1d"
    plan = plan_cast(target, src, dst, cast.rounding, cast.saturation, contiguous=contiguous, scratch=False)
    return plan.variant, step_policy(target, plan, src, dst)


def _function(target: VectorFunctionTarget, plan: FunctionCastPlan, cast: TileCast) -> VectorFunction:
    src, dst, kernel = cast.src, cast.dst, plan.kernel
    main = _main_nest(target, plan, kernel, cast)
    nests = (*_fill_nests(target, plan, cast), main)
    return VectorFunction(
        name=f"{plan.rule.src} -> {plan.rule.dst} {plan.variant.variant}",
        source=src.address,
        destination=dst.address,
        source_format=src.format,
        destination_format=dst.format,
        register_bytes=target.registers.register_bytes,
        setup=bind_all(target, plan, kernel, kernel.setup),
        nests=nests,
        timed=(*nests[:-1], _timed_nest(target, plan, main)),
        pipe=target.pipes.vector,
        policies=_policies(target, plan, (*main.row, *main.trip)),
    )


def _main_nest(target: VectorFunctionTarget, plan: FunctionCastPlan, kernel: KernelText, cast: TileCast) -> Nest:
    src, dst = cast.src, cast.dst
    flat = plan.variant.variant == "1D"
    rows = 1 if flat else dst.valid_rows
    count = dst.valid_rows * dst.valid_cols if flat else dst.valid_cols
    trips = -(-count // kernel.elements)
    return Nest(
        rows=rows,
        row_loop=not flat,
        trips=trips,
        count=count,
        elements=kernel.elements,
        counters={name: _start(counter, count, kernel.elements) for name, counter in kernel.counters.items()},
        row=bind_all(target, plan, kernel, kernel.row),
        trip=bind_all(target, plan, kernel, kernel.trip),
        source_row=src.row_pitch,
        source_trip=kernel.elements * src.element_bits // 8,
        destination_row=dst.row_pitch,
        destination_trip=kernel.elements * dst.element_bits // 8,
    )


def _start(counter: Counter, count: int, elements: int) -> int:
    """Return a counter's value at the start of a row of `count` elements."""
    if counter.last and count:
        count = (count - 1) % elements + 1
    return max(count * counter.times // counter.over - counter.minus, 0)


def _timed_nest(target: VectorFunctionTarget, plan: FunctionCastPlan, main: Nest) -> Nest:
    """Return the nest with the published cycles of the function: usually its own."""
    if target.option("profiled_sequences") == "text":
        return main
    for profiled in target.profiled_sequences:
        if (profiled.src, profiled.dst, profiled.kernel) == (plan.rule.src, plan.rule.dst, plan.variant.kernel):
            other = target.kernels.texts[profiled.timed_as]
            return replace(
                _with_elements(main, profiled.elements or main.elements),
                row=bind_all(target, plan, other, other.row),
                trip=bind_all(target, plan, other, other.trip),
            )
    return main


def _with_elements(nest: Nest, elements: int) -> Nest:
    """Return a nest of as many trips, each of which converts `elements`."""
    return replace(
        nest,
        count=-(-nest.count * elements // nest.elements),
        elements=elements,
        source_trip=nest.source_trip * elements // nest.elements,
        destination_trip=nest.destination_trip * elements // nest.elements,
    )


def _fill_nests(target: VectorFunctionTarget, plan: FunctionCastPlan, cast: TileCast) -> tuple[Nest, ...]:
    """Return the loop that clears the destination's rows, full registers at a time; its elements are bytes."""
    if not plan.kernel.fill:
        return ()
    size, dst = target.registers.register_bytes, cast.dst
    needed = dst.valid_rows * dst.row_pitch
    trips = -(-needed // size)
    trip = bind_all(target, plan, plan.kernel, plan.kernel.fill)
    limited = target.option("zero_fill_last_store") == "limited"
    return (
        Nest(
            rows=1,
            row_loop=False,
            trips=trips,
            count=needed if limited else trips * size,
            elements=size,
            counters={"left": needed} if limited else {},
            row=(),
            trip=_limited(trip, size) if limited else trip,
            source_row=0,
            source_trip=0,
            destination_row=0,
            destination_trip=size,
        ),
    )


def _limited(trip: Iterable[MicroOperation], size: int) -> tuple[MicroOperation, ...]:
    """Put the stores of a fill under a predicate of the bytes that are left."""
    predicate = "left bytes"
    kept = tuple(
        replace(operation, operands=(*operation.operands[:2], predicate)) if operation.mnemonic == "vsts" else operation
        for operation in trip
        if mnemonic(operation) != "pset"
    )
    return (count_step(predicate, 8, size, "left"), *kept)


def _fill_warnings(target: VectorFunctionTarget, cast: TileCast, filled: int) -> Warnings:
    """Return a warning about a zero fill that exceeds its tile; reject one that exceeds the buffer."""
    src, dst = cast.src, cast.dst
    end = dst.address + filled
    if end <= dst.end:
        return ()
    capacity = target.memories["ub"].capacity_bytes
    if end > capacity:
        raise TileError(
            f"the zero fill of %{dst.name} writes bytes {dst.address} .. {end - 1}, but the buffer has {capacity}",
            span=cast.span,
        )
    hit = (
        f", the first {min(end, src.end) - src.address} bytes of %{src.name} among them"
        if src.address in range(dst.address, end)
        else ""
    )
    what = f"the zero fill before {src.format.name} -> {dst.format.name}"
    return (WarningText(WarningKind.BEYOND, f"{what} writes {end - dst.end} bytes past the end of %{dst.name}{hit}"),)


def _dropped_columns(plan: FunctionCastPlan, cast: TileCast) -> Warnings:
    dst = cast.dst
    if not plan.kernel.fill or dst.valid_cols % 2 == 0 or not dst.valid_rows:
        return ()
    text = f"%{dst.name} has {dst.valid_cols} valid columns: the other half of the last byte becomes 0"
    return (WarningText(WarningKind.COLUMN, text),)


# A chip's cast of loose elements: the steps that the kernel of a form takes every element through.
#
# There is no second description of what a cast does: the steps are those traced through the lowered kernel.

_HERE = Span("<cast>", 1, 1)


def element_cast(target: VectorFunctionTarget, asked: CastAsked) -> ElementCast:
    """Return the conversion of elements by a cast of a tile: contiguous, or in the 2-D form of padded rows.

    Raises:
        ReadError, IllegalError: see `castsim.machines.mechanisms.tile_mode`.
        IllegalError: the type pair does not exist, or the description's kernel converts something else.
    """
    src, dst, mode = asked.src, asked.dst, tile_mode(asked.rounding, target.name)
    size = target.registers.register_bytes
    source = _tile("src", src, 0, size, asked.form)
    tmp = _tile("tmp", src, 0, size, asked.form) if asked.scratch else None
    destination = _tile("dst", dst, source.end, size, asked.form)
    lowered = lower_cast(target, TileCast(source, destination, tmp, mode, asked.saturation, _HERE))
    chain = trace_nest(lowered.function, lowered.function.nests[-1])
    if chain is None:  # tests trace every variant of every pair of shipped targets
        raise IllegalError(f"{target.name}: the kernel of {src.name} -> {dst.name} does not convert lane by lane")
    plan = lowered.plan
    overflow = next(step.policy.overflow for step in reversed(chain) if not isinstance(step, MaskStep))
    saturation = saturation_in_force(src, dst, overflow, switched_saturation(target, plan))
    modes = plan.rounding.value, saturation, overflow, lowered.warnings
    run = partial(apply_chain, chain)
    match chain:
        case (ConvertStep(_, _, policy),):
            return ElementCast(run, *modes, policy=policy)
        case (IntegralStep(_, policy),):
            return ElementCast(run, *modes, integral=policy)
        case (ConvertStep(_, IntFormat() as middle, policy), *others) if isinstance(dst, IntFormat):
            if _wraps_exactly(policy) and _keeps_low_bits(others, middle, dst):
                return ElementCast(run, *modes, wrapping=policy)
    return ElementCast(run, *modes)


def _wraps_exactly(policy: Policy) -> bool:
    """Return whether a conversion gives the low bits of the rounded number, and 0 for NaN."""
    wraps = policy.overflow is Overflow.WRAP and policy.wrap_bits is None
    return wraps and policy.nan_to_integer is NanToInteger.ZERO


def _keeps_low_bits(steps: Sequence[Step], middle: IntFormat, dst: IntFormat) -> bool:
    """Return whether steps give the low bits of every integer."""
    if dst.bits > middle.bits or dst.bits != dst.storage_bits:
        return False
    if middle.storage_bits == middle.bits <= 16:
        every = np.arange(1 << middle.bits, dtype=code_dtype(middle))
        return np.array_equal(apply_chain(tuple(steps), every), every.astype(code_dtype(dst)))
    casts = [step for step in steps if isinstance(step, ConvertStep) and isinstance(step.src, IntFormat)]
    return len(casts) == len(steps) == 1 and casts[0].policy.overflow is Overflow.WRAP and not casts[0].policy.wrap_bits


def _tile(name: str, fmt: Format, address: int, valid: int, form: CastForm | None) -> Tile:
    """Return rows of `valid` elements, in whole trips of every kernel: one full row, or two partial ones."""
    bits = fmt.bits if fmt.bits == 4 else fmt.storage_bits
    rows, cols = (2, 2 * valid) if form == "2d" else (1, valid)
    return Tile(name, fmt, TileType("vec", fmt.name, rows, cols, rows, valid), address, rows, valid, bits)
