"""From one tile cast to control writes and one vector function.

Source: docs/reference/a5.md section 2 (choice of variant, loops, counters, zero fill) after pto-isa
include/pto/npu/a5/TCvt.hpp @ 3186c381; the kernels themselves are data of the target.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from castsim.execution.dataflow.operations import ControlWrite
from castsim.execution.tiles import TileCast
from castsim.execution.tree import Block, Node
from castsim.isa.errors import TileError
from castsim.isa.warning_text import WarningKind, Warnings, WarningText
from castsim.machines.target_cast import form_of
from castsim.machines.vector_function.bind import bind_all
from castsim.machines.vector_function.checks import check_cast
from castsim.machines.vector_function.operations import (
    CountDown,
    Nest,
    RegisterOperation,
    SetAll,
    Store,
    VectorFunction,
)
from castsim.machines.vector_function.plan import CastPlan, plan_cast, step_policy
from castsim.targets.vector_function import Counter, KernelText, VectorFunctionTarget


@dataclass(frozen=True, slots=True)
class LoweredCast:
    """The operations of one tile cast, the function among them, the plan it follows, and warnings.

    `filled` is the number of bytes from the start of the destination that are zeroed beforehand.
    """

    body: Block
    function: VectorFunction
    plan: CastPlan
    filled: int
    warnings: Warnings


def lower_cast(target: VectorFunctionTarget, cast: TileCast) -> LoweredCast:
    """Choose the code variant of one tile cast and lay out its loops.

    Raises:
        IllegalError: no such type pair.
        TileError: layout, alignment, extent or overlap that the function cannot take.
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
    scalar = target.pipes.scalar
    body: list[Node] = [ControlWrite("ctrl", value, pipe=scalar) for value in plan.writes]
    body.append(function)
    body += [ControlWrite("ctrl", value, pipe=scalar) for value in plan.restores]
    return LoweredCast(Block(tuple(body)), function, plan, filled, warnings)


def outcome(target: VectorFunctionTarget, cast: TileCast) -> tuple[object, ...]:
    """Return what decides the results of a cast: equal outcomes mean equal results."""
    src, dst = cast.src.format, cast.dst.format
    contiguous = form_of(cast.src.type, cast.dst.type) == "1d"
    plan = plan_cast(target, src, dst, cast.rounding, cast.saturation, contiguous=contiguous, scratch=False)
    return plan.variant, step_policy(target, plan, src, dst)


def _function(target: VectorFunctionTarget, plan: CastPlan, cast: TileCast) -> VectorFunction:
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
    )


def _main_nest(target: VectorFunctionTarget, plan: CastPlan, kernel: KernelText, cast: TileCast) -> Nest:
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


def _timed_nest(target: VectorFunctionTarget, plan: CastPlan, main: Nest) -> Nest:
    """Return the nest whose published cycles the function takes: as a rule its own."""
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


def _fill_nests(target: VectorFunctionTarget, plan: CastPlan, cast: TileCast) -> tuple[Nest, ...]:
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


def _limited(trip: Iterable[RegisterOperation], size: int) -> tuple[RegisterOperation, ...]:
    """Put the stores of a fill under a predicate of the bytes that are left."""
    predicate = "left bytes"
    kept = tuple(
        replace(operation, predicate=predicate) if isinstance(operation, Store) else operation
        for operation in trip
        if not isinstance(operation, SetAll)
    )
    return (CountDown(predicate, 8, size, "left"), *kept)


def _fill_warnings(target: VectorFunctionTarget, cast: TileCast, filled: int) -> Warnings:
    """Warn of a zero fill that runs beyond its tile, refuse one that leaves the buffer."""
    src, dst = cast.src, cast.dst
    end = dst.address + filled
    if end <= dst.end:
        return ()
    capacity = target.memories["ub"].capacity_bytes
    if end > capacity:
        raise TileError(
            f"the zero fill of %{dst.name} writes bytes {dst.address} .. {end - 1}, the buffer has {capacity}",
            span=cast.span,
        )
    hit = (
        f", the first {min(end, src.end) - src.address} bytes of %{src.name} among them"
        if src.address in range(dst.address, end)
        else ""
    )
    what = f"the zero fill before {src.format.name} -> {dst.format.name}"
    return (WarningText(WarningKind.BEYOND, f"{what} writes {end - dst.end} bytes past the end of %{dst.name}{hit}"),)


def _dropped_columns(plan: CastPlan, cast: TileCast) -> Warnings:
    dst = cast.dst
    if not plan.kernel.fill or dst.valid_cols % 2 == 0 or not dst.valid_rows:
        return ()
    text = f"%{dst.name} has {dst.valid_cols} valid columns: the last one shares its byte with none and becomes 0"
    return (WarningText(WarningKind.COLUMN, text),)
