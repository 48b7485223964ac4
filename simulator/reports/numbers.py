"""Spelling of codes, numbers and times in reports, order and colours of causes, and facts of targets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from castsim.execution.timing import Cause, PipeTiming
from castsim.isa.formats import Format, IntFormat
from castsim.isa.pto.value_types import MicroOperation
from castsim.reports.documents import Document, Json, Keys, apart, derived, identifier, json_of, record
from castsim.reports.schemas.keys import Bits, FactEntry, Value
from castsim.targets.dataflow import APART, CONSECUTIVE, PARTLY_APART
from castsim.targets.description import DOUBTFUL, Fact, Option, Table
from castsim.targets.loader import Target

Number = Fraction | float
"""A number of a format, infinities and NaN included."""

_MOST_LINES = 5
"""Maximum number of lines that a sentence names."""


def lines_named(lines: Iterable[int]) -> str:
    """Return distinct source lines in words, only the first ones if there are very many."""
    numbers = sorted(set(lines))
    shown = ", ".join(map(str, numbers[:_MOST_LINES]))
    more = f" and {len(numbers) - _MOST_LINES} more" if len(numbers) > _MOST_LINES else ""
    return f"line{'s' if len(numbers) > 1 else ''} {shown}{more}"


def grouped(number: int) -> str:
    """Return an integer with commas between thousands."""
    return f"{number:,}"


CLOCKS = {status: status.value.replace("-", " ") for status in DOUBTFUL}
"""The evidence for an undocumented clock frequency."""


def clock(target: Target) -> str:
    """Return the frequency in words, with its evidence if it is undocumented."""
    status = target.frequency.status
    return f"{target.frequency.megahertz:,} MHz{f' ({CLOCKS[status]})' if status in CLOCKS else ''}"


PLACEMENTS = {
    APART: "operands in different banks; consecutive: --option tile_placement=consecutive",
    PARTLY_APART: "the buffer has no room to keep all operands in different banks",
    CONSECUTIVE: "consecutively",
}
"""Meaning of each placement of tiles."""

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_MOST_WHOLE = 1000


def duration(seconds: float) -> str:
    """Return a time in the largest unit in which it is at least 1, to four digits, the precision of known clocks."""
    unit, scale = next(((unit, scale) for unit, scale in _UNITS if seconds >= scale), _UNITS[-1])
    number = seconds / scale
    return f"{number:,.0f} {unit}" if number >= _MOST_WHOLE else f"{number:.4g} {unit}"


def bits_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal, with as many digits as the format has; for i48 without the sign extension."""
    return f"0x{code & ((1 << fmt.bits) - 1):0{-(-fmt.bits // 4)}x}"


def json_value(value: Number, fmt: Format) -> int | float | str:
    """Return a finite value as a number, others as `nan`, `inf`, `-inf`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value) if isinstance(fmt, IntFormat) else float(value)


def number_document(code: int, value: Number, fmt: Format) -> Document:
    """Return a code and its number."""
    return CodedNumber(code, value, fmt).as_json()


@record
class CodedNumber(Keys, title="Number"):
    """A code and the number that it stands for."""

    code: int = apart()
    number: Number = apart()
    format: Format = apart()
    bits: Bits = derived("The code in hexadecimal.", lambda own: bits_text(own.code, own.format))
    value: Value = derived(
        "The number: JSON has no NaN and no infinities, which are `nan`, `inf`, `-inf`.",
        lambda own: json_value(own.number, own.format),
    )


class HasCauses(Protocol):
    """Interface of what has cycles by cause: a pipe, an estimate."""

    @property
    def causes(self) -> Mapping[Cause, int]:
        """Cycles by cause."""
        ...


def causes_of(pipe: HasCauses) -> dict[Cause, int]:
    """Return the cycles of a pipe or an estimate by cause, without zeros, in the order of `Cause`."""
    return {cause: pipe.causes[cause] for cause in Cause if pipe.causes.get(cause)}


def present_causes(pipes: Mapping[str, PipeTiming]) -> list[Cause]:
    """Return the causes that any pipe has, in the order of `Cause`."""
    return [cause for cause in Cause if any(pipe.causes.get(cause) for pipe in pipes.values())]


CAUSE_COLOURS: Mapping[Cause, tuple[str, str, str, str]] = {
    Cause.BUSY: ("#2b6cb0", "#5a9fe0", "bright_blue", ""),
    Cause.FILL: ("#8bb473", "#cdffcd", "green", "/"),
    Cause.DRAIN: ("#b8f5b1", "#5d664b", "green", "\\"),
    Cause.OPERAND_WAIT: ("#55506c", "#b3a8ab", "dim", ".."),
    Cause.FLAG_WAIT: ("#8388a9", "#3f5f60", "dim", "."),
    Cause.BARRIER: ("#7c7076", "#898095", "dim", "|"),
    Cause.DEPENDENCE: ("#738cf8", "#530e6b", "dim", "-"),
    Cause.STORE_BARRIER: ("#0c00d5", "#1a1ffb", "dim", "--"),
    Cause.BANK_CONFLICT: ("#742328", "#f6a579", "red", "x"),
    Cause.PORT: ("#ea3f00", "#ec7001", "yellow", "//"),
    Cause.INITIATION_INTERVAL: ("#fedb40", "#f1eb15", "yellow", "\\\\"),
    Cause.LOOP_TURNAROUND: ("#ab1a00", "#af5313", "yellow", "+"),
    Cause.SERIALISING_BRANCH: ("#4f1677", "#586dec", "magenta", "xx"),
    Cause.MEMORY_LATENCY: ("#da9baa", "#b27979", "magenta", "||"),
    Cause.MEMORY_BANDWIDTH: ("#ac5f54", "#953890", "magenta", "++"),
    Cause.EMPTY: ("#d5dbe3", "#2a323d", "dim", ""),
}
"""The colours of causes on light and on dark pages and in a terminal, and their hatching, as matplotlib writes it.

