"""Names of a source that its text keeps, and scalars of it that nothing uses any more."""

from __future__ import annotations

import re
from collections import Counter

from castsim.isa.pto.program import Function
from castsim.isa.pto.regions import nodes
from castsim.machines.vector_function.expansion.writer import Writer

_NAME = re.compile(r"%[\w$.#-]+")
_SCALAR = re.compile(r"\s*(%\S+) = (?:arith|math)\.")


def names_in(function: Function) -> set[str]:
    """Return every name that the text gives a value."""
    found: set[str] = set()
    for node in nodes(function.body or ()):
        for held in ("result", "variable", "dst"):
            found.add(str(getattr(node, held, "")))
        for held in ("results", "carried", "arguments", "outputs"):
            found.update(name.partition("#")[0] for name in getattr(node, held, ()))
    return found


def drop_unused(out: Writer) -> None:
    """Leave out scalars and constants that nothing uses."""
    lines = out.lines
    while True:
        counts = Counter(name for line in lines for name in _NAME.findall(line))
        kept = [line for line in lines if (found := _SCALAR.match(line)) is None or counts[found.group(1)] > 1]
        if len(kept) == len(lines):
            break
        lines[:] = kept
    for key, name in tuple(out.constants.items()):
        if name not in counts:
            del out.constants[key]
