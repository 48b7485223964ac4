"""Kernels of TileLang as programs: their text, and the program that messages and reports name by lines of Python."""

from __future__ import annotations

import dataclasses
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from castsim.isa.errors import Located, ReadError, Span
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse
from castsim.isa.reading import Language, Source
from castsim.tilelang.cores import Meeting
from castsim.tilelang.lowering import LoweredKernel
from castsim.tilelang.scalars import INDEX, Number, Place, TextValue, element_of, pointer
from castsim.tilelang.statements import POINTED, Walk


@dataclass(frozen=True, slots=True)
class TirProgram:
    """A kernel on one core: the text of its program, the place of each line, the vector functions in their order."""

    lowered: LoweredKernel
    core: int
    lines: tuple[str, ...]
    places: tuple[Place, ...]
    functions: tuple[tuple[Place, int], ...]
    externals: Mapping[str, tuple[str, Callable[..., None], str]]
    """What the program declares and its text lacks; see `Walk.externals`."""
    atomics: Mapping[str, Any]
    """Bytes of arrays that were changed atomically, once it has been run."""

    @property
    def text(self) -> str:
        """The program."""
        return "\n".join(self.lines) + "\n"

    @property
    def file(self) -> str:
        """What the program is called where a line of it has no place in Python."""
        return f"{self.lowered.name}.pto"

    def source(self) -> Source:
        """Return the program as castsim loads it; statements are at their lines of Python, where these are known."""
        program = parse(self.text, self.file)
        linecache.checkcache()
        functions = tuple(
            dataclasses.replace(each, body=tuple(_placed(node, self.places, self.externals) for node in each.body))
            for each in program.functions
            if each.body is not None
        )
        return Source(self.file, Language.TILES, self.text, program=dataclasses.replace(program, functions=functions))


def _placed(
    node: Any, places: tuple[Place, ...], externals: Mapping[str, tuple[str, Callable[..., None], str]]
) -> Any:  # fmt: skip
    """Return a statement at its place in Python, with those in it; calls of what is no text are that."""
    changes: dict[str, Any] = {}
    if isinstance(node, pto.Call):
        untimed, run, _ = externals[node.callee]
        node = pto.External(node.callee, node.operands, run, untimed, span=node.span)
    for each in dataclasses.fields(node):
        value = getattr(node, each.name)
        if isinstance(value, tuple) and value and isinstance(value[0], Located):
            changes[each.name] = tuple(_placed(inner, places, externals) for inner in value)
    place = places[node.span.line - 1] if 0 < node.span.line <= len(places) else None
    if place is not None:
        changes["span"] = _span(place)
    return dataclasses.replace(node, **changes) if changes else node


def _span(place: str) -> Span:
    file, _, line = place.rpartition(":")
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

    `extents` are numbers of elements of arrays, where known; `meeting` is that of the cores that run.

    Raises:
        ReadError: the core does not exist, a dimension that is none.
        IllegalError: the kernel has a construct that no program of vector instructions has; names it and its line.
    """
    if not 0 <= core < lowered.cores:
        raise ReadError(
            f"core {core}: {lowered.name} is launched on {lowered.cores}", legal=(f"0 .. {lowered.cores - 1}",)
        )
    numbers: dict[Any, Number | float] = {}
    parameters: dict[Any, TextValue] = {}
    heads: list[str] = []
    for each in lowered.parameters:
        name, dtype = lowered.name_of(each), str(each.dtype)
        if dtype == "handle":
            kind = pointer(element_of(each.type_annotation.element_type.dtype), "gm")
            parameters[each] = TextValue(f"%{name}", kind)
            heads.append(f"%{name}: {kind}")
        elif name in dims:
            numbers[each] = _number(name, dims[name], dtype)
        elif "int" in dtype:
            numbers[each] = TextValue(f"%{name}", INDEX)
            heads.append(f"%{name}: index")
        else:
            kind = element_of(dtype)
            numbers[each] = TextValue(f"%{name}", kind)
            heads.append(f"%{name}: {kind}")
    known = {str(each.name) for each in lowered.parameters if str(each.dtype) != "handle"}
    wrong = [name for name in dims if name not in known]
    if wrong:
        raise ReadError(f"{lowered.name} has no dimension {wrong[0]}", legal=sorted(known))
    walk = Walk(
        parameters, numbers, core, fast_math=lowered.fast_math, places=lowered.places, extents=extents, meeting=meeting
    )
    walk.walk(lowered.body)
    if walk.tables:
        heads.append(f"%{POINTED}: {pointer('ui8', 'gm')}")
    body: list[tuple[str, Place]] = [(f"    {line}", None) for line in walk.text.heads()]
    kernel = lowered.places.get(("kernel", 0))
    body += [(f"    {line}", place or kernel) for line, place in walk.text.regions[0].lines]
    lines: list[tuple[str, Place]] = [
        ('module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {', None),
        (f"  func.func @{lowered.name}({', '.join(heads)}) attributes {{pto.kernel}} {{", None),
        *body, ("  }", None),
        *((f"  func.func private @{name}({types})", None) for name, (_, _, types) in walk.externals.items()),
        ("}", None),
    ]  # fmt: skip
    return TirProgram(
        lowered, core, tuple(line for line, _ in lines), tuple(place for _, place in lines), tuple(walk.functions),
        walk.externals, walk.atomics,
    )  # fmt: skip
