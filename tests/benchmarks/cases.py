"""What is measured: pairs, all modes of the most used, every pair of every target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from castsim.isa.formats import DETERMINISTIC, Format, IntFormat, Overflow, Rounding, format_named
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.policy import Policy, abstract_policy, legal_roundings
from castsim.targets.loader import load_target, target_names


@dataclass(frozen=True, slots=True)
class Case:
    """One cast; None is the abstract cast's default."""

    src: str
    dst: str
    rounding: Rounding | None = None
    overflow: Overflow | None = None
    tier: str = "compiled"

    @property
    def formats(self) -> tuple[Format, Format]:
        return format_named(self.src), format_named(self.dst)

    @property
    def policy(self) -> Policy:
        return abstract_policy(*self.formats, self.rounding, self.overflow)

    @property
    def name(self) -> str:
        return f"{self.src} -> {self.dst}"


HEADLINE = (
    *(Case("f32", dst) for dst in ("e4m3fn", "e5m2", "e2m1", "hif8", "bf16", "f16", "i16", "i8", "e8m0", "f64")),
    Case("hif8", "f32"),
    Case("e4m3fn", "f32"),
    Case("e5m2", "f32"),
    Case("f16", "f32"),
    Case("bf16", "f32"),
    Case("f16", "i8"),
    Case("i8", "f16"),
    Case("i32", "i16"),
    Case("i32", "i16", overflow=Overflow.SATURATE),
    Case("f64", "f32"),
)
SIZES = tuple(Case("f32", dst) for dst in ("f16", "bf16", "i16"))
"""Casts that are measured at several sizes, on several processors and with narrower registers."""
TABLES = tuple(Case("f32", dst, tier="table") for dst in ("e4m3fn", "e5m2", "hif8"))
MODES = tuple(
    Case("f32", dst, mode)
    for dst in ("e4m3fn", "e5m2", "e2m1", "hif8", "bf16", "f16", "i16")
    for mode in (*DETERMINISTIC, Rounding.STOCHASTIC, Rounding.HYBRID)
    if mode in legal_roundings(format_named("f32"), format_named(dst))
)


def target_pairs() -> tuple[Case, ...]:
    """Return the pairs of all targets, in both directions, each once and in the abstract cast's default mode."""
    found: dict[tuple[str, str], None] = {}
    for name in target_names():
        for row in getattr(load_target(name), "casts", ()):  # a specification has none
            for src, dst in ((row.src, row.dst), (row.dst, row.src)):
                if src != dst:
                    found[format_named(src).name, format_named(dst).name] = None
    return tuple(Case(src, dst) for src, dst in sorted(found))


def source_codes(case: Case, count: int) -> np.ndarray:
    """Return seeded codes of a normal distribution that fits the destination; of all codes for integers."""
    src, dst = case.formats
    rng = np.random.default_rng(1)
    if isinstance(src, IntFormat):
        highest = 2 if src.boolean else 1 << min(src.bits, 47 if src.bits == 48 else 64)
        return rng.integers(0, highest, count, dtype=np.uint64, endpoint=False).astype(code_dtype(src))
    width = float(dst.maximum) / 3 if isinstance(dst, IntFormat) and not dst.boolean else 4.0
    values = (rng.standard_normal(min(count, 1 << 20)) * min(width, 1e9)).astype(np.float32).view(np.uint32)
    single = format_named("f32")
    codes = values if src == single else cast_codes(values, single, src, abstract_policy(single, src))
    return np.resize(codes, count)
