"""Tables of the vector instructions of the A5, from `castsim.isa.pto.micro`."""

from __future__ import annotations

from castsim.isa.pto.micro.conversions import CONVERSIONS, ROUNDINGS
from castsim.isa.pto.micro.form import forms_of
from castsim.isa.pto.micro.forms import ROWS
from castsim.isa.pto.micro.words import LEGAL, SYNONYMS
from castsim.isa.pto.vmi.forms import DISTRIBUTIONS, LEGACY, PREFIX
from castsim.isa.pto.vmi.forms import ROWS as LOGICAL
from castsim.isa.pto.vmi.forms import SYNONYMS as LOGICAL_SYNONYMS
from page_parts.markdown import code, codes, table


def operations() -> str:
    """Return every operation: one spelling per form, element types, where it may stand."""
    rows = (
        (
            code(f"pto.{name}"),
            "<br>".join(code(form.spelling(name)) for form in forms_of(name)),
            codes(row.elements) or "any",
            row.place.value,
        )
        for name, row in ROWS.items()
    )
    return table(("operation", "how it is written", "elements", "where"), rows)


def conversions() -> str:
    """Return every pair of `vcvt` with the words that its attributes must have."""
    rows = (
        (code(pair.src), code(pair.dst), *(codes(words) or "forbidden" for words in pair.words.values()))
        for pair in CONVERSIONS.values()
    )
    return table(("from", "to", "rnd", "sat", "part"), rows)


def logical() -> str:
    """Return every operation on logical registers: an example, its elements, the keys of its dictionary."""
    rows = (
        (code(f"pto.{PREFIX}{name}"), code(row.example), codes(row.elements) or "any", codes(row.keys))
        for name, row in LOGICAL.items()
        if name not in LEGACY
    )
    others = ", ".join(f"`{other}` is `{key}`" for other, key in LOGICAL_SYNONYMS.items())
    return (
        f"{table(('operation', 'example', 'elements', 'keys'), rows)}\n"
        f"Older names of `{PREFIX}vcvt`: {codes(PREFIX + name for name in LEGACY)}. Other names of keys: {others}. "
        f"`dist_mode` has the values {codes(DISTRIBUTIONS)}.\n"
    )


def words() -> str:
    """Return the legal words of every kind, their other names, and the meaning of the roundings."""
    rows = (
        (
            code(kind),
            codes(legal),
            "; ".join(f"`{other}` is `{word}`" for other, word in SYNONYMS.get(kind, {}).items()),
        )
        for kind, legal in LEGAL.items()
    )
    letters = ", ".join(f"`{letter}` is {mode.value}" for letter, mode in ROUNDINGS.items())
    return f"{table(('word', 'values', 'other names'), rows)}\nRoundings: {letters}.\n"
