"""Kernels in C++: compiled by the system's compiler, run once on the host in a child process, recorded as a program.

The recorder is a header of castsim's own, which has the names of a device's library and sends what a kernel does. What
depends on the library is its `Dialect`. Nothing here runs unless a command names a C++ file.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.execution.input_data import ArgumentUse, choose_target, make_inputs, read_input
from castsim.execution.interpreter.lowerer import Lowerer
from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, EngineError, LimitError, ReadError, TileError
from castsim.isa.formats import Codes
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import is_micro
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.value_types import element_format
from castsim.isa.reading import Language, Source, read_bytes
from castsim.languages.cpp_recording.host_compiler import HEADERS, CppKernel, Lines, compile_kernel
from castsim.languages.cpp_recording.node_making import A5, NodeMaker, padded_bytes
from castsim.machines.mechanisms import lowerer_of, tile_target
from castsim.running.program_loading import load
from castsim.running.program_runs import Result, run_loaded
from castsim.running.synchronisation.race_findings import REPORT
from castsim.targets.description import with_options
from castsim.targets.loader import Target, TileTarget

# Values while a kernel runs: what it reads of tiles and of global memory is what castsim computes up to there.

PAGE = 4096
"""Bytes of global memory that are asked for at once; as in the header."""


@dataclass(slots=True)
class Lockstep:
    """The buffer and global memory as far as the kernel has come; what computes them is the library's.

    `maker` makes nodes, `whole` has made those of all lines so far; `given` are the bytes of the inputs by position.
    """

    target: TileTarget
    lowerer: Lowerer
    maker: Callable[[], NodeMaker]
    whole: NodeMaker
    given: Mapping[int, NDArray[np.uint8]]
    stored: set[int] = field(default_factory=set)

    def advance(self) -> None:
        """Compute what the kernel has done up to here."""
        raise NotImplementedError

    def buffer(self) -> NDArray[np.uint8]:
        """Return the bytes of the buffer."""
        raise NotImplementedError

    def held(self, name: str) -> NDArray[np.uint8] | None:
        """Return the bytes of an argument that has been computed, None if it has not."""
        raise NotImplementedError

    def note(self, line: str) -> None:
        """Record the kernel's new operations."""
        position = int(line.split(" ")[2]) if line[0] == "w" else self.whole.stored(line)
        if position is not None:
            self.stored.add(position)

    def answer(self, line: str) -> bytes:
        """Return what a question is answered with: `y` and bytes, or `n` where nothing is known.

        Raises:
            ReadError: an element that no input gives. CastsimError: what the kernel does up to there is refused.
        """
        kind, location, *rest = line.split(" ")
        return self._element(location, rest) if kind == "q" else self._page(location, *rest)

    def _element(self, location: str, words: list[str]) -> bytes:
        start, size, what = self.whole.asked(words)
        self.advance()
        buffer = self.buffer()
        if not 0 <= start <= buffer.size - size:
            raise TileError(f"{what}: byte {start} of a buffer of {buffer.size}", span=self.whole.span_of(location))
        return b"y" + buffer[start : start + size].tobytes().ljust(8, b"\0")

    def _page(self, location: str, buffer: str, start: str, offset: str, way: str) -> bytes:
        position, first = int(buffer), int(start)
        whole = self.whole
        name = whole.names[position]
        if position not in self.given and position not in self.stored:
            if way == "w":
                return b"n"
            fmt = whole.elements.get(position)
            size = 1 if fmt is None else element_format(fmt).storage_bits // 8
            unit = "byte" if fmt is None else "element"
            raise ReadError(
                f"the kernel reads {unit} {int(offset) // size} of {name}; no input was given",
                span=whole.span_of(location), legal=(f"--in {name}=FILE.npy",)
            )  # fmt: skip
        if position in self.stored:
            self.advance()
        content = self.held(name)
        if content is None:
            content = self.given[position]
        if way != "w" and not 0 <= int(offset) < content.size:
            raise TileError(
                f"reads byte {offset} of {name}, which has {content.size}: outside the tensor",
                span=whole.span_of(location), legal=(f"--in {name}=FILE.npy of more elements",)
            )  # fmt: skip
        page = np.zeros(PAGE, np.uint8)
        part = content[max(first, 0) : max(first + PAGE, 0)]
        page[max(-first, 0) : max(-first, 0) + part.size] = part
        return b"y" + page.tobytes()


