"""Readers of micro operations, by name; what reads them is loaded with the first of them."""

from __future__ import annotations

from castsim.isa.pto.micro.forms import ROWS as MICRO_ROWS
from castsim.isa.pto.program import Operation
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.statement import Handler, Statement


def _read_micro(reader: PtoReader, statement: Statement) -> Operation:
    from castsim.isa.pto.micro.reading import read_micro  # noqa: PLC0415 - programs of tiles start without it

    return read_micro(reader, statement)


def _read_generic_micro(reader: PtoReader, statement: Statement) -> Operation:
    from castsim.isa.pto.micro.reading import read_generic  # noqa: PLC0415 - as above

    return read_generic(reader, statement)


MICRO_READERS: dict[str, Handler] = {
    **{f"pto.{name}": _read_micro for name in MICRO_ROWS},
    **{f'"pto.{name}"': _read_generic_micro for name in MICRO_ROWS},
}
"""Reader of every micro operation."""
