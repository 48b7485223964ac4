"""The linter: what a program does that the hardware's issue rules forbid, without running it.

Source: docs/reference/tpc.md section 6.2.
"""

from __future__ import annotations

from castsim.machines.vliw.lint.checking import RULES, breaches, lint
from castsim.machines.vliw.lint.flow import Flow, LintFinding, notices

__all__ = ["RULES", "Flow", "LintFinding", "breaches", "lint", "notices"]
