"""Conformance: every legal cast of a specification on every target, planned."""

from castsim.planning.conformance.matrix import Cell, ConformanceEntry, Matrix, conform, legal_casts, settle_cell

__all__ = ["Cell", "ConformanceEntry", "Matrix", "conform", "legal_casts", "settle_cell"]
