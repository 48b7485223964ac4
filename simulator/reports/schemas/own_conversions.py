"""The document of `castsim compare`."""

from __future__ import annotations

from typing import ClassVar, Literal

from castsim.reports.schemas.keys import Bits, Elements, Form, Keys, Name, Ulps, Value


class FirstDifference(Keys):
    """The first input, in the order of inputs, whose result differs."""

    position: int
    """Its place among the inputs."""
    input_bits: Bits
    """Its code."""
    input: Value
    """Its number, or `nan`, `inf`, `-inf`."""
    expected_bits: Bits
    """The code that the cast gives."""
    expected: Value
    """Its number."""
    given_bits: Bits | None
    """The code that was given; null if the destination has no such number."""
    given: Value
    """The number that was given."""


class DifferingBinade(Keys):
    """Inputs of one magnitude, some of whose results differ."""

    kind: Literal["number", "zero", "infinite", "nan"]
    """What the inputs are."""
    exponent: int | None
    """Magnitudes from 2 to the power of this on, below twice that; null unless numbers."""
    inputs: Elements
    """Inputs of the magnitude."""
    differing: Elements
    """How many of their results differ."""
    largest_ulps: Ulps
    """The largest distance among them."""


class Compare(Form):
    """A conversion of somebody's own compared with a cast."""

    NAME: ClassVar[str] = "compare"

    src: Name
    """Format of the inputs."""
    dst: Name
    """Format of the results."""
    target: str | None
    """The chip whose cast it is; null: the abstract cast."""
    inputs: Elements
    """Inputs tried."""
    all_codes: bool
    """Whether these are all codes of the source."""
    differing: Elements
    """Results that differ."""
    unrepresentable: Elements
    """Results that the destination does not have."""
    largest_ulps: Ulps
    """The largest distance between results that are both numbers."""
    mean_ulps: float
    """The mean distance between results that are both numbers, in ulps."""
    signal_to_noise_db: float | None
    """Of finite results against the inputs, in decibels; null without an error."""
    cast_signal_to_noise_db: float | None
    """The same of the cast."""
    first: FirstDifference | None
    """The first difference; null if there is none."""
    binades: list[DifferingBinade]
    """Magnitudes with differences, rising."""
