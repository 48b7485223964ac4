"""What a target makes of the values by which conversions differ: NaN, infinities, ends of ranges, ties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from castsim.casting import cast_on_target
from castsim.editor.words import ROUNDINGS
from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.isa.modes import Overflow, Rounding, Saturation
from castsim.machines.target_cast import CastForm, TargetCast
from castsim.numerics import code_dtype, codes_from_strings, strings_from_codes
from castsim.targets import Target

_LONGEST = 20
"""Characters of a number that is shown as a plain decimal."""

_TIES = ("0.5", "1.5", "2.5", "-2.5")
_OVERFLOWS = {
    Overflow.SATURATE: "clamped to the ends of the range",
    Overflow.WRAP: "wrapped: the low bits are kept",
    Overflow.SPECIAL: "infinity or NaN, as the format has them",
}

_FORMS: dict[CastForm, str] = {
    "1d": "1d, of full rows or a single row",
    "2d": "2d, of rows that go on behind their valid columns",
}


@dataclass(frozen=True, slots=True)
class Converted:
    """A conversion on a target: its modes in force, in words, and pairs of a value and its result."""

    modes: tuple[str, ...]
    values: tuple[tuple[str, str], ...]


def converted(
    src: Format,
    dst: Format,
    target: Target,
    rounding: str | None,
    saturation: Saturation | None,
    *,
    scratch: bool,
    form: CastForm | None,
) -> Converted:
    """Convert the values that tell conversions apart.

    Raises:
        CastsimError: the target lacks the pair or the mode.
    """
    codes = _codes(src, dst)
    found = cast_on_target(
        codes, src, dst, target, rounding=rounding, saturation=saturation, scratch=scratch, form=form
    )
    modes = [
        f"rounding: `{found.rounding}`{_about(found.rounding)}",
        f"out of range: {_beyond(found)}",
    ]
    modes += [] if form is None else [f"form: {_FORMS[form]}"]
    modes += [str(one.text) for one in found.warnings]
    pairs = dict(zip(_shown(codes, src), _shown(found.codes, dst), strict=True))
    return Converted(tuple(modes), tuple(pairs.items()))


def _beyond(found: TargetCast) -> str:
    if found.saturation == "not needed":
        return "nothing can be"
    switch = "switch " if found.saturation in tuple(Saturation) else ""
    return f"{_OVERFLOWS[found.overflow]} (saturation {switch}{found.saturation})"


def _shown(codes: Codes, fmt: Format) -> list[str]:
    texts = [str(text) for text in np.ravel(strings_from_codes(codes, fmt))]
    return [text if len(text) <= _LONGEST else f"{float(text):.9g}" for text in texts]


def _about(rounding: str) -> str:
    return f", {ROUNDINGS[Rounding(rounding)]}" if rounding in tuple(Rounding) else ""


def _codes(src: Format, dst: Format) -> Codes:
    """Return codes of the source: its special ones, what lies just outside of the destination, ties."""
    found = [code for text in _texts(src) for code in _code(text, src)]
    if isinstance(dst, IntFormat) and isinstance(src, FloatFormat):
        found += [code for end in (dst.maximum + 1, dst.minimum - 1) for code in _code(str(end), src)]
    elif isinstance(dst, FloatFormat):
        found += _code(_largest(dst), src)
    return np.array(list(dict.fromkeys(found)), code_dtype(src))


def _largest(fmt: FloatFormat) -> str:
    return str(np.ravel(strings_from_codes(np.array([fmt.max_finite_code], code_dtype(fmt)), fmt))[0])


def _texts(src: Format) -> Iterator[str]:
    if isinstance(src, IntFormat):
        yield from (str(src.minimum), "-1", "1", str(src.maximum))
    else:
        yield from ("nan", "inf", "-inf", "-0.0", *_TIES)
        if isinstance(src, FloatFormat):
            yield _largest(src)


def _code(text: str, src: Format) -> Iterator[int]:
    """Yield the code of a value in a format; nothing if the format does not have it."""
    try:
        codes = codes_from_strings([text], src)
    except (CastsimError, ValueError):
        return
    yield int(np.ravel(codes)[0])
