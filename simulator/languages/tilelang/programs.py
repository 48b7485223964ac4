"""Kernels of TileLang as programs: their text, and the program that messages and reports give Python lines for."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import linecache
import logging
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import CastsimError, Located, ReadError, Span, missing_package
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse
from castsim.isa.reading import Language, Source
from castsim.languages.tilelang.scalars import (
    INDEX,
    Number,
    Place,
    TextValue,
    element_of,
    name_of,
    nodes_of,
    pointer,
    refused,
)
from castsim.languages.tilelang.statements import POINTED, Walk
from castsim.languages.tilelang.threads import Meeting, number_type

# TileLang's own front end and passes: from a function of the dialect to lowered TIR. Nothing here loads it before
# use.
#
# Places of the Python source are not in TIR; while kernels are built within `placed`, each call notes its own.

_FAST_MATH = "tl.enable_fast_math"
_SCHEDULE = "tl.enable_auto_schedule"


@dataclass(frozen=True, slots=True)
class TileArray:
    """An array of the source: shape and strides are expressions, `dtype` is a TileLang type name."""

    name: str
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A kernel in lowered TIR, its parameters in source order, and the number of cores of its launch."""

    name: str
    parameters: tuple[Any, ...]
    body: Any
    arrays: tuple[TileArray | str, ...]
    """Arrays, and names of scalars."""
    cores: int
    fast_math: bool
    handles: Mapping[str, str]
    """Names of arrays by those of their memory, which a view may have renamed."""
    tables: frozenset[str]
    """Names of arrays that are tables of pointers (`T.ptr`)."""
    places: Mapping[tuple[str, int], str]
    """`FILE:LINE` of vector functions, by kind and number, where they are known."""

    def name_of(self, parameter: Any) -> str:
        """Return the name of one of `parameters` in the source."""
        return self.handles.get(str(parameter.name), str(parameter.name))


