"""Scheduling of a text: candidates, the linter's verdict on each, and the shortest that is no longer than NOP padding.

The padded program is the text in its order, one instruction a bundle, each as soon as latencies and issue rules let it
follow. Source of the rules: docs/reference/tpc.md sections 6 and 7.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import process_time

from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.limits import MAX_STATEMENTS
from castsim.isa.tpc import Register, RegisterDeclaration, TpcProgram, print_program
from castsim.isa.tpc.forms import MemoryOperation
from castsim.isa.tpc.matching import read_instruction
from castsim.isa.tpc.text import AssemblySource
from castsim.machines.vliw.lint import LintFinding, lint
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.scheduling.allocation import Pressure, allocated, free_registers, lives_of
from castsim.tpc_compiler.scheduling.assembling import Numbers, assembled
from castsim.tpc_compiler.scheduling.blocks import Block, Shape, blocks_of
from castsim.tpc_compiler.scheduling.counting import executed_bundles
from castsim.tpc_compiler.scheduling.cross_block_latency import Schedule, place_all
from castsim.tpc_compiler.scheduling.distances import Distances
from castsim.tpc_compiler.scheduling.names import Unit, unit_of
from castsim.tpc_compiler.scheduling.operations import Operation, Operations, mapped
from castsim.tpc_compiler.scheduling.pipelining import pipelined
from castsim.tpc_compiler.scheduling.placing import Placed, Placer, Policy
from castsim.tpc_compiler.scheduling.source import SequentialProgram, Written, read_sequential
from castsim.tpc_compiler.scheduling.values import check_defined, mark_fresh, renamed, without_unread

_OF_THE_TEXT = ("unread result", "unwritten register", "slot count")
"""Rules of the linter that speak of the text and not of its schedule."""
_PADDED = Policy(one=True)
_LISTS = (Policy(), Policy(window=24), Policy(window=8), Policy(window=3))
_SMALL = 400
"""Instructions up to which all candidates are tried."""


@dataclass(frozen=True, slots=True)
class Length:
    """The bundles of a program: in its text, and issued when it runs (None: that depends on data)."""

    static: int
    executed: int | None


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A scheduled program. `method` says how it came about: `padding`, `list` or `pipelined`.

    `registers` maps virtual registers, as the text names them, to real ones; `removed` are instructions that nothing
    read.
    """

    program: TpcProgram
    text: str
    method: str
    length: Length
    padding: Length
    registers: dict[str, tuple[str, ...]]
    removed: tuple[Operation, ...]
    findings: tuple[LintFinding, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    method: str
    shape: Shape
    schedule: Schedule


def schedule(
    text: str, file: str, target: VliwTarget, max_statements: int = MAX_STATEMENTS, *, longer: bool = False,
    until: float = math.inf,
) -> Scheduled:  # fmt: skip
    """Schedule a text of one instruction a line.

    The program is never longer than padded, neither in its text nor in the bundles that it issues; `longer` allows a
    longer text where the program issues fewer. Behind the time `until` of `process_time` no further candidate is made.

    Raises:
        ReadError: a line that cannot be read, a text with bundles, a virtual register that nothing has written.
        IllegalError: an instruction that the target lacks; more virtual registers live than a file has.
        LimitError: more instructions than `max_statements`.
    """
    source = read_sequential(text, file, target, max_statements)
    return schedule_program(source, target, longer=longer, until=until)


def schedule_program(
    source: SequentialProgram, target: VliwTarget, *, longer: bool = False, until: float = math.inf
) -> Scheduled:
    """Schedule a text that has been read; as `schedule`."""
    return _Scheduler(source, target, longer=longer, until=until).best()


class _Scheduler:
    """Schedules one text."""

    def __init__(self, source: SequentialProgram, target: VliwTarget, *, longer: bool, until: float) -> None:
        self._longer, self._until = longer, until
        self._source = source
        self._target = target
        self._operations = Operations(target, source.names)
        written = [Operation(each.slots, each.span) for each in source.instructions]
        labels: dict[int, list[str]] = {}
        for label in source.labels:
            labels.setdefault(label.place, []).append(label.name)
        if not written or not self._ends(written, labels):
            written.append(Operation(_halt(target).slots, _halt(target).span))
        self._declared = frozenset(
            unit
            for each in source.declarations
            if isinstance(each, RegisterDeclaration) and (unit := unit_of(each.register)) is not None
        )
        for operation in written:
            for unit, count in self._operations.units(operation).items():
                source.names.need(unit, count, operation.span)
        self._operations.maps = any(
            mapped(plan) and plan.memory is MemoryOperation.SCALAR_STORE
            for plan in map(self._operations.first, written)
        )
        self._blocks = blocks_of(written, labels)
        self._shape = Shape(self._blocks, target)
        check_defined(self._shape, self._operations, self._declared)
        self._removed = without_unread(self._shape, self._operations)
        self._placer = self._new_placer(self._shape)

    @staticmethod
    def _ends(written: Sequence[Operation], labels: dict[int, list[str]]) -> bool:
        """Whether the text ends by itself."""
        return written[-1].mnemonic == "halt" and len(written) not in labels

    def _new_placer(self, shape: Shape) -> Placer:
        iterators = {}
        for loop in shape.loops:
            end = shape.blocks[loop.head].end
            assert end is not None
            iterators[end] = shape.iterator(loop)
        return Placer(self._operations, Distances(self._operations, iterators))

    # -------------------------------------------------------------------------------------------------- candidates

    def best(self) -> Scheduled:
        """Return the shortest candidate that the linter has nothing against."""
        padded = place_all(self._shape, self._placer, [_PADDED] * len(self._blocks))
        wanted = sum(each.length for each in padded)
        found: Scheduled | None = None
        refusal: Pressure | CastsimError | None = None
        base = self._finished(_Candidate("padding", self._shape, padded))
        padding = base.length if isinstance(base, Scheduled) else Length(wanted, None)
        if isinstance(base, Scheduled):
            found = base
        else:
            refusal = base
        for candidate in self._candidates(padded):
            result = self._finished(candidate)
            if isinstance(result, Scheduled):
                if found is None or (self._within(result.length, padding) and _key(result.length) < _key(found.length)):
                    found = result
            elif refusal is None:
                refusal = result
            if found is not None and process_time() > self._until:
                break
        if found is None:
            found = self._spaced(refusal)
        return Scheduled(
            found.program, found.text, found.method, found.length, padding, found.registers, tuple(self._removed),
            found.findings,
        )  # fmt: skip

    def _candidates(self, padded: Schedule) -> Iterator[_Candidate]:
        size = sum(len(block.all) for block in self._blocks)
        blocks = [self._renamed(block) for block in self._blocks]
        shape = Shape(blocks, self._target)
        placer = self._new_placer(shape)
        best: list[Placed] | None = None
        for policy in _LISTS if size <= _SMALL else _LISTS[:2]:
            schedule = place_all(shape, placer, [policy] * len(blocks))
            if self._no_longer(schedule, padded):
                best = best or schedule
                yield _Candidate("list", shape, schedule)
        if best is None or size > _SMALL:
            return
        for most in (sum(each.length for each in padded), *([None] if self._longer else [])):
            for each in pipelined(blocks, most, self._operations, self._new_placer):
                yield _Candidate("pipelined", each.shape, each.schedule)

    @staticmethod
    def _no_longer(schedule: Schedule, padded: Schedule) -> bool:
        """Whether no block is longer than padded, so that no path is."""
        return all(one.length <= other.length for one, other in zip(schedule, padded, strict=True))

    def _renamed(self, block: Block) -> Block:
        found = Block(block.labels, block.operations, block.end)
        mark_fresh(found, self._operations)
        changed = renamed(found.all, self._operations)
        if found.end is not None:
            found.end = changed.pop()
        found.operations = changed
        return found

    def _within(self, length: Length, padding: Length) -> bool:
        """Whether a program is as short as is asked for, in its text and when it runs."""
        if length.executed is None or padding.executed is None:
            return length.static <= padding.static
        return (self._longer or length.static <= padding.static) and length.executed <= padding.executed

    # ------------------------------------------------------------------------------------------------- one candidate

    def _finished(self, candidate: _Candidate) -> Scheduled | Pressure | CastsimError:
        """Return a candidate as a program, or why it is none."""
        lives = lives_of(candidate.shape, candidate.schedule, self._operations, self._declared)
        free = free_registers(self._target, self._real())
        numbers = allocated(lives, self._source.names, free)
        if isinstance(numbers, Pressure):
            return numbers
        try:
            program = assembled(self._source, candidate.shape, candidate.schedule, numbers, self._target)
            findings = lint(program, self._target)
        except CastsimError as error:
            return error
        broken = [each for each in findings if each.rule not in _OF_THE_TEXT]
        if broken:
            return IllegalError(f"{broken[0].rule}: {broken[0].message}", span=broken[0].span)
        length = Length(len(program.bundles), executed_bundles(program, self._source.file, self._target))
        return Scheduled(
            program, print_program(program), candidate.method, length, length, self._spelled(numbers), (), findings
        )

    def _spaced(self, refusal: Pressure | CastsimError | None) -> Scheduled:
        """Return the program with all results awaited, if that is possible at all.

        Raises:
            IllegalError: there are not enough registers, or the text breaks a rule in any schedule.
        """
        policy = Policy(one=True, apart=self._placer.distances.reach)
        found = self._finished(_Candidate("padding", self._shape, place_all(
            self._shape, self._placer, [policy] * len(self._blocks))))  # fmt: skip
        if isinstance(found, Scheduled):
            return found
        refusal = refusal or found
        if isinstance(refusal, CastsimError):
            raise refusal
        raise self._too_many(refusal)

    def _too_many(self, pressure: Pressure) -> IllegalError:
        names = self._source.names
        where: dict[Unit, int] = {}
        for block in self._blocks:
            for operation in block.all:
                for unit in self._operations.units(operation):
                    where.setdefault(unit, operation.span.line)
        shown = ", ".join(f"{names.spelling(unit)} (line {where.get(unit, 1)})" for unit in pressure.live)
        line = f"line {pressure.at.span.line}" if pressure.at is not None else "the beginning"
        message = (
            f"{pressure.needed} {pressure.file} registers are needed at once in {line}, and {pressure.free} are free "
            f"beside those that the text names; live there: {shown}"
        )
        span = pressure.at.span if pressure.at is not None else None
        legal = (f"up to {pressure.free} live virtual registers of {pressure.file}", "values kept in memory meanwhile")
        return IllegalError(message, span=span, legal=legal)

    # ----------------------------------------------------------------------------------------------------- registers

    def _real(self) -> Iterator[Register]:
        for each in self._source.declarations:
            if isinstance(each, RegisterDeclaration) and unit_of(each.register) is None:
                yield each.register
        for block in self._blocks:
            for operation in block.all:
                predicate = operation.instruction.predicate
                for operand in (*operation.instruction.operands, *([predicate.register] if predicate else [])):
                    if isinstance(operand, Register) and unit_of(operand) is None:
                        yield operand

    def _spelled(self, numbers: Numbers) -> dict[str, tuple[str, ...]]:
        """Return the real registers of every virtual one, in the order of the text."""
        names = self._source.names
        found: dict[str, list[str]] = {}
        for unit in sorted(numbers, key=lambda unit: unit.number):
            name, start = names.spelling(unit), numbers[unit]
            shown = _shown(unit, start, names.sizes[unit])
            if shown not in found.setdefault(name, []):
                found[name].append(shown)
        return {name: tuple(each) for name, each in found.items()}


def _shown(unit: Unit, start: int, size: int) -> str:
    return f"{unit.file}{start}" if size == 1 else f"{unit.file}{start} .. {unit.file}{start + size - 1}"


def _key(length: Length) -> tuple[int, int]:
    """Order lengths: executed bundles first, where they are known, then those of the text."""
    return (length.static if length.executed is None else length.executed, length.static)


def _halt(target: VliwTarget) -> Written:
    """Return HALT as if it were written."""
    source = AssemblySource("halt", "<end>")
    slots = read_instruction(source, source.words(0, 0, 4), target.dialect)
    return Written(slots, source.span(0, 0, 4))
