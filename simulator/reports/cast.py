"""What single values become: the table of `castsim cast` as data and as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from isa.formats import Format, IntFormat
from isa.modes import Overflow, Saturation
from targets import Target

Number = Fraction | float


@dataclass(frozen=True, slots=True)
class Source:
    """One value to cast: the text given, the code of the source format it stands for.

    `exact` is False if the text names a number that the source format does not have.
    """

    text: str
    code: int
    value: Number
    exact: bool


@dataclass(frozen=True, slots=True)
class Request:
    """What to cast, and how; an empty `targets` asks for the abstract cast, empty modes for the default."""

    src: Format
    dst: Format
    sources: tuple[Source, ...]
    targets: tuple[Target, ...]
    roundings: tuple[str, ...]
    overflows: tuple[Overflow, ...]
    saturation: Saturation | None
    scratch: bool


@dataclass(frozen=True, slots=True)
class CastRow:
    """One value under one target and mode; `target` None is the abstract cast.

    `asked` is the rounding that was asked for (None: the default); the other modes are those in force.
    """

    source: Source
    target: str | None
    asked: str | None
    rounding: str
    overflow: str
    saturation: str | None
    code: int
    value: Number

    @property
    def inexact(self) -> bool:
        """Whether the result differs from the value that was cast."""
        before, after = float(self.source.value), float(self.value)
        if math.isnan(before) or math.isnan(after):
            return math.isnan(before) != math.isnan(after)
        return self.source.value != self.value


@dataclass(frozen=True, slots=True)
class CastTable:
    """All rows, value by value, and what targets did not do as asked."""

    request: Request
    rows: tuple[CastRow, ...]
    warnings: tuple[str, ...]


def cast_document(table: CastTable) -> dict[str, Any]:
    """Return the table as JSON. A finite value is a number, others are `nan`, `inf`, `-inf`."""
    request = table.request
    return {
        "results": [
            {
                "target": row.target,
                "rounding": row.rounding,
                "overflow": row.overflow,
                "saturation": row.saturation,
                "input_bits": bits_text(row.source.code, request.src),
                "output_bits": bits_text(row.code, request.dst),
                "value": _json_value(row.value, request.dst),
                "inexact": row.inexact,
            }
            for row in table.rows
        ],
        "warnings": list(table.warnings),
    }


def bits_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal, with as many digits as the format has."""
    return f"0x{code:0{-(-fmt.bits // 4)}x}"


def _json_value(value: Number, fmt: Format) -> int | float | str:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value) if isinstance(fmt, IntFormat) else float(value)
