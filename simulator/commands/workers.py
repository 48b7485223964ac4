"""Options that say who computes, and where what is done is kept."""

from __future__ import annotations

from argparse import ArgumentParser

SCHEDULER = "use the workers of a Dask scheduler, such as tcp://host:8786"


def declare_workers(parser: ArgumentParser, kept: str | None = None) -> None:
    """Add the options; `kept` is what a ledger keeps, None where there is none."""
    add = parser.add_argument
    add("--workers", metavar="N", help="processes to use; default: 1")
    add("--scheduler", metavar="ADDRESS", help=SCHEDULER)
    if kept is not None:
        add("--ledger", metavar="FILE", help=f"keep {kept} in FILE until all is written: the same command goes on")
