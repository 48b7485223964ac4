"""Proofs by trying: a tier of the numerics against the independent oracle, or two tiers against each other.

A `VerificationPart` says what is compared on which codes, `compare` does a piece of it, `verify` does many pieces, and
a `VerificationRecord` keeps the results, so that a proof can be interrupted, continued and shipped.
"""

from castsim.evidence.verification.comparison import ComparisonResult, Mismatch, compare
from castsim.evidence.verification.inputs import Exhaustive, InputSet, Samples, Structured, input_set
from castsim.evidence.verification.matrix import required_parts
from castsim.evidence.verification.part import DEFAULT_TIER, EXHAUSTIVE, ORACLE, SAMPLES, STRUCTURED, VerificationPart
from castsim.evidence.verification.running import PartProgress, VerificationObserver, VerificationRecord, verify
from castsim.evidence.verification.sources import source_digests

__all__ = [
    "DEFAULT_TIER",
    "EXHAUSTIVE",
    "ORACLE",
    "SAMPLES",
    "STRUCTURED",
    "ComparisonResult",
    "Exhaustive",
    "InputSet",
    "Mismatch",
    "PartProgress",
    "Samples",
    "Structured",
    "VerificationObserver",
    "VerificationPart",
    "VerificationRecord",
    "compare",
    "input_set",
    "required_parts",
    "source_digests",
    "verify",
]
