"""Recording: from a C++ file to a program, by way of a compiler and one run on the host."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.execution.entry_and_target import choose_target
from castsim.execution.inputs import make_inputs, read_input
from castsim.execution.interpreter import ArgumentUse
from castsim.execution.limits import DEFAULT_LIMITS, Limits
from castsim.isa import pto
from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.pto.packed import element_format
from castsim.isa.reading import read_bytes
from castsim.isa.sources import Language, Source
from castsim.machines.mechanisms import lowerer_of, tile_target
from castsim.pto_cpp.compiling import Kernel, Lines, compile_kernel
from castsim.pto_cpp.kernel_process import recorded_lines
from castsim.pto_cpp.kernel_text import candidates, continued, entry_of, for_host
from castsim.pto_cpp.lockstep import Lockstep
from castsim.pto_cpp.program_making import Maker
from castsim.running import Result, load, run_loaded
from castsim.synchronisation.races import REPORT
from castsim.targets import Target
from castsim.targets.options import with_options

_A5 = "a5"
"""The architecture whose kernels are compiled for vector functions; others have strided repeats."""

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
    limits: Limits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class Recording:
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

    @property
    def source(self) -> Source:
        """The program as castsim loads it."""
        return Source(str(self.request.file), Language.TILES, self.text, program=self.program)

    def pto_text(self) -> str:
        """Return the program as `.pto` text, each statement with its line of the C++ file."""
        lines = pto.print_program(self.program).splitlines()
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
    program: Path
    entry: str
    names: tuple[str, ...]
    target: Target
    lines: Lines
    text: str

    def recorded(self) -> Recording:
        """Run it, again with random inputs of the sizes that it asked for.

        Raises:
            ReadError: random inputs decide how many of them there are, without end.
        """
        sizes: dict[str, tuple[str, int]] = {}
        for _ in range(_ROUNDS):
            recording = self._once(inputs_of(self.request, sizes))
            known = sizes_of([recording])
            if not recording.decisive or known == sizes or not any(map(_is_drawn, self.request.inputs.values())):
                return recording
            sizes = known
        raise ReadError(
            f"{self.request.file}: sizes of random inputs depend on their values", legal=("--in NAME=FILE.npy",)
        )

    def _once(self, arrays: Mapping[str, Codes]) -> Recording:
        """Run it once."""
        kinds = {self.names.index(name): array.dtype.str[1:] for name, array in arrays.items()}
        given_types = {position: _DTYPES[kind] for position, kind in kinds.items() if kind in _DTYPES}
        elements: dict[int, str] = {}
        sizes = {name: int(array.size) for name, array in arrays.items()}
        a5, chip = _is_a5(self.target), tile_target(self.target)

        def maker() -> Maker:
            capacity = chip.memories["ub"].capacity_bytes
            return Maker(self.names, elements, self.lines.span, a5, capacity, sizes)

        data = {self.names.index(name): _bytes_of(array) for name, array in arrays.items()}
        unsized = [self.names.index(name) for name in self.request.inputs if name not in arrays]
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
            """Take the type of an argument that the scalar unit reaches from its input, else from its pointer."""
            position = int(line.split(" ")[2]) if line[0] in "pw" else -1
            if pointers.get(position):
                elements.setdefault(position, pointers[position])

        for line in recorded_lines(self.program, self._words(), answer, self.request.limits.max_statements):
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
        name = re.sub(r"\W+", "_", self.entry.rpartition("::")[2]).strip("_")
        function = whole.function(name, sorted(elements))
        program = pto.Program((function,), (("pto.target_arch", f'"{_A5 if a5 else "a3"}"'),), tuple(whole.warnings))
        return Recording(
            self.request, self.text, program, blocks, {self.names[p]: kind for p, kind in elements.items()},
            {self.names[p]: size for p, size in whole.ends.items()}, arrays, decisive
        )  # fmt: skip

    def _words(self) -> list[str]:
        request = self.request
        core = [str(request.block), str(request.blocks or 0), str(request.sub), str(request.subs)]
        return core + [word for name, value in request.args.items() for word in (name, _word(value))]

    def _refused(self, line: str) -> CastsimError:
        _, place, *words = line.split(" ")
        if words[0] == "missing":
            name = words[1]
            return ReadError(f"scalar argument {name} of {self.entry} needs a value", legal=(f"--arg {name}=VALUE",))
        message = " ".join(words)
        if place.strip("f") == "":
            return ReadError(f"{self.request.file}: {message}")
        return ReadError(message, span=self.lines.span(place))


def record(request: Request, cores: range | None = None) -> list[Recording]:
    """Compile a kernel and record it on one core, or on each of some.

    Raises:
        ReadError: no compiler, what it does not compile, an argument without a value, what castsim cannot follow.
        CastsimError: what the kernel does is refused. LimitError, EngineError: it does not end, or not as it should.
    """
    text = read_bytes(request.file, "program").decode("utf-8", "replace").replace("\r\n", "\n")
    text_of_entry = continued(text)
    entry, function = entry_of(candidates(text_of_entry), request.entry, str(request.file))
    names = () if function is None else function.parameters
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
    kernel = Kernel(file, for_host(text_of_entry), entry, names, request.folders, request.macros, _is_a5(target))
    found: list[Recording] = []
    with tempfile.TemporaryDirectory(prefix="castsim-cpp-") as folder:
        program = compile_kernel(replace(kernel, folders=tuple(p.resolve() for p in kernel.folders)), Path(folder))
        lines = Lines(program, file, text)
        try:
            blocks = list(cores or [request.block])
            while len(found) < len(blocks):
                one = replace(request, block=blocks[len(found)])
                found.append(_Core(one, program, entry, names, target, lines, text).recorded())
                if cores is not None and request.blocks is None:  # a launch of the file has said how many there are
                    blocks = list(range(max(found[0].blocks, len(blocks))))
        finally:
            lines.close()
    return found


def record_all(request: Request) -> tuple[list[Recording], Mapping[str, Codes]]:
    """Compile a kernel and record it on each core, as many as `blocks` or a launch of the file says.

    Returns:
        The recordings, and the inputs with the sizes that all of them together need.

    Raises:
        CastsimError, EngineError: as `record`.
    """
    recordings = record(request, range(request.blocks or 1))
    arrays = inputs_of(request, sizes_of(recordings))
    if any(each.decisive for each in recordings) and any(_is_drawn(given) for given in request.inputs.values()):
        recordings = record(replace(request, inputs=arrays), range(len(recordings)))
    return recordings, arrays


def sizes_of(recordings: Sequence[Recording]) -> dict[str, tuple[str, int]]:
    """Return element format and number of elements of the arguments that some recordings use."""
    found: dict[str, tuple[str, int]] = {}
    for each in recordings:
        for name, size in each.extents.items():
            found[name] = each.elements[name], max(size, found.get(name, ("", 0))[1])
    return found


def inputs_of(request: Request, sizes: Mapping[str, tuple[str, int]]) -> dict[str, Codes]:
    """Return the inputs as arrays: those of files, and the drawn ones whose sizes are known."""
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
    """Compile, record and run a C++ kernel; this executes it with the user's rights. Parameters as of `castsim.run`."""

    def prepare(chosen: Target) -> Target:
        return with_options(chosen, dict(options or {}))

    request = Request(
        Path(file), entry, args or {}, inputs or {}, target, prepare, block, blocks,
        folders=tuple(map(Path, folders)), macros=macros
    )  # fmt: skip
    (recording,) = record(request)
    return run_loaded(
        load(recording.source, target, None, {}, prepare), request.inputs, timing_only=timing_only, races=races
    )


def _is_a5(target: Target) -> bool:
    return _A5 in target.architectures


def _bytes_of(array: Codes) -> NDArray[np.uint8]:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _word(value: float) -> str:
    return str(int(value)) if isinstance(value, bool) else repr(value)
