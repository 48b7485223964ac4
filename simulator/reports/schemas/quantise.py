"""The document of `castsim quantise`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from castsim.quantisation import RULES
from castsim.reports.schemas.keys import Bits, Elements, Form, Keys, Name, Value


class QuantisedElement(Keys):
    """One number of the array."""

    input_bits: Bits
    """Its code."""
    number: Value
    """The number, or `nan`, `inf`, `-inf`."""
    element_bits: Bits
    """The code of the element."""
    scale_bits: Bits
    """The code of its block's scale."""
    value: Value
    """Element times scale."""


class QuantisationError(Keys):
    """The errors of the finite numbers outside blocks with NaN; null where f64 cannot hold one."""

    elements: Elements
    """Elements of the array."""
    compared: Elements
    """How many of them the errors are of."""
    largest_error: float | None
    """The largest error, in the numbers' own unit."""
    largest_relative_error: float | None
    """The largest error as a part of the number."""
    root_mean_square_error: float | None
    """In the numbers' own unit."""
    signal_to_noise_db: float | None
    """Signal to noise in decibels; null without an error or without numbers."""
    clamped: Elements
    """Numbers beyond the largest element, infinities among them."""
    to_zero: Elements
    """Numbers that became zero."""
    nan_blocks: int
    """Blocks that hold NaN."""


class Quantise(Form):
    """An array quantised to elements that share scales."""

    NAME: ClassVar[str] = "quantise"

    format: str
    """The block format, or the format of the elements."""
    source_format: str
    """Format of the numbers."""
    element_format: str
    """Format of the elements."""
    scale_format: str
    """Format of the scales."""
    scale_rule: str = Field(json_schema_extra={"enum": list(RULES)})
    """The rule by which scales follow from the largest magnitude."""
    shape: list[int]
    """Shape of the array."""
    block: list[Elements]
    """Size of a block along each axis."""
    blocks: int
    """Number of blocks, each with a scale."""
    error: QuantisationError
    """The errors."""
    elements: list[QuantisedElement]
    """The elements in C order; empty if there are more than 256."""
    files: dict[Name, str]
    """With `--out`: the files written."""
