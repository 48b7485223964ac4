"""Tile programs: walked and lowered as they are read, since no value decides their path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from castsim.execution.choosing import choose_entry, choose_target
from castsim.execution.dataflow.idle import NO_VALUES, PATH_ONLY, Idle
from castsim.execution.filling import check_elements, filled_memory
from castsim.execution.inputs import check_known, from_memory
from castsim.execution.limits import check_executions
from castsim.execution.walk import Lowerer, execute
from castsim.execution.walk.structure import has_flags
from castsim.isa import pto
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.pto.program import Function
from castsim.isa.sources import Language, Source
from castsim.machines.mechanisms import compute_of, tile_target
from castsim.machines.vliw.source import targets_running
from castsim.running.loaded import Inputs, Issued, Loaded, Treatment
from castsim.running.request import LoadRequest
from castsim.synchronisation.flags import BARRIERS, INTERLOCK, MODES, PROGRAM, Plan, insert, insert_barriers, noted
from castsim.synchronisation.races import IGNORE, STOP, Finding, find_races, refusal
from castsim.synchronisation.races.unfolding import SLOTS
from castsim.targets import TileTarget


@dataclass(frozen=True, slots=True, repr=False)
class TileProgram(Loaded):
    """A tile program; see `castsim.running.loaded.LoadedProgram`."""

    @property
    def language(self) -> str:
        """The word for its language in descriptions of targets."""
        return Language.TILES.value

    def issue(self, inputs: Inputs, how: Treatment) -> Issued:
        """Look for races, and compute values."""
        found = self._races(how)
        if how.values:
            return Issued(self, self._outputs(inputs, how), races=found)
        for name in inputs:
            check_known(name, self.arguments)
        return Issued(self, races=found)

    def lint(self) -> None:
        """Return None: there are no issue rules."""
        return

    def _outputs(self, inputs: Inputs, how: Treatment) -> Mapping[str, Codes]:
        check_executions(self.tree, how.limits.computed, "executions whose values are to be computed", Idle(NO_VALUES))
        check_elements(self.arguments, how.limits.max_elements)
        memory = filled_memory(self.arguments, inputs)
        how.stage("values")
        buffer = np.zeros(self.target.memories["ub"].capacity_bytes, np.uint8)
        compute_of(self.target)(self.tree, buffer, memory)
        return {name: from_memory(memory[name], use) for name, use in self.arguments.items() if use.stored}

    def _races(self, how: Treatment) -> tuple[Finding, ...] | None:
        """Look for races, unless they are ignored.

        Raises:
            RaceError, EngineError: there are some, and they stop the run.
            LimitError: loops are too deep in each other to be compared.
        """
        if how.races == IGNORE:
            return None
        check_executions(self.tree, how.limits.walk, "executions that are compared for races", Idle(PATH_ONLY), SLOTS)
        found = find_races(self.tree, tile_target(self.target))
        if found and how.races == STOP:
            raise refusal(found)
        return found


def load_tiles(source: Source, request: LoadRequest) -> TileProgram:
    """Read a `.pto` program, choose target and entry, walk, lower and synchronise it.

    Raises:
        ReadError: it cannot be read, has no such entry, or has flags that the request does not allow.
        IllegalError, TileError, ScratchError, LimitError: whatever an instruction is refused for.
    """
    if request.sync not in MODES:
        raise ReadError(f"unknown synchronisation '{request.sync}'", legal=MODES)
    text, file = source.text, source.file
    parsed = pto.parse(text, file, max_statements=request.limits.max_statements, go_past_refused=True)
    chosen = request.prepare(choose_target(parsed.target_arch, request.target))
    if Language.TILES.value not in chosen.languages:
        raise IllegalError(
            f"{chosen.name} does not run .{Language.TILES.value} programs", legal=targets_running(Language.TILES.value)
        )
    function, left_out = choose_entry(parsed, Path(file), request.entry)
    parsed = replace(parsed, warnings=(*left_out, *parsed.warnings))
    lowerer, chip = request.make_lowerer(chosen), tile_target(chosen)
    plan = None if has_flags(function.body or ()) else _plan(function, lowerer, chip, request.sync)
    executed = execute(
        parsed, function if plan is None else plan.function, lowerer, request.args, opaque=request.opaque,
        max_walk=request.limits.walk,
    )  # fmt: skip
    if request.sync == INTERLOCK and not executed.tree.interlocked:
        raise ReadError(f"@{function.name} has flags or barriers of its own; --sync interlock is for programs without")
    inserted = None if plan is None else noted(plan.inserts, executed)
    if inserted is not None:
        executed = replace(executed, tree=replace(executed.tree, interlocked=False))
    return TileProgram(file, function.name, chosen, executed, inserted, text)


def _plan(function: Function, lowerer: Lowerer, chip: TileTarget, sync: str) -> Plan | None:
    """Return a function with the flags that it lacks, None if it is to go without."""
    if sync in (INTERLOCK, PROGRAM):
        return None
    return (insert_barriers if sync == BARRIERS else insert)(function, lowerer, chip)
