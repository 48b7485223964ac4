"""Values that no source states: the instruction is read, encoded, linted and timed, and refused where values count."""

from __future__ import annotations

from castsim.isa.errors import IllegalError


class UnstatedError(IllegalError):
    """No source states what an instruction, or a word of it, computes."""
