"""Assembly and binaries: walked when they are run, since values may decide their path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from castsim.execution import run_limits
from castsim.execution.input_data import ArgumentUse, check_elements
from castsim.execution.interpreter.interpreter import Executed
from castsim.isa.reading import Language, Source
from castsim.machines.vliw.assembled import AssembledProgram, execute, load_assembly, load_binary
from castsim.machines.vliw.latency_bound import latency_bound
from castsim.machines.vliw.lint_checking import lint
from castsim.machines.vliw.lint_flow import LintFinding
from castsim.running.loaded import ExecutionResult, Inputs, Loaded, LoadRequest, RunOptions, WalkedWhenIssued
from castsim.targets.vliw import VliwTarget


@dataclass(frozen=True, slots=True, repr=False)
class AssemblyProgram(WalkedWhenIssued):
    """A program of bundles; see `castsim.running.loaded.LoadedProgram`."""

    assembled: AssembledProgram
    text: str = ""
    """The source; empty for a binary."""

    def __repr__(self) -> str:
        return repr(self.assembled)

    @property
    def file(self) -> str:
        """The name that messages give it."""
        return self.assembled.file

    @property
    def entry(self) -> str:
        """The file's name without its suffix."""
        return self.assembled.entry

    @property
    def target(self) -> VliwTarget:
        """The target that it is read for."""
        return self.assembled.target

    @property
    def language(self) -> str:
        """The word for its language in descriptions of targets."""
        return Language.ASSEMBLY.value

    @property
    def arguments(self) -> Mapping[str, ArgumentUse]:
        """The declared data."""
        return self.assembled.arguments

    def issue(self, inputs: Inputs, how: RunOptions) -> ExecutionResult:
        """Walk the program to its end."""
        if how.values:
            check_elements(self.arguments, how.limits.max_elements)
        how.stage("values")
        checked = how.stale_reads != run_limits.IGNORE
        ran = execute(
            self.assembled,
            inputs,
            values=how.values,
            checked=checked,
            stop=how.stale_reads == run_limits.STOP,
            max_bundles=how.max_cycles,
            max_walk=how.limits.computed,
            heard=how.progress,
            skip=how.skip,
            watch=None if how.watch is None else how.watch.bundle,
        )
        if how.watch is not None:
            how.watch.finish()
        executed = Executed(ran.tree, self.arguments, ran.warnings)
        latencies = partial(latency_bound, self.assembled.program, self.target)
        loaded = Loaded(self.file, self.entry, self.target, executed, source=self.text, latencies=latencies)
        return ExecutionResult(loaded, ran.outputs, ran.stale_reads if checked else None, casts=ran.casts)

    def lint(self) -> tuple[LintFinding, ...]:
        """Return the findings against the issue rules."""
        return lint(self.assembled.program, self.target)


def load_text(source: Source, request: LoadRequest) -> AssemblyProgram:
    """Read assembly; see `castsim.machines.vliw.assembled.load_assembly`."""
    found = load_assembly(
        source, request.target, request.entry, request.args, request.prepare, request.limits.max_statements
    )
    return AssemblyProgram(found, source.text)


def load_bundles(source: Source, request: LoadRequest) -> AssemblyProgram:
    """Read a binary; see `castsim.machines.vliw.load_binary`."""
    found = load_binary(
        source, request.target, request.entry, request.args, request.prepare,
        declare=request.declare, machine=request.machine,
    )  # fmt: skip
    return AssemblyProgram(found)
