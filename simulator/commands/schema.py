"""COMMAND is a command that takes --json, or `errors`: what every command writes when it fails. Without COMMAND, the
documents of all commands are listed with their versions; the version goes up with every change to the structure.

examples:
  castsim schema
  castsim schema run
  castsim schema errors
"""

from __future__ import annotations

from argparse import ArgumentParser

SUMMARY = "print the JSON Schema of what a command writes with --json"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `schema`."""
    parser.add_argument("command", metavar="COMMAND", nargs="?", help="a command, or `errors`; default: list all")
