"""Readers of operations on logical registers, by name; what reads them is loaded with the first of them."""

from __future__ import annotations

from castsim.isa.pto.program import Operation
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.statement import Handler, Statement
from castsim.isa.pto.vmi.forms import PREFIX, ROWS, SYNONYMOUS


def _read_vmi(reader: PtoReader, statement: Statement) -> Operation:
    from castsim.isa.pto.vmi.reading import read_vmi  # noqa: PLC0415 - programs of tiles start without it

    return read_vmi(reader, statement)


VMI_READERS: dict[str, Handler] = {f"pto.{PREFIX}{name}": _read_vmi for name in (*ROWS, *SYNONYMOUS)}
"""Reader of every operation."""
