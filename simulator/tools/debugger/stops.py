"""Stops of a program before lines, at a cycle or on a condition, and the names and scalars at a stop."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from castsim.execution.interpreter.arguments import bind_arguments
from castsim.execution.interpreter.rerolling import DependentScalar, LoopDependence
from castsim.execution.interpreter.scalar_values import constant, evaluate
from castsim.execution.timing import Cause
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.formats import FORMATS, Format, IntFormat, format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import nodes
from castsim.isa.pto.pto_parser import inlined, parse
from castsim.machines.vector_function.vector_registers import PredicateRegister, VectorRegister
from castsim.machines.vliw.machine import VliwCore
from castsim.numerics.codec import decode_to_float64, parse_number
from castsim.running.loaded import Loaded
from castsim.tools.debugger.step_recording import UNKNOWN, Bytes, ElementPlace, dense, packed_bits

# The names of a program and where what they name lies, operation by operation.

REGISTER = "register"
"""The memory that contains a register's bytes while it is examined."""


class Shown(NamedTuple):
    """One element: its index, code and format; `known` is False if it is not computed."""

    place: tuple[int, ...]
    code: int
    format: Format
    known: bool = True


class ProgramName(NamedTuple):
    """A name of a program: `kind` is `tile`, `tensor`, `register`, `pointer` or `memory`."""

    name: str
    kind: str
    format: str
    shape: tuple[int, ...]


