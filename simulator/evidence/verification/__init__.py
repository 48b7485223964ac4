"""Exhaustive proofs: a tier of the numerics against the independent oracle, or two tiers against each other.

A `VerificationPart` defines the comparison and its codes, `compare` does a piece of it, `verify` does many pieces, and
a `VerificationRecord` stores the results, so a proof can be interrupted, continued and shipped.
"""
