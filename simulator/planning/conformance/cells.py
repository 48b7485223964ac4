"""One legal cast of a specification on one target, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from castsim.isa.formats import FORMATS, IntFormat
from castsim.planning import CastRequest, Counterexample, PlanKind, Verdict
from castsim.planning.lowering_answers import Answer, Setting, answer
from castsim.planning.sharing import Equals
from castsim.planning.steps import path_of
from castsim.specifications import SpecifiedCast, specified_cast
from castsim.targets import Specification, Target, load_target
from castsim.targets.specification import TEXT


@dataclass(frozen=True, slots=True)
class Cell:
    """A cast and a target, by names. `attributes` are those of the cast operator that select its rule."""

    src: str
    dst: str
    attributes: tuple[tuple[str, str], ...]
    target: str

    @property
    def cast(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """The cast without the target."""
        return self.src, self.dst, self.attributes


@dataclass(frozen=True, slots=True)
class ConformanceEntry:
    """The result for a cell; `method` is how the verdict was reached (None: nothing leads to the destination).

    `path` are the formats on the way, `options` what has to be asked for, instruction by instruction. `settings` are
    options of the target without which it does not conform, `native` those with which one instruction does where
    without them only a chain does.
    """

    cell: Cell
    kind: PlanKind
    verdict: Verdict
    path: tuple[str, ...]
    instructions: tuple[str, ...]
    options: tuple[str, ...]
    method: str | None
    proven: bool
    cycles_per_element: float | None
    counterexample: Counterexample | None
    settings: Setting = ()
    native: Setting | None = None


def legal_casts(spec: Specification, version: str | None = None) -> tuple[SpecifiedCast, ...]:
    """Return every legal cast between number formats, once per rule that attributes select.

    Raises:
        ReadError: an unknown version.
    """
    found = []
    pairs = dict.fromkeys(pair for row in spec.casts for pair in spec.pairs(row) if TEXT not in pair)
    chosen = specified_version(spec, version)
    for src, dst in pairs:
        for attributes in _settings(spec, src, dst, chosen):
            rows = [row for row in spec.casts if (src, dst) in spec.pairs(row)]
            if any(spec.rank(spec.since(row, src, dst)) <= spec.rank(chosen) for row in rows):
                found.append(specified_cast(spec, src, dst, version=chosen, attributes=dict(attributes)))
    return tuple(found)


def specified_version(spec: Specification, version: str | None) -> str:
    """Return the version in force.

    Raises:
        ReadError: an unknown version.
    """
    if version is None:
        return spec.versions.default
    pairs = ((row, pair) for row in spec.casts for pair in spec.pairs(row))
    _, (src, dst) = min(pairs, key=lambda one: spec.rank(spec.since(one[0], *one[1])))  # the longest known cast
    return specified_cast(spec, src, dst, version=version).version


def changed(cast: SpecifiedCast) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a cast that differ from their defaults."""
    spec = cast.spec
    return tuple((name, value) for name, value in cast.attributes.items() if value != spec.attributes[name].default)


def settle_cell(
    cell: Cell,
    spec: Specification,
    version: str,
    *,
    prove: bool = False,
    options: Mapping[str, int | str] | None = None,
    target: Target | None = None,
) -> ConformanceEntry:
    """Plan one cell for the target with the options given, and with others that software sets where that is needed.

    `prove` tries all codes of 32 bits where nothing less proves a verdict. `target` is the cell's; None: it is loaded.

    Raises:
        ReadError: an unknown target, option or value of one.
    """
    request = request_of(cell, spec, version, target)
    return settled(cell, answer(request, options=options, explain=False, quick=not prove))


def request_of(cell: Cell, spec: Specification, version: str, target: Target | None = None) -> CastRequest:
    """Return what a cell asks for, on the first of equal targets; `target` is the cell's; None: it is loaded.

    Raises:
        ReadError: an unknown target.
    """
    own, known = _TARGETS.first(target or load_target(cell.target)), _SPECIFICATIONS.first(spec)
    return CastRequest(cell.src, cell.dst, own, spec=known, version=version, attributes=dict(cell.attributes))


_TARGETS: Equals[Target] = Equals(16)
_SPECIFICATIONS: Equals[Specification] = Equals(16)
"""Files are read for every cell, and another process gets copies: what is shared goes by the first of equal ones."""


def settled(cell: Cell, answered: Answer) -> ConformanceEntry:
    """Return an answer as the entry of a cell."""
    found = answered.plan
    evidence = found.evidence
    return ConformanceEntry(
        cell=cell,
        kind=answered.kind,
        verdict=found.verdict,
        path=path_of(found.chain),
        instructions=tuple(step.name for step in found.chain if step.is_instruction),
        options=tuple(", ".join(step.forms[0].options) for step in found.chain if step.is_instruction),
        method=None if evidence is None else evidence.method.value,
        proven=found.proven,
        cycles_per_element=None if found.cost is None else found.cost.cycles_per_element,
        counterexample=found.counterexample,
        settings=answered.chosen,
        native=None if answered.native is None else answered.native.setting,
    )


def _settings(spec: Specification, src: str, dst: str, version: str) -> list[tuple[tuple[str, str], ...]]:
    """Return the settings of attributes that tell rules of a pair apart, the defaults first."""
    conditions = [row.when for row in spec.casts if row.when and (src, dst) in spec.pairs(row)]
    names = list(dict.fromkeys(name for condition in conditions for name in condition))
    source = FORMATS[src]
    names += [
        name
        for name, attribute in spec.attributes.items()
        if attribute.effect == "reads the source as unsigned" and isinstance(source, IntFormat) and source.signed
    ]
    names = [name for name in names if spec.rank(spec.attributes[name].since) <= spec.rank(version)]
    values = [[(name, str(value)) for value in spec.attributes[name].values] for name in names]
    return [
        tuple((name, value) for name, value in setting if value != spec.attributes[name].default)
        for setting in product(*values)
    ]
