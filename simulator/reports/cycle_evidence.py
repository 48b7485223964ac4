"""What a number of cycles rests on: shares by evidence, the range of measured cycles, and the weightiest facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from castsim.engines import simulate
from castsim.execution.interpreter.lowerer import bare
from castsim.execution.timing import WAITING, Cause, Timing, repeated
from castsim.execution.tree import Block, Instruction, InstructionRole, Loop, Lowered, Node, Tree, without
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, EngineError
from castsim.isa.pto.program import Pipe
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.reports.documents import Keys, apart, record, says
from castsim.reports.schemas.keys import Cycles
from castsim.targets.description import DOUBTFUL, Fact, SourceKind, Status, Table, with_facts
from castsim.targets.loader import CAST, LOAD, SCOPE, STORE, Target, load_target, measured_operation, residuals_of

if TYPE_CHECKING:
    from castsim.running.program_runs import Result

# Cycles are shared out among pipes: the one that is occupied longest counts with all its occupied cycles, the others
# share the rest in proportion to theirs. So programs without overlap are shared out exactly, and cycles hidden behind
# the bottleneck count little. In a pipe, cycles go to operations as the engine books them.

WEIGHTIEST = 3
"""Number of facts whose weight a summary gives."""

_MOST_KINDS = 2
"""Maximum number of kinds of operations in the sentence on their range."""

_SCALAR, BUNDLES = "scalar unit", "bundles"
_TRANSFERS: Mapping[str, tuple[str, str]] = {bare(Pipe.MTE2): (LOAD, "tload"), bare(Pipe.MTE3): (STORE, "tstore")}
"""Activity of a pipe that moves bytes, and the operation that measured it."""
_TOTAL = "total of global memory"
"""Description of the wait of cores that together ask for more than the memory moves."""

_FACTS: Mapping[str, re.Pattern[str]] = {
    LOAD: re.compile(r"cores$|timing\.(sharing\.\w+\.)?load\b"),
    STORE: re.compile(r"cores$|timing\.(sharing\.\w+\.)?store\b"),
    _SCALAR: re.compile(r"timing\.(scalar|buffer_read)"),
    Cause.MEMORY_LATENCY: re.compile(r"element_loads|options\.global_latency"),
    Cause.MEMORY_BANDWIDTH: re.compile(r"global_memory|shared_memory|cores$"),
    _TOTAL: re.compile(r"global_memory\.|shared_cache$"),
}
"""Prefix of the facts of pipes that do not compute; all others that a run uses are those of the computing pipe."""

_EVIDENCE: Mapping[SourceKind, str] = {
    SourceKind.SILICON: "measured on silicon",
    SourceKind.OTHER_SILICON: "measured on another board",
    SourceKind.VENDOR_SIMULATOR: "vendor simulator",
    SourceKind.DOCUMENT: "published figures",
    SourceKind.VENDOR_MODEL: "vendor model",
    SourceKind.ASSUMPTION: "assumed",
}
_KINDS: Mapping[str, str] = {CAST: "casts", "elementwise": "elementwise operations", "select": "selections"}


class Standing(StrEnum):
    """Relation of cycles to measured ones, the best first."""

    VALIDATED = "validated"
    """Compared with held-out measurements of these operations."""
    FITTED = "fitted"
    """Compared with fitted measurements, which confirm nothing."""
    FACTS = "facts"
    """Not compared: derived from facts."""


@dataclass(frozen=True, slots=True)
class OperationKindWork:
    """The evidence of one kind of operation: kind, name in reports, and operation with formats."""

    kind: str
    label: str
    operation: str = ""
    src: str = ""
    dst: str = ""


@record
class Share(Keys, title="RestShare"):
    """Cycles with one kind of evidence."""

    basis: SourceKind = says(
        "Source of the figures that these cycles were compared with, or else the weakest of their facts."
    )
    standing: Standing = says("Kind of comparison: with held-out rows, with fitted rows, or none.")
    cycles: Cycles = says("Number of these cycles.")
    operations: Sequence[str] = says("The operations that take them, largest first.")

    @property
    def evidence(self) -> str:
        """The evidence in one or two words."""
        return _EVIDENCE[self.basis] if self.standing is Standing.FACTS else str(self.standing)


@record
class CycleInterval(Keys, title="IntervalEntry"):
    """Range of measured cycles, from the errors of held-out rows.

    `kinds` are the kinds of operations that the covered cycles belong to.
    """

    share: int = says("Percentage of cases in the interval.")
    covered: Cycles = says("The cycles covered by the interval: those of kinds of operations with measured rows.")
    low: Cycles = says("Lower end of the interval.")
    high: Cycles = says("Upper end of the interval.")
    rows: int = says("Number of measured rows.")
    kinds: tuple[str, ...] = apart()

    def sentence(self, cycles: int) -> str:
        """Return the range in words, for a total number of cycles."""
        basis = f"({self.share} % interval, {self.rows:,} held-out rows)"
        if self.covered == cycles:
            return f"range {self.low:,} to {self.high:,} cycles {basis}"
        names = [_KINDS.get(kind, f"{kind}s") for kind in self.kinds]
        operations = " and ".join(names) if len(names) <= _MOST_KINDS else "vector operations"
        return f"range known only for {operations}: {self.low:,} to {self.high:,} of the {cycles:,} cycles {basis}"


@record
class Sensitivity(Keys, title="SensitivityEntry"):
    """The weight of a number in a fact."""

    fact: str = says("Its path in the description.")
    status: Status = says("Evidence for the fact.")
    value: Decimal = says("Value of the fact.")
    less: int = says("Change in cycles if it is 10 percent lower.")
    more: int = says("Change in cycles if it is 10 percent higher.")

    @property
    def weight(self) -> int:
        """The larger change."""
        return max(abs(self.less), abs(self.more))


@dataclass(frozen=True, slots=True)
class Trust:
    """The evidence for a number of cycles, as shares that add up to it. Without rows to judge by, it has no range."""

    cycles: int
    shares: tuple[Share, ...]
    interval: CycleInterval | None

    def percentages(self) -> list[tuple[str, int]]:
        """Return the evidence with integer percentages that add up to 100, largest first."""
        cycles: dict[str, int] = {}
        for entry in self.shares:
            cycles[entry.evidence] = cycles.get(entry.evidence, 0) + entry.cycles
        parts = {name: divmod(100 * own, max(1, self.cycles)) for name, own in cycles.items()}
        missing = 100 - sum(percent for percent, _ in parts.values())
        rounded_up = sorted(parts, key=lambda name: -parts[name][1])[: max(0, missing)]
        percents = [(name, percent + (name in rounded_up)) for name, (percent, _) in parts.items()]
        return sorted(percents, key=lambda share: -share[1])

    def sentence(self) -> str:
        """Return the evidence for the cycles and their range in one line."""
        shares = ", ".join(f"{percent or '<1'} % {name}" for name, percent in self.percentages())
        interval = self.interval.sentence(self.cycles) if self.interval else "range unknown (no held-out rows)"
        return f"{shares or 'no cycles'}; {interval}"


def trust_of(target: Target, timing: Timing, tree: Tree) -> Trust:
    """Return the evidence for the cycles of a run."""
    works = _cycles_of_works(target, timing, tree.instructions)
    return trust_of_works(target, works, timing.total, timing.facts, partial(facts_behind, target, timing, tree))


def facts_behind(target: Target, timing: Timing, tree: Tree, work: OperationKindWork) -> Collection[str]:
    """Return the paths of the facts behind one kind of work in a run: those of its instructions alone."""
    others = {
        number
        for number, instruction in enumerate(tree.instructions)
        if _work(target, instruction.pipe, instruction) != work
    }
    try:
        return simulate(without(tree, others), target, record_operations=False).facts
    except EngineError:  # a flag that nothing sets
        return timing.facts


def trust_of_works(
    target: Target,
    works: Mapping[OperationKindWork, int],
    total: int,
    facts: Collection[str],
    facts_of: Callable[[OperationKindWork], Collection[str]] | None = None,
) -> Trust:
    """Return the evidence for cycles, given their number by kind of work, and the paths of the facts behind them.

    `facts_of` returns those behind one kind of work; None: all of them. It is called only if a fact differs from one of
    the shipped target, whose measurements then do not apply.
    """
    shares: dict[tuple[SourceKind, Standing], list[tuple[int, str]]] = {}
    covered = low = high = 0.0
    by_kind, kinds = {}, dict[str, None]()
    for work, cycles in works.items():
        holds = not differs_from_shipped(target, work, facts, facts_of)
        shares.setdefault(_basis(target, work, facts, measured=holds), []).append((cycles, work.label))
        computes = work.kind not in (*_FACTS, BUNDLES)
        if holds and (kind_residuals := residuals_of(target.lineage.name, work.kind, pooled=computes)) is not None:
            by_kind[kind_residuals.kind] = kind_residuals
            kinds[work.kind] = None
            below, above = kind_residuals.around(cycles)
            covered, low, high = covered + cycles, low + below, high + above
    trust_shares = [
        Share(basis, standing, sum(cycles for cycles, _ in own), tuple(label for _, label in sorted(own, reverse=True)))
        for (basis, standing), own in shares.items()
    ]
    rows, order = sum(entry.rows for entry in by_kind.values()), list(Standing)
    interval = None
    if by_kind and covered:
        interval = CycleInterval(
            min(entry.share for entry in by_kind.values()),
            round(covered),
            int(low),
            -int(-high // 1),
            rows,
            tuple(kinds),
        )
    return Trust(
        total, tuple(sorted(trust_shares, key=lambda share: (order.index(share.standing), -share.cycles))), interval
    )


def sensitivities(
    target: Target, facts: Iterable[str], total: int, rerun: Callable[[Callable[[Target], Target]], int]
) -> tuple[Sensitivity, ...]:
    """Return the weight of each number in doubtful facts, largest first, by running with it changed.

    Integers change by at least one cycle, and the effect is scaled: as if cycles were linear in between.

    Args:
        target: the target of the run.
        facts: paths of facts, in the form of `Timing.facts`.
        total: the cycles of the run.
        rerun: takes a change to the target, and returns the cycles with it.
    """
    entries = []
    for path, status, value in _numbers(target, facts):
        changes = [_change(path, value, sign, total, rerun) for sign in (-1, 1)]
        less, more = (change if change is not None else 0 for change in changes)
        if less or more:
            entries.append(Sensitivity(path, status, Decimal(value), less, more))
    return tuple(sorted(entries, key=lambda sensitivity: (-sensitivity.weight, sensitivity.fact)))


_SHORT = 64
"""Maximum number of operations of a run whose facts are weighed unasked, at one timing run each."""

_ISSUED = 4_000
"""Maximum number of instructions in vector-unit launches of such a run, each of which is scheduled again."""


def weights_of(result: Result, target: Target, *, requested: bool) -> tuple[Sensitivity, ...] | None:
    """Return the weights of numbers in facts; None for a long run unless `requested`.

    Results of the execution depend on no number of cycles, so only the timing is repeated.
    """
    timing, tree = result.timing, result.loaded.tree
    if not requested and (len(timing.operations) > _SHORT or _issued(tree.root) > _ISSUED):
        return None
    return sensitivities(
        target, timing.facts, timing.total,
        lambda lift: simulate(tree, lift(target), engine=result.engine, record_operations=False).total,
    )  # fmt: skip


def _issued(node: Node) -> int:
    """Return the number of instructions that the launches in a node issue, each launch counted once."""
    from castsim.machines.vector_function.function_launches import MicroFunction  # noqa: PLC0415 - few need it

    if isinstance(node, Block):
        return sum(map(_issued, node.items))
    if isinstance(node, Loop | Lowered):
        return _issued(node.body)
    return node.issued if isinstance(node, MicroFunction) else 0


def fact_at(target: Target, path: str) -> Fact | None:
    """Return the fact at a path of the description; None if there is none."""
    value: object = target
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value if isinstance(value, Fact) else None


def _change(
    path: str, value: int | Decimal, sign: int, total: int, rerun: Callable[[Callable[[Target], Target]], int]
) -> int | None:
    """Return the change in cycles for a change of 10 percent in a number; None if that is not legal."""
    tenth = Decimal(value) / 10
    step = max(1, round(tenth)) if isinstance(value, int) else tenth
    try:
        cycles = rerun(lambda target: with_facts(target, {path: value + sign * step}))
    except CastsimError:
        return None
    return round((cycles - total) * tenth / step)


def _numbers(target: Target, facts: Iterable[str]) -> Iterator[tuple[str, Status, int | Decimal]]:
    """Yield the numbers of doubtful timing facts that are not 0."""
    for path in sorted(facts):
        fact = fact_at(target, path)
        if path.startswith("timing.") and fact is not None:
            for name in type(fact).model_fields:
                status = fact.status_of(name)
                for end, value in _leaves(getattr(fact, name)) if status in DOUBTFUL else ():
                    if value:
                        yield f"{path}.{name}{end}", status, value


def _leaves(held: object) -> Iterator[tuple[str, int | Decimal]]:
    if isinstance(held, bool):
        return
    if isinstance(held, int | Decimal):
        yield "", held
    elif isinstance(held, Mapping):
        for key, item in held.items():
            yield from ((f".{key}{end}", value) for end, value in _leaves(item))
    elif isinstance(held, Table):
        for name in type(held).model_fields:
            yield from ((f".{name}{end}", value) for end, value in _leaves(getattr(held, name)))


def _cycles_of_works(
    target: Target, timing: Timing, instructions: tuple[Instruction, ...]
) -> dict[OperationKindWork, int]:
    """Return all cycles of a run by kind of work."""
    if not target.has_tiles:
        stalls = timing.pipes["LOAD"].causes if timing.total else {}  # all slots stall together
        cycles_by_work = {
            OperationKindWork(cause, f"waits for {words} of global memory"): stalls.get(cause, 0)
            for cause, words in ((Cause.MEMORY_LATENCY, "loads"), (Cause.MEMORY_BANDWIDTH, "the rate"))
        }
        cycles_by_work[OperationKindWork(BUNDLES, BUNDLES)] = timing.total - sum(cycles_by_work.values())
        return {work: cycles for work, cycles in cycles_by_work.items() if cycles}
    spent: dict[str, dict[OperationKindWork, int]] = {}
    shared = any(_FACTS[_TOTAL].match(fact) for fact in timing.facts)
    for operation, _, times in repeated(timing.operations):
        instruction = instructions[timing.executions[operation.execution].instruction]
        own = spent.setdefault(operation.pipe, {})
        work, cycles = _work(target, operation.pipe, instruction), _occupied(operation.causes)
        if shared and operation.pipe in _TRANSFERS and (waits := operation.causes.get(Cause.MEMORY_BANDWIDTH, 0)):
            total = OperationKindWork(_TOTAL, _TOTAL)
            own[total] = own.get(total, 0) + times * waits
            cycles -= waits
        own[work] = own.get(work, 0) + times * cycles
    occupied = {pipe: cycles for pipe in spent if (cycles := _occupied(timing.pipes[pipe].causes))}
    if not occupied:
        return {}
    longest = max(occupied, key=lambda pipe: occupied[pipe])
    rest, others = timing.total - occupied[longest], sum(occupied.values()) - occupied[longest]
    weights: dict[OperationKindWork, float] = {}
    for pipe, cycles in occupied.items():
        part = (cycles if others else timing.total) if pipe == longest else rest * cycles / others
        whole = sum(spent[pipe].values())
        for work, own_cycles in spent[pipe].items() if whole else ():
            weights[work] = weights.get(work, 0.0) + part * own_cycles / whole
    return _whole(weights, timing.total)


def _occupied(causes: Mapping[Cause, int]) -> int:
    return sum(cycles for cause, cycles in causes.items() if cause not in WAITING)


def _whole(weights: Mapping[OperationKindWork, float], total: int) -> dict[OperationKindWork, int]:
    """Return integer cycles in proportion to weights that add up to the total: the largest fractions are rounded up."""
    scale = sum(weights.values())
    exact = {work: total * weight / scale for work, weight in weights.items() if weight} if scale else {}
    whole = {work: int(share) for work, share in exact.items()}
    for work in sorted(exact, key=lambda work: whole[work] - exact[work])[: total - sum(whole.values())]:
        whole[work] += 1
    return {work: cycles for work, cycles in whole.items() if cycles}


def _work(target: Target, pipe: str, instruction: Instruction) -> OperationKindWork:
    name = instruction.mnemonic
    if pipe == target.scalar_pipe or instruction.role is InstructionRole.BOOKKEEPING:
        return OperationKindWork(_SCALAR, _SCALAR)
    if pipe in _TRANSFERS:
        kind, operation = _TRANSFERS[pipe]
        return OperationKindWork(kind, f"{kind}s", operation)
    if len(instruction.casts) == 1 and name == "tcvt":
        (src, dst), *_ = instruction.casts
        return OperationKindWork(CAST, f"tcvt {src} -> {dst}", name, src, dst)
    if name in VECTOR_OPERATIONS and instruction.element is not None:
        element = instruction.element
        return OperationKindWork(str(VECTOR_OPERATIONS[name].kind), f"{name} {element}", name, element, element)
    return OperationKindWork(SCOPE, f"{SCOPE}s")


_SHAPES = (
    "kernels", "variants", "variant_choice", "kernel_variants", "registers", "repeat", "pipes", "profiled_sequences",
    "scratch_sequences", "tile_arithmetic",
)  # fmt: skip
"""Tables of a description that decide the instructions of an operation."""


def differs_from_shipped(
    target: Target,
    work: OperationKindWork,
    facts: Collection[str],
    facts_of: Callable[[OperationKindWork], Collection[str]] | None = None,
) -> bool:
    """Return whether work depends on facts unlike the shipped target's, so that its measurements do not apply."""
    lineage = target.lineage
    if not lineage.changed:
        return False
    scalar = _FACTS[_SCALAR]
    if work.kind == _SCALAR:
        return lineage.concerns(fact for fact in facts if scalar.match(fact))
    if work.kind not in _FACTS and lineage.concerns(
        (*_SHAPES, f"casts.{work.src}.{work.dst}", f"tile_operations.{work.operation}")
    ):
        return True
    if not lineage.concerns(fact for fact in facts if not scalar.match(fact)):
        return False
    own = facts if facts_of is None else facts_of(work)
    return lineage.concerns(fact for fact in own if not scalar.match(fact))


