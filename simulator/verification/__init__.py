"""Proofs by trying: a tier of the numerics against the independent oracle, or two tiers against each other.

A `Part` says what is compared on which codes, `compare` does a piece of it, `verify` does many pieces, and a `Record`
keeps what was found, so that a proof can be interrupted, continued and shipped.
"""

from simulator.verification.comparison import Finding, Mismatch, compare
from simulator.verification.inputs import Exhaustive, InputSet, Samples, input_set
from simulator.verification.matrix import required_parts
from simulator.verification.part import DEFAULT_TIER, EXHAUSTIVE, ORACLE, SAMPLES, STRUCTURED, Part
from simulator.verification.record import Progress, Record
from simulator.verification.running import Observer, verify
from simulator.verification.sources import source_digests
from simulator.verification.structured import Structured

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
