"""Kernels in C: compiled and scheduled at loading, then run engine by engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.engines import simulate
from castsim.execution import run_limits
from castsim.execution.input_data import ArgumentUse, check_elements
from castsim.execution.interpreter.interpreter import Executed
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, ReadError, Severity, WarningKind, Warnings, WarningText
from castsim.isa.formats import Codes
from castsim.isa.reading import Language, Source
from castsim.isa.tpc.program import TpcProgram
from castsim.languages.tpc_c.compiling import Compiled, compile_kernel
from castsim.languages.tpc_c.launching import (
    Launch,
    Printing,
    launch,
    members_given,
    scheduled_kernel,
    sequential,
    tensor_given,
    text_of,
    without_prints,
)
from castsim.languages.tpc_c.loops import ACCUMULATORS
from castsim.machines.vliw import chosen_target
from castsim.machines.vliw.assembled import AssembledProgram, Ran, execute
from castsim.machines.vliw.findings import LintFinding, StaleReadKind
from castsim.machines.vliw.latency_bound import latency_bound
from castsim.machines.vliw.machine import VliwCore
from castsim.machines.vliw.semantics.convert import NoticeKind
from castsim.running.loaded import (
    ExecutionResult,
    Inputs,
    LaunchRequest,
    Loaded,
    LoadRequest,
    RunOptions,
    TensorGiven,
    WalkedWhenIssued,
)
from castsim.targets.description import with_cores
from castsim.targets.vliw import VliwTarget
from castsim.tools.check.checking import Finding, of_error, of_errors, placed
from castsim.tools.tpc_lint.lint_checking import lint

_Own = Callable[[tuple[LintFinding, ...]], tuple[LintFinding, ...]]
_Watch = Callable[[VliwCore, int], None]

_DTYPES = {
    "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int32": "i32", "uint32": "u32", "int16": "i16",
    "uint16": "u16", "int8": "i8", "uint8": "u8", "float8_e4m3fn": "f8_143", "float8_e5m2": "f8_152",
}  # fmt: skip
NEWEST = "gaudi2"
"""The default generation for checking a kernel."""
_SCHEDULE = (
    "the bundles are those of castsim's scheduler, not of the vendor's compiler, which may do better; the bound "
    "in the report shows by how much at most"
)


@dataclass(frozen=True, slots=True, repr=False)
class KernelProgram(WalkedWhenIssued):
    """A kernel in C; see `castsim.running.loaded.LoadedProgram`."""

    source: Source
    launch: Launch

    def __repr__(self) -> str:
        return f"<KernelProgram {self.file} on {self.target.name}>"

    @property
    def file(self) -> str:
        """Its name in messages."""
        return self.source.file

    @property
    def entry(self) -> str:
        """The file's name without its suffix."""
        return Path(self.file).stem

    @property
    def target(self) -> VliwTarget:
        """The target that it is compiled for."""
        return self.launch.compiled.target

    @property
    def language(self) -> str:
        """The name of its language."""
        return Language.KERNEL.value

    @property
    def arguments(self) -> Mapping[str, ArgumentUse]:
        """The tensors of the launch."""
        return self._assembled(0).arguments

    def _assembled(self, engine: int) -> AssembledProgram:
        return AssembledProgram(self.file, self.launch.engines[engine], self.target)

    def issue(self, inputs: Inputs, how: RunOptions) -> ExecutionResult:
        """Run every engine to its end, one after the other; the slowest decides the time."""
        if how.values:
            check_elements(self.arguments, how.limits.max_elements)
        how.stage("values")
        checked = how.stale_reads != run_limits.IGNORE
        runs: list[Ran] = []
        given = dict(inputs)
        printed: list[str] = []
        unwritten: dict[str, NDArray[np.bool_]] = {}
        for engine, program in enumerate(self.launch.engines):
            printing = Printing(self.launch.compiled.prints, program, self.file)
            heard = None if how.watch is None or engine else how.watch.bundle
            ran = execute(
                self._assembled(engine),
                given,
                values=how.values,
                checked=checked,
                stop=how.stale_reads == run_limits.STOP,
                max_bundles=how.max_cycles,
                max_walk=how.limits.computed,
                heard=how.progress,
                skip=how.skip,
                watch=_both(printing.bundle if how.values and self.launch.compiled.prints else None, heard),
            )
            printed += printing.lines()
            runs.append(ran)
            for name, marks in ran.unwritten.items():
                unwritten[name] = unwritten[name] & marks if name in unwritten else marks
            given |= ran.outputs
        if how.watch is not None:
            how.watch.finish()
        slowest = 0
        if len(runs) > 1:
            slowest = int(np.argmax([simulate(ran.tree, self.target).total for ran in runs]))
        ran = runs[slowest]
        own = f": {NoticeKind.COMPILER_FORM}: "  # no instruction of the source
        warnings = tuple(dict.fromkeys(warning for run in runs for warning in run.warnings if own not in warning.text))
        lost = {text: span for run in runs for text, span in run.dropped.items()}
        outside = tuple(WarningText(WarningKind.BEYOND, text, span) for text, span in lost.items())
        executed = Executed(ran.tree, self.arguments, (*self._said(len(runs)), *outside, *warnings))
        latencies = partial(latency_bound, self.launch.engines[slowest], self.target)
        loaded = Loaded(self.file, self.entry, self.target, executed, source=self.source.text,
                        latencies=latencies, printed=tuple(printed))  # fmt: skip
        beside = StaleReadKind.SAME_BUNDLE  # which the scheduler means: a bundle reads before it writes
        stale = tuple(read for run in runs for read in run.stale_reads if read.kind is not beside) if checked else None
        left = {name: marks for name, marks in unwritten.items() if marks.any()}
        return ExecutionResult(loaded, runs[-1].outputs, stale, undefined=left, casts=ran.casts)

    def _said(self, engines: int) -> Warnings:
        """Return notes about a kernel's values and cycles."""
        warnings = [WarningText(WarningKind.FORM, _SCHEDULE, self.file)]
        if engines > 1:
            shared = "no memory" if self.target.shared_memory is None else "only the rate of global memory"
            text = f"{engines} engines are simulated one by one and share {shared}; the time is that of the slowest"
            warnings.append(WarningText(WarningKind.FORM, text, self.file))
        spilled = len(self.launch.scheduled.spilled)
        if spilled:
            text = f"the kernel needs more registers than there are: {spilled} values are spilled to local memory"
            warnings.append(WarningText(WarningKind.FORM, text, self.file))
        notes = self.launch.compiled.notes
        return (*warnings, *(WarningText(WarningKind.FORM, text, span) for text, span in notes.items()))

    def lint(self) -> tuple[LintFinding, ...]:
        """Return the violations of the issue rules."""
        return without_prints(lint(self.launch.engines[0], self.target), self.launch.compiled.prints)


