"""The gains of lifted limits as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from simulator.what_if import Gain


def what_if_entries(found: Sequence[Gain]) -> list[dict[str, Any]]:
    """Return one JSON object per limit, in their order."""
    return [
        {
            "name": gain.name,
            "title": gain.title,
            "facts": {path: _plain(value) for path, value in gain.facts.items()},
            "total_cycles": gain.cycles,
            "gained_cycles": gain.gained,
        }
        for gain in found
    ]


def what_if_section(found: Sequence[Gain], cycles: int) -> Iterator[RenderableType]:
    """Yield a table of the limits, largest gain first; those that gain nothing in one line."""
    from rich.text import Text  # noqa: PLC0415 - only if printed

    from simulator.reports.pipes import share  # noqa: PLC0415 - as above
    from simulator.reports.terminal import indented, table  # noqa: PLC0415 - as above

    yield Text()
    yield Text(f"what if a limit were lifted ({cycles} cycles with all of them)", style="bold")
    rows = table("lifted", "cycles", "gain", "share", "what it means", numbers=("cycles", "gain", "share"))
    for gain in found:
        if gain.gained:
            rows.add_row(gain.name, str(gain.cycles), str(gain.gained), share(gain.gained, cycles), gain.title)
    if rows.row_count:
        yield rows
    idle = [gain.name for gain in found if not gain.gained]
    if idle:
        yield indented(Text(f"no gain: {', '.join(idle)}"))


def _plain(value: object) -> object:
    """Return a number that JSON knows."""
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value
