"""The text of a kernel for a target, and what its arguments are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.isa.formats import Format
from castsim.targets import Target


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel as text for a target.

    Arguments are named as the kernel's ports, their formats by name in `inputs` and `outputs`. `elements` is the size
    of each, whole tiles; `tiles` how many the loop takes.
    """

    target: Target
    text: str
    suffix: str
    inputs: Mapping[str, Format]
    outputs: Mapping[str, Format]
    elements: int
    tiles: int