@dataclass(slots=True)
class Symbols:
    """Positions by name: `fixed` ones, those that operations `mention`, each from some step on, and registers.

    `formats` has the formats of registers. The position of a tile is that of its last mention so far; before
    the first mention, that of the first.
    """

    fixed: dict[str, ElementPlace] = field(default_factory=dict)
    raw: dict[str, ElementPlace] = field(default_factory=dict)
    """Whole memories as bytes."""
    formats: dict[str, Format] = field(default_factory=dict)
    _steps: dict[str, list[int]] = field(default_factory=dict)
    _places: dict[str, list[ElementPlace]] = field(default_factory=dict)
    _kinds: dict[str, str] = field(default_factory=dict)

    def mention(self, name: str, kind: str, step: int, location: ElementPlace) -> None:
        """Record the position of a name in an operation."""
        places = self._places.setdefault(name, [])
        if not places or places[-1] != location:
            places.append(location)
            self._steps.setdefault(name, []).append(step)
            self._kinds[name] = kind

    def at(self, name: str, step: int) -> ElementPlace | None:
        """Return the position of a name other than a register before a step, None if there is none."""
        if name in self._places:
            return self._places[name][max(0, bisect_right(self._steps[name], step) - 1)]
        return self.fixed.get(name) or (self.raw.get(name) if name not in self.formats else None)

    def all(self, step: int, registers: Mapping[str, object]) -> Iterator[ProgramName]:
        """Yield every name, tensors first."""
        for name, location in self.fixed.items():
            if name not in self._places:
                yield ProgramName(name, "tensor", location.format.name, location.shape)
        for name in self._places:
            location = self._places[name][max(0, bisect_right(self._steps[name], step) - 1)]
            yield ProgramName(name, self._kinds[name], location.format.name, location.shape)
        for name, fmt in self.formats.items():
            if registers.get(name) is not None:
                location_data = _register(registers[name], fmt)
                yield ProgramName(name, "register", location_data[0].format.name, location_data[0].shape)
        for name, location in self.raw.items():
            yield ProgramName(name, "memory", location.format.name, location.shape)

    def names(self) -> list[str]:
        """Return all names."""
        return list(dict.fromkeys((*self.fixed, *self._places, *self.formats, *self.raw)))


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected elements of a name: `index` may have fewer entries than dimensions, `format` None means its own."""

    name: str
    index: tuple[slice | int, ...] = ()
    format: Format | None = None


@dataclass(frozen=True, slots=True)
class SelectedElements:
    """Elements of a selection at some step: their positions and memories."""

    place: ElementPlace
    whole: ElementPlace
    index: tuple[slice | int, ...]
    memories: Mapping[str, Bytes]

    def codes(self) -> NDArray[np.unsignedinteger]:
        """Return their codes, flat."""
        return self.place.codes(self.memories)

    def known(self) -> NDArray[np.bool_]:
        """Return a flat mask of the computed ones."""
        marks = f"{UNKNOWN}{self.place.space}"
        if marks not in self.memories:
            return np.ones(self.place.size, np.bool_)
        is_known: NDArray[np.bool_] = replace(self.place, space=marks).codes(self.memories) == 0
        return is_known

    def shown(self) -> Iterator[Shown]:
        """Yield them with their indices."""
        _, indices = self.whole.part(self.index)
        for index, code, is_known in zip(indices, self.codes(), self.known(), strict=True):
            yield Shown(index, int(code) & ((1 << self.place.format.bits) - 1), self.place.format, bool(is_known))


def selected(
    selection: Selection,
    symbols: Symbols,
    step: int,
    memories: Mapping[str, Bytes],
    registers: Mapping[str, object],
) -> SelectedElements:
    """Return the elements of a selection before a step.

    Raises:
        ReadError: the name does not exist or has no value yet, or an index or format is not legal.
    """
    name = selection.name
    whole = symbols.at(name, step)
    if whole is None:
        content = registers.get(name)
        if name not in symbols.formats:
            raise ReadError(f"unknown name '{name}'", legal=symbols.names())
        if content is None:
            raise ReadError(f"register '{name}' has no value yet")
        whole, data = _register(content, symbols.formats[name])
        memories = {REGISTER: data}
    if selection.format is not None:
        whole = whole.read_as(selection.format)
    if len(selection.index) > len(whole.shape):
        raise ReadError(f"'{name}' has {len(whole.shape)} dimensions, not {len(selection.index)}", legal=_legal(whole))
    try:
        taken = tuple(range(size)[selector] for selector, size in zip(selection.index, whole.shape, strict=False))
    except IndexError:
        raise ReadError(f"'{name}' has no such element", legal=_legal(whole)) from None
    sizes = [len(selector) if isinstance(selector, range) else 1 for selector in taken] + list(
        whole.shape[len(taken) :]
    )
    check_size(name, sizes)
    location, _ = whole.part(selection.index) if 0 not in sizes else (replace(whole, shape=tuple(sizes)), [])
    return SelectedElements(location, whole, selection.index, memories)


MOST_SHOWN = 1 << 16
"""Maximum number of elements that are examined at once."""


def check_size(name: str, sizes: Sequence[int]) -> None:
    """Reject a number of elements that is too large to read.

    Raises:
        ReadError: there are more than `MOST_SHOWN`.
    """
    count = int(np.prod(sizes, dtype=object)) if len(sizes) else 1
    if count > MOST_SHOWN:
        raise ReadError(f"{count} elements of '{name}' are too many to show", legal=(f"up to {MOST_SHOWN}",))


def _legal(location: ElementPlace) -> tuple[str, ...]:
    return tuple(f"0 .. {extent - 1}" for extent in location.shape) or ("no index",)


def _register(content: object, fmt: Format) -> tuple[ElementPlace, Bytes]:
    """Return the elements of a register, and its bytes."""
    boolean = FORMATS["bool"]
    if isinstance(content, VectorRegister):
        content = content.data
    if isinstance(content, PredicateRegister):
        lanes = content.lanes(packed_bits(fmt))
        return dense(REGISTER, 0, lanes.shape, boolean), np.ascontiguousarray(lanes).view(np.uint8)
    if isinstance(content, np.ndarray):
        if content.dtype == np.bool_:
            return dense(REGISTER, 0, content.shape, boolean), content.view(np.uint8)
        data: Bytes = np.ascontiguousarray(content).view(np.uint8)
        return dense(REGISTER, 0, (data.size * 8 // packed_bits(fmt),), fmt), data
    numbers = content if isinstance(content, tuple) else (content,)
    size = packed_bits(fmt) // 8
    mask = (1 << packed_bits(fmt)) - 1
    data = np.frombuffer(b"".join((int(number) & mask).to_bytes(size, "little") for number in numbers), np.uint8)
    return dense(REGISTER, 0, (len(numbers),) if isinstance(content, tuple) else (), fmt), data


# Conditions at which a program is to stop: on elements, on pipes, on the cycle.

_SELECTION = re.compile(r"%?(?P<name>[^\s\[\]:,]+)\s*(?:\[(?P<index>[^\]]*)\])?(?:\s+as\s+(?P<format>\S+))?")
_COMPARED = re.compile(r"(?P<left>.+?)\s*(?P<sign>==|!=|<=|>=|<|>)\s*(?P<right>.+)")
_KIND = re.compile(r"(?P<left>.+?)\s+is\s+(?P<no>not\s+)?(?P<kind>.+)")
_INDEX = re.compile(r"(-?\d+)?\s*(:)?\s*(-?\d+)?", re.ASCII)
_SIGNS: Mapping[str, np.ufunc] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

KINDS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.bool_]]] = {
    "nan": np.isnan,
    "inf": np.isinf,
    "finite": np.isfinite,
    "zero": lambda numbers: numbers == 0,
    "negative": np.signbit,
}
"""Classes of an element's value."""