# The child process in which a kernel runs once: its limits, what it sends, what it is answered.

SECONDS = 20
"""Processor time of a kernel; a recording takes milliseconds."""

SILENT_SECONDS = 60
"""Time without a word from a kernel after which it is ended."""

MEMORY = 2 << 30
"""Bytes that a kernel may take."""
_FILES = 1 << 26


def recorded_lines(program: Path, words: Sequence[str], answer: Callable[[str], bytes], most: int) -> Iterator[str]:
    """Run a compiled kernel and yield what it sends, line by line; questions begin with `q` or `p`.

    Raises:
        LimitError: it does not end, or sends more than `most` lines.
        EngineError: it ends otherwise than by returning.
        ReadError: it cannot be started.
    """
    own, others = socket.socketpair()
    number = others.fileno()
    # The shell sets the limits: a function between fork and exec is not safe in a process of several threads.
    limits = f"ulimit -t {SECONDS}; ulimit -d {MEMORY >> 10}; ulimit -f {_FILES >> 9}; ulimit -c 0; exec"
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


_ROUNDS = 8
"""Recordings after which sizes that rest on random values are given up."""

_UNSIZED = 1 << 20
"""Bytes that an input is taken to have, all 0, until its size is known."""

_DTYPES = {"f2": "f16", "f4": "f32", **{f"{kind}{size}": f"{kind}{8 * size}" for kind in "iu" for size in (1, 2, 4, 8)}}


@dataclass(frozen=True, slots=True)
class Request:
    """A kernel and how it is called.

    `args` are its scalar arguments by name (0 for a pointer: the null pointer), `inputs` arrays by name or what `--in`
    takes. `block` of `blocks` and `sub` of `subs` say which core it runs on; without `blocks` a launch of the file says
    how many there are. `folders` and `macros` are the compiler's `-I` and `-D`.
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
    structure: str | None = None
    """The structure of parameters that the host computes."""
    compiled_synchronisation: bool = True
    """Whether the compiler of the kernel adds barriers and flags."""
    limits: Limits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class Dialect:
    """A library that kernels are written against: what makes its nodes, and what is prepared of a kernel's text.

    `prepare` takes the request, the text and whether the chip is an A5.
    """

    maker: type[NodeMaker]
    lockstep: type[Lockstep]
    prepare: Callable[[Request, str, bool], tuple[Request, CppKernel]]


@dataclass(frozen=True, slots=True)
class CppRecording:
    """What a kernel did on one core, as a program whose places are those of the C++ file."""

    request: Request
    text: str
    program: pto.Program
    blocks: int
    """How many cores the kernel was told that there are."""
    elements: Mapping[str, str] = field(default_factory=dict)
    """Element formats of its arguments."""
    extents: Mapping[str, int] = field(default_factory=dict)
    """How many elements of each argument it uses."""
    arrays: Mapping[str, Codes] = field(default_factory=dict)
    """The inputs that it was recorded with, as far as their sizes are known."""
    decisive: bool = False
    """Whether its path rests on values."""
    places: Collection[str] = ()
    """Names of the places of an array of arguments; the program lacks those that nothing is moved from or to."""

    @property
    def of_instructions(self) -> bool:
        """Whether it consists of instructions, among which the recorder adds what the kernel's compiler does."""
        return is_micro(self.program.functions[0])

    @property
    def inputs(self) -> Mapping[str, Codes | str]:
        """The inputs of the program: what was given, of an array of arguments what its places hold."""
        given = self.request.inputs.items()
        arrays = {name: value for name, value in given if name in self.elements or name not in self.places}
        more = {
            name: self.extents[name] - value.size
            for name, value in arrays.items() if not isinstance(value, str) and name in self.extents
        }  # fmt: skip
        return arrays | {name: np.pad(np.ravel(arrays[name]), (0, size)) for name, size in more.items() if size > 0}

    @property
    def source(self) -> Source:
        """The program as castsim loads it."""
        return Source(str(self.request.file), Language.TILES, self.text, program=self.program)

    def pto_text(self) -> str:
        """Return the program as `.pto` text, each statement with its line of the C++ file."""
        lines = print_program(self.program).splitlines()
        nodes = self.program.functions[0].body or ()
        first = next(number for number, line in enumerate(lines) if line.lstrip().startswith("func.func")) + 1
        number = first
        for node in nodes:
            if not isinstance(node, pto.Constant | pto.Return):
                span = node.span
                added = " (added for the compiler)" if getattr(node, "inserted", False) else ""
                lines[number] += f"  // {Path(span.file).name}:{span.line}{added}"
            number += _height(node)
        return f"// recorded by castsim from {self.request.file.name}\n" + "\n".join(lines) + "\n"


