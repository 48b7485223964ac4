"""What is found of a chain: a verdict, the evidence for it, and the codes that refute it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.planning.demand import Verdict
from castsim.planning.order import nearest_zero_first
from castsim.planning.steps import Chain


class Method(StrEnum):
    """The method by which a verdict was reached."""

    EXHAUSTIVE = "exhaustive"
    """All codes went through the machine model, or through what is proven to give the same."""
    BREAKPOINTS = "breakpoints"
    """Order is kept: the ends of stretches of equal results stand for all codes."""
    SUBSTITUTE = "substitute"
    """All codes went through a function that was seen to agree with the machine model on samples: no proof."""
    SAMPLED = "sampled"
    """Some codes were tried: no proof."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The number of codes tried and what that proves."""

    method: Method
    codes: int
    argument: str

    @property
    def proves(self) -> bool:
        """Whether no code is left out."""
        return self.method in (Method.EXHAUSTIVE, Method.BREAKPOINTS)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict on a chain; `failing` are codes on which it fails, the smallest magnitude first."""

    chain: Chain
    verdict: Verdict
    evidence: Evidence
    failing: Codes


def smallest_first(codes: Codes, fmt: Format) -> Codes:
    """Return codes by magnitude."""
    ordered: Codes = codes[nearest_zero_first(codes, fmt)]
    return ordered