WAITING = "waiting"
PIPE_STATES = (WAITING, Cause.BUSY.value, Cause.EMPTY.value)
"""States of a pipe: it waits (for any cause other than these two), is busy, or has nothing to do."""


class Stopped(Protocol):
    """A stopped program as a condition sees it."""

    def elements(self, selection: Selection) -> SelectedElements:
        """Return the elements of a selection. Raises the errors of `symbols.selected`."""
        ...

    def pipe(self, name: str) -> str:
        """Return the cause of a pipe's cycle at the stop."""
        ...

    @property
    def cycle(self) -> int:
        """The cycle of the stop."""
        ...


class StopCondition(Protocol):
    """A condition that is true or false at a stop."""

    def holds(self, at: Stopped) -> bool:
        """Return whether it is true; False if a name has no value yet."""
        ...


@dataclass(slots=True)
class ElementCondition:
    """Condition that `test` is true of the number of any selected element."""

    selection: Selection
    test: Callable[[NDArray[np.generic]], NDArray[np.bool_]]
    _last: tuple[bytes, str, bool] | None = field(default=None)

    def holds(self, at: Stopped) -> bool:
        """Test the elements; unchanged codes are not decoded again."""
        try:
            elements = at.elements(self.selection)
            codes, fmt = elements.codes(), elements.place.format
        except ReadError:
            return False
        key = codes.tobytes()
        if self._last is None or self._last[:2] != (key, fmt.name):
            matches = bool((self.test(numbers(codes, fmt)) & elements.known()).any())
            self._last = key, fmt.name, matches
        return self._last[2]


@dataclass(frozen=True, slots=True)
class PipeCondition:
    """Condition that a pipe is in a state, or is not."""

    pipe: str
    state: str
    negated: bool

    def holds(self, at: Stopped) -> bool:
        """Test the state of the pipe in the cycle of the stop."""
        cause = at.pipe(self.pipe)
        matches = cause not in PIPE_STATES if self.state == WAITING else cause == self.state
        return matches != self.negated


@dataclass(frozen=True, slots=True)
class CycleCondition:
    """The cycle of the stop compared with a number."""

    test: Callable[[int], bool]

    def holds(self, at: Stopped) -> bool:
        """Compare the cycle with the number."""
        return self.test(at.cycle)


def numbers(codes: NDArray[np.unsignedinteger], fmt: Format) -> NDArray[np.generic]:
    """Return the numbers of codes: 64-bit integers as such, all others as float64."""
    if isinstance(fmt, IntFormat) and fmt.bits == 64:
        return np.ascontiguousarray(codes).view("<i8" if fmt.signed else "<u8")
    mask = codes.dtype.type((1 << fmt.bits) - 1) if isinstance(fmt, IntFormat) and fmt.bits < 8 else None
    return decode_to_float64(codes if mask is None else codes & mask, fmt)


