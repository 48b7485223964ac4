"""Values in virtual registers: undefined ones, those that nothing reads, and a register of its own for each."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from castsim.isa.errors import ReadError
from castsim.isa.tpc.forms import Family
from castsim.machines.vliw.lint.unread import keeps_income
from castsim.tpc_compiler.scheduling.blocks import Block, Shape
from castsim.tpc_compiler.scheduling.names import STRIDE, Unit, unit_of_cell
from castsim.tpc_compiler.scheduling.operations import Operation, Operations, drawn, renumbered


def check_defined(shape: Shape, operations: Operations, declared: Set[Unit]) -> None:
    """Reject reads of virtual registers that nothing has written on the first way there.

    Raises:
        ReadError: says which and where.
    """
    cells = {f"{unit.file}{unit.base + k}" for unit in declared for k in range(STRIDE)}
    before: list[set[str] | None] = [None] * len(shape.blocks)
    if before:
        before[0] = set(cells)
    waiting = [0] if before else []
    while waiting:
        number = waiting.pop()
        known = set(before[number] or ())
        for operation in shape.blocks[number].all:
            known |= operations.touched(operation).writes
        for step in shape.steps:
            old = before[step.second] if step.first == number else None
            if step.first == number and not step.back and (old is None or not known <= old):
                before[step.second] = known | (old or set())
                waiting.append(step.second)
    for number, block in enumerate(shape.blocks):
        known = set(before[number] or ())
        for operation in block.all if before[number] is not None else ():
            touched = operations.touched(operation)
            for cell in sorted(touched.reads - known):
                unit = unit_of_cell(cell)
                if unit is not None:
                    raise _undefined(operation, unit, operations, known)
            known |= touched.writes


def _undefined(operation: Operation, unit: Unit, operations: Operations, known: Set[str]) -> ReadError:
    names = operations.names
    near = {each for cell in known if (each := unit_of_cell(cell)) is not None and each.file is unit.file}
    legal = [names.spelling(each) for each in sorted(near, key=lambda each: each.number)][:8]
    shown = names.spelling(unit)
    message = f"virtual register {shown} is read here, and nothing has written it before"
    span = names.places.get((operation.span.line, unit), operation.span)
    return ReadError(message, span=span, legal=(f"an instruction before that writes {shown}", *legal))


def without_unread(shape: Shape, operations: Operations) -> list[Operation]:
    """Take out instructions whose only results are virtual registers that nothing reads later; return them."""
    removed: list[Operation] = []
    while True:
        behind = _live_behind(shape, operations)
        gone: list[Operation] = []
        for number, block in enumerate(shape.blocks):
            live = set(behind[number])
            for operation in reversed(block.all):
                if _unread(operation, operations, live):
                    gone.append(operation)
                else:
                    live = _before(operation, operations, live)
        if not gone:
            return sorted(removed, key=lambda each: (each.span.line, each.span.column))
        removed += gone
        left = set(gone)
        for block in shape.blocks:
            block.operations = [each for each in block.operations if each not in left]


def _live_behind(shape: Shape, operations: Operations) -> list[set[str]]:
    """Return the virtual cells that some path behind each block reads."""
    behind: list[set[str]] = [set() for _ in shape.blocks]
    waiting = list(range(len(shape.blocks)))
    while waiting:
        number = waiting.pop()
        live = set(behind[number])
        for operation in reversed(shape.blocks[number].all):
            live = _before(operation, operations, live)
        for step in shape.into[number]:
            if not live <= behind[step.first]:
                behind[step.first] |= live
                waiting.append(step.first)
    return behind


def _before(operation: Operation, operations: Operations, live: set[str]) -> set[str]:
    touched = operations.touched(operation)
    found = (live - (touched.writes - touched.old)) | touched.reads
    return found | (touched.old & live)


def _unread(operation: Operation, operations: Operations, live: Set[str]) -> bool:
    touched = operations.touched(operation)
    if not touched.writes or drawn(operations.first(operation)) or operation.ends_block:
        return False
    return live.isdisjoint(touched.writes) and all(unit_of_cell(cell) is not None for cell in touched.writes)


def mark_fresh(block: Block, operations: Operations) -> None:
    """Mark narrowing conversions of single lanes behind which others write all other lanes before anything reads."""
    for place, operation in enumerate(block.operations):
        ratio = _lanes(operation, operations)
        cells = operations.touched(operation).writes
        if ratio is None or operation.fresh or len(cells) != 1:
            continue
        covered = {operation.instruction.switch("lane_sel")}
        for other in block.operations[place + 1 :]:
            touched = operations.touched(other)
            if cells & touched.reads or (cells & touched.writes and _lanes(other, operations) != ratio):
                break
            if cells & touched.writes:
                covered.add(other.instruction.switch("lane_sel"))
        if covered >= set(range(ratio)):
            operation.fresh = True
            operations.forget(operation)


def _lanes(operation: Operation, operations: Operations) -> int | None:
    """Return how many lanes a conversion of one lane chooses among; None for anything else, and under a predicate."""
    instruction = operation.instruction
    if instruction.form.family is not Family.CONVERSION or instruction.switch("lane_sel") is None:
        return None
    casts = operations.first(operation).casts
    if instruction.predicate is not None or len(casts) != 1 or not keeps_income(instruction):
        return None
    wide, narrow = (operations.bits(name) for name in casts[0])
    return wide // narrow if wide > narrow else None


def renamed(operations_in_order: Sequence[Operation], operations: Operations) -> list[Operation]:
    """Return instructions of a block in which every value but the last of a virtual register has one of its own."""
    last: dict[Unit, int] = {}
    for place, operation in enumerate(operations_in_order):
        for unit in _begun(operation, operations):
            last[unit] = place
    current: dict[Unit, Unit] = {}
    found = []
    for place, operation in enumerate(operations_in_order):
        results = dict(current)
        for unit in _begun(operation, operations):
            results[unit] = unit if last[unit] == place else operations.names.renamed(unit)
        changed = any(old != new for old, new in (*results.items(), *current.items()))
        found.append(renumbered(operation, current, results) if changed else operation)
        current = results
    return found


def _begun(operation: Operation, operations: Operations) -> set[Unit]:
    """Return the virtual registers of which an instruction begins a new value: it writes all, and keeps nothing."""
    touched = operations.touched(operation)
    if touched.old:
        return set()
    units = {unit for cell in touched.writes if (unit := unit_of_cell(cell)) is not None}
    sizes = operations.names.sizes
    return {unit for unit in units if all(f"{unit.file}{unit.base + k}" in touched.writes for k in range(sizes[unit]))}


def copies(operation: Operation) -> Operation:
    """Return a copy of an instruction, for another trip of a loop."""
    return Operation({slot: replace(each) for slot, each in operation.slots.items()}, operation.span, operation.fresh)
