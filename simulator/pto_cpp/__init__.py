"""PTO C++ kernels: compiled by the system's compiler, run once on the host in a child process, recorded as a program.

The recorder is castsim's own header (`include/`), which has the names of the vendor's library and sends the actions
of a kernel: tiles with their addresses, transfers, flags. This code runs only if a command names a C++ file.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.execution.input_data import ArgumentUse, choose_target, empty_memory, make_inputs, read_input
from castsim.execution.interpreter.interpreter import execute
from castsim.execution.interpreter.lowerer import Lowerer
from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.execution.synchronisation.race_findings import REPORT
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, EngineError, LimitError, ReadError, TileError
from castsim.isa.formats import Codes
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.value_types import element_format
from castsim.isa.reading import Language, Source, read_bytes
from castsim.machines.mechanisms import compute_of, lowerer_of, tile_target
from castsim.pto_cpp.compiling import (
    ArgumentArray,
    CppKernel,
    Lines,
    argument_array,
    compile_kernel,
    continued,
    entry_of,
    for_host,
)
from castsim.pto_cpp.program_making import Maker, SentTile
from castsim.running.program_loading import load
from castsim.running.program_runs import Result, run_loaded
from castsim.targets.description import with_options
from castsim.targets.loader import Target, TileTarget

# Values while a kernel runs: what it reads of tiles and of global memory is what castsim computes up to there.

PAGE = 4096
"""Bytes of global memory that are requested at once; the same number is in the header."""


@dataclass(slots=True)
class Lockstep:
    """The contents of the buffer and global memory at the kernel's current position.

    `given` are the bytes of the inputs by position.
    """

    target: TileTarget
    lowerer: Lowerer
    maker: Callable[[], Maker]
    given: Mapping[int, NDArray[np.uint8]]
    pending: list[str] = field(default_factory=list)
    stored: set[int] = field(default_factory=set)
    _buffer: NDArray[np.uint8] | None = None
    _memory: dict[str, NDArray[np.uint8]] = field(default_factory=dict)

    def note(self, line: str) -> None:
        """Record an action of the kernel."""
        self.pending.append(line)
        kind, _, *rest = line.split(" ")
        if kind == "o" and rest[0] == "tstore":
            self.stored.add(int(rest[1].split(",")[1]))
        elif kind == "w":
            self.stored.add(int(rest[0]))

    def answer(self, line: str) -> bytes:
        """Return the answer to a question: `y` and bytes, or `n` if the value is unknown.

        Raises:
            ReadError: no input gives the element. CastsimError: an earlier action of the kernel is rejected.
        """
        kind, place, *rest = line.split(" ")
        return self._element(place, *rest) if kind == "q" else self._page(place, *rest)

    def _element(self, place: str, tile: str, number: str) -> bytes:
        sent = SentTile.of(tile)
        self._advance()
        fmt = element_format(sent.type.element)
        size = fmt.storage_bits // 8
        start = sent.address + int(number) * size
        buffer = self._bytes_of_buffer()
        if sent.address < 0 or not 0 <= start <= buffer.size - size:
            raise TileError(
                f"GetValue({number}): byte {start} of a buffer of {buffer.size}", span=self.maker().span_of(place)
            )
        return b"y" + buffer[start : start + size].tobytes().ljust(8, b"\0")

    def _page(self, place: str, buffer: str, start: str, offset: str, way: str) -> bytes:
        position, first = int(buffer), int(start)
        maker = self.maker()
        name = maker.names[position]
        if position not in self.given and position not in self.stored:
            if way == "w":
                return b"n"
            fmt = maker.elements.get(position)
            size = 1 if fmt is None else element_format(fmt).storage_bits // 8
            unit = "byte" if fmt is None else "element"
            raise ReadError(
                f"the kernel reads {unit} {int(offset) // size} of {name}; no input was given",
                span=maker.span_of(place), legal=(f"--in {name}=FILE.npy",)
            )  # fmt: skip
        if position in self.stored:
            self._advance()
        held = self._memory.get(name)
        if held is None:
            held = self.given[position]
        if way == "r" and not 0 <= int(offset) < held.size:
            raise TileError(
                f"reads byte {offset} of {name}, which has {held.size}: outside the tensor",
                span=maker.span_of(place), legal=(f"--in {name}=FILE.npy of more elements",)
            )  # fmt: skip
        page = np.zeros(PAGE, np.uint8)
        part = held[max(first, 0) : max(first + PAGE, 0)]
        page[max(-first, 0) : max(-first, 0) + part.size] = part
        return b"y" + page.tobytes()

    def _advance(self) -> None:
        """Compute the pending actions."""
        maker = self.maker()
        for line in self.pending:
            if line[0] not in "qp":
                maker.take(line)
        self.pending.clear()
        used = sorted(maker.elements)
        function = maker.function("kernel", used)
        executed = execute(pto.Program((function,)), function, self.lowerer, {})
        for name, use in executed.arguments.items():
            position = maker.names.index(name)
            held = self._memory.get(name, self.given.get(position, np.zeros(0, np.uint8)))
            room = empty_memory(use)
            if held.size < room.size or name not in self._memory:
                room = np.zeros(max(room.size, held.size), np.uint8)
                room[: held.size] = held
                self._memory[name] = room
        compute_of(self.target)(executed.tree, self._bytes_of_buffer(), self._memory)

    def _bytes_of_buffer(self) -> NDArray[np.uint8]:
        if self._buffer is None:
            self._buffer = np.zeros(self.target.memories["ub"].capacity_bytes, np.uint8)
        return self._buffer


# The child process in which a kernel runs once: its limits, what it sends, what it is answered.

SECONDS = 20
"""Limit on the processor time of a kernel; a recording takes milliseconds."""

SILENT_SECONDS = 60
"""Seconds without output after which a kernel is ended."""

_MEMORY = 2 << 30
_FILES = 1 << 26


def recorded_lines(program: Path, words: Sequence[str], answer: Callable[[str], bytes], most: int) -> Iterator[str]:
    """Run a compiled kernel and yield its output line by line; questions begin with `q` or `p`.

    Raises:
        LimitError: it does not terminate, or sends more than `most` lines.
        EngineError: it ends other than by returning.
        ReadError: it cannot be started.
    """
    own, others = socket.socketpair()
    number = others.fileno()
    # The shell sets the limits: a function between fork and exec is not safe in a process of several threads.
    limits = f"ulimit -t {SECONDS}; ulimit -d {_MEMORY >> 10}; ulimit -f {_FILES >> 9}; ulimit -c 0; exec"
    command = ["/bin/sh", "-c", f'{limits} "$0" "$@"', str(program), str(number), *words]
    nothing = subprocess.DEVNULL
    with own, own.makefile("rb") as lines:
        own.settimeout(SILENT_SECONDS)
        try:
            with others:
                child = subprocess.Popen(
                    command, stdin=nothing, stdout=nothing, stderr=nothing, pass_fds=(number,),
                    cwd=program.parent, start_new_session=True, env={"LC_ALL": "C"}
                )  # fmt: skip
        except OSError as error:
            raise ReadError(f"cannot start the compiled kernel: {error.strerror or error}") from None
        ended = False
        try:
            for count, sent in enumerate(lines):
                if not sent.endswith(b"\n"):
                    break
                line = sent[:-1].decode("utf-8", "replace")
                if line[0] in "qp":
                    own.sendall(answer(line))
                if count >= most:
                    raise LimitError(
                        f"the kernel issues more than {most} operations", legal=(f"--max-statements {10 * most}",)
                    )
                ended = ended or line[0] in "zE"
                yield line
            code = child.wait()
            if not ended:
                raise _unended(code)
        except TimeoutError:
            raise LimitError(f"the kernel was stopped after {SILENT_SECONDS} s without progress") from None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _unended(code: int) -> LimitError | EngineError:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return LimitError(f"the kernel did not finish within {SECONDS} s of CPU time")
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ends with code {code}"
    return EngineError(f"the kernel {how} on the host before it returns")


_A5 = "a5"
"""The architecture whose kernels are compiled for vector functions; others have strided repeats."""

_ROUNDS = 8
"""Maximum number of recordings to determine sizes that depend on random values."""

_UNSIZED = 1 << 20
"""Assumed number of bytes of an input, all 0, until its size is known."""

_DTYPES = {"f2": "f16", "f4": "f32", **{f"{kind}{size}": f"{kind}{8 * size}" for kind in "iu" for size in (1, 2, 4, 8)}}


@dataclass(frozen=True, slots=True)
class Request:
    """A kernel and the arguments of its call.

    `args` are its scalar arguments by name (0 for a pointer: the null pointer), `inputs` arrays by name or values of
    `--in`. `block` of `blocks` and `sub` of `subs` identify the core; without `blocks` a launch in the file gives
    their number. `folders` and `macros` are the compiler's `-I` and `-D`.
    """

    file: Path
    entry: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)
    inputs: Mapping[str, Codes | str] = field(default_factory=dict)
    target: str | Path | Target | None = None
    prepare: Callable[[Target], Target] = lambda chosen: chosen
    block: int = 0
    blocks: int | None = None
    sub: int = 0
    subs: int = 1
    folders: tuple[Path, ...] = ()
    macros: tuple[str, ...] = ()
    limits: Limits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class CppRecording:
    """The recording of a kernel on one core, as a program whose places are those of the C++ file."""

    request: Request
    text: str
    program: pto.Program
    blocks: int
    """The number of cores that the kernel sees."""
    elements: Mapping[str, str] = field(default_factory=dict)
    """Element formats of its arguments."""
    extents: Mapping[str, int] = field(default_factory=dict)
    """The number of used elements of each argument."""
    arrays: Mapping[str, Codes] = field(default_factory=dict)
    """The inputs of the recording whose sizes are known."""
    decisive: bool = False
    """Whether its path depends on values."""
    places: Collection[str] = ()
    """Names of the elements of an array of arguments; the program lacks unused ones."""

    @property
    def inputs(self) -> Mapping[str, Codes | str]:
        """The inputs of the program: the given ones; for an array of arguments the contents of its elements."""
        given = self.request.inputs.items()
        return {name: value for name, value in given if name in self.elements or name not in self.places}

    @property
    def source(self) -> Source:
        """The program in castsim's input form."""
        return Source(str(self.request.file), Language.TILES, self.text, program=self.program)

    def pto_text(self) -> str:
        """Return the program as `.pto` text, each statement with its line of the C++ file."""
        lines = print_program(self.program).splitlines()
        nodes = self.program.functions[0].body or ()
        first = next(number for number, line in enumerate(lines) if line.lstrip().startswith("func.func")) + 1
        for number, node in enumerate(nodes):
            if not isinstance(node, pto.Constant | pto.Return):
                span = node.span
                lines[first + number] += f"  // {Path(span.file).name}:{span.line}"
        return f"// recorded by castsim from {self.request.file.name}\n" + "\n".join(lines) + "\n"


