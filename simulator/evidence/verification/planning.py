"""From words to parts: what is compared when only a pair of formats is named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from castsim.evidence.verification.inputs import NARROW, Exhaustive, Structured
from castsim.evidence.verification.oracle import oracle_folder
from castsim.evidence.verification.part import DEFAULT_TIER, EXHAUSTIVE, ORACLE, SAMPLES, STRUCTURED, VerificationPart
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Overflow, Rounding
from castsim.isa.value_expressions import mode_named
from castsim.numerics.policy import legal_overflows, legal_roundings
from castsim.numerics.tiers import Tier

SAMPLE_COUNT = 1 << 20
"""Default number of samples for all modes of a pair together: so that a pair takes some seconds."""

LEAST_SAMPLES = 1 << 16
"""Samples taken at least for each mode."""

QUICK = 1 << 26
"""A structured set of up to this many codes is taken without being asked for."""


def plan(
    src: str,
    dst: str,
    *,
    roundings: Sequence[str] = (),
    overflows: Sequence[str] = (),
    tier: str | None = None,
    against: str | None = None,
    inputs: str | None = None,
    count: int | None = None,
    seed: int = 0,
) -> tuple[VerificationPart, ...]:
    """Return one part per mode; what is not given is everything that the pair has.

    Stochastic rounding is taken only by name.

    Raises:
        ReadError: an unknown word.
        IllegalError: a mode that the pair does not have, or codes that cannot be tried.
    """
    source, destination = format_named(src), format_named(dst)
    modes = [mode_named(Rounding, text, "rounding") for text in roundings]
    policies = [mode_named(Overflow, text, "overflow") for text in overflows]
    modes = modes or [mode for mode in legal_roundings(source, destination) if mode is not Rounding.STOCHASTIC]
    policies = policies or list(legal_overflows(destination))
    kinds = {(mode, overflow): inputs or _quick_inputs(source, destination, mode, overflow)
             for mode, overflow in product(modes, policies)}  # fmt: skip
    if count is None:
        count = max(SAMPLE_COUNT // max(list(kinds.values()).count(SAMPLES), 1), LEAST_SAMPLES)
    parts = []
    for (mode, overflow), kind in kinds.items():
        sampled = kind == SAMPLES
        part = VerificationPart(
            src=source.name,
            dst=destination.name,
            rounding=mode,
            overflow=overflow,
            tier=tier or DEFAULT_TIER,
            against=against or default_opponent(),
            inputs=kind,
            count=count if sampled else 0,
            seed=seed if sampled or mode is Rounding.STOCHASTIC else 0,
        )
        part.check()
        parts.append(part)
    return tuple(parts)


def default_opponent() -> str:
    """Return the default opponent of a tier: the oracle or, where that is not installed, the reference tier.

    The oracle is part of the tests, which an installed package does not bring.
    """
    return str(Tier.REFERENCE) if oracle_folder() is None else ORACLE


def _quick_inputs(src: Format, dst: Format, rounding: Rounding, overflow: Overflow) -> str:
    """Return the kind of input set that proves most within a minute or so."""
    if src.bits <= NARROW and Exhaustive(src).size <= 1 << NARROW:
        return EXHAUSTIVE
    if rounding in (Rounding.HYBRID, Rounding.STOCHASTIC):
        return SAMPLES
    try:
        return STRUCTURED if Structured(src, dst, overflow).size <= QUICK else SAMPLES
    except IllegalError:
        return SAMPLES
