"""Running kernels of TileLang: arrays bound to parameters, one core or all of them, host code of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, ReadError
from castsim.running import Result, load, run_loaded
from castsim.synchronisation.races import STOP
from castsim.targets import Target
from castsim.tilelang.lowering import Array, Lowered, front_end, lower, placed
from castsim.tilelang.programs import Converted, converted
from castsim.tilelang.statements import Walk
from castsim.tilelang.text import Value

if TYPE_CHECKING:
    from castsim.execution.micro import MicroMemory, VectorUnit

Bytes = NDArray[np.uint8]
ALL = "all"


@dataclass(frozen=True, slots=True)
class FunctionCycles:
    """A vector function of the source: its launches on one core, their cycles, and `latency=` of the source, 0 if none."""

    place: str
    """`FILE:LINE` of the Python source where it is known, else of the program."""
    launches: int
    cycles: int
    latency: int


@dataclass(frozen=True, slots=True)
class KernelRun:
    """A kernel that has been run: outputs by name, in the arrays' shapes, and the result of each core.

    What else is asked of it is answered by the result of the core that took longest.
    """

    name: str
    outputs: Mapping[str, NDArray[Any]]
    results: tuple[Result, ...]
    programs: tuple[Converted, ...]

    @property
    def longest(self) -> int:
        """Which of the results took most cycles."""
        return max(range(len(self.results)), key=lambda number: self.results[number].cycles)

    @property
    def functions(self) -> tuple[FunctionCycles, ...]:
        """The vector functions of that core, by their places in the source."""
        return function_cycles(self.results[self.longest], self.programs[self.longest])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.results[self.longest], name)


class _Written:
    """Keeps the memory of a run, which marks what was stored."""

    memory: MicroMemory | None = None

    def micro(self, unit: VectorUnit, memory: MicroMemory) -> VectorUnit:
        """Take the memory."""
        self.memory = memory
        return unit

    def finish(self) -> None:
        """Nothing is left to do."""


class _ByName(dict[str, int]):
    """Values of variables, found by the variables' names."""

    def __contains__(self, variable: object) -> bool:
        return super().__contains__(str(getattr(variable, "name", variable)))

    def __getitem__(self, variable: Any) -> int:
        return super().__getitem__(str(getattr(variable, "name", variable)))


@dataclass(slots=True)
class _Bound:
    """The arrays of a call: each as its bytes in memory, with shape and strides in elements."""

    lowered: Lowered
    dims: dict[str, int]
    given: dict[str, tuple[Bytes, tuple[int, ...], Any]]

    def number(self, expression: Any) -> int | None:
        """Return what a shape or stride comes to, None if it rests on what is not known."""
        walk = Walk({}, {}, 0, fast_math=False)
        walk.variables = _ByName(self.dims)
        try:
            found = walk.number(expression)
        except IllegalError:
            return None
        return None if isinstance(found, Value) else int(found)


def run(
    prim: Any,
    *,
    core: int | str = 0,
    dims: Mapping[str, int] | None = None,
    schedule: bool = True,
    pass_configs: Mapping[str, Any] | None = None,
    target: str | Target | None = None,
    timing_only: bool = False,
    races: str = STOP,
    engine: str | None = None,
    **arrays: Any,
) -> KernelRun:
    """Run a kernel on one core, or with `core="all"` on each.

    Args:
        prim: the function, as `factory.get_tir(...)` returns it.
        core: number of a core; with "all" each core runs by itself, and what they stored is put together.
        dims: values of dynamic dimensions and scalars that no array's shape gives.
        schedule: as on the device; False: in the order of the source, synchronised by castsim.
        pass_configs: as `tilelang.jit` takes them.
        target: a description that is like A5; None: A5.
        timing_only: compute no values.
        races: as `castsim.run`.
        engine: as `castsim.run`.
        arrays: arrays of NumPy, or tensors of PyTorch on the CPU, by parameter; outputs may be left out.

    Raises:
        ReadError: arrays, dimensions or a core that do not fit; TileLang refuses the kernel.
        IllegalError: a construct that castsim does not know; two cores store to the same bytes.
        CastsimError, EngineError: as `castsim.run`.
    """
    lowered = lower(prim, schedule, pass_configs)
    unknown = [name for name in arrays if name not in _names(lowered)]
    if unknown:
        raise ReadError(f"{lowered.name} has no array {unknown[0]}", legal=_names(lowered))
    given = {name: value for name, value in arrays.items() if value is not None}
    return _run(lowered, given, core, dims or {}, schedule, target, timing_only, races, engine)