@dataclass(slots=True)
class _Core:
    """A compiled kernel being recorded on one core."""

    request: Request
    kernel: CppKernel
    target: Target
    lines: Lines

    def recorded(self) -> CppRecording:
        """Run it, repeatedly with random inputs of the sizes that it requested.

        Raises:
            ReadError: the sizes depend on random inputs and do not converge.
        """
        sizes: dict[str, tuple[str, int]] = {}
        for _ in range(_ROUNDS):
            recording = self._once(inputs_of(self.request, sizes))
            known = sizes_of([recording])
            if not recording.decisive or known == sizes or not any(map(_is_drawn, self.request.inputs.values())):
                return recording
            sizes = known
        raise ReadError(
            f"{self.request.file}: the sizes of random inputs depend on their values", legal=("--in NAME=FILE.npy",)
        )

    def _once(self, arrays: Mapping[str, Codes]) -> CppRecording:
        """Run it once."""
        names = self.kernel.names
        kinds = {names.index(name): array.dtype.str[1:] for name, array in arrays.items()}
        given_types = {position: _DTYPES[kind] for position, kind in kinds.items() if kind in _DTYPES}
        elements: dict[int, str] = {}
        sizes = {name: int(array.size) for name, array in arrays.items()}
        chip = tile_target(self.target)

        def maker() -> Maker:
            capacity = chip.memories["ub"].capacity_bytes
            return Maker(names, elements, self.lines.span, self.kernel.a5, capacity, sizes)

        data = {names.index(name): _bytes_of(array) for name, array in arrays.items()}
        unsized = [names.index(name) for name in self.request.inputs if name not in arrays]
        data |= dict.fromkeys(unsized, np.zeros(_UNSIZED, np.uint8))
        lockstep = Lockstep(chip, lowerer_of(self.target), maker, data)
        whole = maker()
        blocks, decisive = 1, False
        pointers: dict[int, str] = {}

        def answer(line: str) -> bytes:
            nonlocal decisive
            decisive = True
            learn(line)
            return lockstep.answer(line)

        def learn(line: str) -> None:
            """Record the type of an argument that the scalar unit accesses, from its input or else its pointer."""
            position = int(line.split(" ")[2]) if line[0] in "pw" else -1
            if pointers.get(position):
                elements.setdefault(position, pointers[position])

        for line in recorded_lines(self.lines.program, self._words(arrays), answer, self.request.limits.max_statements):
            kind = line[0]
            if kind == "b":
                number, _, element = line[2:].partition(" ")
                pointers[int(number)] = given_types.get(int(number), element)
            elif kind == "z":
                blocks = int(line[2:])
            elif kind == "E":
                raise self._refused(line)
            else:
                learn(line)
                whole.take(line)
                lockstep.note(line)
        for given in set(pointers) & set(given_types):
            elements.setdefault(given, given_types[given])
        name = re.sub(r"\W+", "_", self.kernel.entry.rpartition("::")[2]).strip("_")
        function = whole.function(name, sorted(elements))
        program = pto.Program(
            (function,), (("pto.target_arch", f'"{_A5 if self.kernel.a5 else "a3"}"'),), tuple(whole.warnings)
        )
        return CppRecording(
            self.request, self.lines.text, program, blocks, {names[p]: kind for p, kind in elements.items()},
            {names[p]: size for p, size in whole.ends.items()}, arrays, decisive, self.kernel.places
        )  # fmt: skip

    def _words(self, arrays: Mapping[str, Codes]) -> list[str]:
        request = self.request
        core = [str(request.block), str(request.blocks or 0), str(request.sub), str(request.subs)]
        args = {name: repr(int(value) if isinstance(value, bool) else value) for name, value in request.args.items()}
        for name in self.kernel.places:
            array = (
                None
                if isinstance(request.inputs.get(name), str) and _is_drawn(request.inputs[name])
                else arrays.get(name)
            )
            if array is not None:
                args[f"{name}.shape"] = " ".join(map(str, (array.nbytes, *array.shape)))
        return core + [word for pair in args.items() for word in pair]

    def _refused(self, line: str) -> CastsimError:
        _, place, *words = line.split(" ")
        if words[0] == "missing":
            name = words[1]
            return ReadError(
                f"scalar argument {name} of {self.kernel.entry} needs a value", legal=(f"--arg {name}=VALUE",)
            )
        message = " ".join(words)
        if "args" in self.kernel.names and "outside all arguments" in message:
            message += "; if `args` holds a descriptor, pass it with `--in args=FILE`"
        if place.strip("f") == "":
            return ReadError(f"{self.request.file}: {message}")
        return ReadError(message, span=self.lines.span(place))


