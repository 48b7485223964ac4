"""TileLang's own front end and passes: from a function of the dialect to lowered TIR. Nothing here loads it before use.

Places of the Python source are not in TIR; while kernels are built within `placed`, each call notes its own.
"""

from __future__ import annotations

import inspect
import logging
import runpy
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from castsim.isa.errors import CastsimError, ReadError
from castsim.tilelang.scalars import name_of, nodes_of, refused

NEEDED = "needs pip install castsim[tilelang]"
_FAST_MATH = "tl.enable_fast_math"
_SCHEDULE = "tl.enable_auto_schedule"


@dataclass(frozen=True, slots=True)
class TileArray:
    """An array of the source: shape and strides are expressions, `dtype` is a word of TileLang's."""

    name: str
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A kernel in lowered TIR, the parameters of its source in their order, and how many cores it is launched on."""

    name: str
    parameters: tuple[Any, ...]
    body: Any
    arrays: tuple[TileArray | str, ...]
    """Arrays, and names of scalars."""
    cores: int
    fast_math: bool
    handles: Mapping[str, str]
    """Names of arrays by those of their memory, which a view of it may have renamed."""
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
        ReadError: it is not there, or does not start.
    """
    try:
        return import_module("tilelang")
    except ImportError as error:
        missing = error.name or str(error)
        raise ReadError(f"{what} {NEEDED}" + ("" if missing == "tilelang" else f"; {missing} is missing")) from None
    except (OSError, RuntimeError) as error:
        raise ReadError(f"{what}: tilelang does not start: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[-1] if isinstance(error, CastsimError) or not lines else lines[0])[:300] or type(error).__name__


_places: dict[tuple[str, int], str] = {}


@contextmanager
def placed() -> Iterator[None]:
    """Note the Python line of calls and vector functions that are built meanwhile; passes keep calls' annotations."""
    front_end()
    tirx: Any = import_module("tvm.tirx")
    dialect: Any = import_module("tilelang.ascend.language")
    frames: Any = dialect.frame
    real, number, launch = tirx.call_intrin, frames._next_vf_source_index, dialect.Kernel
    own = (str(Path(import_module("tilelang").__file__ or "").parent), str(Path(__file__).parent))

    def place() -> str | None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and _inside(frame.f_code, own):
            frame = frame.f_back
        return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def noted(dtype: Any, function: Any, *args: Any, annotations: Any = None, span: Any = None) -> Any:
        found = place()
        if found is not None:
            annotations = {**(annotations or {}), "castsim.place": found}
        return real(dtype, function, *args, annotations=annotations, span=span)

    def numbered(kind: str) -> int:
        found, index = place(), int(number(kind))
        if found is not None:
            _places[kind, index] = found
        return index

    def launched(*args: Any, **kwargs: Any) -> Any:
        found = place()
        if found is not None:
            _places["kernel", 0] = found
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
    """Return the places of what has been built within `placed`."""
    return dict(_places)


def lower(
    prim: Any,
    schedule: bool = True,
    pass_configs: Mapping[str, Any] | None = None,
    places: Mapping[tuple[str, int], str] | None = None,
) -> LoweredKernel:
    """Lower a function of the dialect (`factory.get_tir(...)`, or what a plain factory returns) as for the device.

    Args:
        prim: the function.
        schedule: as on the device, with flags and several versions of buffers, unless the kernel's own configuration
            has none; else in the order of the source.
        pass_configs: as `tilelang.jit` takes them.
        places: of its vector functions, where it was not built within the `placed` around this.

    Raises:
        ReadError: it is no such function, or TileLang's front end refuses it, with its first line.
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
            made = engine.lower(prim, target="ascend", enable_host_codegen=False, enable_device_compile=False)
    except Exception as error:
        raise ReadError(f"{name}: TileLang refuses it: {_first_line(error)}") from None
    functions = list(made.device_mod.functions.values())
    if len(functions) != 1:
        raise refused(f"{name}: {len(functions)} kernels", None, "in one function are not supported")
    (found,) = functions
    extents = found.attrs.get("thread_extent", {})
    cores = int(getattr(extents.get("blockIdx.x", 1), "value", extents.get("blockIdx.x", 1)))
    return LoweredKernel(
        name, tuple(found.params), found.body, tuple(arrays), cores, fast, handles, _tables(found.body, handles),
        places or noted_places(),
    )  # fmt: skip


def _tables(body: Any, handles: Mapping[str, str]) -> frozenset[str]:
    binds = (node for node in nodes_of(body) if type(node).__name__ == "Bind" and str(node.var.dtype) == "handle")
    found = [load for node in binds if hasattr(node.value, "args") for load in _loaded(node.value.args[0])]
    return frozenset(handles.get(str(each.buffer.data.name), str(each.buffer.data.name)) for each in found)


def _loaded(e: Any) -> list[Any]:
    """Return the elements that an expression may be, of which a condition may choose one."""
    if type(e).__name__ == "Call" and name_of(e) == "tirx.if_then_else":
        return [found for each in e.args[1:] for found in _loaded(each)]
    return [e] if type(e).__name__ == "BufferLoad" else []


def _keys(configs: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(getattr(key, "value", key)): value for key, value in configs.items()}


def lowered_of(
    file: Path, function: str, arguments: Mapping[str, int | float], schedule: bool = True
) -> tuple[LoweredKernel, frozenset[str]]:
    """Execute a Python file and lower what one of its functions hands over, with the passes that it asks for.

    Also returned are the names of the arguments that the function took.

    The function is a factory of TileLang, or a plain one that returns what such a factory's `get_tir` does; it gets
    those of the arguments that its parameters name.

    Raises:
        ReadError: the file is missing, fails, has no such function, or it fails.
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
            found = names[function]
            configs = dict(getattr(found, "pass_configs", None) or {})
            takes = inspect.signature(getattr(found, "func", found)).parameters
            given = {name: value for name, value in arguments.items() if name in takes}
            made = found.get_tir(**given) if hasattr(found, "get_tir") else found(**given)
            return lower(made, schedule, configs), frozenset(given)
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
