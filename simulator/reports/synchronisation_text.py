"""The listing of a program with its inserted flags and barriers, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from simulator.reports.synchronisation import MARK, synchronisation_listing
from simulator.running import Loaded


def synchronisation_section(loaded: Loaded) -> Iterator[RenderableType]:
    """Yield the listing, or why there is none."""
    if loaded.synchronised is None:
        reason = (
            "the instructions wait for each other's bytes" if loaded.tree.interlocked else "the program has its own"
        )
        yield Text(f"synchronisation: nothing inserted, {reason}")
        yield Text()
        return
    yield Text(f"synchronisation: lines marked {MARK} are inserted", style="bold")
    for number, line in synchronisation_listing(loaded):
        style = "green" if number == MARK else "dim"
        yield Text(f"{number:>5}  {line}", style=style, no_wrap=True, overflow="ellipsis")
    yield Text()
