"""What single values become: the table behind `castsim cast`, and its JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, TypeVar

import numpy as np

from isa.errors import IllegalError, ReadError
from isa.formats import Format, IntFormat, format_named
from isa.modes import DETERMINISTIC, Overflow, Rounding, Saturation
from simulator.casting import cast_on_target
from simulator.numerics import abstract_policy, cast_codes, code_dtype, encode_value, legal_roundings, value_of
from targets import Target, load_target

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

    @classmethod
    def parse(
        cls,
        *,
        src: str,
        dst: str,
        values: Sequence[str],
        targets: Sequence[str] = (),
        roundings: Sequence[str] = (),
        overflows: Sequence[str] = (),
        saturation: str | None = None,
        scratch: bool = False,
    ) -> Self:
        """Read a request from words.

        Raises:
            ReadError: an unknown word, a value that is no number and no code, options that contradict each other.
            TargetDataError: a bad target description.
        """
        source, destination = format_named(src), format_named(dst)
        if targets and overflows:
            raise ReadError("a target decides about overflow itself; --overflow is for the cast without one")
        if not targets and (saturation is not None or scratch):
            raise ReadError("--saturation and --scratch belong to a target; name one by --target")
        return cls(
            src=source,
            dst=destination,
            sources=tuple(read_value(text, source) for text in values),
            targets=tuple(load_target(name) for name in targets),
            roundings=tuple(roundings) if targets else tuple(_word(Rounding, word, "rounding") for word in roundings),
            overflows=tuple(_word(Overflow, word, "overflow") for word in overflows),
            saturation=None if saturation is None else _word(Saturation, saturation, "saturation"),
            scratch=scratch,
        )


@dataclass(frozen=True, slots=True)
class CastRow:
    """One value under one target and mode; `target` None is the abstract cast. Modes are those in force."""

    source: Source
    target: str | None
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


def read_value(text: str, fmt: Format) -> Source:
    """Read a number or `0x` bits of the format.

    Raises:
        ReadError: neither, or bits that are no code of the format.
    """
    if not text.lower().startswith("0x"):
        encoded = encode_value(text, fmt)
        return Source(text, encoded.code, value_of(encoded.code, fmt), not encoded.inexact)
    try:
        code = int(text, 16)
    except ValueError:
        raise ReadError(f"'{text}' is not a hexadecimal number") from None
    if code >> fmt.bits:
        raise ReadError(f"{text} is not a code of {fmt.name}", legal=(f"0x0 to {bits_text((1 << fmt.bits) - 1, fmt)}",))
    return Source(text, code, value_of(code, fmt), exact=True)


def cast_values(request: Request) -> CastTable:
    """Cast every value under every target and mode.

    Raises:
        IllegalError: a pair or mode that the target or the format does not have.
    """
    warnings: dict[str, None] = {}
    columns = list(_on_targets(request, warnings) if request.targets else _abstract(request))
    rows = [column[number] for number in range(len(request.sources)) for column in columns]
    return CastTable(request, tuple(rows), tuple(warnings))


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


def _abstract(request: Request) -> Iterator[list[CastRow]]:
    for rounding in request.roundings or (None,):
        for overflow in request.overflows or (None,):
            mode = None if rounding is None else Rounding(rounding)
            policy = abstract_policy(request.src, request.dst, mode, overflow)
            if policy.rounding is Rounding.STOCHASTIC:
                legal = [mode for mode in legal_roundings(request.src, request.dst) if mode in DETERMINISTIC]
                raise IllegalError(
                    "rounding 'stochastic' needs random words; it is for arrays, from Python", legal=legal
                )
            codes = cast_codes(_codes(request), request.src, request.dst, policy)
            yield _column(request, codes, None, (policy.rounding, policy.overflow, None))


def _on_targets(request: Request, warnings: dict[str, None]) -> Iterator[list[CastRow]]:
    for target in request.targets:
        for rounding in request.roundings or (None,):
            result = cast_on_target(
                _codes(request),
                request.src,
                request.dst,
                target,
                rounding=rounding,
                saturation=request.saturation,
                scratch=request.scratch,
            )
            warnings.update(dict.fromkeys(f"{target.name}: {text}" for text in result.warnings))
            saturation = None if result.saturation is None else str(result.saturation)
            yield _column(request, result.codes, target.name, (result.rounding, result.overflow, saturation))


def _codes(request: Request) -> Any:
    return np.array([source.code for source in request.sources], code_dtype(request.src))


def _column(request: Request, codes: Any, target: str | None, modes: tuple[str, str, str | None]) -> list[CastRow]:
    rounding, overflow, saturation = modes
    return [
        CastRow(source, target, str(rounding), str(overflow), saturation, code, value_of(code, request.dst))
        for source, code in zip(request.sources, map(int, codes), strict=True)
    ]


def _json_value(value: Number, fmt: Format) -> int | float | str:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value) if isinstance(fmt, IntFormat) else float(value)


_Word = TypeVar("_Word", Rounding, Overflow, Saturation)


def _word(kind: type[_Word], text: str, what: str) -> _Word:
    try:
        return kind(text.lower())
    except ValueError:
        raise ReadError(f"unknown {what} '{text}'", legal=[str(member) for member in kind]) from None
