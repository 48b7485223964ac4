"""Conformance: every legal cast of a specification on every target, planned."""

from castsim.planning.conformance.cells import Cell, ConformanceEntry, legal_casts, settle_cell
from castsim.planning.conformance.matrix import Matrix, conform

__all__ = ["Cell", "ConformanceEntry", "Matrix", "conform", "legal_casts", "settle_cell"]