def parse_condition(text: str, pipes: tuple[str, ...]) -> StopCondition:
    """Read a condition: `dst[3,7] is nan`, `acc[0:4,0] >= 448`, `pipe V is waiting`, `cycle > 500`.

    Raises:
        ReadError: the text is not a condition, or names an unknown pipe or state.
    """
    text = text.strip()
    word, _, rest = text.partition(" ")
    if word == "pipe" and rest.strip():
        return _pipe_condition(rest.strip(), pipes)
    if match := _COMPARED.fullmatch(text):
        left, sign, right = match["left"], match["sign"], match["right"]
        if _number(right) is None and _number(left) is not None:
            left, sign, right = right, _MIRRORED[sign], left
        number = _number(right)
        if number is None:
            raise ReadError(f"cannot compare with '{right}', which is not a number", legal=("1.5", "-3", "nan", "inf"))
        compare, limit = _SIGNS[sign], number
        if left == "cycle":
            return CycleCondition(lambda cycle: bool(compare(cycle, limit)))
        return ElementCondition(parse_selection(left), lambda values: np.asarray(compare(values, limit), np.bool_))
    if match := _KIND.fullmatch(text):
        kind = KINDS.get(match["kind"].lower())
        if kind is None:
            raise ReadError(f"an element cannot be '{match['kind']}'", legal=KINDS)
        test, negated = kind, match["no"] is not None
        return ElementCondition(parse_selection(match["left"]), lambda values: test(values.astype(float)) != negated)
    raise ReadError(
        f"'{text}' is not a condition", legal=("dst[3,7] is nan", "dst[0,0] > 1.5", "pipe V is waiting", "cycle >= 500")
    )


def _pipe_condition(text: str, pipes: tuple[str, ...]) -> PipeCondition:
    match = re.fullmatch(r"(?P<pipe>\S+)\s+is\s+(?P<no>not\s+)?(?P<state>.+)", text)
    if match is None:
        raise ReadError(f"'pipe {text}' is not a condition", legal=("pipe V is waiting",))
    pipe = next((pipe_name for pipe_name in pipes if pipe_name.lower() == match["pipe"].lower()), None)
    if pipe is None:
        raise ReadError(f"unknown pipe '{match['pipe']}'", legal=pipes)
    states = dict.fromkeys((*PIPE_STATES, *(cause.value for cause in Cause)))
    if match["state"] not in states:
        raise ReadError(f"a pipe cannot be '{match['state']}'", legal=states)
    return PipeCondition(pipe, match["state"], match["no"] is not None)


def _number(text: str) -> int | float | None:
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,300}", text):
        return int(text, 16)
    try:
        negative, magnitude = parse_number(text)
    except ReadError:
        return None
    value = -magnitude if negative else magnitude
    if isinstance(value, float):
        return value
    if value.denominator == 1:
        return int(value)
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def parse_selection(text: str) -> Selection:
    """Read `NAME`, `NAME[i,j]`, `NAME[0:2,3] as FORMAT`.

    Raises:
        ReadError: the text is none of these, or names an unknown format.
    """
    match = _SELECTION.fullmatch(text.strip())
    if match is None:
        raise ReadError(f"'{text.strip()}' names no elements", legal=("dst", "dst[3,7]", "dst[0:2,3] as f16"))
    fmt = None if match["format"] is None else format_named(match["format"])
    if match["index"] is None:
        return Selection(match["name"], (), fmt)
    return Selection(match["name"], tuple(map(_index, match["index"].split(","))), fmt)


def _index(text: str) -> slice | int:
    match = _INDEX.fullmatch(text.strip())
    if match is None or not (match[1] or match[2]) or max(map(len, (match[1] or "", match[3] or ""))) > _DIGITS:
        raise ReadError(f"'{text.strip()[:40]}' is not an index", legal=("3", "0:2", ":"))
    first, last = (None if bound is None else int(bound) for bound in (match[1], match[3]))
    if match[2] is None:
        assert first is not None
        return first
    return slice(first, last)


