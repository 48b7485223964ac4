"""One part of a verification: a cast, the two implementations of it, and the codes it is tried on."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics.policy import Policy, abstract_policy
from castsim.numerics.tiers import Tier

DEFAULT_TIER = "default"
"""The tier that `convert_codes` chooses by itself."""

ORACLE = "oracle"
"""The independent oracle in place of a second tier."""

EXHAUSTIVE = "exhaustive"
STRUCTURED = "structured"
SAMPLES = "samples"
INPUTS = (EXHAUSTIVE, STRUCTURED, SAMPLES)


@dataclass(frozen=True, slots=True)
class VerificationPart:
    """The abstract cast `src` to `dst` under one rounding and overflow: `tier` against `against` on a set of codes.

    Formats are names. `against` is a tier or `ORACLE`. `count` and `seed` are those of samples, else 0; the seed also
    makes the random words of stochastic rounding.
    """

    src: str
    dst: str
    rounding: Rounding
    overflow: Overflow
    tier: str
    against: str
    inputs: str
    count: int = 0
    seed: int = 0

    @property
    def source(self) -> Format:
        """The source format."""
        return format_named(self.src)

    @property
    def destination(self) -> Format:
        """The destination format."""
        return format_named(self.dst)

    @property
    def policy(self) -> Policy:
        """The abstract cast's policy under the part's modes.

        Raises:
            IllegalError: a mode that is not defined for the pair.
        """
        return abstract_policy(self.source, self.destination, self.rounding, self.overflow)

    def check(self) -> None:
        """Reject an inconsistent part.

        Raises:
            ReadError: an unknown format, tier or kind of input set; a tier against itself.
            IllegalError: a mode that is not defined for the pair.
        """
        _ = self.policy
        tier_named(self.tier)
        if self.against != ORACLE:
            tier_named(self.against, also=(ORACLE,))
        if self.tier == self.against:
            raise ReadError(f"tier '{self.tier}' against itself proves nothing")
        if self.inputs not in INPUTS:
            raise ReadError(f"unknown kind of input set '{self.inputs}'", legal=INPUTS)
        if self.inputs == SAMPLES and self.count < 1:
            raise ReadError(f"{self.count} samples: not a positive number")
        if self.inputs == STRUCTURED and self.rounding in (Rounding.HYBRID, Rounding.STOCHASTIC):
            raise IllegalError(
                f"rounding '{self.rounding}' sees more than kept bits, half and sticky: a structured set does not"
                " decide it",
                legal=(f"--{EXHAUSTIVE}", f"--{SAMPLES} N"),
            )

    def __str__(self) -> str:
        return (
            f"{self.src} -> {self.dst} {self.rounding} {self.overflow}: {self.tier} against {self.against},"
            f" {self.inputs}"
        )


def tier_named(name: str, also: tuple[str, ...] = ()) -> Tier | None:
    """Return a tier; None for the default one.

    Raises:
        ReadError: no such tier; the legal names are listed.
    """
    if name == DEFAULT_TIER:
        return None
    try:
        return Tier(name)
    except ValueError:
        legal = (DEFAULT_TIER, *(str(tier) for tier in Tier), *also)
        raise ReadError(f"unknown tier '{name}'", legal=legal) from None