def _names(lowered: Lowered) -> list[str]:
    return [each.name for each in lowered.arrays if isinstance(each, Array)]


def _run(
    lowered: Lowered, given: Mapping[str, Any], core: int | str, dims: Mapping[str, int], schedule: bool,
    target: str | Target | None = None, timing_only: bool = False, races: str = STOP, engine: str | None = None,
) -> KernelRun:  # fmt: skip
    if core != ALL and not isinstance(core, int):
        raise ReadError(f"core {core!r} is none", legal=("0", '"all"'))
    bound = _bind(lowered, given, dims)
    known = {str(each.name) for each in lowered.parameters}
    used = {name: value for name, value in bound.dims.items() if name in known}
    results, programs, stored = [], [], []
    for number in range(lowered.cores) if core == ALL else (int(core),):
        program = converted(lowered, number, used)
        loaded = load(program.source(f"{lowered.name}.pto"), target, None, {}, sync="program" if schedule else "insert")
        inputs = {name: _codes(data, loaded, name) for name, (data, _, _) in bound.given.items() if name in known}
        written = _Written()
        results.append(
            run_loaded(loaded, {} if timing_only else inputs, timing_only=timing_only, races=races, engine=engine,
                       watch=None if timing_only else written)  # type: ignore[arg-type]  # fmt: skip
        )
        programs.append(program)
        stored.append({} if written.memory is None else {
            name: (written.memory.arguments[name], marks) for name, marks in written.memory.written.items()})  # fmt: skip
    return KernelRun(lowered.name, _merged(bound, stored), tuple(results), tuple(programs))


