"""The document of `castsim lower` for a block format."""

from __future__ import annotations

from typing import ClassVar

from castsim.reports.schemas.keys import Form, Keys


class BlockWay(Keys):
    """One way to a block format."""

    kind: str
    """`operation` or `chain`."""
    rule: str
    """The rule by which scales follow from the largest magnitude."""
    operations: list[str]
    """Names of the operations, in order."""
    cycles: int
    """Cycles of the program, loads and stores included."""
    cycles_per_element: float
    """The same for each element."""
    differs: list[str]
    """Where results are not those of `castsim quantise`."""
    program: str
    """The program."""


class LoweredBlocks(Form):
    """The ways to a block format on a target."""

    NAME: ClassVar[str] = "lower-blocks"

    src: str
    """Format of the numbers."""
    format: str
    """Name of the block format."""
    target: str
    """Name of the target."""
    rows: int
    """Rows of the tensor."""
    cols: int
    """Its columns."""
    ways: list[BlockWay]
    """The ways; empty if there is none."""
    refused: list[str]
    """Why there are no others."""
    file: str | None
    """With `--out`: the file of the first program."""
