"""Rounding, overflow and saturation: the union of what all targets and specifications have, one meaning each.

Which of them a target offers, and under which name, is up to the target; the meaning is defined in
docs/reference/formats.md section 6 and executed by `castsim.numerics.rounding`.
"""

from __future__ import annotations

from enum import StrEnum


class Rounding(StrEnum):
    """The choice between the two representable neighbours of a value."""

    RINT = "rint"
    """Nearest, ties to even."""
    ROUND = "round"
    """Nearest, ties away from zero."""
    FLOOR = "floor"
    """Toward minus infinity."""
    CEIL = "ceil"
    """Toward plus infinity."""
    TRUNC = "trunc"
    """Toward zero."""
    ODD = "odd"
    """Von Neumann rounding: an inexact result gets 1 as its last kept bit."""
    HALF_UP = "half_up"
    """Nearest, ties toward plus infinity."""
    STOCHASTIC = "stochastic"
    """Magnitude up iff the dropped bits, left-aligned to 32, are at least a random word."""
    HYBRID = "hybrid"
    """HiFloat8 only: ties away near one, pseudo-stochastic by the source's own low bits elsewhere."""


DETERMINISTIC = (
    Rounding.RINT,
    Rounding.ROUND,
    Rounding.FLOOR,
    Rounding.CEIL,
    Rounding.TRUNC,
    Rounding.ODD,
    Rounding.HALF_UP,
)
"""The modes whose result depends on kept bits, half bit, sticky bit and sign only."""


class Overflow(StrEnum):
    """The treatment of a result beyond the destination's finite range."""

    SATURATE = "saturate"
    """The extreme of the sign; infinities too."""
    WRAP = "wrap"
    """The low bits of the rounded integer; integer destinations only."""
    SPECIAL = "special"
    """What IEEE 754 says (infinity or NaN or largest finite by mode and format); float destinations only."""


class Saturation(StrEnum):
    """The two-valued switch that instruction sets offer; the meaning of OFF depends on target and type pair."""

    ON = "on"
    OFF = "off"