_DIGITS = 18
"""Maximum number of digits of an index: more than any memory needs."""


@dataclass(slots=True)
class Breakpoint:
    """One breakpoint. `line` and `step` are None if it does not refer to a line or a single step.

    With a line, the condition is tested at that line; alone, it stops where it becomes true, having been false before
    the last operation.
    """

    number: int
    text: str
    line: int | None = None
    step: int | None = None
    condition: StopCondition | None = None
    hits: int = 0


@dataclass(slots=True)
class Breakpoints:
    """All breakpoints by number; numbers are not reused."""

    lines: Sequence[int]
    """The line of every step."""
    held: dict[int, Breakpoint] = field(default_factory=dict)
    _count: int = 0

    def add(
        self, text: str, *, line: int | None = None, step: int | None = None, condition: StopCondition | None = None
    ) -> Breakpoint:
        """Return a new breakpoint."""
        self._count += 1
        added = Breakpoint(self._count, text, line, step, condition)
        self.held[added.number] = added
        return added

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(self.held.values())

    @property
    def watches(self) -> bool:
        """Whether any breakpoint must be tested before every operation."""
        return any(stop.line is None and stop.condition is not None for stop in self)


# What the text of a stopped program tells: which lines its loops and sections have, and its scalars.
#
# A recorded run holds bytes and registers alone. Arguments, constants, index arithmetic and variables of loops are
# computed again, up to the operation that the run has stopped at; what comes from memory, or from an operation that is
# no scalar arithmetic, is not known.

# Which lines belong to a line of a program: the bodies of its loops and sections.


def regions_of(loaded: Loaded, core: VliwCore | None) -> Mapping[int, int]:
    """Return the last line of the body by the first line of a loop, branch or section."""
    if core is not None:
        bundles = core.program.bundles
        return {bundles[loop.head].span.line: bundles[loop.end - 1].span.line for loop in core.structure.loops}
    try:
        parsed = parse(loaded.source, loaded.file, go_past_refused=True)
    except CastsimError:  # the text as a whole: only the entry needs to be without errors
        return {}
    regions: dict[int, int] = {}
    for function in parsed.functions:
        for node in nodes(function.body or ()):
            inner = [inner_node.span.line for inner_node in _inside(node)]
            if inner:
                regions[node.span.line] = max(*inner, regions.get(node.span.line, 0))
    return regions


def _inside(node: pto.Operation) -> list[pto.Operation]:
    match node:
        case pto.For() | pto.Section():
            return list(nodes(node.body))
        case pto.While():
            return [*nodes(node.before), *nodes(node.after)]
        case pto.If():
            return [*nodes(node.then_body), *nodes(node.else_body)]
    return []


# The scalars of a `.pto` program.

MOST_VISITS = 300_000
"""Maximum number of operations that are followed; after them no scalar is known."""

Values = dict[str, DependentScalar | None]


class _UnknownError(Exception):
    """The value that decides the path is unknown."""


