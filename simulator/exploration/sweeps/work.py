"""The work of a sweep as it is handed to whoever computes a chunk: all that a point needs but the installation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from castsim.exploration.sweeps.grid import Grid, Setting
from castsim.exploration.sweeps.identity import Identity, identity
from castsim.exploration.sweeps.specification import Kind, Mode, Specification, is_target_file
from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.pto.lexer import PtoSource
from castsim.isa.pto.parameters import parameters
from castsim.isa.sources import Language, Source, read_source
from castsim.running import MAX_CYCLES
from castsim.targets import Target, load_target, target_names

ESTIMATED_CHUNK = 1 << 14
"""Combinations of a chunk that is estimated."""
_SIMULATED_CHUNK = range(8, 257)
"""Those of one that is simulated: the fewest and the most."""
_SIMULATED_CHUNKS = 2000
"""Chunks into which a simulated sweep is divided, if that leaves enough for each."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that has been read, and the parameters that it declares."""

    source: Source
    parameters: frozenset[str]


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be computed, divided into chunks of `chunk` combinations.

    `targets` are those of the grid by name: a shipped one as its name, any other as it was loaded. `digest` stands for
    all of it.
    """

    kind: Kind
    mode: Mode
    grid: Grid
    targets: Mapping[str, str | Target]
    programs: Mapping[str, Program]
    identity: Identity
    chunk: int
    digest: str
    max_cycles: int = MAX_CYCLES

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return -(-self.grid.combinations // self.chunk)

    def span(self, number: int) -> tuple[int, int]:
        """Return the combinations of a chunk."""
        return number * self.chunk, min((number + 1) * self.chunk, self.grid.combinations)

    def target(self, name: Setting) -> Target:
        """Return a target of the grid."""
        found = self.targets[str(name)]
        return load_target(found) if isinstance(found, str) else found

    def about(self) -> dict[str, str]:
        """Return the digests of all that rows depend on, by what each is of."""
        programs = hashlib.sha256()
        for name, program in sorted(self.programs.items()):
            for part in (name.encode(), program.source.text.encode(), program.source.data):
                programs.update(len(part).to_bytes(8, "little") + part)
        return {
            "specification": hashlib.sha256(self.canonical().encode()).hexdigest(),
            "program": programs.hexdigest(),
            "version of castsim": self.identity.version,
            "state of the targets' facts": self.identity.facts_digest,
            "state of castsim's source files": self.identity.sources,
        }

    def canonical(self) -> str:
        """Return the specification in one form: JSON, ranges written as their ends and step."""
        return json.dumps({
            "kind": self.kind, "mode": self.mode, "max_cycles": self.max_cycles,
            "grid": {axis.name: _shown(axis.values) for axis in self.grid.axes},
            "exclude": [
                {**{name: sorted(map(repr, each)) for name, each in sorted(exclusion.values.items())},
                 "where": exclusion.condition.text if exclusion.condition else None}
                for exclusion in self.grid.exclusions
            ],
        })  # fmt: skip


def work_of(specification: Specification) -> Work:
    """Return the work of a specification: its targets loaded, its programs read.

    Raises:
        ReadError, TargetDataError: a target or program that cannot be read; names the place of its key.
    """
    targets: dict[str, str | Target] = {}
    loaded: dict[str, Target] = {}
    programs: dict[str, Program] = {}
    named = ("", "target")
    try:
        for value in specification.values("target"):
            named = (str(value), "target")
            loaded[named[0]], targets[named[0]] = _target(specification, named[0])
        for value in specification.values("program"):
            named = (str(value), "program")
            programs[named[0]] = _program(specification, named[0])
    except CastsimError as error:
        raise ReadError(
            f"grid.{named[1]}: {error.message}", span=error.span or specification.places.get(named[1]),
            legal=error.legal,
        ) from None  # fmt: skip
    if specification.kind is Kind.PROGRAM and not specification.values("target"):
        loaded |= {name: load_target(name) for name in target_names()}  # whichever the programs name
    whole = specification.grid.combinations
    simulated = min(max(whole // _SIMULATED_CHUNKS, _SIMULATED_CHUNK[0]), _SIMULATED_CHUNK[-1])
    made = Work(
        specification.kind, specification.mode, specification.grid, targets, programs, identity(loaded),
        simulated if specification.mode is Mode.SIMULATE else ESTIMATED_CHUNK, "",
    )  # fmt: skip
    digest = hashlib.sha256(json.dumps(made.about(), sort_keys=True).encode()).hexdigest()
    return Work(
        made.kind, made.mode, made.grid, made.targets, made.programs, made.identity, made.chunk, digest,
        made.max_cycles,
    )  # fmt: skip


def _target(specification: Specification, name: str) -> tuple[Target, str | Target]:
    """Return a target, and what of it is handed on."""
    is_file = is_target_file(name)
    found = load_target(specification.path(name) if is_file else name)
    return found, found if is_file else found.name


def _program(specification: Specification, name: str) -> Program:
    source = read_source(specification.path(name), lambda: False)
    if source.language is not Language.TILES:
        return Program(source, frozenset())
    return Program(source, frozenset(parameters(PtoSource(source.file, source.text))))


def _shown(values: object) -> object:
    if isinstance(values, range):
        return [values.start, values.stop, values.step, "range"]
    return list(values) if isinstance(values, tuple) else values