def _codes(data: Bytes, loaded: Any, name: str) -> NDArray[Any]:
    """Return bytes as the codes of an argument's elements."""
    width = loaded.arguments[name].format.storage_bits // 8
    return data[: data.size // width * width].view(f"<u{width}")


def _merged(bound: _Bound, stored: Sequence[Mapping[str, tuple[Bytes, NDArray[np.bool_]]]]) -> dict[str, NDArray[Any]]:
    """Return the outputs, of all cores together.

    Raises:
        IllegalError: two cores store to the same bytes.
    """
    outputs: dict[str, NDArray[Any]] = {}
    for array in bound.lowered.arrays:
        if not isinstance(array, Array) or not any(array.name in each for each in stored):
            continue
        shape, strides, size = _extent(bound, array)
        data = np.zeros(size * _width(array), np.uint8)
        if array.name in bound.given:
            own = bound.given[array.name][0]
            data[: own.size] = own[: data.size]
        seen = np.zeros(data.size, np.bool_)
        for number, each in enumerate(stored):
            if array.name not in each:
                continue
            found, marks = each[array.name]
            if marks.size > data.size and marks[data.size :].any():
                raise IllegalError(f"{bound.lowered.name}: core {number} stores beyond the end of {array.name}")
            marks = marks[: data.size]
            if (seen[: marks.size] & marks).any():
                raise IllegalError(f"{bound.lowered.name}: core {number} stores to {array.name} where another core does")
            seen[: marks.size] |= marks
            data[: marks.size][marks] = found[: marks.size][marks]
        kind = _dtype(array)
        flat = data[: data.size // kind.itemsize * kind.itemsize].view(kind)
        steps = tuple(step * kind.itemsize for step in strides)
        outputs[array.name] = np.lib.stride_tricks.as_strided(flat, shape, steps) if flat.size else flat.reshape(shape)
    return outputs


def _width(array: Array) -> int:
    return _dtype(array).itemsize


def _dtype(array: Array) -> np.dtype[Any]:
    """Return the type of an array; two elements of 4 bits are a byte."""
    import ml_dtypes  # noqa: PLC0415 - as the rest, once a kernel runs

    word = array.dtype
    if word.startswith("float4"):
        return np.dtype(np.uint8)
    word = "float8_e4m3fn" if word == "float8_e4m3" else word
    return np.dtype(getattr(ml_dtypes, word) if hasattr(ml_dtypes, word) else word)


def _extent(bound: _Bound, array: Array) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return shape, strides and number of elements of an array.

    Raises:
        ReadError: one of them rests on a dimension that nothing gives.
    """
    if array.name in bound.given:
        shape, steps = bound.given[array.name][1:]
        return shape, steps, _reach(shape, steps)
    sizes = [bound.number(each) for each in array.shape]
    steps = [bound.number(each) for each in array.strides]
    for size, expression in zip(sizes, array.shape, strict=True):
        if size is None:
            raise ReadError(f"{array.name}: dimension {expression} needs a value", legal=(f"dims={{'{expression}': N}}",))
    shape = tuple(size for size in sizes if size is not None)
    packs = array.dtype.startswith("float4")
    if packs:
        shape = (*shape[:-1], -(-shape[-1] // 2))
    plain = _plain(shape)
    if not array.strides:
        return shape, plain, _reach(shape, plain)
    known = tuple(own if step is None else step for step, own in zip(steps, plain, strict=True))
    if packs:
        known = (*(step // 2 for step in known[:-1]), 1)
    return shape, known, _reach(shape, known)


def _plain(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(np.prod(shape[at + 1 :], dtype=np.int64)) for at in range(len(shape)))


def _reach(shape: Sequence[int], strides: Sequence[int]) -> int:
    return 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def _bind(lowered: Lowered, given: Mapping[str, Any], dims: Mapping[str, int]) -> _Bound:
    """Bind arrays to parameters, and the names in their shapes and strides to numbers.

    Raises:
        ReadError: shapes contradict each other or what the kernel is made for.
    """
    bound = _Bound(lowered, {name: int(value) for name, value in dims.items()}, {})
    for array in lowered.arrays:
        if not isinstance(array, Array) or array.name not in given:
            continue
        data, shape, strides = _memory_of(given[array.name], array.name)
        wide = 2 if array.dtype.startswith("float4") else 1
        seen = (*shape[:-1], shape[-1] * wide) if shape else shape
        if len(seen) != len(array.shape):
            raise ReadError(f"{array.name} has {len(seen)} dimensions; {lowered.name} takes {len(array.shape)}")
        for expression, size in zip(array.shape, seen, strict=True):
            known = bound.number(expression)
            if known is None and type(expression).__name__ == "Var":
                bound.dims[str(expression.name)] = size
            elif known is not None and known != size:
                raise ReadError(f"{array.name} has {size} where {lowered.name} takes {known} ({expression})")
        for expression, step in zip(array.strides, strides, strict=False):
            if type(expression).__name__ == "Var" and str(expression.name) not in bound.dims:
                bound.dims[str(expression.name)] = step * wide
        width = _width(array)
        if data.size and data.size != _reach(shape, strides) * width:
            raise ReadError(f"{array.name} has elements of {data.size // max(1, _reach(shape, strides))} bytes, not of {width}")
        bound.given[array.name] = data, shape, strides
    for array in lowered.arrays:  # strides of arrays that are left out are those without gaps
        if isinstance(array, Array) and array.name not in given:
            for expression, step in zip(array.strides, _plain([bound.number(e) or 0 for e in array.shape]), strict=False):
                if type(expression).__name__ == "Var":
                    bound.dims.setdefault(str(expression.name), step)
    return bound


def _memory_of(value: Any, name: str) -> tuple[Bytes, tuple[int, ...], tuple[int, ...]]:
    """Return the bytes from an array's first element to its last, its shape, and its strides in elements."""
    if hasattr(value, "untyped_storage"):
        torch = import_module("torch")
        if value.device.type != "cpu":
            raise ReadError(f"{name} is on {value.device}; castsim takes tensors on the CPU")
        shape, strides = tuple(value.shape), tuple(value.stride())
        flat = value.detach().as_strided((_reach(shape, strides),), (1,), value.storage_offset())
        return flat.view(torch.uint8).numpy(), shape, strides
    array = np.asarray(value)
    strides = tuple(step // array.itemsize for step in array.strides)
    if any(step < 0 for step in strides):
        array = np.ascontiguousarray(array)
        strides = _plain(array.shape)
    flat = np.lib.stride_tricks.as_strided(array, (_reach(array.shape, strides),), (array.itemsize,))
    return np.frombuffer(flat.tobytes(), np.uint8), array.shape, strides


def function_cycles(result: Result, program: Converted) -> tuple[FunctionCycles, ...]:
    """Return the vector functions of a run, by the places where they begin, with the cycles of their launches."""
    if result.untimed:
        return ()
    file = result.loaded.file
    heads = [number for number, line in enumerate(program.lines) if line.endswith("pto.vecscope {")]
    own = [program.places[number] or f"{file}:{number + 1}" for number in heads]
    latencies = {place: latency for place, (_, latency) in zip(own, program.functions, strict=True)}
    found: dict[str, list[int]] = {place: [] for place in own}
    instructions = result.loaded.executed.tree.instructions
    for each in result.timing.operations:
        if each.pipe == "V" and each.name.startswith("vecscope"):
            span = instructions[result.timing.executions[each.execution].instruction].span
            found[f"{span.file}:{span.line}"].append(each.end - each.start)
    return tuple(FunctionCycles(place, len(spent), sum(spent), latencies[place]) for place, spent in found.items())


@contextmanager
def simulated(cores: int | str = ALL, schedule: bool = True, races: str = STOP) -> Iterator[list[KernelRun]]:
    """Simulate the kernels that are called meanwhile, on tensors of the CPU; the list takes in each run.

    Factories decorated by `tilelang.jit` are built and lowered, never compiled; kernels write to the tensors that they
    are given, and return those that they make.

    Raises:
        CastsimError, EngineError: as `run`, where the kernel is called.
    """
    front_end("simulating kernels of TileLang")
    jit = import_module("tilelang.jit").JITImpl
    log: list[KernelRun] = []
    kernels: dict[Any, Callable[..., Any]] = {}

    def call(own: Any, *args: Any, **kwargs: Any) -> Any:
        with placed():
            own.initialize_jit_mode(*args, **kwargs)
            key, tensors = own.func.parse_args(*args, **kwargs)
            if (id(own), key) not in kernels:
                prim = own.get_tir(*args, **kwargs)
                outputs = own.out_idx
                if prim.attrs and "tilelang_out_idx" in prim.attrs:
                    outputs = [int(each) for each in prim.attrs["tilelang_out_idx"]]
                lowered = lower(prim, schedule, own.pass_configs)
                outputs = [outputs] if isinstance(outputs, int) else list(outputs or ())
                kernels[id(own), key] = _kernel(lowered, outputs, cores, schedule, races, log)
        kernel = kernels[id(own), key]
        return kernel(*tensors.values()) if own.mode == "eager" else kernel

    real = jit.__call__
    jit.__call__ = call
    try:
        yield log
    finally:
        jit.__call__ = real


def _kernel(
    lowered: Lowered, outputs: Sequence[int], cores: int | str, schedule: bool, races: str, log: list[KernelRun]
) -> Callable[..., Any]:
    """Return what stands for a compiled kernel."""
    made = {position % len(lowered.arrays) for position in outputs}

    def kernel(*args: Any, **_: Any) -> Any:
        torch = import_module("torch")
        taken = iter(args)
        dims: dict[str, int] = {}
        given: dict[str, Any] = {}
        for position, parameter in enumerate(lowered.arrays):
            value = None if position in made else next(taken, None)
            if isinstance(parameter, str):
                dims[parameter] = value
            elif value is not None:
                given[parameter.name] = value
        bound = _bind(lowered, given, dims)
        fresh = []
        for position in sorted(made):
            array = lowered.arrays[position]
            assert isinstance(array, Array)
            given[array.name] = torch.empty(_extent(bound, array)[0], dtype=getattr(torch, array.dtype))
            fresh.append(given[array.name])
        found = _run(lowered, given, cores, dims, schedule, races=races)
        for name, array in found.outputs.items():
            data = _memory_of(given[name], name)[0]
            whole, _, _ = _memory_of(array, name)
            data[...] = whole
        log.append(found)
        return None if not fresh else fresh[0] if len(fresh) == 1 else fresh

    return kernel
