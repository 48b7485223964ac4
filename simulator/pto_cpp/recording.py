"""Recording: from a C++ file to a program, by way of a compiler and one run on the host."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.execution.entry_and_target import choose_target
from castsim.execution.inputs import make_inputs, read_input
from castsim.execution.limits import DEFAULT_LIMITS, Limits
from castsim.execution.walk import ArgumentUse
from castsim.isa import pto
from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.pto.packed import element_format
from castsim.isa.reading import read_bytes
from castsim.isa.sources import CPP_SUFFIXES, Language, Source
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

_ROUNDS = 8
"""Recordings after which sizes that rest on random values are given up."""

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
        sizes: dict[int, tuple[str, int]] = {}
        for _ in range(_ROUNDS):
            arrays = self._arrays(sizes)
            recording, found, decisive = self._once(arrays)
            drawn = {n for n, text in self.request.inputs.items() if isinstance(text, str) and n not in self._files()}
            known = {position: size for position, size in found.items() if self.names[position] in drawn}
            if not decisive or not drawn or known == sizes:
                return recording
            sizes = known
        raise ReadError(
            f"{self.request.file}: sizes of random inputs depend on their values", legal=("--in NAME=FILE.npy",)
        )

    def _files(self) -> list[str]:
        def is_file(given: Codes | str) -> bool:
            return not isinstance(given, str) or not (given == "zeros" or given.startswith("random:"))

        return [name for name, given in self.request.inputs.items() if is_file(given)]

    def _arrays(self, sizes: Mapping[int, tuple[str, int]]) -> dict[int, Codes]:
        """Return the inputs that are known, by position."""
        whole = self._files()
        arrays = {}
        for name in whole:
            given = self.request.inputs[name]
            arrays[self.names.index(name)] = read_input(given, name) if isinstance(given, str) else np.asarray(given)
        uses = {}
        for position, (element, size) in sorted(sizes.items()):
            uses[self.names[position]] = ArgumentUse(element_format(element), elements=size)
        texts = {n: text for n, text in self.request.inputs.items() if n in uses and isinstance(text, str)}
        return arrays | {self.names.index(name): array for name, array in make_inputs(texts, uses).items()}

    def _once(self, arrays: Mapping[int, Codes]) -> tuple[Recording, dict[int, tuple[str, int]], bool]:
        """Run it once; also return the element types and sizes met, and whether its path rests on values."""
        given_types = {
            position: _DTYPES[array.dtype.str[1:]] for position, array in arrays.items() if array.dtype.str[1:] in _DTYPES
        }
        elements: dict[int, str] = {}
        sizes = {self.names[position]: int(array.size) for position, array in arrays.items()}
        a5 = _is_a5(self.target)

        chip = tile_target(self.target)

        def maker() -> Maker:
            return Maker(self.names, elements, self.lines.span, a5, chip.memories["ub"].capacity_bytes, sizes)

        unsized = [self.names.index(n) for n in self.request.inputs if self.names.index(n) not in arrays]
        data = {position: _bytes_of(array) for position, array in arrays.items()}
        data |= dict.fromkeys(unsized, np.zeros(1 << 20, np.uint8))
        lockstep = Lockstep(chip, lowerer_of(self.target), maker, data)
        whole = maker()
        blocks, pointers, decisive = 1, set(), False

        def answer(line: str) -> bytes:
            nonlocal decisive
            decisive = True
            if line[0] == "p":
                for position, kind in given_types.items():
                    elements.setdefault(position, kind)
            return lockstep.answer(line)

        most = self.request.limits.max_statements
        for line in recorded_lines(self.program, self._words(), answer, most):
            kind = line[0]
            if kind == "b":
                pointers.add(int(line[2:]))
            elif kind == "z":
                blocks = int(line[2:])
            elif kind == "E":
                raise self._refused(line)
            else:
                whole.take(line)
                lockstep.note(line)
        for position in pointers & set(arrays):
            if position in given_types:
                elements.setdefault(position, given_types[position])
        name = re.sub(r"\W+", "_", self.entry.rpartition("::")[2]).strip("_")
        function = whole.function(name, sorted(elements))
        program = pto.Program((function,), (("pto.target_arch", f'"{"a5" if a5 else "a3"}"'),), tuple(whole.warnings))
        found = {position: (elements[position], size) for position, size in whole.ends.items()}
        return Recording(self.request, self.text, program, blocks), found, decisive

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
        for name in given:
            if name not in names:
                raise ReadError(f"{option} {name}: {entry} has no such parameter", legal=names)
    target = request.prepare(choose_target(None, request.target))
    tile_target(target)
    file = request.file.resolve()
    kernel = Kernel(file, for_host(text_of_entry), entry, names, request.folders, request.macros, _is_a5(target))
    found = []
    with tempfile.TemporaryDirectory(prefix="castsim-cpp-") as folder:
        program = compile_kernel(replace(kernel, folders=tuple(p.resolve() for p in kernel.folders)), Path(folder))
        lines = Lines(program, file, text)
        try:
            for block in range(request.block, request.block + 1) if cores is None else cores:
                one = replace(request, block=block)
                found.append(_Core(one, program, entry, names, target, lines, text).recorded())
                if cores is not None and block == 0 and request.blocks is None and found[0].blocks > len(cores):
                    cores = range(found[0].blocks)
        finally:
            lines.close()
    return found


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
        folders=tuple(map(Path, folders)), macros=macros,
    )  # fmt: skip
    (recording,) = record(request)
    return run_loaded(load(recording.source, target, None, {}, prepare), request.inputs, timing_only=timing_only, races=races)


def is_cpp(program: str) -> bool:
    """Whether a name is that of a C++ file."""
    return program.endswith(CPP_SUFFIXES)


def _is_a5(target: Target) -> bool:
    return target.mechanism == "vector-function"


def _bytes_of(array: Codes) -> NDArray[np.uint8]:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _word(value: float) -> str:
    return str(int(value)) if isinstance(value, bool) else repr(value)