def _height(node: pto.Operation) -> int:
    """Return how many lines a node has as text: one with a region has one for its end too."""
    regions = pto.regions_of(node)
    return 1 + sum(1 + sum(map(_height, region)) for region in regions)


@dataclass(slots=True)
class _Core:
    """A compiled kernel being recorded on one core."""

    dialect: Dialect
    request: Request
    kernel: CppKernel
    target: Target
    lines: Lines

    def recorded(self) -> CppRecording:
        """Run it, again with random inputs of the sizes that it asked for.

        Raises:
            ReadError: random inputs decide how many of them there are, without end.
        """
        sizes: dict[str, tuple[str, int]] = {}
        for _ in range(_ROUNDS):
            recording = self._once(inputs_of(self.request, sizes))
            recorded_sizes = sizes_of([recording])
            if (
                not recording.decisive
                or recorded_sizes == sizes
                or not any(map(is_drawn, self.request.inputs.values()))
            ):
                return recording
            sizes = recorded_sizes
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

        def maker() -> NodeMaker:
            record_maker = self.dialect.maker(names, elements, self.lines.span, chip, sizes)
            record_maker.compiled_synchronisation = self.request.compiled_synchronisation
            return record_maker

        data = {names.index(name): _bytes_of(array) for name, array in arrays.items()}
        unsized = [names.index(name) for name in self.request.inputs if name not in arrays]
        data |= dict.fromkeys(unsized, np.zeros(_UNSIZED, np.uint8))
        whole = maker()
        lockstep = self.dialect.lockstep(chip, lowerer_of(self.target), maker, whole, data)
        blocks, decisive = 1, False
        pointers: dict[int, str] = {}

        def answer(line: str) -> bytes:
            nonlocal decisive
            decisive = True
            learn(line)
            return lockstep.answer(line)

        def learn(line: str) -> None:
            """Take the type of an argument that the scalar unit reaches from its input, else from its pointer."""
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
            (function,), (("pto.target_arch", f'"{A5 if self.kernel.a5 else "a3"}"'),), tuple(whole.warnings)
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
                if isinstance(request.inputs.get(name), str) and is_drawn(request.inputs[name])
                else arrays.get(name)
            )
            if array is not None:
                args[f"{name}.shape"] = " ".join(map(str, (array.nbytes, *array.shape)))
        return core + [word for pair in args.items() for word in pair]

    def _refused(self, line: str) -> CastsimError:
        _, location, *words = line.split(" ")
        if words[0] == "missing":
            name = words[1]
            return ReadError(
                f"scalar argument {name} of {self.kernel.entry} needs a value", legal=(f"--arg {name}=VALUE",)
            )
        message = " ".join(words)
        if self.kernel.names[:1] == ("args",) and "outside all arguments" in message:
            message += "; if `args` holds a descriptor, pass it with `--in args=FILE`"
        if location.strip("f") == "":
            return ReadError(f"{self.request.file}: {message}")
        return ReadError(message, span=self.lines.span(location))


