"""How a conversion of somebody's own compares with a cast, as JSON."""

from __future__ import annotations

import math

from castsim.evidence.user_conversions import Comparison, Counterexample
from castsim.isa.formats import FORMATS
from castsim.numerics import value_of
from castsim.reports.documents import Document
from castsim.reports.numbers import bits_text, json_value


def comparison_document(found: Comparison) -> Document:
    """Return the comparison."""
    return {
        "src": found.src.name,
        "dst": found.dst.name,
        "target": found.target,
        "inputs": found.inputs,
        "all_codes": found.all_codes,
        "differing": found.differing,
        "unrepresentable": found.unrepresentable,
        "largest_ulps": found.largest_ulps,
        "mean_ulps": found.mean_ulps,
        "signal_to_noise_db": found.signal_to_noise_db,
        "cast_signal_to_noise_db": found.cast_signal_to_noise_db,
        "first": None if found.first is None else _first(found, found.first),
        "binades": [
            {
                "kind": each.kind,
                "exponent": each.exponent,
                "inputs": each.inputs,
                "differing": each.differing,
                "largest_ulps": each.largest_ulps,
            }
            for each in found.binades
        ],
    }


def _first(found: Comparison, first: Counterexample) -> Document:
    number = first.number
    return {
        "position": first.position,
        "input_bits": bits_text(first.code, found.src),
        "input": json_value(value_of(first.code, found.src), found.src),
        "expected_bits": bits_text(first.expected, found.dst),
        "expected": json_value(value_of(first.expected, found.dst), found.dst),
        "given_bits": None if first.given is None else bits_text(first.given, found.dst),
        "given": json_value(number, FORMATS["f64"]) if not math.isfinite(number) else number,
    }
