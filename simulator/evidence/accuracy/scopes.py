"""Rows that measure programs of vector instructions: a body, and the loops around it.

Columns: `case`, `dtype`, `loops`, `trips`, `unroll`, `measured_cycles`, `between_loops` (a barrier) and `program`, in
which `r=vmul a b` computes, `a=vlds A` loads from a buffer, `vsts B r` stores to one, and `4 x (a=vadds a)` repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from castsim.execution.micro.bodies import LOAD as BODY_LOAD
from castsim.execution.micro.bodies import STORE as BODY_STORE
from castsim.execution.micro.bodies import Body, Step
from castsim.isa.errors import ReadError, Span
from castsim.isa.formats import Format

PROGRAM = "program"
"""The column that tells a table of programs from one of tiles."""

SCOPE_COLUMNS = (PROGRAM, "dtype", "trips", "measured_cycles")
"""Columns without which there is nothing to compare."""

SCOPE = "vecscope"
"""The operation of these rows."""

_REPEATED = re.compile(r"(\d{1,5}) x \((.*)\)")
_STEP = re.compile(r"(?:(?P<result>\w+) *= *)?(?P<mnemonic>[a-z]\w*)(?P<operands>(?: +\w+)*)")


def body_of(text: str, loops: int, trips: int, unroll: int, element: Format, between: str, span: Span) -> Body:
    """Read the program of a row.

    Raises:
        ReadError: something in it is no instruction; names the place of the cell.
    """
    steps = tuple(step for part in text.split(";") for step in _steps(part.strip(), span))
    return Body(loops, trips, unroll, steps, element.storage_bits, between)


def _steps(text: str, span: Span) -> Iterator[Step]:
    repeated = _REPEATED.fullmatch(text)
    times, text = (int(repeated[1]), repeated[2]) if repeated else (1, text)
    found = _STEP.fullmatch(text)
    if found is None:
        legal = ("a=vlds A", "r=vmul a b", "vsts B r", "4 x (a=vadds a)")
        raise ReadError(f"'{text}' is not an instruction of a program", span=span, legal=legal)
    result, mnemonic, operands = found["result"] or "", found["mnemonic"], tuple(found["operands"].split())
    buffer = ""
    if mnemonic in (BODY_LOAD, BODY_STORE):
        if not operands:
            raise ReadError(f"'{text}' names no buffer", span=span)
        buffer, *rest = operands
        operands = tuple(rest)
    for _ in range(times):
        yield Step(mnemonic, result, operands, buffer)
