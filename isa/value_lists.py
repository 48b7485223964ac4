"""Lists of values as they are typed: `8..64`, `8..64:8`, `8..64*2`, `128,256`, `RINT,FLOOR`."""

from __future__ import annotations

import re

from castsim.isa.errors import ReadError
from castsim.isa.spans import SourceText, Span
from castsim.isa.value_expressions import LARGEST, Value

LEGAL = ("8..64", "8..64:8 (step 8)", "8..64*2 (doubling)", "128,256,512", "RINT,FLOOR")
"""Forms of a list."""
MOST = 100_000
"""Values of one list."""

_WORD = re.compile(r"[A-Za-z_][\w.+/-]*", re.ASCII)
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,19})", re.ASCII)
_RANGE = re.compile(r"(\d{1,19})\s*\.\.\s*(\d{1,19})\s*(?:([:*])\s*(\d{1,19}))?", re.ASCII)


def read_values(source: SourceText, start: int, end: int) -> tuple[Value, ...]:
    """Return the values that stand between two offsets of a text, in their order, each once.

    Raises:
        ReadError: a malformed value or range, an empty range or list, too many values; carries its place.
    """
    found: dict[Value, None] = {}
    for item in re.finditer(r"[^,]+|(?<=,)(?=,|\Z)", source.text[start:end] or " "):
        text = item[0].strip()
        offset = start + item.start() + len(item[0]) - len(item[0].lstrip())
        span = Span.within(source, min(offset, max(start, end - 1)), max(1, len(text)))
        found |= dict.fromkeys(_item(text, span))
        if len(found) > MOST:
            raise ReadError(f"more than {MOST} values", span=span, legal=LEGAL)
    return tuple(found)


def read_value(text: str, span: Span) -> Value:
    """Return one value: an integer or a word.

    Raises:
        ReadError: it is neither.
    """
    text = text.strip()
    if _INTEGER.fullmatch(text):
        value = int(text, 16 if "x" in text.lower() else 10)
        if abs(value) < LARGEST:
            return value
    if _WORD.fullmatch(text):
        return text
    raise ReadError(f"'{text}' is neither an integer nor a word", span=span, legal=("16", "0x10", "RINT"))


def _item(text: str, span: Span) -> range | tuple[Value, ...]:
    if ".." not in text:
        if not text:
            raise ReadError("a value is missing", span=span, legal=LEGAL)
        return (read_value(text, span),)
    given = _RANGE.fullmatch(text)
    if given is None:
        raise ReadError(f"'{text}' is not a range", span=span, legal=LEGAL)
    first, last, sign, by = int(given[1]), int(given[2]), given[3], int(given[4] or 1)
    if last < first:
        raise ReadError(f"the range {text} is empty: it ends before it begins", span=span, legal=(f"{last}..{first}",))
    if by == 0 or (sign == "*" and (by == 1 or first == 0)):
        raise ReadError(f"the range {text} never gets to its end", span=span, legal=LEGAL)
    if sign == "*":
        found = [first]
        while found[-1] * by <= last:
            found.append(found[-1] * by)
        return tuple(found)
    if (last - first) // by >= MOST:
        raise ReadError(f"the range {text} has more than {MOST} values", span=span, legal=LEGAL)
    return range(first, last + 1, by)
