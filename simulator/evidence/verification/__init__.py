"""Proofs by trying: a tier of the numerics against the independent oracle, or two tiers against each other.

A `VerificationPart` says what is compared on which codes, `compare` does a piece of it, `verify` does many pieces, and
a `VerificationRecord` keeps the results, so that a proof can be interrupted, continued and shipped.
"""