def record(request: Request, cores: range | None = None) -> list[CppRecording]:
    """Compile a kernel and record it on one core, or on each of several.

    Raises:
        ReadError: there is no compiler, compilation fails, an argument has no value, or castsim cannot follow a step.
        CastsimError: an action of the kernel is rejected. LimitError, EngineError: it does not terminate, or fails.
    """
    text = read_bytes(request.file, "program").decode("utf-8-sig", "replace").replace("\r\n", "\n")
    text_of_entry = continued(text)
    entry, function = entry_of(text_of_entry, request.entry, str(request.file))
    array = argument_array(text_of_entry, function)
    names = function.parameters + (array.names if array else ())
    request = _unpacked(request, array) if array else request
    for option, given in (("--arg", request.args), ("--in", request.inputs)):
        for name, value in given.items():
            if name not in names:
                shown = f"{name}={value}" if isinstance(value, str) else name
                raise ReadError(f"{option} {shown}: {entry} has no such parameter", legal=names)
    target = request.prepare(choose_target(None, request.target))
    tile_target(target)
    file = request.file.resolve()
    for name in request.inputs:
        if isinstance(request.inputs[name], str) and not _is_drawn(str(request.inputs[name])):
            read_input(str(request.inputs[name]), name)  # before anything is compiled
    folders = tuple(path.resolve() for path in request.folders)
    a5 = _A5 in target.architectures
    slots = array.expressions(request.inputs) if array else "{}"
    kernel = CppKernel(
        file, for_host(text_of_entry), entry, names, folders, request.macros, a5, slots, array.names if array else ()
    )
    found: list[CppRecording] = []
    with tempfile.TemporaryDirectory(prefix="castsim-cpp-") as folder:
        program = compile_kernel(kernel, Path(folder))
        lines = Lines(program, file, text)
        try:
            blocks = list(cores or [request.block])
            while len(found) < len(blocks):
                one = replace(request, block=blocks[len(found)])
                found.append(_Core(one, kernel, target, lines).recorded())
                if cores is not None and request.blocks is None:  # a launch of the file has said how many there are
                    blocks = list(range(max(found[0].blocks, len(blocks))))
        finally:
            lines.close()
    return found


