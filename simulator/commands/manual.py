"""The page is in troff format, for `man`: castsim(1), with every command and option. A wheel installs it.

examples:
  castsim manual
  castsim manual > castsim.1
"""

from __future__ import annotations

from argparse import ArgumentParser

SUMMARY = "print the manual page castsim(1), for man"


def declare(_: ArgumentParser) -> None:
    """Add no arguments: there are none."""
