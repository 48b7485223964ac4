"""Kernels in C: compiled and scheduled at loading, then launched on tensors and run engine by engine.

Without tensors the text can be scheduled and shown but not run: sizes come from the launch.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from castsim.engines import simulate
from castsim.execution import run_limits
from castsim.execution.input_data import ArgumentUse, check_elements
from castsim.execution.interpreter.interpreter import Executed
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError, Severity, Span, WarningKind, Warnings, WarningText
from castsim.isa.formats import FORMATS, Codes
from castsim.isa.reading import Language, Source
from castsim.isa.tpc.program import Bundle, File, Item, Register, RegisterDeclaration, TpcProgram
from castsim.languages.tpc_c.code import Emitter, number_of
from castsim.languages.tpc_c.compiling import Compiled, MainParameter, compile_kernel
from castsim.languages.tpc_c.expressions import PRINTED, PRINTED_VECTOR, Print
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
from castsim.targets.tpc_compiler import function_tables
from castsim.targets.vliw import VliwTarget
from castsim.tools.check.checking import Finding, of_error, of_errors, placed
from castsim.tools.tpc_assembly.scheduling import Scheduled, schedule_program
from castsim.tools.tpc_compiler.c_language import INT, Scalar
from castsim.tools.tpc_compiler.virtual_registers import (
    LabelPlace,
    SequentialProgram,
    WrittenInstruction,
    read_sequential,
)
from castsim.tools.tpc_lint.lint_checking import lint

if TYPE_CHECKING:
    from castsim.machines.vliw.storage import Held


# A launch: tensors, scalars and index space, prepended to the instructions of a kernel engine by engine.

DIMENSIONS = 5
_TENSOR = re.compile(r"(?:(in|out|inout):)?([a-z][a-z0-9_]*)(?:\[([^\]]*)\])?")
_OFFSET, _SIZE = "%i.index_space_offset", "%i.index_space_size"


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel ready to run: the bundles, and those of each engine with its part of the index space."""

    compiled: Compiled
    scheduled: Scheduled
    engines: tuple[TpcProgram, ...]


def tensor_given(name: str, text: str) -> TensorGiven:
    """Return the tensor of a `--tensor` text, `out:f32[64,1024]`.

    Raises:
        ReadError: the text is malformed.
    """
    legal = (f"{name}=f32[64,1024]", f"{name}=out:bf16[128,16]")
    match = _TENSOR.fullmatch(text.strip())
    if match is None or match[3] is None:
        raise ReadError(f"--tensor {name}={text}: expected a direction, a format and sizes", legal=legal)
    if match[2] not in FORMATS:
        raise ReadError(f"--tensor {name}: unknown format '{match[2]}'", legal=sorted(FORMATS))
    sizes = [size.strip() for size in match[3].split(",")]
    if not all(size.isdecimal() and int(size) for size in sizes) or len(sizes) > DIMENSIONS:
        raise ReadError(f"--tensor {name}={text}: a tensor has one to five sizes of 1 or more", legal=legal)
    return TensorGiven(match[1] or "", match[2], tuple(map(int, sizes)))


def members_given(text: str) -> tuple[int, ...]:
    """Return the members of an index space from an `--index-space` text, `16,4`.

    Raises:
        ReadError: the text is not one to five numbers of 1 or more.
    """
    sizes = [size.strip() for size in text.split(",")]
    if not all(size.isdecimal() and int(size) for size in sizes) or len(sizes) > DIMENSIONS:
        raise ReadError(f"--index-space {text}: expected 1 to 5 positive numbers", legal=("--index-space 16,4",))
    return tuple(map(int, sizes))


