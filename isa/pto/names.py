"""Words of `.pto` text that are values of their own: rounding modes and pipes."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class RoundMode(IntEnum):
    """The `round_mode` enumeration of the PTO instruction set; NONE leaves the choice to the target."""

    NONE = 0
    RINT = 1
    ROUND = 2
    FLOOR = 3
    CEIL = 4
    TRUNC = 5
    ODD = 6


class Pipe(StrEnum):
    """Hardware pipes that flags and barriers name."""

    S = "PIPE_S"
    V = "PIPE_V"
    M = "PIPE_M"
    MTE1 = "PIPE_MTE1"
    MTE2 = "PIPE_MTE2"
    MTE3 = "PIPE_MTE3"
    ALL = "PIPE_ALL"
    MTE4 = "PIPE_MTE4"
    MTE5 = "PIPE_MTE5"
    V2 = "PIPE_V2"
    FIX = "PIPE_FIX"