def _both(left: _Watch | None, right: _Watch | None) -> _Watch | None:
    """Return what tells both of a bundle."""
    if left is None or right is None:
        return left if right is None else right

    def watch(machine: VliwCore, index: int) -> None:
        left(machine, index)
        right(machine, index)

    return watch


def load_kernel(source: Source, request: LoadRequest) -> KernelProgram:
    """Compile and schedule a kernel.

    Raises:
        ReadError: it is not C, or the launch is incomplete. IllegalError: the target lacks a feature that it uses.
    """
    if request.entry not in (None, "main"):
        raise ReadError(f"{source.file}: the entry of a kernel is main", legal=("main",))
    if request.target is None:
        raise ReadError(f"{source.file} does not declare a target", legal=("--target gaudi2",))
    compiled = compiled_kernel(source, request)
    return KernelProgram(source, launch(compiled, request.launch or LaunchRequest(), request.args))


def compiled_kernel(source: Source, request: LoadRequest) -> Compiled:
    """Compile a kernel, without a launch; without a target, for the newest generation.

    Raises:
        ReadError, IllegalError: see `castsim.languages.tpc_c.compiling.compile_kernel`.
    """
    target = chosen_target("", source.file, request.target or NEWEST, request.prepare)
    wanted = request.launch or LaunchRequest()
    if wanted.engines > 1 and target.cores is not None and target.cores.at_work == 1:
        target = with_cores(target, wanted.engines)
    return compile_kernel(source.text, source.file, target, wanted.defines, wanted.folders, wanted.accumulators)


def launch_request(
    tensors: Mapping[str, str],
    index_space: str | Sequence[int] | None,
    engines: int = 1,
    accumulators: str | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    defines: Mapping[str, str] | None = None,
    folders: Sequence[str | Path] = (),
) -> LaunchRequest:
    """Return the launch that the command's options describe; `inputs` may define tensors.

    Raises:
        ReadError: a tensor, index space, number of engines or order of sums is invalid.
    """
    order = accumulators or ACCUMULATORS[0]
    if order not in ACCUMULATORS:
        raise ReadError(f"--accumulators {order[:40]}: unknown order of sums", legal=ACCUMULATORS)
    if engines < 1:
        raise ReadError(f"{engines} engines", legal=("1 or more",))
    members = ",".join(map(str, index_space)) if index_space and not isinstance(index_space, str) else index_space
    wanted = LaunchRequest(
        {name: tensor_given(name, text) for name, text in tensors.items()},
        members_given(str(members)) if members else (),
        engines,
        defines or {},
        tuple(map(Path, folders)),
        order,
    )
    return with_shapes(wanted, inputs or {})


def with_shapes(wanted: LaunchRequest, inputs: Mapping[str, Codes | str]) -> LaunchRequest:
    """Return a launch with the tensors that only inputs define: format and sizes of the array."""
    tensors = dict(wanted.tensors)
    for name, given in inputs.items():
        if name in tensors or (isinstance(given, str) and not given.endswith(".npy")):
            continue
        try:
            array = np.load(given, mmap_mode="r", allow_pickle=False) if isinstance(given, str) else np.asarray(given)
        except (OSError, ValueError):
            continue  # reading the input says what is wrong with it
        fmt = _DTYPES.get(array.dtype.name)
        if fmt is not None and 0 < array.ndim <= 5:
            tensors[name] = TensorGiven("", fmt, tuple(reversed(array.shape)))
    return replace(wanted, tensors=tensors)


def findings_of(source: Source, request: LoadRequest) -> Iterator[Finding]:
    """Yield the findings in a kernel; legal C that cannot run is a warning."""
    try:
        compiled = compiled_kernel(source, request)
        sequential(compiled, LaunchRequest(), {})
    except CastsimError as error:
        yield from of_errors(error, source.file)
        return
    for blocked_error in compiled.blocked:
        finding = of_error(blocked_error, source.file)
        yield placed(Severity.WARNING, "not run", finding.message, blocked_error.span, source.file, legal=finding.legal)
    for text, span in compiled.notes.items():
        yield placed(Severity.NOTE, "kernel", text, span, source.file)


def kernel_text(compiled: Compiled, *, in_order: bool) -> str:
    """Return a kernel's bundles as text, or its instructions in their order, one a line."""
    return text_of(compiled, LaunchRequest(), {}) if in_order else scheduled_kernel(compiled).text


def checked_kernel(compiled: Compiled) -> tuple[TpcProgram, _Own]:
    """Return a kernel's bundles for the linter, and what leaves out the findings about its prints."""
    return scheduled_kernel(compiled).program, lambda findings: without_prints(findings, compiled.prints)
