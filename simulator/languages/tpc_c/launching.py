"""A launch of a kernel: tensors, scalars and index space, prepended to its instructions engine by engine; prints.

Without tensors the text can be scheduled and shown but not run: sizes come from the launch.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError, Span
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.program import Bundle, File, Item, Register, RegisterDeclaration, TpcProgram
from castsim.languages.tpc_c.code import Emitter, number_of
from castsim.languages.tpc_c.compiling import Compiled, MainParameter
from castsim.languages.tpc_c.expressions import PRINTED, PRINTED_VECTOR, Print
from castsim.machines.vliw.semantics.convert import NoticeKind
from castsim.running.loaded import LaunchRequest, TensorGiven
from castsim.targets.tpc_compiler import function_tables
from castsim.tools.tpc_assembly.scheduling import Scheduled, schedule_program
from castsim.tools.tpc_compiler.c_language import INT, Scalar
from castsim.tools.tpc_compiler.virtual_registers import (
    LabelPlace,
    SequentialProgram,
    WrittenInstruction,
    read_sequential,
)

if TYPE_CHECKING:
    from castsim.machines.vliw.findings import LintFinding
    from castsim.machines.vliw.machine import VliwCore
    from castsim.machines.vliw.storage import Held


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
