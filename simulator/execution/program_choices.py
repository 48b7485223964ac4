"""Choices that decide what a program computes and that its text leaves open: versions of the assembler, back ends."""

from __future__ import annotations

from dataclasses import dataclass

TOOLCHAIN = "toolchain"
"""The option that says which assembler a program goes through."""

OLDEST = "older"
"""The toolchain that leaves everything to the library."""

PASS_OFF = ("2026-05", "2026-07")
"""Toolchains that hand saturation OFF to the library where tcvt names none (docs/reference/pto.md section 1.2)."""

MAKE_SCRATCH = ("2026-07",)
"""Toolchains that give operations the tmp tiles that they need (docs/reference/pto.md section 1.3)."""

IMPLICIT_TMP = "implicit tmp "
"""The beginning of the names of such tiles, which no text can spell."""

BACKEND = "backend"
"""The option that says whether casts are calls of the C++ library or instructions of the micro back end."""

MICRO = "vpto"
"""The back end whose instructions say themselves whether they saturate (docs/reference/a5.md section 4.2)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An option on which something in a program rests: its value, and what follows from that where."""

    option: str
    value: str
    effect: str
