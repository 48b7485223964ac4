"""A kernel of logical registers under test: its body, its inputs, and what a model says it leaves."""

from __future__ import annotations

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from vmi_text import Body, mask, reg

Array = NDArray[np.generic]
KINDS = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "i16": np.int16,
}  # fmt: skip
RNG = np.random.default_rng(2026)
SECOND, THIRD = 16384, 32768
"""Bytes of further inputs, and, beyond the first output, of further outputs."""


@dataclass
class Kernel:
    """A body, its input bytes by place, what it leaves by place, and within how many units in the last place."""

    body: Body = field(default_factory=Body)
    given: dict[int, Array] = field(default_factory=dict)
    wanted: dict[int, Array] = field(default_factory=dict)

    def cast(self, value: str, lanes: int, src: str, dst: str, words: str = "") -> str:
        if src == dst:
            return value
        dictionary = f" {{{words}}}" if words else ""
        return self.body.make(f"pto.vmi.vcvt {value}{dictionary} : {reg(lanes, src)} -> {reg(lanes, dst)}")

    def two(self, name: str, a: str, b: str, lanes: int, element: str, m: str = "") -> str:
        v, more, kind = reg(lanes, element), f", {m}" if m else "", f", {mask(lanes)}" if m else ""
        return self.body.make(f"pto.vmi.{name} {a}, {b}{more} : {v}, {v}{kind} -> {v}")

    def one(self, name: str, a: str, lanes: int, element: str) -> str:
        v = reg(lanes, element)
        return self.body.make(f"pto.vmi.{name} {a} : {v} -> {v}")

    def all_lanes(self, number: float | str, lanes: int, element: str) -> str:
        scalar = element.replace("u", "i")
        return self.body.make(f"pto.vmi.vbrc {self.body.constant(number, scalar)} : {scalar} -> {reg(lanes, element)}")

    def groups(self, name: str, value: str, lanes: int, groups: int, element: str, m: str = "") -> str:
        """A reduction, or a broadcast of slots."""
        one, other = (groups, lanes) if name == "vbrc" else (lanes, groups)
        more, kind = (f", {m}", f", {mask(lanes)}") if m else ("", "")
        kinds = f"{reg(one, element)}{kind} -> {reg(other, element)}"
        return self.body.make(f"pto.vmi.{name} {value}{more} {{group = {groups}}} : {kinds}")

    def seen_as(self, value: str, one: tuple[int, str], other: tuple[int, str]) -> str:
        return self.body.make(f"pto.vmi.vinterpret_cast {value} : {reg(*one)} -> {reg(*other)}")

    def first(self, count: int, lanes: int) -> str:
        return self.body.make(f"pto.vmi.create_mask {self.body.constant(count)} : index -> {mask(lanes)}")


def random(element: str, count: int, scale: float = 4.0) -> Array:
    if element[0] in "iu":
        info = np.iinfo(KINDS[element])
        return RNG.integers(info.min, info.max, count, endpoint=True).astype(KINDS[element])
    return (RNG.normal(size=count) * scale).astype(np.float32).astype(KINDS[element])


def saturated(values: Array, element: str) -> Array:
    top = float(ml_dtypes.finfo(KINDS[element]).max)
    return np.clip(values.astype(np.float32), -top, top).astype(KINDS[element])
