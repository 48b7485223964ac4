"""Casts between numbers and text as ONNX Cast has them (operator version 9 and later).

Read are plain decimals (`3.14`, `-1000`), scientific notation (`1e-5`) and, in any case, `INF`, `+INF`, `-INF` and
`NaN`. What the operator leaves undefined is rejected unless a policy defines it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, Format, IntFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics.blocks import check_codes, code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import encode_value, value_of
from castsim.numerics.policy import Policy, abstract_policy

_LITERAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?inf|nan", re.ASCII | re.IGNORECASE)


def codes_from_strings(strings: ArrayLike, dst: Format, policy: Policy | None = None) -> Codes:
    """Return the codes of `dst` nearest to the numbers that strings spell, rounded once from all their digits.

    Args:
        strings: an array of str or UTF-8 bytes, any shape.
        dst: format of the result.
        policy: rounding, overflow and special values, also for the texts that ONNX leaves undefined in an integer:
            fractions, NaN, infinities, numbers beyond its range. None: the abstract cast, which rejects those.

    Raises:
        ReadError: a text that does not spell a number or, without a policy, one that an integer `dst` cannot hold.
        IllegalError: the policy has no meaning for `dst` or needs random words.
    """
    array = np.asarray(strings)
    if array.dtype.kind not in "USOT":
        raise ReadError(f"strings come as an array of text, not {array.dtype}", legal=("str", "bytes", "object"))
    chosen = abstract_policy(FORMATS["f64"], dst) if policy is None else policy
    known: dict[str, int] = {}
    codes = np.empty(array.shape, code_dtype(dst))
    flat = codes.reshape(-1)
    for index, element in enumerate(array.reshape(-1)):
        text = _text(element)
        if text not in known:
            known[text] = _code(text, dst, chosen, strict=policy is None)
        flat[index] = known[text]
    return codes


def _text(element: object) -> str:
    if isinstance(element, bytes):
        return element.decode("utf-8", "replace")
    if isinstance(element, str):
        return str(element)
    raise ReadError(f"{element!r} is not text", legal=("str", "bytes"))


def _code(text: str, dst: Format, policy: Policy, strict: bool) -> int:
    if not _LITERAL.fullmatch(text):
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise ReadError(f"'{shown}' is not a number", legal=("3.14", "-1000", "1e-5", "INF", "+INF", "-INF", "NaN"))
    encoded = encode_value(text, dst, policy)
    if strict and encoded.inexact and isinstance(dst, IntFormat) and not dst.boolean:
        raise ReadError(
            f"'{text}' is not a value of {dst.name}", legal=(f"integers from {dst.minimum} to {dst.maximum}",)
        )
    return encoded.code


def strings_from_codes(codes: Codes, src: Format) -> Codes:
    """Return numbers as text, an object array of str: plain decimals that lead back to the same code.

    Floats have a decimal point and no exponent (`1000000.0`), and the fewest digits that tell a number from its
    neighbours in float64 for f64, in float32, which holds all other float formats, for the rest. Integers and bool are
    whole numbers; the special values are `NaN`, `INF` and `-INF`.

    Raises:
        ReadError: not codes of the format.
    """
    codes = check_codes(codes, src)
    distinct, where = np.unique(codes, return_inverse=True)
    if isinstance(src, IntFormat):
        texts = [str(value_of(int(code), src)) for code in distinct]
    else:
        wide = FORMATS["f64" if src.bits > 32 else "f32"]
        widened = cast_codes(distinct, src, wide, Policy(Rounding.RINT, Overflow.SPECIAL))
        texts = [_float_text(number) for number in widened.view(f"f{wide.bits // 8}")]
    return np.array(texts, object)[where.reshape(-1)].reshape(codes.shape)


def _float_text(number: np.floating[Any]) -> str:
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "INF" if number > 0 else "-INF"
    return np.format_float_positional(number, unique=True, trim="0")
