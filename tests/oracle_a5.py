"""What an A5 `tcvt` yields, lane by lane and byte by byte, transcribed by hand from docs/reference/a5.md sections 2 to
5.

Nothing here is read from the product's target data. Points on which the sources are silent are fields of `Doubt`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from oracle_formats import INTS, fmt
from oracle_scalar import Refused, cast, round_to_integral

PAIRS = {
    "f32": ("f32", "f16", "bf16", "i16", "i32", "i64", "e4m3fn", "e5m2", "hif8"),
    "f16": ("f32", "i32", "i16", "i8", "u8", "hif8"),
    "bf16": ("f32", "i32", "f16", "e1m2", "e2m1"),
    "u8": ("f16", "u16"),
    "i8": ("f16", "i16", "i32"),
    "i16": ("u8", "f16", "f32", "u32", "i32"),
    "i32": ("f32", "i16", "u16", "i64", "u8"),
    "u32": ("u8", "u16", "i16"),
    "i64": ("f32", "i32"),
    "e4m3fn": ("f32",),
    "e5m2": ("f32",),
    "hif8": ("f32",),
    "e1m2": ("bf16",),
    "e2m1": ("bf16",),
}
"""Section 3, first paragraph."""

LEGAL = tuple((src, dst) for src, destinations in PAIRS.items() for dst in destinations)
OFF_BY_DEFAULT = frozenset(
    {("f16", "u8"), ("f16", "i8"), ("f32", "i16"), ("f16", "i16"), ("i64", "i32"), ("i32", "i16")}
)
MULTI_STEP = {("f32", "i16"): ("i32",), ("f16", "i16"): ("i32",), ("f16", "i8"): ("i16", "&255", "f16")}
"""Section 3, table and caution: the routes of the 1D and the no-post-update kernels with saturation OFF."""
FIXED = {("f32", "e4m3fn"): "rint", ("f32", "e5m2"): "rint", ("f32", "hif8"): "round", ("f16", "hif8"): "round"}
USER_MODES = ("rint", "round", "floor", "ceil", "trunc")
FP4 = ("e1m2", "e2m1")
FP8 = ("e4m3fn", "e5m2", "hif8")


@dataclass(frozen=True)
class Doubt:
    """Points the sources leave open, with the readings taken by default.

    `bits`: the CTRL bits that are 1 at start. `writes`: whether the tile instruction writes its bits. `nan_int`: NaN to
    an integer, zero, maximum or minimum. `off`: OFF takes the low bits of the number, infinity becoming the extreme or
    0 (`exact`); or those of the value clamped to int64, infinity included (`int64`). `first_step`: the first conversion
    of a multi-step route: `infinity` becomes the extreme and the rest keeps low bits, everything is clamped (`all`), or
    nothing (`none`). `fp8`: overflow to 8-bit floats: `ctrl`, `special` or `saturate`. `full_fill`: the zero fill ends
    with a whole register.
    """

    bits: frozenset[int] = frozenset({60})
    writes: bool = True
    nan_int: str = "zero"
    off: str = "extreme"
    first_step: str = "infinity"
    fp8: str = "ctrl"
    full_fill: bool = True


DEFAULT = Doubt()


def is_float(name: str) -> bool:
    return name not in INTS


def size(name: str) -> int:
    """Bits in memory; 4-bit elements share bytes."""
    row = fmt(name)
    return row.bits if row.bits == 4 else row.storage


def effective_mode(src: str, dst: str, mode: str | None) -> str:
    """Return the rounding in force for a requested one; None: the program names none, so RINT is asked for."""
    if (src, dst) in FIXED:
        return FIXED[src, dst]
    asked = "rint" if mode is None else mode
    default = "trunc" if is_float(src) and not is_float(dst) else "rint"
    if asked in USER_MODES:
        return asked
    if asked == "odd" and (src, dst) == ("f32", "f16"):
        return "odd"
    return default


def effective_saturation(src: str, dst: str, saturation: str | None) -> str:
    return saturation or ("off" if (src, dst) in OFF_BY_DEFAULT else "on")


def written_bits(src: str, dst: str, saturation: str) -> dict[int, bool]:
    """Section 4, second table."""
    off = saturation == "off"
    if {src, dst} == {"f16", "bf16"}:
        return {48: off}
    if dst == "f32" or dst in (*FP8, *FP4) or src in (*FP8, *FP4):
        return {}
    float_to_int = is_float(src) and not is_float(dst)
    not_wider = size(src) >= size(dst)
    if float_to_int or (not is_float(src) and not_wider) or src == "f32":
        return {60: True, 59: off}
    return {}


def convert(
    src: str, dst: str, code: int, mode: str, bits: frozenset[int], doubt: Doubt = DEFAULT, *, first: bool = False
) -> int:
    """Return one `vcvt` or `vtrc` with rounding and CTRL settled; `first`: of a multi-step route. Section 4.1."""
    if (src, dst) == ("f32", "f32"):
        return round_to_integral(code, "f32", mode)
    if dst in INTS:
        return _to_integer(src, dst, code, mode, bits, doubt, first=first)
    if dst in FP4:
        return cast(code, src, dst, mode, "saturate", nan=0)
    if dst == "f32":
        return cast(code, src, dst, mode, "special")
    clamps = 60 in bits and 48 not in bits
    if dst in FP8 and doubt.fp8 != "ctrl":
        clamps = doubt.fp8 == "saturate"
    if not clamps:
        return cast(code, src, dst, mode, "special")
    if dst in ("e4m3fn", "e5m2") and 50 in bits:
        return cast(code, src, dst, mode, "saturate")
    return cast(code, src, dst, mode, "saturate", nan=0)


def _to_integer(src: str, dst: str, code: int, mode: str, bits: frozenset[int], doubt: Doubt, *, first: bool) -> int:
    row = INTS[dst]
    mask = (1 << row.bits) - 1
    nan = {"zero": 0, "maximum": row.high, "minimum": row.low & mask}[doubt.nan_int]
    widening = not is_float(src) and size(src) < size(dst)
    clamps = widening or (60 in bits and 59 not in bits)
    if clamps or (first and doubt.first_step == "all"):
        return cast(code, src, dst, mode, "saturate", nan=nan)
    negative_infinity = is_float(src) and code == (fmt(src).inf | fmt(src).sign_code)
    if doubt.off == "extreme" or (first and doubt.first_step == "infinity"):
        extreme = (row.low if negative_infinity else row.high) & mask
    else:
        int64 = -(1 << 63) if negative_infinity else (1 << 63) - 1
        extreme = int64 & mask if doubt.off == "int64" else 0
    width = 64 if doubt.off == "int64" else None
    return cast(code, src, dst, mode, "wrap", nan=nan, inf_wrap=extreme, clamp_bits=width)


@cache
def lane(
    src: str, dst: str, code: int, mode: str | None, saturation: str | None, multi_step: bool, doubt: Doubt = DEFAULT
) -> int:
    """Return the destination code of one element.

    `mode` and `saturation` are what the program asks for, `multi_step` says whether the kernel that runs has the
    multi-step route of its pair. Raises Refused for a pair outside section 3.
    """
    if (src, dst) not in LEGAL:
        raise Refused(f"A5 has no {src} to {dst}")
    rounding = effective_mode(src, dst, mode)
    switch = effective_saturation(src, dst, saturation)
    bits = set(doubt.bits)
    if doubt.writes:
        for bit, on in written_bits(src, dst, switch).items():
            bits = bits | {bit} if on else bits - {bit}
    ctrl = frozenset(bits)
    if switch == "on" or not multi_step or (src, dst) not in MULTI_STEP:
        return convert(src, dst, code, rounding, ctrl, doubt)
    at = src
    for step in (*MULTI_STEP[src, dst], dst):
        if step.startswith("&"):
            code &= int(step[1:])
            continue
        code = convert(at, step, code, rounding, ctrl, doubt, first=at == src and step != dst)
        at = step
    return code


def lanes(
    src: str,
    dst: str,
    codes: np.ndarray,
    mode: str | None,
    saturation: str | None,
    *,
    multi_step: bool,
    doubt: Doubt = DEFAULT,
) -> np.ndarray:
    """Return the destination codes of an array."""
    distinct, places = np.unique(codes, return_inverse=True)
    found = [lane(src, dst, int(code), mode, saturation, multi_step, doubt) for code in distinct]
    return np.array(found, np.uint64)[places].reshape(codes.shape)


# Tiles


def kernel(kind: int, *, full: bool) -> str:
    """Section 2: which code variant runs; `full` is the condition of the 1D side."""
    if full:
        return "2D_no_post_update" if kind == 2 else "1D"
    return "2D_no_post_update" if kind in (1, 2) else "2D_default"


def pack(codes: np.ndarray, name: str) -> np.ndarray:
    """Return rows of codes as rows of bytes, low nibble first."""
    if size(name) == 4:
        codes = np.pad(codes, ((0, 0), (0, codes.shape[1] % 2)))
        return (codes[:, ::2] | codes[:, 1::2] << np.uint64(4)).astype(np.uint8)
    width = size(name) // 8
    raw = np.ascontiguousarray(codes.astype(f"<u{width}")).view(np.uint8)
    return raw.reshape(len(codes), codes.shape[1] * width)


def write_tile(
    memory: np.ndarray, address: int, pitch: int, dst: str, codes: np.ndarray, doubt: Doubt = DEFAULT
) -> None:
    """Write the converted valid region to memory as the kernel leaves it; `pitch` in bytes.

    4-bit destinations: all rows are cleared first, in whole registers of 256 bytes, and the last column of an odd
    number is dropped.
    """
    rows, cols = codes.shape
    if dst in FP4:
        cleared = rows * pitch
        memory[address : address + (-(-cleared // 256) * 256 if doubt.full_fill else cleared)] = 0
        codes = codes[:, : cols - cols % 2]
    packed = pack(codes, dst)
    for row in range(rows):
        start = address + row * pitch
        memory[start : start + packed.shape[1]] = packed[row]
