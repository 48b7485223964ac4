"""What a number of cycles rests on: which share on what evidence, an interval, and the facts that weigh most.

Cycles are shared out among pipes: the one that is occupied longest counts with all its occupied cycles, the others
share the rest in proportion to theirs. So programs without overlap are shared out exactly, and cycles hidden behind the
bottleneck count little. In a pipe, cycles go to operations as the engine books them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from castsim.execution.interpreter.structure import bare
from castsim.execution.tree import Instruction, Role
from castsim.isa.errors import CastsimError
from castsim.isa.pto.program import Pipe
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.targets import Target
from castsim.targets.residuals import CAST, LOAD, SCOPE, STORE, measured_operation, residuals_of
from castsim.targets.schema import DOUBTFUL, Fact, SourceKind, Status, Table
from castsim.targets.what_if import with_facts
from castsim.timing import WAITING, Cause, Timing, repeated

WEIGHTIEST = 3
"""Facts of which a summary tells the weight."""

_SCALAR, BUNDLES = "scalar unit", "bundles"
_TRANSFERS: Mapping[str, tuple[str, str]] = {bare(Pipe.MTE2): (LOAD, "tload"), bare(Pipe.MTE3): (STORE, "tstore")}
"""What a pipe that moves bytes does, and the operation by which it was measured."""
_FACTS: Mapping[str, re.Pattern[str]] = {
    LOAD: re.compile(r"cores$|timing\.(sharing\.\w+\.)?load\b"),
    STORE: re.compile(r"cores$|timing\.(sharing\.\w+\.)?store\b"),
    _SCALAR: re.compile(r"timing\.(scalar|buffer_read)"),
}
"""Where the facts of what does not compute stand; all others that a run rests on are those of what computes."""

_NAMED = 3
"""Operations that a sentence names."""

_AGAINST: Mapping[SourceKind, str] = {
    SourceKind.SILICON: "silicon",
    SourceKind.OTHER_SILICON: "another board",
    SourceKind.VENDOR_SIMULATOR: "the vendor's simulator",
    SourceKind.DOCUMENT: "published figures",
    SourceKind.VENDOR_MODEL: "the vendor's cost model",
}
_RESTING: Mapping[SourceKind, str] = {
    SourceKind.SILICON: "measured on silicon",
    SourceKind.OTHER_SILICON: "measured on another board",
    SourceKind.VENDOR_SIMULATOR: "from the vendor's simulator",
    SourceKind.DOCUMENT: "from published figures",
    SourceKind.VENDOR_MODEL: "from the vendor's cost model",
    SourceKind.ASSUMPTION: "assumed",
}


class Standing(StrEnum):
    """How cycles of operations have been compared with measured ones, the best first."""

    VALIDATED = "validated"
    """With some of these very operations that no fact was fitted to."""
    FITTED = "fitted"
    """With such as facts were fitted to: they confirm nothing."""
    FACTS = "facts"
    """Not at all: they are what the facts make them."""


@dataclass(frozen=True, slots=True)
class Work:
    """What operations of one sort rest on: their kind, what reports call them, and the operation with its formats."""

    kind: str
    label: str
    operation: str = ""
    src: str = ""
    dst: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """Cycles of operations that rest on one sort of evidence, those with most cycles first."""

    basis: SourceKind
    standing: Standing
    cycles: int
    operations: tuple[str, ...]

    def phrase(self) -> str:
        """Return it in words."""
        named, more = self.operations[:_NAMED], len(self.operations) - _NAMED
        names = ", ".join(named) + (f" and {more} more" if more > 0 else "")
        if self.standing is Standing.FACTS:
            return f"{self.cycles:,} {_RESTING[self.basis]} ({names})"
        found = _AGAINST[self.basis]
        verb = "validated against" if self.standing is Standing.VALIDATED else "fitted to"
        return f"{self.cycles:,} {verb} {found} ({names})"


@dataclass(frozen=True, slots=True)
class CycleInterval:
    """Where `share` percent of measured cycles lie at least, by so many unfitted `rows`, of `covered` cycles."""

    share: int
    covered: int
    low: int
    high: int
    rows: int

    def sentence(self, cycles: int) -> str:
        """Return it in words, for so many cycles in all."""
        what = "cycles" if self.covered == cycles else f"for {self.covered:,} of these cycles"
        rows = f"{self.rows} rows that its facts were not fitted to"
        return f"{self.share} % interval: {self.low:,} to {self.high:,} {what}, by {rows}"


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A number of a fact, and by how much cycles change if it is 10 percent less, and 10 percent more."""

    fact: str
    status: Status
    value: Decimal
    less: int
    more: int

    @property
    def weight(self) -> int:
        """The larger change."""
        return max(abs(self.less), abs(self.more))


