"""Modes by the words that people type."""

from __future__ import annotations

from typing import TypeVar

from castsim.isa.errors import ReadError
from castsim.isa.modes import Overflow, Rounding, Saturation

_Mode = TypeVar("_Mode", Rounding, Overflow, Saturation)


def mode_named(kind: type[_Mode], text: str, what: str) -> _Mode:
    """Return the mode of a kind that a word names, in capitals or not.

    Raises:
        ReadError: none of this name; `what` is what the message calls it.
    """
    try:
        return kind(text.lower())
    except ValueError:
        raise ReadError(f"unknown {what} '{text}'", legal=[str(member) for member in kind]) from None