def parts_of(members: Sequence[int], engines: int) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Return offset and size of each engine's part: the dimension with most members is cut.

    Engines without members have no part.
    """
    whole = (*members, *(1,) * (DIMENSIONS - len(members)))
    cut = max(range(DIMENSIONS), key=lambda d: whole[d])
    count = min(engines, whole[cut])
    parts = []
    for engine in range(count):
        first, last = (whole[cut] * border // count for border in (engine, engine + 1))
        offset = tuple(first if d == cut else 0 for d in range(DIMENSIONS))
        size = tuple(last - first if d == cut else whole[d] for d in range(DIMENSIONS))
        parts.append((offset, size))
    return tuple(parts)


def launch(
    compiled: Compiled, request: LaunchRequest, arguments: Mapping[str, int | float], *, until: float = math.inf
) -> Launch:
    """Return a scheduled kernel, ready to run.

    Raises:
        ReadError: a tensor, a scalar or the index space is missing or unknown.
        IllegalError: the kernel calls a function that cannot run here, or registers are short.
    """
    if compiled.blocked:
        raise compiled.blocked[0]
    _check_names(compiled, request, arguments)
    source = sequential(compiled, request, arguments)
    try:
        scheduled = schedule_program(source, compiled.target, longer=compiled.unrolls, until=until)
    except CastsimError as error:
        raise in_words(error) from None
    parts = parts_of(request.index_space, request.engines)
    engines = tuple(_placed(scheduled, offset, size) for offset, size in parts)
    return Launch(compiled, scheduled, engines)


def scheduled_kernel(compiled: Compiled) -> Scheduled:
    """Return the bundles of a kernel without a launch.

    Raises:
        IllegalError: the kernel calls a function that cannot run here, or registers are short.
    """
    if compiled.blocked:
        raise compiled.blocked[0]
    try:
        source = sequential(compiled, LaunchRequest(), {})
        return schedule_program(source, compiled.target, longer=compiled.unrolls)
    except CastsimError as error:
        raise in_words(error) from None


def _check_names(compiled: Compiled, request: LaunchRequest, arguments: Mapping[str, int | float]) -> None:
    tensors, scalars = (
        [parameter.name for parameter in parameters] for parameters in (compiled.tensors, compiled.scalars)
    )
    for name in request.tensors:
        if name not in tensors:
            raise ReadError(f"main has no tensor '{name}'", legal=tensors)
    for name in arguments:
        if name not in scalars:
            raise ReadError(f"--arg {name}: main has no scalar of this name", legal=scalars or ("none",))
    for tensor in compiled.tensors:
        if tensor.name not in request.tensors:
            legal = (f"--tensor {tensor.name}=f32[64,1024]", f"--tensor {tensor.name}=out:f32[64,1024]")
            raise ReadError(f"the format and sizes of tensor {tensor.name} of main are missing", span=tensor.span,
                            legal=legal)  # fmt: skip
    for scalar in compiled.scalars:
        if scalar.name not in arguments:
            message = f"the value of parameter {scalar.name} ({scalar.type}) of main is missing"
            raise ReadError(message, span=scalar.span, legal=(f"--arg {scalar.name}=NUMBER",))
    if not request.index_space:
        raise ReadError("the index space is missing", legal=("--index-space 16,4",))


def sequential(compiled: Compiled, request: LaunchRequest, arguments: Mapping[str, int | float]) -> SequentialProgram:
    """Return the instructions with declarations; every place is one in C."""
    text = text_of(compiled, request, arguments)
    first = text.count("\n", 0, text.index(_CODE)) + 1
    spans = [line.span for line in compiled.lines]

    def of_c(span: Span) -> Span:
        number = span.line - 1 - first
        return spans[number] if 0 <= number < len(spans) else span

    try:
        source = read_sequential(text, compiled.parsed.file, compiled.target)
    except CastsimError as error:
        location = None if error.span is None else of_c(error.span)
        shown = compiled.lines[error.span.line - 1 - first].text if error.span and location is not error.span else ""
        if error.message.startswith("tensor ") and location is not None:
            raise error.at(location) from None
        message = f"{compiled.target.name} lacks an instruction: {error.message} ({shown})"
        raise IllegalError(message, span=location, legal=error.legal) from None
    instructions = tuple(
        WrittenInstruction(
            {slot: instruction.at(of_c(written.span)) for slot, instruction in written.slots.items()},
            of_c(written.span),
        )
        for written in source.instructions
    )
    labels = tuple(LabelPlace(label.name, label.place, of_c(label.span)) for label in source.labels)
    return replace(source, instructions=instructions, labels=labels, local=compiled.local)


_CODE = "// code\n"


def text_of(compiled: Compiled, request: LaunchRequest, arguments: Mapping[str, int | float]) -> str:
    """Return the instructions as a text for `castsim schedule`, one a line."""
    code = "\n".join(line.text for line in compiled.lines)
    lines = [f"// castsim: target {compiled.target.name}"]
    for tensor in compiled.tensors:
        given = request.tensors.get(tensor.name)
        if given is not None:
            direction = given.direction or ("out" if tensor.number in compiled.stored else "in")
            lines.append(
                f"// castsim: tensor {tensor.number} {tensor.name} {direction} {given.format} {list(given.shape)}"
            )
    for name, (function, columns) in compiled.tables.items():
        shape = f"[{columns}, {_entries(name)}]" if columns > 1 else f"[{_entries(name)}]"
        unknown = " = " + ", ".join(["0"] * columns * _entries(name)) if name in compiled.rounded else ""
        lines.append(f"// castsim: table {name} {function} f32 {shape}{unknown}")
    parts = parts_of(request.index_space or (1,), 1)
    for register, values in ((_OFFSET, parts[0][0]), (_SIZE, parts[0][1])):
        if re.search(rf"{re.escape(register)}\b", code):
            lines.append(f"// castsim: reg {register} = {list(values)}")
    for scalar in compiled.scalars:
        if re.search(rf"{re.escape(scalar.register)}\b", code):
            lines.append(
                f"// castsim: reg {scalar.register} = {hex(_bits(compiled, scalar, arguments.get(scalar.name, 0)))}"
            )
    return "\n".join([*lines, _CODE + code]) + "\n"


def _entries(name: str) -> int:
    return next((function_table.entries for function_table in function_tables() if function_table.table == name), 256)


def _bits(compiled: Compiled, parameter: MainParameter, number: float) -> int:
    kind = parameter.type
    assert isinstance(kind, Scalar)
    if not kind.is_float and (not isinstance(number, int) or not -(1 << 31) <= number < 1 << 32):
        raise ReadError(f"--arg {parameter.name}={number}: {kind} takes an integer of {kind.bits} bits",
                        span=parameter.span)  # fmt: skip
    return Emitter(compiled.parsed, compiled.target).bits(number, kind)


def _placed(scheduled: Scheduled, offset: tuple[int, ...], size: tuple[int, ...]) -> TpcProgram:
    """Return the program of one engine: two registers hold its part of the index space."""
    names = scheduled.registers
    declared = []
    for declaration in scheduled.program.declarations:
        initialised = declaration
        if isinstance(declaration, RegisterDeclaration) and declaration.register.file is File.I:
            for name, values in ((_OFFSET, offset), (_SIZE, size)):
                if str(declaration.register) in names.get(name, ())[:1]:
                    initialised = RegisterDeclaration(declaration.register, values, span=declaration.span)
        declared.append(initialised)
    return replace(scheduled.program, declarations=tuple(declared), items=_spanned(scheduled.program.items))


def _spanned(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return bundles in which each empty one has the place of the instruction it waits for."""
    result: list[Item] = []
    last: Span | None = None
    for item in reversed(items):
        if isinstance(item, Bundle) and not any(item.slots) and last is not None:
            result.append(replace(item, span=last))
            continue
        last = item.span if isinstance(item, Bundle) else last
        result.append(item)
    return tuple(reversed(result))