Work is blue and green, waits for other pipes are muted. `tests/core/reports/test_colours.py` simulates colour-blind
readers. Notebooks, whose background is unknown, use the first colours.
"""

SERIES = (
    ("#004861", "#166ae4", ""),
    ("#f3bb58", "#ffae00", "/"),
    ("#098970", "#09b78f", "\\"),
    ("#c736c8", "#81667b", "x"),
    ("#6fcffe", "#d2f4ff", "."),
    ("#803700", "#cb5c01", "|"),
    ("#928206", "#fffebf", "-"),
    ("#bbb9b7", "#9ea0c5", "+"),
)
"""Colours of other series in one chart, on light and on dark pages, with hatching."""

_CHIPS = ("a2a3", "a5", "goya", "gaudi", "gaudib", "gaudi2", "greco")
_PIPES = ("V", "MTE2", "MTE3", "S", "M", "MTE1", "FIX")
_SLOTS = ("VPU", "LOAD", "STORE", "SPU")

TONES: Mapping[str, tuple[str, str, str]] = {
    **{identifier(cause): (light, dark, hatch) for cause, (light, dark, _, hatch) in CAUSE_COLOURS.items()},
    **{name: SERIES[number] for names in (_CHIPS, _PIPES, _SLOTS) for number, name in enumerate(names)},
    "window": ("#52ccf6", "#a5c2de", "o"),
    "chain": ("#222b38", "#e8edf4", ""),
    **dict(zip(("first", "second", "read", "wrapped", "live", "clamped", "overflow"), SERIES, strict=False)),
    "write": SERIES[1],
    "rounded": SERIES[1],
    "exact": SERIES[2],
    "nan": SERIES[0],
    "sound": ("#2f815d", "#8cf172", ""),
    "optional": ("#033f7f", "#3287ff", "/"),
    "chained": ("#9b46eb", "#fbc1f9", "\\"),
    "mixed": ("#6c6b80", "#8e8c9a", "."),
    "bad": ("#d50008", "#c57463", "x"),
    "impossible": ("#500c10", "#fffff2", "-"),
}
"""Colours that mean the same in all charts, by name, in the form of `SERIES`."""


# The facts of a target by path, and which of those that a run rested on are less than documented.

OPTIONS = "options"
"""Key of the options in a description."""

_ABOUT = frozenset({*Fact.model_fields, "validated"})
"""Fields about the origin and reliability of a fact, not its value."""


def facts_by_part(target: Target) -> dict[str, tuple[FactEntry, ...]]:
    """Return the fact tables of a target by section of its description, in the order of the description."""
    return {
        part: tuple(entry for path, fact in _facts(getattr(target, part), part) for entry in _entries(path, fact))
        for part in type(target).model_fields
    }


def facts_of(target: Target) -> Iterator[FactEntry]:
    """Yield every fact table of a target, in the order of its description."""
    for facts in facts_by_part(target).values():
        yield from facts


def doubtful_facts(target: Target, paths: Iterable[str]) -> tuple[FactEntry, ...]:
    """Return the facts at `paths` that are assumed, fitted or from a vendor's model, sorted by path.

    A path is the key in the description, such as `timing.vector.vconv`.
    """
    wanted = set(paths)
    entries = (entry for path, fact in _facts(target, "") if path in wanted for entry in _entries(path, fact))
    return tuple(sorted((entry for entry in entries if entry.status in DOUBTFUL), key=lambda entry: entry.name))


def described(value: object) -> str:
    """Return the value of a fact in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {described(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " ".join(described(item) for item in value)
    return str(value)


def _facts(node: object, path: str) -> Iterator[tuple[str, Fact]]:
    if isinstance(node, Fact):
        yield path, node
    elif isinstance(node, Table):
        for name in type(node).model_fields:
            yield from _facts(getattr(node, name), f"{path}.{name}" if path else name)
    elif isinstance(node, Mapping):
        for key, item in node.items():
            yield from _facts(item, f"{path}.{key}")
    elif isinstance(node, tuple):
        for number, item in enumerate(node):
            yield from _facts(item, f"{path}[{number}]")


def _entries(path: str, fact: Fact) -> Iterator[FactEntry]:
    """Yield a fact, and the values inherited from another description by their source."""
    if isinstance(fact, Option):
        yield FactEntry(path, fact.status, fact.value, fact.source, fact.note)
        return
    elsewhere = {name for kept in fact.kept for name in kept.names}
    names = [name for name in type(fact).model_fields if _is_told(fact, name)]
    own = {name: _plain(getattr(fact, name)) for name in names if name not in elsewhere}
    yield FactEntry(path, fact.status, own, fact.source, fact.note)
    for kept in fact.kept:
        values: Json = {name: _plain(getattr(fact, name)) for name in names if name in kept.names}
        yield FactEntry(path, kept.status, values, kept.source, "unchanged from the base")


def _is_told(fact: Fact, name: str) -> bool:
    """Return whether a field describes what a fact is; fields that no known chip uses are left out at their default."""
    field = type(fact).model_fields[name]
    return name not in _ABOUT and (field.repr or getattr(fact, name) != field.default)


def _plain(value: object) -> Json:
    """Return a value that JSON can represent: decimals as in `documents`, values with a text form as that text."""
    if isinstance(value, Table):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, MicroOperation):
        from castsim.targets.vector_function import instruction_text  # noqa: PLC0415 - only such targets have any

        return instruction_text(value)
    return json_of(value) if value is None or isinstance(value, bool | int | float | str | Decimal) else str(value)
