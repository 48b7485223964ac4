"""Tables of facts that belong to no single description: CSV files beside the targets, one model per row."""

from __future__ import annotations

import csv
from functools import cache
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from castsim.isa.errors import TargetDataError
from castsim.targets.csv_tables import SHIPPED
from castsim.targets.schema import Table

_Row = TypeVar("_Row", bound=Table)


@cache
def csv_rows(name: str, model: type[_Row]) -> tuple[_Row, ...]:
    """Return all rows of a table; its header names the fields of the model.

    Raises:
        TargetDataError: a cell that the model does not take; names the row, counted from 0, and the column.
    """
    with (SHIPPED / name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    try:
        return TypeAdapter(tuple[model, ...]).validate_python(rows)  # type: ignore[valid-type]
    except ValidationError as error:
        first = error.errors()[0]
        row, *column = first["loc"]
        place = ".".join(map(str, column))
        raise TargetDataError(f"{name}: row {row}: {place}: {first['msg']}") from None