def front_end(what: str = "a kernel of TileLang") -> Any:
    """Return the package.

    Raises:
        ReadError: the package is missing, or does not start.
    """
    try:
        return import_module("tilelang")
    except ImportError as error:
        raise missing_package(what, error.name or "tilelang", "tilelang") from None
    except (OSError, RuntimeError) as error:
        raise ReadError(f"{what}: tilelang cannot be started: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[-1] if isinstance(error, CastsimError) or not lines else lines[0])[:300] or type(error).__name__


_places: dict[tuple[str, int], str] = {}


@contextmanager
def placed() -> Iterator[None]:
    """Record the Python line of calls and vector functions built in the block; passes keep calls' annotations."""
    front_end()
    tirx: Any = import_module("tvm.tirx")
    dialect: Any = import_module("tilelang.ascend.language")
    frames: Any = dialect.frame
    real, number, launch = tirx.call_intrin, frames._next_vf_source_index, dialect.Kernel
    own = (str(Path(import_module("tilelang").__file__ or "").parent), str(Path(__file__).parent))

    def source_location() -> str | None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and _inside(frame.f_code, own):
            frame = frame.f_back
        return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def noted(dtype: Any, function: Any, *args: Any, annotations: Any = None, span: Any = None) -> Any:
        location = source_location()
        if location is not None:
            annotations = {**(annotations or {}), "castsim.place": location}
        return real(dtype, function, *args, annotations=annotations, span=span)

    def numbered(kind: str) -> int:
        location, index = source_location(), int(number(kind))
        if location is not None:
            _places[kind, index] = location
        return index

    def launched(*args: Any, **kwargs: Any) -> Any:
        location = source_location()
        if location is not None:
            _places["kernel", 0] = location
        return launch(*args, **kwargs)

    tirx.call_intrin, frames._next_vf_source_index, dialect.Kernel = noted, numbered, launched
    try:
        yield
    finally:
        tirx.call_intrin, frames._next_vf_source_index, dialect.Kernel = real, number, launch
        _places.clear()


def _inside(code: CodeType, folders: tuple[str, ...]) -> bool:
    return code.co_filename.startswith(folders) or "/tvm_ffi/" in code.co_filename


def noted_places() -> dict[tuple[str, int], str]:
    """Return the places recorded within `placed`."""
    return dict(_places)


def lower(
    prim: Any,
    schedule: bool = True,
    pass_configs: Mapping[str, Any] | None = None,
    places: Mapping[tuple[str, int], str] | None = None,
) -> LoweredKernel:
    """Lower a function of the dialect (`factory.get_tir(...)`, or the result of a plain factory) as for the device.

    Args:
        prim: the function.
        schedule: as on the device, with flags and several versions of buffers, unless the kernel's own configuration
            disables them; else in the order of the source.
        pass_configs: see `tilelang.jit`.
        places: places of its vector functions, if it was not built within the enclosing `placed`.

    Raises:
        ReadError: it is not such a function, or TileLang's front end rejects it; the message has its first line.
    """
    front_end()
    tvm = import_module("tilelang.tvm") if "tilelang.tvm" in sys.modules else import_module("tilelang").tvm
    if type(prim).__name__ != "PrimFunc":
        raise ReadError(f"expected a function of TileLang (T.prim_func), not {type(prim).__name__}")
    engine = import_module("tilelang.engine.lower")
    name = str(prim.attrs["global_symbol"]) if prim.attrs and "global_symbol" in prim.attrs else "kernel"
    arrays: list[TileArray | str] = []
    handles: dict[str, str] = {}
    for parameter in prim.params:
        if parameter in prim.buffer_map:
            buffer = prim.buffer_map[parameter]
            handles[str(buffer.data.name)] = str(buffer.name)
            arrays.append(TileArray(str(buffer.name), tuple(buffer.shape), tuple(buffer.strides), str(buffer.dtype)))
        else:
            arrays.append(str(parameter.name))
    configs = {_SCHEDULE: True, **_keys(pass_configs or {})} | ({} if schedule else {_SCHEDULE: False})
    fast = bool(configs.get(_FAST_MATH, False))
    try:
        with tvm.target.Target("ascend"), tvm.transform.PassContext(opt_level=3, config=configs):
            artifact = engine.lower(prim, target="ascend", enable_host_codegen=False, enable_device_compile=False)
    except Exception as error:
        raise ReadError(f"{name}: TileLang rejects it: {_first_line(error)}") from None
    functions = list(artifact.device_mod.functions.values())
    if len(functions) != 1:
        raise refused(f"{name}: {len(functions)} kernels", None, "in one function are not supported")
    (function,) = functions
    extents = function.attrs.get("thread_extent", {})
    cores = int(getattr(extents.get("blockIdx.x", 1), "value", extents.get("blockIdx.x", 1)))
    return LoweredKernel(
        name, tuple(function.params), function.body, tuple(arrays), cores, fast, handles,
        _tables(function.body, handles), places or noted_places(),
    )  # fmt: skip


def _tables(body: Any, handles: Mapping[str, str]) -> frozenset[str]:
    binds = (node for node in nodes_of(body) if type(node).__name__ == "Bind" and str(node.var.dtype) == "handle")
    loads = [load for node in binds if hasattr(node.value, "args") for load in _loaded(node.value.args[0])]
    return frozenset(
        handles.get(str(buffer_load.buffer.data.name), str(buffer_load.buffer.data.name)) for buffer_load in loads
    )


def _loaded(e: Any) -> list[Any]:
    """Return the possible elements of an expression, of which a condition may choose one."""
    if type(e).__name__ == "Call" and name_of(e) == "tirx.if_then_else":
        return [load for argument in e.args[1:] for load in _loaded(argument)]
    return [e] if type(e).__name__ == "BufferLoad" else []


def _keys(configs: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(getattr(key, "value", key)): value for key, value in configs.items()}


def functions_of(file: Path) -> list[str]:
    """Return the functions of a file, in order, without executing it; none for a file that is not Python."""
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    return [node.name for node in body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def lowered_of(
    file: Path, function: str, arguments: Mapping[str, int | float], schedule: bool = True
) -> tuple[LoweredKernel, frozenset[str]]:
    """Execute a Python file and lower the result of one of its functions, with the passes that it requests.

    The names of the arguments that the function took are returned too.

    The function is a factory of TileLang, or a plain one that returns the result of a factory's `get_tir`; it gets
    the arguments that its parameters name.

    Raises:
        ReadError: the file is missing, fails or lacks the function, or the function fails.
    """
    front_end(f"{file}:{function}")
    if not file.is_file():
        raise ReadError(f"cannot read program '{file}': No such file")
    sys.path.insert(0, str(file.parent.resolve()))
    logging.disable(logging.CRITICAL)  # TileLang prints what it made of a source that it refuses
    try:
        with placed():
            names = runpy.run_path(str(file), run_name=file.stem)
            if function not in names or not callable(names[function]):
                own = (name for name, value in names.items() if _makes_kernels(value, file.stem))
                raise ReadError(f"'{file}' has no function {function}", legal=tuple(own))
            kernel = names[function]
            configs = dict(getattr(kernel, "pass_configs", None) or {})
            takes = inspect.signature(getattr(kernel, "func", kernel)).parameters
            given = {name: value for name, value in arguments.items() if name in takes}
            prim = kernel.get_tir(**given) if hasattr(kernel, "get_tir") else kernel(**given)
            return lower(prim, schedule, configs), frozenset(given)
    except CastsimError:
        raise
    except (Exception, SystemExit) as error:
        raise ReadError(f"{file}{_line_of(error, file)}: {type(error).__name__}: {_first_line(error)}") from None
    finally:
        logging.disable(logging.NOTSET)
        sys.path.pop(0)


def _makes_kernels(value: Any, module: str) -> bool:
    return hasattr(value, "get_tir") or (callable(value) and getattr(value, "__module__", "") == module)


def _line_of(error: BaseException, file: Path) -> str:
    line, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line


@dataclass(frozen=True, slots=True)
class TirProgram:
    """A kernel on one core: the text of its program, the place of each line, the vector functions in order."""

    lowered: LoweredKernel
    core: int
    lines: tuple[str, ...]
    places: tuple[Place, ...]
    functions: tuple[tuple[Place, int], ...]
    externals: Mapping[str, tuple[str, Callable[..., None], str]]
    """Functions declared by the program but not in its text; see `Walk.externals`."""
    atomics: Mapping[str, Any]
    """Bytes of arrays that were changed atomically, after a run."""

    @property
    def text(self) -> str:
        """The program."""
        return "\n".join(self.lines) + "\n"

    @property
    def file(self) -> str:
        """The name of the program where a line of it has no place in Python."""
        return f"{self.lowered.name}.pto"

    def source(self) -> Source:
        """Return the program in castsim's input form; statements have their lines of Python, where these are known."""
        program = parse(self.text, self.file)
        linecache.checkcache()
        functions = tuple(
            dataclasses.replace(
                function, body=tuple(_placed(node, self.places, self.externals) for node in function.body)
            )
            for function in program.functions
            if function.body is not None
        )
        return Source(self.file, Language.TILES, self.text, program=dataclasses.replace(program, functions=functions))


def _placed(
    node: Any, places: tuple[Place, ...], externals: Mapping[str, tuple[str, Callable[..., None], str]]
) -> Any:  # fmt: skip
    """Return a statement at its place in Python, with its nested ones; calls without text become external."""
    changes: dict[str, Any] = {}
    if isinstance(node, pto.Call):
        untimed, run, _ = externals[node.callee]
        node = pto.External(node.callee, node.operands, run, untimed, span=node.span)
    for attribute in dataclasses.fields(node):
        value = getattr(node, attribute.name)
        if isinstance(value, tuple) and value and isinstance(value[0], Located):
            changes[attribute.name] = tuple(_placed(inner, places, externals) for inner in value)
    location = places[node.span.line - 1] if 0 < node.span.line <= len(places) else None
    if location is not None:
        changes["span"] = _span(location)
    return dataclasses.replace(node, **changes) if changes else node


def _span(location: str) -> Span:
    file, _, line = location.rpartition(":")
    number, text = int(line), linecache.getline(file, int(line)).rstrip("\n")
    return Span(file, number, len(text) - len(text.lstrip()) + 1, text, max(1, len(text.strip())))


def _number(name: str, value: float, dtype: str) -> float:
    """Return the value of a scalar parameter.

    Raises:
        ReadError: a fraction for a whole number.
    """
    if "int" not in dtype:
        return float(value)
    if int(value) != value:
        raise ReadError(f"{name} is {value}, not a whole number", legal=(f"{name}={int(value)}",))
    return int(value)


def converted(
    lowered: LoweredKernel, core: int, dims: Mapping[str, float], extents: Mapping[str, int] | None = None,
    meeting: Meeting | None = None,
) -> TirProgram:  # fmt: skip
    """Return a lowered kernel as a program of one core.

    `extents` are numbers of elements of arrays, where known; `meeting` is that of the running cores.

    Raises:
        ReadError: the core does not exist, or a name is not that of a dimension.
        IllegalError: a program of vector instructions cannot have a construct; the error names it and its line.
    """
    if not 0 <= core < lowered.cores:
        raise ReadError(
            f"core {core}: {lowered.name} is launched on {lowered.cores}", legal=(f"0 .. {lowered.cores - 1}",)
        )
    numbers: dict[Any, Number | float] = {}
    parameters: dict[Any, TextValue] = {}
    heads: list[str] = []
    for parameter in lowered.parameters:
        name, dtype = lowered.name_of(parameter), str(parameter.dtype)
        if dtype == "handle":
            kind = pointer(element_of(parameter.type_annotation.element_type.dtype), "gm")
            parameters[parameter] = TextValue(f"%{name}", kind)
            heads.append(f"%{name}: {kind}")
        elif name in dims:
            numbers[parameter] = _number(name, dims[name], dtype)
        else:
            kind = INDEX if "int" in dtype else element_of(dtype)
            numbers[parameter] = TextValue(f"%{name}", kind)
            heads.append(f"%{name}: {kind}")
    dimensions = {str(argument.name) for argument in lowered.parameters if str(argument.dtype) != "handle"}
    wrong = [name for name in dims if name not in dimensions]
    if wrong:
        raise ReadError(f"{lowered.name} has no dimension {wrong[0]}", legal=sorted(dimensions))
    walk = Walk(
        parameters, numbers, core, fast_math=lowered.fast_math, places=lowered.places, extents=extents, meeting=meeting
    )
    walk.walk(lowered.body)
    if walk.tables:
        heads.append(f"%{POINTED}: {pointer('ui8', 'gm')}")
    body: list[tuple[str, Place]] = [(f"    {line}", None) for line in walk.text.heads()]
    kernel = lowered.places.get(("kernel", 0))
    body += [(f"    {line}", line_place or kernel) for line, line_place in walk.text.regions[0].lines]
    lines: list[tuple[str, Place]] = [
        ('module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {', None),
        (f"  func.func @{lowered.name}({', '.join(heads)}) attributes {{pto.kernel}} {{", None),
        *body, ("  }", None),
        *((f"  func.func private @{name}({types})", None) for name, (_, _, types) in walk.externals.items()),
        ("}", None),
    ]  # fmt: skip
    return TirProgram(
        lowered, core, tuple(line for line, _ in lines), tuple(location for _, location in lines),
        tuple(walk.functions), walk.externals, walk.atomics,
    )  # fmt: skip


# Arrays and tensors that a kernel is called with: their bytes, and what their shapes say of its dimensions.

Bytes = NDArray[np.uint8]
_ALIGNMENT = 512


@dataclass(slots=True)
class Pointed:
    """The targets of tables of pointers: arrays in one memory, each at its own place."""

    arrays: list[Any] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    size: int = _ALIGNMENT
    """Bytes; the first are left unused, so that no pointer is 0."""

    def place(self, value: Any, table: str) -> int:
        """Return the place of an array, which is added if it is new."""
        for array, at in zip(self.arrays, self.places, strict=True):
            if array is value:
                return at
        self.arrays.append(value)
        self.places.append(self.size)
        self.size += -(-memory_of(value, table)[0].size // _ALIGNMENT) * _ALIGNMENT
        return self.places[-1]

    def bytes(self) -> Bytes:
        """Return the memory."""
        data_bytes = np.zeros(self.size, np.uint8)
        for value, at in zip(self.arrays, self.places, strict=True):
            data = memory_of(value, "")[0]
            data_bytes[at : at + data.size] = data
        return data_bytes

    def changed(self, memory: Bytes) -> dict[int, NDArray[Any]]:
        """Return the contents of the arrays in a memory, by their places."""
        changes = {}
        for value, at in zip(self.arrays, self.places, strict=True):
            data, shape, strides = memory_of(value, "")
            own = memory[at : at + data.size].copy()
            tensor = hasattr(value, "untyped_storage")
            changes[at] = own if tensor else shaped(own, np.asarray(value).dtype, shape, strides)
        return changes


@dataclass(slots=True)
class BoundArrays:
    """The arrays of a call: each as its bytes in memory, with shape and strides in elements."""

    lowered: LoweredKernel
    dims: dict[str, float]
    given: dict[str, tuple[Bytes, tuple[int, ...], Any]]
    pointed: Pointed = field(default_factory=Pointed)
    tables: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Places of the arrays of tables of pointers."""

    def number(self, expression: Any) -> int | None:
        """Return the value of a shape or stride, None if it depends on an unknown one."""
        if isinstance(expression, int):
            return expression
        variables = (node for node in nodes_of(expression) if type(node).__name__ == "Var")
        literal = import_module("tvm.tirx").IntImm
        values = {
            node: literal(node.dtype, int(self.dims[str(node.name)]))
            for node in variables
            if str(node.name) in self.dims
        }
        plain = import_module("tvm.tirx.stmt_functor").substitute(expression, values)
        simplified = import_module("tvm.arith").Analyzer().simplify(plain)
        return int(simplified.value) if hasattr(simplified, "value") else None


def used_numbers(bound: BoundArrays) -> dict[str, float]:
    """Return the numbers that are parameters of the lowered kernel."""
    names = {bound.lowered.name_of(parameter) for parameter in bound.lowered.parameters}
    given = {
        dimension for dimension in bound.dims if dimension not in names and dimension not in variables_of(bound.lowered)
    }
    if given:
        raise ReadError(
            f"{bound.lowered.name} has no dimension {min(given)}", legal=sorted(variables_of(bound.lowered))
        )
    return {name: value for name, value in bound.dims.items() if name in names}


def variables_of(lowered: LoweredKernel) -> set[str]:
    """Return the names of dimensions, strides and scalars."""
    names = {str(variable) for variable in lowered.arrays if isinstance(variable, str)}
    shapes = [e for array in lowered.arrays if isinstance(array, TileArray) for e in (*array.shape, *array.strides)]
    return names | {str(expression.name) for expression in shapes if type(expression).__name__ == "Var"}


def dtype_of(array: TileArray) -> np.dtype[Any]:
    """Return the type of an array; two elements of 4 bits are a byte."""
    return np.dtype(np.uint8) if array.dtype.startswith("float4") else number_type(array.dtype)


def extent_of(bound: BoundArrays, array: TileArray) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return shape, strides and number of elements of an array.

    Raises:
        ReadError: one of them depends on a dimension without a value.
    """
    if array.name in bound.given:
        given, steps = bound.given[array.name][1:]
        return given, steps, _reach(given, steps)
    shape: tuple[int, ...] = ()
    for expression in array.shape:
        size = bound.number(expression)
        if size is None:
            raise ReadError(
                f"{array.name}: dimension {expression} needs a value", legal=(f"dims={{'{expression}': N}}",)
            )
        shape += (size,)
    packs = array.dtype.startswith("float4")
    plain = _plain(shape)
    asked = [bound.number(stride) for stride in array.strides]
    strides = tuple(own if step is None else step for step, own in zip(asked or plain, plain, strict=True))
    if packs:
        shape = (*shape[:-1], -(-shape[-1] // 2))
        strides = (*(step // 2 for step in strides[:-1]), 1)
    return shape, strides, _reach(shape, strides)


def extents_of(bound: BoundArrays) -> dict[str, int]:
    """Return the number of elements, from the first to the last, of the arrays with known dimensions."""
    extents = {}
    for array in bound.lowered.arrays:
        if isinstance(array, TileArray) and not any(bound.number(extent) is None for extent in array.shape):
            extents[array.name] = extent_of(bound, array)[2]
    return extents


def _plain(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(np.prod(shape[at + 1 :], dtype=np.int64)) for at in range(len(shape)))


def _reach(shape: Sequence[int], strides: Sequence[int]) -> int:
    return 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def bind(lowered: LoweredKernel, given: Mapping[str, Any], dims: Mapping[str, float]) -> BoundArrays:
    """Bind arrays to parameters, and the names in their shapes and strides to numbers.

    Raises:
        ReadError: shapes contradict each other or the kernel.
    """
    bound = BoundArrays(lowered, dict(dims), {})
    arrays = [tile_array for tile_array in lowered.arrays if isinstance(tile_array, TileArray)]
    names = [tile_array.name for tile_array in arrays]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ReadError(f"{lowered.name} has no array {unknown[0]}", legal=names)
    for array in arrays:
        if array.name in given:
            _bind_one(bound, array, _table(bound, array, given[array.name]))
    if bound.tables:
        bound.given[POINTED] = bound.pointed.bytes(), (bound.pointed.size,), (1,)
    for array in arrays:  # strides of arrays that are left out are those without gaps
        if array.name not in given:
            _name_strides(bound, array, _plain([bound.number(extent) or 0 for extent in array.shape]))
    return bound


def _table(bound: BoundArrays, array: TileArray, value: Any) -> Any:
    """Return a table of pointers as one of places; other arguments are unchanged."""
    if array.name not in bound.lowered.tables:
        return value
    if not isinstance(value, list | tuple):
        raise ReadError(f"{array.name} is a table of pointers", legal=(f"{array.name}=[x, y]: arrays in their order",))
    bound.tables[array.name] = tuple(bound.pointed.place(tensor, array.name) for tensor in value)
    return np.array(bound.tables[array.name], np.int64)


def _bind_one(bound: BoundArrays, array: TileArray, value: Any) -> None:
    data, shape, strides = memory_of(value, array.name)
    wide = 2 if array.dtype.startswith("float4") else 1
    seen = (*shape[:-1], shape[-1] * wide) if shape else shape
    who = bound.lowered.name
    if len(seen) != len(array.shape):
        raise ReadError(f"{array.name} has {len(seen)} dimensions; {who} takes {len(array.shape)}")
    for expression, size in zip(array.shape, seen, strict=True):
        number = bound.number(expression)
        if number is None and type(expression).__name__ == "Var":
            bound.dims[str(expression.name)] = size
        elif number is not None and number != size:
            raise ReadError(f"{array.name} has {size} where {who} takes {number} ({expression})")
    _name_strides(bound, array, [step * wide for step in strides])
    width, count = dtype_of(array).itemsize, _reach(shape, strides)
    if data.size != count * width:
        raise ReadError(f"{array.name} has elements of {data.size // count} bytes, not of {width}")
    bound.given[array.name] = data, shape, strides


def _name_strides(bound: BoundArrays, array: TileArray, strides: Sequence[int]) -> None:
    for expression, step in zip(array.strides, strides, strict=False):
        if type(expression).__name__ == "Var":
            bound.dims.setdefault(str(expression.name), step)


def shaped(data: Bytes, kind: np.dtype[Any], shape: tuple[int, ...], strides: Sequence[int]) -> NDArray[Any]:
    """Return bytes as an array; strides in elements. NumPy alone lacks the type names of ml_dtypes."""
    flat = data[: data.size // kind.itemsize * kind.itemsize].view(f"u{kind.itemsize}")
    steps = tuple(step * kind.itemsize for step in strides)
    view = np.lib.stride_tricks.as_strided(flat, shape, steps) if flat.size else flat.reshape(shape)
    return view.view(kind)


def memory_of(value: Any, name: str) -> tuple[Bytes, tuple[int, ...], tuple[int, ...]]:
    """Return the bytes from an array's first element to its last, its shape, and its strides in elements."""
    if hasattr(value, "untyped_storage"):
        torch = import_module("torch")
        if not value.is_cpu:  # its device is said to be an NPU while host code is simulated
            raise ReadError(f"{name} is on {value.device}; castsim needs tensors on the CPU")
        shape, strides = tuple(value.shape), tuple(value.stride())
        flat = value.detach().as_strided((_reach(shape, strides),), (1,), value.storage_offset())
        return flat.view(torch.uint8).numpy(), shape, strides
    array = np.asarray(value)
    strides = tuple(step // array.itemsize for step in array.strides)
    if any(step < 0 for step in strides):
        array = np.ascontiguousarray(array)
        strides = _plain(array.shape)
    whole = array.view(f"u{array.itemsize}")
    flat = np.lib.stride_tricks.as_strided(whole, (_reach(array.shape, strides),), (array.itemsize,))
    return np.frombuffer(flat.tobytes(), np.uint8), array.shape, strides
