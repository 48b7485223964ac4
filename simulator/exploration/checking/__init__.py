"""Checking programs, target descriptions and graphs without running them: all that is wrong, in one pass.

found = check("kernel.pto")
found = check_text("kernel.pto", text, target="a5")
found[0].severity, found[0].line, found[0].column, found[0].message
"""

from castsim.exploration.checking.check_finding import Finding, Severity
from castsim.exploration.checking.files import LANGUAGES, check, check_text

__all__ = ["LANGUAGES", "Finding", "Severity", "check", "check_text"]