def _basis(
    target: Target, work: OperationKindWork, facts: Collection[str], *, measured: bool
) -> tuple[SourceKind, Standing]:
    """Return the evidence for work: measurements of these operations if they apply, otherwise the weakest of the facts.

    If they apply, its facts are those of the shipped target, whatever else differs.
    """
    operation = measured_operation(target.lineage.name, work.operation, work.src, work.dst) if measured else None
    if measured and target.lineage.changed:
        target = load_target(target.lineage.name)
    if operation is not None:
        return operation.source_kind, Standing.VALIDATED if operation.unfitted else Standing.FITTED
    if (own := _FACTS.get(work.kind)) is not None:
        paths = [path for path in facts if own.match(path)]
    else:
        elsewhere = [path for path in facts if any(pattern.match(path) for pattern in _FACTS.values())]
        paths = [path for path in facts if path not in elsewhere and not path.startswith(("options.", "banks"))]
    order = list(SourceKind)
    kinds = [fact.rests_on for fact in (fact_at(target, path) for path in paths) if fact is not None]
    # The stage tables by which bundles are timed are the vendor's; a run names only what it rests on beside them.
    without = SourceKind.DOCUMENT if work.kind == BUNDLES else SourceKind.ASSUMPTION
    return max(kinds, key=order.index, default=without), Standing.FACTS