def in_words(error: CastsimError) -> CastsimError:
    """Return an error of the scheduler in terms of variables."""
    error.message = re.sub(r"%[a-z]+\.([A-Za-z_]\w*?)_(\d+)(?:\.\d)?\b", r"\1", error.message)
    return error


# What a kernel prints: the values that a run moves into the registers of printf, and the lines that they make.

MOST_LINES = 10_000
"""Maximum number of kept lines; further ones are only counted."""
_Place = tuple[int | None, int | None]


class Printing:
    """Observes every bundle before it is issued, and records the printed values of the previous one."""

    def __init__(self, prints: Mapping[_Place, Print], program: TpcProgram, file: str) -> None:
        self._file = file
        self._prints = prints
        self._found: list[tuple[_Place, Held]] = []
        self._vectors: dict[_Place, deque[Held]] = defaultdict(deque)
        self._last: tuple[VliwCore, int] | None = None
        self._moves: dict[int, list[tuple[_Place, Register]]] = {}
        for number, bundle in enumerate(program.bundles if prints else ()):
            for instruction in bundle.slots:
                dest = None if instruction is None or instruction.mnemonic != "mov" else instruction.operand("dest")
                location = (None, None) if instruction is None else (instruction.span.line, instruction.span.column)
                if isinstance(dest, Register) and str(dest) in (PRINTED, PRINTED_VECTOR) and location in prints:
                    self._moves.setdefault(number, []).append((location, dest))

    def bundle(self, machine: VliwCore, index: int) -> None:
        """Observe a bundle that is about to be issued."""
        self._take()
        self._last = (machine, index) if index in self._moves else None

    def lines(self) -> tuple[str, ...]:
        """Return the printed lines, `kernel.c:12: text`, in order; text without a line break is continued."""
        self._take()
        result: list[str] = []
        open_ = False
        for count, (location, value) in enumerate(self._found):
            if len(result) == MOST_LINES and not open_:
                return (*result, f"{len(self._found) - count} more calls of printf")
            text = self._text(location, value)
            for piece in text.splitlines(keepends=True):
                if open_:
                    result[-1] += piece.rstrip("\n")
                else:
                    result.append(f"{self._file}:{location[0]}: {piece.rstrip(chr(10))}")
                open_ = not piece.endswith("\n")
        return tuple(result)

    def _take(self) -> None:
        if self._last is None:
            return
        machine, index = self._last
        self._last = None
        for location, register in self._moves[index]:
            (cell,) = machine.registers.cells(register)
            if isinstance(cell.newest, np.ndarray):
                self._vectors[location].append(cell.newest)
            else:
                self._found.append((location, cell.newest))

    def _text(self, location: _Place, value: Held) -> str:
        call = self._prints[location]
        assert isinstance(value, int)
        shown: tuple[int | float, ...] = ()
        if call.element:
            assert call.kind is not None
            lanes = np.asarray(self._vectors[location].popleft()).view(f"<u{call.kind.bits // 8}")
            shown = (number_of(int(lanes[value % lanes.size]), call.kind),)
        elif call.kind is not None:
            shown = (number_of(value, INT if call.kind.name == "bool" else call.kind),)
        return re.sub(r"(%[-+ #0]*\d*(?:\.\d+)?)(?:hh|ll|h|l)", r"\1", call.format) % shown


def without_prints(findings: Iterable[LintFinding], prints: Mapping[_Place, Print]) -> tuple[LintFinding, ...]:
    """Return findings except those about castsim's choices: moves of printed values, forms of conversions."""
    return tuple(
        finding
        for finding in findings
        if finding.rule != NoticeKind.COMPILER_FORM
        and (finding.rule != "unread result" or (finding.span.line, finding.span.column) not in prints)
    )


# A kernel as castsim's core loads and runs it.

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
