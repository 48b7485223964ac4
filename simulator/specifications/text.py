"""Casts between numbers and text under a specification."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FloatFormat, Format, IntFormat, TaperedFormat
from castsim.isa.modes import Overflow
from castsim.numerics import Policy, code_dtype, codes_from_strings, encode_value, parse_number, value_of
from castsim.numerics.blocks import check_codes
from castsim.specifications.sets import AcceptanceSets, Mask, one_of
from castsim.specifications.specified import AttributeValue, SpecifiedCast, specified_cast
from castsim.targets import Specification
from castsim.targets.specification import TEXT, Case

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf", re.IGNORECASE)


def text_acceptance(
    spec: Specification | str | Path,
    texts: ArrayLike,
    dst: Format | str,
    *,
    version: str | int | None = None,
    attributes: Mapping[str, AttributeValue] | None = None,
) -> AcceptanceSets:
    """Return the acceptable results of casting an array of text, one set per element.

    Raises:
        ReadError: an unknown name or value, or an array of something else than text.
        IllegalError: the specification does not cast text to `dst`.
    """
    cast = specified_cast(spec, TEXT, dst, version=version, attributes=attributes)
    if cast.dst is None:
        raise IllegalError("text to text has no codes; see accepts_text")
    array = np.asarray(texts)
    codes = np.zeros(array.shape, code_dtype(cast.dst))
    undefined = np.ones(array.shape, bool)
    for index, text in np.ndenumerate(array):
        code = _code(_shown(text), cast.dst, cast)
        if code is not None:
            codes[index], undefined[index] = code, False
    return replace(one_of(cast.dst, codes), anything=undefined)


def accepts_text(
    spec: Specification | str | Path,
    src: Format | str,
    codes: Codes | ArrayLike,
    texts: ArrayLike,
    *,
    version: str | int | None = None,
    attributes: Mapping[str, AttributeValue] | None = None,
) -> Mask:
    """Return a mask of the conforming texts for codes of `src`: those that read back as the number.

    Text itself, with `src` the word `string`, must stay as it is.

    Raises:
        ReadError: an unknown name or value, no codes of `src`, an array of something else than text, another shape.
        IllegalError: the specification does not cast `src` to text.
    """
    cast = specified_cast(spec, src, TEXT, version=version, attributes=attributes)
    sources = np.asarray(codes) if cast.src is None else check_codes(np.asarray(codes), cast.src)
    array = np.asarray(texts)
    if array.shape != sources.shape:
        raise ReadError(f"texts of shape {array.shape} for codes of shape {sources.shape}")
    conforming = np.zeros(sources.shape, bool)
    for index, text in np.ndenumerate(array):
        shown, source = _shown(text), sources[index]
        conforming[index] = shown == _shown(source) if cast.src is None else _reads_back(shown, int(source), cast.src)
    return conforming


def _shown(text: Any) -> str:
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if not isinstance(shown, str):
        raise ReadError(f"{text!r} is not text", legal=("str", "bytes"))
    return str(shown)


def _code(text: str, dst: Format, cast: SpecifiedCast) -> int | None:
    """Return the code that a text must give, None where the specification does not say."""
    if not cast.rule.roundings:
        return None
    if isinstance(dst, IntFormat):
        whole = _INTEGER.fullmatch(text) and dst.minimum <= int(text) <= dst.maximum
        return encode_value(text, dst).code if whole else None
    try:
        code = int(codes_from_strings([text], dst, Policy(cast.rule.roundings[0], Overflow.SPECIAL))[0])
    except ReadError:
        return None
    if text.lower() == "nan":
        return code if dst.has_nan else None
    if _INFINITE.fullmatch(text):
        return None if Case.INFINITE in cast.rule.undefined else code
    return None if _overflows(text, code, dst) else code


def _overflows(text: str, code: int, dst: FloatFormat | TaperedFormat) -> bool:
    """Whether a number is beyond the range; without infinity and NaN it would become the largest one."""
    if dst.has_infinity or dst.has_nan:
        return not math.isfinite(value_of(code, dst))
    return parse_number(text)[1] > value_of(dst.max_finite_code, dst)


def _reads_back(text: str, code: int, src: Format) -> bool:
    """Whether a text spells the number of a code, so well that no other number of the format is nearer."""
    value = value_of(code, src)
    try:
        negative, magnitude = parse_number(text)
    except ReadError:
        return False
    if not math.isfinite(value) or not math.isfinite(magnitude):
        same_sign = math.isnan(value) or negative == (value < 0)
        return repr(float(magnitude)) == repr(abs(float(value))) and same_sign
    if value == 0:
        return magnitude == 0 and negative == (math.copysign(1, value) < 0)
    return value_of(encode_value(text, src).code, src) == value and "/" not in text