@dataclass(frozen=True, slots=True)
class Trust:
    """What a number of cycles rests on; the shares add up to it. Without rows to judge by, no interval is known."""

    cycles: int
    shares: tuple[Share, ...]
    interval: CycleInterval | None

    def sentence(self) -> str:
        """Return the shares in words."""
        return ", ".join(share.phrase() for share in self.shares)

    def interval_sentence(self) -> str:
        """Return the interval in words, '' if there is none."""
        return self.interval.sentence(self.cycles) if self.interval else ""


def trust_of(target: Target, timing: Timing, instructions: Iterable[Instruction]) -> Trust:
    """Return what the cycles of a run rest on."""
    return trust_of_works(target, _cycles_of_works(target, timing, tuple(instructions)), timing.total, timing.facts)


def trust_of_works(target: Target, works: Mapping[Work, int], total: int, facts: Collection[str]) -> Trust:
    """Return what cycles rest on, given how many go to which work, and the paths of the facts behind them."""
    shares: dict[tuple[SourceKind, Standing], list[tuple[int, str]]] = {}
    covered = low = high = 0.0
    known = {}
    for work, cycles in works.items():
        shares.setdefault(_basis(target, work, facts), []).append((cycles, work.label))
        computes = work.kind not in (*_FACTS, BUNDLES)
        if (found := residuals_of(target.name, work.kind, pooled=computes)) is not None:
            known[found.kind] = found
            below, above = found.around(cycles)
            covered, low, high = covered + cycles, low + below, high + above
    made = [
        Share(basis, standing, sum(cycles for cycles, _ in own), tuple(label for _, label in sorted(own, reverse=True)))
        for (basis, standing), own in shares.items()
    ]
    rows, order = sum(found.rows for found in known.values()), list(Standing)
    interval = None
    if known and covered:
        interval = CycleInterval(
            min(found.share for found in known.values()), round(covered), int(low), -int(-high // 1), rows
        )
    return Trust(total, tuple(sorted(made, key=lambda share: (order.index(share.standing), -share.cycles))), interval)


def sensitivities(
    target: Target, facts: Iterable[str], total: int, rerun: Callable[[Callable[[Target], Target]], int]
) -> tuple[Sensitivity, ...]:
    """Return how much each number of doubtful facts weighs, most first, by running with it changed.

    Whole numbers change by a cycle at least, of which a part is taken: as if cycles were linear in between.

    Args:
        target: where the program ran.
        facts: paths of facts, as `Timing.facts` has them.
        total: the cycles that it took.
        rerun: takes what changes the target, and returns the cycles with it changed.
    """
    found = []
    for path, status, value in _numbers(target, facts):
        changes = [_change(path, value, sign, total, rerun) for sign in (-1, 1)]
        less, more = (change if change is not None else 0 for change in changes)
        if less or more:
            found.append(Sensitivity(path, status, Decimal(value), less, more))
    return tuple(sorted(found, key=lambda each: (-each.weight, each.fact)))


def fact_at(target: Target, path: str) -> Fact | None:
    """Return the fact at a path of the description; None if there is none."""
    held: object = target
    for name in path.split("."):
        held = held.get(name) if isinstance(held, Mapping) else getattr(held, name, None)
    return held if isinstance(held, Fact) else None


def _change(
    path: str, value: int | Decimal, sign: int, total: int, rerun: Callable[[Callable[[Target], Target]], int]
) -> int | None:
    """Return by how much cycles change with a number changed by 10 percent; None if it cannot be changed so."""
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
        if path.startswith("timing.") and fact is not None and fact.status in DOUBTFUL:
            for name in type(fact).model_fields:
                for end, value in _leaves(getattr(fact, name)):
                    if value:
                        yield f"{path}.{name}{end}", fact.status, value


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


def _cycles_of_works(target: Target, timing: Timing, instructions: tuple[Instruction, ...]) -> dict[Work, int]:
    """Return all cycles of a run by the sort of work that they are spent on."""
    if not target.has_tiles:
        return {Work(BUNDLES, BUNDLES): timing.total} if timing.total else {}
    spent: dict[str, dict[Work, int]] = {}
    for operation, _, times in repeated(timing.operations):
        instruction = instructions[timing.executions[operation.execution].instruction]
        own = spent.setdefault(operation.pipe, {})
        work = _work(target, operation.pipe, instruction)
        own[work] = own.get(work, 0) + times * _occupied(operation.causes)
    occupied = {pipe: cycles for pipe in spent if (cycles := _occupied(timing.pipes[pipe].causes))}
    if not occupied:
        return {}
    longest = max(occupied, key=lambda pipe: occupied[pipe])
    rest, others = timing.total - occupied[longest], sum(occupied.values()) - occupied[longest]
    weights: dict[Work, float] = {}
    for pipe, cycles in occupied.items():
        part = (cycles if others else timing.total) if pipe == longest else rest * cycles / others
        whole = sum(spent[pipe].values())
        for work, own_cycles in spent[pipe].items() if whole else ():
            weights[work] = weights.get(work, 0.0) + part * own_cycles / whole
    return _whole(weights, timing.total)


def _occupied(causes: Mapping[Cause, int]) -> int:
    return sum(cycles for cause, cycles in causes.items() if cause not in WAITING)


def _whole(weights: Mapping[Work, float], total: int) -> dict[Work, int]:
    """Return whole cycles in proportion to weights that add up to the total: the largest fractions are rounded up."""
    scale = sum(weights.values())
    exact = {work: total * weight / scale for work, weight in weights.items() if weight} if scale else {}
    found = {work: int(share) for work, share in exact.items()}
    for work in sorted(exact, key=lambda each: found[each] - exact[each])[: total - sum(found.values())]:
        found[work] += 1
    return {work: cycles for work, cycles in found.items() if cycles}


def _work(target: Target, pipe: str, instruction: Instruction) -> Work:
    name = instruction.mnemonic
    if pipe == target.scalar_pipe or instruction.role is Role.BOOKKEEPING:
        return Work(_SCALAR, _SCALAR)
    if pipe in _TRANSFERS:
        kind, operation = _TRANSFERS[pipe]
        return Work(kind, f"{kind}s", operation)
    if len(instruction.casts) == 1 and name == "tcvt":
        (src, dst), *_ = instruction.casts
        return Work(CAST, f"tcvt {src} -> {dst}", name, src, dst)
    if name in VECTOR_OPERATIONS and instruction.element is not None:
        element = instruction.element
        return Work(str(VECTOR_OPERATIONS[name].kind), f"{name} {element}", name, element, element)
    return Work(SCOPE, f"{SCOPE}s")


def _basis(target: Target, work: Work, facts: Collection[str]) -> tuple[SourceKind, Standing]:
    """Return what work rests on: measurements of these operations, or else the weakest of the facts."""
    found = measured_operation(target.name, work.operation, work.src, work.dst)
    if found is not None:
        return found.source_kind, Standing.VALIDATED if found.unfitted else Standing.FITTED
    if (own := _FACTS.get(work.kind)) is not None:
        paths = [path for path in facts if own.match(path)]
    else:
        elsewhere = [path for path in facts if any(each.match(path) for each in _FACTS.values())]
        paths = [path for path in facts if path not in elsewhere and not path.startswith(("options.", "banks"))]
    order = list(SourceKind)
    kinds = [fact.rests_on for fact in (fact_at(target, path) for path in paths) if fact is not None]
    # The stage tables by which bundles are timed are the vendor's; a run names only what it rests on beside them.
    without = SourceKind.DOCUMENT if work.kind == BUNDLES else SourceKind.ASSUMPTION
    return max(kinds, key=order.index, default=without), Standing.FACTS
