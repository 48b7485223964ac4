"""The difference of two runs as JSON."""

from __future__ import annotations

from collections.abc import Iterable

from castsim.exploration.differences import (
    Difference,
    ElementDifference,
    LineDifference,
    OutputDifference,
    Side,
    SideOutput,
)
from castsim.isa.formats import Format
from castsim.numerics import value_of
from castsim.reports.documents import VERSIONS, Document, Json, document, json_of
from castsim.reports.numbers import bits_text, json_value


def difference_document(found: Difference) -> Document:
    """Return a difference as JSON: the lines and pipes that differ, and every output."""
    return {
        "schema_version": VERSIONS["diff"],
        **document(found, "equal", "cycles_a", "cycles_b", "slowdown_percent"),
        "lines": [_line(each) for each in found.lines],
        "outputs": [_output(each) for each in found.outputs],
        "pipes": [document(each, "pipe", "causes_a", "causes_b") for each in found.pipes],
        "a": _side(found.a),
        "b": _side(found.b),
    }


def difference_lines(lines: Iterable[LineDifference]) -> list[Json]:
    """Return lines as JSON with the pipe cycles that each spends."""
    return [{**_line(each), "spent_a": each.spent[0], "spent_b": each.spent[1]} for each in lines]


def _side(side: Side) -> Document:
    return {**document(side, "file", "entry", "target", "seconds"), "from_json": side.result is None}


def _line(each: LineDifference) -> Document:
    return {
        **document(each, "line_a", "line_b", "change", "cycles_a", "cycles_b"),
        "causes_a": json_of(None if each.cost_a is None else each.cost_a.causes),
        "causes_b": json_of(None if each.cost_b is None else each.cost_b.causes),
        "text_a": None if each.a is None else each.a.text,
        "text_b": None if each.b is None else each.b.text,
    }


def _output(each: OutputDifference) -> Document:
    a, b = each.a, each.b
    return {
        **document(each, "name", "equal", "differing"),
        "first": [] if a is None or b is None else [_element(one, a.format, b.format) for one in each.first],
        **_about(a, "a"),
        **_about(b, "b"),
    }


def _about(output: SideOutput | None, letter: str) -> Document:
    return {
        f"name_{letter}": None if output is None else output.name,
        f"format_{letter}": None if output is None else output.format.name,
        f"shape_{letter}": None if output is None else list(output.shape),
    }


def _element(each: ElementDifference, a: Format, b: Format) -> Document:
    return {
        "index": list(each.index),
        "bits_a": bits_text(each.bits_a, a),
        "bits_b": bits_text(each.bits_b, b),
        "value_a": json_value(value_of(each.bits_a, a), a),
        "value_b": json_value(value_of(each.bits_b, b), b),
    }
