"""Tables of the vector instructions of the A5, from `castsim.isa.pto.micro_forms`."""

from __future__ import annotations

from makers.page_parts.markdown import codes, csv_text

from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.micro_words import CONVERSIONS, LEGAL, ROUNDINGS, SYNONYMS, forms_of
from castsim.languages.vmi.operations import DISTRIBUTIONS, LEGACY
from castsim.languages.vmi.operations import SYNONYMS as LOGICAL_SYNONYMS
from castsim.languages.vmi.operations import VMI_ROWS as LOGICAL


def operation_file() -> str:
    """Return every operation as CSV: its spellings, element types, where it may stand."""
    rows = (
        (
            f"pto.{name}", "; ".join(form.spelling(name) for form in forms_of(name)), " ".join(row.elements) or "any",
            row.place.value,
        )
        for name, row in ROWS.items()
    )  # fmt: skip
    return csv_text(("operation", "how it is written", "elements", "where"), rows)


def conversion_file() -> str:
    """Return every pair of `vcvt` as CSV, with the words that its attributes must have."""
    rows = (
        (pair.src, pair.dst, *(" ".join(words) or "forbidden" for words in pair.words.values()))
        for pair in CONVERSIONS.values()
    )
    return csv_text(("from", "to", "rnd", "sat", "part"), rows)


def logical_file() -> str:
    """Return every operation on logical registers as CSV: an example, its elements, the keys of its dictionary."""
    rows = (
        (f"pto.vmi.{name}", row.example, " ".join(row.elements) or "any", " ".join(row.keys))
        for name, row in LOGICAL.items()
        if name not in LEGACY
    )
    return csv_text(("operation", "example", "elements", "keys"), rows)


def logical() -> str:
    """Return the older names of operations on logical registers, and other names of their keys."""
    others = ", ".join(f"`{other}` is `{key}`" for other, key in LOGICAL_SYNONYMS.items())
    return (
        f"Older names of `vmi.vcvt`: {codes(f'vmi.{name}' for name in LEGACY)}.\n\n"
        f"Other names of keys: {others}. `dist_mode` has the values {codes(DISTRIBUTIONS)}.\n"
    )


def words() -> str:
    """Return the kinds of words and the meaning of the roundings."""
    roundings = ", ".join(f"`{letter}` {mode.value}" for letter, mode in ROUNDINGS.items())
    return f"Kinds: {codes(LEGAL)}.\n\nRoundings (`rnd`): {roundings}.\n"


def word_file() -> str:
    """Return the legal words of every kind as CSV, with their other names."""
    rows = (
        (kind, word, " ".join(other for other, own in SYNONYMS.get(kind, {}).items() if own == word))
        for kind, legal in LEGAL.items()
        for word in legal
    )
    return csv_text(("kind", "word", "other names"), rows)