def _unpacked(request: Request, array: ArgumentArray) -> Request:
    """Return a request whose values for an array of arguments are inputs and scalars of its elements.

    Raises:
        ReadError: a file holds no arrays, or more than the array has elements.
    """
    given = request.inputs.get(array.name)
    if given is None:
        return request
    inputs = {name: value for name, value in request.inputs.items() if name != array.name}
    args: dict[str, int | float] = dict(request.args)
    if isinstance(given, str) and _is_drawn(given):
        own: dict[str, Codes | str] = {array.names[place]: given for place in array.tensors}
        args = {**{array.names[place]: 0 for place in array.numbers if given == "zeros"}, **args}
        return replace(request, inputs=own | inputs, args=args)
    values = _arrays_of(given, array.name)
    if len(values) > len(array.names):
        text = f"--in {array.name}: {len(values)} arrays, but the kernel unpacks {len(array.names)}"
        raise ReadError(text, legal=array.names)
    for name, value in zip(array.names, values, strict=False):
        if value.ndim:
            inputs.setdefault(name, value)
        else:
            args.setdefault(name, value.item())
    return replace(request, inputs=inputs, args=args)


def _arrays_of(given: Codes | str, name: str) -> list[Codes]:
    """Return the arrays of a file that NumPy's `savez` wrote, in their order, or of a sequence."""
    if not isinstance(given, str):
        return [np.asarray(value) for value in given]
    legal = ("an .npz file with one array per argument; numbers have no dimensions",)
    try:
        with zipfile.ZipFile(given) as archive:
            names = [entry.filename for entry in archive.infolist()]
            if (size := sum(entry.file_size for entry in archive.infolist())) > _MEMORY:
                raise ReadError(f"input '{name}': the arrays of '{given}' take {size:,} bytes, more than {_MEMORY:,}")
        with np.load(given, allow_pickle=False) as file:
            return [file[name] for name in names]
    except FileNotFoundError:
        raise ReadError(f"input '{name}': file '{given}' does not exist", legal=legal) from None
    except (OSError, ValueError, KeyError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise ReadError(f"input '{name}': '{given}' cannot be read: {error}", legal=legal) from None


def record_all(request: Request) -> tuple[list[CppRecording], Mapping[str, Codes]]:
    """Compile a kernel and record it on each core; their number is `blocks` or that of a launch in the file.

    Returns:
        The recordings, and the inputs with the sizes that they need together.

    Raises:
        CastsimError, EngineError: see `record`.
    """
    recordings = record(request, range(request.blocks or 1))
    request = replace(recordings[0].request, block=request.block)  # its array of arguments unpacked
    arrays = inputs_of(request, sizes_of(recordings))
    if any(each.decisive for each in recordings) and any(_is_drawn(given) for given in request.inputs.values()):
        recordings = record(replace(request, inputs=arrays), range(len(recordings)))
    return recordings, arrays


def sizes_of(recordings: Sequence[CppRecording]) -> dict[str, tuple[str, int]]:
    """Return element format and number of elements of the arguments that some recordings use."""
    found: dict[str, tuple[str, int]] = {}
    for each in recordings:
        for name, size in each.extents.items():
            found[name] = each.elements[name], max(size, found.get(name, ("", 0))[1])
    return found


def inputs_of(request: Request, sizes: Mapping[str, tuple[str, int]]) -> dict[str, Codes]:
    """Return the inputs as arrays: those of files, and the random ones whose sizes are known."""
    arrays: dict[str, Codes] = {}
    for name, given in request.inputs.items():
        if not isinstance(given, str):
            arrays[name] = np.asarray(given)
        elif not _is_drawn(given):
            arrays[name] = read_input(given, name)
    uses = {name: ArgumentUse(element_format(kind), elements=size) for name, (kind, size) in sizes.items()}
    texts = {name: str(given) for name, given in request.inputs.items() if _is_drawn(given) and name in uses}
    return arrays | make_inputs(texts, uses)


def _is_drawn(given: Codes | str) -> bool:
    return isinstance(given, str) and (given == "zeros" or given.startswith("random:"))


def run(
    file: str | Path,
    target: str | Path | Target | None = None,
    entry: str | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    args: Mapping[str, int | float] | None = None,
    options: Mapping[str, int | str] | None = None,
    *,
    block: int = 0,
    blocks: int | None = None,
    folders: tuple[str | Path, ...] = (),
    macros: tuple[str, ...] = (),
    timing_only: bool = False,
    races: str = REPORT,
) -> Result:
    """Compile, record and run a C++ kernel; this executes it with the user's rights. Parameters: see `castsim.run`."""

    def prepare(chosen: Target) -> Target:
        return with_options(chosen, dict(options or {}))

    request = Request(
        Path(file), entry, args or {}, inputs or {}, target, prepare, block, blocks,
        folders=tuple(map(Path, folders)), macros=macros
    )  # fmt: skip
    (recording,) = record(request)
    return run_loaded(
        load(recording.source, target, None, {}, prepare), recording.inputs, timing_only=timing_only, races=races
    )


def _bytes_of(array: Codes) -> NDArray[np.uint8]:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
