"""Violations of the order of a program: races, flags that do not match, bytes that nothing wrote.

The program is followed through its flags and barriers without times, so what is found may happen at some speed of the
pipes, even if this run would not show it. Trips of loops are not unrolled, see `unfolding` for what is assumed.
"""

from castsim.synchronisation.races.detector import find_races
from castsim.synchronisation.races.race_findings import Finding, RaceKind, refusal

__all__ = ["IGNORE", "MODES", "REPORT", "STOP", "Finding", "RaceKind", "find_races", "refusal"]

STOP = "stop"
REPORT = "report"
IGNORE = "ignore"

MODES = (STOP, REPORT, IGNORE)
"""The treatment of findings: reject the program, run it and report them, or do not look for any."""
