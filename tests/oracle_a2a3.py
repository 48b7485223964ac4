"""What one lane of an A2/A3 `tcvt` yields, transcribed by hand from docs/reference/a2a3.md sections 1, 3 and 4.

Nothing here is read from the product's target data. Points on which the sources are silent are fields of `Doubt`.
"""

from __future__ import annotations

from dataclasses import dataclass

from oracle_formats import INTS
from oracle_scalar import Refused, cast, round_to_integral

SUFFIX = {"rint": "r", "round": "a", "floor": "f", "ceil": "c", "trunc": "z", "odd": "o"}
PLAIN = "plain"  # the unsuffixed instruction: nearest even where it loses information
EXACT = "exact"
NARROW = "integer"
DEQ = "deq"

# (src, dst): (suffixes that exist, what NONE and every other mode become)
_PAIRS = {
    ("f32", "f16"): ("rafczo", "rint"), ("f32", "f32"): ("rafcz", "rint"), ("f32", "bf16"): ("rafcz", "rint"),
    ("f32", "i16"): ("rafcz", "trunc"), ("f32", "i32"): ("rafcz", "trunc"), ("f32", "i64"): ("rafcz", "trunc"),
    ("f16", "i32"): ("rafcz", "trunc"), ("f16", "i16"): ("rafcz", "trunc"), ("f16", "i8"): ("rafcz", "trunc"),
    ("f16", "u8"): ("rafcz", "trunc"), ("f16", "i4"): ("rafcz", PLAIN), ("bf16", "i32"): ("rafcz", "trunc"),
    ("i16", "f16"): ("rafcz", PLAIN), ("i32", "f32"): ("rafcz", PLAIN), ("i64", "f32"): ("rafcz", "rint"),
    ("f16", "f32"): ("", EXACT), ("bf16", "f32"): ("", EXACT), ("u8", "f16"): ("", EXACT),
    ("i8", "f16"): ("", EXACT), ("i16", "f32"): ("", EXACT), ("i4", "f16"): ("", EXACT),
    ("i64", "i32"): ("", NARROW), ("i32", "i64"): ("", EXACT), ("i32", "i16"): ("", NARROW),
    ("i32", "f16"): ("", DEQ),
}  # fmt: skip

NARROWING = frozenset({("f16", "u8"), ("f16", "i8"), ("f32", "i16"), ("f16", "i16"), ("i64", "i32"), ("i32", "i16")})
"""Section 3.2: the six pairs that default to OFF and honour the argument in every form."""

TMP_BACKED = frozenset({("f32", "i16"), ("f16", "i16"), ("f16", "i8")})
"""Section 3.4: the pairs that have a multi-step sequence for OFF with a tmp tile."""


@dataclass(frozen=True)
class Doubt:
    """Points the sources leave open, with the readings taken by default.

    `nan_int`: NaN to an integer. `inf_off`: code of infinity in a native OFF conversion. `intermediate_bits`: width of
    the signed intermediate whose low bits native OFF keeps. `ctrl48`: bit 48 of CTRL, 1 keeps infinity and NaN in f16
    and bf16 results. `nan_float`: code of NaN in such results while the bit is 0.
    """

    nan_int: int = 0
    inf_off: int = 0
    intermediate_bits: int = 64
    ctrl48: bool = True
    nan_float: int = 0


DEFAULT = Doubt()


def legal_pairs() -> tuple[tuple[str, str], ...]:
    """Return the 25 (src, dst) pairs of section 1."""
    return tuple(_PAIRS)


def effective_mode(src: str, dst: str, mode: str | None) -> str:
    """Return the rounding that the pair performs for a requested one (None or `none`: the NONE mode)."""
    if mode not in (*SUFFIX, None, "none"):
        raise ValueError(f"no A2/A3 rounding mode {mode!r}")
    suffixes, fallback = _PAIRS[src, dst]
    if mode in SUFFIX and SUFFIX[mode] in suffixes:
        return mode
    return "rint" if fallback in (PLAIN, EXACT, NARROW, DEQ) else fallback


def effective_saturation(src: str, dst: str, saturation: str | None, tmp: bool) -> str:
    """Return `on` or `off` as section 3.2 has it; CTRL[59] is 1 for off."""
    if (src, dst) in NARROWING:
        return saturation or "off"
    return (saturation or "on") if tmp else "on"


def vconv(src: str, dst: str, code: int, mode: str, saturation: str, doubt: Doubt = DEFAULT) -> int:
    """Return the result of one conversion instruction whose rounding and CTRL[59] are settled."""
    if (src, dst) == ("f32", "f32"):
        return round_to_integral(code, "f32", mode)
    if dst in INTS:
        if saturation == "on":
            return cast(code, src, dst, mode, "saturate", nan=doubt.nan_int)
        return cast(
            code, src, dst, mode, "wrap",
            nan=doubt.nan_int, inf_wrap=doubt.inf_off, clamp_bits=doubt.intermediate_bits,
        )  # fmt: skip
    if dst == "f32" or doubt.ctrl48:
        return cast(code, src, dst, mode, "special")
    return cast(code, src, dst, mode, "saturate", nan=doubt.nan_float)


def lane(
    src: str, dst: str, code: int, mode: str | None, saturation: str | None, tmp: bool, doubt: Doubt = DEFAULT
) -> int:
    """Return the destination code of one element.

    `mode` and `saturation` are what the program asks for, `tmp` whether it passes a scratch tile. Raises Refused for
    a pair outside section 1.
    """
    if (src, dst) not in _PAIRS:
        raise Refused(f"A2/A3 has no {src} to {dst}")
    rounding = effective_mode(src, dst, mode)
    switch = effective_saturation(src, dst, saturation, tmp)
    if not (tmp and switch == "off" and (src, dst) in TMP_BACKED):
        return vconv(src, dst, code, rounding, switch, doubt)
    wide = vconv(src, "i32", code, rounding, "on", doubt)
    if dst == "i16":
        return vconv("i32", "i16", wide, "rint", "off", doubt)
    low = vconv("i32", "i16", wide, "rint", "off", doubt) & 0xFF
    half = vconv("i16", "f16", low, "rint", "off", doubt)
    return vconv("f16", "i8", half, "trunc", "off", doubt)
