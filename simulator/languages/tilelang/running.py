"""Runs of TileLang kernels: arrays bound to parameters, one core or all of them, the user's own host code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, ReadError
from castsim.languages.tilelang.programs import (
    BoundArrays,
    Bytes,
    LoweredKernel,
    TileArray,
    TirProgram,
    bind,
    converted,
    dtype_of,
    extent_of,
    extents_of,
    front_end,
    lower,
    memory_of,
    noted_places,
    placed,
    shaped,
    used_numbers,
)
from castsim.languages.tilelang.statements import POINTED
from castsim.languages.tilelang.threads import Meeting
from castsim.running.program_loading import load
from castsim.running.program_runs import Result, run_loaded
from castsim.running.synchronisation.race_findings import STOP
from castsim.targets.loader import Target, load_target

if TYPE_CHECKING:
    from castsim.execution.interpreter.vector_unit import MicroMemory, VectorUnit

ALL = "all"


@dataclass(frozen=True, slots=True)
class FunctionCycles:
    """A vector function of the source: its launches on one core, their cycles, and its `latency=`, 0 if none."""

    place: str
    """`FILE:LINE` of the Python source if known, else of the program."""
    launches: int
    cycles: int
    latency: int


@dataclass(frozen=True, slots=True)
class CoreRuns:
    """The result of a kernel's run: outputs by name, in the arrays' shapes, and the result of each core.

    Other attributes are those of the result of the slowest core.
    """

    name: str
    outputs: Mapping[str, Any]
    """Arrays; for tables of pointers lists of arrays, if one of the targets was written."""
    results: tuple[Result, ...]
    programs: tuple[TirProgram, ...]

    @property
    def longest(self) -> int:
        """Return the result with most cycles: one with unknown cycles, if there is any."""
        cycles = [inf if result.untimed else result.cycles for result in self.results]
        return cycles.index(max(cycles))

    @property
    def functions(self) -> tuple[FunctionCycles, ...]:
        """The vector functions of that core, by their places in the source."""
        return function_cycles(self.results[self.longest], self.programs[self.longest])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.results[self.longest], name)


class _Written:
    """Keeps the memory of a run, in which stored bytes are marked."""

    memory: MicroMemory | None = None

    def micro(self, unit: VectorUnit, memory: MicroMemory) -> VectorUnit:
        """Take the memory."""
        self.memory = memory
        return unit

    def finish(self) -> None:
        """Do nothing."""

    def stores(self) -> dict[str, tuple[Bytes, NDArray[np.bool_]]]:
        """Return the bytes of arguments that were stored to, and their marks."""
        memory = self.memory
        return {} if memory is None else {name: (memory.arguments[name], at) for name, at in memory.written.items()}


def run(
    prim: Any,
    *,
    core: int | str = 0,
    dims: Mapping[str, float] | None = None,
    schedule: bool = True,
    pass_configs: Mapping[str, Any] | None = None,
    target: str | Target | None = None,
    timing_only: bool = False,
    races: str = STOP,
    engine: str | None = None,
    **arrays: Any,
) -> CoreRuns:
    """Run a kernel on one core, or with `core="all"` on each.

    Args:
        prim: the function, as returned by `factory.get_tir(...)`.
        core: number of a core; with "all" each core runs separately, and their stores are combined.
        dims: values of dynamic dimensions and scalars that no array's shape gives.
        schedule: as on the device; False: in the order of the source, synchronised by castsim.
        pass_configs: see `tilelang.jit`.
        target: a description that is like A5; None: A5.
        timing_only: compute no values.
        races: see `castsim.run`.
        engine: see `castsim.run`.
        arrays: arrays of NumPy, or tensors of PyTorch on the CPU, by parameter; outputs may be omitted.

    Raises:
        ReadError: arrays, dimensions or a core do not fit, or TileLang rejects the kernel.
        IllegalError: castsim does not know a construct, or two cores store to the same bytes.
        CastsimError, EngineError: see `castsim.run`.
    """
    lowered = lower(prim, schedule, pass_configs)
    given = {name: value for name, value in arrays.items() if value is not None}
    return run_lowered(lowered, given, core, dims or {}, target, timing_only, races, engine)


def run_lowered(
    lowered: LoweredKernel, given: Mapping[str, Any], core: int | str, dims: Mapping[str, float],
    target: str | Path | Target | None = None, timing_only: bool = False, races: str = STOP, engine: str | None = None,
) -> CoreRuns:  # fmt: skip
    """Run a lowered kernel; arguments and errors: see `run`."""
    if core != ALL and not isinstance(core, int):
        raise ReadError(f"core {core!r} does not exist", legal=("0", '"all"'))
    bound = bind(lowered, given, dims)
    used, extents = used_numbers(bound), extents_of(bound)
    meeting = Meeting(range(lowered.cores) if core == ALL else range(int(core), int(core) + 1), lowered.cores)
    while True:
        results, programs, stored = [], [], []
        state = {name: data for name, (data, _, _) in bound.given.items()}
        for number in meeting.cores:
            program = converted(lowered, number, used, extents, meeting)
            loaded = load(program.source(), target, None, {})
            inputs = {name: _codes(data, loaded, name) for name, data in state.items() if name in loaded.arguments}
            written = _Written()
            results.append(
                run_loaded(
                    loaded,
                    {} if timing_only else inputs,
                    timing_only=timing_only,
                    races=races,
                    engine=engine,
                    watch=None if timing_only else cast(Any, written),
                )
            )
            programs.append(program)
            stored.append(written.stores())
            state |= {name: stored[-1][name][0] for name in program.atomics}
        if timing_only or not meeting.goes_on():
            break
    return CoreRuns(lowered.name, _merged(bound, stored, programs), tuple(results), tuple(programs))


def program_for(lowered: LoweredKernel, core: int, given: Mapping[str, Any], dims: Mapping[str, float]) -> TirProgram:
    """Return a kernel as the program of a core, for known arrays and the other dimensions.

    Raises:
        CastsimError: see `run`.
    """
    bound = bind(lowered, given, dims)
    return converted(lowered, core, used_numbers(bound), extents_of(bound))


def _codes(data: Bytes, loaded: Any, name: str) -> NDArray[Any]:
    """Return bytes as the codes of an argument's elements."""
    kind = loaded.arguments[name].format
    width = kind.storage_bits // 8
    return data[: data.size // width * width].view(f"<{'i' if kind.name[0] == 'i' else 'u'}{width}")


def _merged(
    bound: BoundArrays, stored: Sequence[Mapping[str, tuple[Bytes, NDArray[np.bool_]]]], programs: Sequence[TirProgram]
) -> dict[str, Any]:
    """Return the outputs of all cores together; atomically changed ones include the changes of earlier cores.

    Raises:
        IllegalError: two cores store to the same bytes.
    """
    outputs: dict[str, Any] = {}
    for array in (*bound.lowered.arrays, TileArray(POINTED, (), (), "uint8")):
        if not isinstance(array, TileArray) or not any(array.name in result for result in stored):
            continue
        shape, strides, size = extent_of(bound, array)
        data = np.zeros(size * dtype_of(array).itemsize, np.uint8)
        if array.name in bound.given:
            own = bound.given[array.name][0]
            data[: own.size] = own[: data.size]
        seen = np.zeros(data.size, np.bool_)
        for number, result in enumerate(stored):
            if array.name not in result:
                continue
            values, marks = result[array.name]
            if marks.size > data.size and marks[data.size :].any():
                raise IllegalError(f"{bound.lowered.name}: core {number} stores past the end of {array.name}")
            marks = marks[: data.size]
            atomic = programs[number].atomics.get(array.name, np.zeros(marks.size, np.bool_))[: marks.size]
            if (seen[: marks.size] & marks & ~atomic).any():
                raise IllegalError(f"{bound.lowered.name}: core {number} stores to {array.name} where another does")
            seen[: marks.size] |= marks
            data[: marks.size][marks] = values[: marks.size][marks]
        if array.name == POINTED:
            changed = bound.pointed.changed(data)
            outputs |= {name: [changed[at] for at in places] for name, places in bound.tables.items()}
            continue
        outputs[array.name] = shaped(data, dtype_of(array), shape, strides)
    return outputs


def function_cycles(result: Result, program: TirProgram) -> tuple[FunctionCycles, ...]:
    """Return the vector functions of a run, by the places where they begin, with the cycles of their launches."""
    if result.untimed:
        return ()
    file = result.loaded.file
    heads = [number for number, line in enumerate(program.lines) if line.endswith("pto.vecscope {")]
    own = [program.places[number] or f"{file}:{number + 1}" for number in heads]
    latencies = {place_name: latency for place_name, (_, latency) in zip(own, program.functions, strict=True)}
    spent_cycles: dict[str, list[int]] = {place_name: [] for place_name in own}
    instructions = result.loaded.executed.tree.instructions
    for operation in result.timing.operations:
        if operation.pipe == "V" and operation.name.startswith("vecscope"):
            span = instructions[result.timing.executions[operation.execution].instruction].span
            spent_cycles[f"{span.file}:{span.line}"].append(operation.end - operation.start)
    return tuple(
        FunctionCycles(place_name, len(spent), sum(spent), latencies[place_name])
        for place_name, spent in spent_cycles.items()
    )


@contextmanager
def simulated(cores: int | str = ALL, schedule: bool = True, races: str = STOP) -> Iterator[list[CoreRuns]]:
    """Simulate the kernels that are called in the block, on tensors of the CPU; the list collects the runs.

    Factories decorated by `tilelang.jit` are built and lowered, never compiled; kernels write to the tensors that they
    receive, and return those that they create.

    Raises:
        CastsimError, EngineError: see `run`, raised where the kernel is called.
    """
    front_end("simulating kernels of TileLang")
    jit = import_module("tilelang.jit").JITImpl
    log: list[CoreRuns] = []
    kernels: dict[Any, Callable[..., Any]] = {}
    known_tensors: dict[int, Any] = {}

    def call(own: Any, *args: Any, **kwargs: Any) -> Any:
        with placed():
            own.initialize_jit_mode(*args, **kwargs)
            key, tensors = own.func.parse_args(*args, **kwargs)
            if (id(own), key) not in kernels:
                prim = own.get_tir(*args, **kwargs)
                outputs = own.out_idx
                if prim.attrs and "tilelang_out_idx" in prim.attrs:
                    outputs = [int(position) for position in prim.attrs["tilelang_out_idx"]]
                noted = own.__dict__.setdefault("castsim_places", {})  # TileLang keeps what it has built
                noted[key] = noted_places() or noted.get(key, {})
                lowered = lower(prim, schedule, own.pass_configs, noted[key])
                outputs = [outputs] if isinstance(outputs, int) else list(outputs or ())
                kernels[id(own), key] = _kernel(lowered, outputs, cores, races, log, known_tensors)
        kernel = kernels[id(own), key]
        return kernel(*tensors.values()) if own.mode == "eager" else kernel

    real = jit.__call__
    jit.__call__ = call
    try:
        with _npu_host(known_tensors):
            yield log
    finally:
        jit.__call__ = real


_NPU = re.compile(r"npu(?::\d+)?")
_PROBE = "/dev/davinci_manager"
"""The file that host code reads to detect a device."""


@contextmanager
def _npu_host(tensors: dict[int, Any]) -> Iterator[None]:
    """Make PyTorch on the CPU report one NPU, so that host code takes the branch that calls the kernels.

    Every tensor reports the device `npu:0`, and its memory is the CPU's. `tensors` collects tensors whose addresses are
    requested. If PyTorch has a real NPU, its own answers are unchanged.
    """
    torch: Any = import_module("torch")
    tensor, own = torch.Tensor, not hasattr(torch, "npu")
    if own:
        torch.utils.rename_privateuse1_backend("npu")  # makes the word known; PyTorch cannot take it back

    def moved(value: Any) -> Any:
        named = isinstance(value, str) and _NPU.fullmatch(value)
        return "cpu" if own and (named or (isinstance(value, torch.device) and value.type == "npu")) else value

    class Host(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            if own and function == tensor.device.__get__:  # a new object whenever it is asked for
                return torch.device("npu", 0)
            if function is tensor.data_ptr:
                tensors[function(*args)] = args[0]
            words = {name: moved(value) for name, value in (kwargs or {}).items()}
            if function is not tensor.pin_memory:
                words.pop("pin_memory", None)  # memory that a device could see is memory here
            return function(*map(moved, args), **words)

    exists, module = os.path.exists, _npu_module(torch)
    set_up = [(torch, "npu", module), (tensor, "npu", lambda value, *_, **__: value), (tensor, "is_npu", True),
              (torch.nn.Module, "npu", lambda value, *_: value)] if own else []  # fmt: skip
    kept = sys.modules.get("torch_npu")
    for owner, name, value in set_up:
        setattr(owner, name, value)
    if own:
        sys.modules["torch_npu"] = cast(Any, SimpleNamespace(npu=module, __spec__=None))
        os.path.exists = lambda path: path == _PROBE or exists(path)
    try:
        with Host():
            yield
    finally:
        os.path.exists = exists
        for owner, name, _ in set_up:
            delattr(owner, name)
        if own:
            sys.modules.pop("torch_npu", None)
            if kept is not None:
                sys.modules["torch_npu"] = kept


def _npu_module(torch: Any) -> Any:
    """Return the replacement for `torch.npu`: one device with the cores of the A5."""
    count = int(cast(Any, load_target("a5")).cores.count)
    properties = SimpleNamespace(name="Ascend950", cube_core_num=count // 2, vector_core_num=count)
    stream = SimpleNamespace(npu_stream=0, synchronize=lambda: None)
    return SimpleNamespace(
        is_available=lambda: True, device_count=lambda: 1, current_device=lambda: 0,
        get_device_name=lambda *_: properties.name,
        get_device_properties=lambda *_: properties, current_stream=lambda *_: stream, device=lambda *_: nullcontext(),
        **dict.fromkeys(("set_device", "synchronize", "empty_cache", "init"), lambda *_: None),
        **dict.fromkeys(("manual_seed", "manual_seed_all"), torch.manual_seed),
    )  # fmt: skip


def _pointed_to(table: Any, tensors: Mapping[int, Any], name: str) -> list[Any]:
    """Return the tensors that a table of addresses points to.

    Raises:
        ReadError: the address of one of them was never requested (`data_ptr`).
    """
    if isinstance(table, list | tuple):
        return list(table)
    for address in table.tolist():
        if address not in tensors:
            raise ReadError(f"{name}: no tensor at address {address:#x}", legal=("tensor.data_ptr() of one",))
    return [tensors[pointer] for pointer in table.tolist()]


def _kernel(
    lowered: LoweredKernel,
    outputs: Sequence[int],
    cores: int | str,
    races: str,
    log: list[CoreRuns],
    tensors: Mapping[int, Any],
) -> Callable[..., Any]:
    """Return the replacement for a compiled kernel; `tensors` are keyed by their addresses."""
    positions = {position % len(lowered.arrays) for position in outputs}

    def kernel(*args: Any, **_: Any) -> Any:
        torch = import_module("torch")
        taken = iter(args)
        dims: dict[str, float] = {}
        given: dict[str, Any] = {}
        for position, parameter in enumerate(lowered.arrays):
            value = None if position in positions else next(taken, None)
            if isinstance(parameter, str):
                dims[parameter] = cast(float, value)
            elif value is not None:
                named = parameter.name in lowered.tables
                given[parameter.name] = _pointed_to(value, tensors, parameter.name) if named else value
        bound = bind(lowered, given, dims)
        fresh = []
        for position in sorted(positions):
            array = lowered.arrays[position]
            assert isinstance(array, TileArray)
            given[array.name] = torch.empty(extent_of(bound, array)[0], dtype=getattr(torch, array.dtype))
            fresh.append(given[array.name])
        runs = run_lowered(lowered, given, cores, dims, races=races)
        for name, values in runs.outputs.items():
            listed = isinstance(values, list)
            for own, value in zip(given[name], values, strict=True) if listed else ((given[name], values),):
                memory_of(own, name)[0][...] = memory_of(value, name)[0]
        log.append(runs)
        return None if not fresh else fresh[0] if len(fresh) == 1 else fresh

    return kernel
