"""The proofs that are shipped: fp32 to eleven destinations, in all modes, under both overflow policies."""

from __future__ import annotations

from itertools import product

from castsim.evidence.verification.part import EXHAUSTIVE, STRUCTURED, VerificationPart
from castsim.isa.formats import format_named
from castsim.isa.modes import DETERMINISTIC, Rounding
from castsim.numerics.policy import default_rounding, legal_overflows, legal_roundings

SOURCE = "f32"
DESTINATIONS = ("f16", "bf16", "e4m3fn", "e5m2", "e2m1", "e1m2", "hif8", "i8", "u8", "i16", "i32")

COMPILED = "compiled"
"""What casts of large arrays take by themselves, asked for by name so that not one code goes through another tier."""

GENERIC = "generic"
REFERENCE = "reference"


def required_parts() -> tuple[VerificationPart, ...]:
    """Return all parts, those first that tell most for their time.

    The generic kernel against the reference on the structured sets, minutes; the compiled tier against the generic
    kernel on all codes; the generic kernel against the reference on all codes, for the default rounding, and for
    hybrid, which no structured set decides.
    """
    structured, fast, slow = [], [], []
    for name in DESTINATIONS:
        src, dst = format_named(SOURCE), format_named(name)
        modes = [mode for mode in legal_roundings(src, dst) if mode in DETERMINISTIC or mode is Rounding.HYBRID]
        for mode, overflow in product(modes, legal_overflows(dst)):
            fast.append(VerificationPart(SOURCE, name, mode, overflow, COMPILED, GENERIC, EXHAUSTIVE))
            if mode in (default_rounding(dst), Rounding.HYBRID):
                slow.append(VerificationPart(SOURCE, name, mode, overflow, GENERIC, REFERENCE, EXHAUSTIVE))
            else:
                structured.append(VerificationPart(SOURCE, name, mode, overflow, GENERIC, REFERENCE, STRUCTURED))
    return (*structured, *fast, *slow)
