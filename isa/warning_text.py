"""Warnings: what is accepted but deserves a look, as text with a kind and a place."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from castsim.isa.errors import Span


class WarningKind(StrEnum):
    """What a warning is about."""

    ATTRIBUTE = "attribute"
    """An attribute that nobody knows and that has no effect."""
    ELEMENT_TYPE = "element type"
    """An element type that is read as another one, or that only castsim knows."""
    LEFT_OUT = "left out"
    """A function that cannot be read and is not asked for."""
    SHARED_BYTES = "shared bytes"
    """Tiles that are never in use together share bytes, or the program would not fit."""
    UNTIMED = "untimed"
    """No cycles are counted for an operation: it belongs to a unit that is not modelled."""
    ROUNDING = "rounding"
    """A rounding mode that was asked for in vain."""
    SATURATION = "saturation"
    """A saturation that was asked for in vain."""
    DISTRIBUTION = "distribution"
    """A mode of pairs of registers for narrower elements than the registers have."""
    SCRATCH = "scratch"
    """A tmp tile that is ignored, too small, or missing where the bytes of other tiles are used instead."""
    IN_PLACE = "in place"
    """A result over its own source."""
    REGION = "region"
    """A load or store between a part of a view and a valid region of another size."""
    STRIDE = "stride"
    """Rows or repeats that start elsewhere than the text says."""
    BEYOND = "beyond"
    """A write behind its tile."""
    COLUMN = "column"
    """A column that is lost."""
    DEFAULT_READ = "default read"
    """An element that nobody gave was taken for 0, and the path depends on it."""
    SCALAR = "scalar"
    """A scalar that no definition gives: a float beyond its integer type."""
    OPERATION = "operation"
    """What a vector operation does otherwise than its text says."""
    UNDOCUMENTED = "undocumented"
    """A use of an instruction that no source documents."""
    FORM = "form"
    """A form of an instruction that only a compiler's output shows."""
    SHORT_BUNDLE = "short bundle"
    """A line that counts slots and leaves some out."""
    NO_HALT = "no halt"
    """A program that ends behind its last bundle."""
    ENCODING = "encoding"
    """A bundle that is encoded otherwise than expected."""
    OVERTAKING = "overtaking"
    """A load of a vector function that nothing keeps behind an earlier store of the same bytes."""
    UNDEFINED = "undefined"
    """Bytes of an output that come from what nothing has defined."""
    WIDE_INPUT = "wide input"
    """Codes with bits above those that they should have."""


class WarningText(str):
    """A warning, which reads `PLACE: TEXT`, or TEXT where no place is known.

    `place` is one of a source text, or names the target or the file that the warning is about.
    """

    __slots__ = ("kind", "place", "text")

    kind: WarningKind
    text: str
    place: Span | str | None

    def __new__(cls, kind: WarningKind, text: str, place: Span | str | None = None) -> WarningText:
        """Make a warning of a kind."""
        made = super().__new__(cls, text if place is None else f"{place}: {text}")
        made.kind, made.text, made.place = kind, text, place
        return made

    def __getnewargs__(self) -> tuple[WarningKind, str, Span | str | None]:  # type: ignore[override]
        """What a copy is made of."""
        return self.kind, self.text, self.place

    def at(self, place: Span | str) -> WarningText:
        """Return the same warning at a place, before the one that it has."""
        return WarningText(self.kind, str(self), place)


Warnings = tuple[WarningText, ...]


def of_kind(warnings: Iterable[WarningText], *kinds: WarningKind) -> Warnings:
    """Return the warnings of these kinds in their order."""
    return tuple(each for each in warnings if each.kind in kinds)
