"""Real registers for virtual ones: liveness over all paths, interference bundle by bundle, colours by position."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from castsim.isa.tpc import Register
from castsim.isa.tpc.program import GROUPED, File
from castsim.machines.vliw.registers import is_constant
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.scheduling.blocks import Shape
from castsim.tpc_compiler.scheduling.names import Names, Unit, unit_of_cell
from castsim.tpc_compiler.scheduling.operations import Operation, Operations
from castsim.tpc_compiler.scheduling.placing import Placed, bundles_of

_TAIL = 2
"""Bundles behind a write in which no other value takes its register, read or not."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """More live virtual registers than a file has: the file, its free registers, and what is live where."""

    file: File
    free: int
    needed: int
    at: Operation | None
    live: tuple[Unit, ...]


@dataclass(slots=True)
class Lives:
    """The virtual registers that may not share registers, and their order of appearance."""

    apart: dict[Unit, set[Unit]] = field(default_factory=lambda: defaultdict(set))
    order: dict[Unit, int] = field(default_factory=dict)
    most: dict[File, tuple[int, Operation | None, frozenset[Unit]]] = field(default_factory=dict)


def free_registers(target: VliwTarget, used: Iterable[Register]) -> dict[File, list[int]]:
    """Return the registers of each file that allocation may use: neither named in the text nor fixed."""
    sizes = target.registers
    taken: dict[File, set[int]] = defaultdict(set)
    for register in used:
        whole, count = GROUPED.get(register.file, (register.file, 1))
        taken[whole].update(range(register.index, register.index + count))
    found = {}
    for file in (File.V, File.S, File.I, File.AD, File.SP, File.VP):
        last = getattr(sizes, file.value) - (sizes.loop_iterators if file is File.S else 0)
        found[file] = [
            index for index in range(last) if index not in taken[file] and not is_constant(Register(file, index))
        ]
    return found


def lives_of(shape: Shape, schedule: Sequence[Placed], operations: Operations, declared: Set[Unit]) -> Lives:
    """Return which virtual registers may not share registers in a schedule; `declared` have values at the start."""
    behind = _live_behind(shape, schedule, operations)
    lives = Lives()
    count = 0
    for number, placed in enumerate(schedule):
        live = set(behind[number])
        rows = list(bundles_of(placed))
        recent: list[set[Unit]] = []
        for place in range(len(rows) - 1, -1, -1):
            written = {unit for operation, _ in rows[place] for unit in _units(operations.touched(operation).writes)}
            read = {unit for operation, _ in rows[place] for unit in _units(operations.touched(operation).reads)}
            after = _units(live)
            _keep_apart(lives, written, after | read | written | {unit for each in recent[:_TAIL] for unit in each})
            for unit in written | read:
                lives.order[unit] = min(lives.order.get(unit, count + place), count + place)
            anyone = rows[place][0][0] if rows[place] else None
            _record(lives, after | written, anyone, operations.names)
            recent.insert(0, written)
            live = _before(live, rows[place], operations)
        if number == 0:
            start = _units(live) | declared
            _keep_apart(lives, start, start)
            for unit in start:
                lives.order[unit] = -1
            _record(lives, start, None, operations.names)
        count += placed.length
    return lives


def allocated(lives: Lives, names: Names, free: Mapping[File, list[int]]) -> dict[Unit, int] | Pressure:
    """Return the first register of every virtual one, or the place where there are too few."""
    for by_size in (True, False):
        found = _coloured(lives, names, free, by_size=by_size)
        if found is not None:
            return found
    for file, (needed, at, units) in lives.most.items():
        if needed > len(free[file]):
            return Pressure(file, len(free[file]), needed, at, tuple(sorted(units, key=lambda u: u.number)))
    file, (needed, at, units) = max(lives.most.items(), key=lambda each: each[1][0] - len(free[each[0]]))
    return Pressure(file, len(free[file]), needed, at, tuple(sorted(units, key=lambda unit: unit.number)))


def _coloured(lives: Lives, names: Names, free: Mapping[File, list[int]], *, by_size: bool) -> dict[Unit, int] | None:
    found: dict[Unit, int] = {}
    order = sorted(
        lives.order, key=lambda u: (-names.sizes[u] if by_size else 0, lives.order[u], -names.sizes[u], u.number)
    )
    for unit in order:
        size = names.sizes[unit]
        taken = {
            found[other] + k
            for other in lives.apart[unit]
            if other in found and other.file is unit.file
            for k in range(names.sizes[other])
        }
        usable = set(free[unit.file]) - taken
        starts = (index for index in free[unit.file] if index % size == 0)
        start = next((index for index in starts if usable.issuperset(range(index, index + size))), None)
        if start is None:
            return None
        found[unit] = start
    return found


def _keep_apart(lives: Lives, some: Set[Unit], others: Set[Unit]) -> None:
    for unit in some:
        for other in others:
            if other is not unit and other != unit and other.file is unit.file:
                lives.apart[unit].add(other)
                lives.apart[other].add(unit)


def _record(lives: Lives, units: Set[Unit], at: Operation | None, names: Names) -> None:
    """Remember where most registers of a file are needed."""
    for file in {unit.file for unit in units}:
        own = frozenset(unit for unit in units if unit.file is file)
        needed = sum(names.sizes[unit] for unit in own)
        if needed > lives.most.get(file, (0, None, frozenset()))[0]:
            lives.most[file] = needed, at, own


def _units(cells: Iterable[str]) -> set[Unit]:
    return {unit for cell in cells if (unit := unit_of_cell(cell)) is not None}


def _before(live: set[str], row: Sequence[tuple[Operation, object]], operations: Operations) -> set[str]:
    """Return the cells that are live before a bundle."""
    touched = [operations.touched(operation) for operation, _ in row]
    for each in touched:
        live = live - (each.writes - each.old)
    for each in touched:
        live = live | each.reads | each.old
    return live


def _live_behind(shape: Shape, schedule: Sequence[Placed], operations: Operations) -> list[set[str]]:
    """Return the virtual cells that are live behind each block."""
    rows = [list(bundles_of(placed)) for placed in schedule]
    behind: list[set[str]] = [set() for _ in schedule]
    waiting = list(range(len(schedule)))
    while waiting:
        number = waiting.pop()
        live = set(behind[number])
        for row in reversed(rows[number]):
            live = _before(live, row, operations)
        live = {cell for cell in live if unit_of_cell(cell) is not None}
        for step in shape.into[number]:
            if not live <= behind[step.first]:
                behind[step.first] |= live
                waiting.append(step.first)
    return behind
