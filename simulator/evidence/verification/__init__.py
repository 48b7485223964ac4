"""Proofs by trying: a tier of the numerics against the independent oracle, or two tiers against each other.

A `Part` says what is compared on which codes, `compare` does a piece of it, `verify` does many pieces, and a `Record`
keeps what was found, so that a proof can be interrupted, continued and shipped.
"""

from castsim.evidence.verification.comparison import Finding, Mismatch, compare
from castsim.evidence.verification.inputs import Exhaustive, InputSet, Samples, input_set
from castsim.evidence.verification.matrix import required_parts
from castsim.evidence.verification.part import DEFAULT_TIER, EXHAUSTIVE, ORACLE, SAMPLES, STRUCTURED, Part
from castsim.evidence.verification.record import Progress, Record
from castsim.evidence.verification.running import Observer, verify
from castsim.evidence.verification.sources import source_digests
from castsim.evidence.verification.structured import Structured

__all__ = [
    "DEFAULT_TIER",
    "EXHAUSTIVE",
    "ORACLE",
    "SAMPLES",
    "STRUCTURED",
    "Exhaustive",
    "Finding",
    "InputSet",
    "Mismatch",
    "Observer",
    "Part",
    "Progress",
    "Record",
    "Samples",
    "Structured",
    "compare",
    "input_set",
    "required_parts",
    "source_digests",
    "verify",
]