class ScalarVisits:
    """The scalars of one run by line and visit: the number of earlier executions of the line's operations."""

    def __init__(self, loaded: Loaded, args: Mapping[str, int | float]) -> None:
        self._function: pto.Function | None = None
        self._arguments: Values = {}
        try:
            parsed = parse(loaded.source, loaded.file, go_past_refused=True)
            self._function = inlined(
                parsed, next(function for function in parsed.functions if function.name == loaded.entry)
            )
            bound = bind_arguments(self._function, args)
        except (CastsimError, StopIteration):  # assembly, or what only the run could read
            self._function = None
            return
        self._arguments = {name: value for name, value in bound.items() if isinstance(value, DependentScalar)}
        self._visits = Counter(line for line, _ in islice(self._follow(), MOST_VISITS))

    def at(self, line: int, execution: int, executions: int) -> Mapping[str, int | float]:
        """Return values by name before an execution of a line (counted from 0)."""
        visits = 0 if self._function is None else self._visits[line]
        if not visits or executions % visits:
            return {}
        wanted = execution // (executions // visits)
        reached = (values for at, values in islice(self._follow(), MOST_VISITS) if at == line)
        values = next(islice(reached, wanted, None), {})
        return {
            name: scalar.value for name, scalar in values.items() if scalar is not None and not name.startswith("pto.")
        }

    def _follow(self) -> Iterator[tuple[int, Values]]:
        """Yield the lines of operations in execution order, with the values before each."""
        assert self._function is not None
        try:
            yield from self._region(self._function.body or (), dict(self._arguments))
        except (_UnknownError, CastsimError):
            return

    def _region(self, body: Sequence[pto.Operation], values: Values) -> Iterator[tuple[int, Values]]:
        for node in body:
            match node:
                case pto.For():
                    yield from self._for(node, values)
                case pto.While():
                    yield from self._while(node, values)
                case pto.If():
                    taken = node.then_body if _source_number(values, node.condition) else node.else_body
                    yield from self._inner(taken, values, node.results)
                case pto.Section():
                    yield node.span.line, values
                    own = {name: values.get(outer) for name, outer in zip(node.carried, node.initial, strict=True)}
                    yield from self._region(node.body, {**values, **own})
                case _:
                    yield node.span.line, values
                    _execute(node, values)

    def _inner(
        self, body: Sequence[pto.Operation], values: Values, results: Sequence[str]
    ) -> Iterator[tuple[int, Values]]:
        """Follow a region, and bind its yielded values to the results' names."""
        own = dict(values)
        yield from self._region(body, own)
        values.update(zip(results, _yielded(body, own), strict=False))

    def _for(self, node: pto.For, values: Values) -> Iterator[tuple[int, Values]]:
        lower, upper, step = (_source_number(values, name) for name in (node.lower, node.upper, node.step))
        carried = [values.get(name) for name in node.initial]
        for count in range(lower, upper, step):
            own = {**values, node.variable: DependentScalar(count), **dict(zip(node.carried, carried, strict=True))}
            yield node.span.line, own
            yield from self._region(node.body, own)
            carried = _yielded(node.body, own)
        values.update(zip(node.results, carried, strict=False))

    def _while(self, node: pto.While, values: Values) -> Iterator[tuple[int, Values]]:
        carried = [values.get(name) for name in node.initial]
        while True:
            own = {**values, **dict(zip(node.carried, carried, strict=True))}
            yield node.span.line, own
            yield from self._region(node.before, own)
            passed = _yielded(node.before, own)
            last = node.before[-1]
            assert isinstance(last, pto.Condition)
            if not _source_number(own, last.condition):
                values.update(zip(node.results, passed, strict=False))
                return
            own = {**values, **dict(zip(node.arguments, passed, strict=True))}
            yield from self._region(node.after, own)
            carried = _yielded(node.after, own)


def _source_number(values: Values, name: str) -> int:
    scalar = values.get(name)
    if scalar is None:
        raise _UnknownError
    return int(scalar.value)


def _yielded(body: Sequence[pto.Operation], values: Values) -> list[DependentScalar | None]:
    last = body[-1] if body else None
    names = last.values if isinstance(last, pto.Yield | pto.Condition) else ()
    return [values.get(name) for name in names]


def _execute(node: pto.Operation, values: Values) -> None:
    """Compute the result of an operation if it is a known scalar."""
    match node:
        case pto.Constant():
            values[node.result] = DependentScalar(constant(node.value, node.type.name))
        case pto.Arith() | pto.Compare() | pto.Convert():
            try:
                values[node.result] = evaluate(
                    node, lambda name: _known(values, name), LoopDependence(), lambda *_: True
                )
            except (_UnknownError, CastsimError):
                values[node.result] = None


def _known(values: Values, name: str) -> DependentScalar:
    scalar = values.get(name)
    if scalar is None:
        raise _UnknownError
    return scalar
