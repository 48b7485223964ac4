"""Reading `pto.tprint`, which writes nothing (docs/reference/pto.md section 7.11)."""

from __future__ import annotations

from castsim.isa.pto.attributes import Attributes, read_attributes, sorted_texts
from castsim.isa.pto.program import Operation, TileOperation
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.statement import Handler, Statement
from castsim.isa.pto.tile_operations import read_operands
from castsim.isa.pto.vector_operations import PRINT


def _read_print(reader: PtoReader, statement: Statement) -> Operation:
    """Read `pto.tprint ins(%t : T)`, which writes nothing."""
    statement.no_result(reader)
    reader.expect("ins")
    attributes: Attributes = {}
    inputs = read_operands(reader, attributes)
    read_attributes(reader, attributes)
    texts = sorted_texts(attributes)
    return TileOperation(PRINT, inputs.names, inputs.types, (), (), texts, span=statement.span)


PRINT_READERS: dict[str, Handler] = {f"pto.{PRINT}": _read_print}
"""Reader of the operation that prints."""
