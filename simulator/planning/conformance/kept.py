"""The entries of a matrix in JSON, as a ledger holds them until all are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import TypeVar

from castsim.isa.formats import format_named
from castsim.planning import Counterexample, PlanKind, Verdict
from castsim.planning.conformance.cells import Cell, ConformanceEntry
from castsim.planning.counterexample import Number, Required, TracedValue
from castsim.planning.lowering_answers import Setting

_Read = TypeVar("_Read")
_CODED = ("lowest", "highest", "further")


def entry_document(entry: ConformanceEntry) -> dict[str, object]:
    """Return an entry as JSON."""
    return {
        "cell": asdict(entry.cell),
        "kind": entry.kind.value,
        "verdict": entry.verdict.value,
        "path": entry.path,
        "instructions": entry.instructions,
        "options": entry.options,
        "method": entry.method,
        "proven": entry.proven,
        "cycles_per_element": entry.cycles_per_element,
        "counterexample": None if entry.counterexample is None else _counterexample_document(entry.counterexample),
        "settings": entry.settings,
        "native": entry.native,
    }


def read_entry(held: object) -> ConformanceEntry:
    """Return the entry that JSON describes.

    Raises:
        TypeError, KeyError, ValueError: it describes none.
    """
    found = _mapping(held)
    cell = _mapping(found["cell"])
    pairs = tuple((str(name), str(value)) for name, value in _list(cell["attributes"], _pair))
    return ConformanceEntry(
        cell=Cell(str(cell["src"]), str(cell["dst"]), pairs, str(cell["target"])),
        kind=PlanKind(str(found["kind"])),
        verdict=Verdict(str(found["verdict"])),
        path=_list(found["path"], str),
        instructions=_list(found["instructions"], str),
        options=_list(found["options"], str),
        method=_optional(found["method"], str),
        proven=bool(found["proven"]),
        cycles_per_element=_optional(found["cycles_per_element"], _float),
        counterexample=_optional(found["counterexample"], _counterexample),
        settings=_setting(found["settings"]),
        native=_optional(found["native"], _setting),
    )


def _counterexample_document(found: Counterexample) -> dict[str, object]:
    required = found.required
    return {
        "values": [[each.step, each.format.name, each.code, _number_text(each.value)] for each in found.values],
        "required": {
            "nan": required.nan,
            **{name: [one[0], _number_text(one[1])] if (one := getattr(required, name)) else None for name in _CODED},
        },
    }


def _counterexample(held: object) -> Counterexample:
    found = _mapping(held)
    required = _mapping(found["required"])
    lowest, highest, further = (_optional(required[name], _coded) for name in _CODED)
    return Counterexample(_list(found["values"], _traced), Required(lowest, highest, further, bool(required["nan"])))


def _traced(held: object) -> TracedValue:
    step, fmt, code, value = _list(held, _same)
    return TracedValue(_optional(step, str), format_named(str(fmt)), int(str(code)), _number(value))


def _coded(held: object) -> tuple[int, Number]:
    code, value = _list(held, _same)
    return int(str(code)), _number(value)


def _number_text(value: Number) -> str:
    """Return a number so that it can be read back: a fraction as such, a float behind `~`."""
    return f"~{value!r}" if isinstance(value, float) else str(value)


def _number(held: object) -> Number:
    text = str(held)
    return float(text[1:]) if text.startswith("~") else Fraction(text)


def _setting(held: object) -> Setting:
    return tuple((str(name), value if isinstance(value, int) else str(value)) for name, value in _list(held, _pair))


def _pair(held: object) -> tuple[object, object]:
    first, second = _list(held, _same)
    return first, second


def _same(held: object) -> object:
    return held


def _float(held: object) -> float:
    return float(str(held))


def _list(held: object, read: Callable[[object], _Read]) -> tuple[_Read, ...]:
    if not isinstance(held, list):
        raise TypeError(f"{held!r} is not a list")
    return tuple(read(each) for each in held)


def _mapping(held: object) -> Mapping[str, object]:
    if not isinstance(held, dict):
        raise TypeError(f"{held!r} is not an object")
    return held


def _optional(held: object, read: Callable[[object], _Read]) -> _Read | None:
    return None if held is None else read(held)
