"""Spellings of formats in tables of measurements that `castsim.isa.formats` does not take: those of C++ and of
packed pairs.
"""

from __future__ import annotations

from castsim.isa.formats import Format, format_named

_ENDINGS = ("_t", "x2")
"""What C++ adds to a type's name, and what says that two elements share a byte."""

_STEMS = {
    "float8_e4m3": "e4m3fn",
    "float4_e2m1": "e2m1",
    "float4_e1m2": "e1m2",
    "f4e2m1": "e2m1",
    "f4e1m2": "e1m2",
    "hif4": "e1m2",
    "int4b": "i4",
}


def format_of(text: str) -> Format:
    """Return the format that any table's spelling means.

    Raises:
        ReadError: no such format; the legal names are listed.
    """
    name = text.strip().lower().replace("-", "_")
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    name = name.removesuffix("_")
    return format_named(_STEMS.get(name, name))
