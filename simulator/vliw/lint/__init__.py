"""The linter: what a program does that the hardware's issue rules forbid, without running it (tpc.md section 6.2)."""

from __future__ import annotations

from simulator.vliw.lint.checking import RULES, lint
from simulator.vliw.lint.finding import Finding

__all__ = ["RULES", "Finding", "lint"]
