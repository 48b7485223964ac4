"""Conditions at which a program is to stop: on elements, on pipes, on the cycle."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import ReadError
from castsim.isa.formats import Format, IntFormat, format_named
from castsim.numerics import decode_to_float64, parse_number
from castsim.running.stepping.symbols import Elements, Selection
from castsim.timing import Cause

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
"""What an element may be."""

WAITING = "waiting"
PIPE_STATES = (WAITING, Cause.BUSY.value, Cause.EMPTY.value)
"""What a pipe may be: it waits for any cause but these two, is busy, or has nothing to do."""


class Stopped(Protocol):
    """A program before a step, as a condition sees it."""

    def elements(self, selection: Selection) -> Elements:
        """Return the elements of a selection. Errors as `symbols.selected`."""
        ...

    def pipe(self, name: str) -> str:
        """Return the cause that a pipe spends the cycle of the stop on."""
        ...

    @property
    def cycle(self) -> int:
        """The cycle of the stop."""
        ...


class Condition(Protocol):
    """Something that is true or false at a stop."""

    def holds(self, at: Stopped) -> bool:
        """Whether it holds; False where a name has no value yet."""
        ...


@dataclass(slots=True)
class ElementCondition:
    """Any of the selected elements is such that `test` holds of its number."""

    selection: Selection
    test: Callable[[NDArray[np.generic]], NDArray[np.bool_]]
    _last: tuple[bytes, str, bool] | None = field(default=None)

    def holds(self, at: Stopped) -> bool:
        """Look at the elements; the same codes once more are not decoded again."""
        try:
            elements = at.elements(self.selection)
            codes, fmt = elements.codes(), elements.place.format
        except ReadError:
            return False
        key = codes.tobytes()
        if self._last is None or self._last[:2] != (key, fmt.name):
            found = bool((self.test(numbers(codes, fmt)) & elements.known()).any())
            self._last = key, fmt.name, found
        return self._last[2]


@dataclass(frozen=True, slots=True)
class PipeCondition:
    """A pipe is in a state, or is not."""

    pipe: str
    state: str
    negated: bool

    def holds(self, at: Stopped) -> bool:
        """Ask what the pipe does in the cycle of the stop."""
        cause = at.pipe(self.pipe)
        found = cause not in PIPE_STATES if self.state == WAITING else cause == self.state
        return found != self.negated


@dataclass(frozen=True, slots=True)
class CycleCondition:
    """The cycle of the stop compared with a number."""

    test: Callable[[int], bool]

    def holds(self, at: Stopped) -> bool:
        """Compare."""
        return self.test(at.cycle)


def numbers(codes: NDArray[np.unsignedinteger], fmt: Format) -> NDArray[np.generic]:
    """Return what codes stand for: integers of 64 bits as such, all else as float64."""
    if isinstance(fmt, IntFormat) and fmt.bits == 64:
        return np.ascontiguousarray(codes).view("<i8" if fmt.signed else "<u8")
    mask = codes.dtype.type((1 << fmt.bits) - 1) if isinstance(fmt, IntFormat) and fmt.bits < 8 else None
    return decode_to_float64(codes if mask is None else codes & mask, fmt)


def parse_condition(text: str, pipes: tuple[str, ...]) -> Condition:
    """Read a condition: `dst[3,7] is nan`, `acc[0:4,0] >= 448`, `pipe V is waiting`, `cycle > 500`.

    Raises:
        ReadError: it is none; an unknown pipe or state.
    """
    text = text.strip()
    word, _, rest = text.partition(" ")
    if word == "pipe" and rest.strip():
        return _pipe_condition(rest.strip(), pipes)
    if found := _COMPARED.fullmatch(text):
        left, sign, right = found["left"], found["sign"], found["right"]
        if _number(right) is None and _number(left) is not None:
            left, sign, right = right, _MIRRORED[sign], left
        number = _number(right)
        if number is None:
            raise ReadError(f"'{right}' is not a number to compare with", legal=("1.5", "-3", "nan", "inf"))
        compare, limit = _SIGNS[sign], number
        if left == "cycle":
            return CycleCondition(lambda cycle: bool(compare(cycle, limit)))
        return ElementCondition(parse_selection(left), lambda values: np.asarray(compare(values, limit), np.bool_))
    if found := _KIND.fullmatch(text):
        kind = KINDS.get(found["kind"].lower())
        if kind is None:
            raise ReadError(f"an element cannot be '{found['kind']}'", legal=KINDS)
        test, negated = kind, found["no"] is not None
        return ElementCondition(parse_selection(found["left"]), lambda values: test(values.astype(float)) != negated)
    raise ReadError(
        f"'{text}' is not a condition", legal=("dst[3,7] is nan", "dst[0,0] > 1.5", "pipe V is waiting", "cycle >= 500")
    )


def _pipe_condition(text: str, pipes: tuple[str, ...]) -> PipeCondition:
    found = re.fullmatch(r"(?P<pipe>\S+)\s+is\s+(?P<no>not\s+)?(?P<state>.+)", text)
    if found is None:
        raise ReadError(f"'pipe {text}' is not a condition", legal=("pipe V is waiting",))
    pipe = next((each for each in pipes if each.lower() == found["pipe"].lower()), None)
    if pipe is None:
        raise ReadError(f"there is no pipe '{found['pipe']}'", legal=pipes)
    states = dict.fromkeys((*PIPE_STATES, *(cause.value for cause in Cause)))
    if found["state"] not in states:
        raise ReadError(f"a pipe cannot be '{found['state']}'", legal=states)
    return PipeCondition(pipe, found["state"], found["no"] is not None)


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
        ReadError: it is none of these; an unknown format.
    """
    found = _SELECTION.fullmatch(text.strip())
    if found is None:
        raise ReadError(f"'{text.strip()}' names no elements", legal=("dst", "dst[3,7]", "dst[0:2,3] as f16"))
    fmt = None if found["format"] is None else format_named(found["format"])
    if found["index"] is None:
        return Selection(found["name"], (), fmt)
    return Selection(found["name"], tuple(map(_index, found["index"].split(","))), fmt)


def _index(text: str) -> slice | int:
    found = _INDEX.fullmatch(text.strip())
    if found is None or not (found[1] or found[2]) or max(map(len, (found[1] or "", found[3] or ""))) > _DIGITS:
        raise ReadError(f"'{text.strip()[:40]}' is not an index", legal=("3", "0:2", ":"))
    first, last = (None if each is None else int(each) for each in (found[1], found[3]))
    if found[2] is None:
        assert first is not None
        return first
    return slice(first, last)


_DIGITS = 18
"""Digits of an index: more than any memory has bytes."""