def record(dialect: Dialect, request: Request, cores: range | None = None) -> list[CppRecording]:
    """Compile a kernel and record it on one core, or on each of some.

    Raises:
        ReadError: no compiler, what it does not compile, an argument without a value, what castsim cannot follow.
        CastsimError: what the kernel does is refused. LimitError, EngineError: it does not end, or not as it should.
    """
    text = read_bytes(request.file, "program").decode("utf-8-sig", "replace").replace("\r\n", "\n")
    target = request.prepare(choose_target(None, request.target))
    request, kernel = dialect.prepare(request, text, A5 in target.architectures)
    tile_target(target)
    for name in request.inputs:
        if isinstance(request.inputs[name], str) and not is_drawn(str(request.inputs[name])):
            read_input(str(request.inputs[name]), name)  # before anything is compiled
    recordings: list[CppRecording] = []
    with tempfile.TemporaryDirectory(prefix="castsim-cpp-") as folder:
        program = compile_kernel(kernel, Path(folder))
        lines = Lines(program, kernel.file, text, (HEADERS, kernel.library.headers))
        try:
            blocks = list(cores or [request.block])
            while len(recordings) < len(blocks):
                core_request = replace(request, block=blocks[len(recordings)])
                recordings.append(_Core(dialect, core_request, kernel, target, lines).recorded())
                if cores is not None and request.blocks is None:  # a launch of the file has said how many there are
                    blocks = list(range(max(recordings[0].blocks, len(blocks))))
        finally:
            lines.close()
    return recordings


def check_names(request: Request, entry: str, names: Sequence[str]) -> None:
    """Refuse arrays and scalars that are given for no parameter.

    Raises:
        ReadError: one is.
    """
    for option, given in (("--arg", request.args), ("--in", request.inputs)):
        for name, value in given.items():
            if name not in names:
                shown = f"{name}={value}" if isinstance(value, str) else name
                raise ReadError(f"{option} {shown}: {entry} has no such parameter", legal=names)


def record_all(dialect: Dialect, request: Request) -> tuple[list[CppRecording], Mapping[str, Codes]]:
    """Compile a kernel and record it on each core, as many as `blocks` or a launch of the file says.

    Returns:
        The recordings, and the inputs with the sizes that all of them together need.

    Raises:
        CastsimError, EngineError: as `record`.
    """
    recordings = record(dialect, request, range(request.blocks or 1))
    request = replace(recordings[0].request, block=request.block)  # its array of arguments unpacked
    arrays = inputs_of(request, sizes_of(recordings))
    if any(recording.decisive for recording in recordings) and any(
        is_drawn(given) for given in request.inputs.values()
    ):
        recordings = record(dialect, replace(request, inputs=arrays), range(len(recordings)))
    return recordings, arrays


def sizes_of(recordings: Sequence[CppRecording]) -> dict[str, tuple[str, int]]:
    """Return element format and number of elements of the arguments that some recordings use."""
    sizes: dict[str, tuple[str, int]] = {}
    for recording in recordings:
        for name, size in recording.extents.items():
            sizes[name] = recording.elements[name], max(size, sizes.get(name, ("", 0))[1])
    return sizes


def inputs_of(request: Request, sizes: Mapping[str, tuple[str, int]]) -> dict[str, Codes]:
    """Return the inputs as arrays: those of files, and the drawn ones whose sizes are known."""
    arrays: dict[str, Codes] = {}
    for name, given in request.inputs.items():
        if not isinstance(given, str):
            arrays[name] = np.asarray(given)
        elif not is_drawn(given):
            arrays[name] = read_input(given, name)
    uses = {name: ArgumentUse(element_format(kind), elements=size) for name, (kind, size) in sizes.items()}
    texts = {name: str(given) for name, given in request.inputs.items() if is_drawn(given) and name in uses}
    return arrays | make_inputs(texts, uses)


def is_drawn(given: Codes | str) -> bool:
    """Whether an input is drawn by its size, and not given."""
    return isinstance(given, str) and (given == "zeros" or given.startswith("random:"))


def run(
    dialect: Dialect,
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
    """Compile, record and run a C++ kernel; this executes it with the user's rights. Parameters as of `castsim.run`."""

    def prepare(chosen: Target) -> Target:
        return with_options(chosen, dict(options or {}))

    request = Request(
        Path(file), entry, args or {}, inputs or {}, target, prepare, block, blocks,
        folders=tuple(map(Path, folders)), macros=macros
    )  # fmt: skip
    (recording,) = record(dialect, request)
    return run_loaded(
        load(recording.source, target, None, {}, prepare), recording.inputs, timing_only=timing_only, races=races
    )


def _bytes_of(array: Codes) -> NDArray[np.uint8]:
    """Return the bytes of an array, and zeros up to the end of its allocation."""
    codes = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
    return np.pad(codes, (0, padded_bytes(codes.size) - codes.size))
