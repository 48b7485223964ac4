"""The programs of `tests/vectors/micro_own`: texts, inputs and expected outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TypedDict

import numpy as np
from kit.paths import VECTORS
from numpy.typing import NDArray

from castsim.isa.formats import Codes

FOLDER = VECTORS / "micro_own"
_HEAD = "//// "
_FLOATS = {"f32": np.float32, "f16": np.float16}


class CaseArgument(TypedDict, total=False):
    """An argument of a case: its name, element and count, whether it has an input and an expected output."""

    name: str
    elem: str
    count: int
    input: bool
    expected: bool


@cache
def cases() -> Mapping[str, list[CaseArgument]]:
    """Arguments of every case by its name."""
    found: Mapping[str, list[CaseArgument]] = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
    return found


@cache
def texts() -> Mapping[str, str]:
    parts = (FOLDER / "kernels.txt").read_text(encoding="utf-8").split(_HEAD)[1:]
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


@cache
def arrays() -> Mapping[str, NDArray[np.generic]]:
    """Bit patterns as `CASE.ARGUMENT.input` and `CASE.ARGUMENT.expected`."""
    with np.load(FOLDER / "arrays.npz") as held:
        return {name: held[name] for name in held.files}


def typed(bits: Codes, elem: str) -> Codes:
    """Bit patterns as the array that a user gives: floats with a dtype of their own, signed integers, else codes."""
    if elem in _FLOATS:
        return bits.view(_FLOATS[elem])
    if elem.lstrip("s") in ("i8", "i16", "i32", "i64"):
        return bits.view(f"i{bits.dtype.itemsize}")
    return bits


def different(got: Codes, want: Codes, elem: str) -> NDArray[np.bool_]:
    """Elements that differ in their bits; any NaN equals any NaN."""
    raw = np.ascontiguousarray(got).reshape(-1).view(np.uint8)[: want.nbytes].view(want.dtype)
    unequal: NDArray[np.bool_] = raw != want
    if elem == "bf16":
        return unequal & ~(_is_nan_bf16(raw) & _is_nan_bf16(want))
    if elem in _FLOATS:
        return unequal & ~(np.isnan(raw.view(_FLOATS[elem])) & np.isnan(want.view(_FLOATS[elem])))
    return unequal


def _is_nan_bf16(codes: Codes) -> NDArray[np.bool_]:
    is_nan: NDArray[np.bool_] = np.isnan((codes.astype(np.uint32) << 16).view(np.float32))
    return is_nan
